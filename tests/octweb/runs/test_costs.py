"""Costs on the command line and over REST: accepted forms, reports, checks and refusals."""

from __future__ import annotations

import json
import re

import pytest
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient

from octweb.runs import actions
from octweb.runs.constraint_fields import CostsField
from octweb.runs.forms import RunForm
from octweb.runs.words import in_words, run_name, setting_words
from tests.octweb.runs.conftest import CSV
from tests.octweb.runs.costs_cases import called, defaults_of, train
from trainer.errors import ParameterError
from trainer.registry import get
from trainer.tree.file import read_model


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "small.csv"
    path.write_text(CSV)
    return path


def classes_of(tmp_path, capsys, data):
    model = tmp_path / "plain.json"
    train(capsys, data, f"--output={model}", "--json")
    return read_model(model).tree.classes


def test_costs_of_flags_and_file_give_the_same_tree(capsys, data, tmp_path):
    first, second, *_ = classes_of(tmp_path, capsys, data)
    costs = tmp_path / "costs.json"
    costs.write_text(json.dumps({"unit": "EUR", "costs": {first: {second: 5.5}}}))
    model = tmp_path / "model.json"
    by_flag = train(capsys, data, f"--cost={first}>{second}=5.5", "--cost-unit=EUR", "--json", "--test-share=0.25")
    by_file = train(capsys, data, f"--costs={costs}", "--json", "--test-share=0.25", f"--output={model}")
    assert by_flag["cost"] == by_file["cost"]
    assert by_file["cost_unit"] == by_flag["cost_unit"] == "EUR"
    assert by_file["cost"] <= by_file["best_constant"]["cost"]
    assert by_file["cost_per_row"] == pytest.approx(by_file["cost"] / by_file["n"])
    assert by_file["least"] == by_file["cost"]
    test = json.loads(model.read_text())["metrics"]["test"]
    assert test["cost"] == pytest.approx(sum(map(sum, test["cost_confusion"])))
    checked = json.loads(called(capsys, "verify", model, data, "--json").strip().splitlines()[-1])
    assert checked["verdict"] == "proved"


def test_train_prints_costs_of_answers(capsys, data, tmp_path):
    first, second, *_ = classes_of(tmp_path, capsys, data)
    out = train(capsys, data, f"--cost={first}>{second}=5", "--cost-unit=EUR")
    assert "The answers cost" in out
    assert "Always answering" in out
    assert "No tree of this scope costs less than" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cost=nobody>x=5"], "'nobody' is not a class"),
        (["--cost=x", "--costs=y.json"], "not both"),
        (["--cost-unit=EUR"], "needs costs"),
    ],
)
def test_costs_that_do_not_fit_are_refused(data, arguments, words):
    with pytest.raises(CommandError, match=words) as refused:
        call_command("train", str(data), "--target=class", "--method=exact", *arguments)
    assert refused.value.returncode == 2


def test_good_trees_take_costs_and_state_their_unit(capsys, data, tmp_path):
    first, second, *_ = classes_of(tmp_path, capsys, data)
    asked = (data, "--target=class", "--depth=2", f"--cost={first}>{second}=5", "--cost-unit=EUR")
    best = train(capsys, data, f"--cost={first}>{second}=5", "--json")
    document = json.loads(called(capsys, "good-trees", *asked, "--slack-cost=1", "--json").splitlines()[-1])
    assert document["optimum_cost"] == best["least"]
    assert document["limit_cost"] == pytest.approx(best["least"] + 1)
    assert all(best["least"] <= tree["cost"] <= best["least"] + 1 for tree in document["trees"])
    assert re.search(
        rf"^{document['count']:,} trees that cost \S+ to \S+ EUR, complete",
        called(capsys, "good-trees", *asked, "--slack-cost=1"),
    )
    with pytest.raises(CommandError, match="slack_cost") as refused:
        call_command("good-trees", *map(str, asked), "--slack-rows=1")
    assert refused.value.returncode == 2


@pytest.mark.slow
def test_evaluate_reports_cost_beside_the_best_single_answer(capsys, data, tmp_path):
    first, second, *_ = classes_of(tmp_path, capsys, data)
    asked = (
        data,
        "--target=class",
        "--method=cart",
        "--method=exact",
        "--depth=2",
        "--folds=3",
        f"--cost={first}>{second}=5",
    )
    document = json.loads(called(capsys, "evaluate", *asked, "--cost-unit=EUR", "--json").strip().splitlines()[-1])
    for cell in document["results"]:
        assert cell["cost_per_row"] == pytest.approx(cell["cost"] / cell["n"])
        assert cell["constant_cost"] > 0
        assert cell["cost_unit"] == "EUR"
    tables = called(capsys, "evaluate", *asked, "--cost-unit=EUR", f"--output={tmp_path / 'out'}")
    assert "### Cost per unseen row in EUR" in tables
    assert "constant_cost" in (tmp_path / "out" / "results.csv").read_text()


