"""Collect metrics of served models from the database. Importing this module registers them."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Sum
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from octweb.core.metrics import STORED
from octweb.core.tally import ROWS
from octweb.life.models import DailyCount, Watching
from octweb.registry.models import State

FIELDS = ("model__family__name", "model__version", "name")


class LifeCollector(Collector):
    """Collector of rows by leaf and evidence by watch, for all approved models."""

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        rows = CounterMetricFamily(
            "octweb_leaf_rows", "Rows that an approved model answered, by leaf", labels=["model", "version", "leaf"]
        )
        counts = DailyCount.objects.filter(kind=ROWS, model__state=State.APPROVED, model__deleted_at=None)
        for *labels, number in counts.order_by(*FIELDS).values_list(*FIELDS).annotate(Sum("number")):
            rows.add_metric([str(label) for label in labels], number)
        yield rows
        gauge = GaugeMetricFamily(
            "octweb_watch_evidence",
            "Evidence that a watched share has changed, log10, at the last look",
            labels=["model", "version", "watch"],
        )
        watching = Watching.objects.filter(model__state=State.APPROVED, model__deleted_at=None)
        for name, version, evidence in watching.values_list("model__family__name", "model__version", "evidence"):
            for watch, value in sorted(evidence.items()):
                gauge.add_metric([name, str(version), watch], value)
        yield gauge


STORED.register(LifeCollector())
