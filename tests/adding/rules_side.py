"""At most so many leaves predict the last class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from trainer.families.mip.instance import ArrayTree, Instance
from trainer.families.mip.side.base import NamedIndices, SideConstraint, View
from trainer.methods.base import Settings
from trainer.milo import total


@dataclass(frozen=True, kw_only=True)
class MaxRules(SideConstraint):
    """At most `limit` leaves predict class `label`."""

    labels: ClassVar[bool] = True
    label: int
    limit: int

    def add(self, view: View) -> None:
        """sum w[v, label] ≤ limit."""
        own = [predicted for (_, k), predicted in view.w.items() if k == self.label]
        view.model.add(total(own) <= self.limit, "max-rules")

    def holds(self, instance: Instance, tree: ArrayTree) -> bool:
        """Counts the leaves of the class."""
        return int((tree.label[tree.leaves] == self.label).sum()) <= self.limit


def max_rules(at: NamedIndices, settings: Settings) -> Iterator[SideConstraint]:
    """Nothing to keep where no training row has the last class."""
    last = len(at.problem.names.classes) - 1
    if settings["max_rules"] is not None and last in at.instance.labels:
        yield MaxRules(label=at.instance.classes - 1, limit=settings["max_rules"])
