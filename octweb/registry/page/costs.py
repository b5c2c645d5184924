"""Compute expected costs of misclassification under the user's cost matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from octweb.registry.page import performance
from octweb.registry.page.scene import ModelScene
from octweb.registry.page.typed_numbers import typed_number
from trainer.evaluate.intervals import of_mean
from trainer.tree.describe import number_text
from trainer.tree.render.palette import swatch

MATRIX_TO = 4  # up to this many classes, each pair of actual and predicted class has its own cost
MOST = 1e9


@dataclass(frozen=True, kw_only=True)
class CostMatrix:
    """Cost matrix, float64 (actual, predicted). `texts` are the fields as typed, and `errors` the errors in them."""

    table: np.ndarray
    texts: dict[str, str]
    errors: list[str]


def costs_of(classes: tuple[str, ...], query: Mapping[str, str]) -> CostMatrix:
    """Read the costs from the query: `cost-a-p` for each pair, or `cost-a` for each actual class. The default is 1.

    A correct answer costs nothing.
    """
    n = len(classes)
    texts = {}
    errors = []
    table = 1.0 - np.eye(n)
    for a in range(n):
        for name, at in _fields(a, n):
            text = texts[name] = query.get(name, "1").strip()
            value = _number(text)
            if value is None:
                errors.append(f"{_what(classes, a, at, n)}: “{text[:40]}” is not a number from 0 to 1,000,000,000.")
            else:
                table[a, at] = value
    return CostMatrix(table=table, texts=texts, errors=errors)


def _fields(a: int, classes: int) -> list[tuple[str, list[int]]]:
    """Return the fields of an actual class, each with the predicted classes that it covers."""
    others = [p for p in range(classes) if p != a]
    if classes <= MATRIX_TO:
        return [(f"cost-{a}-{p}", [p]) for p in others]
    return [(f"cost-{a}", others)]


def _what(classes: tuple[str, ...], a: int, at: list[int], n: int) -> str:
    return f"A row of {classes[a]} predicted {classes[at[0]]}" if n <= MATRIX_TO else f"A row of {classes[a]} missed"


def _number(text: str) -> float | None:
    """Parse a cost from 0 to MOST, with point or comma. None for other texts."""
    value = typed_number(text)
    return None if isinstance(value, str) or not 0 <= value <= MOST else float(value)


def cost_context(scene: ModelScene, part: str) -> dict[str, Any] | None:
    """Return the fields, and the cost per row of the tree, of the relabelled tree, and of the best constant answer.

    Labels are chosen on training rows. Costs are counted on the rows of `part`. Return None if no mistakes are known.
    """
    counts = performance.confusion(scene, part)
    if counts is None or not counts.sum():
        return None
    classes = tuple(scene.tree.classes)
    stated_costs = costs_of(classes, scene.query)
    training = np.array(scene.tree.nodes[0].counts, np.int64)
    constant = int((training @ stated_costs.table).argmin())
    always = np.zeros_like(counts)
    always[:, constant] = counts.sum(axis=1)
    ways = [
        _way("this tree", counts, stated_costs.table),
        *_cheapest_answers(scene, part, stated_costs.table),
        _way(f"no tree: always {classes[constant]}", always, stated_costs.table),
    ]
    least = min(way["mean"] for way in ways)
    return {
        "part": part,
        "rows": int(counts.sum()),
        "fields": [
            {
                "label": label,
                "look": swatch(a, len(classes)),
                "inputs": [
                    {"name": name, "words": _what(classes, a, at, len(classes)), "text": stated_costs.texts[name]}
                    for name, at in _fields(a, len(classes))
                ],
            }
            for a, label in enumerate(classes)
        ],
        "errors": stated_costs.errors,
        "ways": [] if stated_costs.errors else [{**way, "least": way["mean"] == least} for way in ways],
        "equal": bool((stated_costs.table == 1.0 - np.eye(len(classes))).all()),
        "weights": dict(scene.file.parameters).get("class_weight", "none"),
        "trained": bool(scene.file.certificate.get("costs")),
    }


def _cheapest_answers(scene: ModelScene, part: str, table: np.ndarray) -> list[dict[str, Any]]:
    """Return the cost if each leaf is relabelled to minimise its cost on training rows. [] for folds or without rows."""
    reached = performance.leaf_counts(scene, part)
    if part == performance.FOLDS or not reached.sum():
        return []
    leaves = scene.tree.leaves
    training = np.array([leaf.counts for leaf in leaves], np.int64)
    answers = np.where(training.sum(axis=1) > 0, (training @ table).argmin(axis=1), [leaf.label for leaf in leaves])
    # on a tie, the tree keeps its own answer
    for i, leaf in enumerate(leaves):
        leaf_costs = training[i] @ table
        if leaf_costs[leaf.label] <= leaf_costs[answers[i]]:
            answers[i] = leaf.label
    counts = np.zeros((len(table), len(table)), np.int64)
    np.add.at(counts.T, answers, reached)
    changed = sum(int(a) != leaf.label for a, leaf in zip(answers, leaves, strict=True))
    return [_way("same questions, answers chosen by cost", counts, table) | {"changed": changed}]


def _way(words: str, counts: np.ndarray, table: np.ndarray) -> dict[str, Any]:
    """Return the cost per row with its interval, the total cost, and the number of misclassified rows."""
    n = int(counts.sum())
    total = float((counts * table).sum())
    squares = float((counts * table**2).sum())
    interval = of_mean(total, squares, n)
    return {
        "words": words,
        "mean": total / n,
        "per_row": number_text(total / n),
        "interval": None if interval is None else tuple(number_text(x) for x in interval),
        "whole": number_text(total, 6),
        "wrong": n - int(np.trace(counts)),
        "finite": math.isfinite(total),
    }
