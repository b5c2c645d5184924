"""The cross-validation of a file: the tree of each fold over the rows that it had not seen, and over those that it trained on."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.check.proof.model import read_fraction
from trainer.check.recount.findings import TOLERANCE, Finding, recounted, unjudged
from trainer.check.recount.table.rows import TableRows, take_rows, unweighted, weighed
from trainer.check.recount.tree import leaves
from trainer.check.recount.trees.counts import confusion_of, count_nodes, metric
from trainer.check.recount.trees.held import check_tree

CLAIM = "metrics cross_validation"
CHOSEN = {5, 9, 17, 33}  # quantiles among which the data choose
# parameters that a fold chooses for itself
QUESTIONS = {"binarise", "bins", "extra_thresholds"}
PENALTY = "leaf_penalty"


def crossed(model: dict[str, Any], data: TableRows) -> list[Finding]:
    """The line on the cross-validation, if the file has one."""
    given = (model.get("metrics") or {}).get("cross_validation") or {}
    trees = (model.get("rows") or {}).get("fold_trees")
    if not given and not trees:
        return []
    if trees is None:
        return [unjudged(CLAIM, "The file does not hold the trees of the folds.")]
    listed = given.get("accuracies") or []
    folds = model["parameters"]["folds"]
    if given and (not len(listed) == len(trees) == given.get("finished", folds) or given["folds"] != folds):
        return [recounted(CLAIM, False, f"{len(trees)} trees and {len(listed)} accuracies are listed.")]
    found = [_fold(model, data, f, nodes) for f, nodes in enumerate(trees)]
    trouble = next((own for own in found if isinstance(own, str)), "")
    words = f"The trees of {len(trees)} folds were run over the rows of their fold. That these played no part in making them cannot be shown."
    tables = [own for own in found if not isinstance(own, str)]
    return [recounted(CLAIM, False, trouble) if trouble else check_fold_means(given, trees, tables, words)]


def _fold(model: dict[str, Any], data: TableRows, f: int, nodes: list[dict[str, Any]]) -> np.ndarray | str:
    """The confusion matrix of the rows of a fold, or what is wrong with its tree: what must hold of the tree of the file, but no bound."""
    seen = take_rows(data.rows, data.trains_for(f))
    rows = replace(seen, weights=weighed(model, seen.labels, seen.plain, np.ones(len(seen), bool)))
    own = _with_own_settings(model, f)
    if not {model["parameters"].get("bins"), own["parameters"].get("bins")} <= CHOSEN and _chose_questions(model, f):
        return f"The data of fold {f + 1} chose its questions, and the parameters state questions that no data chose."
    trouble, _ = check_tree(own, nodes, rows)
    if trouble:
        return f"The tree of fold {f + 1} does not hold: {trouble}"
    return confusion_of(model, nodes, count_nodes(model, nodes, unweighted(take_rows(data.rows, data.fold == f)))[1])


def _with_own_settings(model: dict[str, Any], f: int) -> dict[str, Any]:
    """Return the model with the questions and the leaf penalty of a fold, which chose them by the rows that it trained on.

    Raises ValueError for other parameters, and for a leaf penalty where the training chose none.
    """
    listed = (model.get("rows") or {}).get("fold_questions")
    if listed is None:
        return model
    own = listed[f]
    if set(own) - {PENALTY} not in (set(), QUESTIONS) or (PENALTY in own) != ("sizes" in model):
        raise ValueError("a fold states other settings than those that it chose")
    if PENALTY in own and not 0 <= read_fraction(own[PENALTY]) < 1:
        raise ValueError("a fold has an impossible leaf penalty")
    return model | {"parameters": model["parameters"] | own}


def _chose_questions(model: dict[str, Any], f: int) -> bool:
    listed = (model.get("rows") or {}).get("fold_questions")
    return listed is not None and set(listed[f]) >= QUESTIONS


def check_fold_means(given: dict[str, Any], trees: list[Any], tables: list[np.ndarray], words: str) -> Finding:
    """Accuracies and leaves of the folds, and, if all have ended, the means."""
    own = [Fraction(int(np.trace(table)), int(table.sum())) for table in tables]
    for f, (said, right) in enumerate(zip(map(read_fraction, given.get("accuracies") or own), own, strict=True)):
        if abs(said - right) > TOLERANCE:
            return recounted(CLAIM, False, f"Fold {f + 1} has {float(right):.6g} of its rows right.")
    sizes = [len(leaves(nodes)) for nodes in trees]
    if given.get("leaves", sizes) != sizes:
        return recounted(CLAIM, False, f"The trees of the folds have {sizes} leaves.")
    means = {
        name: value for name, value in given.items() if name in ("accuracy", "deviation", "n", "correct", "confusion")
    }
    if given.get("ended") and (means or len(trees) == given["folds"]):
        return recounted(CLAIM, False, "All folds have a tree, and it is said that one of them has none.")
    if not means:
        return recounted(CLAIM, True, words)
    mean = sum(own, Fraction(0)) / len(own)
    spread = math.sqrt(sum((right - mean) ** 2 for right in own) / (len(own) - 1))
    holds = len(trees) == given["folds"] and abs(read_fraction(means.pop("accuracy")) - mean) <= TOLERANCE
    holds = holds and abs(float(means.pop("deviation")) - spread) <= float(TOLERANCE)
    return recounted(CLAIM, holds and metric(CLAIM, means, np.sum(tables, axis=0)).verdict == "recounted", words)
