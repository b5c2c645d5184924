"""Kernels about all rows at once: which of them are equal, and which answer a question alike."""

from __future__ import annotations

import numpy as np

from trainer.kernels.compiled import kernel

u64 = np.uint64
MIXER = u64(0xD6E8FEB86659FD93)
SIGN = u64(1 << 63)


@kernel
def _word(x, numbers):
    """A word; where words are numbers with a point, -0.0 is 0.0."""
    return u64(0) if numbers and x == SIGN else x


@kernel
def _mixed(row, numbers):
    """One number of a row's words, so that different rows seldom have the same."""
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
def groups(words, numbers):
    """For each group of equal rows of words the first one, in order, and the group of each row, int64. Rows are compared, word by word.

    numbers: whether the words are numbers with a point.
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
        at = np.int64(_mixed(words[i], numbers) & u64(size - 1))
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
    """The rows that answer 0 and those that answer 1 to each question, as `members` gives them, uint8 (questions, 2, .); R: all rows, in words."""
    n = len(R)
    out = np.zeros((len(questions), 2, (n + 7) >> 3), np.uint8)
    for q in range(len(questions)):
        word = questions[q] >> 6
        bit = u64(questions[q] & 63)
        for i in range(n):
            out[q, np.int64((R[i, word] >> bit) & u64(1)), i >> 3] |= np.uint8(1 << (i & 7))
    return out
