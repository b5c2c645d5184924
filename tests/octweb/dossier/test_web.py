"""Dossiers in the application: job, pages, API, permissions, and the link from the standalone file."""

from __future__ import annotations

import hashlib
import io
import json
import threading
import zipfile
from datetime import timedelta
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from django.apps import apps
from django.conf import settings as settings_of_django
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.utils import timezone

from octweb.audit.models import Record
from octweb.core.faults import StoreUnavailable
from octweb.datasets import actions as datasets
from octweb.dossier import actions, signing
from octweb.dossier.keys import known_fingerprints, signing_key
from octweb.dossier.models import ModelDossier, SigningKey
from octweb.dossier.work import DossierSupervisor
from octweb.registry.lifecycle import actions as registry
from octweb.registry.models import TreeModel
from octweb.runs import actions as runs
from octweb.runs.training import TrainingSupervisor
from tests.octweb.runs.conftest import csv_file, dataset  # noqa: F401
from trainer.training.run import TrainRequest, train

pytestmark = pytest.mark.django_db(transaction=True)
TYPES = {"json": "application/json", "html": "text/html", "pdf": "application/pdf", "zip": "application/zip"}


def run(supervisor, job):
    return supervisor(job_id=str(job.pk), worker="test", stopping=threading.Event()).run()


@pytest.fixture
def model(owner, dataset, media, settings, tmp_path):  # noqa: F811
    """Provide a model with its rows but without a proof."""
    settings.DOSSIER_KEY = tmp_path / "key.pem"
    rows, labels = datasets.load(dataset)
    request = TrainRequest(table=rows, labels=labels, method="cart", parameters={"depth": 2}, test_share=0.3)
    return registry.register(owner=owner, document=train(request).model.to_json(), dataset=dataset, title="Small")


@pytest.fixture
def proved(model, owner):
    """Provide a model that a worker trained, with its proof."""
    job = runs.enqueue(owner=owner, dataset=model.dataset, method="exact", parameters={"depth": 2}, test_share=0.3)
    assert run(TrainingSupervisor, job) == "succeeded"
    job.refresh_from_db()
    return TreeModel.objects.get(pk=job.model_id)


