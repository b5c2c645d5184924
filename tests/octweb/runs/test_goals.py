"""Goals on the command line, over REST, in the form and on the model page."""

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
from octweb.runs.words import in_words, objective_words, run_name
from tests.octweb.runs.costs_cases import called, defaults_of, train
from tests.octweb.visible_text import visible
from trainer.dossier.claim import claim
from trainer.registry import get
from trainer.training.claims import goal_sentence
from trainer.training.run import TrainRequest
from trainer.training.run import train as train_request

NAMES = {"f1": "F1 of 'yes'", "mcc": "MCC", "balanced": "balanced accuracy"}


@pytest.mark.parametrize("goal", NAMES)
def test_train_says_the_best_score_and_verify_proves_it(capsys, csv_file, tmp_path, goal):
    model = tmp_path / "model.json"
    named = ["--set=positive=yes"] if goal == "f1" else []
    out = train(capsys, csv_file, f"--goal={goal}", "--bins=5", f"--output={model}", *named)
    assert f"The best {NAMES[goal]} of any tree of this scope, on the training rows: " in out
    checked = json.loads(called(capsys, "verify", model, csv_file, "--json").strip().splitlines()[-1])
    assert checked["verdict"] == "proved"


def test_train_refuses_a_goal_beside_costs(capsys, csv_file):
    with pytest.raises(CommandError, match="ignores the costs"):
        train(capsys, csv_file, "--goal=f1", "--cost=no>yes=5")


@pytest.mark.parametrize("command", ["complete", "good-trees", "frontier"])
def test_commands_that_count_errors_refuse_goals(capsys, csv_file, command):
    own = {"complete": ["--wish=leaf root"], "good-trees": ["--slack-rows=1"], "frontier": []}[command]
    with pytest.raises(CommandError, match="count"):
        called(capsys, command, csv_file, "--target=class", "--method=exact", "--goal=f1", *own)


def test_proof_file_proves_the_score(capsys, csv_file, tmp_path):
    model = tmp_path / "m.json"
    proof = tmp_path / "proof"
    assert train(capsys, csv_file, "--goal=mcc", f"--proof={proof}", f"--output={model}", "--json")["proof"]["made"]
    checked = json.loads(called(capsys, "verify", model, csv_file, f"--proof={proof}", "--json").splitlines()[-1])
    bound = next(claim for claim in checked["claims"] if claim["claim"] == "bound")
    assert bound["verdict"] == "proved"
    assert "step" in bound["detail"]


@pytest.mark.slow
@pytest.mark.parametrize("goal", NAMES)
def test_evaluate_reports_the_score_on_unseen_rows(capsys, csv_file, tmp_path, goal):
    asked = (csv_file, "--target=class", "--method=exact", "--depth=2", "--folds=3", "--bins=4", f"--goal={goal}")
    document = json.loads(called(capsys, "evaluate", *asked, "--json").strip().splitlines()[-1])
    assert document["goal"].startswith(NAMES[goal].split(" of ")[0])
    assert 0 < document["score"] <= 1
    tables = called(capsys, "evaluate", *asked, f"--output={tmp_path / 'out'}")
    assert "### Optimised score on unseen rows" in tables
    assert f"{document['score']:.3f}" in tables
    assert (tmp_path / "out" / "results.csv").read_text().splitlines()[0].endswith("goal,score")


@pytest.mark.django_db
def test_run_over_rest_takes_a_goal(owner, dataset):
    api = APIClient()
    api.force_authenticate(owner)
    body = {"dataset": str(dataset.pk), "method": "exact", "parameters": {"goal": "f1", "positive": "no"}}
    answer = api.post("/api/v1/runs/", body, format="json")
    assert answer.status_code == 201, answer.json()
    assert answer.json()["parameters"]["goal"] == "f1"
    body["parameters"]["positive"] = "maybe"
    refused = api.post("/api/v1/runs/", body, format="json")
    assert refused.status_code == 422
    assert "maybe" in json.dumps(refused.json())


@pytest.mark.django_db
def test_form_takes_a_goal(client, owner, dataset):
    client.force_login(owner)
    page = client.get("/runs/new/", {"dataset": str(dataset.pk), "method": "exact"}).content.decode()
    assert "F1 of one class: found and rightly named" in page
    assert "the rarer class" in page
    form = RunForm(user=owner, dataset=dataset, method=get("exact"))
    data = defaults_of(form) | {"evaluation": "none", "p_goal": "f1", "p_positive": "yes"}
    sent = RunForm(data, user=owner, dataset=dataset, method=get("exact"))
    assert sent.is_valid(), sent.errors
    run = actions.enqueue(owner=owner, dataset=dataset, **sent.request())
    words = in_words(get("exact"), run.parameters, columns=3, questions=9)[1]
    assert "It looks for the best F1 of 'yes' on the training rows, not for the most correct rows." in words
    assert objective_words(run.parameters, get("exact")).startswith("F1 on training rows")


def test_names_of_runs_say_the_goal_once():
    settings = get("exact").settings({"depth": 3, "goal": "balanced"})
    assert run_name("loans", get("exact"), settings) == "loans, Exact search, depth 3, goal balanced"
    settings = get("exact").settings({"depth": 3, "goal": "f1", "positive": "bad"})
    assert run_name("loans", get("exact"), settings) == "loans, Exact search, depth 3, goal f1, positive class bad"


@pytest.mark.django_db
@pytest.mark.parametrize("goal", NAMES)
def test_model_page_says_what_was_optimised(client, owner, dataset, goal):
    table, labels = stored.load(dataset)
    parameters = {"depth": 2, "bins": 5, "goal": goal, "leaf_penalty": 0.01} | (
        {"positive": "yes"} if goal == "f1" else {}
    )
    request = TrainRequest(table=table, labels=labels, method="exact", parameters=parameters, test_share=0.25)
    file = train_request(request).model
    model = models.register(owner=owner, document=file.to_json(), dataset=dataset, title="Scored")
    client.force_login(owner)
    sentence = goal_sentence(file.certificate, file.parameters)
    assert sentence.endswith("No tree of this scope has a higher one after 0.01 for each leaf.")
    performance = visible(client.get(f"/models/{model.pk}/?mode=performance&part=training").content.decode())
    assert f"{NAMES[goal]}, which the training optimised" in performance
    assert sentence in performance
    proof = visible(client.get(f"/models/{model.pk}/?mode=proof").content.decode())
    assert sentence in proof
    assert check_claim(model).agrees
    assert claim(file)["goal_is"] == sentence
