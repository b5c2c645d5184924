"""Cases and oracles of `test_odt.py` that other tests use, too."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from trainer.data.problem import Problem
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table


def problem_of(columns, codes, kinds):
    made = []
    for j, (values, kind) in enumerate(zip(columns, kinds, strict=True)):
        values = np.asarray(values, float)
        categories = tuple(f"c{i}" for i in range(int(values.max()) + 1)) if kind is ColumnKind.CATEGORICAL else ()
        made.append(Column(schema=ColumnSchema(name=f"g{j}", kind=kind, categories=categories), cells=values))
    labels = Labels(name="y", classes=tuple(f"k{k}" for k in range(max(codes) + 1)), codes=np.asarray(codes, np.int32))
    return Problem(table=Table(columns=tuple(made), row_numbers=np.arange(1, len(codes) + 1)), labels=labels)


def partitions(problem, card):
    """Return all sets of rows that a split sends left: subsets of categories, and thresholds."""
    found = {frozenset()}
    n = len(problem.y)
    for column in problem.table.columns:
        values = sorted(set(column.values))
        if column.kind is ColumnKind.CATEGORICAL:
            # The limit counts only categories that occur.
            chosen = [c for r in range(len(values) + 1) for c in combinations(values, r)]
            chosen = [c for c in chosen if not card or min(len(c), len(values) - len(c)) <= card]
        else:
            chosen = [tuple(values[:r]) for r in range(len(values) + 1)] + [
                tuple(values[r:]) for r in range(len(values))
            ]
        found |= {frozenset(i for i in range(n) if column.values[i] in c) for c in chosen}
    return found


def brute(problem, shape, card):
    tests = partitions(problem, card)
    known = {}

    def value(shape, rows):
        if shape is None:
            return max((sum(problem.y[i] == k for i in rows) for k in set(problem.y)), default=0)
        key = (shape, rows)
        if key not in known:
            known[key] = max(value(shape.left, rows & test) + value(shape.right, rows - test) for test in tests)
        return known[key]

    return value(shape, frozenset(range(len(problem.y))))


def random_problem(seed, classes=3, categories=4):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 14))
    p = int(rng.integers(1, 4))
    kinds = [ColumnKind.CATEGORICAL if rng.random() < 0.7 else ColumnKind.NUMERIC for _ in range(p)]
    columns = [rng.integers(0, int(rng.integers(1, categories + 1)), n) for _ in range(p)]
    classes = int(rng.integers(1, classes + 1))
    return problem_of(columns, [int(c) for c in rng.integers(0, classes, n)], kinds)
