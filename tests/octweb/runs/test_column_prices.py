"""Column prices on the command line, over REST, in the form and on the model page."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError
from rest_framework.test import APIClient

from octweb.datasets import stored
from octweb.registry.document.rows import check_claim
from octweb.registry.lifecycle import actions as models
from octweb.runs import actions
from octweb.runs.forms import RunForm
from octweb.runs.words import in_words
from tests.octweb.runs.costs_cases import called, defaults_of, train
from tests.octweb.visible_text import visible
from trainer.dossier.claim import claim
from trainer.registry import get
from trainer.training.claims import objective_words, price_sentence
from trainer.training.run import TrainRequest
from trainer.training.run import train as train_request


@pytest.mark.parametrize("method", [["--method=exact", "--bins=4"], ["--method=exact-numeric"]])
@pytest.mark.parametrize("costs", [[], ["--cost=no>yes=5", "--cost-unit=EUR"]])
def test_train_states_unit_of_costs_and_verify_proves_it(capsys, csv_file, tmp_path, costs, method):
    model = tmp_path / "model.json"
    asked = ["--column-price=width=0.02", "--column-price=colour=0.01", f"--output={model}", *method, *costs]
    out = train(capsys, csv_file, *asked)
    unit = "EUR" if costs else "errors"
    assert f"width at 0.02 {unit} for 120 rows" in out
    assert "A row pays once." in out
    assert ("with its columns" in out) == bool(costs)
    checked = json.loads(called(capsys, "verify", model, csv_file, "--json").strip().splitlines()[-1])
    assert checked["verdict"] == "proved"


def test_evaluate_of_all_thresholds_takes_prices(capsys, csv_file):
    asked = ["--target=class", "--method=exact-numeric", "--depth=1", "--folds=2", "--json"]
    records = [
        json.loads(called(capsys, "evaluate", csv_file, *asked, f"--column-price={prices}").strip().splitlines()[-1])
        for prices in ("width=0", "width=1000; height=1000; colour=1000")
    ]
    free, dear = (record["results"][0]["leaves"] for record in records)
    assert dear == 1 < free


def test_train_refuses_the_price_of_an_unknown_column(capsys, csv_file):
    with pytest.raises(CommandError, match="'lab' is not a column"):
        train(capsys, csv_file, "--column-price=lab=3")


@pytest.mark.parametrize("command", ["complete", "good-trees", "frontier"])
def test_commands_without_prices_refuse_them(capsys, csv_file, command):
    own = {"complete": ["--wish=leaf root"], "good-trees": ["--slack-rows=1"], "frontier": []}[command]
    with pytest.raises(CommandError, match="price"):
        called(capsys, command, csv_file, "--target=class", "--method=exact", "--column-price=width=1", *own)


@pytest.mark.parametrize("costs", [[], ["--cost=no>yes=5", "--cost-unit=EUR"], ["--set=max_columns=1"]])
def test_proof_file_proves_the_bound_with_prices(capsys, csv_file, tmp_path, costs):
    model = tmp_path / "m.json"
    proof = tmp_path / "proof"
    asked = ["--column-price=width=0.01", f"--proof={proof}", f"--output={model}", "--json", *costs]
    assert train(capsys, csv_file, *asked)["proof"]["made"]
    checked = json.loads(called(capsys, "verify", model, csv_file, f"--proof={proof}", "--json").splitlines()[-1])
    bound = next(f for f in checked["claims"] if f["claim"] == "bound")
    assert bound["verdict"] == "proved"
    assert "step" in bound["detail"]


@pytest.mark.django_db
@pytest.mark.parametrize("method", ["exact", "exact-numeric"])
def test_run_over_rest_takes_prices_as_an_object(owner, dataset, method):
    api = APIClient()
    api.force_authenticate(owner)
    body = {"dataset": str(dataset.pk), "method": method, "parameters": {"column_price": {"width": 0.5}}}
    answer = api.post("/api/v1/runs/", body, format="json")
    assert answer.status_code == 201, answer.json()
    assert json.loads(answer.json()["parameters"]["column_price"]) == {"width": 0.5}
    body["parameters"]["column_price"] = {"lab": 1}
    assert api.post("/api/v1/runs/", body, format="json").status_code == 422


@pytest.mark.django_db
@pytest.mark.parametrize("method", ["exact", "exact-numeric"])
def test_form_takes_prices(client, owner, dataset, method):
    client.force_login(owner)
    page = client.get("/runs/new/", {"dataset": str(dataset.pk), "method": method}).content.decode()
    assert "Prices of columns" in page
    form = RunForm(user=owner, dataset=dataset, method=get(method))
    data = defaults_of(form) | {"evaluation": "none", "p_column_price": "width=0.02"}
    sent = RunForm(data, user=owner, dataset=dataset, method=get(method))
    assert sent.is_valid(), sent.errors
    run = actions.enqueue(owner=owner, dataset=dataset, **sent.request())
    words = in_words(get(method), run.parameters, columns=3, questions=9)[1]
    assert "A row pays for a priced column once, if a question on its path asks it." in words


@pytest.mark.django_db
@pytest.mark.parametrize("costs", ["", "no>yes=5"])
def test_model_page_says_what_columns_cost(client, owner, dataset, costs):
    table, labels = stored.load(dataset)
    parameters = {"depth": 2, "bins": 5, "column_price": "width=0.02", "costs": costs}
    request = TrainRequest(table=table, labels=labels, method="exact", parameters=parameters, test_share=0.25)
    file = train_request(request).model
    model = models.register(owner=owner, document=file.to_json(), dataset=dataset, title="Priced")
    client.force_login(owner)
    sentence = price_sentence(file.certificate)
    assert sentence.startswith("Asking columns costs 1.8")
    for mode in ("performance", "proof"):
        assert sentence in visible(client.get(f"/models/{model.pk}/?mode={mode}").content.decode())
    assert check_claim(model).agrees
    assert claim(file)["column_prices_are"] == sentence
    assert "prices of the columns asked" in objective_words(file.certificate)
