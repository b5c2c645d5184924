"""A tree as plain data that a browser reads: what `tree_engine.js` works on, and nothing else of the model.

Numbers are written so that reading them gives the same doubles; infinite ends are null. Columns are those that the tree asks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from trainer.explain.permission import Permission
from trainer.explain.statistics import ColumnStatistics
from trainer.table import MISSING_CATEGORY, ColumnSchema, Kind, MissingPolicy
from trainer.tree.nodes import Node, Tree
from trainer.tree.numbers import label, unit
from trainer.tree.splits.base import AMONG, SUM, Split


def carried(
    tree: Tree,
    statistics: Sequence[ColumnStatistics],
    *,
    rows: bool = True,
    unseen: Sequence[tuple[int, int]] | None = None,
) -> dict[str, Any]:
    """Classes, columns and nodes; without `rows` no number of training rows and no unit that was learned from them.

    `unseen` are, for each node, the held-out rows that it answers rightly, and all that reach it.
    """
    place = {j: at for at, j in enumerate(tree.used_columns)}
    return {
        "classes": list(tree.classes),
        "columns": [_column(tree.schema[j], statistics[j], rows) for j in tree.used_columns],
        "nodes": [
            _node(tree, v, place, rows) | ({"u": list(unseen[v.id])} if unseen is not None and v.is_leaf else {})
            for v in tree.nodes
        ],
    }


def permitted(tree: Tree, permissions: Sequence[Permission]) -> list[dict[str, Any]]:
    """What may change, for the columns that the tree asks."""
    return [
        {"up": p.up, "down": p.down, "whole": p.whole, "codes": None if p.codes is None else list(p.codes)}
        for p in (permissions[j] for j in tree.used_columns)
    ]


def _column(column: ColumnSchema, known: ColumnStatistics, rows: bool) -> dict[str, Any]:
    record: dict[str, Any] = {"name": column.name, "shown": label(column.name), "kind": str(column.kind)}
    record["unit"] = unit(column)
    if column.kind is Kind.CATEGORICAL:
        own = column.missing is MissingPolicy.CATEGORY and MISSING_CATEGORY in column.categories
        record["categories"] = list(column.categories)
        record["missing"] = column.categories.index(MISSING_CATEGORY) if own else None
    else:
        record |= {"decimals": known.decimals, "scale": known.scale if rows else 1.0}
    return record


def _node(tree: Tree, v: Node, place: dict[int, int], rows: bool) -> dict[str, Any]:
    record: dict[str, Any] = {"r": v.rows} if rows else {}
    if v.split is None:
        return record | {"l": v.label} | ({"c": list(v.counts)} if rows else {})
    return record | {"q": v.split.text(tree.schema, 8), "t": _test(tree, v.split, place), "y": v.left, "n": v.right}


def _test(tree: Tree, split: Split, place: dict[int, int]) -> dict[str, Any]:
    flat = split.flat(tree.schema)
    if flat.test == SUM:
        terms = zip(flat.terms, flat.coefficients, strict=True)
        return {"k": flat.test, "h": flat.high, "s": [[place[f], level, a] for (f, level), a in terms]}
    record: dict[str, Any] = {"k": flat.test, "f": place[flat.feature]}
    if flat.test == AMONG:
        return record | {"m": [code for code, member in enumerate(flat.member) if member]}
    ends = {"lo": flat.low, "h": flat.high}
    # a threshold is ≤ even where it is infinite: the browser reads null as infinity
    return record | {name: end if math.isfinite(end) else None for name, end in ends.items()}
