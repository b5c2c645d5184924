"""predictions/: upload, read, cancel, download, remove, permissions and refusals."""

from __future__ import annotations

import csv
import io
import json
import uuid

import pyarrow.parquet as pq
import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile

from octweb.batch import actions
from octweb.batch.explained import wishes_of
from octweb.batch.models import BatchPrediction
from octweb.decide import actions as decide
from octweb.registry.lifecycle import actions as registry
from octweb.serving.models import ApiToken, Scope
from tests.octweb.batch.conftest import rows_csv
from tests.octweb.decide.conftest import table_model  # noqa: F401
from tests.octweb.small_models import small_table
from tests.workbooks import workbook
from trainer.tree.file import from_json

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/api/v1/predictions/"


@pytest.fixture
def post(media, model, client_of, owner):
    def do(**changes):
        return client_of(owner).post(URL, {"model": str(model.pk), "file": rows_csv()} | changes, format="multipart")

    return do


def test_file_is_uploaded_predicted_and_downloaded(post, work, client_of, owner, cart_document):
    made = post(format="parquet")
    assert made.status_code == 201
    body = made.json()
    assert (body["status"], body["queue_position"], body["result"]) == ("queued", 1, None)
    job = BatchPrediction.objects.get(pk=body["id"])
    client = client_of(owner)
    assert client.get(f"{URL}{job.pk}/result/").status_code == 409
    assert work(job) == "succeeded"
    body = client.get(made["Location"]).json()
    tree, (table, _) = from_json(cart_document).tree, small_table()
    assert (body["rows"], body["predicted"], sum(body["labels"].values())) == (120, 120, 120)
    right = from_json(cart_document).metrics["train"]["correct"]
    assert (body["known"], body["correct"], body["trained"]) == (120, right, None)
    answer = client.get(body["result"])
    assert answer["Content-Disposition"] == 'attachment; filename="rows-predicted.parquet"'
    found = pq.read_table(io.BytesIO(answer.getvalue())).to_pydict()
    assert found["label"] == [tree.classes[k] for k in tree.predict(table.matrix())]
    assert body["kept_until"] > body["finished"]
    assert not default_storage.exists(job.source.name)


@pytest.mark.one_database
def test_a_file_that_cannot_be_predicted_says_row_and_column(post, work, client_of, owner):
    lines = rows_csv().read().decode().splitlines()
    lines[3], lines[9] = "wide" + lines[3][lines[3].index(",") :], "high" + lines[9][lines[9].index(",") :]
    job = BatchPrediction.objects.get(pk=post(file=rows_csv(content="\n".join(lines))).json()["id"])
    assert work(job) == "failed"
    body = client_of(owner).get(f"{URL}{job.pk}/").json()
    assert "Line 4" in body["error"]
    assert "'width'" in body["error"]
    assert [p.split(":")[0] for p in body["problems"]] == ["Line 4", "Line 10"]
    assert body["result"] is None
    assert "Traceback" not in body["error"]
    assert client_of(owner).get(f"{URL}{job.pk}/result/").status_code == 409


def test_only_permitted_users_may_view_and_call(post, media, client_of, model, job, owner, stranger, staff):
    for path in ("", "result/"):
        assert client_of(stranger).get(f"{URL}{job.pk}/{path}").status_code == 404
        assert client_of().get(f"{URL}{job.pk}/{path}").status_code == 401
    assert client_of(stranger).delete(f"{URL}{job.pk}/").status_code == 404
    assert client_of(stranger).post(f"{URL}{job.pk}/cancel/").status_code == 404
    assert client_of(stranger).get(URL).json()["count"] == 0
    assert client_of(staff).get(f"{URL}{job.pk}/").status_code == 200
    body = {"model": str(model.pk), "file": rows_csv()}
    assert client_of(stranger).post(URL, body, format="multipart").status_code == 404
    registry.approve(registry.ask_for_approval(model, by=owner), by=staff)
    body = {"model": str(model.pk), "file": rows_csv()}
    assert client_of(stranger, scope=Scope.PREDICT).post(URL, body, format="multipart").status_code == 201
    assert client_of(stranger).get(URL).json()["count"] == 1


