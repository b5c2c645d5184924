"""Data set of noisy rows, and runs on it that are trained in the process of the test."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from octweb.datasets import actions as datasets
from octweb.datasets import stored
from octweb.datasets.models import Dataset
from octweb.jobs.models import RunStatus
from octweb.registry.lifecycle import actions as registry
from octweb.runs import actions
from octweb.runs.models import TrainingRun
from trainer.training.run import TrainRequest, train


def noisy_dataset(owner: Any) -> Dataset:
    """Store 160 rows whose class depends on two of four columns. A tenth of the classes is inverted."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(160, 4)).round(1)
    y = ((X[:, 0] > 0) & (X[:, 1] > -0.5)) ^ (rng.random(160) < 0.1)
    rows = "".join(f"{','.join(map(str, row))},{'yes' if own else 'no'}\n" for row, own in zip(X, y, strict=True))
    text = "a,b,c,d,class\n" + rows
    return datasets.create(owner=owner, file=io.BytesIO(text.encode()), source_name="noisy.csv", target="class")


def finished(run: TrainingRun) -> TrainingRun:
    """Train as a worker would, register the model, and return the run."""
    table, labels = stored.load(run.dataset)
    request = TrainRequest(
        table=table, labels=labels, method=run.method, parameters=run.parameters, test_share=run.test_share
    )
    document = train(request).model.to_json()
    run.model = registry.register(owner=run.owner, document=document, dataset=run.dataset, title="Noisy")
    run.status = RunStatus.SUCCEEDED
    run.save()
    return run


def trained(owner: Any, dataset: Dataset, **parameters: Any) -> TrainingRun:
    own = {"depth": 2, "bins": 5} | parameters
    return finished(actions.enqueue(owner=owner, dataset=dataset, method="exact", parameters=own, test_share=0.25))
