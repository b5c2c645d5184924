"""Kernels: what the trees that ask a question first cost at a side of a node, at least, from what is known of other sides.

A tree for the rows D does for other rows E, too, and there it is wrong at most on those outside of D more. It asks the same question
first, so a bound for each first question of E is one for D, less the rows of E outside of D. Most first questions of a side cost far
more than the best one, so that a bound for each rules them out where the bound for the best one rules out none (similarity:
Demirovic et al. 2022, MurTree). Not with a smallest leaf above one row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels.bounds import inside_of, share
from trainer.kernels.compiled import kernel

MOST_NUMBERS = 1 << 23  # of a node; one with more has no bounds of this kind


class FirstSplitBounds(NamedTuple):
    """Least costs of the trees that ask a question first, for both sides of each split of a node and for the node itself.

    Two threads may write to it: what the one does not see yet of the other is 0, which is a bound.
    """

    least: (
        np.ndarray
    )  # int64 (2 p + 1, features); side s of split p at 2 p + s, the node last; all of the height of the sides
    highest: np.ndarray  # int64 (2 p + 1,), of each line; 0: nothing is known


@kernel
def firsts_of(splits, features, kept):
    """Firsts of a node of which nothing is known; without lines where they are not kept."""
    lines = 2 * splits + 1
    if not kept or lines * features > MOST_NUMBERS:
        lines = 0
    return FirstSplitBounds(np.zeros((lines, features), np.int64), np.zeros(lines, np.int64))


@kernel
def learn(firsts, line, floors):
    """Write down what is known of a side, or of the node itself (the last line)."""
    if len(firsts.highest):
        for f in range(len(floors)):
            firsts.least[line, f] = floors[f]
        firsts.highest[line] = floors.max()


@kernel
def update_similar_bounds(node, P, line, value, costs, firsts, floors, lower):
    """What a bound of the side of a line tells of similar ones: `share`, and its floors are written down; none are of length 0."""
    share(node, P, line >> 1, line & 1, value, costs[0], lower)
    if len(floors):
        learn(firsts, line, floors)


@kernel
def floors_of(node, P, p, s, unit, firsts):
    """Least cost of a tree for the rows with x_p = s that asks a question first, by question of the data set, int64 (features,)."""
    lines, features = firsts.least.shape
    floors = np.zeros(features, np.int64)
    if lines == 0:
        return floors
    size, inside = inside_of(node, P, p, s)
    total = np.int64(0)
    for k in range(len(node.totals)):
        total += node.totals[k]
    _lower(floors, firsts, lines - 1, (total - size) * unit)
    for q in range(len(inside)):
        ones = np.int64(0)
        for k in range(len(node.totals)):
            ones += node.ones[k, q]
        _lower(floors, firsts, 2 * q, (total - ones - size + inside[q]) * unit)
        _lower(floors, firsts, 2 * q + 1, (ones - inside[q]) * unit)
    return floors


@kernel
def _lower(floors, firsts, line, outside):
    """Raise floors to a line of what is known, less the cost of the rows outside."""
    if firsts.highest[line] > outside:
        row = firsts.least[line]
        for f in range(len(floors)):
            floors[f] = max(floors[f], row[f] - outside)
