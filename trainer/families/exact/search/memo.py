"""Options and memo entries of the exact search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

INFINITE = np.int64(1) << np.int64(62)
UNKNOWN_PATH = (-1,)  # rows that this search did not reach by splits: caches by path are neither read nor written
SHALLOWER = -1  # choice: the best tree of this height is the best tree of the height below


def known_path(path: tuple[int, ...]) -> bool:
    """Return whether this search reached the rows by splits."""
    return min(path, default=0) >= 0


@dataclass(frozen=True, kw_only=True)
class ExactOptions:
    """Switches of the bounds and caches; every combination gives the same optimum."""

    equivalent: bool = True  # bound by rows that are equal in all features
    class_count: bool = True  # bound by leaves: a tree with t leaves predicts at most t classes
    support: bool = True  # prune nodes with too few rows to pay for a second leaf
    similarity: bool = True
    branch_cache: bool = True  # cache depth-two subtrees by path
    dataset_cache: bool = True  # cache larger subtrees by rows; if off, by path
    reduce: bool = True  # merge equal and complementary features
    deepening: bool = True  # search shallower trees first
    one_call: bool = True  # solve small nodes of height three and four in one kernel call
    memory: int = 1 << 30  # most bytes of the caches


DEFAULT_OPTIONS = ExactOptions()


@dataclass(frozen=True)
class MemoEntry:
    """A lower bound of E(D, h), whether it is exact, and if so the feature of the best root."""

    lower: int
    exact: bool
    choice: int | None = None  # feature; None: leaf; SHALLOWER
