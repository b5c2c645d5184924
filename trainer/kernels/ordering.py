"""Sort a node's rows by feature, from codes made once.

codes    int32 (p, n), C-ordered, once per tree; codes[j] increases with the values of feature j, so nodes sort by counting or by digits
levels   int64 (p,); the codes of feature j lie in 0 … levels[j] - 1, and some may not occur
"""

from __future__ import annotations

import numpy as np

from trainer.kernels.compiled import kernel

SPARSE = 4  # integers whose range is below this many times the rows are their own codes, less the smallest
FEW = 64  # rows below which a comparison sort is faster
BITS = 11  # of one digit of the radix sort


@kernel
def write_codes(values, codes, levels):
    """Write the codes and levels of values, float64 (n, p); integers of a small range keep their distances, others are ranked."""
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
    """Write into `order` the positions in `rows`, sorted by code; equal codes keep their order.

    code int32 (all rows,) and levels: codes of one feature and their number. rows, order, spare: int64 (n,); `spare` is scratch.
    """
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
