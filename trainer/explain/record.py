"""Write explained rows as dictionaries for `explain --json` and the API."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from trainer.dtypes import FloatArray
from trainer.explain.flip import Flip, Flipper, FlipResult
from trainer.explain.region import Sum
from trainer.table import ColumnKind
from trainer.tree.nodes import Node, Tree
from trainer.tree.numbers import category_text
from trainer.tree.splits.base import AMONG, BETWEEN, EMPTY, IS_EMPTY, SUM, VALUE, Flat


def explain_row(flipper: Flipper, row: FloatArray, number: int, target: int | None = None) -> dict[str, Any]:
    """Explain a row, float64 of shape (columns,), and return the record.

    `flip` is the smallest change in the order `least`, or None with the reason in `no_flip`. The `distance` of a step is from the value
    to the threshold in the column's unit; `deviations` is the same in standard deviations of the training rows, None for categories.
    `empty` lists the columns whose empty cells decide the step, and `empty_seen` is True if training rows had such cells. `filled` has the
    numbers that a sum reads in place of empty cells. `out_of_range` lists the used columns with a value outside the training range, if any.
    """
    tree = flipper.tree
    result = flipper.find(row, target)
    head: dict[str, Any] = {"row": number, "label": None, "leaf": None, "probabilities": None, "path": []}
    if not any(math.isnan(row[j]) for j in tree.refused_columns):
        leaf = int(tree.apply(row.reshape(1, -1))[0])
        shares = tree.probabilities[leaf].tolist()
        head |= {
            "label": tree.classes[int(tree.labels[leaf])],
            "leaf": leaf,
            "probabilities": dict(zip(tree.classes, shares, strict=True)),
            "path": path(flipper, row, leaf),
        }
        outside = tree.outside(row.reshape(1, -1))[0]
        if outside.any():
            head["out_of_range"] = [tree.schema[tree.used_columns[k]].name for k in np.flatnonzero(outside)]
    return head | _flips(flipper, row, result, head["leaf"])


def path(flipper: Flipper, row: FloatArray, leaf: int) -> list[dict[str, Any]]:
    """Return a record for each split on the path to the leaf."""
    tree = flipper.tree
    return [
        _step(flipper, tree.nodes[a], row, b == tree.nodes[a].left)
        for a, b in itertools.pairwise(tree.path_to(leaf))
        if tree.nodes[a].split is not None
    ]


def _step(flipper: Flipper, node: Node, row: FloatArray, left: bool) -> dict[str, Any]:
    tree = flipper.tree
    if node.split is None:
        raise ValueError(f"node {node.id} is a leaf")
    flat = node.split.flat(tree.schema)
    head: dict[str, Any] = {"node": node.id, "answer": "yes" if left else "no"}
    empty = node.split.empty_in(row)
    if empty:
        head |= {"empty": [tree.schema[j].name for j in empty], "empty_seen": node.split.missing_seen}
    if flat.test == SUM:
        return head | _sum_step(tree, flat, row, left)
    j = flat.feature
    head |= {"column": tree.schema[j].name, "value": cell(flipper, j, float(row[j]))}
    if flat.test == AMONG:
        names = [tree.schema[j].categories[c] for c, member in enumerate(flat.member) if member]
        return head | {"op": "in" if left else "not in", "threshold": names, "distance": None, "deviations": None}
    if flat.test == IS_EMPTY:
        op = "is missing" if left else "is not missing"
        return head | {"op": op, "threshold": None, "distance": None, "deviations": None}
    ends = [end for end in (flat.low, flat.high) if math.isfinite(end)]
    has_distance = not empty and not tree.schema[j].ranks
    distance = min((abs(float(row[j]) - end) for end in ends), default=None) if has_distance else None
    deviation = flipper.statistics[j].deviation
    head |= {"distance": distance, "deviations": distance / deviation if distance is not None and deviation else None}
    if flat.test == BETWEEN:
        bounds = [_limit(flipper, j, end) if math.isfinite(end) else None for end in (flat.low, flat.high)]
        return head | {"op": "between" if left else "not between", "threshold": bounds}
    return head | {"op": "<=" if left else ">", "threshold": _limit(flipper, j, flat.high)}


def _limit(flipper: Flipper, j: int, end: float) -> float | str:
    """Return a threshold for display: the word of the highest rank below it, or the number."""
    return flipper.tree.schema[j].rank_word(end) or end


def _sum_step(tree: Tree, flat: Flat, row: FloatArray, left: bool) -> dict[str, Any]:
    """Return the record of a sum against its threshold; the sum is None if an empty cell decides."""
    terms: dict[str, float] = {}
    filled: dict[str, float] = {}
    triples = tuple((f, level, a) for (f, level), a in zip(flat.terms, flat.coefficients, strict=True))
    values = Sum(terms=triples, threshold=flat.high, left=left, fills=flat.fills).values(row)
    total: float | None = 0.0
    for (f, level, a), value in zip(triples, values, strict=True):
        column = tree.schema[f]
        if level == EMPTY:
            level_name = "empty"
        else:
            level_name = column.categories[level] if level >= 0 else ""
        key = f"[{column.name} is {level_name}]" if level_name else column.name
        terms[key] = terms.get(key, 0.0) + a
        total = None if total is None or math.isnan(value) else total + a * value
        if level == VALUE and math.isnan(row[f]) and not math.isnan(value):
            filled[column.name] = value
    record: dict[str, Any] = {
        "column": None, "terms": terms, "value": total, "op": "<=" if left else ">", "threshold": flat.high,
        "distance": None if total is None else abs(total - flat.high), "deviations": None,
    }  # fmt: skip
    return record | ({"filled": filled} if filled else {})


def _flips(flipper: Flipper, row: FloatArray, result: FlipResult, leaf: int | None) -> dict[str, Any]:
    asked_columns = set() if leaf is None else _columns_on_path(flipper.tree, leaf)
    return {
        "least": flipper.least,
        "flip": None if result.flip is None else flip_record(flipper, row, result.flip, asked_columns),
        "alternatives": [flip_record(flipper, row, flip, asked_columns) for flip in result.alternatives],
        "no_flip": result.reason,
    }


def _columns_on_path(tree: Tree, leaf: int) -> set[int]:
    splits = (tree.nodes[node].split for node in tree.path_to(leaf))
    return {j for split in splits if split is not None for j in split.used}


def flip_record(flipper: Flipper, row: FloatArray, flip: Flip, asked_columns: set[int]) -> dict[str, Any]:
    """Return a flip with its label and leaf, from and to of each changed column, and its distance.

    `unasked` has the values of the columns on the path to its leaf that are not `asked_columns`, those on the row's own path.
    """
    tree = flipper.tree
    unasked = sorted(_columns_on_path(tree, flip.leaf) - asked_columns)
    return {
        "label": tree.classes[int(tree.labels[flip.leaf])],
        "leaf": flip.leaf,
        "changes": {
            tree.schema[j].name: [cell(flipper, j, float(row[j])), cell(flipper, j, float(flip.row[j]))]
            for j in flip.columns
        },
        "columns": len(flip.columns),
        "unasked": {tree.schema[j].name: cell(flipper, j, float(row[j])) for j in unasked},
        "distance": flip.distance,
        "proved": flip.proved,
    }


def cell(flipper: Flipper, j: int, value: float) -> float | int | str | None:
    """Return a value for display: the name of a category or rank, integers without a point, None if it is missing."""
    column = flipper.tree.schema[j]
    if math.isnan(value):
        return None
    if column.kind is ColumnKind.CATEGORICAL:
        code = int(value)
        return column.categories[code] if 0 <= code < len(column.categories) else category_text(column, value)
    if value.is_integer() and (word := column.rank_word(value)) is not None:
        return word
    return int(value) if value.is_integer() and abs(value) < 1e15 else value
