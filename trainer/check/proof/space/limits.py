"""Read the side constraints of a model.

They are rates of groups, recalls, monotone columns and pairs of columns.
"""

from __future__ import annotations

import math

import numpy as np

from trainer.check.proof.model import (
    Model,
    ModelTable,
    active_parameter,
    forbidden_column_pairs,
    minimum_recalls,
    monotone_columns,
    read_fraction,
)
from trainer.check.proof.subject import NoProof, RateLimit


def rates_of(model: Model, rows: ModelTable) -> RateLimit | None:
    """Read the groups that the fairness constraint compares; None without one."""
    if not active_parameter(model, "fairness"):
        return None
    names = [c["name"] for c in model["columns"]]
    values = rows.columns[names.index(str(active_parameter(model, "fairness_column")).strip())]
    name = str(active_parameter(model, "fairness_class") or "").strip()
    among = rows.weights > 0
    label = model["classes"].index(name) if name else int(rows.labels[among].max())
    if active_parameter(model, "fairness") == "opportunity":
        among = among & (rows.labels == label)
    elif active_parameter(model, "fairness") != "parity":
        raise ValueError(
            f"the fairness {str(active_parameter(model, 'fairness'))[:80]!r} is neither 'parity' nor 'opportunity'"
        )
    group = np.full(len(rows), -1, np.int64)
    group[among] = np.unique(values[among], return_inverse=True)[1].reshape(-1)
    # the sums stay below 2^53, so that float64 holds them exactly
    sizes = np.bincount(group[among], rows.weights[among]).astype(np.int64)
    return RateLimit(label, read_fraction(model["parameters"]["fairness_delta"]), group, tuple(sizes.tolist()))


def recalls_of(model: Model, rows: ModelTable) -> tuple[tuple[int, int], ...]:
    error_shares = [(model["classes"].index(name), 1 - read_fraction(share)) for name, share in minimum_recalls(model)]
    return tuple((k, math.floor(int(rows.weights[rows.labels == k].sum()) * wrong)) for k, wrong in error_shares)


def question_directions(model: Model, rows: ModelTable, X: np.ndarray, columns: np.ndarray) -> np.ndarray | None:
    """Return for each question 1 if its column is rising, -1 if falling, else 0; None without a monotone column.

    Raises NoProof if a question about a monotone column is not a threshold.
    """
    names = [c["name"] for c in model["columns"]]
    directions = np.zeros(len(columns), np.int64)
    for name, direction in monotone_columns(model):
        values = rows.columns[names.index(name)]
        for q in np.flatnonzero(columns == names.index(name)).tolist():
            present = ~np.isnan(values)
            no = values[~X[:, q] & present]
            yes = values[X[:, q] & present]
            # the question asks whether the cell is empty, or does not separate the values
            if not (no.size and yes.size):
                continue
            mixed = no.max() >= yes.min()
            if mixed or model["columns"][names.index(name)]["kind"] == "categorical":
                raise NoProof(f"the questions about the monotone column '{name}' are not thresholds")
            directions[q] = 1 if direction == "rising" else -1
    return directions if directions.any() else None


def forbidden_pairs(model: Model, columns: np.ndarray) -> np.ndarray | None:
    names = [c["name"] for c in model["columns"]]
    apart = np.zeros((len(columns), len(columns)), bool)
    for pair in forbidden_column_pairs(model):
        first, second = (columns == names.index(name) for name in pair)
        apart |= np.outer(first, second) | np.outer(second, first)
    return apart if apart.any() else None
