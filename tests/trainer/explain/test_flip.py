"""The smallest change equals enumeration over a grid, with a router that shares no code with the kernel."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tests.trainer.explain.flip_cases import (
    SCHEMA,
    grid,
    random_case,
)
from tests.trainer.random_trees import naive_leaf
from trainer.data.column_statistics import statistics
from trainer.explain.flip import Flipper
from trainer.explain.least import TOTAL
from trainer.tree.nodes import Tree


def best_by_enumeration(tree: Tree, row, permissions, scales, wanted, *, total=False):
    """Return the least (changed columns, sum of scaled changes) over the grid, or None if no row has a wanted class.

    With `total`, return the least sum, and the columns of the row that has it.
    """
    best = (0, math.inf)
    own = tree.nodes[naive_leaf(tree, row)].label
    options = []
    for j, permission in enumerate(permissions):
        allowed = [v for v in grid(j, permission) if v != row[j]]
        if math.isnan(row[j]):
            options.append([row[j], *(allowed if permission.fill else [])])
            continue
        if j < 3:
            allowed = [v for v in allowed if (permission.up if v > row[j] else permission.down)]
        options.append([row[j], *([] if permission.never else allowed)])
    for size in range(1, 5):
        costs = []
        for changed in itertools.combinations(range(4), size):
            for values in itertools.product(*(options[j][1:] for j in changed)):
                other = row.copy()
                other[list(changed)] = values
                label = tree.nodes[naive_leaf(tree, other)].label
                if label != own if wanted is None else label == wanted:
                    sizes = (1.0 if j == 3 else abs(other[j] - row[j]) / scales[j] for j in changed)
                    # filling an empty cell has no size
                    costs.append(sum(size for size in sizes if not math.isnan(size)))
        if costs and not total:
            return size, min(costs)
        if costs and min(costs) < best[1] - 1e-9:
            best = (size, min(costs))
        if size == 2 and math.prod(len(o) for o in options) > 60_000:
            return None  # there are too many rows to try
    return best if best[0] else (0, 0.0)


def compared(seed, *, sums, holes=False):
    tree, matrix, permissions = random_case(seed, sums=sums, holes=holes)
    stats = statistics(SCHEMA, matrix)
    flipper = Flipper(tree, stats, permissions)
    count = 0
    for row in matrix[:3]:
        wanted = None if seed % 2 else (tree.nodes[naive_leaf(tree, row)].label + 1) % 3
        expected = best_by_enumeration(tree, row, permissions, [s.scale for s in stats], wanted)
        if expected is None:
            continue
        count += 1
        answer = flipper.find(row, wanted)
        if expected == (0, 0.0):
            assert answer.flip is None
            assert answer.reason
            continue
        assert answer.flip is not None, (seed, row, expected)
        assert not (np.isnan(answer.flip.row) & ~np.isnan(row)).any(), "a present value never becomes empty"
        # the row lies beyond the grid, where it may be better than all rows within
        if abs(answer.flip.row[0]) > 14 or abs(answer.flip.row[1]) > 2.5:
            assert (len(answer.flip.columns), answer.flip.distance) <= (expected[0], expected[1] + 1e-9)
            continue
        assert len(answer.flip.columns) == expected[0]
        assert answer.flip.distance == pytest.approx(expected[1], abs=1e-9)
        assert answer.flip.proved
        for flip in (answer.flip, *answer.alternatives):
            label = tree.nodes[naive_leaf(tree, flip.row)].label
            assert label != tree.nodes[naive_leaf(tree, row)].label if wanted is None else label == wanted
        sets = [set(f.columns) for f in (answer.flip, *answer.alternatives)]
        assert not any(a <= b for a, b in itertools.combinations(sets, 2))
    return count


@pytest.mark.slow
@pytest.mark.parametrize("block", range(6))
def test_questions_of_one_column_against_every_row_of_a_grid(block):
    assert sum(compared(seed, sums=False) for seed in range(20 * block, 20 * block + 20)) > 10


@pytest.mark.slow
@pytest.mark.parametrize("block", range(6))
def test_flip_of_row_with_empty_cells_equals_enumeration(block):
    assert sum(compared(seed, sums=False, holes=True) for seed in range(20 * block, 20 * block + 20)) > 10


@pytest.mark.parametrize("block", range(6))
def test_flip_of_empty_cells_in_sums_equals_enumeration(block):
    assert sum(compared(seed, sums=True, holes=True) for seed in range(3000 + 8 * block, 3008 + 8 * block)) > 5


@pytest.mark.parametrize("sums", [False, True])
def test_least_total_with_empty_cells_equals_enumeration(sums):
    count = 0
    for seed in range(12 if sums else 30):
        tree, matrix, permissions = random_case(5000 + seed, sums=sums, holes=True)
        stats = statistics(SCHEMA, matrix)
        flipper = Flipper(tree, stats, permissions, least=TOTAL)
        for row in matrix[:2]:
            expected = best_by_enumeration(tree, row, permissions, [s.scale for s in stats], None, total=True)
            flip = flipper.find(row).flip
            if expected is None or flip is None:
                assert expected in (None, (0, 0.0))
                continue
            assert flip.distance <= expected[1] + 1e-9
            if abs(flip.row[0]) > 14 or abs(flip.row[1]) > 2.5:  # the row lies beyond the grid
                continue
            assert flip.distance == pytest.approx(expected[1], abs=1e-9)
            assert flip.proved
            count += 1
    assert count > 5


@pytest.mark.parametrize("block", range(4))
def test_weighted_sums_against_every_row_of_a_grid(block):
    assert sum(compared(seed, sums=True) for seed in range(1000 + 8 * block, 1000 + 8 * block + 8)) > 5
