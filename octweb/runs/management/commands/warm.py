"""`manage.py warm`: compile the kernels once, so that the first run of a person does not wait for it."""

from __future__ import annotations

import numpy as np
from django.core.management.base import BaseCommand, CommandError

from trainer.methods import METHODS
from trainer.run import TrainRequest, train
from trainer.table import Labels, numeric_table

COMPILED = ("bivariate", "oc1", "exact", "exact-numeric", "odt", "bendoct-accelerated", "cut-h")
# settings that reach kernels of their own
MORE: dict[str, tuple[dict[str, int], ...]] = {
    "odt": ({}, {"frontier": True}),
    "exact": ({"depth": 4}, {"depth": 5}, {"max_leaves": 5}),
}


class Command(BaseCommand):
    help = "Train a tiny tree with every method that has compiled kernels; they are then kept in NUMBA_CACHE_DIR."
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser):
        parser.add_argument("methods", nargs="*", help=f"some of {', '.join(COMPILED)}; without a name all")

    def handle(self, *args, **options):
        if unknown := set(options["methods"]) - set(COMPILED):
            raise CommandError(
                f"Nothing is compiled for {', '.join(sorted(unknown))}; there are {', '.join(COMPILED)}."
            )
        draw = np.random.default_rng(0)
        X = draw.normal(size=(60, 3))
        codes = ((X[:, 0] * X[:, 1] > 0) ^ (draw.random(60) < 0.1)).astype(np.int32)
        labels = Labels(name="y", classes=("a", "b"), codes=codes)
        for method in METHODS:
            if method.id in (options["methods"] or COMPILED):
                for more in MORE.get(method.id, ({},)):
                    parameters = {"depth": 3, **more}
                    train(TrainRequest(table=numeric_table(X), labels=labels, method=method.id, parameters=parameters))
                self.stdout.write(f"{method.id}: compiled")
