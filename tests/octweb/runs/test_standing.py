"""The sentences about the incumbent on the live page are true of all trees of small random cases."""

from __future__ import annotations

import random
import re

import pytest
from django.utils import timezone

from octweb.runs.incumbents import incumbents
from octweb.runs.models import TrainingRun
from octweb.runs.standing import count_unit, standing
from trainer.registry import get


def sentences(
    *, method: str = "exact", parameters=None, summary=None, progress=None, tree=None, finished=False, weight=""
):
    run = TrainingRun(
        method=method,
        parameters=parameters or {},
        summary=summary or {},
        progress=progress or {},
        weight=weight,
        finished=timezone.now() if finished else None,
    )
    best = standing(run, get(method), tree)
    return f"{best.right} {best.more}".strip()


def record(correct: int, wrong: int, **members):
    return {"correct": correct, "leaves": 4, "tree": [{"id": 0, "counts": [correct, wrong]}]} | members


def test_search_without_leaf_price_says_rows():
    text = sentences(progress={"bound": 287 / 297}, tree=record(284, 13, incumbent=284 / 297))
    assert text == "Right for 284 of 297 training rows with four leaves. Could be at most 3 more."


def test_bound_below_one_row_proves_optimality():
    text = sentences(progress={"bound": 284.9 / 297}, tree=record(284, 13, incumbent=284 / 297))
    assert text.endswith("No tree that was searched gets more right.")


@pytest.mark.parametrize("weighted", [{"weight": "w"}, {"parameters": {"goal": "balanced"}}])
def test_weights_are_not_called_rows(weighted):
    text = sentences(**weighted, progress={"bound": 0.9}, tree=record(337, 175, incumbent=0.62))
    assert text.startswith("Right for 65.8\u202f% of the weight of the training rows with four leaves.")


def test_new_best_trees_of_weighted_rows_count_weight():
    records = [
        record(right, 9, line=k, t=k, incumbent=0.5 + k / 10, columns=[], classes=[]) for k, right in enumerate((4, 7))
    ]
    newest, first = incumbents(records, count_unit(TrainingRun(parameters={"class_weight": "balanced"})))
    assert (newest["unit"], newest["change"], first["change"]) == ("of weight", "+3 of weight", "first tree")
    assert incumbents(records)[0]["change"] == "+3 rows"
    alike = TrainingRun(parameters={"goal": "balanced"}, summary={"count_unit": "rows"})
    assert count_unit(alike) == "rows"  # classes of the same size


def test_closed_gap_is_proved():
    summary = {"correct": 284, "n": 297, "leaves": 4, "objective": 0.95, "bound": 0.95}
    assert sentences(summary=summary, finished=True).endswith("Proved: no tree that was searched is better.")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "No tree yet."),
        ({"finished": True}, "No tree."),
        ({"tree": record(8, 2)}, "How many more are possible is not known yet."),
        ({"method": "cart", "tree": record(8, 2)}, "this method proves nothing."),
        ({"method": "bivariate", "tree": record(8, 2)}, "nothing is proved about the whole tree."),
        (
            {"method": "local-search", "tree": record(8, 2)},
            "at the end of the run. Nothing is proved about the whole tree.",
        ),
        (
            {"weight": "w", "progress": {"bound": 0.9}, "tree": record(8, 2, incumbent=0.8)},
            "at most 12.50\u202f% better.",
        ),
        (
            {"parameters": {"goal": "f1"}, "progress": {"bound": 0.9}, "tree": record(8, 2, incumbent=0.8)},
            "at most 12.50\u202f% better.",
        ),
    ],
)
def test_other_states_claim_no_rows(changes, words):
    text = sentences(**changes)
    assert text.endswith(words)
    assert "Could be at most 1 more" not in text


@pytest.mark.parametrize(("bound", "words"), [(None, "0 of 1"), (1.0, "0 of 1"), (2.0, "Each question is the best")])
def test_question_is_called_best_only_if_its_bound_proves_it(bound, words):
    """The first tree, grown while kernels compile, has no bounds."""
    root = {"id": 0, "counts": [6, 4], "left": 1, "right": 2}
    if bound is not None:
        root |= {"impurity": 2.0, "impurity_bound": bound}
    tree = record(8, 2) | {"tree": [root, {"id": 1, "counts": [6, 2]}, {"id": 2, "counts": [0, 2]}]}
    text = sentences(method="bivariate", tree=tree)
    assert words in text
    assert ("Each question is the best" in text) == (bound == 2.0)


def test_no_random_tree_exceeds_stated_bound():
    chance = random.Random(7)
    for _ in range(300):
        rows = chance.randint(5, 60)
        price = chance.choice([0, 0, 0.01, 0.02, 0.1])
        trees = [(chance.randint(0, rows), chance.randint(1, 6)) for _ in range(8)]
        worth = [right / rows - price * leaves for right, leaves in trees]
        (right, leaves), objective = trees[0], worth[0]
        text = sentences(
            parameters={"leaf_penalty": price},
            progress={"bound": max(worth)},
            tree=record(right, rows - right, leaves=leaves, incumbent=objective),
        )
        match = re.search(r"at most (\d+) more", text)
        most = int(match[1]) if match else 0
        compared = [r for r, size in trees if not price or size <= leaves]
        assert max(compared) - right <= most, text
        assert price or max(compared) - right == most, text


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"costs": "a>b=5"}, "Proved: no tree that was searched costs less."),
        ({"goal": "f1"}, "Proved: no tree that was searched has a better objective."),
        ({}, "Proved: no tree that was searched is better."),
    ],
)
def test_proof_names_what_no_tree_does_better(parameters, words):
    """A tree of more correct rows may cost more, so the words beside the correct rows say what is proved."""
    summary = {"correct": 127, "n": 150, "leaves": 8, "objective": 0.57, "bound": 0.57}
    assert sentences(parameters=parameters, summary=summary, finished=True).endswith(words)


@pytest.mark.parametrize("summary", [{}, {"count_unit": "of weight", "correct": 2030, "n": 2652, "leaves": 2}])
def test_balanced_classes_are_not_called_rows(summary):
    text = sentences(parameters={"goal": "balanced"}, summary=summary, tree=record(2030, 622, incumbent=0.56))
    assert text.startswith("Right for 76.5\u202f% of the weight of the training rows with ")
