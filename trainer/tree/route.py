"""Predict the leaves of rows with a kernel over flat arrays.

Legend: `nodes[v] = (kind, feature, left, right, start, stop)`, the kind negative if empty cells go left.
`cuts[v] = (low, high)`, high being the threshold. Terms `start:stop` of `terms`/`coefficients`/`fills` belong
to a linear split (column, level), bytes `start:stop` of `member` to a subset split (1: that category goes
left). A fill of NaN means that no value replaces an empty cell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from trainer.dtypes import CodeArray, FloatArray
from trainer.precompiled import cached_kernel
from trainer.table import ColumnSchema
from trainer.tree.splits import Split

LEAF = 0  # the other tests are those of `trainer.tree.splits.base`


@dataclass(frozen=True, kw_only=True)
class FlatTree:
    """A tree as arrays: nodes int32 (m, 6), cuts float64 (m, 2), terms int32 (t, 2), coefficients and fills float64 (t,), member uint8."""

    nodes: np.ndarray
    cuts: np.ndarray
    terms: np.ndarray
    coefficients: np.ndarray
    fills: np.ndarray
    member: np.ndarray


def flatten(rows: Sequence[tuple[Split | None, int, int]], schema: Sequence[ColumnSchema]) -> FlatTree:
    """Return the arrays of a tree from a list of (split or None for a leaf, left, right) in node order."""
    nodes = np.zeros((len(rows), 6), np.int32)
    cuts = np.zeros((len(rows), 2))
    terms: list[tuple[int, int]] = []
    coefficients: list[float] = []
    fills: list[float] = []
    member: list[np.ndarray] = []
    n_terms = 0
    for v, (split, left, right) in enumerate(rows):
        if split is None:
            nodes[v] = (LEAF, -1, v, v, 0, 0)
            continue
        test = split.flat(schema)
        start = n_terms if test.member else len(terms)
        nodes[v] = (
            -test.test if test.empty_left else test.test,
            test.feature,
            left,
            right,
            start,
            start + len(test.member or test.terms),
        )
        cuts[v] = (test.low, test.high)
        terms += test.terms
        coefficients += test.coefficients
        fills += test.fills or (math.nan,) * len(test.terms)
        member.append(np.array(test.member, np.uint8))
        n_terms += len(test.member)
    return FlatTree(
        nodes=nodes,
        cuts=cuts,
        terms=np.asarray(terms, np.int32).reshape(-1, 2),
        coefficients=np.asarray(coefficients, np.float64),
        fills=np.asarray(fills, np.float64),
        member=np.concatenate([*member, np.zeros(1, np.uint8)]),
    )


@cached_kernel
def leaves_of(X, nodes, cuts, terms, coefficients, fills, member, out):
    """Write the leaf of every row of X (n, columns) into out, int32 (n,)."""
    for i in range(X.shape[0]):
        v = 0
        while nodes[v, 0] != 0:
            kind = abs(nodes[v, 0])
            empty = False
            if kind == 1:
                x = X[i, nodes[v, 1]]
                empty = x != x
                left = x <= cuts[v, 1]
            elif kind == 2:
                x = X[i, nodes[v, 1]]
                empty = x != x
                left = x > cuts[v, 0] and x <= cuts[v, 1]
            elif kind == 3:
                x = X[i, nodes[v, 1]]
                size = nodes[v, 5] - nodes[v, 4]
                # NaN (missing) and codes outside the schema (unknown) fail this test and go right
                left = x >= 0.0 and x < size and member[nodes[v, 4] + int(x)] == 1
            elif kind == 5:
                x = X[i, nodes[v, 1]]
                left = x != x
            else:
                total = 0.0
                for h in range(nodes[v, 4], nodes[v, 5]):
                    x = X[i, terms[h, 0]]
                    if terms[h, 1] >= 0:
                        x = 1.0 if x == terms[h, 1] else 0.0
                    elif terms[h, 1] == -2:
                        x = 1.0 if x != x else 0.0
                    elif x != x:
                        x = fills[h]
                        empty = empty or x != x
                    total += coefficients[h] * x
                left = total <= cuts[v, 1]
            if empty and nodes[v, 0] < 0:
                left = True
            v = nodes[v, 2] if left else nodes[v, 3]
        out[i] = v


def apply(flat: FlatTree, X: FloatArray) -> CodeArray:
    """Return the index of the leaf that each row reaches, int32 (n,).

    X is (n, columns), of any numeric type and memory order.
    """
    if not X.flags.c_contiguous or X.dtype != np.float64:
        flat, X = _asked_columns(flat, X)
    out = np.empty(len(X), np.int32)
    leaves_of(X, flat.nodes, flat.cuts, flat.terms, flat.coefficients, flat.fills, flat.member, out)
    return out


def _asked_columns(flat: FlatTree, X: FloatArray) -> tuple[FlatTree, FloatArray]:
    """Return the tree over the columns that it tests, and these columns as a C-ordered float64 matrix."""
    of_nodes = flat.nodes[:, 1]
    of_terms = flat.terms[:, 0]
    asked = np.unique(np.concatenate([of_nodes[of_nodes >= 0], of_terms]))
    nodes = flat.nodes.copy()
    nodes[:, 1] = np.where(of_nodes < 0, of_nodes, np.searchsorted(asked, of_nodes))
    terms = flat.terms.copy()
    terms[:, 0] = np.searchsorted(asked, of_terms)
    # without any tested column, the kernel still needs the number of rows
    cells = np.empty((len(X), len(asked)))
    for k, column in enumerate(asked):
        cells[:, k] = X[:, column]
    return replace(flat, nodes=nodes, terms=terms), cells
