"""Random tables and trees with all kinds of splits, and a slow router that shares no code with the kernel."""

from __future__ import annotations

import math

import numpy as np

from trainer.table import ColumnKind, ColumnSchema, EmptySide, MissingPolicy
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf, Tree, grow
from trainer.tree.splits import Interval, Linear, Missing, Split, Subset, Threshold
from trainer.tree.splits.base import EMPTY

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


def random_schema(rng: np.random.Generator, columns: int, *, learn: float = 0.6) -> tuple[ColumnSchema, ...]:
    """Return columns of all kinds with awkward names. At least one is numeric.

    A share `learn` of the numeric ones learns sides for empty cells.
    """
    schema = []
    for j in range(columns):
        kind = ColumnKind.NUMERIC if j == 0 else ColumnKind(rng.choice(["numeric", "categorical", "binary"]))
        levels = tuple(rng.choice(LEVELS, size=int(rng.integers(1, 7)), replace=False).tolist())
        name = AWKWARD[j % len(AWKWARD)] + ("" if j < len(AWKWARD) else str(j))
        if kind is ColumnKind.CATEGORICAL:
            schema.append(ColumnSchema(name=name, kind=kind, categories=levels))
        elif rng.random() < learn:
            fill = float(rng.integers(-3, 4)) / 2
            schema.append(ColumnSchema(name=name, kind=kind, missing=MissingPolicy.LEARN, fill=fill))
        else:
            schema.append(ColumnSchema(name=name, kind=kind))
    return tuple(schema)


def random_matrix(rng: np.random.Generator, schema: tuple[ColumnSchema, ...], rows: int, *, holes: bool) -> np.ndarray:
    """Return values with many ties. With `holes`, some are NaN, unknown categories or infinite."""
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
        learned = [column.missing is MissingPolicy.LEARN for column in schema]
        out[rng.random(out.shape) < np.where(learned, 0.2, 0.05)] = np.nan
        numeric = [j for j, column in enumerate(schema) if column.kind is ColumnKind.NUMERIC]
        out[rng.integers(0, rows, 2), rng.choice(numeric, 2)] = (math.inf, -math.inf)
    return out


def random_split(rng: np.random.Generator, schema: tuple[ColumnSchema, ...], matrix: np.ndarray) -> Split:
    """Return a split whose threshold often equals a value or sum of a row.

    It has a side for empty cells if the column learns one.
    """
    split = _present_split(rng, schema, matrix)
    if isinstance(split, Subset) or any(schema[j].missing is not MissingPolicy.LEARN for j in split.deciding):
        return split
    if isinstance(split, Threshold) and rng.random() < 0.2:
        return Missing(feature=split.feature)
    side = EmptySide(rng.choice(["left", "right", "refuse"]))
    if not isinstance(split, Linear) or rng.random() < 0.4:
        return split.with_empty(side, seen=side is EmptySide.REFUSE or bool(rng.random() < 0.7))
    value = [level < 0 for level in split.levels]
    empty = [is_value and rng.random() < 0.3 for is_value in value]
    return Linear(
        features=split.features,
        coefficients=split.coefficients,
        threshold=split.threshold,
        levels=tuple(EMPTY if e else level for e, level in zip(empty, split.levels, strict=True)),
        fills=tuple(
            schema[j].fill if v and not e else math.nan for j, v, e in zip(split.features, value, empty, strict=True)
        ),
        missing=EmptySide.FILL,
    )


def _present_split(rng: np.random.Generator, schema: tuple[ColumnSchema, ...], matrix: np.ndarray) -> Split:
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
    """Return a finite value of the column, or a random number."""
    finite = values[np.isfinite(values)]
    return float(rng.choice(finite)) if len(finite) and rng.random() < 0.8 else float(rng.normal())


def random_draft(
    rng: np.random.Generator, schema: tuple[ColumnSchema, ...], matrix: np.ndarray, depth: int, classes: int
) -> Draft:
    """Return a draft of at most this depth. Some of its leaves have a label."""
    if depth == 0 or rng.random() < 0.15:
        return DraftLeaf(label=int(rng.integers(classes)) if rng.random() < 0.5 else None)
    return DraftBranch(
        split=random_split(rng, schema, matrix),
        left=random_draft(rng, schema, matrix, depth - 1, classes),
        right=random_draft(rng, schema, matrix, depth - 1, classes),
    )


def random_tree(
    seed: int, *, rows: int = 60, holes: bool = True, depth: int = 5, learn: float = 0.6
) -> tuple[Tree, np.ndarray]:
    """Return a tree over random columns, and the matrix (rows, columns) from which it was grown."""
    rng = np.random.default_rng(seed)
    schema = random_schema(rng, int(rng.integers(1, 12)), learn=learn)
    matrix = random_matrix(rng, schema, rows, holes=holes)
    classes = ("yes", 'no <&> "it\'s"', "größer", "back\\slash")[: int(rng.integers(1, 5))]
    draft = random_draft(rng, schema, matrix, int(rng.integers(0, depth + 1)), len(classes))
    codes = rng.integers(0, len(classes), rows).astype(np.int32)
    return grow(draft, matrix, codes, schema=schema, classes=classes), matrix


def naive_sum(
    row: np.ndarray,
    features: list[int],
    coefficients: tuple[float, ...],
    levels: list[int],
    fills: tuple[float, ...] = (),
) -> float:
    total = 0.0
    for h, (feature, coefficient, level) in enumerate(zip(features, coefficients, levels, strict=True)):
        value = float(row[feature])
        if level == EMPTY:
            value = float(math.isnan(value))
        elif level >= 0:
            value = float(value == level)
        elif fills and math.isnan(value):
            value = fills[h]
        total += coefficient * value
    return total


def naive_left(split: Split, row: np.ndarray) -> bool:
    """Return whether one row goes left, in plain Python."""
    if isinstance(split, Missing):
        return math.isnan(row[split.feature])
    if isinstance(split, Linear):
        read = [f for f, level in zip(split.features, split.levels, strict=True) if level == -1]
    else:
        read = [split.feature]
    if split.missing in (EmptySide.LEFT, EmptySide.RIGHT) and any(math.isnan(row[j]) for j in read):
        return split.missing is EmptySide.LEFT
    if isinstance(split, Threshold):
        return float(row[split.feature]) <= split.threshold
    if isinstance(split, Interval):
        return split.low < float(row[split.feature]) <= split.high
    if isinstance(split, Subset):
        return float(row[split.feature]) in split.codes
    return naive_sum(row, list(split.features), split.coefficients, list(split.levels), split.fills) <= split.threshold


def naive_leaf(tree: Tree, row: np.ndarray) -> int:
    """Return the leaf of one row, in plain Python."""
    v = tree.nodes[0]
    while v.split is not None:
        v = tree.nodes[v.left if naive_left(v.split, row) else v.right]
    return v.id


def cells(tree: Tree, row: np.ndarray) -> dict[str, float | str | None]:
    """Return the row as a user would send it.

    Categories are texts, missing cells are None, and unknown codes are unknown texts.
    """
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
