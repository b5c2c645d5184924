"""Train the method again on bootstraps of the training rows, and compare the trees."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainer.certificate import Status
from trainer.data.reader import ReadLimits
from trainer.dossier.rows import DossierRows
from trainer.errors import TrainerError
from trainer.methods.monitor import Monitor
from trainer.table import Labels
from trainer.training.run import TrainRequest, train
from trainer.tree.nodes import Tree

BOOTSTRAPS = 20
SEED = 20  # of the samples, so that a second dossier draws the same ones
UNFINISHED = (Status.TIME_LIMIT, Status.MEMORY_LIMIT, Status.CANCELLED)
NOT_AGAIN = "its method cannot be run again with the settings of the model file"
OWN_LIMIT = "a limit in the settings of the model file ended the training"
ROW_COSTS = "the model file does not hold the cost of each row"


@dataclass(frozen=True, kw_only=True)
class DossierLimits(ReadLimits):
    """Limits of a dossier: those of reading, and the time of all trainings on bootstraps together; 0 leaves them out."""

    bootstrap_seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class _Retraining:
    """The training of a model file, to be repeated on other rows within a time limit."""

    rows: DossierRows
    labels: Labels
    parameters: dict[str, Any]

    def tree(self, sample: np.ndarray, seconds: float) -> Tree | None:
        """Train on a sample of the rows. Return None if the training does not end in time. Raises TrainerError."""
        rows = self.rows
        request = TrainRequest(
            table=rows.table.take(sample),
            labels=self.labels.take(sample),
            method=rows.model.method,
            parameters=self.parameters,
            weights=None if rows.weights is None else rows.weights[sample],
        )
        timers: list[threading.Timer] = []

        def limit(monitor: Monitor) -> None:
            timers.append(threading.Timer(seconds, monitor.stop, [Status.TIME_LIMIT]))
            timers[0].start()

        try:
            result = train(request, on_start=limit)
        finally:
            for timer in timers:
                timer.cancel()
        return None if result.certificate.status in UNFINISHED else result.tree


def bootstraps(
    rows: DossierRows, seconds: float, *, clock: Callable[[], float] = time.monotonic
) -> dict[str, Any] | None:
    """Train again on up to BOOTSTRAPS bootstraps of the training rows, and compare the trees with the model.

    A bootstrap draws as many rows as there are, with replacement; with groups, it draws whole groups.

    Parameters
    ----------
    rows : DossierRows
    seconds : float
        Time limit of all trainings together; with 0, nothing is trained and None is returned.
    clock : callable
        Returns the current time in seconds.

    Returns
    -------
    dict or None
        `trees` that were planned, `ended` in time, and how many of these have the same root split, root column, and set of
        columns; their agreement with the model on `rows` rows; `reason` why no further training was possible, or "" if the
        time was over or all ended.
    """
    if not seconds or not len(rows.training):
        return None
    parameters = {k: v for k, v in rows.model.parameters.items() if k not in ("test_share", "folds")}
    labels = Labels(name=rows.model.target, classes=rows.model.tree.classes, codes=rows.codes)
    retraining = _Retraining(rows=rows, labels=labels, parameters=parameters)
    trees: list[Tree] = []
    reason = ROW_COSTS if parameters.get("costs") == "rows" else ""
    end = clock() + seconds
    generator = np.random.default_rng(SEED)
    for _ in range(0 if reason else BOOTSTRAPS):
        left = end - clock()
        if left <= 0:
            break
        try:
            tree = retraining.tree(_sample(rows, generator), left)
        except TrainerError:
            reason = NOT_AGAIN
            break
        if tree is None:
            reason = OWN_LIMIT if clock() < end else ""
            break
        trees.append(tree)
    return _comparison(rows, trees) | {"seconds": seconds, "reason": reason}


def _sample(rows: DossierRows, generator: np.random.Generator) -> np.ndarray:
    """Draw a bootstrap of the training rows, and return their positions."""
    training = rows.training
    if rows.group_codes is None:
        return generator.choice(training, len(training))
    groups = rows.group_codes[training]
    names = np.unique(groups)
    drawn = generator.choice(names, len(names))
    return np.concatenate([training[groups == name] for name in drawn])


def _comparison(rows: DossierRows, trees: list[Tree]) -> dict[str, Any]:
    tree = rows.model.tree
    at = rows.unseen if len(rows.unseen) else np.arange(len(rows.codes))
    agreement = [float(np.average(other.predict(rows.matrix[at]) == rows.predicted[at])) for other in trees]
    columns = Counter(other.schema[j].name for other in trees for j in other.used_columns)
    root = tree.nodes[0].split
    roots = [other.nodes[0].split for other in trees]
    return {
        "trees": BOOTSTRAPS,
        "ended": len(trees),
        "same_root": sum(split == root for split in roots),
        "same_root_columns": sum(_used(split) == _used(root) for split in roots),
        "same_columns": sum(_names(other) == _names(tree) for other in trees),
        "agreement": None
        if not trees
        else {"mean": float(np.mean(agreement)), "lowest": min(agreement), "highest": max(agreement)},
        "rows": len(at),
        "rows_are": "unseen" if len(rows.unseen) else "all",
        "leaves": [other.n_leaves for other in trees],
        "asked": dict(columns.most_common()),
    }


def _used(split: Any) -> tuple[int, ...]:
    """Return the columns of a split, or () for a leaf."""
    return () if split is None else tuple(sorted(split.used))


def _names(tree: Tree) -> set[str]:
    return {tree.schema[j].name for j in tree.used_columns}
