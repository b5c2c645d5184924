"""Supervise the job of a training run, and store its model."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

from django.db import transaction

from octweb.checking.actions import keep_proof
from octweb.core.faults import DamagedDocument
from octweb.core.limits import allowed
from octweb.jobs.child import PROGRESS, Process
from octweb.jobs.models import RunStatus
from octweb.jobs.supervisor import TICK_SECONDS, JobRefused, ResultSupervisor, last_line
from octweb.registry.lifecycle import actions as registry
from octweb.runs.child import TrainingProcess
from octweb.runs.models import ProgressRecord, TrainingRun
from octweb.runs.words import family_name, run_name
from trainer.certificate import Status
from trainer.cli.parameters import INFEASIBLE
from trainer.registry import get

# the child enforces its memory limit; the supervisor kills it if it exceeds the limit by this factor
MEMORY_SLACK = 1.25
KEEP_SECONDS = 120.0  # recovering the tree of a killed training must end within this time
NOT_KEPT = "The best tree could not be recovered: counting it again took more time or memory than the run may use."


class TrainingSupervisor(ResultSupervisor):
    """Supervisor of one attempt at a training run."""

    jobs = TrainingRun
    noun = "training"

    def load(self) -> TrainingRun:
        return TrainingRun.objects.select_related("dataset", "owner", "family").get(pk=self.job_id)

    def prepare(self, job: TrainingRun) -> TrainingProcess:
        try:
            return TrainingProcess.prepare(job)
        except FileNotFoundError as error:
            raise JobRefused("The stored file of the data set is gone. Upload it again.") from error
        except DamagedDocument as error:
            raise JobRefused(str(error)) from error

    def limits(self, job: TrainingRun) -> tuple[float, float]:
        return job.longest(), allowed(job.parameters, "memory_limit") * MEMORY_SLACK

    def keep(self, records: list[dict[str, Any]]) -> None:
        ProgressRecord.objects.bulk_create(
            [
                ProgressRecord(run_id=self.job_id, attempt=self.attempt, line=self.lines + i, record=record)
                for i, record in enumerate(records)
            ],
            ignore_conflicts=True,  # an earlier commit may have succeeded although its answer was lost
        )

    def complete(self, summary: dict[str, Any]) -> bool:
        return summary.get("status") not in {None, "cancelled"}

    def kept_of(self, child: Process, cancelled: bool) -> dict[str, Any]:
        """Recover the reported tree of a killed training. Return its summary, or {} on failure.

        Another process does this, with the same memory limit.
        """
        if not isinstance(child, TrainingProcess) or not (child.folder / PROGRESS).exists():
            return {}
        again = replace(child, process=None, ended=_kill_reason(cancelled, self.late))
        again.proof.unlink(missing_ok=True)  # the proof may be truncated, and it does not belong to the recovered tree
        again.start()
        until = time.monotonic() + KEEP_SECONDS
        while again.poll() is None and time.monotonic() < until and again.megabytes() < self.limits(child.job)[1]:
            again.pause(TICK_SECONDS)
        code = again.poll()
        again.kill()
        if code == 0 and again.result.exists():
            return again.summary()
        self.lost = last_line(again.log()) if code == 1 else NOT_KEPT
        return {}

    def on_failure(self, child: Process) -> dict[str, Any]:
        summary = child.summary()
        return {"summary": summary} if summary.get("status") == INFEASIBLE else {}

    def store(self, job: TrainingRun, child: Process, summary: dict[str, Any]) -> None:
        document = json.loads(child.result.read_bytes())
        status = RunStatus.CANCELLED if summary.get("status") == "cancelled" else RunStatus.SUCCEEDED
        with transaction.atomic():
            model = registry.register(
                owner=job.owner, document=document, dataset=job.dataset, title=job.name, name=_name(job)
            )
            if isinstance(child, TrainingProcess):
                keep_proof(model, child.proof)
            self.end(status, model=model, family=model.family, summary=summary | self.noted(), log=self._log(child))


def _kill_reason(cancelled: bool, late: bool) -> str:
    """Return the status with which a killed training ends: cancelled, time limit or memory limit."""
    if cancelled:
        return str(Status.CANCELLED)
    return str(Status.TIME_LIMIT if late else Status.MEMORY_LIMIT)


def _name(job: TrainingRun) -> str | None:
    """Return the name whose next version the model becomes, or None to derive it from the run's name.

    It is the current name of the requested family. Otherwise, if octweb named the run, it consists of data set and
    method.
    """
    if job.family is not None:
        return job.family.name
    method = get(job.method)
    automatic_name = run_name(job.dataset.name, method, job.parameters)
    return family_name(job.dataset.base_name, method) if job.name == automatic_name else None
