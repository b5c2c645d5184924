"""Job of a batch prediction: run `manage.py predict` and store the result."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction

from octweb.batch.actions import go_on
from octweb.batch.explained import wishes_of
from octweb.batch.models import BatchPrediction
from octweb.batch.recorded import FileRecorder
from octweb.core import files
from octweb.core.faults import DamagedDocument
from octweb.core.files import place_in
from octweb.jobs.child import PROGRESS, Process
from octweb.jobs.models import FINISHED, RunStatus
from octweb.jobs.supervisor import JobRefused, ResultSupervisor
from octweb.life.counting import count_file
from octweb.registry.document.model_files import document_of
from octweb.registry.lifecycle.access import may_see_rows
from octweb.registry.models import TreeModel
from octweb.registry.prediction.recording import recorder_of

CHUNK = 1 << 20
MAX_PROBLEMS = 50
# rows are not compared with a larger training set, because each row takes about 100 bytes of memory
MAX_TRAINING_ROWS = 200_000


class PredictionChild(Process):
    """Child process that runs `manage.py predict` on copies of the model and the file in its own folder."""

    training: Path | None = None
    recorder: FileRecorder | None = None  # set if rows are recorded

    @property
    def rows(self) -> Path:
        """File into which the child writes the cells and leaf of each row."""
        return self.folder / "rows"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def result(self) -> Path:
        return self.folder / f"result.{self.job.format}"

    @property
    def wishes(self) -> Path:
        return self.folder / "explain.json"

    def training_data(self) -> Path | None:
        """Return a path to the training rows. None if they are gone, too many, or not visible to the user.

        Counts of rows that equal training rows would reveal who is in the training set.
        """
        model = self.job.model
        dataset = model.dataset
        if dataset is None or not dataset.file or dataset.rows > MAX_TRAINING_ROWS:
            return None
        if not may_see_rows(self.job.owner, model):
            return None
        try:
            return place_in(dataset.file, self.folder / "training.parquet")
        except FileNotFoundError:  # predictions do not need the training rows
            return None

    def write_inputs(self) -> None:
        self.training = self.training_data()
        recorder = recorder_of(self.job.model)
        self.recorder = None if recorder is None else FileRecorder(self.job, recorder)
        (self.folder / "model.json").write_text(document_of(self.job.model), encoding="utf-8")
        with default_storage.open(self.job.source.name, "rb") as source, self.data.open("wb") as copy:
            shutil.copyfileobj(source, copy, CHUNK)
        if self.job.explain:
            self.wishes.write_text(json.dumps(wishes_of(self.job).to_json()), encoding="utf-8")

    def command(self) -> list[str]:
        return [
            *settings.COMMAND,
            "predict",
            f"--output={self.result}",
            f"--progress={self.folder / PROGRESS}",
            f"--max-rows={settings.MAX_ROWS}",
            f"--max-columns={settings.MAX_COLUMNS}",
            f"--max-unpacked={settings.MAX_UNPACKED_BYTES // 10**6}",
            "--for-spreadsheets",
            "--json",
            *([f"--sheet={self.job.sheet}"] if self.job.sheet else []),
            *([] if self.job.header else ["--no-header"]),
            *(["--keep-columns"] if self.job.keep_columns else []),
            *([f"--explain-with={self.wishes}"] if self.job.explain else []),
            *(["--record-rows", str(self.rows), self.recorder.prefix] if self.recorder is not None else []),
            *([f"--training-data={self.training}"] if self.training is not None else []),
            "--",
            str(self.folder / "model.json"),
            str(self.data),
        ]


class PredictionSupervisor(ResultSupervisor):
    """Supervisor of one attempt at a batch prediction."""

    jobs = BatchPrediction
    noun = "prediction"

    def load(self) -> BatchPrediction:
        return BatchPrediction.objects.select_related("model__dataset", "owner").get(pk=self.job_id)

    def prepare(self, job: BatchPrediction) -> PredictionChild:
        if not (job.owner.is_active and TreeModel.objects.callable_by(job.owner).filter(pk=job.model_id).exists()):
            raise JobRefused(
                "You no longer have access to this model: it is not approved, and it is neither yours nor shared with you "
                "for calls. Choose another model, or ask its owner to share it."
            )
        try:
            return PredictionChild.prepare(job)
        except FileNotFoundError as error:
            raise JobRefused("The uploaded file is gone. Upload it again.") from error
        except DamagedDocument as error:
            raise JobRefused(str(error)) from error

    def limits(self, job: BatchPrediction) -> tuple[float, float]:
        return float(settings.MAX_BATCH_SECONDS), float(settings.MAX_TRAINING_MB)

    def store(self, job: BatchPrediction, child: Process, summary: dict[str, Any]) -> None:
        name = ""
        try:
            if isinstance(child, PredictionChild) and child.recorder is not None:
                child.recorder.spool(child.rows)
            with child.result.open("rb") as stream:
                # The name contains the attempt, so that no other attempt can pick up the file of one that was lost.
                path = f"{job.folder}/result-{self.attempt}.{job.format}"
                name = default_storage.save(path, File(stream))
            life = summary.pop("life", {})
            with transaction.atomic():
                self.end(
                    RunStatus.SUCCEEDED,
                    result=name,
                    result_bytes=child.result.stat().st_size,
                    summary=summary | self.noted(),
                    log=self._log(child),
                )
                count_file(job.model, life)
        except BaseException:
            if name:
                files.remove(default_storage, name)
            raise

    def on_failure(self, child: Process) -> dict[str, Any]:
        problems = child.summary().get("problems")
        return {"summary": {"problems": problems[:MAX_PROBLEMS] if isinstance(problems, list) else []}}

    def run(self) -> str:
        status = super().run()
        job = BatchPrediction.objects.filter(pk=self.job_id, status__in=FINISHED).first()
        if job is not None and job.goes_on and job.status == RunStatus.CANCELLED:
            go_on(job)  # the user may have restored the job meanwhile
        elif job is not None:
            files.remove(default_storage, job.source.name)
        return status
