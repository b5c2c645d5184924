"""Keep two columns from being used on one path: the constraint `forbidden_pairs`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from trainer.constraints import Constraints, forbidden_pairs
from trainer.families.mip.instance import ArrayTree, Instance
from trainer.families.mip.side.base import NamedIndices, SideConstraint, View
from trainer.methods.base import Settings
from trainer.milo import weighted


@dataclass(frozen=True, kw_only=True)
class ForbiddenPair(SideConstraint):
    """No path uses a feature of `first` and a feature of `second`."""

    first: tuple[int, ...]
    second: tuple[int, ...]

    def add(self, view: View) -> None:
        """Add b[u, first] + b[v, second] ≤ 1 for u above v, and the same with both exchanged."""
        tree = view.instance.tree
        for v in tree.branch_nodes:
            for u in tree.ancestors(v):
                for above, below in ((self.first, self.second), (self.second, self.first)):
                    columns = [*view.b.columns[u - 1, list(above)], *view.b.columns[v - 1, list(below)]]
                    view.model.add(weighted(columns, np.ones(len(columns))) <= 1, "forbidden-pair")

    def holds(self, instance: Instance, tree: ArrayTree) -> bool:
        """Return whether no path uses features of both columns."""
        for v in instance.tree.branch_nodes:
            for u in instance.tree.ancestors(v):
                pair = int(tree.feature[u]), int(tree.feature[v])
                if any(
                    pair[0] in a and pair[1] in b for a, b in ((self.first, self.second), (self.second, self.first))
                ):
                    return False
        return True

    def add_to_exact(self, constraints: Constraints, instance: Instance) -> Constraints:
        """Add conflicts between the features of both columns."""
        if not (len(self.first) and len(self.second)):
            return constraints
        size = len(instance.F)
        conflict = np.zeros((size, size), np.uint8) if constraints.conflict is None else constraints.conflict.copy()
        conflict[np.ix_(self.first, self.second)] = conflict[np.ix_(self.second, self.first)] = 1
        return replace(constraints, conflict=conflict)


def pair_constraints(at: NamedIndices, settings: Settings) -> Iterator[SideConstraint]:
    for first, second in forbidden_pairs(settings, at.problem.names):
        yield ForbiddenPair(first=at.features(first), second=at.features(second))
