"""Fixtures of data sets: a data set of forty rows. The files of each test are in a separate folder."""

from __future__ import annotations

import io

import pytest

from octweb.datasets import actions
from tests.octweb.datasets.files import GOOD


@pytest.fixture(autouse=True)
def _media(media):
    return media


@pytest.fixture
def dataset(owner):
    return actions.create(owner=owner, file=io.BytesIO(GOOD), source_name="good.csv", target="label")


@pytest.fixture
def staged(owner):
    return actions.stage(owner=owner, file=io.BytesIO(GOOD), source_name="good.csv")


@pytest.fixture
def run(owner, dataset):
    from octweb.runs.models import TrainingRun

    return TrainingRun.objects.create(owner=owner, dataset=dataset, method="cart", parameters={})
