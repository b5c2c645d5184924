"""`manage.py warm`: compile the kernels once, so that the first run of a person does not wait for it."""

from __future__ import annotations

import numpy as np
from django.core.management.base import BaseCommand

from trainer.methods import METHODS
from trainer.run import TrainRequest, train
from trainer.table import Labels, numeric_table

COMPILED = ("bivariate", "oc1", "exact", "exact-numeric", "odt", "bendoct-accelerated", "cut-h")
# settings that reach kernels of their own
MORE: dict[str, tuple[dict[str, bool], ...]] = {"odt": ({}, {"frontier": True})}


class Command(BaseCommand):
    help = "Train a tiny tree with every method that has compiled kernels; they are then kept in NUMBA_CACHE_DIR."
    requires_system_checks: tuple[str, ...] = ()

    def handle(self, *args, **options):
        draw = np.random.default_rng(0)
        X = draw.normal(size=(60, 3))
        codes = ((X[:, 0] * X[:, 1] > 0) ^ (draw.random(60) < 0.1)).astype(np.int32)
        labels = Labels(name="y", classes=("a", "b"), codes=codes)
        for method in METHODS:
            if method.id in COMPILED:
                for more in MORE.get(method.id, ({},)):
                    parameters = {"depth": 3, **more}
                    train(TrainRequest(table=numeric_table(X), labels=labels, method=method.id, parameters=parameters))
                self.stdout.write(f"{method.id}: compiled")
