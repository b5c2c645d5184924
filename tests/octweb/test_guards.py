"""Tokens that make tokens, formula injection, private pages, blank names, odd numbers, and lost passwords."""

from __future__ import annotations

import io
import re
from datetime import timedelta

import pytest
from django.core import mail
from django.core.management import CommandError, call_command
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from octweb.datasets import actions, stored
from octweb.datasets.models import Dataset
from octweb.experiments.models import Experiment
from octweb.registry.lifecycle import actions as registry
from octweb.runs.models import TrainingRun
from octweb.serving.actions import create_token
from octweb.serving.models import ApiToken
from octweb.workbench.models import Workbench
from tests.octweb.datasets.files import API, GOOD, api
from trainer.data.formats.spreadsheet import as_text
from trainer.training.run import TrainRequest, train

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]
TOKENS = "/api/v1/tokens/"


@pytest.fixture
def page(client, owner):
    client.force_login(owner)
    return client


@pytest.fixture
def dataset(owner):
    return actions.create(owner=owner, file=io.BytesIO(GOOD), source_name="good.csv", target="label")


def model_of(dataset, owner, depth):
    table, labels = stored.load(dataset)
    request = TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": depth}, test_share=0)
    return registry.register(owner=owner, document=train(request).model.to_json(), dataset=dataset, title="t")


def test_token_cannot_create_a_longer_lived_one(owner):
    token, secret = create_token(owner=owner, days=1)
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {secret}")
    for body in ({"days": 2}, {"days": 1}, {"days": 3650}):
        answer = client.post(TOKENS, body, format="json")
        assert (answer.status_code, "expires later than itself" in answer.json()["detail"]) == (400, True)
    response = client.post(TOKENS, {"name": "as long"}, format="json")
    assert response.status_code == 201
    assert ApiToken.objects.get(name="as long").expiry <= token.expiry
    assert ApiToken.objects.count() == 2
    _, secret = create_token(owner=owner)
    client.credentials(HTTP_AUTHORIZATION=f"Token {secret}")
    assert client.post(TOKENS, {"days": 3650}, format="json").status_code == 201


def test_prediction_token_cannot_create_tokens(owner):
    _, secret = create_token(owner=owner, scope="predict")
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {secret}")
    assert client.post(TOKENS, {}, format="json").status_code == 403
    assert ApiToken.objects.count() == 1


@pytest.mark.parametrize(
    ("cell", "written"),
    [("=1+1", "'=1+1"), ("@x", "'@x"), ("-2+3", "'-2+3"), ("+49 30 1", "'+49 30 1"), ("\t=1", "'\t=1"),
     ("-2.5e3", "-2.5e3"), ("+1", "+1"), ("a=1", "a=1"), ("", ""), (" =1", "' =1"), ("\n=1", "'\n=1"), ("\u00a0\ufeff @x", "'\u00a0\ufeff @x"),
     ("\uff1d1", "'\uff1d1"), ("\0=1", "'\0=1"), (" -2.5", " -2.5"), (" a", " a"), ("--", "'--"), (" ", " ")],
)  # fmt: skip
def test_cells_that_would_be_formulas(cell, written):
    assert as_text(cell) == written


def test_downloads_stay_text_in_spreadsheets(owner):
    content = b'"=name",n,y\n"=HYPERLINK(1)",-1,a\n@x,2.5,b\n'
    made = actions.create(owner=owner, file=io.BytesIO(content), source_name="t.csv", target="y")

    def download(query=""):
        answer = api(owner).get(f"{API}{made.pk}/download/{query}")
        return b"".join(answer.streaming_content).replace(b"\r\n", b"\n")

    assert download() == b"'=name,n,y\n'=HYPERLINK(1),-1,a\n'@x,2.5,b\n"
    assert download("?as=read") == b"=name,n,y\n=HYPERLINK(1),-1,a\n@x,2.5,b\n"


def test_rows_of_a_model_stay_text_in_spreadsheets(page, owner):
    content = b"x,y\n" + b"=1,@a\n-b,c\n" * 40
    dataset = actions.create(owner=owner, file=io.BytesIO(content), source_name="t.csv", target="y")
    first, second = (model_of(dataset, owner, depth) for depth in (1, 0))
    lines = b"".join(page.get(f"/models/{first.pk}/rows.csv").streaming_content).splitlines()
    assert {line.split(b",", 3)[3] for line in lines[1:]} == {b"'@a,'@a,'=1", b"c,c,'-b"}
    answer = page.get(f"/models/compare/rows.csv?models={first.pk}&models={second.pk}")
    lines = b"".join(answer.streaming_content).splitlines()
    assert len(lines) > 1
    assert not [cell for line in lines for cell in line.split(b",") if cell[:1] in (b"=", b"@", b"-")]


def test_private_pages_are_kept_by_no_cache(page, owner, dataset):
    _, secret = create_token(owner=owner)
    with_token = APIClient()
    with_token.credentials(HTTP_AUTHORIZATION=f"Token {secret}")
    for answer in (
        page.get(reverse("datasets:detail", args=[dataset.pk])),
        page.get(reverse("home")),
        with_token.get(API),
    ):
        assert answer["Cache-Control"] == "private, no-store"


NOTHING = ["\u200e", "\u200b\u200f", "\u202e\u2066", "\u3164\u2800", "\ufe0f\u034f"]