@pytest.mark.slow
def test_from_the_button_to_the_signed_files(proved, client, owner, stranger, staff, client_of, tmp_path, capsys):
    model = proved
    client.force_login(owner)
    panel = f"/models/{model.pk}/dossier/panel/"
    start = f"/models/{model.pk}/dossier/start/"
    assert "There is no dossier of this model yet" in client.get(panel).content.decode()
    assert f'hx-get="{panel}"' in client.get(f"/models/{model.pk}/?mode=proof").content.decode()
    assert client.get(f"/models/{model.pk}/dossier/html/").status_code == 404
    words = {"meant_for": "sorting <flowers>", "ends": "a new kind", "groups": ["colour"]}
    assert (
        "no column" in client.post(start, words | {"groups": ["size"]}, headers={"HX-Request": "true"}).content.decode()
    )
    column = next(c["name"] for c in model.dataset.columns if c["name"] != model.dataset.target)
    answer = client.post(start, words | {"groups": [column]}, headers={"HX-Request": "true"})
    assert "in the queue" in answer.content.decode()
    job = actions.latest(model)
    assert actions.start(by=owner, model=model).pk == job.pk
    review = client.get(f"/models/{model.pk}/review/").content.decode()
    assert f'id="checklist" hx-get="/models/{model.pk}/review/"' in review
    registry.ask_for_approval(model, by=owner, reason="weighed, not counted")
    assert run(DossierSupervisor, job) == "succeeded", ModelDossier.objects.get(pk=job.pk).log

    api = client_of(owner)
    address = f"/api/v1/models/{model.pk}/dossier/"
    found = {form: api.get(address, HTTP_ACCEPT=kind) for form, kind in TYPES.items()}
    for form, kind in TYPES.items():
        assert found[form].status_code == 200
        assert found[form]["Content-Type"].startswith(kind)
        assert client.get(f"/models/{model.pk}/dossier/{form}/").content == found[form].content
        assert api.get(f"{address}?format={form}").content == found[form].content
    with zipfile.ZipFile(io.BytesIO(found["zip"].content)) as packed:
        packed.extractall(tmp_path / "out")
    call_command("dossier", check=str(tmp_path / "out"))
    assert "those that the installation with this key made" in capsys.readouterr().out
    for form in ("json", "html", "pdf"):
        assert (tmp_path / "out" / f"dossier.{form}").read_bytes() == found[form].content
    assert (tmp_path / "out" / "model.json").read_text() == model.document

    record = json.loads(found["json"].content)
    assert record["check"]["verdict"] == "proved"
    assert record["check"]["proof"]["sha256"]
    assert record["about"]["purpose"]["Meant for"] == "sorting <flowers>"
    assert [step["step"] for step in record["about"]["review"]] == ["Draft", "In review"]
    assert record["about"]["address"].endswith(f"/models/{model.pk}/")
    assert record["subgroups"]["columns"][0]["column"] == column
    page = found["html"].content.decode()
    assert "SHA-256 of the stored copy of these rows" in page
    assert record["data"]["sha256"] == model.dataset.sha256
    assert "sorting &lt;flowers&gt;" in page
    assert "weighed, not counted" in page
    key = client.get("/dossier-key/").content
    assert key == (tmp_path / "out" / "public-key.pem").read_bytes()
    done = list(Record.objects.filter(subject_id=model.pk).values_list("what", flat=True))
    assert done[:3] == ["trained", "ask", "dossier made"]
    assert done.count("exported") == 12
    call_command("audit", "--json")

    # Before the approval nobody else may read the dossier. Afterwards every token may. Only the owner and
    # administrators may create one.
    client.force_login(stranger)
    assert client.get(f"/models/{model.pk}/dossier/html/").status_code == 404
    assert client_of(stranger).get(address).status_code == 404
    assert client.post(start).status_code == 404
    registry.approve(model, by=staff)
    assert client_of(stranger).get(address).status_code == 200
    assert client_of(stranger).post(address).status_code == 403
    text = client.get(panel).content.decode()
    assert "Open dossier" in text
    assert "<textarea" not in text


def test_api_creates_first_dossier_and_sends_retry_after(model, client_of, owner, stranger, staff):
    api = client_of(owner)
    address = f"/api/v1/models/{model.pk}/dossier/"
    answer = api.get(f"{address}?wait=0")
    assert answer.status_code == 202
    assert answer.json()["status"] == "queued"
    assert answer["Retry-After"]
    assert api.post(address, {"meant_for": "x"}, format="json").json()["id"] == answer.json()["id"]
    assert run(DossierSupervisor, actions.latest(model)) == "succeeded"
    assert api.get(address).json()["format"] == "octweb-dossier"
    for bad, status in (("?format=doc", 400), ("?wait=x", 400), ("?wait=1000", 400)):
        assert api.get(address + bad).status_code == status
    assert api.get(address, HTTP_ACCEPT="image/png").status_code == 406
    assert api.post(address, {"groups": ["nothing"]}, format="json").status_code == 400
    assert api.post(address, {"ends": "y" * 4001}, format="json").status_code == 400
    TreeModel.objects.filter(pk=model.pk).update(dataset=None)
    assert api.post(address, {}, format="json").status_code == 400
    registry.ask_for_approval(model, by=owner)
    registry.approve(TreeModel.objects.get(pk=model.pk), by=staff)
    ModelDossier.objects.all().delete()
    assert client_of(stranger).get(address).status_code == 404


def test_damaged_model_has_no_dossier_with_reason(model, client, owner):
    job = actions.start(by=owner, model=model)
    TreeModel.objects.filter(pk=model.pk).update(document=model.document.replace('"correct":', '"correct":1', 1))
    assert run(DossierSupervisor, job) == "failed"
    client.force_login(owner)
    text = client.get(f"/models/{model.pk}/dossier/panel/").content.decode()
    assert "could not be made" in text
    assert "damaged or changed" in text


