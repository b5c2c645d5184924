"""The checker searches small spaces for sensitivity and specificity of `odt`, and refutes false claims."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from tests.seeds import seeds
from tests.trainer.odt.as_questions_cases import trained
from trainer.check.recount import verdict, verify
from trainer.errors import TrainerError

GOALS = (
    {"frontier": True},
    {"sensitivity": 0.8},
    {"specificity": 0.7, "frontier": True},
    {"negative_weight": "1/3"},
    {"negative_weight": "balanced", "positive": "k0"},
    {"sensitivity": 0.4, "specificity": 0.4},
)
SHAPE = {"depth": 2, "bins": 4, "max_card": 0}


@pytest.mark.slow
@seeds(18)
def test_honest_files_are_proved(tmp_path_factory, seed):
    # Every third seed has two classes, which the goals need.
    folder = tmp_path_factory.mktemp("odt")
    k = 3 * seed + 1
    try:
        model, _, data, _ = trained(folder, k, **SHAPE | GOALS[seed % len(GOALS)])
    except TrainerError:
        return  # no tree reaches the required shares
    assert verdict(verify(model, data)) == "proved"


def changed(document, **part):
    return document | {"certificate": document["certificate"] | part}


def test_lies_about_pairs_are_refuted(tmp_path):
    model, _, data, _ = trained(tmp_path, 1, **SHAPE, frontier=True)
    document = json.loads(model.read_text())
    (own, *rest) = document["certificate"]["evidence"]
    (tp, tn, top), *others = own["pairs"]
    assert len(others) > 2
    lies = [
        own | {"pairs": others, "proved": own["proved"][1:]},
        own | {"pairs": [[tp, tn + 1, top + 1], *others]},
        own | {"pairs": [[tp, tn - 1, top - 1], *others]},
        own | {"pairs": [[tp + 1, tn, top], *others]},
        own | {"pairs": [[tp, tn - 1, top], *others]},
        own | {"positives": own["positives"] + 1},
        own | {"proved": own["proved"][1:]},
        own | {"finished": False, "bounds": [[tp, tn - 1]]},
    ]
    for lie in lies:
        model.write_text(json.dumps(changed(document, evidence=[lie, *rest])))
        assert next(f for f in verify(model, data) if f.claim == "frontier").verdict == "refuted", lie


def test_unfinished_frontier_claims_less_and_is_proved(tmp_path):
    """A pair that meets its bound is not proved while more positives may be correct with as many negatives."""
    model, _, data, _ = trained(tmp_path, 1, **SHAPE, frontier=True)
    document = json.loads(model.read_text())
    (own, *rest) = document["certificate"]["evidence"]
    (tp, tn, top), *others = own["pairs"]
    assert tp > 0
    less = {"finished": False, "status": "time_limit", "pairs": [[tp - 1, tn, top], *others]}
    for proved, holds in ((False, "proved"), (True, "refuted")):
        part = own | less | {"proved": [proved, *own["proved"][1:]]}
        model.write_text(json.dumps(changed(document, evidence=[part, *rest])))
        assert next(f for f in verify(model, data) if f.claim == "frontier").verdict == holds


@pytest.mark.parametrize("goal", GOALS[1:4])
def test_goal_that_differs_from_parameters_is_refuted(tmp_path, goal):
    model, _, data, _ = trained(tmp_path, 1, **SHAPE, **goal)
    document = json.loads(model.read_text())
    claim = document["certificate"]
    for change in (
        {"weight": "0"},
        {"weight": "17"},
        {"maximise": "accuracy", "weight": "2"},
        {"positive": "k0"},
        {"sensitivity": "1/10"},
    ):
        model.write_text(json.dumps(changed(document, goal=claim["goal"] | change)))
        assert next(f for f in verify(model, data) if f.claim == "what is maximised").verdict == "refuted", change
    lower = float(Fraction(claim["objective"]) - Fraction(1, 50))
    model.write_text(json.dumps(changed(document, bound=lower, objective=lower)))
    assert verdict(verify(model, data)) == "refuted"