@pytest.mark.django_db
def test_run_over_rest_takes_costs_as_an_object(owner, dataset):
    api = APIClient()
    api.force_authenticate(owner)
    classes = dataset.profile["classes"]
    body = {
        "dataset": str(dataset.pk),
        "method": "exact",
        "parameters": {"costs": {classes[0]: {classes[1]: 5}}, "cost_unit": "EUR"},
    }
    answer = api.post("/api/v1/runs/", body, format="json")
    assert answer.status_code == 201, answer.json()
    assert json.loads(answer.json()["parameters"]["costs"]) == {classes[0]: {classes[1]: 5}}
    body["parameters"]["costs"] = {"nobody": {classes[1]: 5}}
    refused = api.post("/api/v1/runs/", body, format="json")
    assert refused.status_code == 422
    assert "'nobody' is not a class" in json.dumps(refused.json())


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("cost", "words"),
    [
        ("2*colour", "'colour' holds no numbers"),
        ("2*price", "'price' is not a column"),
        ("rows", "only the Python library takes"),
    ],
)
def test_cost_of_an_unusable_column_is_refused_before_the_run(owner, dataset, cost, words):
    api = APIClient()
    api.force_authenticate(owner)
    first, second = dataset.profile["classes"]
    text = cost if cost == "rows" else f"{first}>{second}={cost}"
    body = {"dataset": str(dataset.pk), "method": "exact", "parameters": {"costs": text}}
    refused = api.post("/api/v1/runs/", body, format="json")
    assert refused.status_code == 422
    assert words in json.dumps(refused.json())
    assert not dataset.runs.exists()


@pytest.mark.django_db
def test_cost_of_a_text_column_is_named_at_its_field(client, owner, dataset):
    client.force_login(owner)
    form = RunForm(user=owner, dataset=dataset, method=get("exact"))
    data = {name: value for name, value in defaults_of(form).items() if value != ""}
    data |= {"p_costs-0-1": "2*colour", "evaluation": "none"}
    data |= {"dataset": str(dataset.pk), "method": "exact"}
    page = client.post("/runs/new/", data).content.decode()
    assert "&#x27;colour&#x27; holds no numbers" in page
    assert not dataset.runs.exists()


@pytest.mark.django_db
def test_form_takes_costs_as_a_table(client, owner, dataset):
    client.force_login(owner)
    classes = dataset.profile["classes"]
    page = client.get("/runs/new/", {"dataset": str(dataset.pk), "method": "exact"}).content.decode()
    assert 'name="p_costs-0-1"' in page
    assert f"Cost where {classes[0]} is answered {classes[1]}" in page
    form = RunForm(user=owner, dataset=dataset, method=get("exact"))
    data = defaults_of(form)
    data |= {"p_costs-0-1": "5", "p_costs-1-0": "0.2*width", "p_costs-0-0": "", "p_costs-1-1": "", "p_cost_unit": "EUR"}
    data |= {"evaluation": "none", "p_leaf_penalty": "1"}
    sent = RunForm(data, user=owner, dataset=dataset, method=get("exact"))
    assert sent.is_valid(), sent.errors
    parameters = sent.request()["parameters"]
    assert json.loads(parameters["costs"]) == {classes[0]: {classes[1]: "5"}, classes[1]: {classes[0]: "0.2*width"}}
    run = actions.enqueue(owner=owner, dataset=dataset, **sent.request())
    assert run.parameters["cost_unit"] == "EUR"
    words = in_words(get("exact"), run.parameters, columns=3, questions=9)[1]
    assert "Counts what answers cost, not how many rows are wrong." in words
    assert "A leaf must save 1 % of what the best single answer costs." in [w.replace("\u202f", " ") for w in words]
    assert setting_words(get("exact").parameter("costs"), parameters["costs"]) == (
        f"{classes[0]}>{classes[1]}=5; {classes[1]}>{classes[0]}=0.2*width"
    )
    assert (
        CostsField(classes=classes).widget.get_context("p_costs", parameters["costs"], {})["widget"]["rows"][0][
            "cells"
        ][1]["value"]
        == "5"
    )


@pytest.mark.django_db
def test_wrong_cost_in_the_form_is_named_at_its_field(client, owner, dataset):
    form = RunForm(user=owner, dataset=dataset, method=get("exact"))
    data = defaults_of(form)
    data |= {"p_costs-0-1": "much", "evaluation": "none"}
    sent = RunForm(data, user=owner, dataset=dataset, method=get("exact"))
    assert sent.is_valid()
    with pytest.raises(ParameterError) as refused:
        actions.enqueue(owner=owner, dataset=dataset, **sent.request())
    sent.add_parameter_errors(refused.value.errors)
    assert "has no cost that can be read" in str(sent.errors["p_costs"])


