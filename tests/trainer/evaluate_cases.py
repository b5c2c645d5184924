"""Cases and oracles of `test_evaluate.py` that other tests use, too."""

from __future__ import annotations

import numpy as np

from trainer.evaluate import FoldRecord, Study, StudyDataset, Variant
from trainer.table import Labels, numeric_table


def dataset(seed: int = 0, rows: int = 40, name: str = "noise") -> StudyDataset:
    draw = np.random.default_rng(seed)
    X = draw.integers(0, 7, (rows, 2)).astype(float)
    y = ((X[:, 0] > X[:, 1]) ^ (draw.random(rows) < 0.1)).astype(np.int32)
    return StudyDataset(name=name, table=numeric_table(X), labels=Labels(name="y", classes=("a", "b"), codes=y))


def variant(label: str = "CART", method: str = "cart", **parameters) -> Variant:
    return Variant(label=label, method=method, parameters=parameters)


def small(**changes) -> Study:
    settings = {"datasets": [dataset()], "variants": [variant(depth=2), variant("Deep", depth=6)], "folds": 4} | changes
    return Study(**settings)


def records_of(study: Study, accuracy: dict[tuple[str, str], list[float]]) -> list[FoldRecord]:
    return [
        FoldRecord(
            dataset=d.name,
            fingerprint="",
            variant=v.label,
            key="",
            folds=2,
            seed=0,
            fold=f,
            threads=1,
            n=10,
            correct=int(10 * accuracy[d.name, v.label][f]),
            accuracy=accuracy[d.name, v.label][f],
            leaves=3 + f,
            seconds=0.5,
            base_correct=5,
            status="time_limit" if v.label == "Deep" else "heuristic",
        )
        for d in study.datasets
        for v in study.variants
        for f in range(2)
    ]
