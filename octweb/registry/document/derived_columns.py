"""Compute the database columns of a model from its document."""

from __future__ import annotations

from typing import Any

from trainer.certificate import Guarantee, Status
from trainer.errors import ModelFileError
from trainer.tree.file import ModelFile


def columns_of(model: ModelFile) -> dict[str, Any]:
    """Return the database columns that are computed from the document. Raises ModelFileError if it is damaged."""
    certificate = model.certificate
    metrics = model.metrics
    tree = model.tree
    rows = tree.nodes[0].rows
    correct = sum(leaf.counts[leaf.label] for leaf in tree.leaves)
    train = _number(_look_up(metrics, "train", "accuracy"), "metrics.train.accuracy")
    train = train if train is not None else correct / max(1, rows)
    unseen = _look_up(metrics, "cross_validation", "accuracy")
    if unseen is None:
        unseen = _look_up(metrics, "test", "accuracy")
    objective = _number(certificate.get("objective"), "certificate.objective")
    try:
        status = Status(certificate.get("status", Status.HEURISTIC))
        guarantee = Guarantee(certificate.get("guarantee", Guarantee.HEURISTIC))
    except ValueError as error:
        raise ModelFileError(f"The certificate of the model file is damaged: {error}.") from error
    return {
        "status": str(status),
        "guarantee": str(guarantee),
        "objective": train if objective is None else objective,
        "bound": _number(certificate.get("bound"), "certificate.bound"),
        "gap": _number(certificate.get("gap"), "certificate.gap"),
        "train_accuracy": train,
        "unseen_accuracy": _number(unseen, "metrics: accuracy on unseen rows"),
        "leaves": tree.n_leaves,
        "depth": tree.depth,
    }


def _look_up(record: Any, *keys: str) -> Any:
    for key in keys:
        record = record.get(key) if isinstance(record, dict) else None
    return record


def _number(value: Any, place: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ModelFileError(f"The model file is damaged at {place}: {value!r} is not a number.")
    return float(value)
