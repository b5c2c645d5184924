"""Hash table of the bounds of subproblems.

The keys are the literals that all rows of a subproblem satisfy. The rows that satisfy these literals are the rows of the subproblem, so
equal keys mean equal rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.kernels.compiled import kernel

i32 = np.int32
u64 = np.uint64
MIXER = u64(0xD6E8FEB86659FD93)
ABSENT = np.int64(-1)
FULL_EIGHTHS = 5  # eighths of the places in use from which on the search unwinds
MOST_EIGHTHS = 7  # eighths that may be used: the bounds of an unwinding search still fit


class BoundTable(NamedTuple):
    """Bounds of subproblems in open addressing; a place whose upper bound is 0 is free, since a tree has a leaf."""

    keys: np.ndarray  # uint64 (places, words): features that are 1 in all rows, those that are 0, the height
    lower: np.ndarray  # int64 (places,)
    upper: np.ndarray  # int64 (places,), cost of a known tree
    choice: np.ndarray  # int32 (places,), root split of that tree, or LEAF or TWO_LEVELS of `refine`
    depth: np.ndarray  # int32 (places,), depth of that tree
    used: np.ndarray  # int64 (1,), number of places in use


def empty_table(places: int, words: int) -> BoundTable:
    """Return an empty table; `places` is a power of two."""
    return BoundTable(
        np.zeros((places, words), np.uint64),
        np.zeros(places, np.int64),
        np.zeros(places, np.int64),
        np.zeros(places, np.int32),
        np.zeros(places, np.int32),
        np.zeros(1, np.int64),
    )


@kernel
def _find_place(table, key):
    """Return the place of a key, or the free place for it."""
    h = u64(0x9E3779B97F4A7C15)
    for w in range(len(key)):
        h = (h ^ key[w]) * MIXER
        h ^= h >> u64(32)
    mask = u64(len(table.lower) - 1)
    at = np.int64(h & mask)
    while table.upper[at]:
        same = True
        for w in range(len(key)):
            if table.keys[at, w] != key[w]:
                same = False
                break
        if same:
            return at
        at = (at + 1) & np.int64(mask)
    return at


@kernel
def find(table, key):
    """Return the place of a key, uint64 (words,), or ABSENT."""
    at = _find_place(table, key)
    return at if table.upper[at] else ABSENT


@kernel
def is_full(table):
    """Return whether the table must grow."""
    return 8 * table.used[0] >= FULL_EIGHTHS * len(table.lower)


@kernel
def store(table, key, lower, upper, choice, depth):
    """Store bounds of a subproblem, unless the table has no place left."""
    at = _find_place(table, key)
    if not table.upper[at]:
        if 8 * table.used[0] >= MOST_EIGHTHS * len(table.lower):
            return
        table.used[0] += 1
        table.keys[at] = key
        table.upper[at] = upper + 1
    table.lower[at] = max(table.lower[at], lower)
    if upper < table.upper[at]:
        table.upper[at] = upper
        table.choice[at] = choice
        table.depth[at] = depth


@kernel
def copy_entries(source, target, keep):
    """Copy the entries that keep, uint8 (places,), marks into another table until it is full."""
    for at in range(len(source.lower)):
        if source.upper[at] and keep[at]:
            store(target, source.keys[at], source.lower[at], source.upper[at], source.choice[at], source.depth[at])
