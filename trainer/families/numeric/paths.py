"""Search under rules about the columns of a path.

Rules are prices that a row pays once, and pairs that no path tests. Below a split, the price of its column is paid and
its partners are banned. So each set of tested columns has a search of its own. The bounds between thresholds hold
there, too: a unit of weight costs at most an error and the most expensive columns that a path can still test.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.families.numeric.intervals import NodeResult, NumericSearch


@dataclass(frozen=True, kw_only=True)
class PathRules:
    """Rules about the columns of a path.

    Parameters
    ----------
    columns : int array of shape (F,)
        The column of each feature.
    prices : mapping
        By column, the price of testing it for one unit of weight, in rows.
    partners : mapping
        By column, the columns that no path tests together with it.
    """

    columns: np.ndarray
    prices: Mapping[int, Fraction] = field(default_factory=dict)
    partners: Mapping[int, frozenset[int]] = field(default_factory=dict)

    def denominator(self, Q: int) -> int:
        """Return the factor of 1/Q of a row that makes all prices integers."""
        return math.lcm(*((price * Q).denominator for price in self.prices.values()))

    def charges(self, unit: int) -> np.ndarray:
        """Return the price of each feature in integer costs, int64 (F,); `unit` is the cost of an error."""
        return np.array([int(self.prices.get(int(j), Fraction(0)) * unit) for j in self.columns], np.int64)

    def matters(self, column: int) -> bool:
        """Return whether a test of the column changes anything below."""
        return bool(self.prices.get(column)) or bool(self.partners.get(column))


class PathSearch(NumericSearch):
    """The search below splits on the columns `tested`; `family` has the searches of all such sets."""

    def __init__(
        self,
        plain: NumericSearch,
        rules: PathRules,
        tested: frozenset[int] = frozenset(),
        family: dict[frozenset[int], PathSearch] | None = None,
    ) -> None:
        self.plain = plain
        self.rules = rules
        self.tested = tested
        self.family = {} if family is None else family
        self.family[tested] = self
        banned = frozenset().union(*(rules.partners.get(column, frozenset()) for column in tested))
        self.banned = np.isin(rules.columns, list(banned))
        # a constant rank leaves a banned feature without thresholds, so it is never tested
        rank = np.where(self.banned[:, None], np.int32(0), plain.rank) if self.banned.any() else plain.rank
        super().__init__(rank, plain.y, plain.weight, plain.classes, plain.costs, plain.flag, plain.stop)
        self.most_visits = 0  # proofs have no steps for these rules, so store no visits
        is_paid = np.isin(rules.columns, list(tested)) | self.banned
        self.tolls = np.where(is_paid, 0, rules.charges(self.unit))
        by_column = {int(j): int(price) for j, price in zip(rules.columns, self.tolls, strict=True)}
        self.dearest = sorted(by_column.values(), reverse=True)
        open_columns = set(by_column) - banned
        self.is_free = not self.tolls.any() and not any(
            rules.partners.get(j, set()) & open_columns for j in open_columns
        )

    def slope(self, f: int, height: int) -> int:
        return self.unit + sum(self.child_search(f).dearest[:height])

    def child_search(self, f: int) -> PathSearch:
        column = int(self.rules.columns[f])
        if self.is_free or column in self.tested or not self.rules.matters(column):
            return self
        tested = self.tested | {column}
        return self.family.get(tested) or PathSearch(self.plain, self.rules, tested, self.family)

    def count_nodes(self) -> int:
        return sum(search.nodes for search in self.family.values())

    def solve(self, order: np.ndarray, height: int, ub: int, first: np.ndarray | None = None) -> NodeResult:
        if self.is_free:
            return super().solve(order, height, ub, first)
        self.check()
        self.nodes += 1
        if height < 2:
            return self._solve_stump(order, height, ub)
        smaller = self.solve(order, height - 1, ub)
        best = smaller if smaller.exact else NodeResult(ub, None, False)
        if best.cost <= 2 * self.leaf:
            return best
        if height > 2:
            return self.search(order, height, best, 0)
        # the best tree without the rules costs no more, so its cost is a lower bound
        free = self._small(order, height, best.cost, first)
        if free.cost >= best.cost or self._keeps_rules(free.tree):
            return free if free.cost < best.cost else best
        return self.search(order, height, best, 0, first=free.first)

    def _keeps_rules(self, tree: Any) -> bool:
        """Return whether a tree pays for no column and tests no banned one."""
        if tree is None:
            return True
        if self.tolls[tree[0]] or self.banned[tree[0]]:
            return False
        below = self.child_search(tree[0])
        return below._keeps_rules(tree[2]) and below._keeps_rules(tree[3])
