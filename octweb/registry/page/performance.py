"""Measure the tree: confusion matrix, calibration, curves and costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from octweb.registry.document.rows import answer_costs
from octweb.registry.page.node import path_rules
from octweb.registry.page.scene import TRAINING, UNSEEN, ModelScene
from trainer.evaluate.curves import Curve, brier, curve, drawn_area_interval
from trainer.evaluate.intervals import Interval, wilson
from trainer.goal import goal_score, score_name, stated_goal
from trainer.training.claims import (
    cost_sentence,
    goal_sentence,
    saving_sentence,
    weight_sentence,
)
from trainer.training.metrics import unseen_accuracy
from trainer.training.unseen import unseen_words
from trainer.tree.describe import counted_words, number_text, row_words, weight_step
from trainer.tree.render.palette import swatch

FOLDS = "folds"
WORDS = {
    UNSEEN: ("Mistakes on unseen rows", "held out of the training"),
    FOLDS: ("Mistakes on unseen rows", "each row predicted once, by a tree that had not seen it"),
    TRAINING: ("Mistakes on training rows", "the rows that the tree was made from; expect more mistakes on new rows"),
}


def parts_of(scene: ModelScene) -> list[str]:
    """Return the kinds of rows whose mistakes are known, least optimistic first."""
    metrics = scene.file.metrics
    parts = [UNSEEN] if (metrics.get("test") or {}).get("n") or len(scene.part(UNSEEN)) else []
    parts += [FOLDS] if (metrics.get("cross_validation") or {}).get("confusion") else []
    return [*parts, TRAINING]


def chosen_part(scene: ModelScene) -> str:
    """Return the requested kind of rows, or else the least optimistic one."""
    parts = parts_of(scene)
    return scene.query.get("part", "") if scene.query.get("part") in parts else parts[0]


def confusion(scene: ModelScene, part: str) -> np.ndarray | None:
    """Return the confusion matrix, int64 (actual, predicted), from the rows or else from the file. None if unknown."""
    classes = len(scene.tree.classes)
    if part != FOLDS and len(scene.part(part)) and scene.rows is not None:
        at = scene.part(part)
        counts = np.zeros((classes, classes), np.int64)
        np.add.at(counts, (scene.rows.codes[at], scene.predicted[at]), scene.rows.weights_of(at))
        return counts
    name = {UNSEEN: "test", FOLDS: "cross_validation", TRAINING: "train"}[part]
    recorded = (scene.file.metrics.get(name) or {}).get("confusion")
    if recorded is None and part == TRAINING:
        return _from_leaves(scene)
    return None if recorded is None else np.array(recorded, np.int64).reshape(classes, classes)


def _from_leaves(scene: ModelScene) -> np.ndarray:
    """Return the confusion matrix of the training rows from the counts of the leaves."""
    counts = np.zeros((len(scene.tree.classes),) * 2, np.int64)
    for leaf in scene.tree.leaves:
        counts[:, leaf.label] += np.array(leaf.counts, np.int64)
    return counts


def money(scene: ModelScene) -> dict[str, Any] | None:
    """Return the costs of the answers next to those of the best constant answer. None for a tree without costs."""
    recorded = scene.file.certificate.get("costs")
    if not recorded:
        return None
    priced = bool(scene.file.certificate.get("column_prices"))
    kinds = (("test", "unseen rows"), ("train", "training rows"))
    measured = [(words, scene.file.metrics.get(name) or {}) for name, words in kinds]
    step = weight_step(scene.file.certificate)
    return {
        "unit": recorded["unit"],
        "sentence": f"{saving_sentence(scene.file.certificate)} {cost_sentence(recorded, priced=priced)}",
        "constant": recorded["best_constant"]["answer"],
        "costs": [
            {"true": true, "answer": answer, "cost": text}
            for true, row in recorded["costs"].items()
            for answer, text in row.items()
        ],
        "rows": [
            {
                "words": f"{row_words(scene.file.certificate)}, {part_cost['rows']:,} {words}"
                if "rows" in part_cost
                else words,
                "n": part_cost["n"],
                "cost": part_cost["cost"],
                "per_row": part_cost["cost_per_row"],
                "interval": part_cost.get("cost_interval"),
                "constant": part_cost["constant_cost"] / (part_cost["n"] * step),
                "saved": part_cost["constant_cost"] - part_cost["cost"],
                "saved_interval": [part_cost["n"] * step * end for end in part_cost.get("saved_interval") or ()],
            }
            for words, part_cost in measured
            if "cost" in part_cost
        ],
    }


def goal_of(scene: ModelScene, part: str) -> dict[str, Any] | None:
    """Return the balanced accuracy, F1 or MCC on the rows of a part if training optimised it. None for other goals."""
    file = scene.file
    goal, positive = stated_goal(file.certificate, file.parameters)
    counts = confusion(scene, part)
    if not goal or counts is None:
        return None
    k = file.tree.classes.index(positive) if positive else 0
    return {
        "name": score_name(goal, positive),
        "value": goal_score(counts.tolist(), goal, k),
        "sentence": goal_sentence(file.certificate, file.parameters),
    }


def _cell_costs(scene: ModelScene, part: str) -> list[list[float]]:
    """Return the recorded cost by actual and predicted class. [] without costs."""
    name = {UNSEEN: "test", FOLDS: "", TRAINING: "train"}[part]
    return list((scene.file.metrics.get(name) or {}).get("cost_confusion") or ())


def mistakes(scene: ModelScene, part: str) -> dict[str, Any] | None:
    """Return the confusion matrix for the template, with each cell shaded by its share of the row. None if unknown."""
    counts = confusion(scene, part)
    if counts is None:
        return None
    classes = scene.tree.classes
    n = int(counts.sum())
    costs = _cell_costs(scene, part)
    unit = (scene.file.certificate.get("costs") or {}).get("unit", "")
    rows = []
    for k, label in enumerate(classes):
        row_total = int(counts[k].sum())
        cells = [
            {
                "count": int(c),
                "predicted": j,
                "label": classes[j],
                "cost": f"{number_text(costs[k][j])} {unit}".strip() if costs and costs[k][j] else "",
                "right": j == k,
                "wrong": j != k and c > 0,
                "share": int(c) / row_total if row_total else None,
                "shade": round(6 + 30 * int(c) / row_total) if row_total and c else 0,
                "look": swatch(j, len(classes)).split()[0],
            }
            for j, c in enumerate(counts[k])
        ]
        rows.append(
            {
                "code": k,
                "label": label,
                "look": swatch(k, len(classes)),
                "rows": row_total,
                "cells": cells,
                "found": int(counts[k, k]) / row_total if row_total else None,
            }
        )
    right = int(np.trace(counts))
    by_class = counts.sum(axis=1)
    title, words = WORDS[part]
    return {
        "title": title,
        "words": words,
        "part": part,
        "classes": classes,
        "rows": rows,
        "n": n,
        "right": right,
        "accuracy": right / n if n else None,
        "interval": _interval(scene, part, right, n),
        "by_unit": bool(unseen_words(scene.file)) and part != TRAINING,
        "about": " ".join(
            filter(None, (unseen_words(scene.file) * (part != TRAINING), weight_sentence(scene.file.certificate)))
        ),
        "shares_over": units_of_intervals(scene),
        "counted": _count_unit(scene, part),
        "baseline": int(by_class.max()) / n if n else None,
        "majority": classes[int(by_class.argmax())],
        "opens": part in scene.parts,
        "many": len(classes) > 6,
    }


def _count_unit(scene: ModelScene, part: str) -> str:
    """Return the unit of `confusion`: only the training counts of the file have class weights."""
    from_file = part == TRAINING and not (len(scene.part(part)) and scene.rows is not None)
    return counted_words(scene.file.certificate) if from_file else row_words(scene.file.certificate)


def _interval(scene: ModelScene, part: str, right: int, n: int) -> Interval | None:
    """Return the 95 % interval of an accuracy: the one in the file, or else one over the rows."""
    name = {UNSEEN: "test", FOLDS: "cross_validation", TRAINING: "train"}[part]
    recorded = (scene.file.metrics.get(name) or {}).get("interval")
    if recorded is not None:
        return float(recorded[0]), float(recorded[1])
    at = scene.part(part)
    if scene.rows is None or not len(at):
        return wilson(right, n)
    return scene.interval_of(scene.rows.codes[at] == scene.predicted[at], at)


def units_of_intervals(scene: ModelScene) -> str:
    """Name the units of the intervals on the page if rows have groups or weights. "" otherwise."""
    rows = scene.rows
    if rows is None or (rows.weights is None and rows.groups is None):
        return ""
    return "groups of rows" if rows.groups is not None else "the effective number of rows of equal weight"


def unseen_base_rate(scene: ModelScene) -> float | None:
    """Return the share of unseen rows whose class is the most frequent class of the training rows.

    None if the model file does not count the classes of unseen rows.
    """
    crossed, test = (scene.file.metrics.get(name) or {} for name in ("cross_validation", "test"))
    counts = (crossed if crossed.get("accuracy") is not None else test).get("confusion")
    if not counts:
        return None
    by_class = [sum(row) for row in counts]
    return by_class[int(np.argmax(scene.tree.nodes[0].counts))] / sum(by_class)


def unseen_interval(scene: ModelScene) -> Interval | None:
    """Return the 95 % interval of the accuracy on unseen rows: over groups, over folds that follow time, or else over rows."""
    unseen = unseen_accuracy(scene.file.metrics)
    if unseen is None or unseen["interval"] is None:
        return None
    return float(unseen["interval"][0]), float(unseen["interval"][1])


# The functions below compute accuracy and scores of leaves.


def leaf_counts(scene: ModelScene, part: str) -> np.ndarray:
    """Count the unseen rows or, for other parts, the training rows, by leaf and class.

    The result is int64 (leaves, classes), in the order of `tree.leaves`.
    """
    leaves = [leaf.id for leaf in scene.tree.leaves]
    if part == UNSEEN:
        return scene.unseen_counts[leaves]
    return np.array([scene.tree.nodes[i].counts for i in leaves], np.int64)


def calibration(scene: ModelScene) -> list[dict[str, Any]]:
    """Return a point for each leaf with unseen rows: its accuracy on training rows, and on unseen rows with an interval.

    [] if no rows were held out.
    """
    points = []
    for leaf in scene.tree.leaves:
        right, n = scene.unseen_of(leaf)
        interval = scene.unseen_interval_of(leaf)
        if interval is None or not leaf.rows:
            continue
        promised = leaf.counts[leaf.label] / leaf.rows
        points.append(
            {
                "leaf": leaf.id,
                "label": scene.tree.classes[leaf.label],
                "code": leaf.label,
                "promised": promised,
                "seen": right / n,
                "rows": n,
                "interval": interval,
                "kept": interval[0] <= promised <= interval[1],
            }
        )
    return points


def curve_of(scene: ModelScene, part: str, positive: int) -> Curve | None:
    """Return the ROC curve over the leaves' scores for one of two classes. None for more classes, and without rows."""
    if len(scene.tree.classes) != 2:
        return None
    counts = leaf_counts(scene, part)
    if not counts.sum():
        return None
    return curve(_scores(scene, positive), counts[:, positive], counts[:, 1 - positive])


