"""Run the job of a candidate: `manage.py evaluate`, and store records of folds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from octweb.core.files import place_in
from octweb.core.limits import allowed
from octweb.datasets.stored import refuse_changed
from octweb.experiments.models import Candidate
from octweb.jobs.child import PROGRESS, Process
from octweb.jobs.models import START_SECONDS, RunStatus
from octweb.jobs.queue import more_urgent_waits
from octweb.jobs.supervisor import JobRefused, ResultSupervisor
from trainer.cli.parameters import arguments_of
from trainer.errors import DataError

MEMORY_SLACK = 1.25
URGENT_WAIT = timedelta(seconds=1)  # a free worker would have claimed the job by now


@dataclass(kw_only=True)
class CandidateChild(Process):
    """Child process that runs `manage.py evaluate` for one method.

    Its file of records begins with those of earlier attempts.
    """

    data: Path = Path()

    def write_inputs(self) -> None:
        dataset = self.job.experiment.dataset
        self.data = place_in(dataset.file, self.folder / "data.parquet")
        refuse_changed(dataset, self.data)
        (self.folder / "schema.json").write_text(json.dumps(dataset.columns), encoding="utf-8")
        (self.folder / "reading.json").write_text(json.dumps(dataset.reading), encoding="utf-8")
        trees = self.job.trees
        known = "".join(
            json.dumps(record | ({"tree": trees[str(record["fold"])]} if _keeps_tree(record, trees) else {})) + "\n"
            for record in self.job.records
        )
        (self.folder / PROGRESS).write_text(known, encoding="utf-8")
        self.offset = len(known.encode())

    @property
    def result(self) -> Path:
        return self.folder / "model.json"

    def command(self) -> list[str]:
        candidate: Candidate = self.job
        experiment = candidate.experiment
        # the evaluation sets its own seed and number of threads
        values = {k: v for k, v in candidate.parameters.items() if k not in ("seed", "threads")}
        return [
            *settings.COMMAND,
            "evaluate",
            f"--target={experiment.dataset.target}",
            f"--method={candidate.method}",
            *arguments_of(values.items()),
            f"--seed={experiment.seed}",
            f"--folds={experiment.folds}",
            f"--test-share={experiment.test_share}",
            *(["--nested"] if experiment.nested else []),
            *([f"--group={experiment.group}"] if experiment.group else []),
            *([f"--time={experiment.time}"] if experiment.time else []),
            *([f"--weight={experiment.weight}"] if experiment.weight else []),
            f"--schema={self.folder / 'schema.json'}",
            f"--reading={self.folder / 'reading.json'}",
            f"--state={self.folder / PROGRESS}",
            f"--model={self.result}",
            f"--name={candidate.name}",
            "--dask=",
            "--json",
            "--",
            str(self.data),
        ]


class CandidateSupervisor(ResultSupervisor):
    """Supervisor of one attempt at a candidate. It is preempted after a fit if a user's job waits."""

    jobs = Candidate
    noun = "evaluation"

    def load(self) -> Candidate:
        return Candidate.objects.select_related("experiment__dataset", "owner").get(pk=self.job_id)

    def prepare(self, job: Candidate) -> CandidateChild:
        try:
            return CandidateChild.prepare(job)
        except FileNotFoundError as error:
            raise JobRefused("The stored file of the data set is gone. Upload it again.") from error
        except DataError as error:
            raise JobRefused(str(error)) from error

    def limits(self, job: Candidate) -> tuple[float, float]:
        memory = allowed(job.parameters, "memory_limit")
        return START_SECONDS + job.fit_seconds * job.experiment.fits * 1.1, memory * MEMORY_SLACK

    def _tick(self, child: Process) -> bool:
        known = self.lines
        cancel = super()._tick(child)
        if self.lines > known:  # a fit has ended, so stopping here loses no work
            self.preempted = self.preempted or more_urgent_waits(self.load(), timezone.now() - URGENT_WAIT)
        return cancel

    def _finish(self, job: Any, child: Process, code: int) -> None:
        if self.preempted and code != 0 and not self.end_reason and self._patiently(self._not_cancelled):
            self._patiently(lambda: self._release(gave_way=F("gave_way") + 1))
            return
        super()._finish(job, child, code)

    def keep(self, records: list[dict[str, Any]]) -> None:
        if not records:
            return
        candidate = Candidate.objects.select_for_update().only("records", "trees").get(pk=self.job_id)
        known = {(r.get("fold"), r.get("second", -1)): r for r in candidate.records}
        trees = candidate.trees | {str(r.get("fold")): r["tree"] for r in records if r.get("tree")}
        known |= {(r.get("fold"), r.get("second", -1)): {k: v for k, v in r.items() if k != "tree"} for r in records}
        Candidate.objects.filter(pk=self.job_id).update(records=list(known.values()), trees=trees)

    def store(self, job: Candidate, child: Process, summary: dict[str, Any]) -> None:
        document = child.result.read_text(encoding="utf-8")
        final_record = summary.get("whole") or {}
        with transaction.atomic():
            self.end(
                RunStatus.SUCCEEDED,
                document=document,
                trees={},
                summary=final_record | self.noted(),
                log=self._log(child),
            )


def _keeps_tree(record: dict[str, Any], trees: dict[str, Any]) -> bool:
    """Return whether the tree of this record was stored. Trees of pairs of folds are not."""
    return record.get("second", -1) < 0 and str(record.get("fold")) in trees