@pytest.mark.parametrize("name", [*NOTHING, "iris\u202etset"])
def test_invalid_names_are_refused(page, owner, dataset, name):
    client = api(owner)
    calls = [
        ("patch", f"{API}{dataset.pk}/", {"name": name}),
        ("post", "/api/v1/runs/", {"dataset": str(dataset.pk), "method": "cart", "name": name}),
        ("post", TOKENS, {"name": name}),
        ("post", "/api/v1/experiments/", {"dataset": str(dataset.pk), "name": name}),
        ("post", "/api/v1/workbenches/", {"dataset": str(dataset.pk), "method": "exact", "name": name}),
    ]
    for method, address, body in calls:
        answer = getattr(client, method)(address, body, format="json")
        assert answer.status_code in (400, 422), (address, answer.content)
    for address, body in (
        (reverse("datasets:edit", args=[dataset.pk]), {"name": name, "target": "label"}),
        (reverse("serving:guide"), {"name": name, "scope": "predict"}),
    ):
        answer = page.post(address, body)
        assert answer.status_code == 200, address
    dataset.refresh_from_db()
    assert dataset.name == "good"
    assert not [*TrainingRun.objects.all(), *Experiment.objects.all(), *Workbench.objects.all()]


@pytest.mark.parametrize(
    ("address", "members"),
    [
        ("/api/v1/runs/", ["dataset", "method"]),
        (TOKENS, []),
        ("/api/v1/experiments/", ["dataset"]),
        ("/api/v1/workbenches/", ["dataset", "method"]),
    ],
)
def test_blank_names_are_refused_where_names_are_optional(owner, dataset, address, members):
    others = {"dataset": str(dataset.pk), "method": "exact"}
    body = {"name": " \t "} | {name: others[name] for name in members}
    assert api(owner).post(address, body, format="json").status_code == 422
    assert api(owner).post(address, body | {"name": 0}, format="json").status_code == 400


@pytest.mark.parametrize(
    ("sent", "name"),
    [("\u202e.csv", "data"), ("\u3164.csv", "data"), ("a\u202evsc.exe.csv", "avsc"), ("x\r\ny.csv", "x y")],
)  # fmt: skip
def test_names_that_come_from_files_can_be_read(owner, sent, name):
    made = actions.create(owner=owner, file=io.BytesIO(GOOD), source_name=sent, target="label")
    assert (made.name, "\u202e" in made.source_name) == (name, False)


@pytest.mark.parametrize("field", ["kinds", "special", "missing_words"])
def test_duplicate_names_in_form_fields_are_refused(owner, field):
    value = {"kinds": '"numeric"', "special": "[1]", "missing_words": '["x"]'}[field]
    body = {"file": io.BytesIO(GOOD), "target": "label", field: f'{{"a": {value}, "\\u0061": {value}}}'}
    answer = api(owner).post(API, body, format="multipart")
    assert (answer.status_code, "appears twice" in answer.json()["detail"]) == (400, True)


@pytest.mark.parametrize("size", ["null", "0", "-1", "1.5", "x", ""])
def test_odd_page_sizes_are_refused(owner, size):
    assert api(owner).get(API, {"page_size": size}).status_code == 400
    assert api(owner).get(API, {"page_size": "20"}).status_code == 200


@pytest.mark.parametrize("name", [0, 1.5, True, ["x"]])
def test_names_are_texts(owner, dataset, name):
    client = api(owner)
    assert client.patch(f"{API}{dataset.pk}/", {"name": name}, format="json").status_code == 400
    body = {"dataset": str(dataset.pk), "method": "cart", "name": name}
    assert client.post("/api/v1/runs/", body, format="json").status_code == 400
    assert client.post(TOKENS, {"name": name}, format="json").status_code == 400
    assert (
        client.patch(f"{API}{dataset.pk}/", b'{"name": "a", "name": "b"}', content_type="application/json").status_code
        == 400
    )
    assert Dataset.objects.get().name == "good"


def new_password(client, address):
    form = client.get(address, follow=True)
    password = "another long password"
    return client.post(form.request["PATH_INFO"], {"new_password1": password, "new_password2": password}, follow=True)


def test_a_forgotten_password_by_mail(client, owner, settings):
    owner.email = "olga@example.org"
    owner.save()
    assert "sends no mail" in client.get(reverse("password_reset")).content.decode()
    settings.EMAIL_HOST = "mail.example.org"
    for address in ("olga@example.org", "nobody@example.org"):
        answer = client.post(reverse("password_reset"), {"email": address}, follow=True)
        assert "has been sent to it" in answer.content.decode()
    (sent,) = mail.outbox
    link = re.search(r"http://testserver(\S+)", sent.body)[1]
    assert "Password set" in new_password(client, link).content.decode()
    owner.refresh_from_db()
    assert owner.check_password("another long password")
    assert "no longer works" in client.get(link, follow=True).content.decode()


def test_a_forgotten_password_by_the_administrator(client, owner, capsys):
    call_command("password_link", "olga")
    link = capsys.readouterr().out.strip()
    assert "Password set" in new_password(client, link).content.decode()
    owner.refresh_from_db()
    assert owner.check_password("another long password")
    with pytest.raises(CommandError, match="no active user called 'nobody'"):
        call_command("password_link", "nobody")


def test_an_expired_token_makes_nothing(owner):
    token, secret = create_token(owner=owner, days=1)
    ApiToken.objects.filter(pk=token.pk).update(expiry=timezone.now() - timedelta(seconds=1))
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {secret}")
    assert client.post(TOKENS, {}, format="json").status_code == 401
