"""Print as JSON (kernel → trainings) what trainings compile after the methods on the command line were warmed.

other_trainings.py METHOD ... [--only METHOD]    (a script of its own: what a process has compiled, it has compiled for good)
"""

from __future__ import annotations

import argparse
import gc
import json
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table
from trainer.training.run import TrainRequest, train
from trainer.training.warm_up import warm

TRAININGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("exact", {"depth": 1}),
    ("exact", {"depth": 2, "leaf_penalty": 0.01}),
    ("exact", {"depth": 3, "min_leaf": 3}),
    ("exact", {"depth": 4, "class_weight": "balanced"}),
    ("exact", {"depth": 3, "recall": "yes: 0.5"}),
    ("exact-numeric", {"depth": 2}),
    ("exact-numeric", {"depth": 3, "leaf_penalty": 0.01}),
    ("odt", {"depth": 2, "max_card": 1}),
    ("odt", {"topology": "imbalanced"}),
    ("odt", {"depth": 3}),
    ("odt", {"depth": 2, "sensitivity": 0.9, "positive": "yes"}),
    ("bivariate", {"depth": 2}),
    ("bivariate", {"depth": 3, "min_leaf": 2}),
    ("oc1", {"depth": 3}),
    ("bendoct-accelerated", {"depth": 2}),
    ("bendoct-accelerated", {"depth": 3, "leaf_penalty": 0.01}),
    ("cut-h", {"depth": 1, "time_limit": 5}),
)


def signatures() -> dict[str, int]:
    """Return the number of compiled or loaded signatures of each kernel."""
    gc.unfreeze()  # a fork inherits kernels from its parent, and frozen objects are not listed
    found = {d.py_func.__qualname__: len(d.signatures) for d in gc.get_objects() if isinstance(d, Dispatcher)}
    gc.freeze()
    return found


def sample(rows: int) -> tuple[Table, Labels]:
    """Return three numeric and two categorical columns, unlike those with which kernels are warmed."""
    draw = np.random.default_rng(7)
    X = draw.normal(size=(rows, 3)).round(1)
    C = draw.integers(0, 3, (rows, 2)).astype(np.float64)
    codes = ((X[:, 0] + X[:, 1] > 0) ^ (C[:, 0] == 1)).astype(np.int32)
    columns = [Column(schema=ColumnSchema(name=f"x{j}", kind=ColumnKind.NUMERIC), cells=X[:, j]) for j in range(3)]
    columns += [
        Column(schema=ColumnSchema(name=f"c{j}", kind=ColumnKind.CATEGORICAL, categories=tuple("abc")), cells=C[:, j])
        for j in range(2)
    ]
    table = Table(columns=tuple(columns), row_numbers=np.arange(1, rows + 1))
    return table, Labels(name="y", classes=("no", "yes"), codes=codes)


def main() -> None:
    """Warm, train, and print the kernels that were compiled meanwhile."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="*")
    parser.add_argument("--only", help="train with this method alone")
    given = parser.parse_args()
    for method in given.methods:
        warm(method)
    before = signatures()
    trained = [t for t in TRAININGS if given.only in (None, t[0])]
    for method, settings in trained:
        table, labels = sample(35 if method == "cut-h" else 130)
        train(TrainRequest(table=table, labels=labels, method=method, parameters=settings))
    # This is computed only once, because it takes longer than most of these trainings.
    print(json.dumps({name: str(trained) for name, count in signatures().items() if count != before.get(name, 0)}))


if __name__ == "__main__":
    main()
