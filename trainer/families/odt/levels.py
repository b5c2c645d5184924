"""Define topology levels and values of row sets for the search."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.families.odt.topology import Shape
from trainer.tree.nodes import Draft


class LevelLimitReached(Exception):
    """The search reached a limit."""


@dataclass(frozen=True, eq=False)
class TopologyLevel:
    """A shape of the topology with its number in caches; equal shapes are one object."""

    key: int
    shape: Shape | None
    below: tuple[TopologyLevel, ...] = ()

    @property
    def left(self) -> TopologyLevel:
        return self.below[0]

    @property
    def right(self) -> TopologyLevel:
        return self.below[1]

    @property
    def is_leaf(self) -> bool:
        return self.shape is None

    @property
    def shallow(self) -> bool:
        """True if the children of the node have at most two levels."""
        return all(child.shape is None or child.shape.depth <= 2 for child in self.below)

    @property
    def is_two(self) -> bool:
        """True if both children of the node are above two leaves."""
        return all(child.shape is not None and child.shape.is_last for child in self.below)

    @property
    def is_three(self) -> bool:
        """True for a node of three levels with sides of one or two levels, if all last tests are above two leaves."""
        return (
            self.shape is not None
            and self.shape.depth == 3
            and all(child.shape is not None and (child.shape.is_last or child.is_two) for child in self.below)
        )


@dataclass(frozen=True)
class RowSetValue:
    """Value of a row set: V itself if `exact`, else an upper bound.

    `group` and `mask` are the test at the root; group -1 or -2 is a trivial test that sends all rows left or right.
    """

    value: int
    exact: bool
    group: int = -1
    mask: int = 0
    draft: Draft | None = None
