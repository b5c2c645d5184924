"""Cases and oracles of `test_distance.py` that other tests use, too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.trainer.oblique.tables import instance


def small(seed):
    """Return an instance of at most six points off the grid, and a distance that has an effect."""
    r = np.random.default_rng(seed)
    inst = instance(seed)[1]
    keep = r.permutation(len(inst.Z))[:6]
    Z = np.clip(inst.Z[keep] + r.choice([0.0, 0.05]) * r.random((len(keep), inst.Z.shape[1])), 0, 1)
    counts = inst.counts[keep]
    return replace(inst, Z=Z, counts=counts, group=np.arange(len(keep))), float(r.choice([0.005, 0.1, 0.26, 0.4]))
