"""Run the job of a dossier: `manage.py dossier` in a child process, then sign.

The child never gets the key.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import transaction

from octweb.audit import actions as audit
from octweb.checking.actions import ENDING, proof_of
from octweb.core import files
from octweb.core.files import place_in
from octweb.datasets.stored import unpack_counts
from octweb.dossier import signing
from octweb.dossier.actions import NO_ROWS, about
from octweb.dossier.folder import HTML, zip_folder
from octweb.dossier.keys import signing_key
from octweb.dossier.models import FOLDER, ModelDossier
from octweb.jobs.child import Process
from octweb.jobs.models import RunStatus
from octweb.jobs.supervisor import JobRefused, ResultSupervisor
from octweb.registry.document.model_files import document_of
from trainer.errors import ModelFileError


class DossierChild(Process):
    """Child process that runs `manage.py dossier` on copies of the model, its rows, and the installation's part of the record."""

    data: Path = Path()
    proof: Path | None = None

    @property
    def out(self) -> Path:
        return self.folder / "dossier"

    @property
    def result(self) -> Path:
        return self.out / HTML

    def write_inputs(self) -> None:
        model = self.job.model
        (self.folder / "model.json").write_text(document_of(model), encoding="utf-8")
        (self.folder / "about.json").write_text(json.dumps(about(self.job)), encoding="utf-8")
        if model.dataset.counts:
            self.data = unpack_counts(model.dataset, self.folder)
        else:
            self.data = place_in(model.dataset.file, self.folder / "data.parquet")
        if (proof := proof_of(model)) is not None:
            self.proof = place_in(proof.file, self.folder / ENDING)

    def command(self) -> list[str]:
        name = self.job.model.dataset.source_name or self.job.model.dataset.name
        return [
            *settings.COMMAND,
            "dossier",
            *([f"--proof={self.proof}"] if self.proof is not None else []),
            *(f"--group={name}" for name in self.job.groups),
            f"--about={self.folder / 'about.json'}",
            f"--data-name={name}",
            f"--output={self.out}",
            "--unsigned",
            "--json",
            "--",
            str(self.folder / "model.json"),
            str(self.data),
        ]


class DossierSupervisor(ResultSupervisor):
    """Supervisor of one attempt at a dossier."""

    jobs = ModelDossier
    noun = "dossier"

    def load(self) -> ModelDossier:
        return ModelDossier.objects.select_related(
            "model__dataset", "model__family", "model__owner", "owner", "approval"
        ).get(pk=self.job_id)

    def prepare(self, job: ModelDossier) -> DossierChild:
        if job.model.dataset is None:
            raise JobRefused(NO_ROWS)
        try:
            return DossierChild.prepare(job)
        except FileNotFoundError as error:
            raise JobRefused(
                "The stored file of the data set, or the proof, is gone. Restore it from a backup, or train the model again."
            ) from error
        except (ModelFileError, signing.BadKey) as error:
            key = settings.DOSSIER_KEY
            raise JobRefused(str(error).replace(str(key), key.name)) from error

    def limits(self, job: ModelDossier) -> tuple[float, float]:
        return float(settings.MAX_BATCH_SECONDS), float(settings.MAX_TRAINING_MB)

    def store(self, job: ModelDossier, child: Process, summary: dict[str, Any]) -> None:
        folder = child.result.parent
        name = ""
        signing.sign(folder, signing_key())
        content = zip_folder(folder)
        digest = hashlib.sha256(content).hexdigest()
        try:
            # the name contains the attempt, so no other attempt can pick up the file of a lost one
            name = default_storage.save(f"{FOLDER}/{job.pk}-{self.attempt}.zip", ContentFile(content))
            with transaction.atomic():
                audit.record(
                    "dossier made",
                    job.model,
                    by=job.owner,
                    verdict=str(summary.get("verdict")),
                    manifest=_digest(folder),
                    **({"approved": digest} if job.approval_id else {}),
                )
                stored_summary = {n: v for n, v in summary.items() if n != "folder"} | self.noted()
                self.end(
                    RunStatus.SUCCEEDED,
                    file=name,
                    sha256=digest,
                    bytes=len(content),
                    summary=stored_summary,
                    log=self._log(child),
                )
        except BaseException:
            if name:
                files.remove(default_storage, name)
            raise


def _digest(folder: Path) -> str:
    return signing.digest(folder / signing.MANIFEST)
