"""Files in a bucket: uploads, tables, trainings and batch predictions against an S3 server."""

from __future__ import annotations

import io
import os
import socket
import time
from datetime import timedelta

import pytest
from django.core.files.storage import default_storage
from django.urls import reverse
from django.utils import timezone

from octweb.batch import actions as batch
from octweb.batch.models import BatchPrediction
from octweb.batch.work import PredictionSupervisor
from octweb.core import files
from octweb.core.faults import StoreUnavailable
from octweb.datasets import actions, stored
from octweb.environment import store_settings
from octweb.jobs.supervisor import stopping
from octweb.registry.document.rows import check_claim
from octweb.registry.lifecycle import actions as registry
from octweb.runs import actions as runs
from octweb.runs.models import TrainingRun
from octweb.runs.training import TrainingSupervisor
from tests.octweb.runs.conftest import CSV
from tests.octweb.small_models import trained
from trainer.errors import DataError

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def server():
    """Provide the URL of an S3 server in this process."""
    from moto.server import ThreadedMotoServer

    found = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    found.start()
    host, port = found.get_host_and_port()
    yield f"http://{host}:{port}"
    found.stop()


@pytest.fixture
def credentials(monkeypatch):
    for name, value in (("ACCESS_KEY_ID", "octweb"), ("SECRET_ACCESS_KEY", "not a secret"), ("DEFAULT_REGION", "here")):
        monkeypatch.setenv(f"AWS_{name}", value)