@pytest.mark.parametrize("who", ["owner", "staff"])
def test_predict_token_sees_only_what_it_made(who, media, model, job, client_of, request):
    """One job is made on a page, and the second by another token of the same user."""
    user = request.getfixturevalue(who)
    body = {"model": str(model.pk), "file": rows_csv()}
    other = client_of(user).post(URL, body, format="multipart").json()["id"]
    limited = client_of(user, scope=Scope.PREDICT)
    for pk in (str(job.pk), other):
        for method, path in (("get", ""), ("get", "result/"), ("post", "cancel/"), ("delete", "")):
            assert getattr(limited, method)(f"{URL}{pk}/{path}").status_code == 404
    assert limited.get(URL).json()["count"] == 0
    own = limited.post(URL, body | {"file": rows_csv()}, format="multipart").json()["id"]
    assert [result["id"] for result in limited.get(URL).json()["results"]] == [own]
    assert limited.get(f"{URL}{own}/").status_code == 200
    assert client_of(user, scope=Scope.PREDICT).get(f"{URL}{own}/").status_code == 404
    assert client_of(user).get(f"{URL}{own}/").status_code == 200
    assert limited.delete(f"{URL}{own}/").status_code == 204


def test_token_revoked_elsewhere_queues_nothing(media, model, owner, client_of):
    """The other process deletes the row; this one remembers the token for some seconds."""
    client = client_of(owner)
    assert client.get(URL).status_code == 200
    ApiToken.objects.all().delete()
    answer = client.post(URL, {"model": str(model.pk), "file": rows_csv()}, format="multipart")
    assert answer.status_code == 401
    assert not BatchPrediction.objects.exists()


def test_model_retired_before_start_predicts_nothing(media, approved, staff, stranger, client_of, work):
    body = {"model": str(approved.pk), "file": rows_csv()}
    answer = client_of(stranger).post(URL, body, format="multipart").json()
    registry.retire(approved, by=staff)
    job = BatchPrediction.objects.get(pk=answer["id"])
    assert work(job) == "failed"
    assert "not approved" in job.error


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"model": "x"}, 400, "model"),
        ({"model": str(uuid.uuid4())}, 404, "no model"),
        ({"format": "xml"}, 400, "format"),
        ({"file": SimpleUploadedFile("rows.csv", b"")}, 422, "empty"),
        ({"file": SimpleUploadedFile("rows.xlsx", b"PK\x03\x04" + b"0" * 99)}, 422, "Excel"),
        ({"file": "text"}, 400, "file"),
    ],
)
def test_refused_upload_stores_nothing(post, changes, status, words):
    answer = post(**changes)
    assert answer.status_code == status
    assert words in answer.json()["detail"]
    assert BatchPrediction.objects.count() == 0
    assert not default_storage.exists("predictions") or default_storage.listdir("predictions") == ([], [])


@pytest.mark.one_database
def test_limits(post, settings):
    settings.MAX_UPLOAD_BYTES = 1000
    assert post().status_code == 413
    settings.MAX_UPLOAD_BYTES = 10**6
    settings.MAX_QUEUED_RUNS = 1
    assert post().status_code == 201
    assert post().status_code == 409


@pytest.mark.one_database
def test_too_many_rows_are_refused_by_the_job(post, work, settings):
    settings.MAX_ROWS = 100
    job = BatchPrediction.objects.get(pk=post().json()["id"])
    assert work(job) == "failed"
    assert "more than 100 rows" in job.error


def test_cancel_delete_and_filters(post, client_of, owner, model):
    answer = post().json()
    client = client_of(owner)
    assert client.post(f"{URL}{answer['id']}/cancel/").json()["status"] == "cancelled"
    assert client.post(f"{URL}{answer['id']}/cancel/").status_code == 409
    assert client.get(f"{URL}?status=cancelled&model={model.pk}").json()["count"] == 1
    assert client.get(f"{URL}?status=queued").json()["count"] == 0
    assert client.get(f"{URL}?status=odd").status_code == 400
    assert client.get(f"{URL}?model=odd").status_code == 400
    assert client.get(f"{URL}?page_size=1&page=2").status_code == 404
    assert client.delete(f"{URL}{answer['id']}/").status_code == 204
    assert client.get(f"{URL}{answer['id']}/").status_code == 404


