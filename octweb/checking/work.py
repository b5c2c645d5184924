"""Run the job of a check: `manage.py verify` on a model and its rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from octweb.audit import actions as audit
from octweb.checking import actions
from octweb.checking.actions import ENDING, proof_of
from octweb.checking.models import ModelCheck
from octweb.core.files import place_in
from octweb.datasets.stored import unpack_counts
from octweb.jobs.child import Process
from octweb.jobs.models import RunStatus
from octweb.jobs.supervisor import JobRefused, ResultSupervisor


class CheckChild(Process):
    """Child process that runs `manage.py verify` on a copy of the model and the stored rows."""

    data: Path = Path()
    proof: Path | None = None

    @property
    def result(self) -> Path:
        return self.folder / "report.json"

    def write_inputs(self) -> None:
        model = self.job.model
        (self.folder / "model.json").write_text(model.document, encoding="utf-8")
        if model.dataset.counts:
            self.data = unpack_counts(model.dataset, self.folder)
        else:
            self.data = place_in(model.dataset.file, self.folder / "data.parquet")
        if (proof := proof_of(model)) is not None:
            self.proof = place_in(proof.file, self.folder / ENDING)

    def command(self) -> list[str]:
        return [
            *settings.COMMAND,
            "verify",
            *([f"--proof={self.proof}"] if self.proof is not None else []),
            f"--report={self.result}",
            "--json",
            "--",
            str(self.folder / "model.json"),
            str(self.data),
        ]


class CheckSupervisor(ResultSupervisor):
    """Supervisor of one attempt at a check."""

    jobs = ModelCheck
    noun = "check"

    def load(self) -> ModelCheck:
        return ModelCheck.objects.select_related("model__dataset", "owner").get(pk=self.job_id)

    def prepare(self, job: ModelCheck) -> CheckChild:
        if job.model.dataset is None:
            raise JobRefused(actions.NO_ROWS)
        try:
            return CheckChild.prepare(job)
        except FileNotFoundError as error:
            raise JobRefused(
                "The stored file of the data set, or the proof, is gone. Restore it from a backup, or train the model again."
            ) from error

    def limits(self, job: ModelCheck) -> tuple[float, float]:
        return float(settings.MAX_BATCH_SECONDS), float(settings.MAX_TRAINING_MB)

    def store(self, job: ModelCheck, child: Process, summary: dict[str, Any]) -> None:
        report = json.loads(child.result.read_text(encoding="utf-8"))
        with transaction.atomic():
            actions.settle_doubt(job.model, verdict=str(report["verdict"]))
            audit.record("checked", job.model, by=job.owner, verdict=str(report["verdict"]))
            self.end(RunStatus.SUCCEEDED, summary=report, log=child.log())
