"""Define the state of a node whose splits are being searched."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trainer.families.exact.kernels import depth4 as dp_depth4
from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.kernels.bounds import SideBounds
from trainer.families.exact.kernels.first_split_bounds import FirstSplitBounds

NO_FLOORS = np.zeros(0, np.int64)


@dataclass(frozen=True)
class RootBounds:
    """Bounds of the children of the root by split, in the integer costs of the search."""

    features: np.ndarray
    lower: np.ndarray  # int64 (2, p), by child and split
    exact: np.ndarray  # uint8 (2, p): whether `lower` is the optimal cost
    least: np.ndarray  # see `FirstSplitBounds`

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self.lower.nbytes + self.least.nbytes

    def sides(self) -> dict[int, tuple[tuple[int, int], bool]]:
        """Return by feature the lower bounds for both children (0, 1), and whether both are optimal costs."""
        exact = (self.exact[0] & self.exact[1]).astype(bool).tolist()
        bounds = zip(*self.lower.tolist(), strict=True)
        return dict(zip(self.features.tolist(), zip(bounds, exact, strict=True), strict=True))

    def floors(self, literal: int) -> np.ndarray:
        """Return lower bounds for a child by the split at its root, int64 (features,); of length 0 if there are none."""
        at = self._places.get(literal >> 1)
        return NO_FLOORS if at is None or not len(self.least) else self.least[2 * at + (literal & 1)]

    @cached_property
    def _places(self) -> dict[int, int]:
        return {feature: p for p, feature in enumerate(self.features.tolist())}


@dataclass
class SearchFrame:
    """A node of height above two with bounds of both children of each split."""

    node: dp_node.NodeView
    P: np.ndarray
    lower: np.ndarray  # int64 (2, p), by child and split
    exact: np.ndarray  # uint8 (2, p): whether `lower` is the optimal cost
    leaf: int
    firsts: FirstSplitBounds  # empty except for nodes of height four
    roots: np.ndarray  # int64 (2, p): ROOT of the children that the depth-four kernel has searched

    @property
    def kernel_frame(self) -> dp_depth4.Depth4Frame:
        """The frame as a tuple for kernels."""
        return dp_depth4.Depth4Frame(self.node, self.P, SideBounds(self.lower, self.exact), self.firsts, self.roots)

    def bound(self) -> int:
        """Return a lower bound for the node, valid at any time: the least of the leaf and of the sums of child bounds."""
        if self.lower.shape[1] == 0:
            return self.leaf
        return min(self.leaf, int((self.lower[0] + self.lower[1]).min()))

    @property
    def root_bounds(self) -> RootBounds:
        """The bounds that outlive the search of the node."""
        return RootBounds(self.node.features, self.lower, self.exact, self.firsts.least)
