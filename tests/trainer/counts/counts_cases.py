"""Cases and oracles of `test_counts.py` that other tests use, too."""

from __future__ import annotations

from pathlib import Path

from tests.trainer.counts.tables import KEY, TARGET
from trainer.data.reader import load
from trainer.training.run import TrainRequest, train


def of_rows(path: Path, depth: int, **settings: object):
    """Return the tree of `exact` over the same questions, trained on the rows."""
    table, labels, _ = load(path, target=TARGET, ignore=[KEY])
    return train(
        TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": depth, "bins": 4, **settings})
    )
