"""How often the tree is right: the confusion matrix, intervals, the baseline, and what its leaves promise."""

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
    counted_words,
    goal_sentence,
    saving_sentence,
    weight_sentence,
)
from trainer.training.metrics import unseen_accuracy
from trainer.training.unseen import unseen_words
from trainer.tree.describe import number_text
from trainer.tree.render.palette import swatch

FOLDS = "folds"
WORDS = {
    UNSEEN: ("Mistakes on unseen rows", "held out of the training"),
    FOLDS: ("Mistakes on unseen rows", "each row predicted once, by a tree that had not seen it"),
    TRAINING: ("Mistakes on training rows", "the rows that the tree was made from; expect more mistakes on new rows"),
}


def parts_of(scene: ModelScene) -> list[str]:
    """The kinds of rows that mistakes are known for, the most honest first."""
    metrics = scene.file.metrics
    parts = [UNSEEN] if (metrics.get("test") or {}).get("n") or len(scene.part(UNSEEN)) else []
    parts += [FOLDS] if (metrics.get("cross_validation") or {}).get("confusion") else []
    return [*parts, TRAINING]


def chosen_part(scene: ModelScene) -> str:
    """The kind asked for, else the most honest one."""
    parts = parts_of(scene)
    return scene.query.get("part", "") if scene.query.get("part") in parts else parts[0]


def confusion(scene: ModelScene, part: str) -> np.ndarray | None:
    """Counts by actual and predicted class, int64 (classes, classes): from the rows where they are at hand, else from the file."""
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
    """The training rows as the leaves of the file count them."""
    counts = np.zeros((len(scene.tree.classes),) * 2, np.int64)
    for leaf in scene.tree.leaves:
        counts[:, leaf.label] += np.array(leaf.counts, np.int64)
    return counts


def money(scene: ModelScene) -> dict[str, Any] | None:
    """What the answers of a tree trained with costs cost, beside the best constant answer; None without costs."""
    recorded = scene.file.certificate.get("costs")
    if not recorded:
        return None
    priced = bool(scene.file.certificate.get("column_prices"))
    kinds = (("test", "unseen rows"), ("train", "training rows"))
    measured = [(words, scene.file.metrics.get(name) or {}) for name, words in kinds]
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
                "words": f"{counted_words(scene.file.certificate)}, {own['rows']:,} {words}"
                if "rows" in own
                else words,
                "n": own["n"],
                "cost": own["cost"],
                "per_row": own["cost_per_row"],
                "interval": own.get("cost_interval"),
                "constant": own["constant_cost"] / own["n"],
                "saved": own["constant_cost"] - own["cost"],
                "saved_interval": [own["n"] * end for end in own.get("saved_interval") or ()],
            }
            for words, own in measured
            if "cost" in own
        ],
    }


def goal_of(scene: ModelScene, part: str) -> dict[str, Any] | None:
    """Return the balanced accuracy, F1 or MCC on some rows where the training optimised it; None for other goals."""
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
    """The cost by actual and predicted class, as the file states it; empty without costs."""
    name = {UNSEEN: "test", FOLDS: "", TRAINING: "train"}[part]
    return list((scene.file.metrics.get(name) or {}).get("cost_confusion") or ())


def mistakes(scene: ModelScene, part: str) -> dict[str, Any] | None:
    """The confusion matrix for the template: a row for each actual class, its cells shaded by their share of the row."""
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
        "shares_over": _shares_over(scene),
        "counted": counted_words(scene.file.certificate),
        "baseline": int(by_class.max()) / n if n else None,
        "majority": classes[int(by_class.argmax())],
        "opens": part in scene.parts,
        "many": len(classes) > 6,
    }


def _interval(scene: ModelScene, part: str, right: int, n: int) -> Interval | None:
    """Return the 95 % interval of an accuracy: as the file states it, else over the rows."""
    name = {UNSEEN: "test", FOLDS: "cross_validation", TRAINING: "train"}[part]
    stated = (scene.file.metrics.get(name) or {}).get("interval")
    if stated is not None:
        return float(stated[0]), float(stated[1])
    at = scene.part(part)
    if scene.rows is None or not len(at):
        return wilson(right, n)
    return scene.interval_of(scene.rows.codes[at] == scene.predicted[at], at)


def _shares_over(scene: ModelScene) -> str:
    """Say what the intervals of shares on the page are over, where rows have groups or weights; else ""."""
    rows = scene.rows
    if rows is None or (rows.weights is None and rows.groups is None):
        return ""
    return "groups of rows" if rows.groups is not None else "the effective number of rows of equal weight"


def unseen_base_rate(scene: ModelScene) -> float | None:
    """Return the share of the unseen rows with the most frequent class of the training rows.

    None where the model file does not count the classes of unseen rows.
    """
    crossed, test = (scene.file.metrics.get(name) or {} for name in ("cross_validation", "test"))
    counts = (crossed if crossed.get("accuracy") is not None else test).get("confusion")
    if not counts:
        return None
    by_class = [sum(row) for row in counts]
    return by_class[int(np.argmax(scene.tree.nodes[0].counts))] / sum(by_class)


def unseen_interval(scene: ModelScene) -> Interval | None:
    """Return the 95 % interval of the accuracy on unseen rows: over groups, over folds that follow time, else over rows."""
    unseen = unseen_accuracy(scene.file.metrics)
    if unseen is None or unseen["interval"] is None:
        return None
    return float(unseen["interval"][0]), float(unseen["interval"][1])


