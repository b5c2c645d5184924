"""A node that is being searched split by split."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trainer.families.exact.kernels import depth4 as dp_four
from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.kernels.bounds import SideBounds
from trainer.families.exact.kernels.first_split_bounds import FirstSplitBounds

NOTHING = np.zeros(0, np.int64)  # floors of which none is known


@dataclass(frozen=True)
class RootBounds:
    """What a search has learned of the questions at the root; costs in its integers."""

    features: np.ndarray
    lower: np.ndarray  # int64 (2, p)
    exact: np.ndarray  # uint8 (2, p)
    least: np.ndarray  # of `FirstSplitBounds`

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.lower.nbytes + self.least.nbytes

    def sides(self) -> dict[int, tuple[tuple[int, int], bool]]:
        """By question, lower bounds of the sides that answer no and yes, and whether they are the least costs."""
        exact = (self.exact[0] & self.exact[1]).astype(bool).tolist()
        bounds = zip(*self.lower.tolist(), strict=True)
        return dict(zip(self.features.tolist(), zip(bounds, exact, strict=True), strict=True))

    def floors(self, literal: int) -> np.ndarray:
        """What each first question costs at least at a side, by question of the data set; of length 0 where that is not known."""
        at = self._places.get(literal >> 1)
        return NOTHING if at is None or not len(self.least) else self.least[2 * at + (literal & 1)]

    @cached_property
    def _places(self) -> dict[int, int]:
        return {question: p for p, question in enumerate(self.features.tolist())}


@dataclass
class SearchFrame:
    """A node of height above two with what is known of both sides of each split."""

    node: dp_node.NodeView
    P: np.ndarray
    lower: np.ndarray  # int64 (2, p)
    exact: np.ndarray  # uint8 (2, p)
    leaf: int
    firsts: FirstSplitBounds  # without lines except for nodes of height four
    roots: np.ndarray  # int64 (2, p), ROOT of the sides that `kernels.four` has searched

    @property
    def compiled(self) -> dp_four.Depth4Frame:
        """The same as kernels take it."""
        return dp_four.Depth4Frame(self.node, self.P, SideBounds(self.lower, self.exact), self.firsts, self.roots)

    def bound(self) -> int:
        """Valid whatever was searched: a leaf, or a split with sides that cost no less than their bounds."""
        if self.lower.shape[1] == 0:
            return self.leaf
        return min(self.leaf, int((self.lower[0] + self.lower[1]).min()))

    @property
    def learned(self) -> RootBounds:
        """What stays after the search."""
        return RootBounds(self.node.features, self.lower, self.exact, self.firsts.least)
