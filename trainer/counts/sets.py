"""Index the counts of sets of at most three questions.

The order is the empty set, singles, pairs and triples, each in lexicographic order.
"""

from __future__ import annotations

from math import comb

import numpy as np

from trainer.dtypes import CountArray

DEEPEST = 3  # limit on the questions of one set


def number_of_sets(questions: int, depth: int) -> int:
    """Return the number of sets of at most `depth` questions."""
    return sum(comb(questions, size) for size in range(depth + 1))


def place(questions: int, members: set[int]) -> int:
    """Return the index of a set of at most three questions."""
    indices = np.array([[[q]] for q in sorted(members)], np.int64)
    if not len(indices):
        return 0
    second = indices[min(1, len(indices) - 1)]
    return int(triple_places(questions, indices[0], second, indices[-1])[0, 0])


def pair_places(questions: int) -> CountArray:
    """Return the index of each pair as int64 (questions, questions); a question with itself is the single question."""
    each = np.arange(questions, dtype=np.int64)
    low = np.minimum(each[:, None], each)
    high = np.maximum(each[:, None], each)
    return _pairs(questions, low, high)


def triple_places(questions: int, a: CountArray, b: CountArray, c: CountArray) -> CountArray:
    """Return the index of each triple of arrays that broadcast; a triple with equal members is the set of its members."""
    low = np.minimum(np.minimum(a, b), c)
    high = np.maximum(np.maximum(a, b), c)
    middle = a + b + c - low - high
    remaining = questions - low - 1
    second = middle - low - 1
    within = second * (2 * remaining - second - 1) // 2 + high - middle - 1
    left = questions - low
    before = comb(questions, 3) - left * (left - 1) * (left - 2) // 6
    triples = 1 + questions + comb(questions, 2) + before + within
    return np.where((low < middle) & (middle < high), triples, _pairs(questions, low, high))


def _pairs(questions: int, low: CountArray, high: CountArray) -> CountArray:
    pairs = 1 + questions + low * (2 * questions - low - 1) // 2 + high - low - 1
    return np.where(low < high, pairs, 1 + low)
