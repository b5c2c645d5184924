"""Select, sort, page and export rows for the model page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import numpy as np

from octweb.registry.page import performance
from octweb.registry.page.scene import TRAINING, UNSEEN, ModelScene
from trainer.data.formats.spreadsheet import text_line
from trainer.table import ColumnKind, ColumnSchema
from trainer.tree.describe import category_text
from trainer.tree.numbers import column_value
from trainer.tree.render.names import short_names
from trainer.tree.render.palette import swatch

PAGE = 50
HEAD_NAME = 28  # letters of a column name in a table head, which has two or three lines
LINE = "line"
ACTUAL = "actual"
PREDICTED = "predicted"
LEAF = "leaf"


@dataclass(frozen=True, kw_only=True)
class RowQuery:
    """A selection of rows: those of `part` that pass `node`, optionally of one actual or predicted class, and their order."""

    part: str = TRAINING
    node: int = 0
    actual: int | None = None
    predicted: int | None = None
    wrong: bool = False
    sort: str = LINE
    descending: bool = False
    page: int = 1

    def address(self, **changes: Any) -> str:
        """Return the query string of this selection with some changes."""
        # `not in (None, False)` would drop class 0, because 0 equals False
        values = {n: v for n, v in {**vars(self), **changes}.items() if v is not None and v is not False}
        return urlencode({name: 1 if value is True else value for name, value in values.items()})


def row_query(scene: ModelScene, query: Mapping[str, str]) -> RowQuery:
    """Parse the query. Invalid values are ignored."""
    parts = scene.parts or (TRAINING,)
    classes = len(scene.tree.classes)
    columns = len(scene.tree.schema)
    sort = query.get("sort", LINE)
    limits = sort in (LINE, ACTUAL, PREDICTED, LEAF) or _number(sort.removeprefix("c"), columns) is not None
    return RowQuery(
        part=query.get("part", "") if query.get("part") in parts else parts[-1],
        node=_number(query.get("node", ""), len(scene.tree.nodes)) or 0,
        actual=_number(query.get("actual", ""), classes),
        predicted=_number(query.get("predicted", ""), classes),
        wrong=query.get("wrong", "") in ("1", "on"),
        sort=sort if limits else LINE,
        descending=query.get("descending", "") == "1",
        page=max(1, _number(query.get("page", ""), 10**7) or 1),
    )


def positions(scene: ModelScene, query: RowQuery) -> np.ndarray:
    """Return the positions of the selected rows, in order."""
    rows = scene.rows
    if rows is None:
        return np.zeros(0, np.int64)
    at = scene.reaching(query.node, query.part)
    actual = rows.codes[at]
    predicted = scene.predicted[at]
    keep = np.ones(len(at), bool)
    if query.actual is not None:
        keep &= actual == query.actual
    if query.predicted is not None:
        keep &= predicted == query.predicted
    if query.wrong:
        keep &= actual != predicted
    at = at[keep]
    order = np.argsort(_key(scene, query.sort, at), kind="stable")
    return at[order[::-1] if query.descending else order]


def table(scene: ModelScene, query: RowQuery) -> dict[str, Any]:
    """Return a page of the rows for the template: heads with their sorting URLs, and cells as text."""
    all_rows = positions(scene, query)
    pages = max(1, math.ceil(len(all_rows) / PAGE))
    page = min(query.page, pages)
    page_rows = all_rows[(page - 1) * PAGE : page * PAGE]
    columns = _columns(scene, query.node)
    heads = [_head(query, LINE, line_word(scene)), _head(query, ACTUAL, "actual"), _head(query, PREDICTED, "predicted")]
    names = short_names([c.name for c in scene.tree.schema], HEAD_NAME)
    heads += [_head(query, f"c{j}", names[j], of=scene.tree.schema[j]) for j in columns]
    return {
        "asked": query,
        "heads": heads,
        "rows": [_row(scene, int(i), columns) for i in page_rows],
        "count": len(all_rows),
        "wrong": int((scene.rows.codes[all_rows] != scene.predicted[all_rows]).sum()) if scene.rows is not None else 0,
        "page": page,
        "pages": pages,
        "first": (page - 1) * PAGE + 1,
        "last": (page - 1) * PAGE + len(page_rows),
        "before": query.address(page=page - 1) if page > 1 else "",
        "after": query.address(page=page + 1) if page < pages else "",
        "csv": query.address(page=None),
        "parts": [{"name": p, "here": p == query.part, "address": query.address(part=p, page=1)} for p in scene.parts],
        "only_wrong": query.address(wrong=not query.wrong, page=1),
    }


def cell_of(scene: ModelScene) -> dict[str, Any] | None:
    """Describe the selected cell of the confusion matrix: its classes, rows and leaves. None if no cell is selected."""
    query = row_query(scene, scene.query)
    if query.actual is None or query.predicted is None or scene.rows is None:
        return None
    rows = positions(scene, query)
    classes = scene.tree.classes
    return {
        "actual": classes[query.actual],
        "predicted": classes[query.predicted],
        "address": query.address(page=None, sort=None, node=None),
        "part": part_words(query.part),
        "rows": len(rows),
        "ends": performance.where_they_end(scene, rows),
    }


def csv_of(scene: ModelScene, query: RowQuery) -> Iterator[str]:
    """Yield all selected rows as CSV: line, row, leaf, actual and predicted class, and every column with full precision."""
    rows = scene.rows
    tree = scene.tree
    assert rows is not None
    names = [c.name for c in tree.schema]
    yield text_line(["line", "row", "leaf", "actual", "predicted", *names])
    for i in positions(scene, query).tolist():
        line = int(rows.lines[i]) if rows.lines is not None else ""
        classes = [tree.classes[rows.codes[i]], tree.classes[scene.predicted[i]]]
        values = [exact_text(tree.schema[j], float(rows.matrix[i, j])) for j in range(len(names))]
        yield text_line([line, int(rows.numbers[i]), int(scene.leaf_of[i]), *classes, *values])


def line_word(scene: ModelScene) -> str:
    """Return the word for a row's label: "line", or "row" if lines are unknown."""
    return "row" if scene.rows is None else scene.rows.called


