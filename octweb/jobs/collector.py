"""Collect metrics of the queue, workers, parts and web processes. Importing this module registers the collector."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import Count, Min
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from octweb.core import unavailable
from octweb.core.metrics import SERVICE
from octweb.jobs.models import Job, RunStatus
from octweb.jobs.queue import job_models, workers_seen


class ServiceCollector(Collector):
    """Collector of what an operator watches. Without a database, the other metrics are still reported."""

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        yield _ready()
        yield from _disk()
        yield from _processes()
        try:
            metrics = [*_jobs(), *_database()]
        except DatabaseError:  # octweb_ready reports it
            metrics = []
        yield from metrics


def _gauge(name: str, help_text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, help_text, value=value)


def _ready() -> Metric:
    metric = GaugeMetricFamily("octweb_ready", "1 if the part can be used, 0 if not", labels=["part"])
    for part, state in unavailable.parts().items():
        metric.add_metric([part], float(state == "ok"))
    return metric


def _disk() -> Iterator[Metric]:
    try:
        usage = shutil.disk_usage(settings.DATA_DIR)
    except OSError:  # octweb_ready reports it
        return
    yield _gauge("octweb_disk_free_bytes", "Free space of the disk with the data folder", usage.free)
    yield _gauge("octweb_disk_total_bytes", "Size of the disk with the data folder", usage.total)


def _processes() -> Iterator[Metric]:
    """Yield sums over the web processes of this host: this one, and those with the same parent and command."""
    memory = 0
    threads = 0
    files = 0
    processes = _web_processes()
    for process in processes:
        try:
            with process.oneshot():
                memory += process.memory_info().rss
                threads += process.num_threads()
                files += process.num_fds()
        except psutil.Error:  # it has ended meanwhile
            continue
    yield _gauge("octweb_web_processes", "Processes of the web server on this host", len(processes))
    yield _gauge("octweb_web_resident_bytes", "Memory of the web processes, shared pages counted in each", memory)
    yield _gauge("octweb_web_threads", "Threads of the web processes", threads)
    yield _gauge("octweb_web_open_files", "Open files and connections of the web processes", files)


def _web_processes() -> list[psutil.Process]:
    own = psutil.Process()
    try:
        parent = own.parent()
        siblings = parent.children() if parent else []
        command = own.cmdline()
        same = [process for process in siblings if process.pid != own.pid and process.cmdline() == command]
    except psutil.Error:
        same = []
    return [own, *same]


def _jobs() -> Iterator[Metric]:
    jobs = GaugeMetricFamily("octweb_jobs", "Jobs in the database by kind and status", labels=["kind", "status"])
    oldest = GaugeMetricFamily(
        "octweb_oldest_queued_seconds", "Age of the oldest queued job, 0 without one", labels=["kind"]
    )
    now = timezone.now()
    for model in job_models():
        kind = str(model._meta.model_name)
        counts: dict[Any, int] = dict.fromkeys(RunStatus.values, 0)
        counts |= dict(model._default_manager.order_by().values_list("status").annotate(Count("pk")))
        for status, number in counts.items():
            jobs.add_metric([kind, str(status)], number)
        oldest.add_metric([kind], _queued_seconds(model, now))
    yield jobs
    yield oldest
    yield _gauge("octweb_workers", "Workers that sent a heartbeat within OCTWEB_WORKER_LEASE_SECONDS", workers_seen())


def _queued_seconds(model: type[Job], now: Any) -> float:
    queued = model._default_manager.filter(status=RunStatus.QUEUED)
    first = queued.aggregate(Min("created"))["created__min"]
    return (now - first).total_seconds() if first else 0.0


def _database() -> Iterator[Metric]:
    if connection.vendor == "sqlite":
        path = Path(connection.settings_dict["NAME"])
        size = sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))
    else:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_database_size(current_database())")
            size = cursor.fetchone()[0]
    yield _gauge("octweb_database_bytes", "Size of the database", size)


SERVICE.register(ServiceCollector())
