"""Calls of a retired model get 410; only a dry run of its owner or an administrator is answered."""

from __future__ import annotations

import pytest
from django.utils import timezone

from octweb.core import tally
from octweb.registry.lifecycle import actions
from tests.octweb.batch.conftest import rows_csv

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]
NOTE = "small-cart version 1 is retired. Do not use its answers for new decisions."
DRY_RUN = {"HTTP_OCTWEB_DRY_RUN": "1"}
CALLS = ["predict", "predict/?explain=true", "explain"]


@pytest.fixture
def retired(approved, staff):
    return actions.retire(approved, by=staff, reason="The form has changed.")


def one_row() -> dict:
    header, first = rows_csv().read().decode().splitlines()[:2]
    cells = zip(header.split(","), first.split(","), strict=True)
    return {name: float(cell) if cell.replace(".", "", 1).isdigit() else cell for name, cell in cells}


def call_of(client, model, call: str, **headers):
    path = call if "?" in call else f"{call}/"
    return client.post(f"/api/v1/models/{model.pk}/{path}", {"rows": [one_row()]}, format="json", **headers)


def is_gone(answer) -> bool:
    day = timezone.localtime().strftime("%-d %B %Y")
    words = f"small-cart version 1 was retired on {day} and gives no more answers. Reason: The form has changed."
    return answer.status_code == 410 and answer.json()["error"].startswith(words)


@pytest.mark.parametrize("who", ["owner", "staff", "stranger"])
@pytest.mark.parametrize("call", CALLS)
def test_call_of_a_retired_model_is_gone_with_its_reason(client_of, retired, request, who, call):
    assert is_gone(call_of(client_of(request.getfixturevalue(who)), retired, call))


@pytest.mark.parametrize("who", ["owner", "staff"])
@pytest.mark.parametrize("call", CALLS)
def test_dry_run_of_a_retired_model_says_so(client_of, retired, request, who, call):
    answer = call_of(client_of(request.getfixturevalue(who)), retired, call, **DRY_RUN)
    assert answer.status_code == 200
    assert answer.json()["retired"] == NOTE
    assert answer["Octweb-Retired"] == "true"


def test_csv_answer_of_a_retired_model_has_the_header(client_of, owner, retired):
    address = f"/api/v1/models/{retired.pk}/predict/"
    answer = client_of(owner).post(address, rows_csv().read(), content_type="text/csv", **DRY_RUN)
    assert answer.status_code == 200
    assert answer["Octweb-Retired"] == "true"


def test_predicted_file_of_a_retired_model_needs_a_dry_run(client_of, owner, retired):
    client = client_of(owner)

    def send(**headers):
        form = {"model": str(retired.pk), "file": rows_csv()}
        return client.post("/api/v1/predictions/", form, format="multipart", **headers)

    assert is_gone(send())
    answer = send(**DRY_RUN)
    assert answer.status_code == 201
    assert answer["Octweb-Retired"] == "true"
    assert client.get(f"/api/v1/predictions/{answer.json()['id']}/").json()["retired"] == NOTE


def test_answer_of_an_approved_model_has_no_note(client_of, owner, approved):
    answer = call_of(client_of(owner), approved, "predict")
    assert answer.status_code == 200
    assert "retired" not in answer.json()
    assert "Octweb-Retired" not in answer


@pytest.mark.parametrize("call", ["/api/v1/models/{}/predict/", "/v2/models/small-cart/infer"])
def test_dry_run_does_not_count_as_a_decision(client_of, owner, approved, call):
    body = {"rows": [one_row()]}
    if call.startswith("/v2"):
        inputs = [
            {"name": name, "datatype": "FP64" if isinstance(cell, float) else "BYTES", "shape": [1], "data": [cell]}
            for name, cell in one_row().items()
            if name != "kind"
        ]
        body = {"inputs": inputs}
    address = call.format(approved.pk)
    tally.drain()
    assert client_of(owner).post(address, body, format="json", **DRY_RUN).status_code == 200
    (counted,) = tally.drain().items()
    assert (counted[0].kind, counted[0].name, counted[1]) == ("dry_run", "", 1)
    assert client_of(owner).post(address, body, format="json").status_code == 200
    assert tally.drain()


def test_dry_run_is_for_owner_and_administrators(client_of, stranger, approved):
    assert call_of(client_of(stranger), approved, "predict", **DRY_RUN).status_code == 403


def test_dry_run_takes_only_0_and_1(client_of, owner, approved):
    answer = call_of(client_of(owner), approved, "predict", HTTP_OCTWEB_DRY_RUN="maybe")
    assert answer.status_code == 400
    assert "'maybe' is neither 0 nor 1." in answer.json()["error"]
    assert call_of(client_of(owner), approved, "predict", HTTP_OCTWEB_DRY_RUN="0").status_code == 200


def test_retired_model_that_was_never_approved_stays_unknown(client_of, owner, stranger, staff, model):
    """A rejected model can be retired. Only its owner and administrators knew of it."""
    actions.ask_for_approval(model, by=owner)
    actions.reject(model, by=staff, reason="Too few rows.")
    actions.retire(model, by=owner)
    assert call_of(client_of(stranger), model, "predict").status_code == 404
    assert call_of(client_of(owner), model, "predict").status_code == 410


@pytest.mark.parametrize(
    "address",
    ["/v2/models/small-cart/infer", "/v2/models/small-cart/versions/1/infer", "/invocations?model=small-cart"],
)
@pytest.mark.parametrize("who", ["owner", "stranger"])
def test_served_name_of_a_retired_model_says_why(client_of, request, retired, address, who):
    assert is_gone(client_of(request.getfixturevalue(who)).post(address, {}, format="json"))
    unknown = address.replace("/versions/1", "/versions/7").replace("small-cart/infer", "other/infer")
    if unknown != address:
        assert client_of(request.getfixturevalue(who)).post(unknown, {}, format="json").status_code == 404
