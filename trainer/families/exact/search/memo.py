"""Options and memo entries of the exact search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

INFINITE = np.int64(1) << np.int64(62)
UNKNOWN_PATH = (-1,)  # the rows were not reached by splits, so caches by path are neither read nor written
SHALLOWER = -1  # choice of a subproblem whose best tree is that of the height below


def known_path(path: tuple[int, ...]) -> bool:
    """Return whether this search reached the rows by splits."""
    return min(path, default=0) >= 0


@dataclass(frozen=True, kw_only=True)
class ExactOptions:
    """Switches of the bounds and caches; every combination gives the same optimum."""

    equivalent: bool = True  # bound by rows that are equal in all features but differ in class
    class_count: bool = True  # bound by the number of leaves: a tree with t leaves predicts at most t classes
    support: bool = True  # prune nodes whose rows cannot pay for a second leaf
    similarity: bool = True
    branch_cache: bool = True  # cache depth-two subtrees by path
    dataset_cache: bool = True  # cache larger subtrees by rows; otherwise by path
    reduce: bool = True  # merge equal and complementary features
    deepening: bool = True  # search shallower trees first
    one_call: bool = True  # solve small nodes of height three and four in one kernel call
    memory: int = 1 << 30  # limit on the bytes of the caches


DEFAULT_OPTIONS = ExactOptions()


@dataclass(frozen=True)
class MemoEntry:
    """A lower bound on E(D, h), whether it is exact, and if so the feature of the best root."""

    lower: int
    exact: bool
    choice: int | None = None  # feature of the root; None means a leaf, SHALLOWER the height below
