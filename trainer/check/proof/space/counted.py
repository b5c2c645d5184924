"""Build the space of a model that was trained from counts.

See docs/proof-format.md, "Counts".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from trainer.check.proof.model import Model, active_parameter, minimum_recalls, read_fraction, split_items
from trainer.check.proof.space.limits import forbidden_pairs
from trainer.check.proof.space.wishes import wishes_of
from trainer.check.proof.subject import CountedSets, NoProof, ProofConstraint, ProofSpace

MOST_QUESTIONS = 250  # with more questions, the sets of three are too many for a table of their places


class _Question(NamedTuple):
    """A question as a wish would name it: `test` holds on the left side, which is that of the answer yes if `yes_left`.

    `empty` is the answer of empty cells to the test, None if there are none. `base` is the counted question; the answers of a mirrored
    question are the opposite ones.
    """

    column: int
    test: tuple[str, Any]
    empty: bool | None
    yes_left: bool
    base: int
    mirrored: bool = False


def counted_space(model: Model, sets: CountedSets, questions: Sequence[Model], digest: str) -> ProofSpace:
    """Build the space of a model over its counts.

    `questions` are those of the counts, as their file describes them; `digest` is the SHA-256 of the counts. With costs, the
    classes of `sets` are answers, and their numbers savings. Raises NoProof if the format has no steps for these settings.
    """
    asked = [_read_question(question, q, model) for q, question in enumerate(questions)]
    wishes = wishes_of(model)
    asked += _mirrored(asked, model) if wishes else []
    asks = [question.column for question in asked]
    depth = int(model["parameters"]["depth"])
    min_leaf = int(active_parameter(model, "min_leaf") or 1)
    if depth > sets.depth:
        raise NoProof(f"the counts are of at most {sets.depth} questions, and the trees are of depth {depth}")
    if len(questions) > MOST_QUESTIONS:
        raise NoProof(f"there are {len(questions)} questions, and steps from counts have at most {MOST_QUESTIONS}")
    if active_parameter(model, "costs") and (min_leaf > 1 or minimum_recalls(model)):
        raise NoProof("savings of answers do not show the numbers of rows that a smallest leaf or a recall needs")
    totals = sets.numbers[:, 0]
    banned = set(split_items(active_parameter(model, "forbidden")))
    columns = np.array(asks, np.int64)
    allowed = np.array([column["name"] not in banned for column in model["columns"]], bool)[columns]
    most = active_parameter(model, "max_leaves")
    error_shares = [(model["classes"].index(name), 1 - read_fraction(share)) for name, share in minimum_recalls(model)]
    return ProofSpace(
        kind="questions",
        X=np.zeros((0, len(asks)), bool),
        labels=np.arange(len(totals), dtype=np.int32),
        weights=totals,
        classes=len(totals),
        depth=depth,
        penalty=read_fraction(model["certificate"].get("leaf_penalty") or "0") * int(totals.sum()),
        min_leaf=min_leaf,
        max_leaves=None if most is None else int(most),
        allowed=allowed,
        apart=forbidden_pairs(model, columns),
        digest=digest,
        columns=columns,
        recalls=tuple((k, math.floor(int(totals[k]) * wrong)) for k, wrong in error_shares),
        yes_left=np.array([question.yes_left for question in asked], bool) if wishes else None,
        wishes=tuple(replace(w, numbers=_numbers(w, asked)) for w in wishes),
        sets=sets._replace(
            base=np.array([question.base for question in asked], np.int64),
            mirrored=np.array([question.mirrored for question in asked], bool),
        ),
    )


def _read_question(question: Model, number: int, model: Model) -> _Question:
    names = [column["name"] for column in model["columns"]]
    column = names.index(question["column"])
    if question["test"] == "level":
        return _Question(column, ("in", frozenset([question["category"]])), None, True, number)
    if question["test"] == "empty":
        return _Question(column, ("missing", None), None, True, number)
    low = question.get("low")
    high = question.get("high")
    above = question["test"] == "above" or high is None
    test = ("<=", low if above else high)
    if not above and low is not None:
        test = ("between", (low, high))
    empty = question.get("empty")
    return _Question(column, test, None if empty is None else empty != above, not above, number)


def _mirrored(asked: Sequence[_Question], model: Model) -> list[_Question]:
    """Return the question about the other categories for each column of categories with a single question."""
    columns = [question.column for question in asked]
    mirrored = []
    for question in asked:
        if question.test[0] == "in" and columns.count(question.column) == 1:
            others = frozenset(model["columns"][question.column]["categories"]) - question.test[1]
            mirrored.append(question._replace(test=("in", others), mirrored=True))
    return mirrored


def _numbers(wish: ProofConstraint, asked: Sequence[_Question]) -> tuple[int, ...]:
    """Return the questions that a wish names; raise NoProof if none was counted."""
    if wish.split is None:
        return ()
    if wish.verb != "ask":
        raise NoProof(f"there are no steps from counts for '{wish.verb}'")
    numbers = tuple(
        q
        for q, question in enumerate(asked)
        if (question.column, question.test) == (wish.column, wish.split) and wish.empty in (None, question.empty)
    )
    if not numbers:
        raise NoProof(f"the question of the wish '{wish.text}' was not counted")
    return numbers