@pytest.mark.one_database
def test_rows_are_explained_with_marks_and_rounded_units(
    media,
    table_model,  # noqa: F811
    work,
    client_of,
    owner,
    stranger,
    staff,
):
    model = table_model
    text = "score,age,town\n4.5,3,south\n18,12.5,north\n,4,east\n"
    decide.mark(model, by=owner, change={"town": "never"})
    explained = set()
    registry.ask_for_approval(model, by=owner)
    registry.approve(model, by=staff)
    for user in (owner, stranger):
        client = client_of(user)
        wishes = {"change": {"score": "up"}, "cost": {"age": 0.125}, "least": "total"}
        sent = {"model": str(model.pk), "file": rows_csv(content=text), "explain": "true"}
        sent |= {name: json.dumps(wishes[name]) for name in ("change", "cost")} | {"least": "total"}
        body = client.post(URL, sent, format="multipart").json()
        assert (body["explain"], {name: body[name] for name in wishes}) == (True, wishes)
        assert work(BatchPrediction.objects.get(pk=body["id"])) == "succeeded"
        body = client.get(f"{URL}{body['id']}/").json()
        assert any("rounded" in note for note in body["notes"])
        rows = list(csv.DictReader(io.StringIO(client.get(body["result"]).getvalue().decode())))
        rest = [{"score": 4.5, "age": 3, "town": "south"}, {"score": 18, "age": 12.5, "town": "north"}]
        answer = client.post(f"/api/v1/models/{model.pk}/explain/", {"rows": rest, **wishes}, format="json").json()
        assert any("costs as given" in note for note in body["notes"])
        assert any("the smallest total" in note for note in body["notes"])
        for row, record in zip(rows, answer["explanations"], strict=False):
            if record["flip"] is None:
                assert row["no_flip"] == record["no_flip"]
                continue
            explained.add(next(iter(record["flip"]["changes"])))
            assert (row["flip_label"], row["flip_proved"]) == (record["flip"]["label"], "true")
            assert float(row["flip_distance"]) == record["flip"]["distance"]
            assert "town" not in row["flip"]
            assert row["path"].startswith(record["path"][0]["column"])
        assert rows[2]["path"]  # a row with an empty cell gets an answer, too
    assert explained


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("more", "member", "words"),
    [
        ({"change": '{"widht": "up"}', "explain": "true"}, "change", "no such column"),
        ({"change": '["width"]', "explain": "true"}, "change", "not an object"),
        ({"change": "width=up", "explain": "true"}, "change", "valid JSON"),
        ({"change": '{"width": "up"}'}, "change", "explain=true"),
        ({"cost": '{"width": 0}', "explain": "true"}, "cost", "a cost is a number"),
        ({"least": "total"}, "least", "explain=true"),
        ({"least": "money", "explain": "true"}, "least", "not a valid choice"),
        ({"cost": '{"colour": 1}', "explain": "true"}, "cost", "no cost per unit"),
    ],
)
def test_odd_wishes_are_refused_by_their_names(media, model, client_of, owner, more, member, words):
    answer = client_of(owner).post(URL, {"model": str(model.pk), "file": rows_csv(), **more}, format="multipart")
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert words in error["detail"]
    assert member in str(error)
    assert not BatchPrediction.objects.exists()


@pytest.mark.one_database
def test_rows_are_not_explained_unless_asked(post, work, client_of, owner):
    body = post().json()
    assert body["explain"] is False
    assert work(BatchPrediction.objects.get(pk=body["id"])) == "succeeded"
    answer = client_of(owner).get(f"{URL}{body['id']}/result/").getvalue().decode()
    assert answer.splitlines()[0].endswith(",leaf")


@pytest.mark.one_database
def test_explanations_end_before_the_time_of_the_job(media, model, settings):
    settings.MAX_BATCH_SECONDS = 50
    job = actions.enqueue(
        owner=model.owner,
        model=model,
        file=rows_csv(),
        source_name="rows.csv",
        options=actions.BatchOptions(explain=True),
    )
    assert wishes_of(job).seconds == 30


def test_sheet_and_missing_header_are_passed_on(post, work, client_of, owner):
    lines = list(csv.reader(io.StringIO(rows_csv().read().decode())))
    made = post(
        file=SimpleUploadedFile("rows.xlsx", workbook({"notes": [["nothing"]], "rows": lines[:9]})), sheet="rows"
    )
    assert made.status_code == 201, made.content
    job = BatchPrediction.objects.get(pk=made.json()["id"])
    assert (made.json()["sheet"], work(job)) == ("rows", "succeeded")
    assert client_of(owner).get(made["Location"]).json()["rows"] == 8
    bare = SimpleUploadedFile("rows.csv", "\n".join(",".join(line) for line in lines[1:9]).encode())
    made = post(file=bare, header=False)
    job = BatchPrediction.objects.get(pk=made.json()["id"])
    assert work(job) == "failed"  # the model was trained on a file with names
    job.refresh_from_db()
    assert "Add a header line" in job.error
