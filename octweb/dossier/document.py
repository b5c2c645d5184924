"""Render the record of a dossier as HTML for screen and print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.template.loader import render_to_string

from octweb.core import badges
from octweb.core.methods import title_of
from trainer.training.claims import parts_claim
from trainer.tree.nodes import Tree
from trainer.tree.render import paper

MATRIX = 8  # with more classes, the document lists the most frequent mistakes instead of a matrix
MAX_LISTED_MISTAKES = 40  # maximum number of listed kinds of mistakes
ACTUAL = {"unseen": "unseen rows", "training": "training rows"}
NOTHING = "not evaluated"


def to_html(record: Mapping[str, Any], tree: Tree) -> str:
    """Render the document from a record (docs/dossier.md) and its tree."""
    about = record["about"]
    claim = record["claim"]
    title = str(about.get("title") or record["model"]["name"] or f"A tree for {record['model']['target']}")
    best = next((part for part in ("unseen", "training") if record["performance"][part]), "training")
    context = {
        "record": record,
        "about": about,
        "method": title_of(record["model"]["method"]) if record["model"]["method"] else "",
        "title": title,
        "running": css_text(f"octweb · dossier · {_short(title)} · {record['made']['at'][:10]}"),
        "badge": _badge(claim),
        "checked": _check_summary(record),
        "purpose": [(label, text) for label, text in (about.get("purpose") or {}).items() if text],
        "pictures": paper.pictures(tree),
        "swatches": [(name, paper.colour(k, len(tree.classes))) for k, name in enumerate(tree.classes)],
        "part": best,
        "part_words": ACTUAL[best],
        "measured": record["performance"][best],
        "matrix": _matrix(record, best) if len(tree.classes) <= MATRIX else None,
        "mistakes": _mistakes(record, best) if len(tree.classes) > MATRIX else None,
        "most_mistakes": MAX_LISTED_MISTAKES,
        "classes": _classes(record, best),
        "own_classes": tree.classes if len(tree.classes) <= 3 else (),
        "subgroups": record["subgroups"],
        "group_words": ACTUAL[record["subgroups"]["rows"]],
        "stability": _stability(record["stability"]),
        "settings": _settings(record["model"]["parameters"]),
        "asked": [c for c in record["data"]["columns"] if c["asked"]],
        "others": [c for c in record["data"]["columns"] if not c["asked"]],
        "model_name": about.get("model_file") or "model.json",
        "review": about.get("review"),
        "signing": about.get("signing"),
    }
    return render_to_string("dossier/document.html", context)


def _settings(parameters: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the settings that apply, by name. An unlimited depth is included, because it widens the claim."""
    stated = {name: value for name, value in parameters.items() if value not in (None, "")}
    if parameters.get("depth", 0) is None:
        stated["depth"] = "no limit"
    return sorted(stated.items())


def css_text(text: str) -> str:
    """Quote a text as a CSS string. Special characters are escaped, so none can end the string."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c == " ") else f"\\{ord(c):x} " for c in text)
    return f'"{plain}"'


def _short(text: str) -> str:
    return text if len(text) <= 50 else text[:49].rstrip() + "…"


def _check_summary(record: Mapping[str, Any]) -> str:
    """Return the result of the check in words. A proved bound does not make the tree optimal."""
    verdict = record["check"]["verdict"]
    if verdict == "proved" and record["claim"]["kind"] == "gap":
        return "bound and gap checked again: proved; the tree is not proved optimal"
    return f"checked again: {verdict}"


def _badge(claim: Mapping[str, Any]) -> tuple[str, str]:
    """Return the style and the words of the claim."""
    parts = parts_claim(claim)
    if parts is not None:
        return ("proved" if parts.proved == parts.total else "gap"), parts.words
    return badges.LOOK[claim["kind"]][0], claim["words"]


def _matrix(record: Mapping[str, Any], part: str) -> list[dict[str, Any]]:
    """Return the rows of the confusion matrix: actual class, counts by predicted class, recall."""
    performance = record["performance"][part]
    return [
        {
            "class": name,
            "cells": [(count, j == k) for j, count in enumerate(performance["confusion"][k])],
            "found": performance["found"][k],
        }
        for k, name in enumerate(record["model"]["classes"])
    ]


def _mistakes(record: Mapping[str, Any], part: str) -> list[tuple[str, str, int]]:
    """Return the most frequent mistakes: actual class, predicted class, number of rows."""
    names = record["model"]["classes"]
    counts = record["performance"][part]["confusion"]
    every = [(names[i], names[j], n) for i, row in enumerate(counts) for j, n in enumerate(row) if i != j and n]
    return sorted(every, key=lambda one: -one[2])[:MAX_LISTED_MISTAKES]


def _classes(record: Mapping[str, Any], part: str) -> list[tuple[str, Any, Any]]:
    """Return each class with its recall and precision."""
    performance = record["performance"][part]
    return list(zip(record["model"]["classes"], performance["found"], performance["precision"], strict=True))


def _stability(stability: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the agreement of the folds' trees: shares, rows (0 if they are not known), leaves and tested columns."""
    if stability is None:
        return None
    shares = [one["share"] for one in stability["agreement"] if one["share"] is not None]
    rows, same = (sum(one[name] for one in stability["agreement"]) for name in ("rows", "right"))
    return {
        "trees": stability["trees"],
        "share": same / rows if rows else None,
        "lowest": min(shares, default=None),
        "highest": max(shares, default=None),
        "rows": rows,
        "fewest": min(stability["leaves"]),
        "most": max(stability["leaves"]),
        "asked": list(stability["asked"].items()),
    }
