"""Side constraints as named objects that every flow or Benders formulation accepts.

Legend     b[v,f]=1 v branches on f;  p[v]=1 v is a leaf;  w[v,k] v predicts k;  s[i] score of row i (1: classified correctly)

Each object writes rows into a model and can judge a finished tree. `labels` says that it is about predictions, so that labels
are chosen by the model and not by majority; `exact_scores` that it needs s[i] = 1 whenever row i is right, not only s[i] ≤ 1.
A constraint switches off what it makes invalid: path-bound cuts (24)-(26) give way to (24').
A solver sees a row to a millionth of its size only. Where that is too coarse the rows of a constraint are wider by a hair (`rough`),
and trees that `holds` does not admit are cut off one by one when they are met.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from trainer.constraints import Constraints
from trainer.dtypes import FloatArray
from trainer.families.mip.instance import ArrayTree, Instance
from trainer.milo import Expression, Model, Variables, total, weighted

FINEST = 20_000  # parts of one that a row can tell apart
UNIT, HAIR = 1000.0, 1e-5  # of rows that cannot: coefficients add up to this, and the limit is wider by so much


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """What constraints refer to: the branchings of a formulation, and its leaves and labels as variables or expressions."""

    instance: Instance
    model: Model
    b: Variables
    p: Mapping[int, Expression]
    w: Mapping[tuple[int, int], Expression]
    score: Callable[[int], Expression]
    own: dict[str, Variables] = field(default_factory=dict)


class SideConstraint(ABC):
    """A restriction of the set of trees."""

    labels: ClassVar[bool] = False
    exact_scores: ClassVar[bool] = False

    @abstractmethod
    def add(self, view: View) -> None:
        """Write the rows of the constraint."""

    def fill(self, view: View, values: FloatArray, tree: ArrayTree) -> None:  # noqa: B027
        """Give values to variables of the constraint's own, for a tree that satisfies it; most have none."""

    @abstractmethod
    def holds(self, instance: Instance, tree: ArrayTree) -> bool:
        """True if the tree satisfies the constraint, from exact counts."""

    def rough(self, instance: Instance) -> bool:
        """True if the rows admit some trees that the constraint does not."""
        return False

    def carried(self, kept: Constraints, instance: Instance) -> Constraints:
        """`kept`, with what the exact search can keep of this constraint; most it cannot keep."""
        return kept


def right(instance: Instance, tree: ArrayTree) -> np.ndarray:
    """Which rows a tree classifies correctly."""
    return tree.label[instance.route(tree.feature)] == instance.y


def scores(view: View, rows: np.ndarray) -> Expression:
    """Weight of the correct rows among `rows`."""
    result = Expression()
    for i in rows.tolist():
        result.add(view.score(i), float(view.instance.weight[i]))
    return result


@dataclass(frozen=True, kw_only=True)
class MaxLeaves(SideConstraint):
    """At most `limit` leaves."""

    limit: int

    def add(self, view: View) -> None:
        """sum p[v] ≤ limit."""
        view.model.add(total(view.p.values()) <= self.limit, "max-leaves")

    def holds(self, instance: Instance, tree: ArrayTree) -> bool:
        """Counts leaves."""
        return len(tree.leaves) <= self.limit

    def carried(self, kept: Constraints, instance: Instance) -> Constraints:
        """The lowest of the limits."""
        return replace(kept, max_leaves=min(self.limit, self.limit if kept.max_leaves is None else kept.max_leaves))