@dataclass(frozen=True, kw_only=True)
class CheapestCut:
    """The cheapest score threshold, with its true (`found`) and false (`taken`) positives, and costs per row."""

    score: float
    found: int
    taken: int
    cost: float
    tree_cost: float
    unit: str


def cheapest_cut(scene: ModelScene, part: str, positive: int) -> CheapestCut | None:
    """Return the cheapest score threshold on the rows of a part, the highest one if several are equally cheap.

    Return None without costs, without rows, and for more than two classes.
    """
    curve = curve_of(scene, part, positive)
    at = scene.part(part)
    values = None if scene.rows is None else answer_costs(scene.file, scene.rows, at)
    if curve is None or values is None or scene.rows is None:
        return None
    leaves = scene.leaf_of[at]
    scores = scene.tree.probabilities[leaves, positive]
    totals = [float(np.where(scores >= cut, values[:, positive], values[:, 1 - positive]).sum()) for cut in curve.score]
    best = int(np.argmin(totals))
    n = int(scene.rows.weights_of(at).sum()) * weight_step(scene.file.certificate)
    tree_cost = float(values[np.arange(len(at)), scene.predicted[at]].sum())
    return CheapestCut(
        score=float(curve.score[best]),
        found=int(curve.tp[best]),
        taken=int(curve.fp[best]),
        cost=totals[best] / n,
        tree_cost=tree_cost / n,
        unit=scene.file.certificate["costs"]["unit"],
    )


