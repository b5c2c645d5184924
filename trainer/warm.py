"""Tiny trainings that load a method's libraries and compile its kernels, so that no training that counts pays for them."""

from __future__ import annotations

import numpy as np

from trainer.methods import get
from trainer.run import TrainRequest, train
from trainer.table import Labels, numeric_table

ROWS, FEW = 60, 12
COMPILED = ("bivariate", "oc1", "exact", "exact-numeric", "odt", "bendoct-accelerated", "cut-h")
# settings that reach kernels of their own
MORE: dict[str, tuple[dict[str, int], ...]] = {
    "odt": ({}, {"frontier": True}),
    "exact": ({"depth": 4}, {"depth": 5}, {"max_leaves": 5}),
}


def warm(method: str) -> None:
    """Train a tiny tree with the method, without a limit: one that strikes while a kernel compiles leaves the others for later.

    Methods without kernels of their own get fewer rows, since what they lack is loaded by any training. A tree of hyperplanes
    without an error is soon found and needs no search for its proof; the other methods prove theirs however the rows lie.
    """
    compiled = method in COMPILED
    draw = np.random.default_rng(0)
    X = draw.normal(size=(ROWS if compiled else FEW, 3))
    noise = 0.0 if "linear" in get(method).splits else 0.1
    codes = ((X[:, 0] * X[:, 1] > 0) ^ (draw.random(len(X)) < noise)).astype(np.int32)
    labels = Labels(name="y", classes=("a", "b"), codes=codes)
    depth = {"depth": 3 if compiled else 1} if get(method).parameter("depth") is not None else {}
    for more in MORE.get(method, ({},)):
        train(TrainRequest(table=numeric_table(X), labels=labels, method=method, parameters={**depth, **more}))
