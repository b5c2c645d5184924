"""Rates of groups: which rows the constraint of fairness compares, and how many of each group a tree may predict the favoured class."""

from __future__ import annotations

import numpy as np

from trainer.verify.model import Model, Rows, asked, exact
from trainer.verify.subject import Rates


def rates_of(model: Model, rows: Rows) -> Rates | None:
    """The groups that the parameters compare; None if they ask for no fairness."""
    if not asked(model, "fairness"):
        return None
    names = [c["name"] for c in model["columns"]]
    values = rows.columns[names.index(str(asked(model, "fairness_column")).strip())]
    name = str(asked(model, "fairness_class") or "").strip()
    among = rows.weights > 0
    label = model["classes"].index(name) if name else int(rows.labels[among].max())
    if asked(model, "fairness") == "opportunity":
        among = among & (rows.labels == label)
    elif asked(model, "fairness") != "parity":
        raise ValueError(f"no such fairness: {str(asked(model, 'fairness'))[:80]!r}")
    group = np.full(len(rows), -1, np.int64)
    group[among] = np.unique(values[among], return_inverse=True)[1].reshape(-1)
    sizes = np.zeros(int(group.max()) + 1, np.int64)
    np.add.at(sizes, group[among], rows.weights[among])
    return Rates(label, exact(model["parameters"]["fairness_delta"]), group, tuple(sizes.tolist()))