@dataclass(frozen=True, kw_only=True)
class ClassRecall(SideConstraint):
    """At least `share` of the rows of class `label` are classified correctly: sensitivity, or specificity for the other class."""

    labels: ClassVar[bool] = True
    label: int
    share: Fraction

    def add(self, view: View) -> None:
        """sum of the scores of the class ≥ share of its weight; scores may be lower than earned, which only tightens."""
        rows = np.flatnonzero(view.instance.y == self.label)
        needed = self.share * int(view.instance.weight[rows].sum())
        # correct rows are counted, so the right-hand side may be rounded up
        view.model.add(scores(view, rows) >= float(-(-needed.numerator // needed.denominator)) - 1e-7, "class-recall")

    def holds(self, instance: Instance, tree: ArrayTree) -> bool:
        """Counts the correct rows of the class."""
        own = instance.y == self.label
        return int(instance.weight[own & right(instance, tree)].sum()) >= self.share * int(instance.weight[own].sum())

    def carried(self, kept: Constraints, instance: Instance) -> Constraints:
        """One more share of a class."""
        return replace(kept, recalls=(*kept.recalls, (self.label, self.share)))


@dataclass(frozen=True, kw_only=True)
class EqualRates(SideConstraint):
    """The rate at which groups are predicted `label` differs by at most `delta` between any two groups.

    `only_label` compares among the rows of that class (equal opportunity), else among all rows (statistical parity, two classes).
    """

    labels: ClassVar[bool] = True
    exact_scores: ClassVar[bool] = True
    label: int
    delta: Fraction
    only_label: bool = False

    def groups(self, instance: Instance) -> list[np.ndarray]:
        """The rows of each group that are compared."""
        counted = instance.y == self.label if self.only_label else np.ones(instance.n, bool)
        found = [np.flatnonzero(counted & (instance.group == g)) for g in np.unique(instance.group)]
        return [rows for rows in found if len(rows)]

    def rates(self, view: View) -> list[Expression]:
        """The rate of each group."""
        inst = view.instance
        found = []
        for rows in self.groups(inst):
            own, other = rows[inst.y[rows] == self.label], rows[inst.y[rows] != self.label]
            predicted = scores(view, own) + int(inst.weight[other].sum()) - scores(view, other)
            found.append(predicted / int(inst.weight[rows].sum()))
        return found

    def add(self, view: View) -> None:
        """rate(g) - rate(h) ≤ delta for all ordered pairs of groups.

        Differences are whole multiples of 1 / lcm of the sizes: the row counts those multiples, its limit halfway to the next one;
        or, where they are too many, the row is wider by a hair.
        """
        sizes = self._sizes(view.instance)
        for (g, m), (h, n) in itertools.permutations(zip(self.rates(view), sizes, strict=True), 2):
            parts = math.lcm(m, n)
            if parts <= FINEST:
                view.model.add(parts * (g - h) <= math.floor(self.delta * parts) + 0.5, "equal-rates")
            else:
                view.model.add(UNIT * (g - h) <= UNIT * (float(self.delta) + HAIR), "equal-rates")

    def _sizes(self, instance: Instance) -> list[int]:
        return [int(instance.weight[rows].sum()) for rows in self.groups(instance)]

    def rough(self, instance: Instance) -> bool:
        """True if the differences of rates are too many to be counted in a row."""
        return any(math.lcm(m, n) > FINEST for m, n in itertools.combinations(self._sizes(instance), 2))

    def difference(self, instance: Instance, tree: ArrayTree) -> Fraction:
        """The largest difference of two rates of a tree."""
        predicted = tree.label[instance.route(tree.feature)] == self.label
        rates = [
            Fraction(int(instance.weight[rows[predicted[rows]]].sum()), int(instance.weight[rows].sum()))
            for rows in self.groups(instance)
        ]
        return max(rates) - min(rates) if rates else Fraction(0)

    def holds(self, instance: Instance, tree: ArrayTree) -> bool:
        """Counts the predictions of each group."""
        return self.difference(instance, tree) <= self.delta


@dataclass(frozen=True, kw_only=True)
class ForbiddenPair(SideConstraint):
    """No path asks a feature of `first` and a feature of `second`."""

    first: tuple[int, ...]
    second: tuple[int, ...]

    def add(self, view: View) -> None:
        """b[u, first] + b[v, second] ≤ 1 for u above v, and the other way round."""
        tree = view.instance.tree
        for v in tree.branch_nodes:
            for u in tree.ancestors(v):
                for above, below in ((self.first, self.second), (self.second, self.first)):
                    columns = [*view.b.columns[u - 1, list(above)], *view.b.columns[v - 1, list(below)]]
                    view.model.add(weighted(columns, np.ones(len(columns))) <= 1, "forbidden-pair")

    def holds(self, instance: Instance, tree: ArrayTree) -> bool:
        """Looks at every pair of nodes on a path."""
        for v in instance.tree.branch_nodes:
            for u in instance.tree.ancestors(v):
                pair = int(tree.feature[u]), int(tree.feature[v])
                if any(
                    pair[0] in a and pair[1] in b for a, b in ((self.first, self.second), (self.second, self.first))
                ):
                    return False
        return True

    def carried(self, kept: Constraints, instance: Instance) -> Constraints:
        """The questions on both columns are in conflict."""
        if not (len(self.first) and len(self.second)):
            return kept
        size = len(instance.F)
        conflict = np.zeros((size, size), np.uint8) if kept.conflict is None else kept.conflict.copy()
        conflict[np.ix_(self.first, self.second)] = conflict[np.ix_(self.second, self.first)] = 1
        return replace(kept, conflict=conflict)


@dataclass(frozen=True, kw_only=True)
class Monotone(SideConstraint):
    """Below a branching on one of `features` no leaf on the side of smaller values predicts a higher class than one opposite.

    Classes are ordered by their number; `decreasing` turns the order round.
    """

    labels: ClassVar[bool] = True
    features: tuple[int, ...]
    decreasing: bool = False

    def add(self, view: View) -> None:
        """w[u, ≥k] + w[t, <k] + b[v, features] ≤ 2 for u on the low side, t on the high side of v, and every class k > 0."""
        inst = view.instance
        for v in inst.tree.branch_nodes:
            asked = weighted(view.b.columns[v - 1, list(self.features)], np.ones(len(self.features)))
            low, high = (2 * v + 1, 2 * v) if self.decreasing else (2 * v, 2 * v + 1)
            for u, t in itertools.product(inst.tree.below(low), inst.tree.below(high)):
                for k in range(1, inst.classes):
                    upper = total(view.w[u, h] for h in range(k, inst.classes))
                    lower = total(view.w[t, h] for h in range(k))
                    view.model.add(upper + lower + asked <= 2, "monotone")

    def holds(self, instance: Instance, tree: ArrayTree) -> bool:
        """Compares the leaves on the two sides of every branching on a feature of the constraint."""
        leaves = set(tree.leaves.tolist())
        for v in instance.tree.branch_nodes:
            if int(tree.feature[v]) in self.features:
                low, high = (2 * v + 1, 2 * v) if self.decreasing else (2 * v, 2 * v + 1)
                below = [int(tree.label[u]) for u in instance.tree.below(low) if u in leaves]
                above = [int(tree.label[u]) for u in instance.tree.below(high) if u in leaves]
                if max(below) > min(above):
                    return False
        return True


@dataclass(frozen=True, kw_only=True)
class MaxColumns(SideConstraint):
    """The tree asks at most `limit` different columns; `columns` maps every feature to its column."""

    limit: int
    columns: tuple[int, ...]

    def used(self, view: View) -> Expression:
        """Number of columns asked: used[c] ≥ b[v,f] for the features of c."""
        groups = sorted(set(self.columns))
        used = view.own["used"] = view.model.binary("used", groups)
        for c in groups:
            features = [f for f, column in enumerate(self.columns) if column == c]
            for v in view.instance.tree.branch_nodes:
                asked = weighted(view.b.columns[v - 1, features], np.ones(len(features)))
                view.model.add(asked <= used[c], "max-columns")
        return total(used.values())

    def add(self, view: View) -> None:
        """sum used ≤ limit."""
        view.model.add(self.used(view) <= self.limit, "max-columns")

    def fill(self, view: View, values: FloatArray, tree: ArrayTree) -> None:
        """used[c] = 1 where the tree asks a feature of c."""
        for f in tree.feature.tolist():
            if f >= 0:
                values[view.own["used"].column(self.columns[f])] = 1.0

    def holds(self, instance: Instance, tree: ArrayTree) -> bool:
        """Counts columns."""
        return self.count(tree) <= self.limit

    def count(self, tree: ArrayTree) -> int:
        """Number of columns that a tree asks."""
        return len({self.columns[f] for f in tree.feature.tolist() if f >= 0})

    def carried(self, kept: Constraints, instance: Instance) -> Constraints:
        """The first limit; the search keeps one."""
        if kept.max_columns is not None:
            return kept
        return replace(kept, max_columns=self.limit, columns=np.array(self.columns, np.int64))