# ---- leaves as promises


def leaf_counts(scene: ModelScene, part: str) -> np.ndarray:
    """Rows by leaf and class, int64 (leaves, classes), in the order of `tree.leaves`."""
    leaves = [leaf.id for leaf in scene.tree.leaves]
    if part == UNSEEN:
        return scene.unseen_counts[leaves]
    return np.array([scene.tree.nodes[i].counts for i in leaves], np.int64)


def calibration(scene: ModelScene) -> list[dict[str, Any]]:
    """One point per leaf: the share of its class that it promises, the share among unseen rows with its interval.

    Leaves that no unseen row reaches have none. Empty where no rows were held out.
    """
    found = []
    for leaf in scene.tree.leaves:
        right, n = scene.unseen_of(leaf)
        interval = scene.unseen_interval_of(leaf)
        if interval is None or not leaf.rows:
            continue
        promised = leaf.counts[leaf.label] / leaf.rows
        found.append(
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
    return found


def curve_of(scene: ModelScene, part: str, positive: int) -> Curve | None:
    """The cut-offs that the leaves offer for one of two classes; None for other numbers of classes and without rows."""
    if len(scene.tree.classes) != 2:
        return None
    counts = leaf_counts(scene, part)
    if not counts.sum():
        return None
    return curve(_scores(scene, positive), counts[:, positive], counts[:, 1 - positive])


@dataclass(frozen=True, kw_only=True)
class CheapestCut:
    """The cut-off of least cost: the score from which on the class is answered, what it finds and takes, and costs per row."""

    score: float
    found: int
    taken: int
    cost: float
    tree_cost: float
    unit: str


def cheapest_cut(scene: ModelScene, part: str, positive: int) -> CheapestCut | None:
    """Return the cut-off whose answers cost least on the rows of a part, the strictest one among equals.

    None without costs, without rows, and for other than two classes.
    """
    found = curve_of(scene, part, positive)
    at = scene.part(part)
    values = None if scene.rows is None else answer_costs(scene.file, scene.rows, at)
    if found is None or values is None or scene.rows is None:
        return None
    leaves = scene.leaf_of[at]
    scores = scene.tree.probabilities[leaves, positive]
    totals = [float(np.where(scores >= cut, values[:, positive], values[:, 1 - positive]).sum()) for cut in found.score]
    best = int(np.argmin(totals))
    n = int(scene.rows.weights_of(at).sum())
    own = float(values[np.arange(len(at)), scene.predicted[at]].sum())
    return CheapestCut(
        score=float(found.score[best]), found=int(found.tp[best]), taken=int(found.fp[best]), cost=totals[best] / n,
        tree_cost=own / n, unit=scene.file.certificate["costs"]["unit"],
    )  # fmt: skip


def tree_point(scene: ModelScene, part: str, positive: int) -> tuple[int, int]:
    """Of the rows that the tree predicts positive, how many are and how many are not."""
    counts = leaf_counts(scene, part)[[leaf.label == positive for leaf in scene.tree.leaves]]
    return int(counts[:, positive].sum()), int(counts[:, 1 - positive].sum())


def quality(scene: ModelScene, part: str, positive: int) -> dict[str, Any] | None:
    """Area under the ROC curve, and the Brier score beside the score of always saying the share of the training rows."""
    found = curve_of(scene, part, positive)
    if found is None:
        return None
    counts = leaf_counts(scene, part)
    root = scene.tree.nodes[0]
    base = np.full(len(counts), root.counts[positive] / max(1, root.rows))
    return {
        "area": found.area,
        "area_interval": _area_interval(scene, part, positive, found),
        "cuts": len(found.score) - 1,
        "brier": brier(_scores(scene, positive), counts[:, positive], counts[:, 1 - positive]),
        "brier_base": brier(base, counts[:, positive], counts[:, 1 - positive]),
    }


def _area_interval(scene: ModelScene, part: str, positive: int, found: Curve) -> Interval | None:
    """Return the 95 % interval of the area: DeLong's, or over groups and weights where rows have them."""
    rows = scene.rows
    if rows is None or (rows.weights is None and rows.groups is None) or not len(scene.part(part)):
        return found.area_interval
    at = scene.part(part)
    weights, groups = (None if own is None else own[at] for own in (rows.weights, rows.groups))
    scores = scene.tree.probabilities[scene.leaf_of[at], positive]
    return drawn_area_interval(scores, rows.codes[at] == positive, weights, groups)


def _scores(scene: ModelScene, positive: int) -> np.ndarray:
    """The share of the positive class among the training rows of each leaf."""
    return np.array([scene.tree.probabilities[leaf.id, positive] for leaf in scene.tree.leaves])


def positive_class(scene: ModelScene) -> int:
    """The class of the curves: the one asked for, else the rarer one among the training rows."""
    text = scene.query.get("positive", "")
    classes = scene.tree.classes
    if text in ("0", "1") and len(classes) == 2:
        return int(text)
    counts = scene.tree.nodes[0].counts
    return int(np.argmin(counts)) if counts else 0


def where_they_end(scene: ModelScene, positions: np.ndarray) -> list[dict[str, Any]]:
    """The leaves in which rows end, most rows first, each with the questions and answers that lead there."""
    leaves, counts = np.unique(scene.leaf_of[positions], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return [{"leaf": int(leaves[i]), "rows": int(counts[i]), "path": path_rules(scene, int(leaves[i]))} for i in order]
