"""Pack the rows of a child into few words of bit columns.

A word holds rows of one power of two of the weights, and of one class unless classes are mixed. For mixed classes `second` marks the
rows of class 1, so one bit count gives the difference between two classes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.kernels.bits import ctpop, drawn_together, lowest_bit, moves_of
from trainer.kernels.compiled import kernel

i32 = np.int32
u64 = np.uint64


class PackedRows(NamedTuple):
    """Rows packed into words, like those of a node."""

    columns: np.ndarray  # uint64 (words, p)
    segment: np.ndarray  # int32 (words, 2): class, shift; the class is 0 where classes are mixed
    second: np.ndarray  # uint64 (words,), rows of class 1 where classes are mixed, else 0
    plain: bool  # whether every row has weight 1
    # int32 (64 * words,), by place in the words; negative for class 1 where classes are mixed; empty if the shifts imply the weights
    weights: np.ndarray


@kernel
def pack_child(node, columns, p, s, mixed):
    """Return the packed rows of a node with x_p = s.

    columns uint64 (words, m or more): those of the node, possibly with empty ones behind them. mixed: whether a word may hold both classes.
    """
    words, m = columns.shape
    shifts = np.int64(1)
    for w in range(words):
        shifts = max(shifts, np.int64(node.segment[w, 1] + 1))
    masks = np.empty(words, u64)
    numbers = np.zeros(shifts if mixed else shifts * len(node.totals), np.int64)
    for w in range(words):
        masks[w] = columns[w, p] if s else node.valid[w] & ~columns[w, p]
        numbers[_segment_number(node.segment, w, shifts, mixed)] += np.int64(ctpop(masks[w]))
    packed, place = _allocate(numbers, shifts, m, len(node.weights) > 0)
    moves = np.empty(6, u64)
    bits = np.empty(m, u64)
    for w in range(words):
        number = np.int64(ctpop(masks[w]))
        if number == 0:
            continue
        moves_of(masks[w], moves)
        drawn_together(columns[w], masks[w], moves, bits)
        segment_number = _segment_number(node.segment, w, shifts, mixed)
        second = (~u64(0) >> u64(64 - number)) if mixed and node.segment[w, 0] else u64(0)
        at = place[segment_number] >> 6
        low = place[segment_number] & 63
        _append_bits(packed, at, bits, second, low)
        if low + number > 64:
            _append_bits(packed, at + 1, bits, second, low - 64)
        if len(node.weights):
            _append_weights(packed.weights, place[segment_number], node.weights[64 * w : 64 * w + 64], masks[w], second)
        place[segment_number] += number
    return packed


@kernel
def _segment_number(segment, w, shifts, mixed):
    return np.int64(segment[w, 1] if mixed else shifts * segment[w, 0] + segment[w, 1])


@kernel
def _allocate(numbers, shifts, m, weighted):
    """Allocate words for the rows of each segment; return them and the place of each segment's first row, in bits."""
    place = np.empty(len(numbers), np.int64)
    used = np.int64(0)
    for k in range(len(numbers)):
        place[k] = 64 * used
        used += (numbers[k] + 63) >> 6
    segment = np.empty((used, 2), i32)
    for k in range(len(numbers)):
        for w in range(place[k] >> 6, (place[k] + numbers[k] + 63) >> 6):
            segment[w, 0] = k // shifts
            segment[w, 1] = k % shifts
    weights = np.zeros(64 * used if weighted else 0, i32)
    plain = shifts == 1 and not weighted
    return PackedRows(np.zeros((used, m), u64), segment, np.zeros(used, u64), plain, weights), place


@kernel
def _append_bits(packed, w, bits, second, low):
    """Add bits to a word from position `low` on; a negative `low` skips the bits that the previous word has."""
    row = packed.columns[w]
    if low >= 0:
        packed.second[w] |= second << u64(low)
        for q in range(len(row)):
            row[q] |= bits[q] << u64(low)
    else:
        packed.second[w] |= second >> u64(-low)
        for q in range(len(row)):
            row[q] |= bits[q] >> u64(-low)


@kernel
def _append_weights(out, at, weights, mask, second):
    """Write the weights of the rows under a mask from a place on, negated for class 1."""
    while mask:
        weight = weights[lowest_bit(mask)]
        mask &= mask - u64(1)
        out[at] = -weight if second else weight
        at += 1
