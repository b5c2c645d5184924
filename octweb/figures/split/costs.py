"""Count misclassified rows of a node for every threshold of its split."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trainer.dtypes import CodeArray, FloatArray
from trainer.tree.nodes import Tree
from trainer.tree.numbers import column_number, shortest_between
from trainer.tree.splits import goes_left


@dataclass(frozen=True, kw_only=True)
class CutCosts:
    """Candidate thresholds of a column at a node, ascending, with counts. Arrays have shape (m,).

    Entry i applies to every threshold t with low[i] ≤ t < high[i]. The rest of the tree is unchanged.
    """

    column: str
    low: FloatArray  # largest value that goes left
    high: FloatArray  # smallest value that goes right
    yes: np.ndarray  # int64 counts of the rows that go left
    wrong: np.ndarray  # int64 counts of the rows misclassified below the node
    own: float  # threshold of the tree
    nobody: int  # rows misclassified if all rows with a value go right
    everybody: int  # rows misclassified if all rows with a value go left
    known: int  # rows that go left if all rows with a value do
    rows: int
    # rows that go left if no row with a value does: the rows with an empty cell, if the split sends them left
    least: int = 0
    ranks: tuple[str, ...] = ()  # words of the ranks 1, 2, 3, if the column has ranks
    plain: bool = False  # whether thresholds have no sign between thousands, as years

    def cut(self, place: int) -> float:
        """Return the shortest decimal in the interval of entry `place`, or the tree's threshold if the interval contains it."""
        low = float(self.low[place])
        high = float(self.high[place])
        return self.own if low <= self.own < high else shortest_between(low, high)

    def written(self, place: int) -> str:
        """Return the threshold of entry `place` as text, formatted like splits on its column."""
        return self.text(self.cut(place))

    def text(self, threshold: float) -> str:
        """Return a threshold as text: the word of the highest rank below it, or the number."""
        place = int(threshold)
        return (
            self.ranks[place - 1]
            if 1 <= place <= len(self.ranks)
            else column_number(self.column, threshold, plain=self.plain)
        )

    @property
    def cuts(self) -> list[float]:
        """All thresholds. If there are many, call `thinned` first, because each shortest decimal takes time."""
        return [self.cut(i) for i in range(len(self.low))]

    @property
    def at(self) -> int:
        """Index of the tree's threshold: −1 if no row with a value goes left, m if all do."""
        if self.own >= self.high[-1]:
            return len(self.low)
        return int(np.searchsorted(self.low, self.own, side="right")) - 1

    @property
    def now(self) -> int:
        """Number of rows misclassified with the tree's threshold."""
        at = self.at
        if at < 0:
            return self.nobody
        return self.everybody if at == len(self.low) else int(self.wrong[at])

    @property
    def best(self) -> int:
        """Index with the fewest misclassified rows. The tree's threshold wins ties, otherwise the first index does."""
        at = self.at
        fewest = int(self.wrong.min())
        return at if 0 <= at < len(self.low) and self.wrong[at] == fewest else int(self.wrong.argmin())

    def thinned(self, most: int) -> CutCosts:
        """Return at most `most` + 2 entries: the best of each of `most` pieces, the overall best, and the tree's."""
        if len(self.low) <= most:
            return self
        pieces = np.array_split(np.arange(len(self.low)), most)
        stops = {int(piece[self.wrong[piece].argmin()]) for piece in pieces} | {self.best}
        stops |= {self.at} & set(range(len(self.low)))
        places = np.array(sorted(stops))
        names = ("low", "high", "yes", "wrong")
        return replace(self, **{name: getattr(self, name)[places] for name in names})


def threshold_costs(tree: Tree, node: int, X: FloatArray, codes: CodeArray) -> CutCosts | None:
    """Count misclassified rows for every threshold of the split "column ≤ c" at `node`.

    `X` (n, columns) are the rows that reach the node, and `codes` (n,) their class codes. Returns None for other
    splits, and if the rows have fewer than two distinct values.
    """
    v = tree.nodes[node]
    if v.split is None or v.split.cut is None:
        return None
    feature, own = v.split.cut
    order = np.argsort(X[:, feature], kind="stable")  # empty cells are NaN, which sort to the end
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
        ranks=tree.schema[feature].ranks,
        plain=tree.schema[feature].names_or_years,
    )


def _wrong(tree: Tree, node: int, X: FloatArray, codes: CodeArray) -> np.ndarray:
    """Return 1 for each row that the subtree at `node` misclassifies, otherwise 0, int64 (n,).

    Every row is evaluated, even if it would not reach the node.
    """
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
