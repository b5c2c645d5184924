"""Keep predicted classes ordered along a column: the constraint `monotone`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trainer.constraints import directions
from trainer.constraints.coupling import not_by_thresholds
from trainer.data.encoding import Test
from trainer.families.mip.instance import ArrayTree, Instance
from trainer.families.mip.side.base import NamedIndices, SideConstraint, View
from trainer.methods.base import Settings
from trainer.milo import total, weighted


@dataclass(frozen=True, kw_only=True)
class Monotone(SideConstraint):
    """Below a split on one of `features`, no leaf on the low side predicts a higher class than a leaf on the high side.

    Empty cells belong to the side that the split sends them to. Tests for empty cells compare no values. Classes are ordered by their
    number; `decreasing` reverses the order.
    """

    labels: ClassVar[bool] = True
    features: tuple[int, ...]
    decreasing: bool = False

    def add(self, view: View) -> None:
        """Add w[u, ≥k] + w[t, <k] + b[v, features] ≤ 2.

        For u on the low side and t on the high side of v, and every class k > 0.
        """
        inst = view.instance
        for v in inst.tree.branch_nodes:
            splits = weighted(view.b.columns[v - 1, list(self.features)], np.ones(len(self.features)))
            low, high = (2 * v + 1, 2 * v) if self.decreasing else (2 * v, 2 * v + 1)
            for u, t in itertools.product(inst.tree.below(low), inst.tree.below(high)):
                for k in range(1, inst.classes):
                    upper = total(view.w[u, h] for h in range(k, inst.classes))
                    lower = total(view.w[t, h] for h in range(k))
                    view.model.add(upper + lower + splits <= 2, "monotone")

    def holds(self, instance: Instance, tree: ArrayTree) -> bool:
        """Return whether the leaves on both sides of every split on `features` are in order."""
        leaves = set(tree.leaves.tolist())
        for v in instance.tree.branch_nodes:
            if int(tree.feature[v]) in self.features:
                low, high = (2 * v + 1, 2 * v) if self.decreasing else (2 * v, 2 * v + 1)
                below = [int(tree.label[u]) for u in instance.tree.below(low) if u in leaves]
                above = [int(tree.label[u]) for u in instance.tree.below(high) if u in leaves]
                if max(below) > min(above):
                    return False
        return True


def monotone_constraints(at: NamedIndices, settings: Settings) -> Iterator[SideConstraint]:
    for name, falls in directions(settings, at.problem.names):
        features = at.features(name)
        tests = {f: at.problem.binary.features[int(at.instance.features[f])].test for f in features}
        compared = tuple(f for f in features if tests[f] is not Test.EMPTY)
        if any(tests[f] is not Test.ABOVE for f in compared):
            raise not_by_thresholds(name)
        if compared:
            yield Monotone(features=compared, decreasing=falls)
