"""Pages of batch predictions, without a browser."""

from __future__ import annotations

import pytest

from octweb.batch.models import BatchPrediction
from tests.octweb.batch.conftest import rows_csv

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]


def test_from_the_model_to_the_answers(client, model, media, owner, work):
    client.force_login(owner)
    link = f"/predictions/new/?model={model.pk}"
    assert link in client.get(f"/models/{model.pk}/?mode=use").content.decode()
    page = client.get(link).content.decode()
    assert "needs" in page
    assert "width" in page
    answer = client.post("/predictions/new/", {"model": str(model.pk), "file": rows_csv(), "format": "csv"})
    job = BatchPrediction.objects.get()
    assert answer.url == f"/predictions/{job.pk}/"
    page = client.get(answer.url).content.decode()
    assert "Number 1 in the queue" in page
    assert "No worker is running" in page
    assert client.get(f"{answer.url}result/").url == answer.url
    assert work(job) == "succeeded"
    page = client.get(f"{answer.url}live/").content.decode()
    assert "120, of which 120 have a prediction" in page
    assert "every 1s" not in page
    text = client.get(f"{answer.url}result/").getvalue().decode()
    assert text.startswith("row,label,probability a")
    assert len(text.splitlines()) == 121
    listed = client.get("/decisions/").content.decode()
    assert listed.index("rows.csv") < listed.index("Finished") < listed.rindex(f'href="/models/{model.pk}/')
    assert f"/delete/prediction/{job.pk}/" in page


def test_form_without_models_says_so(client, stranger, media):
    client.force_login(stranger)
    text = client.get("/predictions/new/").content.decode()
    assert "You cannot call any model yet" in text
    assert 'type="file"' not in text


def test_invalid_form_is_refused(client, model, media, owner, settings):
    client.force_login(owner)
    for body, status, words in (
        ({"model": str(model.pk), "file": rows_csv(content=b"%PDF-1.7 ...")}, 200, "PDF"),
        ({"model": str(model.pk)}, 200, "required"),
        ({"model": "odd", "file": rows_csv()}, 404, ""),
    ):
        answer = client.post("/predictions/new/", body | {"format": "csv"})
        assert answer.status_code == status
        assert words in answer.content.decode()
    settings.MAX_UPLOAD_BYTES = 100
    answer = client.post("/predictions/new/", {"model": str(model.pk), "file": rows_csv(), "format": "csv"})
    assert "The file is larger" in answer.content.decode()
    assert not BatchPrediction.objects.exists()


def test_a_failure_is_explained_and_others_see_nothing(client, job, owner, stranger, work):
    with open(job.source.path, "w") as stream:
        stream.write("a,b\n1,2\n")
    assert work(job) == "failed"
    client.force_login(owner)
    page = client.get(f"/predictions/{job.pk}/").content.decode()
    assert "could not be predicted" in page
    assert "width" in page
    client.force_login(stranger)
    for path in ("", "live/", "result/"):
        assert client.get(f"/predictions/{job.pk}/{path}").status_code == 404
    assert client.post(f"/predictions/{job.pk}/cancel/").status_code == 404


def test_cancel_by_button(client, job, owner):
    client.force_login(owner)
    client.post(f"/predictions/{job.pk}/cancel/")
    job.refresh_from_db()
    assert job.status == "cancelled"


def test_the_form_asks_whether_rows_are_explained(client, model, media, owner):
    client.force_login(owner)
    assert 'type="checkbox" name="explain"' in client.get("/predictions/new/").content.decode()
    client.post("/predictions/new/", {"model": str(model.pk), "file": rows_csv(), "format": "csv", "explain": "on"})
    job = BatchPrediction.objects.get()
    assert job.explain
    page = client.get(f"/predictions/{job.pk}/").content.decode()
    assert "with path and smallest change" in page


def test_form_takes_permissions_and_costs_line_by_line(client, model, media, owner):
    client.force_login(owner)
    form = {"model": str(model.pk), "format": "csv", "explain": "on", "cost": "width = 2\n\nheight=0.5"}
    answer = client.post("/predictions/new/", form | {"file": rows_csv(), "change": "width=up\ncolour=red|green"})
    assert answer.status_code == 200
    assert "write COLUMN=NUMBER" not in answer.content.decode()
    assert "no such column" in answer.content.decode(), "'width ' with a space is no column"
    form |= {"cost": "width=2\nheight=0.5", "least": "total"}
    assert (
        client.post(
            "/predictions/new/", form | {"file": rows_csv(), "change": "width=up\ncolour=red|green"}
        ).status_code
        == 302
    )
    job = BatchPrediction.objects.get()
    assert (job.change, job.cost) == ({"width": "up", "colour": ["red", "green"]}, {"width": 2.0, "height": 0.5})
    page = client.get(f"/predictions/{job.pk}/").content.decode()
    assert "cost of 1: width 2.0, height 0.5; smallest total" in " ".join(page.split())
    for odd in ({"change": "widht=up"}, {"cost": "width=dear"}, {"change": "width=sideways"}):
        answer = client.post("/predictions/new/", form | {"file": rows_csv()} | odd)
        assert answer.status_code == 200
        assert BatchPrediction.objects.count() == 1
