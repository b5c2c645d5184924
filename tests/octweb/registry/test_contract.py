"""The table contract as command, download and API show it, and answers in the type of the classes."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command

from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions as registry
from tests.octweb.runs.conftest import csv_file, dataset  # noqa: F401
from tests.octweb.small_models import small_table
from trainer.data.table_contract import model_contract
from trainer.table import Labels
from trainer.training.run import TrainRequest, train
from trainer.tree.file import from_json, write

ROWS = [{"width": w, "height": 0.5, "flag": 0, "colour": c} for w in (1, 9) for c in ("green", "red")]


def printed(*arguments: str) -> str:
    out = io.StringIO()
    call_command("contract", *arguments, stdout=out)
    return out.getvalue()


def test_command_prints_the_contract_of_a_file(cart_document, tmp_path):
    path = str(tmp_path / "model.json")
    write(from_json(cart_document), path)
    assert printed(path).startswith("target kind (text): a, b, c\nwidth: numeric; in mm; from 0 to 9.6;")
    assert json.loads(printed(path, "--json").splitlines()[-1]) == model_contract(from_json(cart_document))
    with pytest.raises(CommandError, match="absent"):
        printed(str(tmp_path / "absent.json"))


@pytest.mark.django_db
def test_download_of_a_model_has_the_contract(client_of, model, owner):
    answer = client_of(owner).get(f"/api/v1/models/{model.pk}/download/?format=contract")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
    assert answer.json() == model_contract(model_file(model))


@pytest.mark.django_db
def test_data_set_has_a_contract(client_of, owner, dataset):  # noqa: F811
    answer = client_of(owner).get(f"/api/v1/datasets/{dataset.pk}/contract/")
    assert answer.status_code == 200, answer.content
    contract = answer.json()
    assert contract["target"]["name"] == dataset.target
    assert all("range" in column for column in contract["columns"] if column["kind"] == "numeric")
    assert all("asked" not in column for column in contract["columns"])


@pytest.mark.django_db
@pytest.mark.parametrize("names", [("0", "1", "2"), ("False", "True"), ("0.5", "1.5", "2.5"), ("a", "b", "c")])
def test_invocations_answer_in_the_type_of_the_classes(client_of, owner, staff, names):
    table, labels = small_table()
    labels = Labels(name="kind", classes=names, codes=labels.codes % len(names))
    document = train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 4})).model.to_json()
    model = registry.register(owner=owner, document=document, dataset=None, title="Typed")
    registry.ask_for_approval(model, by=owner)
    registry.approve(model, by=staff)
    calls = client_of(owner)
    texts = [
        p["label"]
        for p in calls.post(f"/api/v1/models/{model.pk}/predict/", {"rows": ROWS}, format="json").json()["predictions"]
    ]
    expected = [{"False": False, "True": True}.get(t, t) if "a" not in names else t for t in texts]
    expected = [json.loads(t) if isinstance(t, str) and t[0].isdigit() else t for t in expected]
    found = calls.post("/invocations", {"instances": ROWS}, format="json").json()["predictions"]
    assert found == expected
    assert [type(v) for v in found] == [type(v) for v in expected]
    body = {"instances": ROWS, "params": {"output": "records"}}
    assert [r["label"] for r in calls.post("/invocations", body, format="json").json()["predictions"]] == expected
