"""The interfaces that train on a file. Each returns the columns and the tree, without what depends on the clock."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from octweb.datasets import stored
from octweb.datasets.models import Dataset
from octweb.jobs.models import RunStatus
from octweb.registry.document.model_files import model_file
from octweb.runs.models import TrainingRun
from octweb.runs.tasks import train_run
from tests.octweb.serving.frames import REFUSED, csv_of, plain, training_of
from tests.workbooks import workbook
from trainer.cli import dispatch
from trainer.data.table_contract import model_contract
from trainer.training.run import TrainRequest, train
from trainer.tree.file import ModelFile, read_model

TARGET = "class"
PARAMETERS = {"depth": 3}


def training_file(kind: str, ending: str, folder: Path) -> Path:
    """Write the training rows of a kind of column to a file of a format, and return its path."""
    frame, classes = training_of(kind)
    frame = frame.assign(n=[float(i % 7) / 2 for i in range(len(frame))], **{TARGET: classes})
    path = folder / f"training.{ending}"
    if ending == "csv":
        path.write_text(csv_of(frame), encoding="utf-8")
    elif ending == "parquet":
        frame.to_parquet(path, index=False)
    elif ending == "feather":
        pyarrow.feather.write_feather(pa.Table.from_pandas(frame, preserve_index=False), path)
    else:
        rows = [[plain(cell) for cell in row] for row in frame.itertuples(index=False)]
        path.write_bytes(workbook({"Sheet1": [list(frame.columns), *rows]}))
    return path


def facts_of(model: ModelFile) -> dict[str, Any]:
    document = model.to_json()
    return {"contract": model_contract(model), "nodes": document["nodes"], "reading": document.get("reading")}


def by_command(path: Path) -> dict[str, Any] | str:
    out = path.with_suffix(".json")
    words = ["train", str(path), "--target", TARGET, "--method", "cart", "--depth", "3", "--output", str(out)]
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        status = dispatch.main("octweb", words)
    return facts_of(read_model(out)) if status == 0 else REFUSED


def by_api(path: Path, owner, *, in_worker: bool = True) -> dict[str, Any] | str:
    """Upload a file, and train on it in a worker's process, or in this one."""
    client = APIClient()
    client.force_authenticate(owner)
    file = SimpleUploadedFile(path.name, path.read_bytes())
    answer = client.post("/api/v1/datasets/", {"file": file, "target": TARGET}, format="multipart")
    if answer.status_code != 201:
        assert 400 <= answer.status_code < 500, answer.content
        return REFUSED
    if not in_worker:
        table, labels = stored.load(Dataset.objects.get(pk=answer.json()["id"]))
        return facts_of(train(TrainRequest(table=table, labels=labels, method="cart", parameters=PARAMETERS)).model)
    body = {"dataset": answer.json()["id"], "method": "cart", "parameters": PARAMETERS}
    run = client.post("/api/v1/runs/", body, format="json")
    assert run.status_code == 201, run.content
    return facts_of_run(run.json()["id"])


def by_page(path: Path, owner) -> dict[str, Any] | str:
    """Upload a file, store it as the preview shows it, with its fields for every column, and train."""
    browser = Client()
    browser.force_login(owner)
    file = SimpleUploadedFile(path.name, path.read_bytes())
    answer = browser.post(reverse("datasets:new"), {"file": file})
    if answer.status_code != 302:
        return REFUSED
    shown = browser.get(answer.url + f"?target={TARGET}")
    fields = {"seen": shown.context["seen"], "target": TARGET, "confirm": "1", "name": "Frames"}
    for i, column in enumerate(shown.context["columns"]):
        fields |= {f"{part}-{i}": column[part] for part in ("role", "kind", "missing", "unit")}
    answer = browser.post(answer.url, fields)
    if answer.status_code != 302:
        return REFUSED
    dataset = Dataset.objects.latest("created")
    client = APIClient()
    client.force_authenticate(owner)
    body = {"dataset": str(dataset.pk), "method": "cart", "parameters": PARAMETERS}
    return facts_of_run(client.post("/api/v1/runs/", body, format="json").json()["id"])


def facts_of_run(pk: str) -> dict[str, Any]:
    assert train_run.func(pk) == RunStatus.SUCCEEDED
    return facts_of(model_file(TrainingRun.objects.get(pk=pk).model))
