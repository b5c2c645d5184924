"""A retired model: refused to others, and answers to its owner and administrators say that it is retired."""

from __future__ import annotations

import pytest

from octweb.registry import actions
from tests.octweb.batch.conftest import rows_csv

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]
NOTE = "small-cart version 1 is retired. Do not use its answers for new decisions."


@pytest.fixture
def retired(approved, staff):
    return actions.retire(approved, by=staff)


def one_row() -> dict:
    header, first = rows_csv().read().decode().splitlines()[:2]
    cells = zip(header.split(","), first.split(","), strict=True)
    return {name: float(cell) if cell.replace(".", "", 1).isdigit() else cell for name, cell in cells}


@pytest.mark.parametrize("who", ["owner", "staff"])
@pytest.mark.parametrize("call", ["predict", "predict/?explain=true", "explain"])
def test_answer_of_a_retired_model_says_so(client_of, retired, request, who, call):
    client = client_of(request.getfixturevalue(who))
    path = call if "?" in call else f"{call}/"
    answer = client.post(f"/api/v1/models/{retired.pk}/{path}", {"rows": [one_row()]}, format="json")
    assert answer.status_code == 200
    assert answer.json()["retired"] == NOTE
    assert answer["Octweb-Retired"] == "true"


def test_csv_answer_of_a_retired_model_has_the_header(client_of, owner, retired):
    content = rows_csv().read()
    answer = client_of(owner).post(f"/api/v1/models/{retired.pk}/predict/", content, content_type="text/csv")
    assert answer.status_code == 200
    assert answer["Octweb-Retired"] == "true"


def test_predicted_file_of_a_retired_model_says_so(client_of, owner, retired):
    client = client_of(owner)
    form = {"model": str(retired.pk), "file": rows_csv()}
    answer = client.post("/api/v1/predictions/", form, format="multipart")
    assert answer.status_code == 201
    assert answer["Octweb-Retired"] == "true"
    assert client.get(f"/api/v1/predictions/{answer.json()['id']}/").json()["retired"] == NOTE


def test_answer_of_an_approved_model_has_no_note(client_of, owner, approved):
    answer = client_of(owner).post(f"/api/v1/models/{approved.pk}/predict/", {"rows": [one_row()]}, format="json")
    assert answer.status_code == 200
    assert "retired" not in answer.json()
    assert "Octweb-Retired" not in answer


def test_retired_model_is_refused_to_others(client_of, stranger, retired):
    client = client_of(stranger)
    for call in ("predict", "explain"):
        assert (
            client.post(f"/api/v1/models/{retired.pk}/{call}/", {"rows": [one_row()]}, format="json").status_code == 404
        )


@pytest.mark.parametrize(
    "address",
    ["/v2/models/small-cart/infer", "/v2/models/small-cart/versions/1/infer", "/invocations?model=small-cart"],
)
def test_served_name_of_a_retired_model_says_why(client_of, owner, stranger, retired, address):
    """By name only approved models answer; owner and administrators learn that the version is retired."""
    mine = client_of(owner).post(address, {}, format="json")
    assert mine.status_code == 404
    assert "Version 1 is retired." in mine.json()["error"]
    assert "retired" not in client_of(stranger).post(address, {}, format="json").json()["error"]
