"""Sort a node's rows by feature, from codes made once.

codes    int32 (p, n), C-ordered, once per tree; codes[j] increases with the values of feature j, so nodes sort by counting or by digits
levels   int64 (p,); the codes of feature j lie in 0 … levels[j] - 1, and some may not occur
"""

from __future__ import annotations

import numpy as np

from trainer.kernels.compiled import kernel

SPARSE = 4  # integers whose range is below this many times the rows are their own codes, less the smallest
FEW = 64  # rows below which a comparison sort is faster
RUN = 16  # entries that are sorted by insertion before runs are merged
BITS = 11  # of one digit of the radix sort


@kernel
def argsort(values):
    """Return the positions in ascending order of values, int64 (n,); ties keep their order.

    All kernels share this merge sort, because numba compiles its own again in each kernel that sorts, for up to a second.
    """
    n = values.shape[0]
    order = np.empty(n, np.int64)
    for low in range(0, n, RUN):
        for k in range(low, min(low + RUN, n)):
            x = k
            while x > low and values[order[x - 1]] > values[k]:
                order[x] = order[x - 1]
                x -= 1
            order[x] = k
    if n <= RUN:
        return order
    other = np.empty(n, np.int64)
    width = RUN
    while width < n:
        for low in range(0, n, 2 * width):
            middle = min(low + width, n)
            end = min(low + 2 * width, n)
            i = low
            j = middle
            for k in range(low, end):
                if i < middle and (j >= end or values[order[i]] <= values[order[j]]):
                    other[k] = order[i]
                    i += 1
                else:
                    other[k] = order[j]
                    j += 1
        order, other = other, order
        width *= 2
    return order


@kernel
def ascending(values):
    """Return a sorted copy of values."""
    order = argsort(values)
    out = np.empty_like(values)
    for k in range(values.shape[0]):
        out[k] = values[order[k]]
    return out


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
        order = argsort(column)
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
        by_code = argsort(code[rows])
        for x in range(n):
            order[x] = by_code[x]
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
        for x in range(n):
            order[x] = spare[x]
        shift += BITS
        if one or levels >> shift == 0:
            return
