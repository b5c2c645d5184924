"""State what a dossier can say about a model that was trained from counts, and what it cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from trainer.counts.collect import NO_CLASS
from trainer.counts.folder import Counts, read_counts
from trainer.data.parsing import ColumnParsing
from trainer.dossier import limits as use
from trainer.dossier import measures
from trainer.errors import DataError, ModelFileError
from trainer.evaluate.intervals import wilson
from trainer.table import ColumnKind
from trainer.training.unseen import unseen_words
from trainer.tree.file import ModelFile
from trainer.tree.nodes import Tree, tree_from_json

NO_ROWS = "counts have no rows to draw from"
NOT_KNOWN = (
    "The smallest and the largest value of each column, and how many of its cells are empty.",
    "Which rows have equal cells and different classes, so how many errors no tree can avoid.",
    "What may be wrong with the table: a check of its cells needs the rows.",
    "The accuracy by groups of rows, such as men and women.",
    "How many unseen rows each leaf answers correctly, and how often retrained trees agree with this one for a row.",
)


def counted_parts(file: ModelFile, folder: Path, name: str, groups: tuple[str, ...]) -> dict[str, Any]:
    """Return the members of a dossier that `dossier` counts on rows; what counts do not show is None or empty.

    Raises DataError for groups, which need rows, and ModelFileError if small numbers of the counts are secret.
    """
    if groups:
        raise DataError(f"Counts do not show the rows of groups by '{groups[0]}'. Leave the groups out.")
    counts = read_counts(folder)
    if counts.suppress:
        raise ModelFileError(
            f"Numbers below {counts.suppress} of these counts are secret, so a dossier would state lower bounds as numbers. "
            "Make it where the counts are complete."
        )
    return {
        "data": _data(file, counts, name),
        "error_floor": None,
        "performance": {
            "unseen": None,
            "training": _performance(file.tree),
            "cross_validation": measures.cross_validation(file),
            "about": unseen_words(file),
        },
        "subgroups": {"rows": "training", "columns": []},
        "calibration": [_leaf(file.tree, leaf.id) for leaf in file.tree.leaves],
        "stability": _stability(file),
        "bootstraps": {"trees": 0, "ended": 0, "seconds": 0, "reason": NO_ROWS},
        "limits_of_use": {
            "sentences": use.limit_sentences(file.tree),
            "outside_training": {"unseen_rows": 0, "rows_outside": 0, "by_column": {}},
        },
        "not_known": list(NOT_KNOWN),
    }


def _data(file: ModelFile, counts: Counts, name: str) -> dict[str, Any]:
    sizes = file.tree.nodes[0].counts
    left_out = dict(counts.left_out)
    no_class = left_out.pop(NO_CLASS, 0)
    empty = sum(left_out.values())
    origin = dict(counts.origin)
    return {
        "file": name or counts.source,
        "sha256": counts.sha256,
        "sha256_is_of": "the counts",
        "rows": counts.rows + empty + no_class,
        "rows_used": counts.rows,
        "rows_left_out": {"empty_cells": empty, "class_missing_or_unknown": no_class},
        "training_rows": counts.rows,
        "unseen_rows": 0,
        "weighted": False,
        "weights": "",
        "target": file.target,
        "classes": [
            {"class": own, "rows": rows, "training": rows, "unseen": 0}
            for own, rows in zip(file.tree.classes, sizes, strict=True)
        ],
        "columns": [_column(file.tree, j) for j in range(len(file.tree.schema))],
        "unknown_categories": dict(counts.unknown),
        "reading": list(ColumnParsing.from_json(file.reading).notes) if file.reading else [],
        "fingerprint": None,
        "findings": None,
        "counts": {
            "source": counts.source,
            "engine": origin.get("engine", ""),
            "snapshot": origin.get("snapshot", ""),
            "created": counts.created,
            "parts": len(counts.parts),
            "questions": len(counts.questions),
            "depth": counts.depth,
            "folds": counts.folds,
            "key": counts.key,
        },
    }


def _column(tree: Tree, j: int) -> dict[str, Any]:
    record = use.declared(tree, j) | {"empty_cells": None}
    if tree.schema[j].kind is ColumnKind.CATEGORICAL:
        return record
    return record | {"smallest": None, "largest": None}


def _share(right: int, rows: int) -> dict[str, Any]:
    interval = wilson(right, rows) if rows else None
    return {
        "right": right,
        "rows": rows,
        "share": right / rows if rows else None,
        "interval": None if interval is None else list(interval),
    }


def _performance(tree: Tree) -> dict[str, Any]:
    """Measure the tree on the counted rows, by the class counts of its leaves."""
    classes = range(len(tree.classes))
    confusion = np.zeros((len(classes), len(classes)), np.int64)
    for leaf in tree.leaves:
        confusion[:, leaf.label] += np.array(leaf.counts, np.int64)
    sizes = confusion.sum(axis=1)
    answers = confusion.sum(axis=0)
    rows = int(confusion.sum())
    most = int(sizes.argmax())
    counts = np.array([node.counts for node in tree.nodes], np.int64)
    return {
        "accuracy": _share(int(np.trace(confusion)), rows),
        "confusion": confusion.tolist(),
        "found": [_share(int(confusion[k, k]), int(sizes[k])) for k in classes],
        "precision": [_share(int(confusion[k, k]), int(answers[k])) for k in classes],
        "baseline": {"class": tree.classes[most], **_share(int(sizes[most]), rows)},
        "scores": measures.scores(tree, counts, sizes),
    }


def _leaf(tree: Tree, node: int) -> dict[str, Any]:
    leaf = tree.nodes[node]
    return {
        "leaf": node,
        "class": tree.classes[leaf.label],
        "training_rows": leaf.rows,
        "promised": leaf.counts[leaf.label] / leaf.rows if leaf.rows else None,
        "unseen": _share(0, 0),
        "kept": None,
    }


def _stability(file: ModelFile) -> dict[str, Any] | None:
    """Return leaves and columns of the trees of the folds; the rows on which they agree are not known."""
    trees = (file.rows or {}).get("fold_trees")
    if not trees:
        return None
    tree = file.tree
    grown = [tree_from_json(nodes, schema=tree.schema, classes=tree.classes) for nodes in trees]
    return {
        "trees": len(grown),
        "agreement": [],
        "leaves": [other.n_leaves for other in grown],
        "asked": measures.trees_by_column(tree, grown),
    }
