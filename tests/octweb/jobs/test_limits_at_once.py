"""Limits hold for simultaneous requests, on SQLite and on PostgreSQL."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable

import pytest
from django.core.files.base import ContentFile
from django.db import connection
from django.db.models import QuerySet

from octweb.batch import actions as batch
from octweb.batch.models import BatchPrediction
from octweb.core.problems import Conflict
from octweb.datasets import actions as datasets
from octweb.datasets.models import Dataset, Upload
from octweb.demo import actions as demo
from octweb.demo.models import Visit
from octweb.experiments import actions as experiments
from octweb.experiments.models import Experiment
from octweb.registry.lifecycle import actions as registry
from octweb.runs import actions as runs
from octweb.runs.models import TrainingRun
from octweb.serving.actions import create_token
from octweb.serving.models import ApiToken
from tests.octweb.runs.conftest import CSV

pytestmark = pytest.mark.django_db(transaction=True)
LIMIT = 3
CALLS = 6


@pytest.fixture(autouse=True)
def slow_count(monkeypatch):
    """Give the other calls time between the count of one call and its insert."""
    count = QuerySet.count

    def slow(rows):
        found = count(rows)
        time.sleep(0.1)
        return found

    monkeypatch.setattr(QuerySet, "count", slow)


@pytest.fixture
def limits(settings, media):
    settings.MAX_QUEUED_RUNS = LIMIT
    settings.REST_KNOX = settings.REST_KNOX | {"TOKEN_LIMIT_PER_USER": LIMIT}
    settings.DEMO_VISITORS_PER_ADDRESS = LIMIT


@pytest.fixture
def stored(owner, limits) -> Dataset:
    return datasets.create(owner=owner, file=io.BytesIO(CSV.encode()), source_name="small.csv", target="class")


def call_at_once(call: Callable[[], object]) -> list[type[Exception]]:
    """Call from several threads and return the types of the errors."""
    start = threading.Barrier(CALLS)
    errors: list[type[Exception]] = []

    def work() -> None:
        try:
            start.wait()
            call()
        except Exception as error:
            errors.append(type(error))
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(CALLS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_runs_at_once_stay_within_limit(owner, stored):
    errors = call_at_once(lambda: runs.enqueue(owner=owner, dataset=stored, method="cart"))
    assert errors == [Conflict] * (CALLS - LIMIT)
    assert TrainingRun.objects.count() == LIMIT


def test_experiments_at_once_stay_within_limit(owner, stored):
    trials = [{"method": "cart"}]
    errors = call_at_once(
        lambda: experiments.start(owner=owner, dataset=stored, candidates=trials, folds=3, test_share=0.2)
    )
    assert errors == [Conflict] * (CALLS - LIMIT)
    assert Experiment.objects.count() == LIMIT


def test_predicted_files_at_once_stay_within_limit(owner, stored, cart_document):
    model = registry.register(owner=owner, document=cart_document, dataset=stored, title="small")

    def predict():
        batch.enqueue(owner=owner, model=model, file=ContentFile(CSV.encode(), name="a.csv"), source_name="a.csv")

    assert call_at_once(predict) == [Conflict] * (CALLS - LIMIT)
    assert BatchPrediction.objects.count() == LIMIT


def test_tokens_at_once_stay_within_limit(owner, limits):
    assert call_at_once(lambda: create_token(owner=owner)) == [Conflict] * (CALLS - LIMIT)
    assert ApiToken.objects.count() == LIMIT


def test_visits_at_once_stay_within_limit(limits):
    assert call_at_once(lambda: demo.begin(address="192.0.2.1")) == [demo.DemoFull] * (CALLS - LIMIT)
    assert Visit.objects.count() == LIMIT


class TestVisitor:
    """A visitor of the demo may have a few things of all kinds together."""

    @pytest.fixture
    def visitor(self, limits, settings):
        settings.DEMO_ITEMS = LIMIT
        return demo.begin(address="192.0.2.1").user

    @pytest.mark.slow
    def test_uploads_at_once_stay_within_limit(self, visitor):
        errors = call_at_once(
            lambda: datasets.stage(owner=visitor, file=io.BytesIO(CSV.encode()), source_name="small.csv")
        )
        assert errors == [Conflict] * (CALLS - LIMIT)
        assert Upload.objects.count() == LIMIT

    @pytest.mark.slow
    def test_data_sets_at_once_stay_within_limit(self, visitor):
        errors = call_at_once(
            lambda: datasets.create(
                owner=visitor, file=io.BytesIO(CSV.encode()), source_name="small.csv", target="class"
            )
        )
        assert errors == [Conflict] * (CALLS - LIMIT)
        assert Dataset.objects.count() == LIMIT
