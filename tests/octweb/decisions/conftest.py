"""Fixtures of recorded decisions: models whose answers are recorded, with a separate spool."""

from __future__ import annotations

import json

import numpy as np
import pytest

from octweb.core.spool import WRITER
from octweb.decisions import collecting
from octweb.registry.lifecycle import actions
from octweb.registry.models import Recording
from tests.octweb.decisions.rows import record_rows
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table
from trainer.training.run import TrainRequest, train

ROW = {"width": 3.5, "height": 0.5, "flag": 1, "colour": "red"}


@pytest.fixture(autouse=True)
def spool(settings, tmp_path):
    """Provide the folder of the spool. This process writes a new stream to it."""
    settings.DATA_DIR = tmp_path / "data"
    settings.ERASURES = tmp_path / "data" / "erasures.jsonl"
    collecting.SCHEMAS.clear()
    WRITER.close()
    WRITER.forget()
    yield settings.DATA_DIR / "spool"
    WRITER.close()
    WRITER.forget()


@pytest.fixture
def recorded(model, staff):
    actions.ask_for_approval(model, by=model.owner)
    return actions.approve(model, by=staff, recording=Recording.FULL)


@pytest.fixture(scope="session")
def numbers_document():
    """Provide the document of a model whose columns are all numbers, as the quick path reads them."""
    rng = np.random.default_rng(5)
    cells = rng.normal(size=(80, 3)).round(2)
    columns = tuple(
        Column(schema=ColumnSchema(name=f"x{j}", kind=ColumnKind.NUMERIC), cells=cells[:, j]) for j in range(3)
    )
    codes = ((cells[:, 0] > 0) ^ (cells[:, 1] > 0.3)).astype(np.int32)
    labels = Labels(name="y", classes=("no", "yes"), codes=codes)
    table = Table(columns=columns, row_numbers=np.arange(1, 81))
    return json.loads(json.dumps(train(TrainRequest(table=table, labels=labels, method="cart")).model.to_json()))


@pytest.fixture
def ids(recorded):
    """Provide the ids of twenty decisions about five persons, oldest first."""
    return record_rows(recorded, 5)
