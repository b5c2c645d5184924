"""Cases and oracles of `test_flip.py` that other tests use, too."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from trainer.explain.permission import Permission
from trainer.table import ColumnKind, ColumnSchema, EmptySide, MissingPolicy
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf, grow
from trainer.tree.splits import Interval, Linear, Missing, Subset, Threshold
from trainer.tree.splits.base import EMPTY

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
LEARNING = tuple(
    c if c.kind is ColumnKind.CATEGORICAL else replace(c, missing=MissingPolicy.LEARN, fill=1.0) for c in SCHEMA
)
CLASSES = ("a", "b", "c")


def grid(j, permission):
    """Return all relevant values to which column `j` may change. The caller adds its own value."""
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


def with_side(rng, split):
    """Return the split with a side for empty cells. Some test emptiness (thresholds) or fill the cell (sums)."""
    if isinstance(split, Threshold) and rng.random() < 0.2:
        return Missing(feature=split.feature)
    if isinstance(split, Linear) and rng.random() < 0.5:
        numbers = [h for h, level in enumerate(split.levels) if level < 0]
        levels = [*split.levels, EMPTY]
        fills = [1.0 if level < 0 else math.nan for level in split.levels] + [math.nan]
        return replace(
            split,
            features=(*split.features, split.features[int(rng.choice(numbers))]),
            coefficients=(*split.coefficients, float(rng.choice([-2.0, 1.5, 4.0]))),
            levels=tuple(levels),
            fills=tuple(fills),
            missing=EmptySide.FILL,
        )
    return split.with_empty(EmptySide(rng.choice(["left", "right"])))


def random_draft(rng, depth, sums, holes=False) -> Draft:
    if depth == 0 or rng.random() < 0.1:
        return DraftLeaf(label=int(rng.integers(3)))
    left, right = (random_draft(rng, depth - 1, sums, holes) for _ in range(2))
    split = random_split(rng, sums)
    return DraftBranch(split=with_side(rng, split) if holes else split, left=left, right=right)


def random_case(seed, *, sums, holes=False):
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
        matrix[:, 0] = 2.0  # makes the column constant
    draft = random_draft(rng, 1 + seed % 3, sums, holes)
    codes = rng.integers(0, 3, n)
    permissions = tuple(
        CHOICES[int(rng.integers(5 if j < 2 else 1))] if rng.random() < 0.5 else CHOICES[0] for j in range(4)
    )
    if holes:
        matrix[:, :3][rng.random((n, 3)) < 0.4] = np.nan
        permissions = tuple(replace(p, fill=j < 3 and rng.random() < 0.7) for j, p in enumerate(permissions))
    tree = grow(draft, matrix, codes, schema=LEARNING if holes else SCHEMA, classes=CLASSES)
    return tree, matrix, permissions
