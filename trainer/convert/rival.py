"""Search over all thresholds for a better tree with no more leaves.

The exact search maximises accuracy minus λ per leaf. Its optimum proves that every tree with at most L leaves
has at most n · (optimum + λ · L) correct rows. The search tries penalties λ until its best tree meets that
bound or no other penalty can improve either.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Any

from trainer.certificate import Evidence
from trainer.methods.capabilities import Role
from trainer.methods.monitor import Monitor
from trainer.registry import method_for
from trainer.table import Labels, Table
from trainer.training.run import TrainRequest, TrainResult, train
from trainer.tree.describe import rules_text
from trainer.tree.nodes import Tree

SEARCH = method_for(Role.ALL_THRESHOLDS)
DEEPEST = int(SEARCH.parameter("depth").maximum)  # type: ignore[union-attr,arg-type]
MOST_PRICES = 12
PRICE = Context(prec=12, rounding=ROUND_HALF_EVEN)


@dataclass(frozen=True, kw_only=True)
class Rival:
    """Result of the search for a better tree that is no larger than a given one.

    The given tree has `leaves`, `depth` and `correct` of `n` rows correct. No tree with at most these leaves
    and this depth has more than `bound` correct rows; None if nothing is proved. `best` is the largest number
    of correct rows found. `tree` is the better tree, or None. `columns` are the names of the columns that
    trees may use.
    """

    correct: int
    n: int
    leaves: int
    depth: int
    best: int
    bound: int | None
    tree: Tree | None
    seconds: float
    columns: tuple[str, ...] = ()

    @property
    def settled(self) -> bool:
        """Return True if the least number of mistakes is known, so that more time cannot change the result."""
        return self.bound is not None and self.bound <= self.best

    @property
    def verdict(self) -> str:
        """The verdict: "not optimal", "no better tree", or "open"."""
        if self.best > self.correct:
            return "not optimal"
        return "no better tree" if self.bound is not None and self.bound <= self.correct else "open"

    @property
    def words(self) -> str:
        """Return the verdict as a sentence."""
        size = f"at most {self.leaves} {_many(self.leaves, 'leaf', 'leaves')} and depth {self.depth}"
        if self.verdict == "not optimal":
            fewer = self.best - self.correct
            more = self.bound is None or self.bound > self.best
            tail = " There may be still better ones." if more else " No tree of that size has fewer (proved)."
            return f"Not optimal: a better tree with as many leaves exists: {fewer} fewer {_many(fewer, 'mistake', 'mistakes')}.{tail}"
        if self.verdict == "no better tree":
            return f"No better tree with {size} exists over all thresholds and single categories (proved)."
        if self.bound is None:
            return f"Open: no better tree with {size} was found, and nothing is proved: the search goes to depth {DEEPEST}."
        fewer = self.bound - self.correct
        return (
            f"Open: no better tree with {size} was found; one with at most {fewer} fewer "
            f"{_many(fewer, 'mistake', 'mistakes')} is not excluded."
        )

    def to_json(self) -> dict[str, Any]:
        """Return the record as a dictionary; mistakes are misclassified rows, `rules` is the better tree as text."""
        return {
            "verdict": self.verdict, "words": self.words, "n": self.n, "mistakes": self.n - self.correct,
            "best_mistakes": self.n - self.best, "least_mistakes": None if self.bound is None else self.n - self.bound,
            "leaves": self.leaves, "depth": self.depth, "columns": list(self.columns),
            "rules": "" if self.tree is None else rules_text(self.tree), "seconds": round(self.seconds, 3),
        }  # fmt: skip


def rival(
    tree: Tree,
    table: Table,
    labels: Labels,
    *,
    time_limit: float = 60.0,
    on_start: Callable[[Monitor], None] | None = None,
) -> Rival:
    """Search for a tree with at most the leaves and the depth of `tree` that classifies more rows of `table` correctly.

    Parameters
    ----------
    tree : Tree
        A tree over the columns of `table`.
    table, labels
        The rows and their classes.
    time_limit : float
        Limit of the search in seconds of wall time.
    on_start : callable, optional
        Receives the monitor of each training, so that the caller can cancel it.

    Returns
    -------
    Rival
        The better tree if one was found, and the proved bound.
    """
    start = time.monotonic()
    correct = int((tree.predict(table.matrix()) == labels.codes).sum())
    search = _Search(tree, table, labels, correct, start + time_limit, on_start)
    if tree.depth:
        search.run()
    else:
        # without questions, the best tree is a leaf with the most frequent class
        search.best = search.bound = int(labels.counts().max())
    return Rival(
        correct=correct,
        n=len(table),
        leaves=tree.n_leaves,
        depth=tree.depth,
        best=search.best,
        bound=None if search.bound is None else max(search.bound, search.best),
        tree=search.tree,
        seconds=time.monotonic() - start,
        columns=tuple(table.names),
    )


class _Search:
    """State of a search: the best tree of the size, and the lowest bound over all tried prices."""

    def __init__(
        self,
        tree: Tree,
        table: Table,
        labels: Labels,
        correct: int,
        end: float,
        on_start: Callable[[Monitor], None] | None,
    ) -> None:
        self.leaves = tree.n_leaves
        self.depth = min(tree.depth, DEEPEST)
        # whether the search covers the depth of the tree, so that its bounds hold there
        self.whole = tree.depth <= DEEPEST
        self.table = table
        self.labels = labels
        self.end = end
        self.on_start = on_start
        self.best = correct
        self.tree: Tree | None = None
        self.bound: int | None = None

    def run(self) -> None:
        """Try prices of a leaf, beginning with 0.

        Each next price gives equal objectives to a tree that is small enough and to one that is too large.
        """
        n = len(self.table)
        small = (1, int(self.labels.counts().max()))
        large = self._solve(Fraction(0))
        for _ in range(MOST_PRICES):
            if large is None or large[0] <= self.leaves or self._is_settled():
                return
            price = _price(Fraction(large[1] - small[1], n * (large[0] - small[0])))
            point = self._solve(price)
            if point is None or point in (small, large):
                return  # both points are neighbours on the convex hull of all trees, so no other price finds a new one
            if point[0] <= self.leaves:
                small = point
            else:
                large = point

    def _is_settled(self) -> bool:
        return self.bound is not None and self.bound <= self.best

    def _solve(self, price: Fraction) -> tuple[int, int] | None:
        """Return leaves and correct rows of the best tree at a price; None if the search did not prove it optimal."""
        left = self.end - time.monotonic()
        if left <= 0:
            return None
        result = self._train(price, left)
        certificate = result.certificate
        point = (result.tree.n_leaves, certificate.correct)
        if point[0] <= self.leaves and point[1] > self.best:
            self.best = point[1]
            self.tree = result.tree
        cost = next((e["bound"] for e in certificate.evidence if e["kind"] == Evidence.INTERVAL_PRUNING), None)
        if self.whole and cost is not None:
            n = len(self.table)
            most = math.floor(n - Fraction(cost) + n * price * self.leaves)
            self.bound = most if self.bound is None else min(self.bound, most)
        return point if certificate.proved_optimal else None

    def _train(self, price: Fraction, seconds: float) -> TrainResult:
        parameters = {"depth": self.depth, "leaf_penalty": str(_decimal(price)), "time_limit": seconds}
        request = TrainRequest(table=self.table, labels=self.labels, method=SEARCH.id, parameters=parameters)
        return train(request, on_start=self.on_start)


def _decimal(price: Fraction) -> Decimal:
    return PRICE.divide(Decimal(price.numerator), Decimal(price.denominator))


def _price(slope: Fraction) -> Fraction:
    """Round a price to the digits that are passed to the search, so that search and bound use the same number."""
    return Fraction(_decimal(slope))


def _many(count: int, one: str, more: str) -> str:
    return one if count == 1 else more
