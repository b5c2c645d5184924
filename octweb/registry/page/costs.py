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
from trainer.data.share_interval import CostSums, of_cost_sums
from trainer.evaluate.intervals import of_mean
from trainer.tree.describe import number_text, weight_step
from trainer.tree.render.palette import swatch

MATRIX_TO = 4  # up to this many classes, each pair of actual and predicted class has its own cost
MOST = 1e9
RELABELLED = "same questions, answers chosen by cost"


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

    Labels are chosen on training rows. Costs are counted on the rows of `part`, by their weights. Return None if no
    mistakes are known.
    """
    counts = performance.confusion(scene, part)
    if counts is None or not counts.sum():
        return None
    classes = tuple(scene.tree.classes)
    stated_costs = costs_of(classes, scene.query)
    table = stated_costs.table
    by_leaf = _training_counts(scene)
    constant = int((by_leaf.sum(axis=0) @ table).argmin())
    always = f"no tree: always {classes[constant]}"
    at = scene.part(part) if part != performance.FOLDS else np.zeros(0, np.int64)
    if scene.rows is None or not len(at):
        ends = np.zeros_like(counts)
        ends[:, constant] = counts.sum(axis=1)
        ways = [
            _way("this tree", counts, table),
            *_relabelled_counts(scene, part, by_leaf, table),
            _way(always, ends, table),
        ]
        # rows of one group, or of different weights, are not independent rows of equal weight
        if scene.file.certificate.get("weights") or (scene.file.rows or {}).get("group"):
            ways = [way | {"interval": None} for way in ways]
    else:
        answers, changed = _cheapest_answers(scene, by_leaf, table)
        by_node = dict(zip((leaf.id for leaf in scene.tree.leaves), answers.tolist(), strict=True))
        chosen = np.array([by_node[leaf] for leaf in scene.leaf_of[at].tolist()])
        ways = [
            _way_of_rows("this tree", scene, at, scene.predicted[at], table),
            _way_of_rows(RELABELLED, scene, at, chosen, table) | {"changed": changed},
            _way_of_rows(always, scene, at, np.full(len(at), constant), table),
        ]
    least = min(way["mean"] for way in ways)
    return {
        "part": part,
        "rows": len(at) or int(counts.sum()),
        "over": performance.units_of_intervals(scene),
        "weighted": bool(scene.file.certificate.get("weights")),
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


def _training_counts(scene: ModelScene) -> np.ndarray:
    """Return the training rows by leaf and class, int64 (leaves, classes): their own weights, without those of classes."""
    leaves = scene.tree.leaves
    if scene.rows is None or not len(scene.rows.training):
        return np.array([leaf.counts for leaf in leaves], np.int64)
    at = scene.rows.training
    counts = np.zeros((len(scene.tree.nodes), len(scene.tree.classes)), np.int64)
    np.add.at(counts, (scene.leaf_of[at], scene.rows.codes[at]), scene.rows.weights_of(at))
    return counts[[leaf.id for leaf in leaves]]


def _cheapest_answers(scene: ModelScene, training: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the answer of each leaf of least cost on training rows, and how many leaves answer otherwise."""
    own = np.array([leaf.label for leaf in scene.tree.leaves])
    paid = training @ table
    answers = paid.argmin(axis=1)
    # on a tie, the tree keeps its own answer; so it does in a leaf without rows
    each = np.arange(len(own))
    answers = np.where(paid[each, own] <= paid[each, answers], own, answers)
    return answers, int((answers != own).sum())


def _relabelled_counts(scene: ModelScene, part: str, training: np.ndarray, table: np.ndarray) -> list[dict[str, Any]]:
    """Return the cost of the tree with answers chosen by cost, from the counts of its leaves. [] for folds or without rows."""
    reached = performance.leaf_counts(scene, part)
    if part == performance.FOLDS or not reached.sum():
        return []
    answers, changed = _cheapest_answers(scene, training, table)
    counts = np.zeros((len(table), len(table)), np.int64)
    np.add.at(counts.T, answers, reached)
    return [_way(RELABELLED, counts, table) | {"changed": changed}]


def _way_of_rows(
    words: str, scene: ModelScene, at: np.ndarray, answers: np.ndarray, table: np.ndarray
) -> dict[str, Any]:
    """Return what `_way` does, from rows: costs by weight, the interval over groups if rows have groups, and wrong rows."""
    assert scene.rows is not None
    actual = scene.rows.codes[at]
    weights = scene.rows.weights_of(at) * weight_step(scene.file.certificate)
    paid = table[actual, answers] * weights
    mean = float(paid.sum() / weights.sum())
    of = np.arange(len(at)) if scene.rows.groups is None else np.unique(scene.rows.groups[at], return_inverse=True)[1]
    sums = CostSums.of(*(np.bincount(of, column).astype(np.float64) for column in (paid, weights)))
    interval = of_cost_sums(sums)
    return {
        "words": words,
        "mean": mean,
        "per_row": number_text(mean),
        "interval": None if interval is None else tuple(number_text(x) for x in interval),
        "whole": number_text(float(paid.sum()), 6),
        "wrong": int((actual != answers).sum()),
        "finite": math.isfinite(mean),
    }


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
