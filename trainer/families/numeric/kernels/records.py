"""Define the records and symbols of the depth-two search over all thresholds.

Z[f,j]   the j-th row of the node in the order of feature f          rank[f,i]  dense rank of row i's value of feature f
E[f]     ends: positions j of Z[f] after which the value changes     inc[i]     weight of row i, shifted by 32 bits for class 1
C[f]     the ends of E[f] between rows of different classes: a tree of one split needs no others, unless leaves have a least weight;
         the last entry is m
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

LOW = np.int64(0xFFFFFFFF)
INFINITE_COST = np.int64(1) << np.int64(61)
# unsigned positions: an index that may be negative costs a check for each row
NONE = np.uint64(0)
ONE = np.uint64(1)
BLOCK = np.uint64(32)


class NodeRows(NamedTuple):
    """The rows of a node: Z, E and C, int32 (F, m); S and D, int64, of `prefix_sums` and `signed_prefixes`; classes y, weight and inc.

    errors[f] are the fewest errors of a single split on feature f.
    """

    Z: np.ndarray
    E: np.ndarray
    C: np.ndarray
    S: np.ndarray
    D: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    inc: np.ndarray
    errors: np.ndarray


class Tables(NamedTuple):
    """Bounds of the thresholds 1..count of a feature; 0 and count + 1 represent all rows on one side.

    line    int64 (7, thresholds): bounds of the cost left and right, weight on the left, a stack of intervals (first, last), and the
            bounds left and right without a least weight of leaves
    G       int32 (2, thresholds, F): bounds of the errors with one split on g in either child, exact where g was scanned;
            without a least weight of leaves
    good    int64 (thresholds, 2): the best feature of either child
    first   int64 (F + 4,): the features in the order of the scans
    left    int64 (rows,): inc of the rows on the left, else 0
    side_weights  int64 (3, K): class weights on the left, on the right and of the node
    buffer  int64 (rows of the node or 2 K,): for the scans; result int64 (8,): `out` of the scans
    """

    line: np.ndarray
    G: np.ndarray
    good: np.ndarray
    first: np.ndarray
    left: np.ndarray
    side_weights: np.ndarray
    buffer: np.ndarray
    result: np.ndarray


class CostTask(NamedTuple):
    """The search of one feature: its costs and its thresholds.

    unit, leaf: cost of an error and of a leaf; two: whether there are two classes; total: weight of the node; one_split: cost of the best
    tree with one split; f: the feature; thresholds: their number; place: index of the best one for a single split; least: least weight of a
    leaf in a tree of several leaves.
    """

    unit: int
    leaf: int
    two: bool
    total: int
    one_split: int
    f: int
    thresholds: int
    place: int
    least: int
