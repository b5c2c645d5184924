"""Collect Prometheus metrics of predictions: requests, rows, seconds, errors and labels by model.

With several processes (gunicorn --workers), set PROMETHEUS_MULTIPROC_DIR to an empty folder that all of them can write.
prometheus-client then stores the numbers there, and every process reports the sums.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from django.db import DatabaseError
from django.http import Http404
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from octweb.core.tally import Counts, ModelTally
from trainer.errors import RowError, TrainerError

# all names that are not served share this label; otherwise strangers could fill the memory with invented names
UNKNOWN = "unknown"
MAX_LABELS = 50  # at most this many classes of a model have their own count; the others share one
OTHER = "other classes"

REQUESTS = Counter("octweb_predict_requests", "Prediction calls", ["model", "version", "api", "status"])
ROWS = Counter("octweb_predict_rows", "Rows predicted", ["model", "version"])
LABELS = Counter("octweb_predict_labels", "Rows by the class that was predicted", ["model", "version", "label"])
UNSEEN = Counter(
    "octweb_predict_unseen_missing",
    "Answers that used a side for empty cells that training never saw",
    ["model", "version"],
)
SECONDS = Histogram(
    "octweb_predict_seconds",
    "Seconds of a prediction call inside the application",
    ["model", "version", "api"],
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)


class RefusalRecorder(Protocol):
    """Recorder of rows that get no answer."""

    def refuse(self, error: RowError) -> None: ...


class Call:
    """Outcome of a prediction call, filled in while the call runs."""

    def __init__(self) -> None:
        self.model = UNKNOWN
        self.version = ""
        self.status = 200
        self.tally: ModelTally | None = None
        self.recorded: RefusalRecorder | None = None

    def of(
        self, model: str, version: int, tally: ModelTally | None = None, recorded: RefusalRecorder | None = None
    ) -> None:
        """Set the model, the tally of its answers, and the recorder of refused rows.

        None disables tally or recorder.
        """
        self.model = model
        self.version = str(version)
        self.tally = tally
        self.recorded = recorded

    def predicted(self, counts: Mapping[str, int], unseen: int = 0, life: Counts | None = None) -> None:
        """Count rows by class.

        `unseen` counts answers for which an empty cell took a side of a split without empty training cells. `life`
        holds the counts for the database: rows by leaf, and unusual cells.
        """
        if self.tally is not None and life:
            self.tally.add(life)
        if unseen:
            UNSEEN.labels(self.model, self.version).inc(unseen)
        ROWS.labels(self.model, self.version).inc(sum(counts.values()))
        for i, (label, count) in enumerate(counts.items()):
            if count:
                LABELS.labels(self.model, self.version, label if i < MAX_LABELS else OTHER).inc(count)

    def compare(self, matrix: Any, leaves: Any) -> None:
        """Pass the rows to the challenger of the model, if it has one."""
        if self.tally is not None:
            self.tally.compare(matrix, leaves)


class ModelCounters:
    """Prometheus counters of one model for successful calls, looked up once."""

    def __init__(self, model: str, version: int, api: str, classes: Sequence[str]) -> None:
        key = (model, str(version))
        self._requests = REQUESTS.labels(*key, api, "200")
        self._seconds = SECONDS.labels(*key, api)
        self._rows = ROWS.labels(*key)
        self._labels = [LABELS.labels(*key, c if i < MAX_LABELS else OTHER) for i, c in enumerate(classes)]

    def predicted_one(self, label: int, seconds: float) -> None:
        """Count a call with one row of this class."""
        self._requests.inc()
        self._seconds.observe(seconds)
        self._rows.inc()
        self._labels[label].inc()

    def predicted(self, counts: Sequence[int], seconds: float) -> None:
        """Count a call with its rows by class."""
        self._requests.inc()
        self._seconds.observe(seconds)
        self._rows.inc(sum(counts))
        for counter, count in zip(self._labels, counts, strict=True):
            if count:
                counter.inc(count)


@contextmanager
def count_calls(api: str) -> Iterator[Call]:
    """Count and time a call. If it raises, count it with the status that the caller gets."""
    call = Call()
    start = time.perf_counter()
    try:
        yield call
    except Exception as error:
        call.status = _status(error, api)
        if call.tally is not None and isinstance(error, RowError):
            call.tally.refuse(error)
        if call.recorded is not None and isinstance(error, RowError):
            call.recorded.refuse(error)
        raise
    finally:
        REQUESTS.labels(call.model, call.version, api, str(call.status)).inc()
        SECONDS.labels(call.model, call.version, api).observe(time.perf_counter() - start)


def _status(error: Exception, api: str) -> int:
    if isinstance(error, Http404):
        return 404
    if isinstance(error, TrainerError):
        return 422 if api == "v1" else 400
    if isinstance(error, ValueError):  # the request violates the protocol
        return 400
    return int(getattr(error, "status_code", 500))


# collectors that read the database at each scrape, so all processes report the same; modules register theirs on import
STORED = CollectorRegistry(auto_describe=False)
SERVICE = CollectorRegistry(auto_describe=False)  # collectors that do without a database if it does not respond


def exposition() -> bytes:
    """Return all metrics in the Prometheus text format."""
    registry = REGISTRY
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        registry = CollectorRegistry()
        MultiProcessCollector(registry)
    return b"".join(generate_latest(part) for part in (registry, SERVICE)) + _stored()


def _stored() -> bytes:
    """Return the metrics from the database, or nothing if it does not respond, which octweb_ready reports."""
    try:
        return generate_latest(STORED)
    except DatabaseError:
        return b""
