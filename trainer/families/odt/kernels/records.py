"""What the kernels of the family are given: where the groups are, the rows at hand, and how long a call may take."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Spans(NamedTuple):
    """Where the groups are: group g owns the columns start[g]..start[g + 1] - 1, one per category; int64 (groups + 1,).

    ordered (groups,): 1 where only thresholds are allowed; `card` > 0: a subset, or its complement, has at most so many categories.
    """

    start: np.ndarray
    ordered: np.ndarray
    card: int


class CategoryRows(NamedTuple):
    """Categories cat int32 (n, groups), classes y and weights w int64 (n,) of all rows, and `chosen`, int64, the rows at hand."""

    cat: np.ndarray
    y: np.ndarray
    w: np.ndarray
    chosen: np.ndarray


class NodeBudget(NamedTuple):
    """How many nodes a call may take; flag int64 (1,): anything but 0 ends the call."""

    nodes: int
    flag: np.ndarray
