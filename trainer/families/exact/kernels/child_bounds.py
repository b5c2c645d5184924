"""Solve depth two for both children of a split at once.

P and e as in `trainer.families.exact.kernels.depth2`. Bit columns give the pair counts of the smaller child; those of the larger child
are the counts of the node less these.
"""

from __future__ import annotations

import numpy as np

from trainer.families.exact.kernels.depth2 import errors_by_leaves, evaluate_many
from trainer.families.exact.kernels.depth2_signed import solve_children_signed
from trainer.families.exact.kernels.node import pair_row
from trainer.families.exact.kernels.packed_bits import pack_child
from trainer.families.exact.kernels.weighted_pairs import add_all_pairs
from trainer.kernels.compiled import kernel

i32 = np.int32


@kernel
def solve_children(node, P, D, p, min_leaf, e0, e1):
    """Write e[t] of the rows with x_p = 0 (e0) and with x_p = 1 (e1), int64 (4,), from one pass over the pairs of the smaller child.

    D: see `class_differences`; without pairs, each class is counted.
    """
    if len(D.pairs):
        solve_children_signed(node, D, p, e0, e1)
    else:
        _solve_by_counts(node, P, p, min_leaf, e0, e1)


@kernel
def _solve_by_counts(node, P, p, min_leaf, e0, e1):
    """Do the work of `solve_children` by counts of each class."""
    classes, m = node.ones.shape
    size1 = 0
    total = 0
    for k in range(classes):
        size1 += node.ones[k, p]
        total += node.totals[k]
    s = 1 if 2 * size1 <= total else 0
    small = np.empty((classes, m), i32)
    large = np.empty((classes, m), i32)
    ts = np.empty(classes, i32)
    tl = np.empty(classes, i32)
    for k in range(classes):
        for q in range(m):
            both = node.ones[k, p] if q == p else P[k, min(p, q), max(p, q)]
            small[k, q] = both if s else i32(node.ones[k, q] - both)
            large[k, q] = i32(node.ones[k, q] - small[k, q])
        ts[k] = node.ones[k, p] if s else i32(node.totals[k] - node.ones[k, p])
        tl[k] = i32(node.totals[k] - ts[k])
    sl = np.full(m, -1, i32)
    sr = np.full(m, -1, i32)
    ll = np.full(m, -1, i32)
    lr = np.full(m, -1, i32)
    _best_grandchildren(
        pack_child(node, node.columns, p, s, False), P, min_leaf, (small, ts, sl, sr), (large, tl, ll, lr)
    )
    errors_by_leaves(small, ts, sl, sr, min_leaf, e1 if s else e0)
    errors_by_leaves(large, tl, ll, lr, min_leaf, e0 if s else e1)


@kernel
def _best_grandchildren(packed, P, min_leaf, one, other):
    """Write the correct rows of the best leaves or splits below both children, from each pair once.

    one, other: ones (K, m), totals (K,), left and right (m,).
    """
    small, ts, sl, sr = one
    large, tl, ll, lr = other
    classes, m = small.shape
    row = np.zeros((classes, m), i32)
    buffer = np.empty((4, m), i32)
    weighted = len(packed.weights) > 0
    pairs = np.zeros((classes if weighted else 0, m, m), i32)
    if weighted:
        add_all_pairs(packed.columns, packed.weights, packed.segment, pairs)
    for f in range(m):
        if weighted:
            for k in range(classes):
                source = pairs[k, f, f + 1 :]
                target = row[k, f + 1 :]
                for q in range(len(source)):
                    target[q] = source[q]
        else:
            pair_row(packed.columns, packed.segment, packed.weights, f, f + 1, row)
        evaluate_many(row, small, ts, f, sl, sr, buffer, min_leaf)
        for k in range(classes):
            of_node = P[k, f, f + 1 :]
            part = row[k, f + 1 :]
            for q in range(m - f - 1):
                part[q] = i32(of_node[q] - part[q])
        evaluate_many(row, large, tl, f, ll, lr, buffer, min_leaf)
