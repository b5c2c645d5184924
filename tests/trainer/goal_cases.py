"""Cases and oracles of `test_goal.py` that other tests use, too."""

from __future__ import annotations

import numpy as np

from trainer.registry import get
from trainer.solver_common.problem_setup import pose
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, MissingPolicy, Table

GOALS = ["f1", "mcc"]
ALL_THRESHOLDS = {"binarise": "all-thresholds"}  # a choice of thresholds would depend on the other settings


def random_case(seed, *, empty=True):
    """Return table, labels, weights or None, and parameters.

    Ties, equal rows, constant columns and empty cells occur.
    """
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(5, 26))
    schema = [ColumnSchema(name=f"x{j}", kind=ColumnKind.BINARY) for j in range(3)]
    cells = [rng.integers(0, 2, rows).astype(float) for _ in schema]
    if seed % 3 == 0:
        cells[0][:] = 1.0
    schema.append(ColumnSchema(name="length", kind=ColumnKind.NUMERIC, missing=MissingPolicy.LEARN))
    cells.append(rng.integers(0, 4, rows) / 2)
    if empty and seed % 2:
        cells[-1][rng.random(rows) < 0.3] = np.nan
    columns = tuple(Column(schema=s, cells=v) for s, v in zip(schema, cells, strict=True))
    codes = (rng.random(rows) < rng.choice([0.15, 0.3, 0.5])).astype(np.int32)
    codes[:2] = (0, 1)
    labels = Labels(name="y", classes=("no", "yes"), codes=codes)
    weights = rng.integers(1, 4, rows) if seed % 5 < 2 else None
    parameters = {"depth": int(rng.integers(1, 3)), "leaf_penalty": float(rng.choice([0.0, 0.02, 0.15]))}
    return Table(columns=columns, row_numbers=np.arange(rows)), labels, weights, parameters


def all_trees(answers, y, weights, depth, least=1):
    """Return the false negatives, false positives and leaves of all trees over yes/no answers (rows, questions)."""
    known = {}

    def trees(rows, height):
        key = rows.tobytes(), height
        if key not in known:
            found = {(int(weights[rows][y[rows] == 1].sum()), 0, 1), (0, int(weights[rows][y[rows] == 0].sum()), 1)}
            for question in range(answers.shape[1]) if height else ():
                yes = answers[rows, question]
                if min(weights[rows[yes]].sum(), weights[rows[~yes]].sum()) >= least:
                    sides = trees(rows[yes], height - 1), trees(rows[~yes], height - 1)
                    found |= {tuple(np.add(one, other).tolist()) for one in sides[0] for other in sides[1]}
            known[key] = found
        return known[key]

    return trees(np.arange(len(y)), depth)


def best_value(goal, trees, y, weights, penalty):
    positives = int(weights[y == 1].sum())
    negatives = int(weights[y == 0].sum())
    return max(
        goal.value(positives - fn, positives, negatives - fp, negatives) - penalty * leaves for fn, fp, leaves in trees
    )


def questions_of(method, table, labels, weights):
    if method == "exact":
        return (
            pose(table, labels, get("exact").settings(ALL_THRESHOLDS), weights=weights).binary.bits(table).astype(bool)
        )
    matrix = table.matrix()
    return np.column_stack([matrix[:, [j]] <= np.unique(matrix[:, j])[:-1] for j in range(matrix.shape[1])])
