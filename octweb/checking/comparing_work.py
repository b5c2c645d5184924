"""Run the job of a comparison: `manage.py convert --compare`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from octweb.audit import actions as audit
from octweb.checking.comparing import NO_ROWS, has_rows
from octweb.checking.models import Comparison
from octweb.core.faults import DamagedDocument
from octweb.core.files import place_in
from octweb.datasets.stored import digest
from octweb.jobs.child import Process
from octweb.jobs.models import RunStatus
from octweb.jobs.supervisor import JobRefused, ResultSupervisor
from octweb.registry.document.model_files import document_of

MEMORY_SLACK = 1.25  # a child that exceeds the memory limit by this factor is killed


class ComparisonChild(Process):
    """Child process that runs `manage.py convert --compare`. Its last line of output is the result."""

    data: Path = Path()

    @property
    def result(self) -> Path:
        return self.folder / "stdout"

    def write_inputs(self) -> None:
        model = self.job.model
        (self.folder / "model.json").write_text(document_of(model), encoding="utf-8")
        (self.folder / "reading.json").write_text(json.dumps(model.dataset.reading), encoding="utf-8")
        self.data = place_in(model.dataset.file, self.folder / "data.parquet")
        if digest(self.data) != model.dataset.sha256:
            raise JobRefused(
                "The stored file of the data set was changed outside octweb, so a comparison would mean nothing. "
                "Restore the file from a backup, or bring the tree again with another data set."
            )

    def command(self) -> list[str]:
        return [
            *settings.COMMAND,
            "convert",
            "--from=octweb",
            f"--data={self.data}",
            f"--reading={self.folder / 'reading.json'}",
            f"--target={self.job.model.dataset.target}",
            "--compare",
            f"--time-limit={self.job.seconds}",
            "--json",
            "--",
            str(self.folder / "model.json"),
        ]


class ComparisonSupervisor(ResultSupervisor):
    """Supervisor of one attempt at a comparison."""

    jobs = Comparison
    noun = "comparison"

    def load(self) -> Comparison:
        return Comparison.objects.select_related("model__dataset", "owner").get(pk=self.job_id)

    def prepare(self, job: Comparison) -> ComparisonChild:
        if not has_rows(job.model):
            raise JobRefused(NO_ROWS)
        try:
            return ComparisonChild.prepare(job)
        except FileNotFoundError as error:
            raise JobRefused(
                "The stored file of the data set is gone. Restore it from a backup, or bring the tree again with another data set."
            ) from error
        except DamagedDocument as error:
            raise JobRefused(str(error)) from error

    def limits(self, job: Comparison) -> tuple[float, float]:
        return job.longest(), MEMORY_SLACK * settings.MAX_TRAINING_MB

    def complete(self, summary: dict[str, Any]) -> bool:
        return bool(summary) and not summary["compare"]["stopped"]

    def store(self, job: Comparison, child: Process, summary: dict[str, Any]) -> None:
        comparison = summary["compare"]
        status = RunStatus.CANCELLED if comparison["stopped"] else RunStatus.SUCCEEDED
        with transaction.atomic():
            audit.record(
                "compared",
                job.model,
                by=job.owner,
                verdict=comparison["verdict"],
                rows=comparison["n"],
                mistakes=comparison["mistakes"],
                best_mistakes=comparison["best_mistakes"],
                least_mistakes=comparison["least_mistakes"],
            )
            self.end(status, summary=comparison | self.noted(), log=self._log(child))
