"""Rows of a node by growing value of a feature: codes that grow with the values are made once per tree, nodes count or sort by digits.

codes    int32 (p, n), C-ordered; levels int64 (p,): the codes of feature j lie in 0 … levels[j] - 1, and not all of them need occur
"""

from __future__ import annotations

import numpy as np

from trainer.kernels.compiled import kernel

SPARSE = 4  # codes per row up to which whole numbers are their own codes
FEW = 64  # rows below which a comparison sort is faster
BITS = 11  # of one digit


@kernel
def write_codes(values, codes, levels):
    """Codes of float64 (n, p); whole numbers of a small range keep their distances, others are ranked."""
    n = values.shape[0]
    column = np.empty(n)
    for j in range(values.shape[1]):
        low = values[0, j]
        high = values[0, j]
        whole = True
        for i in range(n):
            x = column[i] = values[i, j]
            low = min(low, x)
            high = max(high, x)
            whole = whole and x == np.floor(x)
        if whole and high - low < SPARSE * n:
            for i in range(n):
                codes[j, i] = np.int32(column[i] - low)
            levels[j] = np.int64(high - low) + 1
            continue
        order = np.argsort(column)
        rank = 0
        before = column[order[0]]
        for i in order:
            if column[i] != before:
                rank = rank + 1
                before = column[i]
            codes[j, i] = rank
        levels[j] = rank + 1


@kernel
def order_rows(code, rows, levels, order, spare):
    """Write the positions in `rows` by growing code into order; both int64 (n,), spare likewise. Equal codes keep their order."""
    n = rows.shape[0]
    if n < FEW:
        order[:] = np.argsort(code[rows], kind="mergesort")
        return
    one = levels <= max(2 * n, 1 << BITS)
    size, mask = (levels, (1 << 31) - 1) if one else (1 << BITS, (1 << BITS) - 1)
    begin = np.empty(size + 1, np.int64)
    for r in range(n):
        order[r] = r
    shift = 0
    while True:
        begin[:] = 0
        for r in range(n):
            begin[((code[rows[r]] >> shift) & mask) + 1] += 1
        for c in range(size):
            begin[c + 1] += begin[c]
        for x in range(n):
            r = order[x]
            c = (code[rows[r]] >> shift) & mask
            spare[begin[c]] = r
            begin[c] += 1
        order[:] = spare
        shift += BITS
        if one or levels >> shift == 0:
            return
