"""Define the kernels' arguments: columns of groups, rows and node budget."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Spans(NamedTuple):
    """Columns of the groups: group g owns start[g]..start[g + 1] - 1, one for each category; int64 (groups + 1,).

    ordered int64 (groups,): 1 if only thresholds are allowed. card > 0: a subset or its complement has at most `card` categories.
    """

    start: np.ndarray
    ordered: np.ndarray
    card: int


class CategoryRows(NamedTuple):
    """Categories cat int32 (n, groups), classes y int32 (n,) and weights w int64 (n,) of all rows; chosen int64 (m,): the selected rows."""

    cat: np.ndarray
    y: np.ndarray
    w: np.ndarray
    chosen: np.ndarray


class NodeBudget(NamedTuple):
    """Node limit of a call; flag int64 (1,): a value other than 0 ends the call."""

    nodes: int
    flag: np.ndarray