def test_the_file_to_carry_away_names_the_dossier_and_its_model(model, client, owner):
    client.force_login(owner)
    page = client.get(f"/models/{model.pk}/download/html/").content.decode()
    assert f'href="http://testserver/models/{model.pk}/dossier/"' in page
    assert f"<code>{model.sha256}</code>" in page
    answer = client.get(f"/models/{model.pk}/dossier/")
    assert answer["Location"] == f"/models/{model.pk}/?mode=proof#dossier"


@pytest.mark.slow
def test_approval_makes_its_dossier_and_the_chain_names_it(model, owner, staff, client_of, client, capsys):
    """The same bytes come twice, the dossier outlives newer ones, and the audit finds a changed file."""
    registry.ask_for_approval(model, by=owner)
    reviewed = actions.latest(model)
    assert run(DossierSupervisor, reviewed) == "succeeded"
    registry.approve(model, by=staff, reason="read")
    job = ModelDossier.objects.get(approval__isnull=False)
    api = client_of(owner)
    address = f"/api/v1/models/{model.pk}/dossier/"
    assert api.get(f"{address}?of=approval").status_code == 404
    assert run(DossierSupervisor, job) == "succeeded"
    job.refresh_from_db()
    reviewed.refresh_from_db()
    records = Record.objects.filter(subject_id=model.pk)
    approve = records.get(what="approve")
    made = records.filter(what="dossier made").last()
    assert approve.details["dossier"] == reviewed.sha256
    assert made.details["approved"] == job.sha256
    assert hashlib.sha256(api.get(f"{address}?of=approval&format=zip").content).hexdigest() == job.sha256
    assert ModelDossier.objects.count() == 2
    for form in TYPES:
        first = api.get(f"{address}?of=approval&format={form}")
        assert first.content == api.get(f"{address}?of=approval&format={form}").content
        assert first["X-Dossier-SHA256"] == job.sha256
    about = api.get(address).json()["about"]
    assert about["approval"]["record"] == approve.number
    assert about["state"] == "approved"
    assert "This dossier belongs to the approval" in api.get(f"{address}?format=html").content.decode()

    assert run(DossierSupervisor, actions.start(by=owner, model=model)) == "succeeded"
    assert actions.tidy(timezone.now() + 2 * actions.KEPT) == 0
    assert api.get(f"{address}?of=approval")["X-Dossier-SHA256"] == job.sha256 != api.get(address)["X-Dossier-SHA256"]
    assert api.get(f"{address}?of=review").status_code == 400
    client.force_login(owner)
    assert job.sha256 in client.get(f"/models/{model.pk}/dossier/panel/").content.decode()
    call_command("audit", str(model.pk))
    with default_storage.open(job.file.name, "ab") as stream:
        stream.write(b"x")
    with pytest.raises(SystemExit):
        call_command("audit", str(model.pk))
    assert f"record {made.number}: the stored file of the dossier" in capsys.readouterr().err


def test_changes_and_risks_are_listed_over_approved_versions(model, owner, staff):
    """A draft in between is left out, since readers of the next version may not know of it."""

    def dossier(version, risks):
        texts = {"risks": risks, "weakness": "small"}
        return ModelDossier.objects.create(owner=owner, model=version, said=texts, status="succeeded")

    rows, labels = datasets.load(model.dataset)
    request = TrainRequest(table=rows, labels=labels, method="cart", parameters={"depth": 1}, test_share=0.3)
    document = train(request).model.to_json()
    draft, later = (
        registry.register(owner=owner, document=document, dataset=model.dataset, title="Small") for _ in range(2)
    )
    dossier(model, "drift")
    dossier(draft, "secret")
    registry.ask_for_approval(model, by=owner)
    registry.approve(model, by=staff, reason="read")
    registry.retire(model, by=owner, reason="too old")
    dossier(later, "drift")
    ModelDossier.objects.filter(status="queued").delete()
    about = actions.about(ModelDossier.objects.create(owner=owner, model=later, said={"risks": "none known"}))
    first, second = about["versions"]
    assert [v["version"] for v in about["versions"]] == [1, 3]
    assert first["approved"]
    assert first["ended"].endswith("too old")
    assert any(words.startswith("leaves ") for words in second["changes"])
    assert "depth 2 to 1" in second["changes"]
    log = [(r["version"], r["about"], r["text"]) for r in about["risk_log"]]
    assert log == [
        (1, "Risks", "drift"), (1, "Known weakness", "small"), (3, "Risks", "none known"), (3, "Known weakness", ""),
    ]  # fmt: skip


