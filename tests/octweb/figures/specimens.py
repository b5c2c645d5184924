"""Trees and rows for tests of figures, with any number of leaves and classes and every kind of split."""

from __future__ import annotations

from typing import Any

import numpy as np

from trainer.table import ColumnKind, ColumnSchema
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf, Tree, grow
from trainer.tree.splits import Interval, Linear, Split, Subset, Threshold

CATEGORIES = ("almond", "creosote", "foul", "anise", "musty", "none", "pungent", "spicy", "<i>fishy</i>")
SCHEMA = (
    ColumnSchema(name="worst area", kind=ColumnKind.NUMERIC, unit="mm²"),
    ColumnSchema(name="a_very_long_column_name_that_never_seems_to_end", kind=ColumnKind.NUMERIC),
    ColumnSchema(name="<b>bold & brave</b>", kind=ColumnKind.NUMERIC),
    ColumnSchema(name="odor", kind=ColumnKind.CATEGORICAL, categories=CATEGORIES),
)
SPLITS: dict[str, Split] = {
    "threshold": Threshold(feature=0, threshold=0.1),
    "interval": Interval(feature=0, low=-0.5, high=0.8),
    "open interval": Interval(feature=1, low=-np.inf, high=0.2),
    "plane": Linear(features=(0, 1), coefficients=(-0.7, 1.3), threshold=0.1, levels=(-1, -1)),
    "subset": Subset(feature=3, codes=(0, 3, 5, 7)),
    "many": Linear(features=(0, 1, 2, 3), coefficients=(1.0, -2.0, 0.5, 0.7), threshold=0.3, levels=(-1, -1, -1, 2)),
}


def rows(n: int, classes: int, seed: int = 0) -> tuple[Any, Any]:
    """Return a matrix (n, 4) with a few missing values, and class codes that depend on it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 3] = rng.integers(0, len(CATEGORIES), n)
    score = X[:, 0] - X[:, 1] + 0.3 * (X[:, 3] > 4) + 0.4 * rng.normal(size=n)
    codes = np.clip(np.floor((score + 2.5) / 5 * classes), 0, classes - 1).astype(np.int32)
    X[rng.random(n) < 0.02, 0] = np.nan
    return X, codes


def names(classes: int) -> tuple[str, ...]:
    """Return class names; some are long, and one looks like HTML."""
    return tuple(
        ["benign", "malignant", "<script>x", "a class name much longer than the room it has"][:classes]
    ) + tuple(f"class {k}" for k in range(4, classes))


def one_split(kind: str, *, n: int = 400, classes: int = 2) -> tuple[Tree, Any, Any]:
    """Return a tree with one split of this kind, and its rows."""
    X, codes = rows(n, classes)
    draft = DraftBranch(split=SPLITS[kind], left=DraftLeaf(), right=DraftLeaf())
    return grow(draft, X, codes, schema=SCHEMA, classes=names(classes)), X, codes


def tree_of(leaves: int, *, classes: int = 3, seed: int = 0, n: int = 900) -> Tree:
    """Return a tree with exactly this many leaves, and with random shape and splits."""
    rng = np.random.default_rng(seed)
    X, codes = rows(n, classes, seed)
    kinds = list(SPLITS.values())

    def build(k: int) -> Draft:
        if k == 1:
            return DraftLeaf()
        left = int(rng.integers(max(1, k // 3), max(1, k - k // 3) + 1)) if k > 2 else 1
        left = min(left, k - 1)
        split = kinds[int(rng.integers(len(kinds)))]
        return DraftBranch(split=split, left=build(left), right=build(k - left))

    return grow(build(leaves), X, codes, schema=SCHEMA, classes=names(classes))
