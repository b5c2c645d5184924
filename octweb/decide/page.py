"""Build the context of a decision page from the decision's record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from octweb.decide.asked import DecisionRequest, controls
from octweb.decide.facts import decision
from octweb.decide.pictures import rows_picture, share_picture
from octweb.registry.document.units import statistics_of
from octweb.registry.page.rowsets import line_word
from octweb.registry.page.scene import ModelScene
from trainer.explain.carried import tree_data
from trainer.explain.least import ORDERS
from trainer.explain.statistics import with_costs
from trainer.explain.words import step_text, unasked_text, value_text
from trainer.table import ColumnKind, ColumnSchema
from trainer.tree.numbers import label, number_text, schema_number, unit
from trainer.tree.render.names import short_names
from trainer.tree.render.palette import swatch
from trainer.tree.splits import Split

NEAR = 0.5  # standard deviations; a value closer to the threshold is called near
FEW_TERMS = 3  # a weighted sum of at most this many columns is written out
MAX_HEADING_LETTERS = 14  # maximum letters of a column name above similar rows; the tooltip shows the whole name
CHANGE = 24  # maximum letters of a column name in the list of changes, where long names wrap
LISTED_NAMES = 12


def context(scene: ModelScene, request: DecisionRequest) -> dict[str, Any]:
    """Return the context of the page. It has no decision if the row is invalid or reaches no leaf."""
    tree = scene.tree
    head: dict[str, Any] = {
        "model": scene.model,
        "inside": scene.inside,
        "has_rows": scene.rows is not None,
        "called": line_word(scene),
        "asked": request,
        "controls": controls(scene, request),
        "many": len(tree.used_columns) > LISTED_NAMES,
        "orders": ORDERS.items(),
        "classes": tree.classes,
        "wanted": None if request.wanted is None else tree.classes[request.wanted],
        "decision": None,
    }
    if request.row is None:
        return head
    record = decision(scene, request)
    if record["leaf"] is None:
        return head | {"trouble": record["no_flip"]}
    columns = {c.name: c for c in tree.schema}
    code = tree.classes.index(record["label"])
    spoken = dict(zip(tree.classes, tree.class_words, strict=True))
    steps = [_step(scene, request, n, step) for n, step in enumerate(record["path"], start=1)]
    return head | {
        "decision": _with_class_words(record, spoken),
        "wanted": spoken.get(head["wanted"]),
        "look": swatch(code, len(tree.classes)),
        "legend": [{"label": c, "look": swatch(k, len(tree.classes))} for k, c in enumerate(tree.class_words)][:8],
        "steps": steps,
        "pictured": any(step["picture"] for step in steps),
        "certainty": record["certainty"],
        "shares": share_picture(record["certainty"]["training"], record["certainty"]["unseen"])
        if record["certainty"]["training"]
        else None,
        "flips": _with_short_names(
            [flip_view(f | {"label": spoken[f["label"]]}, columns, request.change) for f in flips_of(record)]
        ),
        "similar": _similar(record["similar"], tree.classes),
        "units": units(scene, request, record),
        "gaps": gaps_view([_gap_with_class_words(gap, spoken) for gap in record["gaps"]]),
        "carried": tree_data(tree, statistics_of(scene.model, inside=scene.inside)[0]),
    }


def _with_class_words(record: Mapping[str, Any], spoken: Mapping[str, str]) -> dict[str, Any]:
    """Return the record of a decision with its classes in words."""
    reasons = record["reasons"]
    principal = [own | {"without": spoken.get(own["without"], own["without"])} for own in reasons["principal"]]
    return {
        **record,
        "label": spoken[record["label"]],
        "actual": spoken.get(record["actual"], record["actual"]),
        "reasons": reasons | {"principal": principal},
    }


def _gap_with_class_words(gap: Mapping[str, Any], spoken: Mapping[str, str]) -> dict[str, Any]:
    """Return the answers for a missing and an unknown value with their classes in words."""
    answers = {name: gap[name] and gap[name] | {"label": spoken[gap[name]["label"]]} for name in ("missing", "unknown")}
    return {**gap, **answers}


def flips_of(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the counterfactual and its alternatives, or [] if there is none."""
    return [record["flip"], *record["alternatives"]] if record["flip"] else []


def _step(scene: ModelScene, request: DecisionRequest, number: int, step: dict[str, Any]) -> dict[str, Any]:
    tree = scene.tree
    node = tree.nodes[step["node"]]
    assert node.split is not None
    assert request.row is not None
    column = next((c for c in tree.schema if c.name == step["column"]), None)
    single = len(node.split.used) == 1
    return {
        "number": number,
        "node": step["node"],
        "question": _question(node.split, tree.schema),
        "name": label(step["column"]) if step["column"] else "Weighted sum",
        "terms": [(number_text(a, full=True), name) for name, a in (step.get("terms") or {}).items()],
        "value": _with_unit(step["value"], column)
        if column is not None
        else node.split.value_text(tree.schema, request.row),
        "answer": step["answer"],
        "away": step_text(step) if step.get("empty") else away_words(step, column),
        "picture": rows_picture(scene, node, float(request.row[node.split.used[0]]))
        if single and not step.get("empty")
        else None,
        "rows": node.rows,
    }


