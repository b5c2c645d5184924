"""Check the cross-validation of a file: the tree of each fold."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.check.proof.model import read_fraction
from trainer.check.recount.findings import TOLERANCE, Finding, recount_finding, unjudged_finding
from trainer.check.recount.table.rows import TableRows, row_weights, take_rows, without_class_weights
from trainer.check.recount.tree import leaves
from trainer.check.recount.trees.counts import check_metric, confusion_of, count_nodes
from trainer.check.recount.trees.listed_tree import check_tree

CLAIM = "metrics cross_validation"
CHOSEN = {5, 9, 17, 33}  # training chooses the number of quantiles among these
# each fold may choose these parameters for itself
QUESTIONS = {"binarise", "bins", "extra_thresholds"}
PENALTY = "leaf_penalty"


def check_cross_validation(model: dict[str, Any], data: TableRows) -> list[Finding]:
    """Check the cross-validation, if the file has one."""
    stated = (model.get("metrics") or {}).get("cross_validation") or {}
    trees = (model.get("rows") or {}).get("fold_trees")
    if not stated and not trees:
        return []
    if trees is None:
        return [unjudged_finding(CLAIM, "The file does not hold the trees of the folds.")]
    listed = stated.get("accuracies") or []
    folds = model["parameters"]["folds"]
    if stated and (not len(listed) == len(trees) == stated.get("finished", folds) or stated["folds"] != folds):
        return [recount_finding(CLAIM, False, f"{len(trees)} trees and {len(listed)} accuracies are listed.")]
    outcomes = [_fold(model, data, f, nodes) for f, nodes in enumerate(trees)]
    trouble = next((outcome for outcome in outcomes if isinstance(outcome, str)), "")
    words = f"The trees of {len(trees)} folds were run over the rows of their fold. That these played no part in making them cannot be shown."
    tables = [outcome for outcome in outcomes if not isinstance(outcome, str)]
    return [recount_finding(CLAIM, False, trouble) if trouble else check_fold_means(stated, trees, tables, words)]


def _fold(model: dict[str, Any], data: TableRows, f: int, nodes: list[dict[str, Any]]) -> np.ndarray | str:
    """Return the confusion matrix of a fold, or an error of its tree; all but its bound is checked."""
    training = take_rows(data.rows, data.trains_for(f))
    rows = replace(training, weights=row_weights(model, training.labels, training.plain, np.ones(len(training), bool)))
    fold_model = _with_own_settings(model, f)
    if not {model["parameters"].get("bins"), fold_model["parameters"].get("bins")} <= CHOSEN and _chose_questions(
        model, f
    ):
        return f"Fold {f + 1} chose its questions from its data, but the parameters fix them."
    trouble, _ = check_tree(fold_model, nodes, rows)
    if trouble:
        return f"The tree of fold {f + 1} does not hold: {trouble}"
    return confusion_of(
        model, nodes, count_nodes(model, nodes, without_class_weights(take_rows(data.rows, data.fold == f)))[1]
    )


def _with_own_settings(model: dict[str, Any], f: int) -> dict[str, Any]:
    """Return the model with the questions and the leaf penalty that a fold chose by its training rows.

    Raises ValueError for other parameters, and for a leaf penalty if training chose none.
    """
    listed = (model.get("rows") or {}).get("fold_questions")
    if listed is None:
        return model
    settings = listed[f]
    if set(settings) - {PENALTY} not in (set(), QUESTIONS) or (PENALTY in settings) != ("sizes" in model):
        listed_names = ", ".join(sorted(settings)) or "none"
        raise ValueError(
            f"fold {f + 1} lists these settings: {listed_names}. A fold lists all or none of binarise, bins and "
            f"extra_thresholds, and it lists {PENALTY} if and only if the file has 'sizes'"
        )
    if PENALTY in settings and not 0 <= read_fraction(settings[PENALTY]) < 1:
        raise ValueError(f"fold {f + 1} has a leaf penalty that is not at least 0 and below 1: {settings[PENALTY]}")
    return model | {"parameters": model["parameters"] | settings}


def _chose_questions(model: dict[str, Any], f: int) -> bool:
    listed = (model.get("rows") or {}).get("fold_questions")
    return listed is not None and set(listed[f]) >= QUESTIONS


def check_fold_means(stated: dict[str, Any], trees: list[Any], tables: list[np.ndarray], words: str) -> Finding:
    """Check accuracies and leaves of the folds and, if all have ended, the means."""
    accuracies = [Fraction(int(np.trace(table)), int(table.sum())) for table in tables]
    for f, (claimed, counted) in enumerate(
        zip(map(read_fraction, stated.get("accuracies") or accuracies), accuracies, strict=True)
    ):
        if abs(claimed - counted) > TOLERANCE:
            return recount_finding(CLAIM, False, f"Fold {f + 1} has {float(counted):.6g} of its rows right.")
    sizes = [len(leaves(nodes)) for nodes in trees]
    if stated.get("leaves", sizes) != sizes:
        return recount_finding(CLAIM, False, f"The trees of the folds have {sizes} leaves.")
    means = {
        name: value for name, value in stated.items() if name in ("accuracy", "deviation", "n", "correct", "confusion")
    }
    if stated.get("ended") and (means or len(trees) == stated["folds"]):
        return recount_finding(CLAIM, False, "All folds have a tree, but the file states that one has none.")
    if not means:
        return recount_finding(CLAIM, True, words)
    mean = sum(accuracies, Fraction(0)) / len(accuracies)
    spread = math.sqrt(sum((counted - mean) ** 2 for counted in accuracies) / (len(accuracies) - 1))
    holds = len(trees) == stated["folds"] and abs(read_fraction(means.pop("accuracy")) - mean) <= TOLERANCE
    holds = holds and abs(float(means.pop("deviation")) - spread) <= float(TOLERANCE)
    return recount_finding(
        CLAIM, holds and check_metric(CLAIM, means, np.sum(tables, axis=0)).verdict == "recounted", words
    )