def tree_point(scene: ModelScene, part: str, positive: int) -> tuple[int, int]:
    """Return the numbers of true and false positives of the tree."""
    counts = leaf_counts(scene, part)[[leaf.label == positive for leaf in scene.tree.leaves]]
    return int(counts[:, positive].sum()), int(counts[:, 1 - positive].sum())


def quality(scene: ModelScene, part: str, positive: int) -> dict[str, Any] | None:
    """Return the area under the ROC curve, and the Brier score next to that of the constant training share.

    None without a curve.
    """
    curve = curve_of(scene, part, positive)
    if curve is None:
        return None
    counts = leaf_counts(scene, part)
    root = scene.tree.nodes[0]
    base = np.full(len(counts), root.counts[positive] / max(1, root.rows))
    return {
        "area": curve.area,
        "area_interval": _area_interval(scene, part, positive, curve),
        "cuts": len(curve.score) - 1,
        "brier": brier(_scores(scene, positive), counts[:, positive], counts[:, 1 - positive]),
        "brier_base": brier(base, counts[:, positive], counts[:, 1 - positive]),
    }


def _area_interval(scene: ModelScene, part: str, positive: int, curve: Curve) -> Interval | None:
    """Return the 95 % interval of the area: DeLong's or, if rows have groups or weights, from resampling."""
    rows = scene.rows
    if rows is None or (rows.weights is None and rows.groups is None) or not len(scene.part(part)):
        return curve.area_interval
    at = scene.part(part)
    weights, groups = (None if column is None else column[at] for column in (rows.weights, rows.groups))
    scores = scene.tree.probabilities[scene.leaf_of[at], positive]
    return drawn_area_interval(scores, rows.codes[at] == positive, weights, groups)


def _scores(scene: ModelScene, positive: int) -> np.ndarray:
    """Return the share of the positive class among the training rows of each leaf."""
    return np.array([scene.tree.probabilities[leaf.id, positive] for leaf in scene.tree.leaves])


def positive_class(scene: ModelScene) -> int:
    """Return the positive class of the curves: the requested one, or else the rarer one among the training rows."""
    text = scene.query.get("positive", "")
    classes = scene.tree.classes
    if text in ("0", "1") and len(classes) == 2:
        return int(text)
    counts = scene.tree.nodes[0].counts
    return int(np.argmin(counts)) if counts else 0


def where_they_end(scene: ModelScene, positions: np.ndarray) -> list[dict[str, Any]]:
    """Return the leaves of some rows, those with most rows first, each with the splits and answers on its path."""
    leaves, counts = np.unique(scene.leaf_of[positions], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return [{"leaf": int(leaves[i]), "rows": int(counts[i]), "path": path_rules(scene, int(leaves[i]))} for i in order]
