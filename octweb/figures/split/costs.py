"""What every threshold of a question would do to the rows of its node, while the rest of the tree stays as it is."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trainer.dtypes import CodeArray, FloatArray
from trainer.tree.nodes import Tree
from trainer.tree.numbers import column_number, shortest_between
from trainer.tree.splits import goes_left


@dataclass(frozen=True, kw_only=True)
class CutCosts:
    """The cuts of a column that part the rows of a node, ascending, (m,) each; what is said of a cut holds for every threshold from `low` up to `high`, without `high`."""

    column: str
    low: FloatArray  # the largest value that answers yes
    high: FloatArray  # the smallest value that answers no
    yes: np.ndarray  # rows that answer yes, int64
    wrong: np.ndarray  # rows that are wrong below the node, int64
    own: float  # the threshold of the tree
    nobody: int  # rows wrong where every row with a value answers no
    everybody: int  # rows wrong where every row with a value answers yes
    known: int  # rows that answer yes where every row with a value does
    rows: int
    least: int = 0  # rows that answer yes where no row with a value does: those with an empty cell on that side

    def cut(self, place: int) -> float:
        """The shortest decimal that parts the rows at a place; at the tree's own place its threshold."""
        low = float(self.low[place])
        high = float(self.high[place])
        return self.own if low <= self.own < high else shortest_between(low, high)

    def written(self, place: int) -> str:
        """The cut at a place as the questions of its column are written."""
        return column_number(self.column, self.cut(place))

    @property
    def cuts(self) -> list[float]:
        """All cuts; of many values after `thinned`, since a decimal takes its time."""
        return [self.cut(i) for i in range(len(self.low))]

    @property
    def at(self) -> int:
        """The place of the tree's own threshold; −1 where no row answers yes to it, m where every row with a value does."""
        if self.own >= self.high[-1]:
            return len(self.low)
        return int(np.searchsorted(self.low, self.own, side="right")) - 1

    @property
    def now(self) -> int:
        """Rows that are wrong with the tree's own threshold."""
        at = self.at
        return self.nobody if at < 0 else self.everybody if at == len(self.low) else int(self.wrong[at])

    @property
    def best(self) -> int:
        """The place of the fewest wrong rows: the tree's own if it has as few as any, else the first."""
        at = self.at
        fewest = int(self.wrong.min())
        return at if 0 <= at < len(self.low) and self.wrong[at] == fewest else int(self.wrong.argmin())

    def thinned(self, most: int) -> CutCosts:
        """At most about `most` cuts: the one with the fewest wrong rows in each piece, and the tree's own."""
        if len(self.low) <= most:
            return self
        pieces = np.array_split(np.arange(len(self.low)), most)
        stops = {int(piece[self.wrong[piece].argmin()]) for piece in pieces} | {self.best}
        stops |= {self.at} & set(range(len(self.low)))
        places = np.array(sorted(stops))
        names = ("low", "high", "yes", "wrong")
        return replace(self, **{name: getattr(self, name)[places] for name in names})


def threshold_costs(tree: Tree, node: int, X: FloatArray, codes: CodeArray) -> CutCosts | None:
    """The costs for a question "column ≤ c" of the rows X (n, columns) that reach it, of classes `codes` (n,).

    None for other questions, and where the rows have a single value.
    """
    v = tree.nodes[node]
    if v.split is None or v.split.cut is None:
        return None
    feature, own = v.split.cut
    order = np.argsort(X[:, feature], kind="stable")  # empty cells come last
    x = X[order, feature]
    empty_yes = bool(v.split.empty_goes_left)
    known = int(np.isfinite(X[:, feature]).sum())
    ends = np.flatnonzero(x[1:known] > x[: known - 1])
    if not len(ends):
        return None
    of_yes, of_no = (np.cumsum(_wrong(tree, side, X, codes)[order]) for side in (v.left, v.right))
    of_empty = of_yes if empty_yes else of_no
    wrong_empty = int(of_empty[-1] - of_empty[known - 1])
    least = len(x) - known if empty_yes else 0
    return CutCosts(
        column=tree.schema[feature].name,
        low=x[ends],
        high=x[ends + 1],
        yes=(ends + 1 + least).astype(np.int64),
        wrong=of_yes[ends] + of_no[known - 1] - of_no[ends] + wrong_empty,
        own=own,
        nobody=int(of_no[known - 1]) + wrong_empty,
        everybody=int(of_yes[known - 1]) + wrong_empty,
        known=known + least,
        least=least,
        rows=len(x),
    )


def _wrong(tree: Tree, node: int, X: FloatArray, codes: CodeArray) -> np.ndarray:
    """For each row 1 if the part of the tree below `node` gives it another class than its own, int64 (n,); whether or not it comes there."""
    labels = np.zeros(len(X), np.int32)
    waiting = [(node, np.arange(len(X)))]
    while waiting:
        at, rows = waiting.pop()
        v = tree.nodes[at]
        if v.split is None:
            labels[rows] = v.label
            continue
        left = goes_left(v.split, X[rows])
        waiting += [(v.left, rows[left]), (v.right, rows[~left])]
    return (labels != codes).astype(np.int64)
