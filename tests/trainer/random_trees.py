"""Random tables and trees with all kinds of splits, and a slow router that shares no code with the kernel."""

from __future__ import annotations

import math

import numpy as np

from trainer.table import ColumnKind, ColumnSchema
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf, Tree, grow
from trainer.tree.splits import Interval, Linear, Split, Subset, Threshold

AWKWARD = (
    "worst area",
    'quo"te',
    "apo's",
    "back\\slash",
    "a<b&c>",
    "label",
    "größe",
    "x,y",
    "row",
    "{brace}",
    "per%",
    "leaf",
)
LEVELS = ("almond", "", "it's", 'say "x"', "a\\", "<tag>&amp;", "two words", "ünï", "1", "(missing)", "%s", "-- no")


def random_schema(rng: np.random.Generator, columns: int) -> tuple[ColumnSchema, ...]:
    """`columns` columns of all kinds with awkward names; at least one is numeric."""
    schema = []
    for j in range(columns):
        kind = ColumnKind.NUMERIC if j == 0 else ColumnKind(rng.choice(["numeric", "categorical", "binary"]))
        levels = tuple(rng.choice(LEVELS, size=int(rng.integers(1, 7)), replace=False).tolist())
        name = AWKWARD[j % len(AWKWARD)] + ("" if j < len(AWKWARD) else str(j))
        schema.append(ColumnSchema(name=name, kind=kind, categories=levels if kind is ColumnKind.CATEGORICAL else ()))
    return tuple(schema)


def random_matrix(rng: np.random.Generator, schema: tuple[ColumnSchema, ...], rows: int, *, holes: bool) -> np.ndarray:
    """Values with many ties; with `holes` also NaN, unknown categories and infinities."""
    out = np.empty((rows, len(schema)))
    for j, column in enumerate(schema):
        if column.kind is ColumnKind.CATEGORICAL:
            out[:, j] = rng.integers(0, len(column.categories) + int(holes), rows)
        elif column.kind is ColumnKind.BINARY:
            out[:, j] = rng.integers(0, 2, rows)
        else:
            out[:, j] = (
                rng.integers(-8, 9, rows) / 10
                if rng.random() < 0.5
                else rng.normal(size=rows) * 10.0 ** rng.integers(-3, 4)
            )
    if holes:
        out[rng.random(out.shape) < 0.05] = np.nan
        numeric = [j for j, column in enumerate(schema) if column.kind is ColumnKind.NUMERIC]
        out[rng.integers(0, rows, 2), rng.choice(numeric, 2)] = (math.inf, -math.inf)
    return out


def random_split(rng: np.random.Generator, schema: tuple[ColumnSchema, ...], matrix: np.ndarray) -> Split:
    """A split whose threshold is often exactly a value (or a sum) of a row."""
    numbers = [j for j, c in enumerate(schema) if c.kind is not ColumnKind.CATEGORICAL]
    groups = [j for j, c in enumerate(schema) if c.kind is ColumnKind.CATEGORICAL]
    kind = rng.choice(["threshold", "interval", "linear", "subset"] if groups else ["threshold", "interval", "linear"])
    if kind == "subset":
        j = int(rng.choice(groups))
        size = len(schema[j].categories)
        codes = np.flatnonzero(rng.random(size) < 0.5)
        return Subset(feature=j, codes=tuple(int(c) for c in codes))
    j = int(rng.choice(numbers))
    if kind == "threshold":
        return Threshold(feature=j, threshold=_value(rng, matrix[:, j]))
    if kind == "interval":
        low, high = sorted((_value(rng, matrix[:, j]), _value(rng, matrix[:, j])))
        return Interval(
            feature=j, low=-math.inf if rng.random() < 0.2 else low, high=math.inf if rng.random() < 0.2 else high
        )
    features = []
    levels = []
    for _ in range(int(rng.integers(1, 5))):
        j = int(rng.choice(len(schema)))
        features.append(j)
        size = len(schema[j].categories)
        levels.append(int(rng.integers(size)) if size else -1)
    coefficients = tuple(float(a) for a in rng.choice([1.0, -1.0, 0.1, -0.3, 7314.25, 1 / 3], len(features)))
    row = matrix[int(rng.integers(len(matrix)))]
    total = naive_sum(row, features, coefficients, levels)
    return Linear(
        features=tuple(features),
        coefficients=coefficients,
        threshold=total if math.isfinite(total) else 0.25,
        levels=tuple(levels),
    )


def _value(rng: np.random.Generator, values: np.ndarray) -> float:
    """A finite value of the column, or a number between them."""
    finite = values[np.isfinite(values)]
    return float(rng.choice(finite)) if len(finite) and rng.random() < 0.8 else float(rng.normal())


def random_draft(
    rng: np.random.Generator, schema: tuple[ColumnSchema, ...], matrix: np.ndarray, depth: int, classes: int
) -> Draft:
    """A draft of at most `depth`; leaves with and without a label."""
    if depth == 0 or rng.random() < 0.15:
        return DraftLeaf(label=int(rng.integers(classes)) if rng.random() < 0.5 else None)
    return DraftBranch(
        split=random_split(rng, schema, matrix),
        left=random_draft(rng, schema, matrix, depth - 1, classes),
        right=random_draft(rng, schema, matrix, depth - 1, classes),
    )


def random_tree(seed: int, *, rows: int = 60, holes: bool = True, depth: int = 5) -> tuple[Tree, np.ndarray]:
    """A tree over random columns and the matrix (rows, columns) that it was grown from."""
    rng = np.random.default_rng(seed)
    schema = random_schema(rng, int(rng.integers(1, 12)))
    matrix = random_matrix(rng, schema, rows, holes=holes)
    classes = ("yes", 'no <&> "it\'s"', "größer", "back\\slash")[: int(rng.integers(1, 5))]
    draft = random_draft(rng, schema, matrix, int(rng.integers(0, depth + 1)), len(classes))
    codes = rng.integers(0, len(classes), rows).astype(np.int32)
    return grow(draft, matrix, codes, schema=schema, classes=classes), matrix


def naive_sum(row: np.ndarray, features: list[int], coefficients: tuple[float, ...], levels: list[int]) -> float:
    total = 0.0
    for feature, coefficient, level in zip(features, coefficients, levels, strict=True):
        value = float(row[feature])
        total += coefficient * (value if level < 0 else float(value == level))
    return total


def naive_left(split: Split, row: np.ndarray) -> bool:
    """Whether one row goes left, in plain Python."""
    if isinstance(split, Threshold):
        return float(row[split.feature]) <= split.threshold
    if isinstance(split, Interval):
        return split.low < float(row[split.feature]) <= split.high
    if isinstance(split, Subset):
        return float(row[split.feature]) in split.codes
    return naive_sum(row, list(split.features), split.coefficients, list(split.levels)) <= split.threshold


def naive_leaf(tree: Tree, row: np.ndarray) -> int:
    """The leaf of one row, in plain Python."""
    v = tree.nodes[0]
    while v.split is not None:
        v = tree.nodes[v.left if naive_left(v.split, row) else v.right]
    return v.id


def cells(tree: Tree, row: np.ndarray) -> dict[str, float | str | None]:
    """The row as a person would give it: categories as text, missing as None, an unknown code as unknown text."""
    record: dict[str, float | str | None] = {}
    for value, column in zip(row, tree.schema, strict=True):
        if np.isnan(value):
            record[column.name] = None
        elif column.kind is ColumnKind.CATEGORICAL:
            known = value < len(column.categories)
            record[column.name] = column.categories[int(value)] if known else "never seen before"
        else:
            record[column.name] = float(value)
    return record
