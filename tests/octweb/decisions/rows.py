"""Rows for tests of recorded decisions."""

from __future__ import annotations

import numpy as np

from octweb.decisions import collecting
from octweb.registry.document.model_files import model_file
from octweb.registry.prediction.recording import Caller, recorder_of, subject_digest


def record_rows(model, calls):
    tree = model_file(model).tree
    rng = np.random.default_rng(3)
    found = []
    for i in range(calls):
        matrix = np.stack(
            [rng.integers(0, 20, 4) / 2, rng.normal(size=4), rng.integers(0, 2, 4), rng.integers(0, 3, 4)], 1
        )
        caller = Caller("token x", "small", "", subject_digest(f"person {i}"))
        found += recorder_of(model).record("v1", caller, matrix, tree.apply(matrix)).texts()
    collecting.collect()
    return found
