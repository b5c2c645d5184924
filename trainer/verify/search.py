"""Plain searches without any trick: the best tree of a small space, which proves a bound or refutes it, or of a part of a large one.

A tree that is found in a part of the space refutes a bound that lies below it; nothing is proved by it.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.verify.findings import asked, exact, items
from trainer.verify.proof_counting import FAR, Counting
from trainer.verify.proof_space import NoProof, read_space
from trainer.verify.proof_within import TooLarge, Within
from trainer.verify.questions import cuts_of_bins, questions
from trainer.verify.recount import penalty
from trainer.verify.rows import Rows

WORK = 4e9  # multiplications that a search may take
PART = 2e8  # and one of a part of the questions
MOST_PARTS = 20_000  # subproblems, and sets of columns, of one within restrictions
MOST_SETS = 40
VISITS = 20_000  # subproblems of a search with restrictions
MOST = 400  # questions beyond which no whole search is tried
OVER_QUESTIONS = {"exact", "flowoct", "bendoct", "bendoct-accelerated", "oct", "binoct"}
SAME_OBJECTIVE = OVER_QUESTIONS - {"binoct"}
OBLIQUE = {"cut-h", "cutw-h", "s-oct", "oct-h"}
RESTRICTIONS = ("max_leaves", "max_columns", "recall", "fairness", "forbidden_pairs", "monotone", "forbidden")


@dataclass(frozen=True)
class Found:
    """The best objective among the trees that were searched; `whole`: they are all of the space."""

    value: Fraction
    whole: bool


def best(model: dict[str, Any], rows: Rows) -> tuple[Found | None, str]:
    """What a plain search finds, or None and the reason why there was none."""
    if model["certificate"].get("goal"):
        return None, "something other than accuracy was maximised"
    if asked(model, "fairness") or asked(model, "balanced"):
        return (
            None,
            f"trees with '{'balanced' if asked(model, 'balanced') else 'fairness'}' are not part of the plain search",
        )
    found = _space(model, rows)
    if found is None:
        return None, f"the trees of '{model['method']}' are not those of the plain search"
    X, columns, depth, whole = found
    extra = exact(model["certificate"].get("coefficient_penalty") or 0) * int(rows.weights.sum())
    space = _Space(model, rows, X, columns, extra)
    cost, all_of_it = space.restricted(depth) if space.is_restricted else space.free(depth)
    n = int(rows.weights.sum())
    if cost is None:
        return None, "a part of the space that can be searched has no tree within the restrictions"
    return Found((n + extra - cost) / n, whole and all_of_it), "it is too large for a plain search"


def frontier(model: dict[str, Any], rows: Rows) -> list[int] | None:
    """For 1, 2, … leaves the most rows that a tree of at most so many has right; None if the space is not searched whole."""
    found = _space(model, rows)
    if found is None or not found[3] or asked(model, "fairness"):
        return None
    space = _Space(model, rows, *found[:2], Fraction(0))
    names = [c["name"] for c in model["columns"]]
    free, whole = space.usable(names, found[2])
    if not whole or asked(model, "max_columns") is not None:
        return None
    vectors = _Restricted(space, free, names).vectors(found[2], free.tolist())
    n, most = int(rows.weights.sum()), max(v[0] for v in vectors)
    return [n - min(v[1] for v in vectors if v[0] <= t) for t in range(1, most + 1)]


def restricted(model: dict[str, Any], rows: Rows) -> tuple[Fraction | None, str]:
    """The best objective of all trees that keep wishes and restrictions, or None and the reason why it was not searched."""
    try:
        space = read_space(model, rows)
        if space.kind != "questions":
            return None, "thresholds are not searched"
        unit, leaf = space.penalty.denominator, space.penalty.numerator
        counting = Counting(space, unit, leaf)
        search, cost = Within(counting, MOST_PARTS), FAR
        columns = sorted(set(space.column_of.tolist()))
        few = space.max_columns
        sets = [None] if few is None else list(itertools.combinations(columns, min(few, len(columns))))
        if float(space.X.shape[1]) ** (min(space.depth, counting.deepest) - 1) * len(space.X) > PART or len(sets) > MOST_SETS:
            raise TooLarge
        for some in sets:
            cover = cost, search.cover(counting.root(some), min(space.depth, counting.deepest), cost)
            cost = min(cost, search.admitted(cover))
    except (NoProof, TooLarge) as reason:
        return None, str(reason) or "it is too large for a plain search"
    n = int(rows.weights.sum())
    return (Fraction(-1), "no tree is within the restrictions") if cost >= FAR else ((n - Fraction(cost, unit)) / n, "")


def _space(model: dict[str, Any], rows: Rows) -> tuple[np.ndarray, np.ndarray, int, bool] | None:
    """Answers, their columns, the depth, and whether these are all questions of the space."""
    method, depth = model["method"], int(model["parameters"]["depth"])
    if method in OVER_QUESTIONS:
        found = questions(model, rows)
        return found.matrix, found.columns, depth, True
    if method == "exact-numeric":
        small = sum(len(np.unique(values)) for values in rows.columns) <= MOST
        found = questions(model, rows, "all-thresholds" if small else "quantile-thresholds", 10)
        return found.matrix, found.columns, depth, small
    if method == "odt":
        return _subsets(model, rows, depth)
    if method in OBLIQUE:
        # nearer values than a plane must part need not be told apart
        far = method == "oct-h" or (method == "s-oct" and asked(model, "big_m") is not None)
        for values in rows.columns:
            steps = np.diff(np.unique(values))
            if len(steps) and not steps.min() > (0.0051 if far else 1e-5) * np.ptp(values):
                return None
        found = questions(model, rows, "quantile-thresholds", 5)
        return found.matrix, found.columns, depth, False
    return None


def _subsets(model: dict[str, Any], rows: Rows, depth: int) -> tuple[np.ndarray, np.ndarray, int, bool] | None:
    """The questions of ODT: subsets of categories, thresholds between bins; within a topology the one question at its root."""
    if asked(model, "select") or asked(model, "negative_weight") not in (None, "1", 1):
        return None
    answers: list[np.ndarray] = []
    places: list[int] = []
    whole = not asked(model, "topology")
    card, bins = int(asked(model, "max_card") or 0), int(model["parameters"]["bins"])
    for j, (column, values) in enumerate(zip(model["columns"], rows.columns, strict=True)):
        levels = np.unique(values)
        if column["kind"] == "categorical":
            every = len(column["categories"])
            for size in range(1, len(levels)):
                if math.comb(len(levels), size) > MOST:
                    whole = False
                elif not card or min(size, every - size) <= card:
                    answers += [np.isin(values, some) for some in itertools.combinations(levels, size)]
        else:
            answers += [values > cut for cut in cuts_of_bins(values, bins)]
        places += [j] * (len(answers) - len(places))
    if len(answers) > 5 * MOST:
        return None
    X = np.array(answers, dtype=bool).reshape(len(answers), len(rows)).T
    return X, np.array(places, np.int64), depth if not asked(model, "topology") else 1, whole


@dataclass(frozen=True)
class _Space:
    """The yes/no questions `X` (n, m), and what a tree over them may be."""

    model: dict[str, Any]
    rows: Rows
    X: np.ndarray
    columns: np.ndarray
    extra: Fraction  # what a question costs beside its leaf

    @property
    def is_restricted(self) -> bool:
        return any(asked(self.model, name) is not None for name in RESTRICTIONS)

    @property
    def price(self) -> Fraction:
        return penalty(self.model) * int(self.rows.weights.sum()) + self.extra

    @property
    def min_leaf(self) -> int:
        return max(1, int(asked(self.model, "min_leaf") or 1))

    def counts(self) -> np.ndarray:
        """The weight of each row by class, float64 (n, classes); exact below 2^53."""
        Y = np.zeros((len(self.rows), len(self.model["classes"])))
        Y[np.arange(len(Y)), self.rows.labels] = self.rows.weights
        return Y

    def chosen(self, most: int) -> np.ndarray:
        """The questions that leave the fewest errors by themselves."""
        Y = self.counts()
        ones = self.X.T.astype(float) @ Y
        right = ones.max(axis=1) + (Y.sum(axis=0) - ones).max(axis=1)
        return np.argsort(-right, kind="stable")[:most]

    def usable(self, names: list[str], depth: int) -> tuple[np.ndarray, bool]:
        """The questions on columns that are not forbidden, and whether a search with restrictions can try them all."""
        banned = [names.index(name) for name in items(asked(self.model, "forbidden"))]
        free = np.flatnonzero(~np.isin(self.columns, banned))
        return free, float(2 * len(free)) ** max(min(depth, len(free)) - 1, 0) * 2 <= VISITS

    def free(self, depth: int) -> tuple[Fraction, bool]:
        """The least cost, and whether all questions were tried at all depths."""
        n, m = self.X.shape
        depth = min(depth, m)
        each, own = n * len(self.model["classes"]), np.arange(m)
        whole = depth < 2 or float(m) ** depth * each <= WORK
        if not whole:
            depth = min(depth, 4)
            own = self.chosen(max(1, int((PART / each) ** (1 / depth))))
        X = self.X[:, own].astype(np.float64)
        return plain(X, self.counts(), depth, self.price, self.min_leaf), whole

    def restricted(self, depth: int) -> tuple[Fraction | None, bool]:
        """The same within the restrictions, by all vectors of leaves and errors; None if no tree keeps them."""
        names = [c["name"] for c in self.model["columns"]]
        free, whole = self.usable(names, depth)
        depth = min(depth, len(free))
        if not whole:
            depth = min(depth, 2)
            free = free[np.isin(free, self.chosen(60))]
        search = _Restricted(self, free, names)
        used = sorted(set(self.columns[free].tolist()))
        most = asked(self.model, "max_columns")
        groups = [tuple(used)] if most is None else list(itertools.combinations(used, min(int(most), len(used))))
        costs = [search.least(depth, frozenset(group)) for group in groups[:40]]
        return min((c for c in costs if c is not None), default=None), whole and len(groups) <= 40


class _Restricted:
    """All vectors (leaves, errors, errors of each class with a recall) that no other one beats, subproblem by subproblem."""

    def __init__(self, space: _Space, free: np.ndarray, names: list[str]) -> None:
        model = space.model
        self.space, self.free, self.Y = space, free.tolist(), space.counts()
        classes = model["classes"]
        shares = [text.rpartition(":") for text in items(asked(model, "recall"))]
        self.bounded = [(classes.index(name.strip()), exact(share)) for name, _, share in shares]
        self.rises: dict[int, bool] = {}
        for text in items(asked(model, "monotone")):
            name, _, way = text.rpartition(" ")
            self.rises[names.index(name.strip())] = way == "up"
        pairs = [[names.index(n.strip()) for n in text.split("+")] for text in items(asked(model, "forbidden_pairs"))]
        self.apart = {(a, b) for one, other in pairs for a, b in ((one, other), (other, one))}
        self.most = int(asked(model, "max_leaves") or 1 << 20)

    def least(self, depth: int, allowed: frozenset[int]) -> Fraction | None:
        """The least cost of an admitted tree that asks these columns."""
        own = [q for q in self.free if int(self.space.columns[q]) in allowed]
        whole, vectors = self.Y.sum(axis=0), self.vectors(depth, own)
        kept = [
            v for v in vectors
            if v[0] <= self.most and all(whole[k] - v[2 + i] >= share * int(whole[k]) for i, (k, share) in enumerate(self.bounded))
        ]  # fmt: skip
        return min((v[1] + self.space.price * v[0] for v in kept), default=None)

    def vectors(self, depth: int, own: list[int]) -> list[tuple[int, ...]]:
        """Those of all rows."""
        return self._vectors(np.arange(len(self.Y)), min(depth, len(own)), own, (0, self.Y.shape[1] - 1))

    def _vectors(self, at: np.ndarray, height: int, own: list[int], span: tuple[int, int]) -> list[tuple[int, ...]]:
        counts = self.Y[at].sum(axis=0)
        total = int(counts.sum())
        found = set()
        for k in range(span[0], span[1] + 1):
            bounded = (0 if c == k else int(counts[c]) for c, _ in self.bounded)
            found.add((1, total - int(counts[k]), *bounded))
        for q in own if height else ():
            yes = self.space.X[at, q]
            weight = int(self.Y[at[yes]].sum())
            if not self.space.min_leaf <= weight <= total - self.space.min_leaf:
                continue
            column = int(self.space.columns[q])
            below = [r for r in own if (column, int(self.space.columns[r])) not in self.apart]
            for low, high in self._spans(column, span):
                no_side = self._vectors(at[~yes], height - 1, below, low)
                yes_side = self._vectors(at[yes], height - 1, below, high)
                found |= {tuple(map(sum, zip(a, b, strict=True))) for a in no_side for b in yes_side}
            found = _unbeaten(found)
        return list(_unbeaten(found))

    def _spans(self, column: int, span: tuple[int, int]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """The classes that may be predicted if the answer is no, and if it is yes."""
        if column not in self.rises:
            return [(span, span)]
        lower = [(span[0], k) for k in range(span[0], span[1] + 1)]
        cuts = [(one, (one[1], span[1])) for one in lower]
        return cuts if self.rises[column] else [(b, a) for a, b in cuts]


def _unbeaten(vectors: set[tuple[int, ...]]) -> set[tuple[int, ...]]:
    kept: list[tuple[int, ...]] = []
    for v in sorted(vectors):
        if not any(all(a <= b for a, b in zip(w, v, strict=True)) for w in kept):
            kept.append(v)
    return set(kept)


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
