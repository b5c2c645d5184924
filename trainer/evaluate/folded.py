"""Add the fold results of a study to a model file.

The members are those that `train` with folds writes, so that the checker can count them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trainer.data.folds import Folds, assign_folds, rows_record
from trainer.evaluate.study import FoldRecord, Study, StudyDataset
from trainer.evaluate.tables import interval_of
from trainer.training.metrics import crossed_metrics, metrics_of
from trainer.training.run import MAX_FOLD_NODES
from trainer.tree.file import ModelFile
from trainer.tree.nodes import tree_from_json


def with_folds(model: ModelFile, study: Study, records: Sequence[FoldRecord]) -> ModelFile:
    """Add the fold records of a study of one data set and one variant to `model`, which was trained on all rows.

    Returns `model` unchanged if the study held out rows or a fold has no tree.
    """
    by_fold: dict[int, FoldRecord] = {}
    for record in records:
        if record.second < 0 and not record.error:
            by_fold.setdefault(record.fold, record)  # later records only repeat the fold with another number of threads
    if study.test_share or len(by_fold) < study.folds:
        return model
    fold_records = [by_fold[f] for f in range(study.folds)]
    dataset = study.datasets[0]
    names = {column.name for column in model.tree.schema}  # the tree's schema leaves out the columns of rewards
    columns = tuple(column for column in dataset.table.columns if column.schema.name in names)
    dataset = replace(dataset, table=replace(dataset.table, columns=columns))
    folds = assign_folds(dataset.labels.codes, study.folds, study.seed, dataset.table)
    nodes = sum(len(record.tree) for record in fold_records)
    trees = (
        [record.tree for record in fold_records]
        if all(record.tree for record in fold_records) and nodes <= MAX_FOLD_NODES
        else None
    )
    metrics = crossed_metrics(
        study.folds,
        [record.accuracy for record in fold_records],
        [record.leaves for record in fold_records],
        None if trees is None else _confusion(model, dataset, folds, trees),
        (sum(record.correct for record in fold_records), sum(record.n for record in fold_records)),
    )
    if dataset.group or dataset.time or dataset.weight:
        interval = interval_of(fold_records)
        metrics["interval"] = None if interval is None else list(interval)
    if dataset.weight:
        metrics["rows"] = sum(record.rows for record in fold_records)
    if dataset.group or dataset.time:
        metrics["by_fold"] = folds.counts(dataset.labels.codes, len(dataset.labels.classes))
    if dataset.group:
        metrics["groups"] = len({line[0] for record in fold_records for line in record.by_group})
    rows = rows_record(dataset.table, np.arange(len(dataset.table)), np.zeros(0, np.int64), folds, None, trees)
    if model.rows and "costs" in model.rows:
        rows["costs"] = model.rows["costs"]
    if trees and fold_records[0].questions:
        rows["fold_questions"] = [record.questions for record in fold_records]
    return replace(
        model,
        metrics={**model.metrics, "cross_validation": metrics},
        parameters={**model.parameters, "folds": study.folds},
        rows=rows,
    )


def _confusion(
    model: ModelFile, dataset: StudyDataset, folds: Folds, trees: Sequence[list[dict[str, Any]]]
) -> np.ndarray:
    """Return the confusion matrix of all rows, int64 (classes, classes); the tree of a fold predicts its held-out rows."""
    classes = len(model.tree.classes)
    confusion = np.zeros((classes, classes), np.int64)
    for f, nodes in enumerate(trees):
        tree = tree_from_json(nodes, schema=model.tree.schema, classes=model.tree.classes)
        unseen = folds.validation(f)
        weights = dataset.weights(unseen)
        confusion += metrics_of(tree, dataset.table.take(unseen).matrix(), dataset.labels.codes[unseen], weights)[
            "confusion"
        ]
    return confusion
