"""The trees that a proof speaks of, made from the model document and the rows alone: questions, weights, prices, limits.

See docs/proof-format.md, "The space".
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.verify.limits import exact

QUESTIONS = {"exact", "flowoct", "bendoct", "bendoct-accelerated", "oct", "binoct"}
THRESHOLDS = {"exact-numeric"}


class NoProof(Exception):
    """No step of the format fits what the model claims; the text says why."""


class BadProof(Exception):
    """A proof does not hold; the text names the line and the reason."""


@dataclass(frozen=True)
class Space:
    """Rows of positive weight, the questions they answer, and the price of errors and leaves: unit * errors + leaf * leaves."""

    kind: str  # "questions": X is bool (n, m); "thresholds": X is float64 (n, F)
    X: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    classes: int
    depth: int
    penalty: Fraction  # of a leaf, in rows
    min_leaf: int
    max_leaves: int | None
    allowed: np.ndarray  # bool (m,): questions that may be asked; thresholds: bool (F,)
    apart: np.ndarray | None  # bool (m, m): the second may not follow the first on a path
    digest: str  # of the rows


def read_space(
    model: dict[str, Any], columns: Sequence[np.ndarray], labels: np.ndarray, weights: np.ndarray | None = None
) -> Space:
    """The space of a model over its training rows; raises NoProof where no step of the format fits its method."""
    asked, method = model.get("parameters", {}), model["method"]
    if model["certificate"].get("goal"):
        raise NoProof("the steps prove bounds of errors and leaves, and the goal is another one")
    if method not in QUESTIONS | THRESHOLDS or (method in QUESTIONS and "binarise" not in asked):
        raise NoProof(f"there are no steps for the trees of '{method}' yet")
    penalty = exact(model["certificate"].get("leaf_penalty") or "0")
    if method == "binoct" and penalty:
        raise NoProof("'binoct' prices leaves in its own way")
    own = np.ones(len(labels), np.int64) if weights is None else np.asarray(weights, np.int64)
    w = balanced(labels, own) if asked.get("class_weight") == "balanced" else own
    if method in THRESHOLDS:
        X, column_of = _matrix(model["columns"], columns)
    else:
        X, column_of = _answers(model["columns"], columns, own, str(asked["binarise"]), int(asked.get("bins") or 5))
    kept = w > 0
    return Space(
        kind="thresholds" if method in THRESHOLDS else "questions",
        X=X[kept],
        labels=labels[kept],
        weights=w[kept],
        classes=len(model["classes"]),
        depth=int(asked["depth"]),
        penalty=penalty * int(w.sum()),
        min_leaf=int(asked.get("min_leaf") or 1),
        max_leaves=int(asked["max_leaves"]) if asked.get("max_leaves") else None,
        allowed=_allowed(model, column_of),
        apart=_apart(model, column_of) if method in QUESTIONS else None,
        digest=digest(columns, labels, w),
    )


def digest(columns: Sequence[np.ndarray], labels: np.ndarray, weights: np.ndarray) -> str:
    """SHA-256 of the columns (float64), the class numbers (int32) and the weights (int64), all little-endian."""
    sha = hashlib.sha256()
    for values in columns:
        sha.update((values + 0.0).astype("<f8").tobytes())
    sha.update(labels.astype("<i4").tobytes())
    sha.update(weights.astype("<i8").tobytes())
    return sha.hexdigest()


def balanced(labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The smallest weights in the proportion of `weights` within a class that add up to the same in each class."""
    sizes = [int(weights[labels == k].sum()) for k in range(int(labels.max()) + 1)]
    whole = math.lcm(*(size for size in sizes if size))
    factors = np.array([whole // size if size else 0 for size in sizes], np.int64)
    weighted = weights * factors[labels]
    return weighted // np.gcd.reduce(weighted[weighted > 0])


def _items(text: object) -> list[str]:
    return [item.strip() for item in str(text or "").split(";") if item.strip()]


def _allowed(model: dict[str, Any], column_of: list[int]) -> np.ndarray:
    banned = set(_items(model["parameters"].get("forbidden")))
    return np.array([model["columns"][j]["name"] not in banned for j in column_of], bool)


def _apart(model: dict[str, Any], column_of: list[int]) -> np.ndarray | None:
    names = [c["name"] for c in model["columns"]]
    columns = np.array(column_of, np.int64)
    apart = np.zeros((len(columns), len(columns)), bool)
    for item in _items(model["parameters"].get("forbidden_pairs")):
        first, second = (columns == names.index(name.strip()) for name in item.split("+"))
        apart |= np.outer(first, second) | np.outer(second, first)
    return apart if apart.any() else None


# -- questions ---------------------------------------------------------------------------------------------------------


def _levels(values: np.ndarray) -> list[np.ndarray]:
    """One yes/no column a category; of two categories the second alone, of one none."""
    present = np.unique(values)
    kept = present[1:] if len(present) == 2 else present if len(present) > 2 else present[:0]
    return [values == level for level in kept]


def _matrix(columns: Sequence[dict], values: Sequence[np.ndarray]) -> tuple[np.ndarray, list[int]]:
    """Numbers as they are, categories as zero and one; columns of one value are left out."""
    made: list[np.ndarray] = []
    column_of: list[int] = []
    for j, (column, own) in enumerate(zip(columns, values, strict=True)):
        parts = _levels(own) if column["kind"] == "categorical" else [own] if len(np.unique(own)) > 1 else []
        made += [part.astype(np.float64) for part in parts]
        column_of += [j] * len(parts)
    return np.array(made, np.float64).reshape(len(made), len(values[0])).T, column_of


def _answers(
    columns: Sequence[dict], values: Sequence[np.ndarray], weights: np.ndarray, scheme: str, bins: int
) -> tuple[np.ndarray, list[int]]:
    """The answers to the questions of the encoding, bool (n, m), and the column of each."""
    made: list[np.ndarray] = []
    column_of: list[int] = []
    for j, (column, own) in enumerate(zip(columns, values, strict=True)):
        if column["kind"] == "categorical":
            parts = _levels(own)
        else:
            parts = _numeric(own, weights, scheme, bins)
        made += parts
        column_of += [j] * len(parts)
    return np.array(made, bool).reshape(len(made), len(weights)).T, column_of


def _numeric(own: np.ndarray, weights: np.ndarray, scheme: str, bins: int) -> list[np.ndarray]:
    """The questions of a column of numbers."""
    distinct = np.unique(own)
    if len(distinct) < 2:
        return []
    if np.isin(distinct, (0.0, 1.0)).all():
        return [own == 1]
    if scheme == "all-thresholds":
        return [own > value for value in np.unique(own[weights > 0])[:-1]]
    spread = own if (weights == 1).all() else np.repeat(own, weights)
    if scheme == "quantile-buckets":
        edges = np.unique(np.quantile(spread, np.arange(bins + 1) / bins))
        if len(edges) < 2:
            return []
        ends = [-math.inf, *edges[1:-1].tolist(), math.inf]
        return [(own > low) & (own <= high) for low, high in itertools.pairwise(ends)]
    if scheme != "quantile-thresholds":
        raise NoProof(f"a column of numbers cannot be asked with the encoding '{scheme}'")
    ordered, cuts = np.sort(spread), []
    for r in range(1, bins):
        place, rest = divmod((len(ordered) - 1) * r, bins)
        cuts.append(ordered[place] if rest == 0 else (ordered[place] + ordered[place + 1]) / 2)
    return [own > cut + 1e-8 for cut in dict.fromkeys(cuts)]
