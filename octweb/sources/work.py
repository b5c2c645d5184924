"""Run the job of a count, and store its data set."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files import File
from django.db import transaction
from django.http import Http404

from octweb.core.limits import server_limits
from octweb.datasets import actions as datasets
from octweb.datasets.models import Dataset
from octweb.datasets.sources import SourceRows, chosen_rows, keys
from octweb.jobs.child import PROGRESS, Process
from octweb.jobs.models import RunStatus
from octweb.jobs.supervisor import JobRefused, ResultSupervisor
from octweb.sources.models import SourceCount
from trainer.counts.collect import UNFINISHED
from trainer.counts.folder import NUMBERS, RECORD
from trainer.data.parsing import ColumnParsing
from trainer.errors import DataError
from trainer.table import ColumnSchema

REQUEST = "request.json"
CHECKPOINT = "checkpoint"  # folder of the last checkpoint, beside those of the attempts
UNKNOWN_SOURCE = "The source of this count is no longer offered to you. Ask an administrator."


class CountChild(Process):
    """Child process that runs `count` with a request file. Its texts show the name of the source, not its address."""

    rows: SourceRows

    def write_inputs(self) -> None:
        job: SourceCount = self.job
        self.rows = chosen_rows(job.owner, {"source": job.source, "table": job.table, "query": job.query})
        request = {
            "source": self.rows.place,
            "label": self.rows.words,
            "query": self.rows.statement,
            "target": job.target,
            "depth": job.depth,
            "bins": job.bins,
            "scheme": job.scheme,
            "folds": job.folds,
            "key": job.key or None,
            "given": job.reading,
            "options": job.options,
            "threads": server_limits()["threads"],
            "most_rows": settings.MAX_SOURCE_ROWS,
            "statement_seconds": settings.MAX_COUNT_SECONDS,
        }
        self._copy_checkpoint()
        descriptor = os.open(self.folder / REQUEST, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump(request, stream)

    def _copy_checkpoint(self) -> None:
        """Copy the last checkpoint of an earlier attempt on this host; `count` resumes there if the source is unchanged.

        An attempt whose worker was killed left its folder; others have moved theirs. A checkpoint has its own digest, so
        half a copy is ignored.
        """
        attempts = self.folder.parent
        earlier = [attempts / str(number) / "counts" for number in range(self.job.attempt - 1, 0, -1)]
        for place in (*earlier, attempts / CHECKPOINT):
            if (place / f"{UNFINISHED}.json").exists():
                with suppress(OSError):
                    shutil.copytree(place, self.counts)
                return

    def clean(self) -> None:
        """Remove the files as other jobs do, but keep a checkpoint for the next attempt.

        A count that has finished has none, and the folders of ended jobs are swept.
        """
        kept = self.folder.parent / CHECKPOINT
        if (self.counts / f"{UNFINISHED}.json").exists():
            shutil.rmtree(kept, ignore_errors=True)
            with suppress(OSError):
                self.counts.rename(kept)
        elif self.result.exists():
            shutil.rmtree(kept, ignore_errors=True)
        super().clean()

    @property
    def counts(self) -> Path:
        return self.folder / "counts"

    @property
    def result(self) -> Path:
        return self.counts / RECORD

    def environment(self) -> dict[str, str]:
        return super().environment() | keys()

    def command(self) -> list[str]:
        return [
            *settings.COMMAND,
            "count",
            f"--request={self.folder / REQUEST}",
            f"--progress={self.folder / PROGRESS}",
            f"--output={self.counts}",
            "--json",
        ]

    def log(self) -> str:
        return self.rows.source.hide(super().log())


class CountSupervisor(ResultSupervisor):
    """Supervisor of one attempt at a count."""

    jobs = SourceCount
    noun = "count"

    def load(self) -> SourceCount:
        return SourceCount.objects.select_related("owner").get(pk=self.job_id)

    def prepare(self, job: SourceCount) -> CountChild:
        try:
            return CountChild.prepare(job)
        except Http404:
            raise JobRefused(UNKNOWN_SOURCE) from None
        except DataError as error:
            raise JobRefused(str(error)) from error

    def limits(self, job: SourceCount) -> tuple[float, float]:
        return job.longest(), float(settings.MAX_TRAINING_MB)

    def store(self, job: SourceCount, child: Process, summary: dict[str, Any]) -> None:
        assert isinstance(child, CountChild)
        record = json.loads(child.result.read_bytes())
        dataset = describe_counts(job, record, summary["class_rows"])
        packed = pack(child.counts)
        dataset.sha256 = datasets.digest(packed)
        dataset.source_bytes = packed.stat().st_size
        with packed.open("rb") as stream:
            dataset.counts.save(f"{job.pk}.zip", File(stream), save=False)
        with datasets.removing_file_on_error(dataset), transaction.atomic():
            datasets.insert(dataset)
            kept = {name: value for name, value in summary.items() if name not in ("questions", "class_rows")}
            self.end(RunStatus.SUCCEEDED, dataset=dataset, summary=kept | self.noted(), log=self._log(child))


def pack(counts: Path) -> Path:
    """Return the path of a zip file with the two files of a folder of counts. They are compressed already."""
    path = counts.with_suffix(".zip")
    with zipfile.ZipFile(path, "w") as out:
        for name in (RECORD, NUMBERS):
            out.write(counts / name, name)
    return path


def describe_counts(job: SourceCount, record: dict[str, Any], class_rows: list[int]) -> Dataset:
    """Return the data set of a count, not saved: columns, classes and origin from `counts.json`."""
    features = [_column(column, "feature") for column in record["columns"]]
    target = {"name": record["target"], "kind": "categorical", "missing": "drop", "role": "target"}
    majority = max(range(len(class_rows)), key=class_rows.__getitem__)
    origin = {name: getattr(job, name) for name in ("source", "table", "query", "scheme", "bins")}
    counted = ("sha256", "created", "depth", "folds", "key", "left_out", "unknown", "asked")
    return Dataset(
        owner=job.owner,
        name=job.name,
        target=record["target"],
        rows=record["rows"],
        columns=[*features, _column(target, "target")],
        profile={
            "classes": record["classes"],
            "class_counts": class_rows,
            "baseline": class_rows[majority] / record["rows"],
            "majority": record["classes"][majority],
            "rows_read": record["rows"] + sum(record["left_out"].values()),
            "rows_dropped": sum(record["left_out"].values()),
            "notes": [],
        },
        reading=ColumnParsing.from_json(record["reading"]).to_json() if record["reading"] else {},
        source_name=chosen_words(job)[:255],
        origin=origin
        | {name: record[name] for name in counted}
        | {name: record["origin"].get(name, "") for name in ("engine", "snapshot")}
        | {"questions": len(record["questions"])},
    )


def chosen_words(job: SourceCount) -> str:
    """Return the counted rows in words."""
    if job.query:
        return f"a query of {job.source}"
    return f"{job.source}: {job.table}" if job.table else job.source


def _column(record: dict[str, Any], role: str) -> dict[str, Any]:
    """Return the record of a column as other data sets have it. What only rows show is unknown."""
    if role == "feature":
        schema = ColumnSchema.from_json(record)
        record = schema.to_json() | schema.contract_json() | {"unit": schema.unit}
        record.pop("categories", None)
    unknown: dict[str, Any] = {"empty": None, "distinct": None, "examples": [], "constant": False, "identifier": False}
    return record | {"role": role, "reason": "counted", "guessed": record["kind"]} | unknown