def test_audit_with_unreachable_store_lists_skipped_parts(model, owner, staff, monkeypatch):
    ModelDossier.objects.create(owner=owner, model=model, status="succeeded", file="dossiers/a.zip", sha256="a" * 64)
    registry.ask_for_approval(model, by=owner)
    registry.approve(model, by=staff, reason="read")

    def fail(*_):
        raise StoreUnavailable("the store does not answer")

    monkeypatch.setattr("django.core.files.storage.base.Storage.open", fail)
    report = actions.audit_dossiers([model])
    assert report.problems == []
    assert report.unchecked == [f"the stored file of the dossier of {model}: the store does not answer"]


def test_model_without_rows_says_that_no_dossier_will_come(model, owner, staff, client_of):
    TreeModel.objects.filter(pk=model.pk).update(dataset=None)
    model.refresh_from_db()
    registry.ask_for_approval(model, by=owner)
    registry.approve(model, by=staff, reason="read")
    assert not ModelDossier.objects.exists()
    answer = client_of(owner).get(f"/api/v1/models/{model.pk}/dossier/?of=approval")
    assert answer.status_code == 404
    assert "there can be no dossier" in answer.content.decode()


def test_absent_dossier_of_an_approval_says_why(model, owner, staff, client_of):
    """Only a dossier that will come asks for another call. Approvals of older releases made none."""
    api = client_of(owner)

    def words():
        answer = api.get(f"/api/v1/models/{model.pk}/dossier/?of=approval")
        assert answer.status_code == 404
        return answer.json()["detail"]

    assert "never approved" in words()
    registry.ask_for_approval(model, by=owner)
    registry.approve(model, by=staff, reason="read")
    assert "Call again" in words()
    ModelDossier.objects.update(status="failed")
    assert "could not be made" in words()
    ModelDossier.objects.all().delete()
    assert "older releases made none" in words()


def test_failed_dossier_of_an_approval_is_made_again(model, owner, staff):
    registry.ask_for_approval(model, by=owner, reason="x")
    registry.approve(model, by=staff, reason="read")
    job = ModelDossier.objects.get(approval__isnull=False)
    ModelDossier.objects.all().update(status="failed")
    assert actions.start(by=owner, model=model).approval == job.approval


def test_old_dossiers_are_removed_but_the_last_one_stays(model, owner):
    now = timezone.now()
    for age in (60, 50):
        stored = default_storage.save(f"dossiers/{age}.zip", ContentFile(b"zip"))
        job = ModelDossier.objects.create(owner=owner, model=model, status="succeeded", file=stored)
        before = now - timedelta(days=age)
        ModelDossier.objects.filter(pk=job.pk).update(created=before, finished=before)
    later = now + timedelta(days=2)
    assert actions.tidy(later) == 2  # the older dossier loses its row and, as an orphan, its file
    assert ModelDossier.objects.get().file.name == "dossiers/50.zip"
    assert actions.tidy(later) == 0
    assert default_storage.exists("dossiers/50.zip")


