"""Write a tree as plain data for `tree_engine.js` in a browser.

Nothing else of the model is written. Numbers are read back as the same doubles. Infinite ends are null. Only columns that the tree
uses are written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from trainer.data.column_statistics import ColumnStatistics
from trainer.explain.around import learned_empty
from trainer.explain.permission import FREE, Permission
from trainer.table import ColumnKind, ColumnSchema, EmptySide
from trainer.tree.nodes import Node, Tree
from trainer.tree.numbers import label, unit
from trainer.tree.render.layout import brief_tree, rule
from trainer.tree.splits.base import AMONG, IS_EMPTY, SUM, Split

OTHER = "another one"  # stands for all categories that a tree without training figures does not name
# for each categorical column, maps codes of the model to codes of the exported data
Places = Mapping[int, Mapping[int, int]]


def tree_data(
    tree: Tree,
    statistics: Sequence[ColumnStatistics],
    permissions: Sequence[Permission] | None = None,
    *,
    rows: bool = True,
    unseen: Sequence[tuple[int, int]] | None = None,
) -> dict[str, Any]:
    """Return classes, columns and nodes of a tree.

    Without `rows` the data hold no figures of training rows: no counts, and only the units of the model file. One category then
    represents all that neither a split nor a permission names. A column that refuses unknown values keeps all its categories.
    `unseen` has for each node its correct held-out rows, and all held-out rows that reach it.
    """
    place = {j: at for at, j in enumerate(tree.used_columns)}
    codes = _codes(tree, permissions, rows)
    brief = brief_tree(tree)
    return {
        "classes": list(tree.classes),
        "columns": [
            _column(
                tree.schema[j],
                statistics[j],
                codes.get(j, {}),
                rows=rows,
                answers_empty=j not in tree.refused_columns,
                refuses=j in tree.unknown_refused,
            )
            for j in tree.used_columns
        ],
        "nodes": [
            _node(tree, brief, v, place, codes, rows)
            | ({"u": list(unseen[v.id])} if unseen is not None and v.is_leaf else {})
            for v in tree.nodes
        ],
    }


def permission_records(tree: Tree, permissions: Sequence[Permission], *, rows: bool = True) -> list[dict[str, Any]]:
    """Return the permissions of the used columns, in the codes of `tree_data` with the same arguments."""
    codes = _codes(tree, permissions, rows)

    def record(j: int) -> dict[str, Any]:
        p = permissions[j]
        reached = None if p.codes is None else [codes[j][c] for c in p.codes]
        return {"up": p.up, "down": p.down, "whole": p.whole, "codes": reached}

    return [record(j) for j in tree.used_columns]


def _codes(tree: Tree, permissions: Sequence[Permission] | None, rows: bool) -> Places:
    """Map the category codes of each categorical column to their codes in the exported data.

    Without `rows`, include only the categories that a split or a permission names, and all of a column that refuses
    unknown values.
    """
    groups = [j for j in tree.used_columns if tree.schema[j].kind is ColumnKind.CATEGORICAL]
    if rows:
        return {j: {c: c for c in range(len(tree.schema[j].categories))} for j in groups}
    needed: dict[int, set[int]] = {j: set((permissions[j] if permissions else FREE).codes or ()) for j in groups}
    for j in tree.unknown_refused:  # these columns refuse unknown values, so the browser needs all known ones
        needed[j].update(range(len(tree.schema[j].categories)))
    for v in tree.branches:
        flat = v.split.flat(tree.schema) if v.split is not None else None
        if flat is None:
            continue
        if flat.test == SUM:
            for f, level in flat.terms:
                if level >= 0:
                    needed[f].add(level)
        elif flat.test == AMONG:
            needed[flat.feature].update(c for c, member in enumerate(flat.member) if member)
        elif flat.feature in needed:  # no method compares categories with a threshold; export all
            needed[flat.feature].update(range(len(tree.schema[flat.feature].categories)))
    return {j: {c: at for at, c in enumerate(sorted(column_codes))} for j, column_codes in needed.items()}


def _column(
    column: ColumnSchema,
    known: ColumnStatistics,
    codes: Mapping[int, int],
    *,
    rows: bool,
    answers_empty: bool,
    refuses: bool,
) -> dict[str, Any]:
    record: dict[str, Any] = {"name": column.name, "shown": label(column.name), "kind": str(column.kind)}
    record["unit"] = unit(column)
    if column.kind is ColumnKind.CATEGORICAL:
        empty = column.missing_code
        record["categories"] = [column.categories[c] for c in codes]
        record["missing"] = None if empty is None else codes.get(empty)
        if answers_empty:
            record["empty"] = True
        if not rows and not refuses:  # always added, so that it does not reveal whether there are others
            record["other"] = len(codes)
            record["categories"].append(OTHER)
        if refuses:
            record["refuses"] = True
    else:
        record["empty"] = answers_empty
        record |= {"ranks": list(column.ranks)} if column.ranks else {}
        record |= {"decimals": known.decimals, "scale": known.scale if rows else column.change_unit or 1.0}
        if rows and column.range is not None:
            record["range"] = list(column.range)
            if column.special:
                record["codes"] = list(column.special)
    return record


def _node(tree: Tree, brief: Tree, v: Node, place: dict[int, int], codes: Places, rows: bool) -> dict[str, Any]:
    record: dict[str, Any] = {"r": v.rows} if rows else {}
    if v.split is None:
        return record | {"l": v.label} | ({"c": list(v.counts)} if rows else {})
    text = v.split.text(tree.schema, 8)
    test = _test(tree, v.split, place, codes)
    short = rule(brief, v.split)  # a shorter text for small pictures
    return record | {"q": text, "t": test, "y": v.left, "n": v.right} | ({"b": short} if len(short) < len(text) else {})


def _test(tree: Tree, split: Split, place: dict[int, int], codes: Places) -> dict[str, Any]:
    flat = split.flat(tree.schema)
    empty: dict[str, Any] = {}
    if split.missing is not EmptySide.REFUSE and not flat.fills:
        empty["e"] = int(flat.empty_left)
    if flat.fills:
        empty["fill"] = [None if math.isnan(x) else x for x in flat.fills]
    if learned := [place[f] for f in split.used if learned_empty(tree, split, f)]:
        empty["w"] = learned
    if flat.test == SUM:
        terms = zip(flat.terms, flat.coefficients, strict=True)
        return {
            "k": flat.test,
            "h": flat.high,
            "s": [[place[f], codes[f][level] if level >= 0 else level, a] for (f, level), a in terms],
        } | empty
    record: dict[str, Any] = {"k": flat.test, "f": place[flat.feature]} | empty
    if flat.test == IS_EMPTY:
        return record | {"e": 1}
    if flat.test == AMONG:
        return record | {"m": [codes[flat.feature][code] for code, member in enumerate(flat.member) if member]}
    ends = {"lo": flat.low, "h": flat.high}
    # the browser reads null as infinity, so that an interval without an end stays correct
    return record | {name: end if math.isfinite(end) else None for name, end in ends.items()}
