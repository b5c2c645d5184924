"""Time the search for the smallest counterfactual of a row.

Run: python benchmarks/flips.py. Prints medians in milliseconds for trees of 64 leaves with thresholds and subsets, and
for trees of hyperplanes. Trees and rows are random with fixed seeds.
"""

from __future__ import annotations

import statistics as stats
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from trainer.data.column_statistics import statistics
from trainer.explain.flip import Flipper
from trainer.explain.permission import FREE, Permission
from trainer.table import ColumnKind, ColumnSchema
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf, Tree, grow
from trainer.tree.splits import Linear, Split, Subset, Threshold

ROWS = 2_000
NUMBERS = 20
GROUPS = 5
LEVELS = 6
NEVER = Permission(up=False, down=False)


def draft(rng: np.random.Generator, depth: int, matrix: np.ndarray, *, planes: bool, share: float) -> Draft:
    if depth == 0:
        return DraftLeaf(label=int(rng.random() < share))
    left, right = (draft(rng, depth - 1, matrix, planes=planes, share=share) for _ in range(2))
    return DraftBranch(split=plane(rng, matrix) if planes else question(rng, matrix), left=left, right=right)


def question(rng: np.random.Generator, matrix: np.ndarray) -> Split:
    j = int(rng.integers(NUMBERS + GROUPS))
    if j < NUMBERS:
        return Threshold(feature=j, threshold=float(rng.choice(matrix[:, j])))
    codes = np.flatnonzero(rng.random(LEVELS) < 0.5)
    return Subset(feature=j, codes=tuple(int(c) for c in codes))


def plane(rng: np.random.Generator, matrix: np.ndarray) -> Split:
    a = rng.normal(size=NUMBERS)
    threshold = float(np.median(matrix[:, :NUMBERS] @ a))
    return Linear(
        features=tuple(range(NUMBERS)), coefficients=tuple(a.tolist()), threshold=threshold, levels=(-1,) * NUMBERS
    )


def case(seed: int, depth: int, *, planes: bool, share: float) -> tuple[Tree, np.ndarray]:
    rng = np.random.default_rng(seed)
    numbers = np.round(rng.normal(size=(ROWS, NUMBERS)) * 10, 2)
    matrix = np.column_stack([numbers, rng.integers(0, LEVELS, (ROWS, GROUPS)).astype(float)])
    schema = [ColumnSchema(name=f"x{j}", kind=ColumnKind.NUMERIC) for j in range(NUMBERS)]
    names = tuple(f"c{k}" for k in range(LEVELS))
    schema += [ColumnSchema(name=f"g{j}", kind=ColumnKind.CATEGORICAL, categories=names) for j in range(GROUPS)]
    tree_draft = draft(rng, depth, matrix, planes=planes, share=share)
    return grow(tree_draft, matrix, rng.integers(0, 2, ROWS), schema=schema, classes=("a", "b")), matrix


def measure(name: str, depth: int, *, planes: bool, rows: int, free: int = 0, share: float = 0.5) -> None:
    seconds = []
    columns = []
    flips = 0
    proved = 0
    for seed in range(3):
        tree, matrix = case(seed, depth, planes=planes, share=share)
        allowed = [FREE] * len(tree.schema)
        if free:
            allowed = [Permission(down=False) if j % 2 else FREE for j in range(len(tree.schema))]
            allowed[free:] = [NEVER] * (len(tree.schema) - free)
        flipper = Flipper(tree, statistics(tree.schema, matrix), allowed)
        flipper.find(matrix[0])
        for row in matrix[:rows]:
            start = time.process_time()
            answer = flipper.find(row)
            seconds.append(time.process_time() - start)
            if answer.flip is not None:
                flips += 1
                proved += answer.flip.proved
                columns.append(len(answer.flip.columns))
    most = max(columns, default=0)
    print(
        f"{name}: {1000 * stats.median(seconds):.2f} ms per row (median), {1000 * max(seconds):.1f} ms at most; "
        f"{flips} of {len(seconds)} rows have a flip, of at most {most} columns, {proved} proved"
    )


if __name__ == "__main__":
    measure("64 leaves, thresholds and subsets", 6, planes=False, rows=200)
    measure("8 leaves, hyperplanes of 20 columns", 3, planes=True, rows=20)
    measure("8 leaves, hyperplanes, half the columns only up or fixed", 3, planes=True, rows=20, free=8)
    measure("16 leaves, hyperplanes, one answer in few leaves, 4 columns", 4, planes=True, rows=20, free=4, share=0.1)