def part_words(part: str) -> str:
    """Return the name of a part, as used in a sentence."""
    return "unseen rows" if part == UNSEEN else "training rows"


def _columns(scene: ModelScene, node: int) -> list[int]:
    """Order the columns: those on the path to the node, those of the node and below it, and then the others."""
    tree = scene.tree
    order = []
    below = list(np.flatnonzero(scene.below(node)).tolist())
    for at in [node, *tree.path_to(node)[::-1], *below]:
        split = tree.nodes[at].split
        order += list(split.used) if split is not None else []
    return list(dict.fromkeys([*order, *range(len(tree.schema))]))


def _row(scene: ModelScene, i: int, columns: list[int]) -> dict[str, Any]:
    rows = scene.rows
    tree = scene.tree
    assert rows is not None
    actual = int(rows.codes[i])
    predicted = int(scene.predicted[i])
    return {
        "line": int(rows.shown[i]),
        "leaf": int(scene.leaf_of[i]),
        "actual": tree.classes[actual],
        "actual_code": actual,
        "actual_look": swatch(actual, len(tree.classes)),
        "predicted": tree.classes[predicted],
        "predicted_code": predicted,
        "predicted_look": swatch(predicted, len(tree.classes)),
        "wrong": actual != predicted,
        "cells": [_cell(tree.schema[j], float(rows.matrix[i, j])) for j in columns],
    }


def _head(query: RowQuery, key: str, words: str, of: ColumnSchema | None = None) -> dict[str, Any]:
    is_sorted = query.sort == key
    direction = "descending" if query.descending else "ascending"
    return {
        "words": words,
        "full": of.name if of else words,
        "unit": of.unit if of else "",
        "number": key.startswith("c") or key == LINE,
        "sorted": direction if is_sorted else "none",
        "address": query.address(sort=key, descending=is_sorted and not query.descending, page=1),
    }


def _key(scene: ModelScene, sort: str, at: np.ndarray) -> np.ndarray:
    rows = scene.rows
    assert rows is not None
    if sort == ACTUAL:
        return rows.codes[at]
    if sort == PREDICTED:
        return scene.predicted[at]
    if sort == LEAF:
        return scene.leaf_of[at]
    if sort.startswith("c"):
        return rows.matrix[at, int(sort[1:])]
    return rows.numbers[at]


def _cell(column: Any, value: float) -> str:
    if column.kind is ColumnKind.CATEGORICAL:
        return category_text(column, value)
    return column_value(column, value)  # rounding could move a value to the other side of a threshold


def exact_text(column: Any, value: float) -> str:
    if math.isnan(value):
        return ""
    if column.kind is ColumnKind.CATEGORICAL:
        return category_text(column, value)
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _number(text: str, below: int) -> int | None:
    """Parse an integer from 0 to `below` − 1. Return None for other texts."""
    if text.isascii() and text.isdigit() and len(text) < 9 and int(text) < below:
        return int(text)
    return None
