"""Proofs are stored with a training, and the page verifies the model and offers all files of the check."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import threading
import zipfile
from datetime import timedelta
from importlib import import_module

import pytest
from django.apps import apps
from django.core.files.storage import default_storage
from django.utils import timezone

from octweb.checking import actions
from octweb.checking.models import ModelCheck, Proof
from octweb.checking.work import CheckSupervisor
from octweb.registry.document.claims import certificate_status, claim_badges, claim_of
from octweb.registry.document.model_files import model_file
from octweb.registry.models import Doubt, TreeModel
from octweb.runs import actions as runs
from octweb.runs.training import TrainingSupervisor
from tests.octweb.runs.conftest import CSV, csv_file, dataset  # noqa: F401
from tests.processes import manage

pytestmark = pytest.mark.django_db(transaction=True)


def run(supervisor, job):
    return supervisor(job_id=str(job.pk), worker="test", stopping=threading.Event()).run()


@pytest.fixture
def trained(owner, dataset, media):  # noqa: F811
    """Provide a function that trains as a worker does and returns the model."""

    def make(method="exact", **parameters):
        job = runs.enqueue(
            owner=owner, dataset=dataset, method=method, parameters={"depth": 2} | parameters, test_share=0.2, folds=2
        )
        assert run(TrainingSupervisor, job) == "succeeded"
        job.refresh_from_db()
        return TreeModel.objects.get(pk=job.model_id)

    return make


def checked(model):
    job = actions.start(owner=model.owner, model=model)
    assert run(CheckSupervisor, job) == "succeeded"
    return ModelCheck.objects.get(pk=job.pk)


@pytest.mark.one_database
def test_a_model_with_held_out_rows_is_proved_on_its_page(trained, client, owner, stranger):
    model = trained()
    assert Proof.objects.get(model=model).bytes > 0
    client.force_login(owner)
    assert "has not run for this model yet" in client.get(f"/models/{model.pk}/check/").content.decode()
    answer = client.post(f"/models/{model.pk}/check/start/", headers={"HX-Request": "true"})
    assert "in the queue" in answer.content.decode()
    job = actions.latest(model)
    assert actions.start(owner=owner, model=model).pk == job.pk
    assert run(CheckSupervisor, job) == "succeeded"
    job.refresh_from_db()
    assert job.verdict == "proved", job.lines
    text = client.get(f"/models/{model.pk}/check/").content.decode()
    assert "Verdict: proved" in text
    certificate = json.loads(model.document)["certificate"]
    wrong = certificate["n"] - certificate["correct"]
    assert f"Counted again: {wrong} of {certificate['n']} training rows are wrong." in text
    assert "no tree that was searched is better" in text
    for claim in ("metrics cross_validation", "metrics test", "rows held out", "scope", "bound"):
        assert f"<td>{claim}</td>" in text
    assert client.post(f"/models/{model.pk}/check/start/").status_code == 302
    client.force_login(stranger)
    for page in ("check/", "check/files/"):
        assert client.get(f"/models/{model.pk}/{page}").status_code == 404
    assert client.post(f"/models/{model.pk}/check/start/").status_code == 404


@pytest.mark.one_database
def test_a_changed_document_is_refuted(trained):
    model = trained("cart")
    assert checked(model).verdict == "recounted"
    assert not Proof.objects.filter(model=model).exists()
    text = model.document.replace('"correct":', '"correct":1', 1)
    TreeModel.objects.filter(pk=model.pk).update(document=text)
    job = checked(TreeModel.objects.get(pk=model.pk))
    assert job.verdict == "refuted"
    assert any(line["verdict"] == "refuted" for line in job.lines)


@pytest.mark.slow
@pytest.mark.one_database
def test_downloaded_bundle_is_sufficient(trained, client, owner, tmp_path):
    model = trained()
    client.force_login(owner)
    answer = client.get(f"/models/{model.pk}/check/files/")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as packed:
        names = sorted(packed.namelist())
        packed.extractall(tmp_path)
    stem = f"{model.family.name}-{model.version}"
    assert {f"{stem}.json", f"{stem}.proof.jsonl.gz", "HOW-TO-CHECK.txt"} <= set(names)
    assert {"check_octweb.py", "check_octweb.html", "proof-format.md"} <= set(names)
    (tmp_path / "small.csv").write_text(CSV)
    told = next(
        line.split() for line in (tmp_path / "HOW-TO-CHECK.txt").read_text().splitlines() if "manage.py verify" in line
    )
    done = manage(*[word.strip('"') for word in told[1:]], "--require", "proved", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    alone = [sys.executable, "check_octweb.py", f"{stem}.json", f"{stem}.proof.jsonl.gz", "small.csv"]
    done = subprocess.run(alone, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("Verdict: proved\n"), done.stdout + done.stderr


def test_old_checks_and_proofs_without_a_model_are_removed(trained):
    model = trained()
    job = checked(model)
    later = timezone.now() + timedelta(days=40)
    name = Proof.objects.get(model=model).file.name
    assert actions.tidy(timezone.now()) == 0
    assert actions.tidy(later) > 0
    assert not ModelCheck.objects.filter(pk=job.pk).exists()
    assert default_storage.exists(name)
    Proof.objects.all().delete()
    actions.tidy(later)
    assert not default_storage.exists(name)


def test_refuted_check_takes_the_badge_away(trained):
    model = trained()
    assert claim_of(model).proved_optimal
    document = model.document.replace(f'"correct":{model_file(model).certificate["correct"]}', '"correct":1')
    TreeModel.objects.filter(pk=model.pk).update(
        document=document, sha256=hashlib.sha256(document.encode()).hexdigest()
    )
    model.refresh_from_db()
    assert checked(model).verdict == "refuted"
    model.refresh_from_db()
    assert model.doubt == Doubt.REFUTED
    assert [badge.words for badge in claim_badges(model)] == ["Refuted by a check"]
    assert not certificate_status(model)["proved_optimal"]


def test_saved_tree_with_wishes_is_checked_again(trained, owner):
    """The migration doubts optimal trees with constraints; hourly checks settle each doubt."""
    model = trained()
    wished = json.loads(model.document)
    wished["certificate"]["wishes"] = [{"wish": "depth root 2", "price": None}]
    document = json.dumps(wished)
    digest = hashlib.sha256(document.encode()).hexdigest()
    TreeModel.objects.filter(pk=model.pk).update(document=document, sha256=digest)
    import_module("octweb.registry.migrations.0009_doubt").doubt_wished(apps, None)
    model.refresh_from_db()
    assert model.doubt == Doubt.PENDING
    assert [badge.words for badge in claim_badges(model)] == ["To be checked again"]
    assert not certificate_status(model)["proved_optimal"]
    actions.tidy(timezone.now())
    job = ModelCheck.objects.get(model=model)
    run(CheckSupervisor, job)
    job.refresh_from_db()
    model.refresh_from_db()
    assert model.doubt == {"refuted": Doubt.REFUTED, "proved": "", "recounted": Doubt.OPEN}[job.verdict]
    assert actions.check_doubted() == 0


def test_plain_models_have_no_warning(trained):
    model = trained()
    import_module("octweb.registry.migrations.0009_doubt").doubt_wished(apps, None)
    model.refresh_from_db()
    assert model.doubt == ""
