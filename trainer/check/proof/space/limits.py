"""What restricts trees beyond their size: rates of groups, recalls, monotone columns, pairs of columns."""

from __future__ import annotations

import math

import numpy as np

from trainer.check.proof.model import Model, ModelTable, active_parameter, exact, pairs, recalls, ways
from trainer.check.proof.subject import NoProof, RateLimit


def rates_of(model: Model, rows: ModelTable) -> RateLimit | None:
    """The groups that the parameters compare; None if they ask for no fairness."""
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
        raise ValueError(f"no such fairness: {str(active_parameter(model, 'fairness'))[:80]!r}")
    group = np.full(len(rows), -1, np.int64)
    group[among] = np.unique(values[among], return_inverse=True)[1].reshape(-1)
    sizes = np.bincount(group[among], rows.weights[among]).astype(np.int64)  # below 2^53, and so exact
    return RateLimit(label, exact(model["parameters"]["fairness_delta"]), group, tuple(sizes.tolist()))


def recalls_of(model: Model, rows: ModelTable) -> tuple[tuple[int, int], ...]:
    found = [(model["classes"].index(name), 1 - exact(share)) for name, share in recalls(model)]
    return tuple((k, math.floor(int(rows.weights[rows.labels == k].sum()) * wrong)) for k, wrong in found)


def rising(model: Model, rows: ModelTable, X: np.ndarray, columns: np.ndarray) -> np.ndarray | None:
    """Raises NoProof where a monotone column is not asked by thresholds."""
    names = [c["name"] for c in model["columns"]]
    found = np.zeros(len(columns), np.int64)
    for name, way in ways(model):
        values = rows.columns[names.index(name)]
        for q in np.flatnonzero(columns == names.index(name)).tolist():
            present = ~np.isnan(values)
            no = values[~X[:, q] & present]
            yes = values[X[:, q] & present]
            if not (no.size and yes.size):  # it asks whether the cell is empty, or separates nothing
                continue
            mixed = no.max() >= yes.min()
            if mixed or model["columns"][names.index(name)]["kind"] == "categorical":
                raise NoProof(f"the monotone column '{name}' is not asked by thresholds")
            found[q] = 1 if way == "rising" else -1
    return found if found.any() else None


def forbidden_pairs(model: Model, columns: np.ndarray) -> np.ndarray | None:
    names = [c["name"] for c in model["columns"]]
    apart = np.zeros((len(columns), len(columns)), bool)
    for pair in pairs(model):
        first, second = (columns == names.index(name) for name in pair)
        apart |= np.outer(first, second) | np.outer(second, first)
    return apart if apart.any() else None