def use(settings, where: str, tmp_path, endpoint: str) -> None:
    settings.STORAGES = {
        "default": store_settings(where, folder=tmp_path / "files", endpoint=endpoint),
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
    settings.DATA_DIR = tmp_path / "here"


@pytest.fixture
def bucket(server, credentials, settings, tmp_path):
    import boto3

    name = f"octweb-{os.getpid()}-{time.monotonic_ns()}"
    client = boto3.client("s3", endpoint_url=server)
    client.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": "here"})
    use(settings, f"s3://{name}/some/folder", tmp_path, server)

    def keys() -> list[str]:
        return [entry["Key"] for entry in client.list_objects_v2(Bucket=name).get("Contents", [])]

    return keys


@pytest.fixture
def elsewhere(settings, tmp_path):
    """Provide a function that makes this process another host, whose data folder is empty."""

    def go(name: str = "there"):
        settings.DATA_DIR = tmp_path / name
        stored._load.cache_clear()
        return settings.DATA_DIR

    return go


@pytest.fixture
def dataset(bucket, owner):
    return actions.create(owner=owner, file=io.BytesIO(CSV.encode()), source_name="small.csv", target="class")


def copies(folder) -> list[str]:
    return sorted(os.listdir(folder / "copies")) if (folder / "copies").is_dir() else []


@pytest.mark.slow
@pytest.mark.one_database
def test_bucket_table_is_readable_on_any_host(bucket, dataset, elsewhere):
    assert len(bucket()) == 1
    assert bucket()[0].startswith("some/folder/datasets/")
    there = elsewhere()
    assert copies(there) == []
    table, labels = actions.load(dataset)
    assert len(table) == dataset.rows
    assert len(labels.classes) == 2
    assert actions.first_rows(dataset, 2)[0][-1] == "class"
    assert "".join(actions.csv_lines(dataset)).count("\n") == CSV.count("\n")
    assert len(copies(there)) == 1
    actions.delete(dataset)
    assert len(bucket()) == 1, "deleting can be undone for thirty days"
    actions.purge(timezone.now() + timedelta(days=31))
    assert bucket() == []
    assert copies(there) == []


@pytest.mark.one_database
def test_an_upload_of_two_steps_may_end_on_another_host(bucket, owner, elsewhere):
    staged = actions.stage(owner=owner, file=io.BytesIO(CSV.encode()), source_name="small.csv")
    there = elsewhere()
    found = actions.preview(staged, actions.ReadOptions())
    assert found.rows == CSV.count("\n") - 1
    assert found.guesses
    made = actions.confirm(
        staged, name="two steps", reading=actions.ReadOptions(), choice=actions.ColumnChoice(target="class")
    )
    assert [made.file.name in key for key in bucket()] == [True]
    assert copies(there) == []  # the local copy of the uploaded file is removed together with it


@pytest.mark.one_database
def test_run_trains_on_host_without_the_table(dataset, owner, elsewhere):
    run = runs.enqueue(owner=owner, dataset=dataset, method="cart", parameters={"depth": 3})
    there = elsewhere()
    end = TrainingSupervisor(job_id=str(run.pk), worker="there:1", stopping=stopping).run()
    run.refresh_from_db()
    assert end == "succeeded", run.error
    assert len(copies(there)) == 1
    assert not list((there / "runs").iterdir())
    elsewhere("web")
    assert check_claim(run.model).agrees


@pytest.mark.slow
@pytest.mark.one_database
def test_file_is_predicted_on_other_host_and_downloaded_here(bucket, owner, elsewhere, client):
    model = registry.register(owner=owner, document=trained("cart", depth=2), dataset=None, title="small")
    rows = io.BytesIO(CSV.encode())
    rows.size = len(CSV)
    job = batch.enqueue(owner=owner, model=model, file=rows, source_name="rows.csv")
    elsewhere()
    assert PredictionSupervisor(job_id=str(job.pk), worker="there:1", stopping=stopping).run() == "succeeded"
    assert [key.rsplit("/", 1)[1] for key in bucket()] == ["result-1.csv"]
    elsewhere("web")
    client.force_login(owner)
    answer = client.get(reverse("batch:result", args=[job.pk]))
    lines = b"".join(answer.streaming_content).decode().splitlines()
    assert len(lines) == CSV.count("\n")
    batch.delete(BatchPrediction.objects.get(pk=job.pk))
    assert len(bucket()) == 1, "deleting can be undone for thirty days"
    batch.tidy(timezone.now() + timedelta(days=31))
    assert bucket() == []


@pytest.mark.one_database
def test_missing_file_is_reported(bucket, dataset, owner, elsewhere):
    default_storage.delete(dataset.file.name)
    elsewhere()
    with pytest.raises(DataError, match="missing"):
        actions.load(dataset)
    run = runs.enqueue(owner=owner, dataset=dataset, method="cart", parameters={"depth": 3})
    assert TrainingSupervisor(job_id=str(run.pk), worker="there:1", stopping=stopping).run() == "failed"
    assert "gone" in TrainingRun.objects.get(pk=run.pk).error


def test_unreachable_store_is_503_and_stores_nothing(credentials, settings, tmp_path, client, owner, monkeypatch):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    monkeypatch.setattr("octweb.core.stores.ATTEMPTS", 1)
    use(settings, "s3://nobody", tmp_path, f"http://127.0.0.1:{port}")
    with pytest.raises(StoreUnavailable):
        default_storage.exists("x")
    client.force_login(owner)
    answer = client.post("/api/v1/datasets/", {"file": io.BytesIO(CSV.encode()), "target": "class"})
    assert answer.status_code == 503
    assert "does not answer" in answer.json()["error"]
    assert actions.Dataset.objects.count() == 0
    files.remove(default_storage, "x")  # logs the error and returns


@pytest.mark.one_database
def test_copies_are_kept_for_a_while_only(bucket, dataset, owner, settings, elsewhere):
    there = elsewhere()
    other = actions.create(owner=owner, file=io.BytesIO(CSV.encode()), source_name="b.csv", target="class")
    first = files.local_path(dataset.file)
    second = files.local_path(other.file)
    assert len(copies(there)) == 2
    hour_ago = time.time() - 3600
    os.utime(first, (hour_ago, hour_ago))
    assert files.tidy() == 0
    settings.MAX_COPIES_BYTES = second.stat().st_size
    assert files.tidy() == 1
    assert not first.exists()
    os.utime(second, (0, 0))
    assert files.tidy() == 1


@pytest.mark.one_database
def test_the_setting_names_a_folder_or_a_bucket(tmp_path):
    assert store_settings("", folder=tmp_path, endpoint="")["OPTIONS"] == {"location": str(tmp_path)}
    assert store_settings("/srv/files", folder=tmp_path, endpoint="")["OPTIONS"] == {"location": "/srv/files"}
    options = store_settings("s3://mine/a/b/", folder=tmp_path, endpoint="https://store")["OPTIONS"]
    assert (options["bucket_name"], options["location"], options["endpoint_url"]) == ("mine", "a/b", "https://store")
