"""Plain searches for small instances: the best tree of a space without any trick, which proves a bound or refutes it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from trainer.verify.findings import asked
from trainer.verify.questions import questions
from trainer.verify.recount import penalty
from trainer.verify.rows import Rows

WORK = 4e9  # multiplications that a search may take
SAME_OBJECTIVE = {"exact", "flowoct", "bendoct", "bendoct-accelerated", "oct"}
RESTRICTIONS = ("max_leaves", "max_columns", "recall", "fairness", "forbidden_pairs", "monotone", "forbidden")


def best(model: dict[str, Any], rows: Rows) -> tuple[Fraction | None, str]:
    """The best objective of the space that the file claims, or None and the reason why it was not searched."""
    if model["method"] not in SAME_OBJECTIVE or model["certificate"].get("goal"):
        return None, f"the trees of '{model['method']}' are not those of the plain search"
    if restricted := [name for name in RESTRICTIONS if asked(model, name) is not None]:
        return None, f"the trees were restricted ({restricted[0]})"
    found = _value(model, questions(model, rows).matrix, rows)
    return (None, "it is too large for a plain search") if found is None else (found, "")


def of_single_columns(model: dict[str, Any], rows: Rows) -> Fraction | None:
    """The best objective over a few thresholds a column, which no bound of hyperplanes may be below; None where it is not of their class."""
    other = [asked(model, name) is not None for name in ("balanced", *RESTRICTIONS)]
    if model["method"] == "oct-h" or any(other) or model["certificate"].get("coefficient_penalty"):
        return None
    if asked(model, "big_m") is not None:
        return None
    for values in rows.columns:  # nearer values than a plane must part need not be told apart
        steps = np.diff(np.unique(values))
        if len(steps) and not steps.min() > 1e-5 * np.ptp(values):
            return None
    return _value(model, questions(model, rows, "quantile-thresholds", 5).matrix, rows)


def _value(model: dict[str, Any], answers: np.ndarray, rows: Rows) -> Fraction | None:
    """The best objective over the yes/no questions, or None where the search is too large."""
    X = answers.astype(np.float64)
    depth, classes = min(int(model["parameters"]["depth"]), X.shape[1]), len(model["classes"])
    if depth > 1 and float(X.shape[1]) ** depth * len(X) * classes > WORK:
        return None
    Y = np.zeros((len(X), classes))
    Y[np.arange(len(X)), rows.labels] = rows.weights
    n = int(Y.sum())
    return (n - plain(X, Y, depth, penalty(model) * n, int(asked(model, "min_leaf") or 1))) / n


def plain(X: np.ndarray, Y: np.ndarray, depth: int, price: Fraction, min_leaf: int) -> Fraction:
    """Smallest errors + price * leaves; counts in float64 are exact below 2^53."""
    totals = Y.sum(axis=0)
    found = Fraction(int(totals.sum() - totals.max())) + price
    if depth == 0:
        return found
    ones = X.T @ Y
    sizes = ones.sum(axis=1)
    usable = np.flatnonzero((sizes >= max(1, min_leaf)) & (totals.sum() - sizes >= max(1, min_leaf)))
    if depth == 1:
        if len(usable):
            errors = totals.sum() - ones[usable].max(axis=1) - (totals - ones[usable]).max(axis=1)
            found = min(found, Fraction(int(errors.min())) + 2 * price)
        return found
    for f in usable:
        one = X[:, f] > 0
        low = plain(X[~one], Y[~one], depth - 1, price, min_leaf)
        found = min(found, low + plain(X[one], Y[one], depth - 1, price, min_leaf))
    return found
