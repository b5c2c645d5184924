"""Store proofs, and queue checks, for pages, worker and trainings."""

from __future__ import annotations

import contextlib
import io
import zipfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from rest_framework.exceptions import ValidationError

from octweb.checking.models import FOLDER, ModelCheck, Proof
from octweb.core import files
from octweb.core.problems import Conflict
from octweb.jobs import queue
from octweb.jobs.models import FINISHED, RunStatus
from octweb.registry.models import Doubt, TreeModel
from trainer.check.bundle import bundle as checker

ENDING = "proof.jsonl.gz"
DOUBTED_AT_ONCE = 20  # at most this many doubted models are checked in one round
NO_ROWS = (
    "The rows of this model are gone, so it cannot be checked here. "
    "If you still have the file of rows, download the files of the check and run it yourself."
)
KEPT = timedelta(days=30)  # results need not last, because anyone can repeat a check at any time


def keep_proof(model: TreeModel, path: Path) -> Proof | None:
    """Store the proof file of a training, and return the Proof. None if the file does not exist."""
    if not path.exists():
        return None
    with path.open("rb") as stream:
        name = default_storage.save(f"{FOLDER}/{model.pk}.{ENDING}", File(stream))
    return Proof.objects.create(model=model, file=name, bytes=path.stat().st_size)


def proof_of(model: TreeModel) -> Proof | None:
    """Return the proof of a model, or None."""
    return Proof.objects.filter(model=model).first()


def start(*, owner: Any, model: TreeModel) -> ModelCheck:
    """Queue a check, or return the queued one. Raises ValidationError if the rows are gone, and Conflict."""
    if model.dataset is None or not (model.dataset.file or model.dataset.counts):
        raise ValidationError({"model": NO_ROWS})
    return queue.only_one(ModelCheck, owner=owner, model=model)


def settle_doubt(model: TreeModel, *, verdict: str) -> None:
    """Update the doubt about a model's claim after a check: refuted, confirmed, or still open."""
    rows = TreeModel.objects.filter(pk=model.pk)
    if verdict == "refuted":
        rows.update(doubt=Doubt.REFUTED)
    elif verdict == "proved":
        rows.update(doubt="")
    else:
        rows.filter(doubt=Doubt.PENDING).update(doubt=Doubt.OPEN)


def check_doubted() -> int:
    """Queue checks of up to DOUBTED_AT_ONCE models with a doubted claim. Return how many.

    Models without rows, or with a failed check, stay in doubt.
    """
    queued = 0
    doubted = TreeModel.objects.kept().filter(doubt=Doubt.PENDING, dataset__isnull=False)
    for model in doubted.exclude(checks__status=RunStatus.FAILED).select_related("owner", "dataset")[:DOUBTED_AT_ONCE]:
        with contextlib.suppress(ValidationError, Conflict):
            start(owner=model.owner, model=model)
            queued += 1
    return queued


def latest(model: TreeModel) -> ModelCheck | None:
    """Return the last check of a model, whatever its status, or None."""
    return ModelCheck.objects.filter(model=model).order_by("-created").first()


def latest_verdict(model: TreeModel) -> str:
    """Return the verdict of the last succeeded check, or ""."""
    last_check = ModelCheck.objects.filter(model=model, status=RunStatus.SUCCEEDED).order_by("-created").first()
    return "" if last_check is None else last_check.verdict


def bundle(model: TreeModel) -> bytes:
    """Return a zip file with everything for a check elsewhere.

    It contains the model file, the proof if there is one, two checkers, the proof format and instructions.
    """
    stem = f"{model.family.name}-{model.version}"
    proof = proof_of(model)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(f"{stem}.json", model.document)
        if proof is not None:
            with proof.file.open("rb") as stream:
                packed.writestr(zipfile.ZipInfo(f"{stem}.{ENDING}"), stream.read())
        packed.writestr("check_octweb.py", checker())
        for place in ("checker/check_octweb.html", "docs/proof-format.md"):
            packed.write(settings.SHIPPED / place, place.rpartition("/")[2])
        packed.writestr("HOW-TO-CHECK.txt", _how(stem, proof is not None, model))
    return out.getvalue()


def _how(stem: str, proved: bool, model: TreeModel) -> str:
    counted = model.dataset is not None and model.dataset.counts
    rows = model.dataset.source_name if model.dataset is not None and model.dataset.source_name else "rows.csv"
    rows = "counts" if counted else rows
    needed = (
        "the folder 'counts' with counts.json and counts.npz, as the page of the data set gives them"
        if counted
        else f"the file of rows that was uploaded for the training ({rows})"
    )
    choice = "both files of the counts" if counted else "the rows (CSV)"
    proof = f" --proof {stem}.{ENDING}" if proved else ""
    return f"""How to check this model

You need: these files, and {needed}. Nothing else.

With Python 3.11 or later and NumPy:

    python check_octweb.py {stem}.json {f"{stem}.{ENDING}" if proved else "-"} "{rows}"

With an installed octweb:

    manage.py verify {stem}.json "{rows}"{proof}

In a browser: open check_octweb.html and choose the model, the proof and {choice}. It checks the proof of the bound, sends nothing,
and was written from proof-format.md alone, so it shares no code with the other checker either.

The checker shares no code with the training. It reads the rows by itself, runs the tree over them, counts every number of the model file
again, and prints one line for each claim and a verdict:

    proved           all of it holds, and it was shown again that no tree of the stated scope is better
    recounted        all that can be counted holds; that no tree is better was not shown again
    refuted          something in the file is not true, or the rows are not those of the training
    cannot be judged one of the files cannot be read; the program says which, and why

The exit status of manage.py verify is 0 for the first two; with --require proved only for the first. That of check_octweb.py is 0, 3, 1
and 2 in this order.

SHA-256 of the model file on the server: {model.sha256}
{"The proof is a text of JSON lines, packed with gzip." if proved else "There is no proof with this model."}
"""


def tidy(now: datetime) -> int:
    """Remove old checks and orphaned proofs, and queue checks of doubted models. Return the number removed."""
    check_doubted()
    removed, _ = ModelCheck.objects.filter(status__in=FINISHED, finished__lt=now - KEPT).delete()
    return removed + files.remove_unknown(FOLDER, Proof.objects.values_list("file", flat=True), now)
