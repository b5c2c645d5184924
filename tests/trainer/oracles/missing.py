"""Oracle of missing values: brute force over trees that learn sides, and a reader of model files."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

import numpy as np

from trainer.table import Column, ColumnKind, ColumnSchema, Labels, MissingPolicy, Table


def random_table(rng: np.random.Generator, *, categories: bool = True, classes: int = 2) -> tuple[Table, Labels]:
    """Return a table of 8 to 30 rows with ties and empty cells.

    Most columns have 10 to 60 % empty cells. Some have only one value, or are empty in one class.
    """
    n = int(rng.integers(8, 31))
    codes = rng.integers(0, classes, n).astype(np.int32)
    codes[:classes] = np.arange(classes)
    columns = []
    for j in range(int(rng.integers(1, 4))):
        values = rng.integers(0, int(rng.integers(2, 7)), n).astype(float) / 2
        case = rng.random()
        if case < 0.1:
            values[np.arange(n) != int(rng.integers(n))] = np.nan
        elif case < 0.25:
            values[codes == 0] = np.nan
        elif case < 0.85:
            values[rng.random(n) < rng.uniform(0.1, 0.6)] = np.nan
        columns.append(Column(schema=_schema(f"x{j}", values), cells=values))
    if categories and rng.random() < 0.4:
        schema = ColumnSchema(
            name="c", kind=ColumnKind.CATEGORICAL, categories=("a", "b", "d"), missing=MissingPolicy.DROP
        )
        columns.append(Column(schema=schema, cells=rng.integers(0, 3, n).astype(float)))
    if rng.random() < 0.3:  # makes two rows in which all cells are empty
        for column in columns:
            if column.kind is not ColumnKind.CATEGORICAL:
                column.values[:2] = np.nan
    numbers = np.arange(1, n + 1)
    return Table(columns=tuple(columns), row_numbers=numbers), Labels(
        name="y", classes=tuple("ab cd".replace(" ", ""))[:classes], codes=codes
    )


def _schema(name: str, values: np.ndarray) -> ColumnSchema:
    present = values[~np.isnan(values)]
    kind = ColumnKind.BINARY if np.isin(present, (0.0, 1.0)).all() else ColumnKind.NUMERIC
    return ColumnSchema(name=name, kind=kind, missing=MissingPolicy.LEARN)


def partitions(table: Table) -> Iterator[np.ndarray]:
    """Yield the left side of every split.

    The splits are thresholds with empty cells on either side, emptiness, and single categories.
    """
    for column in table.columns:
        values = column.values
        if column.kind is ColumnKind.CATEGORICAL:
            yield from (values == code for code in range(len(column.schema.categories)))
            continue
        empty = np.isnan(values)
        yield empty
        for cut in np.unique(values[~empty])[:-1]:
            yield (values <= cut) & ~empty
            yield (values <= cut) | empty


def least_cost(table: Table, labels: Labels, weights: np.ndarray, depth: int, kappa: float) -> float:
    """Return the least weight of errors plus `kappa` for each leaf, over all trees of this depth."""
    n = len(table)
    sides = {int("".join("1" if x else "0" for x in left), 2) for left in partitions(table)}
    full = (1 << n) - 1
    by_class = [sum(1 << (n - 1 - i) for i in range(n) if labels.codes[i] == k) for k in range(len(labels.classes))]
    weight_of = {1 << (n - 1 - i): int(weights[i]) for i in range(n)}

    def weigh(mask: int) -> int:
        total = 0
        while mask:
            low = mask & -mask
            total += weight_of[low]
            mask ^= low
        return total

    @cache
    def cost(rows: int, height: int) -> float:
        counts = [weigh(rows & own) for own in by_class]
        best = sum(counts) - max(counts) + kappa
        if height == 0 or best <= kappa:
            return best
        for left in sides:
            inside = rows & left
            if inside and inside != rows:
                best = min(best, cost(inside, height - 1) + cost(rows & ~left, height - 1))
        return best

    return cost(full, depth)


def route(nodes: list[dict], columns: list[dict], row: dict[str, float | str | None]) -> int:
    """Return the leaf of a row. The nodes of the model file are read by the table in missing.md, section 1."""
    place = {column["name"]: column for column in columns}
    v = 0
    while "split" in nodes[v]:
        v = nodes[v]["left" if goes_left(nodes[v]["split"], place, row) else "right"]
    return v


def goes_left(split: dict, place: dict[str, dict], row: dict[str, float | str | None]) -> bool:
    """Return whether the row goes left. Raises AssertionError if the split refuses it."""
    kind = split["kind"]
    if kind == "linear":
        return _linear(split, place, row)
    cell = row[split["feature"]]
    if kind == "missing":
        return cell is None
    if kind == "subset":
        return cell in split["categories"]
    if cell is None:
        assert split.get("missing", "refuse") in ("left", "right"), split
        return split["missing"] == "left"
    if kind == "threshold":
        return cell <= split["threshold"]
    low = -math.inf if split["low"] is None else split["low"]
    high = math.inf if split["high"] is None else split["high"]
    return low < cell <= high


def _linear(split: dict, place: dict[str, dict], row: dict[str, float | str | None]) -> bool:
    total = 0.0
    names = split.get("categories") or [None] * len(split["features"])
    for name, category, coefficient in zip(split["features"], names, split["coefficients"], strict=True):
        cell = row[name]
        if category == "(missing)" and place[name]["kind"] != "categorical":
            value = float(cell is None)
        elif category is not None:
            value = float(cell == category)
        elif cell is None:
            if split["missing"] != "fill":
                return split["missing"] == "left"
            value = place[name]["fill"]
        else:
            value = cell
        total += coefficient * value
    return total <= split["threshold"]


def rows_of(table: Table) -> list[dict[str, float | str | None]]:
    """Return the rows as dictionaries, with None for an empty cell."""

    def cell(column: Column, i: int) -> float | str | None:
        value = float(column.values[i])
        if column.kind is ColumnKind.CATEGORICAL:
            return column.schema.categories[int(value)]
        return None if math.isnan(value) else value

    return [{column.name: cell(column, i) for column in table.columns} for i in range(len(table))]


Asked = tuple[int, str, np.ndarray]  # column, kind of split ("cut", "empty" or "level"), rows of the left side


def questions(table: Table) -> list[Asked]:
    """Return the splits of `partitions` with their columns and kinds. The left side of a cut has the smaller values."""
    found: list[Asked] = []
    for j, column in enumerate(table.columns):
        for left in partitions(Table(columns=(column,), row_numbers=table.row_numbers)):
            if column.kind is ColumnKind.CATEGORICAL:
                found.append((j, "level", left))
            else:
                found.append((j, "empty" if np.array_equal(left, np.isnan(column.values)) else "cut", left))
    return [(j, kind, left) for j, kind, left in found if left.any() and not left.all()]


Tree = tuple  # a leaf is (class,), a branch is (split, left, right)


def shallow_trees(table: Table, classes: int) -> Iterator[Tree]:
    """Yield all trees of depth two at most, with all combinations of classes at their leaves."""
    leaves = [(k,) for k in range(classes)]
    asked = questions(table)
    below = [*leaves, *((q, a, b) for q in asked for a in leaves for b in leaves)]
    yield from leaves
    for q in asked:
        for one in below:
            for two in below:
                yield (q, one, two)


def answers(tree: Tree, n: int) -> np.ndarray:
    """Return the class of each row, int64 (n,)."""
    if len(tree) == 1:
        return np.full(n, tree[0])
    (_, _, left), one, two = tree
    return np.where(left, answers(one, n), answers(two, n))


def leaf_sizes(tree: Tree, rows: np.ndarray, weights: np.ndarray) -> list[int]:
    """Return the weight of each leaf."""
    if len(tree) == 1:
        return [int(weights[rows].sum())]
    (_, _, left), one, two = tree
    return leaf_sizes(one, rows & left, weights) + leaf_sizes(two, rows & ~left, weights)


def paths(tree: Tree) -> list[tuple[int, ...]]:
    """Return the columns of the splits on each path."""
    if len(tree) == 1:
        return [()]
    (column, _, _), one, two = tree
    return [(column, *rest) for rest in paths(one) + paths(two)]


def leaf_classes(tree: Tree) -> list[int]:
    return [tree[0]] if len(tree) == 1 else leaf_classes(tree[1]) + leaf_classes(tree[2])


def rises(tree: Tree, column: int) -> bool:
    """Return whether no leaf below a cut of the column has a higher class than one above it."""
    if len(tree) == 1:
        return True
    (own, kind, _), one, two = tree
    ordered = own != column or kind != "cut" or max(leaf_classes(one)) <= min(leaf_classes(two))
    return ordered and rises(one, column) and rises(two, column)
