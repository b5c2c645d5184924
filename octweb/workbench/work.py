"""Supervise the job of a workbench, whose child process answers its steps.

Web servers store steps in the database. The supervisor passes them on as lines of a file and stores the answers. If a
child process or worker dies, the next one takes over its step.
"""

from __future__ import annotations

import json
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import F
from django.utils import timezone

from octweb.checking.actions import keep_proof
from octweb.core.files import place_in
from octweb.core.limits import allowed
from octweb.datasets.stored import unpack_counts
from octweb.jobs.child import PROGRESS, Process
from octweb.jobs.models import RunStatus
from octweb.jobs.queue import job_models, send
from octweb.jobs.supervisor import DATABASE_TIMEOUT_SECONDS, TICK_SECONDS, JobRefused, Supervisor
from octweb.registry.models import TreeModel
from octweb.runs.dependence import ROLES
from octweb.workbench import actions
from octweb.workbench.models import Step, StepKind, StepState, Workbench
from trainer.cli.parameters import arguments_of
from trainer.workbench.answers import proof_name

REQUESTS = "requests.jsonl"
MEMORY_SLACK = 1.25
IDLE_SECONDS = 600.0  # a session without a step ends after this time
# another job must wait this long before an idle session ends for it; a free worker would have claimed it by then
YIELD_SECONDS = 0.5
LOOK_SECONDS = 0.25  # time between two checks for waiting jobs
BUSY_SECONDS = 30.0  # for this long after a step, the loop sleeps QUICK instead of SLOW
QUICK = 0.02
SLOW = 0.25
MOST_TRIES = 3


@dataclass(kw_only=True)
class EditingChild(Process):
    """Child process that runs `manage.py edit`, which answers the lines of a file of requests."""

    data: Path = Path()

    def write_inputs(self) -> None:
        bench: Workbench = self.job
        if bench.dataset.counts:
            self.data = unpack_counts(bench.dataset, self.folder)
        else:
            self.data = place_in(bench.dataset.file, self.folder / "data.parquet")
            (self.folder / "schema.json").write_text(json.dumps(bench.dataset.columns), encoding="utf-8")
            (self.folder / "reading.json").write_text(json.dumps(bench.dataset.reading), encoding="utf-8")
        (self.folder / REQUESTS).touch()
        if bench.base is not None:
            (self.folder / "base.json").write_text(bench.base.document, encoding="utf-8")

    @property
    def result(self) -> Path:
        return self.folder / PROGRESS

    def command(self) -> list[str]:
        bench: Workbench = self.job
        base = self.folder / "base.json"
        return [
            *settings.COMMAND,
            "edit",
            f"--method={bench.method}",
            *arguments_of(bench.parameters.items()),
            f"--name={bench.name}",
            *([] if bench.dataset.counts else self._of_rows(bench)),
            *([f"--base={base}"] if base.exists() else []),
            f"--requests={self.folder / REQUESTS}",
            f"--progress={self.folder / PROGRESS}",
            "--",
            str(self.data),
        ]

    def _of_rows(self, bench: Workbench) -> list[str]:
        """Return the options that a workbench on counts does not have."""
        return [
            f"--target={bench.dataset.target}",
            f"--test-share={bench.test_share}",
            *(f"--{role}={column}" for role in ROLES if (column := getattr(bench, role))),
            f"--schema={self.folder / 'schema.json'}",
            f"--reading={self.folder / 'reading.json'}",
        ]

    def hand(self, record: dict[str, Any]) -> None:
        """Send a line to the child process."""
        with (self.folder / REQUESTS).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")

    @property
    def has_output(self) -> bool:
        """Whether the child has written output that is not stored yet."""
        try:
            return (self.folder / PROGRESS).stat().st_size > self.offset
        except FileNotFoundError:
            return False


