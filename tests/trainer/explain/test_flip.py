"""The smallest change against enumeration: every row of a grid is tried, by a router that shares no code with the kernel."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tests.trainer.random_trees import naive_leaf
from trainer.data.column_statistics import statistics
from trainer.explain.flip import Flipper
from trainer.explain.permission import Permission
from trainer.table import ColumnKind, ColumnSchema
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf, Tree, grow
from trainer.tree.splits import Interval, Linear, Subset, Threshold

CHOICES = (
    Permission(),
    Permission(down=False),
    Permission(up=False),
    Permission(up=False, down=False),
    Permission(whole=True),
)
SCHEMA = (
    ColumnSchema(name="whole", kind=ColumnKind.NUMERIC),
    ColumnSchema(name="tenths", kind=ColumnKind.NUMERIC),
    ColumnSchema(name="yes or no", kind=ColumnKind.BINARY),
    ColumnSchema(name="colour", kind=ColumnKind.CATEGORICAL, categories=("red", "green", "blue", "(missing)")),
)
CLASSES = ("a", "b", "c")


def grid(j, permission):
    """Every value that column `j` may move to and that could matter; the column's own value is added by the caller."""
    if j == 0:
        return [float(v) for v in range(-14, 15)]
    if j == 1:
        return [float(v) for v in range(-3, 4)] if permission.whole else [v / 10 for v in range(-25, 26)]
    return [0.0, 1.0] if j == 2 else [0.0, 1.0, 2.0]


def random_split(rng, sums):
    kind = rng.choice(["linear", "threshold"] if sums else ["threshold", "interval", "subset", "binary"])
    if kind == "linear":
        j = (0, 1, 3) if rng.random() < 0.5 else (0, 2, 1)
        coefficients = tuple(float(a) for a in rng.choice([-2.0, -1.0, 0.5, 1.0, 3.0], 3))
        levels = tuple(int(rng.integers(3)) if f == 3 else -1 for f in j)
        return Linear(features=j, coefficients=coefficients, threshold=float(rng.integers(-3, 4)) + 0.25, levels=levels)
    if kind == "subset":
        return Subset(feature=3, codes=tuple(int(c) for c in np.flatnonzero(rng.random(4) < 0.5)))
    if kind == "binary":
        return Threshold(feature=2, threshold=0.5)
    j = int(rng.integers(2))
    ends = sorted(rng.choice(np.arange(-4, 5) / 2 if j == 0 else np.arange(-20, 21) / 20, 2).tolist())
    if kind == "threshold":
        return Threshold(feature=j, threshold=ends[0])
    return Interval(feature=j, low=ends[0] if rng.random() < 0.8 else -math.inf, high=ends[1])


def random_draft(rng, depth, sums) -> Draft:
    if depth == 0 or rng.random() < 0.1:
        return DraftLeaf(label=int(rng.integers(3)))
    left, right = (random_draft(rng, depth - 1, sums) for _ in range(2))
    return DraftBranch(split=random_split(rng, sums), left=left, right=right)


def random_case(seed, *, sums):
    rng = np.random.default_rng(seed)
    n = 24
    matrix = np.column_stack(
        [
            rng.integers(-4, 5, n).astype(float),
            np.append(0.1, rng.integers(-10, 11, n - 1) / 10),
            rng.integers(0, 2, n).astype(float),
            rng.integers(0, 4, n).astype(float),
        ]
    )
    if rng.random() < 0.2:
        matrix[:, 0] = 2.0  # a constant column
    tree = grow(random_draft(rng, 1 + seed % 3, sums), matrix, rng.integers(0, 3, n), schema=SCHEMA, classes=CLASSES)
    permissions = tuple(
        CHOICES[int(rng.integers(5 if j < 2 else 1))] if rng.random() < 0.5 else CHOICES[0] for j in range(4)
    )
    return tree, matrix, permissions


def best_by_enumeration(tree: Tree, row, permissions, scales, wanted):
    """The least (changed columns, sum of scaled changes) over all rows of the grid; None where none has a wanted class."""
    own = tree.nodes[naive_leaf(tree, row)].label
    options = []
    for j, permission in enumerate(permissions):
        allowed = [v for v in grid(j, permission) if v != row[j]]
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
                    costs.append(sum(1.0 if j == 3 else abs(other[j] - row[j]) / scales[j] for j in changed))
        if costs:
            return size, min(costs)
        if size == 2 and math.prod(len(o) for o in options) > 60_000:
            return None  # left out: too many rows to try
    return 0, 0.0


def compared(seed, *, sums):
    tree, matrix, permissions = random_case(seed, sums=sums)
    stats = statistics(SCHEMA, matrix)
    flipper = Flipper(tree, stats, permissions)
    count = 0
    for row in matrix[:3]:
        wanted = None if seed % 2 else (tree.nodes[naive_leaf(tree, row)].label + 1) % 3
        expected = best_by_enumeration(tree, row, permissions, [s.scale for s in stats], wanted)
        if expected is None:
            continue
        count += 1
        found = flipper.find(row, wanted)
        if expected == (0, 0.0):
            assert found.flip is None
            assert found.reason
            continue
        assert found.flip is not None, (seed, row, expected)
        if abs(found.flip.row[0]) > 14 or abs(found.flip.row[1]) > 2.5:  # beyond the grid: better than all within it
            assert (len(found.flip.columns), found.flip.distance) < expected
            continue
        assert len(found.flip.columns) == expected[0]
        assert found.flip.distance == pytest.approx(expected[1], abs=1e-9)
        assert found.flip.proved
        for flip in (found.flip, *found.alternatives):
            label = tree.nodes[naive_leaf(tree, flip.row)].label
            assert label != tree.nodes[naive_leaf(tree, row)].label if wanted is None else label == wanted
        sets = [set(f.columns) for f in (found.flip, *found.alternatives)]
        assert not any(a <= b for a, b in itertools.combinations(sets, 2))
    return count


@pytest.mark.parametrize("block", range(6))
def test_questions_of_one_column_against_every_row_of_a_grid(block):
    assert sum(compared(seed, sums=False) for seed in range(20 * block, 20 * block + 20)) > 10


@pytest.mark.parametrize("block", range(4))
def test_weighted_sums_against_every_row_of_a_grid(block):
    assert sum(compared(seed, sums=True) for seed in range(1000 + 8 * block, 1000 + 8 * block + 8)) > 5