def _question(split: Split, schema: Sequence[ColumnSchema]) -> str:
    """Return the split in words.

    For a sum of many columns, return only its threshold, because the page lists the terms below.
    """
    plane = split.plane() if len(split.used) > FEW_TERMS else None
    return split.text(schema, 6) if plane is None else f"Is it ≤ {number_text(plane[1], full=True)}"


def gaps_view(gaps: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the columns with an answer for missing or unknown values, and the names of columns that refuse them."""
    refused = [label(g["column"]) for g in gaps if g["missing"] is None]
    answered = [g for g in gaps if g["missing"]]
    return {
        "unknown": any(g["unknown"] for g in gaps),
        "unseen": any(not g["missing"]["seen"] for g in answered),
        "answered": [g for g in gaps if g["missing"] or g["unknown"]],
        "refused": refused[:LISTED_NAMES],
        "more": max(0, len(refused) - LISTED_NAMES),
        "all": len(refused),
    }


def away_words(step: Mapping[str, Any], column: ColumnSchema | None) -> str:
    """Describe the distance of the value from the threshold, such as "just 0.5 points from the line". "" if unknown."""
    if step["distance"] is None:
        return ""
    away = f"{number_text(step['distance'], 4)}{unit(column) if column else ''}"
    near = step["deviations"] is not None and step["deviations"] < NEAR
    return f"just {away} from the line" if near else f"{away} from the line"


def flip_view(
    flip: Mapping[str, Any], columns: Mapping[str, ColumnSchema], change: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a counterfactual in words and numbers for the page."""
    changes = [
        {
            "name": label(name),
            "from": _with_unit(a, columns[name]),
            "to": _with_unit(b, columns[name]),
            "by": by_words(a, b, columns[name]),
            "may": may_words(change.get(name, "free")),
        }
        for name, (a, b) in flip["changes"].items()
    ]
    return {
        "label": flip["label"],
        "changes": changes,
        "size": number_text(flip["distance"], 3),
        "proved": flip["proved"],
        "columns": flip["columns"],
        "unasked": unasked_text(flip),
        "unasked_names": [label(name) for name in flip["unasked"]],
    }


def _with_unit(value: Any, column: ColumnSchema) -> str:
    if isinstance(value, int | float):
        return schema_number(column, float(value)) + unit(column)
    return value_text(value, column.name) + ("" if value is None else unit(column))


def _with_short_names(flips: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the counterfactuals with short column names in their changes."""
    names = list(dict.fromkeys(c["name"] for f in flips for c in f["changes"]))
    short = dict(zip(names, short_names(names, CHANGE), strict=True))
    return [f | {"changes": [c | {"short": short[c["name"]]} for c in f["changes"]]} for f in flips]


def by_words(a: Any, b: Any, column: ColumnSchema) -> str:
    """Describe the distance of a numeric change, such as "200 € more". "" for other columns."""
    if column.kind is not ColumnKind.NUMERIC or a is None or column.ranks:
        return ""
    return f"{number_text(float(f'{abs(b - a):.12g}'), full=True)}{unit(column)} {'more' if b > a else 'less'}"


def may_words(words: Any) -> str:
    """Return a permission in words."""
    if isinstance(words, list):
        return "only to " + ", ".join(words)
    return {
        "free": "yes",
        "up": "only up",
        "down": "only down",
        "whole": "whole numbers",
        "fill": "may be filled in",
        "never": "never",
    }.get(words, str(words).replace(",", ", "))


def _similar(record: dict[str, Any] | None, classes: tuple[str, ...]) -> dict[str, Any] | None:
    if not record or not record["rows"]:
        return None
    names = list(record["rows"][0]["values"])[:5]
    rows = [
        r
        | {
            "cells": [value_text(r["values"].get(n), n) for n in names],
            "look": swatch(classes.index(r["actual"]), len(classes)),
        }
        for r in record["rows"]
    ]
    return record | {"names": list(zip(short_names(names, MAX_HEADING_LETTERS), names, strict=True)), "rows": rows}


def units(scene: ModelScene, request: DecisionRequest, record: Mapping[str, Any]) -> str:
    """Describe the unit of distance of each changed column."""
    statistics = with_costs(scene.tree.schema, statistics_of(scene.model, inside=scene.inside)[0], request.cost)
    names = {name for flip in flips_of(record) for name in flip["changes"]}
    parts = [
        f"{number_text(s.scale, 3)}{unit(c)} of {label(c.name)}"
        for c, s in zip(scene.tree.schema, statistics, strict=True)
        if c.name in names and not c.categories
    ]
    parts += [f"another category of {label(c.name)}" for c in scene.tree.schema if c.name in names and c.categories]
    return " or ".join(parts[:6])