class EditingSupervisor(Supervisor):
    """Supervisor of one session of a workbench. The session ends when it is idle."""

    jobs = Workbench
    noun = "workbench"

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.busy_at = time.monotonic()
        self.handed: set[int] = set()
        self.told_to_stop: set[int] = set()
        self.idle = False
        self.unanswered = False  # True if the last look found an unfinished step
        self.others_since: float | None = None  # time since when another job has waited for a worker
        self.folder = Path()  # folder of the child process

    def load(self) -> Workbench:
        return Workbench.objects.select_related("dataset", "owner", "base").get(pk=self.job_id)

    def prepare(self, job: Workbench) -> EditingChild:
        self._take_back()
        try:
            child = EditingChild.prepare(job)
            self.folder = child.folder
            return child
        except FileNotFoundError as error:
            raise JobRefused("The stored file of the data set is gone. Upload it again.") from error

    def limits(self, job: Workbench) -> tuple[float, float]:
        memory = allowed(job.parameters, "memory_limit")
        return float("inf"), memory * MEMORY_SLACK

    # The methods below handle steps.

    def _steps(self, *states: Any) -> Any:
        return Step.objects.filter(workbench_id=self.job_id, state__in=states)

    def _take_back(self) -> None:
        """Reset the steps of a dead process to waiting. A step on which processes died too often fails instead."""
        words = f"The process ended {MOST_TRIES} times on this step. {Workbench.ADVICE}"
        self._steps(StepState.WORKING).filter(tries__gte=MOST_TRIES).update(
            state=StepState.FAILED, error=words, finished=timezone.now()
        )
        self._steps(StepState.WORKING).update(state=StepState.WAITING)

    def _count_death(self) -> None:
        """Count a death of the process for the first step without an answer. Deaths of workers are not counted."""
        step = self._steps(StepState.WORKING).order_by("number").first()
        if step is not None:
            Step.objects.filter(pk=step.pk).update(tries=F("tries") + 1)

    def keep(self, records: list[dict[str, Any]]) -> None:
        for record in records:
            if "step" not in record:
                continue
            step = self._steps(StepState.WAITING, StepState.WORKING).filter(number=record["step"])
            if "partial" in record:
                step.update(result=record["partial"])
            elif "error" in record:
                step.update(state=StepState.FAILED, error=record["error"], finished=timezone.now())
            else:
                current = step.first()
                document = record.get("document")
                step.update(
                    state=StepState.DONE,
                    result=record["result"],
                    document="" if document is None else json.dumps(document, ensure_ascii=False),
                    finished=timezone.now(),
                )
                if current is not None and current.kind == StepKind.PROOF:
                    self._keep_proof(current)

    def _keep_proof(self, step: Step) -> None:
        """Store the proof with its version. Do nothing if there is no proof or the version no longer exists."""
        model = TreeModel.objects.filter(pk=step.request["model"]).first()
        if model is not None:
            keep_proof(model, self.folder / proof_name(step.number))

    def _serve(self, child: EditingChild) -> None:
        """Send waiting steps, and requests to stop, to the child process."""
        self.unanswered = False
        for step in self._steps(StepState.WAITING, StepState.WORKING).order_by("number"):
            self.unanswered = True
            self.busy_at = time.monotonic()
            if step.number not in self.handed:
                with transaction.atomic():
                    if not self._mine().exists():
                        return
                    self._steps(StepState.WAITING).filter(pk=step.pk).update(state=StepState.WORKING)
                self.handed.add(step.number)
                if (question := self._question(step)) is not None:
                    child.hand(question)
            if step.stop_requested and step.number not in self.told_to_stop:
                self.told_to_stop.add(step.number)
                child.hand({"stop": step.number})

    def _question(self, step: Step) -> dict[str, Any] | None:
        """Return a step in the form that the child process reads, with the tree to compare with or to prove.

        If the version to prove no longer exists, fail the step and return None.
        """
        record = {"step": step.number, "kind": step.kind, "wishes": step.wishes, "request": step.request}
        if step.request.get("agree_step"):
            tree = Step.objects.get(workbench_id=self.job_id, number=step.request["agree_step"])
            record["tree"] = json.loads(tree.document)
        if step.kind == StepKind.PROOF:
            model = TreeModel.objects.filter(pk=step.request["model"]).first()
            if model is None:
                self._fail(step, "The saved version was deleted, so it gets no proof.")
                return None
            record["tree"] = json.loads(model.document)
        return record

    def _fail(self, step: Step, words: str) -> None:
        Step.objects.filter(pk=step.pk).update(state=StepState.FAILED, error=words, finished=timezone.now())

    def _is_idle(self) -> bool:
        now = time.monotonic()
        quiet = now - self.busy_at
        if not self._others_wait():
            self.others_since = None
        elif self.others_since is None:
            self.others_since = now
        waited = 0.0 if self.others_since is None else now - self.others_since
        if self.unanswered:  # `busy_at` is not enough, because a slow database delays its update
            return False
        return quiet > IDLE_SECONDS or (quiet > LOOK_SECONDS and waited > YIELD_SECONDS)

    def _others_wait(self) -> bool:
        return any(
            model._default_manager.filter(status=RunStatus.QUEUED).exclude(pk=self.job_id).exists()
            for model in job_models()
        )

    # The methods below run the session.

    def _watch(self, job: Any, child: Process) -> int:
        """Serve steps until the child process has ended, and return its exit status.

        Raises LostLease, and the errors of the database if they last longer than a timeout.
        """
        assert isinstance(child, EditingChild)
        _, memory = self.limits(job)
        ticked = 0.0
        looked = time.monotonic()
        ended = 0.0
        away = 0.0
        while True:
            code = child.poll()
            now = time.monotonic()
            cancel = False
            try:
                if code is None and not ended:
                    self._serve(child)
                if child.has_output or now - ticked > TICK_SECONDS:
                    cancel = self._tick(child)
                    ticked = now
                if now - looked > LOOK_SECONDS and not ended:
                    looked = now
                    self.idle = self._is_idle()
                away = 0.0
            except (OperationalError, InterfaceError):
                away = away or now
                connection.close()
                if now - away > DATABASE_TIMEOUT_SECONDS:
                    raise
            if code is not None:
                return code
            if not ended and (self._reason_to_stop(child, cancel or self.idle, False, memory) is not None):
                ended = now
            elif ended and now - ended > settings.WORKER_GRACE_SECONDS:
                child.signal(signal.SIGKILL)
            time.sleep(QUICK if now - self.busy_at < BUSY_SECONDS else SLOW)

    def _finish(self, job: Any, child: Process, code: int) -> None:
        """Store the end of the session.

        The job is cancelled on request, failed if the child process could not start, queued if steps wait, and
        otherwise asleep (succeeded).
        """
        cancelled = self._patiently(lambda: not self._not_cancelled())
        if cancelled:
            self._patiently(lambda: self.end(RunStatus.CANCELLED, log=child.log()))
            return
        if self.end_reason:  # the child process exceeded its memory limit, and the same step would do so again
            reason = self.end_reason
            self._patiently(
                lambda: self._steps(StepState.WORKING).update(
                    state=StepState.FAILED, error=reason, finished=timezone.now()
                )
            )
        elif code not in (0, -signal.SIGKILL, -signal.SIGTERM) and not self.handed:
            words = (
                child.log().strip().splitlines()
                or ["The process ended at its start, without a message. Open the workbench again."]
            )[-1]
            self._patiently(lambda: self._refuse(words.removeprefix("CommandError: "), child.log()))
            return
        if code != 0 and not (self.end_reason or self.idle or self.stopping.is_set()):
            self._patiently(self._count_death)
        self._patiently(lambda: self._sleep(child))

    def _refuse(self, words: str, log: str) -> None:
        """Fail the job and all its unfinished steps. `words` is the reason why the process could not start."""
        with transaction.atomic():
            self._steps(StepState.WAITING, StepState.WORKING).update(
                state=StepState.FAILED, error=words, finished=timezone.now()
            )
            self.end(RunStatus.FAILED, error=words, log=log)

    def _sleep(self, child: Process) -> None:
        with transaction.atomic():
            self._take_back()
            if self._steps(StepState.WAITING).exists() and self._mine().update(
                status=RunStatus.QUEUED, worker="", lease_until=None, attempt=0
            ):
                transaction.on_commit(lambda: send(Workbench.objects.get(pk=self.job_id)))
                return
            self.end(RunStatus.SUCCEEDED, log=child.log())
        actions.wake_if_needed(Workbench.objects.get(pk=self.job_id))  # a step may have been added meanwhile
