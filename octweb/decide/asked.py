"""Read the form of a decision page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.http import QueryDict

from octweb.registry.document.rows import example_row
from octweb.registry.page import content
from octweb.registry.page.scene import ModelScene
from octweb.registry.page.typed_numbers import typed_number
from trainer.data.rows import parse_rows
from trainer.dtypes import FloatArray
from trainer.errors import ParameterError, TrainerError
from trainer.explain.least import COLUMNS, ORDERS
from trainer.explain.permission import Permission, permissions
from trainer.explain.statistics import statistics_of_model, with_costs
from trainer.prediction.form_report import outside_notes
from trainer.table import MISSING_CATEGORY, ColumnKind, MissingPolicy
from trainer.tree.numbers import label

CHOICES = (
    ("free", "may change"),
    ("up", "only up"),
    ("down", "only down"),
    ("whole", "whole numbers"),
    ("up,whole", "up, whole"),
    ("down,whole", "down, whole"),
    ("never", "never"),
)
BINARY_CHOICES = (("free", "may change"), ("up", "only to 1"), ("down", "only to 0"), ("never", "never"))
FILL_CHOICE = ("fill", "may change; an empty cell may be filled in")
SOME = "some"
CATEGORY_CHOICES = (("free", "may change"), (SOME, "only to…"), ("never", "never"))


@dataclass(frozen=True, kw_only=True)
class DecisionRequest:
    """A parsed request of a decision page: the row, the permitted changes with their costs, and the wanted class.

    `row` is float64 (columns,). It is None if there is `trouble`, the error in words. `place` is its position in the
    table, None for typed rows. `number` is its line, or its row number if lines are unknown, and empty for typed rows.
    `wanted` is a class code, or None for any other class.
    """

    title: str
    row: FloatArray | None
    values: Mapping[str, Any]
    change: Mapping[str, Any]
    cost: Mapping[str, float]
    least: str
    allowed: tuple[Permission, ...]
    wanted: int | None
    place: int | None = None
    number: str = ""
    notes: tuple[str, ...] = ()
    trouble: str = ""


def asked_of(scene: ModelScene, form: QueryDict, marks: Mapping[str, Any]) -> DecisionRequest:
    """Parse a form. By default, the request is about the first row of the table, or an example row.

    `marks` are the permitted changes that the owner set. An invalid form gives a request with `trouble`.
    """
    change = _change(scene, form, marks)
    wanted_class = form.get("wanted", "")
    cost, trouble = _cost(scene, form)
    least = form.get("least", COLUMNS)
    if least not in ORDERS:
        trouble = f"Smallest change: '{least[:40]}' is not one of {', '.join(ORDERS)}. Choose one of them."
        least = COLUMNS
    wishes: dict[str, Any] = {
        "change": change,
        "cost": cost,
        "least": least,
        "allowed": permissions(scene.tree.schema, change),
        "wanted": scene.tree.classes.index(wanted_class) if wanted_class in scene.tree.classes else None,
    }
    if trouble:
        return DecisionRequest(
            title="A typed row",
            row=None,
            values=content.parse_form_values(scene.model, form.dict()),
            trouble=trouble,
            **wishes,
        )
    place, trouble = content.find_row(form, scene.rows)
    if trouble:
        number = (form.get("line") or form.get("row", ""))[:20]
        return DecisionRequest(title=f"Row {number}", row=None, values={}, number=number, trouble=trouble, **wishes)
    if place is not None:
        return _stored_record(scene, place, wishes)
    if "typed" in form:
        return _typed_record(scene, content.parse_form_values(scene.model, form.dict()), wishes, "A typed row")
    if scene.rows is not None and len(scene.rows.numbers):
        return _stored_record(scene, 0, wishes)
    return _typed_record(scene, example_row(scene.model, inside=scene.inside), wishes, "An example")


def _stored_record(scene: ModelScene, place: int, wishes: dict[str, Any]) -> DecisionRequest:
    """Return the request about the row at position `place` of the table."""
    rows = scene.rows
    assert rows is not None
    row = rows.matrix[place]
    number = int(rows.shown[place])
    title = f"{rows.called.capitalize()} {number:,}"
    return DecisionRequest(title=title, row=row, values=record(scene, row), place=place, number=str(number), **wishes)


def _typed_record(scene: ModelScene, values: dict[str, Any], wishes: dict[str, Any], title: str) -> DecisionRequest:
    tree = scene.tree
    try:
        parsed = parse_rows(tree.schema, tree.used_columns, [values], refused=tree.refused_columns)
    except TrainerError as error:
        words = str(error).removeprefix("rows[0]: ")
        return DecisionRequest(title=title, row=None, values=values, trouble=words, **wishes)
    notes = [str(note).removeprefix("rows[0]: ") for note in parsed.notes]
    notes += (*parsed.odd.notes, *outside_notes(tree, parsed.matrix))
    return DecisionRequest(title=title, row=parsed.matrix[0], values=values, notes=tuple(notes), **wishes)


def record(scene: ModelScene, row: FloatArray) -> dict[str, Any]:
    """Return the values of the columns that the tree tests, in the form that users type. Missing ones are left out."""
    values: dict[str, Any] = {}
    for j in scene.tree.used_columns:
        column = scene.tree.schema[j]
        value = float(row[j])
        if np.isnan(value):
            continue
        if column.kind is ColumnKind.CATEGORICAL:
            values[column.name] = column.categories[int(value)] if 0 <= value < len(column.categories) else ""
        else:
            values[column.name] = int(value) if value.is_integer() and abs(value) < 1e15 else value
    return values


def _change(scene: ModelScene, form: QueryDict, marks: Mapping[str, Any]) -> dict[str, Any]:
    """Return the permitted changes by column: those in the form, or else those that the owner set."""
    changes = {name: words for name, words in marks.items() if name in {c.name for c in scene.tree.schema}}
    for j in scene.tree.used_columns:
        column = scene.tree.schema[j]
        word = form.get(f"may-{j}", "")
        if column.kind is ColumnKind.CATEGORICAL and word == SOME:
            names = [n for n in form.getlist(f"to-{j}") if n in column.categories]
            changes[column.name] = names or "never"
        elif word in {w for w, _ in choices(column)}:
            changes[column.name] = word
    return changes


def _cost(scene: ModelScene, form: QueryDict) -> tuple[dict[str, float], str]:
    """Return the cost of a change of 1 for each column that the form prices, and the error message or ""."""
    prices: dict[str, Any] = {}
    for j in scene.tree.used_columns:
        if text := form.get(f"cost-{j}", "").strip():
            price = typed_number(text)
            if isinstance(price, str):
                name = label(scene.tree.schema[j].name)
                return {}, f"The cost of {name}, '{text[:40]}', is not a number. Write for example 0.5."
            prices[scene.tree.schema[j].name] = float(price)
    try:
        with_costs(scene.tree.schema, statistics_of_model(scene.tree), prices)
    except ParameterError as error:
        return {}, f"Cost of a change: {error}"
    return prices, ""


def choices(column: Any) -> tuple[tuple[str, str], ...]:
    """Return the possible permissions of a column as pairs of value and words."""
    if column.kind is ColumnKind.CATEGORICAL:
        return CATEGORY_CHOICES
    options = BINARY_CHOICES if column.kind is ColumnKind.BINARY else CHOICES
    return (*options, FILL_CHOICE) if column.missing is MissingPolicy.LEARN else options


def controls(scene: ModelScene, request: DecisionRequest) -> list[dict[str, Any]]:
    """Return field, permission, cost and reachable categories of each column that the tree tests."""
    lines = []
    for field in content.fields(scene.model, dict(request.values)):
        j = int(field["id"].removeprefix("try-"))
        column = scene.tree.schema[j]
        words = request.change.get(field["name"], "free")
        reached = words if isinstance(words, list) else []
        lines.append(
            field
            | {
                "index": j,
                "choices": choices(column),
                "cost": None if column.kind is ColumnKind.CATEGORICAL else request.cost.get(field["name"], ""),
                "words": SOME if isinstance(words, list) else words,
                "reachable": [{"name": n, "on": n in reached} for n in column.categories if n != MISSING_CATEGORY],
            }
        )
    return lines