@pytest.mark.parametrize(
    "text", ["no>yes=5; yes>no=0.2*width", '{"unit": "EUR", "costs": {"no": {"yes": 5}, "yes": {"no": "0.2*width"}}}']
)
def test_costs_of_an_earlier_run_stay_in_the_table(text):
    field = CostsField(classes=["no", "yes"])
    widget = field.widget.get_context("p_costs", text, {})["widget"]
    sent = {cell["name"]: cell["value"] for row in widget["rows"] for cell in row["cells"]} | {
        "p_costs-unit": widget["unit"]
    }
    assert sent["p_costs-0-1"] == "5"
    record = json.loads(field.clean(field.widget.value_from_datadict(sent, {}, "p_costs")))
    assert record.get("unit", "") == widget["unit"] == ("EUR" if text.startswith("{") else "")
    assert record.get("costs", record) == {"no": {"yes": "5"}, "yes": {"no": "0.2*width"}}


def test_names_of_runs_say_costs_and_no_unit():
    parameters = {"depth": 3, "costs": "bad>good=5", "cost_unit": "EUR"}
    assert run_name("loans", get("exact"), parameters) == "loans, Exact search, depth 3, costs of answers"


@pytest.mark.django_db
def test_form_takes_a_number_times_a_column_from_a_select(client, owner, dataset):
    client.force_login(owner)
    first, second = dataset.profile["classes"]
    page = client.get("/runs/new/", {"dataset": str(dataset.pk), "method": "exact"}).content.decode()
    assert f'name="p_costs-0-1-column" aria-label="Cost where {first} is answered {second}, times a column"' in page
    assert "× width" in page
    assert "× colour" not in page
    data = defaults_of(RunForm(user=owner, dataset=dataset, method=get("exact")))
    data |= {"p_costs-0-1": "0.2", "p_costs-0-1-column": "width", "p_costs-1-0-column": "width", "evaluation": "none"}
    sent = RunForm(data | {"p_costs-0-0": ""}, user=owner, dataset=dataset, method=get("exact"))
    assert sent.is_valid(), sent.errors
    costs = sent.request()["parameters"]["costs"]
    assert json.loads(costs) == {first: {second: "0.2*width"}, second: {first: "1*width"}}
    cell = CostsField(classes=[first, second], columns=["width"]).widget.get_context("p", costs, {})["widget"]["rows"][
        0
    ]
    assert (cell["cells"][1]["value"], cell["cells"][1]["column"]) == ("0.2", "width")
    actions.enqueue(owner=owner, dataset=dataset, **sent.request())


@pytest.mark.django_db
def test_form_takes_rewards_but_not_beside_costs(owner, dataset):
    first, second = dataset.profile["classes"]
    data = defaults_of(RunForm(user=owner, dataset=dataset, method=get("exact"))) | {"evaluation": "none"}
    data |= {"p_costs-0-0": "", "p_costs-reward-0": "-0.5", "p_costs-reward-0-column": "width", "p_costs-reward-1": "2"}
    sent = RunForm(data, user=owner, dataset=dataset, method=get("exact"))
    assert sent.is_valid(), sent.errors
    costs = sent.request()["parameters"]["costs"]
    assert json.loads(costs) == {"rewards": {first: "-0.5*width", second: "2"}}
    widget = CostsField(classes=[first, second], columns=["width"]).widget.get_context("p", costs, {})["widget"]
    assert widget["earns"]
    assert [(cell["value"], cell["column"]) for cell in widget["rewards"]] == [("-0.5", "width"), ("2", "")]
    actions.enqueue(owner=owner, dataset=dataset, **sent.request())
    both = RunForm(data | {"p_costs-0-1": "3"}, user=owner, dataset=dataset, method=get("exact"))
    assert not both.is_valid()
    assert "Give costs or rewards, not both" in str(both.errors["p_costs"])


@pytest.mark.parametrize("command", ["train", "complete", "frontier", "good-trees", "evaluate"])
def test_class_weights_with_costs_are_refused_with_advice(command, data, capsys):
    own = {"good-trees": ["--slack=0.1"], "evaluate": ["--folds=2"]}.get(command, [])
    asked = [str(data), "--target=class", "--method=exact", "--set=class_weight=balanced", "--cost=yes>no=5", *own]
    with pytest.raises(CommandError) as refused:
        call_command(command, *asked)
    words = str(refused.value) + capsys.readouterr().err
    assert "Multiply the costs of a class by its weight" in words


@pytest.mark.parametrize(
    ("typed", "marked"),
    [
        ({"p_costs-0-1": "-5", "p_costs-1-0": "2"}, ["p_costs-0-1"]),
        ({"p_costs-0-1": "5", "p_costs-reward-0": "x"}, ["p_costs-reward-0"]),
        (
            {"p_costs-0-1": "5", "p_costs-1-0": "2"},
            ["p_costs-0-1", "p_costs-1-0"],
        ),  # a column is refused, which both may have
        ({}, []),
    ],
)
def test_refused_cells_of_the_table_are_marked(typed, marked):
    widget = CostsField(classes=["a", "b"], columns=["amount"]).widget
    value = widget.value_from_datadict(typed, {}, "p_costs")
    for attrs, names in (({"aria-invalid": "true"}, marked), ({}, [])):
        shown = widget.render("p_costs", value, attrs)
        assert re.findall(r'name="([^"]+)"[^>]*aria-invalid="true"', shown) == names
        assert shown.count('<td class="invalid">') == len(names)
