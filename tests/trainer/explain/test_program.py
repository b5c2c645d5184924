"""The mixed-integer program for changes of several columns equals enumeration of all rows."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from tests.trainer.random_trees import naive_leaf
from trainer.data.column_statistics import statistics
from trainer.explain import flip as flips
from trainer.explain.flip import Flipper
from trainer.explain.permission import Permission
from trainer.table import ColumnKind, ColumnSchema
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf, Tree, grow
from trainer.tree.splits import Linear

LEVELS = ("red", "green", "blue")
SCHEMA = (
    *(ColumnSchema(name=f"b{j}", kind=ColumnKind.BINARY) for j in range(4)),
    ColumnSchema(name="colour", kind=ColumnKind.CATEGORICAL, categories=LEVELS),
)
VALUES = ((0.0, 1.0),) * 4 + ((0.0, 1.0, 2.0),)
ROWS = np.array(list(itertools.product(*VALUES)))
NEVER = Permission(up=False, down=False)
UP = Permission(down=False)


def random_draft(rng, depth) -> Draft:
    if depth == 0:
        return DraftLeaf(label=int(rng.integers(2)))
    terms = [(j, -1) for j in range(4)] + [(4, int(rng.integers(3)))]
    split = Linear(
        features=tuple(f for f, _ in terms),
        levels=tuple(level for _, level in terms),
        coefficients=tuple(float(a) for a in rng.choice([-2.0, -1.0, 1.0, 1.5, 2.0], 5)),
        threshold=float(rng.integers(-4, 5)) + 0.25,
    )
    return DraftBranch(split=split, left=random_draft(rng, depth - 1), right=random_draft(rng, depth - 1))


def best_by_enumeration(tree, row, permissions, scales):
    own = tree.nodes[naive_leaf(tree, row)].label
    best = None
    for other in ROWS:
        changed = [j for j in range(5) if other[j] != row[j]]
        if any(p.never or (not p.down and other[j] < row[j]) for j in changed for p in [permissions[j]]):
            continue
        if tree.nodes[naive_leaf(tree, other)].label != own:
            cost = sum(1.0 if j == 4 else abs(other[j] - row[j]) / scales[j] for j in changed)
            found = (len(changed), cost)
            best = found if best is None else min(best, found)
    return best


def test_programs_find_what_enumeration_finds(monkeypatch):
    asked: list[bool] = []
    real = flips.cheapest

    def counted(*arguments, **more):
        answer = real(*arguments, **more)
        asked.append(answer.row is not None)
        return answer

    monkeypatch.setattr(flips, "cheapest", counted)
    several = none = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        matrix = ROWS[rng.integers(0, len(ROWS), 30)]
        tree = grow(random_draft(rng, 1 + seed % 2), matrix, rng.integers(0, 2, 30), schema=SCHEMA, classes=("a", "b"))
        permissions = [[Permission(), UP, NEVER][int(rng.integers(3))] for _ in range(4)] + [Permission()]
        known = statistics(SCHEMA, matrix)
        flipper = Flipper(tree, known, permissions)
        for row in matrix[:4]:
            expected = best_by_enumeration(tree, row, permissions, [s.scale for s in known])
            found = flipper.find(row)
            if expected is None:
                none += 1
                assert found.flip is None, seed
                continue
            assert found.flip is not None, seed
            several += expected[0] > 1
            assert (len(found.flip.columns), found.flip.distance) == (expected[0], pytest.approx(expected[1])), seed
            assert found.flip.proved
    # The test means something only if many programs were solved, with and without a solution.
    assert several > 10
    assert none > 10
    assert sum(asked) > 10
    assert asked.count(False) > 10


NUMBERS = tuple(ColumnSchema(name=f"x{j}", kind=ColumnKind.NUMERIC) for j in range(3))
DOWN = Permission(up=False)


def random_planes(rng, depth) -> Draft:
    if depth == 0:
        return DraftLeaf(label=int(rng.random() < 0.25))
    split = Linear(
        features=(0, 1, 2),
        levels=(-1,) * 3,
        coefficients=tuple(float(a) for a in rng.choice([-2.0, -1.0, 0.5, 1.0, 3.0], 3)),
        threshold=float(rng.integers(-3, 9)) + 0.3,  # many rows with tenths lie exactly on this threshold
    )
    return DraftBranch(split=split, left=random_planes(rng, depth - 1), right=random_planes(rng, depth - 1))


@pytest.mark.slow
def test_joint_changes_reach_rows_exactly_on_threshold():
    several = proved = 0
    for seed in range(100):  # the smallest change of 42 and 51 lies exactly on a hyperplane
        rng = np.random.default_rng(seed)
        matrix = rng.integers(0, 4, (30, 3)).astype(float)
        matrix[:, 0] = rng.integers(0, 40, 30) / 10
        matrix[0, 0] = 0.1
        tree = grow(random_planes(rng, 3), matrix, rng.integers(0, 2, 30), schema=NUMBERS, classes=("a", "b"))
        known = statistics(NUMBERS, matrix)
        permissions = [[Permission(), UP, DOWN][int(rng.integers(3))] for _ in range(3)]
        flipper = Flipper(tree, known, permissions)
        # The programs search this grid: the training values, widened by their range on both sides.
        grid = np.array(list(itertools.product(np.arange(-40, 81) / 10, np.arange(-3.0, 7.0), np.arange(-3.0, 7.0))))
        labels = tree.predict(grid)
        for row in matrix[:3]:
            allowed = labels != tree.predict(row.reshape(1, -1))[0]
            for j, (p, s) in enumerate(zip(permissions, known, strict=True)):
                width = s.high - s.low
                allowed &= (grid[:, j] >= s.low - width - 1e-9) & (grid[:, j] <= s.high + width + 1e-9)
                allowed &= (p.up | (grid[:, j] <= row[j])) & (p.down | (grid[:, j] >= row[j]))
            count = (grid != row).sum(1)[allowed].tolist()
            costs = (np.abs(grid - row) / [s.scale for s in known]).sum(1)[allowed].tolist()
            expected = min(zip(count, costs, strict=True), default=None)
            if expected is None or expected[0] < 2:
                continue
            flip = flipper.find(row).flip
            assert flip is not None, seed
            if len(flip.columns) == 1:  # a single column may move further than the grid
                continue
            several += 1
            proved += flip.proved
            got = (len(flip.columns), flip.distance)
            # A proved change is the smallest. Without a proof the row may cost more, but never less.
            assert (
                got == (expected[0], pytest.approx(expected[1]))
                if flip.proved
                else got
                >= (
                    expected[0],
                    expected[1] - 1e-9,
                )
            ), seed
    assert several > 3
    assert proved == several, "rows exactly on a plane are cut off one by one"


def fine_tree(*, span: float) -> tuple[Tree, np.ndarray]:
    """Return a tree and rows with x near 1e9 in steps of 1e-6, and z in steps of 0.5.

    Class b needs both to grow: x + `span`·z > 1e9 + 3e-6.
    """
    schema = tuple(ColumnSchema(name=name, kind=ColumnKind.NUMERIC) for name in "xz")
    x, z = np.meshgrid([1e9 + k * 1e-6 for k in range(4)], [0.0, 0.5, 1.0, 1.5])
    matrix = np.column_stack([x.ravel(), z.ravel()])
    split = Linear(features=(0, 1), levels=(-1, -1), coefficients=(1.0, span), threshold=1e9 + 3.5e-6)
    draft = DraftBranch(split=split, left=DraftLeaf(label=0), right=DraftLeaf(label=1))
    labels = (matrix[:, 0] + span * matrix[:, 1] > split.threshold).astype(int)
    return grow(draft, matrix, labels, schema=schema, classes=("a", "b")), matrix


def test_fine_steps_far_from_zero_count_from_row_value():
    tree, matrix = fine_tree(span=1e-6)
    known = statistics(tree.schema, matrix)
    up = Permission(down=False)
    flipper = Flipper(tree, known, (up, up), least="total")
    x, z = np.meshgrid([round(1e9 + k * 1e-6, 6) for k in range(7)], [k / 10 for k in range(31)])
    others = np.column_stack([x.ravel(), z.ravel()])
    others = others[tree.predict(others) == 1]
    for row in matrix[tree.predict(matrix) == 0][:3]:
        answer = flipper.find(row)
        above = others[(others >= row).all(axis=1)]
        cheapest = min(sum(abs(o - r) / s.scale for o, r, s in zip(other, row, known, strict=True)) for other in above)
        assert answer.flip is not None, row
        assert answer.flip.distance == pytest.approx(cheapest, abs=1e-6)


def test_numbers_that_the_solver_does_not_take_settle_nothing():
    tree, matrix = fine_tree(span=1e-6)
    tiny = tuple(replace(statistic, scale=1e-30) for statistic in statistics(tree.schema, matrix))
    answer = Flipper(tree, tiny, least="total").find(np.array([1e9, 0.123456789123]))
    assert answer.flip is None or not answer.flip.proved
