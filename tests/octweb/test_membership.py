"""No file that another user can get reveals which rows were in the training."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import zipfile
import zlib
from importlib import import_module

import numpy as np
import pytest
from django.apps import apps
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command

from octweb.audit import chain
from octweb.audit.actions import broken
from octweb.audit.models import Head, Record
from octweb.batch import actions as batch
from octweb.batch.tasks import predict_batch
from octweb.datasets import actions as datasets
from octweb.dossier import actions as dossiers
from octweb.dossier.models import ModelDossier
from octweb.registry.lifecycle import actions
from octweb.registry.lifecycle.audit_trail import audit_models
from octweb.registry.models import TreeModel
from octweb.registry.page.downloads import FORMATS
from trainer.errors import DataError
from trainer.training.run import TrainRequest, train
from trainer.tree.file import from_json, read_model, write

pytestmark = pytest.mark.django_db(transaction=True)
ROWS = 583
PER_ROW = {"held_out", "folds", "weights"}  # one sign per row of the file, which says nothing about its cells
DRAWN = {"x", "y"}  # points of the lines of a picture


def patients() -> str:
    """Return a table of 583 persons with two classes."""
    draw = np.random.default_rng(7)
    X = np.round(draw.gamma(3.0, 10.0, size=(ROWS, 4)), 1)
    ill = X[:, 0] + X[:, 1] + draw.normal(0, 12, ROWS) > 60
    lines = [f"{a},{b},{c},{d},{'ill' if k else 'well'}" for (a, b, c, d), k in zip(X, ill, strict=True)]
    return "\n".join(["age,alt,ast,protein,answer", *lines]) + "\n"


@pytest.fixture
def model(owner, staff, media):
    dataset = datasets.create(
        owner=owner, file=io.BytesIO(patients().encode()), source_name="patients.csv", target="answer"
    )
    table, labels = datasets.load(dataset)
    request = TrainRequest(
        table=table, labels=labels, method="cart", parameters={"depth": 3}, test_share=0.25, folds=3, name="Patients"
    )
    made = actions.register(owner=owner, document=train(request).model.to_json(), dataset=dataset, title="Patients")
    actions.ask_for_approval(made, by=owner)
    return actions.approve(made, by=staff)


def row_digests(document: dict, rows: list[list[float]], codes: list[int]) -> np.ndarray:
    """Return the digests of earlier versions: splitmix64's finaliser over the class and tested columns."""
    names = [column["name"] for column in document["columns"]]
    used = sorted({names.index(node["split"]["feature"]) for node in document["nodes"] if "split" in node})
    X = np.array(rows)
    state = mixed(np.array(codes).astype(np.uint64) + np.uint64(1))
    for j in used:
        state = mixed(state ^ (X[:, j].astype("<f8").view("<u8") + np.uint64(j + 1)))
    return (state >> np.uint64(32)).astype("<u4")


