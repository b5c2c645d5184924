"""What a search is told, what it knows of a subproblem, and the names of the latter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

INFINITE = np.int64(1) << np.int64(62)
UNKNOWN_PATH = (-1,)  # of rows that were not reached by answers of this search: no cache by path is read or written
SHALLOWER = -1  # the best tree of this height is the best tree of the height below


def known_path(path: tuple[int, ...]) -> bool:
    """Whether rows were reached by answers of this search."""
    return min(path, default=0) >= 0


@dataclass(frozen=True, kw_only=True)
class ExactOptions:
    """Switches of the bounds and caches; every combination gives the same optimum."""

    equivalent: bool = True  # rows that are equal in all features
    class_count: bool = True  # a tree with t leaves predicts at most t classes
    support: bool = True  # too few rows to pay for a second leaf
    similarity: bool = True
    branch_cache: bool = True  # depth-two subtrees, by their path
    dataset_cache: bool = True  # larger subtrees by their rows; off: by their path
    reduce: bool = True  # equal and complementary columns merged
    deepening: bool = True  # the best shallower tree first
    one_call: bool = True  # brief nodes of height three and four without a look at the clock
    memory: int = 1 << 30  # bytes that the caches may take


DEFAULT_OPTIONS = ExactOptions()


@dataclass(frozen=True)
class MemoEntry:
    """What is known of E(D, h): a lower bound, whether it is exact, and the feature of the best root if so."""

    lower: int
    exact: bool
    choice: int | None = None  # feature; None: leaf; SHALLOWER