@pytest.fixture
def host(settings, tmp_path):
    """Provide a function that makes this process a host of the compose layout.

    It has its own data folder, and shares the database, the store and OCTWEB_SECRET_KEY.
    """

    def use(name: str):
        settings.DATA_DIR = tmp_path / name
        settings.DATA_DIR.mkdir(exist_ok=True)
        settings.DOSSIER_KEY = settings.DATA_DIR / "dossier_key.pem"

    return use


def test_worker_with_own_data_folder_signs_with_shared_key(model, owner, client, host, tmp_path, capsys):
    host("worker-1")
    assert run(DossierSupervisor, actions.start(by=owner, model=model)) == "succeeded"
    host("worker-2")
    assert run(DossierSupervisor, actions.start(by=owner, model=model)) == "succeeded"
    host("web")
    for number, job in enumerate(ModelDossier.objects.order_by("created")):
        with zipfile.ZipFile(job.file.path) as packed:
            packed.extractall(tmp_path / f"dossier-{number}")
        call_command("dossier", check=str(tmp_path / f"dossier-{number}"))
    fingerprint = SigningKey.objects.get().fingerprint
    assert client.get("/dossier-key/")["X-Key-SHA256"] == fingerprint
    assert capsys.readouterr().out.count(fingerprint) == 2


def test_worker_with_unregistered_key_refuses_to_sign(model, owner, client, host):
    host("web")
    registered = client.get("/dossier-key/")["X-Key-SHA256"]
    host("worker")
    own = signing.private_key(settings_of_django.DOSSIER_KEY)
    job = actions.start(by=owner, model=model)
    assert run(DossierSupervisor, job) == "failed"
    job.refresh_from_db()
    assert signing.fingerprint(own.public_key()) in job.error
    assert "is not registered" in job.error
    assert str(settings_of_django.DOSSIER_KEY.parent) not in job.error
    assert not job.file
    call_command("dossier", register_key=True)
    assert run(DossierSupervisor, actions.start(by=owner, model=model)) == "succeeded"
    host("web")
    assert client.get("/dossier-key/")["X-Key-SHA256"] != registered
    assert registered in known_fingerprints()


def test_key_sealed_with_another_secret_says_what_to_do(host, settings, client, db):
    host("web")
    client.get("/dossier-key/")
    settings.SECRET_KEY = "another secret of the same length or so, on another host"
    with pytest.raises(signing.BadKey, match="Set the same one on every host"):
        signing_key()
    assert_key_page_says_that_key_is_unusable(client)


@pytest.mark.parametrize("content", [b"no key", None])
def test_key_page_with_unusable_key_file_answers_503(host, settings, client, db, caplog, content):
    host("web")
    client.get("/dossier-key/")
    host("worker")
    signing.private_key(settings.DOSSIER_KEY)  # creates a key file with an unregistered key
    if content is not None:
        settings.DOSSIER_KEY.write_bytes(content)
    assert_key_page_says_that_key_is_unusable(client)
    assert str(settings.DOSSIER_KEY) in caplog.text


def assert_key_page_says_that_key_is_unusable(client):
    answer = client.get("/dossier-key/")
    assert answer.status_code == 503
    assert "cannot use its key for dossiers" in answer.json()["detail"]
    assert "/" not in answer.json()["detail"]


def test_key_file_of_an_earlier_version_is_registered(host, settings, db):
    host("web")
    own = signing.private_key(settings.DOSSIER_KEY)
    import_module("octweb.dossier.migrations.0002_signing_key").register_key_file(apps, None)
    host("worker")
    assert signing_key().public_key() == own.public_key()


def test_compose_gives_web_and_worker_one_secret_and_own_data():
    layout = yaml.safe_load((Path(__file__).parents[3] / "deploy" / "compose.yaml").read_text())
    web = layout["services"]["web"]
    worker = layout["services"]["worker"]
    assert set(web["volumes"]).isdisjoint(worker["volumes"])
    for name in ("OCTWEB_SECRET_KEY", "DATABASE_URL", "OCTWEB_FILES"):
        assert web["environment"][name] == worker["environment"][name]
    assert not any("DOSSIER_KEY" in name for name in worker["environment"])