def mixed(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def candidates(document: dict) -> tuple[list[list[float]], list[int]]:
    """Return all 583 persons, as an attacker knows them who wants to learn who was in the training."""
    lines = [line.split(",") for line in patients().splitlines()[1:]]
    return [[float(cell) for cell in line[:-1]] for line in lines], [
        document["classes"].index(line[-1]) for line in lines
    ]


def recognised(content: bytes, document: dict) -> int:
    """Count the persons that an attacker recognises in a file, by old digests and by plain hashes of rows."""
    texts = re.findall(rb"[A-Za-z0-9+/]{64,}", content)
    blobs = [base64.b64decode(text[: len(text) // 4 * 4]) for text in texts]
    words = [np.frombuffer(blob[: len(blob) // 4 * 4], "<u4") for blob in blobs]
    known = set(np.concatenate(words).tolist()) if words else set()
    rows, codes = candidates(document)
    found = sum(int(digest) in known for digest in row_digests(document, rows, codes))
    text = content.lower()
    for line in patients().splitlines()[1:]:
        for plain in (line, line.rpartition(",")[0]):
            found += any(one[:12].encode() in text for one in hashes(plain.encode()))
    return found


def hashes(plain: bytes) -> list[str]:
    plain_hashes = [getattr(hashlib, name)(plain).hexdigest() for name in ("md5", "sha1", "sha256", "blake2b")]
    return [*plain_hashes, f"{zlib.crc32(plain):08x}" * 2]


def with_digests(document: dict) -> dict:
    """Return the model file as an earlier version wrote it."""
    rows, codes = candidates(document)
    digests = np.sort(row_digests(document, rows, codes)[:440])
    return document | {"training_rows": base64.b64encode(digests.tobytes()).decode()}


def per_row_members(value, rows: int, place: str = "") -> list[str]:
    """Return the places of a document whose text or list is as long as the table."""
    if isinstance(value, dict):
        return [per_row_member for name, one in value.items() for per_row_member in per_row_members(one, rows, name)]
    if isinstance(value, str):
        return [place] if len(value) >= rows / 2 and " " not in value and place not in PER_ROW else []
    if isinstance(value, list):
        long = [place] if len(value) >= rows / 2 and place not in DRAWN else []
        return long + [per_row_member for one in value for per_row_member in per_row_members(one, rows, place)]
    return []


def files_of(model, user, client, tmp_path) -> dict[str, bytes]:
    """Return every file and page about the model that this user can get."""
    client.force_login(user)
    addresses = [f"/models/{model.pk}/download/{name}/" for name in FORMATS]
    addresses += [f"/models/{model.pk}/?mode={mode}" for mode in ("tree", "proof", "data", "use")]
    addresses += [f"/api/v1/models/{model.pk}/", f"/api/v1/models/{model.pk}/figures/tree/"]
    addresses += [f"/api/v1/models/{model.pk}/download/", f"/models/{model.pk}/review/"]
    found = {}
    for address in addresses:
        answer = client.get(address)
        assert answer.status_code in (200, 403, 404), address
        if answer.status_code == 200:
            found[address] = answer.getvalue() if answer.streaming else answer.content
    path = tmp_path / "model.json"
    path.write_bytes(found[f"/models/{model.pk}/download/json/"])
    data = tmp_path / "patients.csv"
    data.write_text(patients())
    folder = tmp_path / "dossier"
    call_command("dossier", str(path), str(data), output=str(folder), unsigned=True, without_pdf=True)
    return found | {one.name: one.read_bytes() for one in folder.iterdir() if one.suffix != ".py"}


@pytest.mark.slow
def test_files_of_a_model_recognise_no_training_row(model, stranger, client, tmp_path):
    document = json.loads(model.document)
    assert recognised(json.dumps(with_digests(document)).encode(), document) > 430  # the attack works on old files
    files = files_of(model, stranger, client, tmp_path)
    assert len(files) > 15
    assert {name: count for name, content in files.items() if (count := recognised(content, document))} == {}


def test_documents_of_a_model_hold_no_member_per_row(model, stranger, client, tmp_path):
    files = files_of(model, stranger, client, tmp_path)
    documents = {name: json.loads(content) for name, content in files.items() if content.startswith(b"{")}
    assert len(documents) >= 4
    assert {name: odd for name, one in documents.items() if (odd := per_row_members(one, ROWS))} == {}


def test_old_model_files_lose_their_digests_when_read(model, owner, tmp_path):
    old = tmp_path / "old.json"
    old.write_text(json.dumps(with_digests(json.loads(model.document))))
    again = tmp_path / "again.json"
    write(read_model(old), again)
    assert b"training_rows" not in again.read_bytes()
    out = tmp_path / "model.html"
    call_command("export", str(old), to="html", output=str(out))
    assert b"training_rows" not in out.read_bytes()
    made = actions.register(owner=owner, document=json.loads(old.read_text()), dataset=None, title="Uploaded")
    assert "training_rows" not in made.document
    assert from_json(json.loads(made.document)).to_json() == read_model(old).to_json()


def test_migration_removes_digests_and_the_chain_stays_complete(model):
    text = json.dumps(with_digests(json.loads(model.document)))
    before = hashlib.sha256(text.encode()).hexdigest()
    TreeModel.objects.filter(pk=model.pk).update(document=text, sha256=before)
    rewrite_chain(sha256=before)
    migration = import_module("octweb.registry.migrations.0008_remove_row_digests")
    migration.remove_row_digests(apps, None)
    model.refresh_from_db()
    assert "training_rows" not in model.document
    assert hashlib.sha256(model.document.encode()).hexdigest() == model.sha256
    assert broken() == []
    assert audit_models([model]).problems == []
    TreeModel.objects.filter(pk=model.pk).update(document=text, sha256=before)
    model.refresh_from_db()
    assert any("is not the one that was recorded" in line for line in audit_models([model]).problems)


def rewrite_chain(*, sha256: str) -> None:
    """Change the audit chain to one in which the model was trained with this SHA-256."""
    before = chain.START
    for record in Record.objects.all():
        if record.what == "trained":
            record.details["sha256"] = sha256
        record.before = before
        record.digest = chain.digest(record.to_json())
        record.save()
        before = record.digest
    Head.objects.update(digest=before)


def test_old_dossier_is_not_given_to_others(model, owner, stranger, media):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("model.json", json.dumps(with_digests(json.loads(model.document))))
    job = ModelDossier.objects.create(owner=owner, model=model, status="succeeded")
    job.file.save("dossiers/old.zip", SimpleUploadedFile("old.zip", packed.getvalue()))
    with pytest.raises(DataError, match="make the dossier again"):
        dossiers.content(job, "zip", by=stranger)
    assert dossiers.content(job, "zip", by=owner) == packed.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(("who", "trained"), [("owner", "some"), ("stranger", None)])
def test_training_rows_are_counted_only_for_insiders(model, request, settings, tmp_path, who, trained):
    """A count for a file of one row would tell whether this person was in the training."""
    settings.DATA_DIR = tmp_path / "data"
    file = SimpleUploadedFile("all.csv", patients().encode())
    job = batch.enqueue(owner=request.getfixturevalue(who), model=model, file=file, source_name="all.csv")
    assert predict_batch.func(str(job.pk)) == "succeeded"
    job.refresh_from_db()
    if trained is None:
        assert job.summary["trained"] is None
        assert any("Training rows may be among" in note for note in job.summary["notes"])
    else:
        assert job.summary["trained"] >= round(ROWS * 0.75) - 1
