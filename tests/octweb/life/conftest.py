"""Fixtures of the life of models: counts of approved models."""

from __future__ import annotations

import pytest
from django.db.models import Sum

from octweb.core import tally
from octweb.life.counting import flush
from octweb.life.models import DailyCount


@pytest.fixture(autouse=True)
def _no_counts():
    tally.drain()


@pytest.fixture
def counted():
    """Provide a function that returns the counts of a model in the database: (API, kind, name) → number.

    It first writes the counts in memory to the database.
    """

    def read(model) -> dict[tuple[str, str, str], int]:
        flush()
        fields = ("api", "kind", "name")
        rows = DailyCount.objects.filter(model=model).order_by(*fields).values_list(*fields).annotate(Sum("number"))
        return {(api, kind, name): number for api, kind, name, number in rows}

    return read
