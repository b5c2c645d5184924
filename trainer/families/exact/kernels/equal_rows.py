"""Group equal rows, and list the rows by value of a feature."""

from __future__ import annotations

import numpy as np

from trainer.kernels.compiled import kernel

u64 = np.uint64
MIXER = u64(0xD6E8FEB86659FD93)
SIGN = u64(1 << 63)


@kernel
def _word(x, numbers):
    """Return a word; if words are floats, -0.0 becomes 0.0."""
    return u64(0) if numbers and x == SIGN else x


@kernel
def _hash_row(row, numbers):
    """Return a hash of a row's words."""
    out = u64(0x9E3779B97F4A7C15)
    for v in range(len(row)):
        out = (out ^ _word(row[v], numbers)) * MIXER
        out ^= out >> u64(32)
    return out


@kernel
def _equal(a, b, numbers):
    differ = u64(0)
    for v in range(len(a)):
        differ |= _word(a[v], numbers) ^ _word(b[v], numbers)
    return differ == u64(0)


@kernel
def group_rows(words, numbers):
    """Return the first row of each group of equal rows, in order, and the group of each row, int64.

    words: uint64 (n, words), the rows. numbers: whether the words are floats.
    """
    n = len(words)
    size = 1
    while size < 2 * n:
        size *= 2
    slots = np.full(size, -1, np.int32)
    first = np.empty(n, np.int64)
    group = np.empty(n, np.int64)
    used = 0
    for i in range(n):
        at = np.int64(_hash_row(words[i], numbers) & u64(size - 1))
        while slots[at] >= 0 and not _equal(words[first[slots[at]]], words[i], numbers):
            at = (at + 1) & (size - 1)
        if slots[at] < 0:
            slots[at] = used
            first[used] = i
            used += 1
        group[i] = slots[at]
    return first[:used].copy(), group


@kernel
def members_by_answer(R, questions):
    """Return the row sets of both values of each feature in `questions`, in the form of `members`: uint8 (features, 2, ceil(n / 8)).

    R: uint64 (n, words), all rows.
    """
    n = len(R)
    out = np.zeros((len(questions), 2, (n + 7) >> 3), np.uint8)
    for q in range(len(questions)):
        word = questions[q] >> 6
        bit = u64(questions[q] & 63)
        for i in range(n):
            out[q, np.int64((R[i, word] >> bit) & u64(1)), i >> 3] |= np.uint8(1 << (i & 7))
    return out
