"""A column of weights: command line, form, API, experiments, and words on pages."""

from __future__ import annotations

import io
import json
from fractions import Fraction

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse
from rest_framework.test import APIClient

from octweb.datasets import actions as datasets
from octweb.experiments import actions as experiments
from octweb.experiments.work import CandidateChild
from octweb.registry.document.rows import check_claim
from octweb.registry.lifecycle import actions as registry
from octweb.runs import actions
from octweb.runs.child import TrainingProcess
from octweb.runs.dependence import propose_weight
from octweb.runs.models import TrainingRun
from trainer.check.recount import verify
from trainer.errors import ParameterError
from trainer.training.claims import counted_words
from trainer.tree.numbers import number_text

pytestmark = pytest.mark.django_db

SURVEY = "x;age;weight;class\n" + "".join(
    f"{i % 5};{20 + i % 7};{('0', '0,5', '2', '1,5')[i % 4]};{'yes' if i % 5 > 2 or i % 11 == 0 else 'no'}\n"
    for i in range(80)
)


@pytest.fixture
def survey(tmp_path):
    path = tmp_path / "survey.csv"
    path.write_text(SURVEY, encoding="utf-8")
    return str(path)


def make_dataset(owner, text=SURVEY):
    return datasets.create(
        owner=owner, file=io.BytesIO(text.encode()), source_name="survey.csv", name="Survey", target="class"
    )


@pytest.fixture
def dataset(owner, media):
    return make_dataset(owner)


def last_line(capsys) -> dict:
    return json.loads(capsys.readouterr().out.strip().splitlines()[-1])


# -- command line ------------------------------------------------------------------------------------------------------


def test_train_with_weights_writes_a_model_that_verifies(capsys, survey, tmp_path):
    model = tmp_path / "model.json"
    arguments = ["--weight=weight", "--test-share=0.25", "--folds=3", f"--output={model}"]
    call_command("train", survey, "--target=class", "--method=exact", "--depth=2", "--json", *arguments)
    found = last_line(capsys)
    assert found["weight"] | {"correct_rows": 0} == {
        "column": "weight",
        "step": "1/2",
        "rows": 45,
        "correct_rows": 0,
        "error": 0.0,
    }
    assert found["unseen_accuracy"]["rows"] == 60
    assert "weight" not in [column["name"] for column in json.loads(model.read_text())["columns"]]
    assert "refuted" not in {f.verdict for f in verify(model, survey)}


def test_train_prints_rows_beside_weights(capsys, survey):
    call_command("train", survey, "--target=class", "--method=exact", "--depth=1", "--weight=weight")
    output = capsys.readouterr().out
    assert "weights correct" in output
    assert "Rows count by column 'weight': 60 training rows weigh 80" in output
    assert "weights in steps of 0.5" in output


def test_complete_with_weights_verifies(capsys, survey, tmp_path):
    model = tmp_path / "model.json"
    arguments = ["--weight=weight", "--wish=ask root age", "--depth=2", f"--output={model}"]
    call_command("complete", survey, "--target=class", "--json", *arguments)
    assert last_line(capsys)["weight"]["rows"] == 60
    assert "refuted" not in {f.verdict for f in verify(model, survey)}


def test_evaluate_counts_weights(capsys, survey, tmp_path):
    state = tmp_path / "state.jsonl"
    model = tmp_path / "model.json"
    arguments = ["--weight=weight", "--folds=4", f"--state={state}", f"--model={model}"]
    call_command("evaluate", survey, "--target=class", "--method=exact", "--depth=1", "--json", *arguments)
    assert last_line(capsys)["interval"] is not None
    records = [json.loads(line) for line in state.read_text().splitlines()]
    assert {record["weight"] for record in records} == {"weight"}
    assert sum(record["n"] for record in records) == 160
    assert sum(record["rows"] for record in records) == 60
    assert "refuted" not in {f.verdict for f in verify(model, survey)}


def test_rewards_are_totals_of_weights(capsys, tmp_path):
    path = tmp_path / "rewards.csv"
    rows = "".join(f"{i % 2},{(1 + i % 3) / 4},{i % 4},1,{'ab'[i % 2]}\n" for i in range(24))
    path.write_text(f"x,w,gain_a,gain_b,class\n{rows}", encoding="utf-8")
    rewards = json.dumps({"unit": "EUR", "rewards": {"a": "gain_a", "b": "gain_b"}})
    costs = tmp_path / "rewards.json"
    costs.write_text(rewards, encoding="utf-8")
    arguments = [str(path), "--target=class", "--method=exact", "--depth=1", f"--costs={costs}", "--weight=w", "--json"]
    call_command("train", *arguments)
    found = last_line(capsys)
    totals = {
        "a": sum((1 + i % 3) / 4 * (i % 4) for i in range(24)),
        "b": sum((1 + i % 3) / 4 for i in range(24)),
    }
    best = max(totals, key=totals.get)
    assert found["best_constant_reward"] == {"answer": best, "reward": totals[best]}
    assert found["reward_per_row"] == pytest.approx(found["reward"] / 12)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--weight=wait"], "no weight column 'wait' in the file"),
        (["--weight=weight", "--group=weight"], "cannot be the weight column and the group column"),
        (["--weight=class"], "is the target, so it cannot be the weight column"),
    ],
)
def test_bad_columns_end_with_a_sentence(survey, arguments, words):
    with pytest.raises(CommandError, match=words):
        call_command("train", survey, "--target=class", "--method=cart", *arguments)


# -- a new run ---------------------------------------------------------------------------------------------------------


def test_form_asks_for_weights_and_proposes_a_column(client, owner, dataset):
    assert propose_weight(dataset).column == "weight"
    client.force_login(owner)
    page = client.get(reverse("runs:new"), {"dataset": dataset.pk}).content.decode()
    assert "Do some rows count more than others?" in page
    assert "The name of &#x27;weight&#x27; is that of a weight." in page


@pytest.mark.parametrize(("cell", "words"), [("", "empty cell"), ("-1", "is negative")])
def test_bad_weight_is_refused_at_the_field_with_its_line(owner, media, cell, words):
    lines = SURVEY.splitlines()
    bad = make_dataset(owner, "\n".join([*lines[:5], f"1;20;{cell};yes", *lines[5:]]) + "\n")
    with pytest.raises(ParameterError) as error:
        actions.enqueue(owner=owner, dataset=bad, method="cart", weight="weight")
    assert set(error.value.errors) == {"weight"}
    assert words in error.value.errors["weight"]
    assert "line 6" in error.value.errors["weight"]


def test_weight_column_of_texts_is_refused_at_the_field(owner, media):
    dataset = make_dataset(owner, SURVEY.replace("0,5;", "half;").replace(";2;", ";two;").replace("1,5;", "more;"))
    with pytest.raises(ParameterError) as error:
        actions.enqueue(owner=owner, dataset=dataset, method="cart", weight="weight")
    assert "line 3: 'half' is not a number" in error.value.errors["weight"]


def test_time_with_empty_cells_is_refused_at_the_field(owner, media):
    rows = "".join(f"{i % 5};{'' if i == 7 else f'2024-01-{1 + i % 28:02}'};{'ab'[i % 2]}\n" for i in range(60))
    dataset = make_dataset(owner, f"x;day;class\n{rows}")
    with pytest.raises(ParameterError) as error:
        actions.enqueue(owner=owner, dataset=dataset, method="cart", time="day")
    assert "1 empty cell, the first in line 9" in error.value.errors["time"]
    assert not TrainingRun.objects.exists()


def test_settings_for_integer_weights_are_refused_at_their_field(owner, dataset):
    with pytest.raises(ParameterError) as error:
        actions.enqueue(owner=owner, dataset=dataset, method="exact", parameters={"min_leaf": 5}, weight="weight")
    assert set(error.value.errors) == {"min_leaf"}


def test_costs_on_pages_are_per_decimal_weight(client, owner, dataset):
    costs = {"depth": 1, "leaf_penalty": 0, "costs": "no>yes=2.5", "cost_unit": "EUR", "column_price": "age=0.05"}
    run = actions.enqueue(
        owner=owner, dataset=dataset, method="exact", parameters=costs, test_share=0.3, weight="weight"
    )
    process = TrainingProcess.prepare(run)
    command = process.command()
    call_command(*command[command.index("train") :])
    document = json.loads(process.result.read_text())
    model = registry.register(owner=owner, document=document, dataset=dataset, title="Survey")
    step = Fraction(document["certificate"]["weights"]["step"])
    assert step == Fraction(1, 2)
    assert check_claim(model).agrees
    test = document["metrics"]["test"]
    assert test["cost_per_row"] == pytest.approx(test["cost"] / (test["n"] / 2))
    client.force_login(owner)
    page = client.get(reverse("registry:detail", args=[model.pk]), {"mode": "performance"}).content.decode()
    assert number_text(test["constant_cost"] / (test["n"] / 2)) in page
    assert number_text(test["constant_cost"] / test["n"]) not in page


def test_run_with_weights_makes_a_model_whose_pages_say_so(client, owner, dataset):
    run = actions.enqueue(
        owner=owner, dataset=dataset, method="exact", parameters={"depth": 2}, test_share=0.3, weight="weight"
    )
    process = TrainingProcess.prepare(run)
    command = process.command()
    call_command(*command[command.index("train") :])
    document = json.loads(process.result.read_text())
    model = registry.register(owner=owner, document=document, dataset=dataset, title="Survey")
    client.force_login(owner)
    for mode in ("tree", "performance", "proof"):
        page = client.get(reverse("registry:detail", args=[model.pk]), {"mode": mode}).content.decode()
        assert "Rows count by column &#x27;weight&#x27;" in page
    assert check_claim(model).agrees
    step = Fraction(document["certificate"]["weights"]["step"])
    unit = "of weight" if step == 1 else f"steps of weight {float(step):g}"
    performance = client.get(reverse("registry:detail", args=[model.pk]), {"mode": "performance"}).content.decode()
    assert f"51 {unit}, held out of the training" in performance
    assert "the effective number of rows of equal weight" in " ".join(performance.split())
    assert f"{unit}, 42 training rows" in client.get(reverse("registry:detail", args=[model.pk])).content.decode()
    assert "Weight of rows" in client.get(reverse("runs:detail", args=[run.pk])).content.decode()


def test_api_takes_the_weight_column(owner, dataset):
    client = APIClient()
    client.force_authenticate(owner)
    body = {"dataset": str(dataset.pk), "method": "cart", "weight": "weight"}
    answer = client.post("/api/v1/runs/", body, format="json")
    assert answer.status_code == 201, answer.content
    assert answer.json()["weight"] == "weight"
    assert TrainingRun.objects.get().weight == "weight"
    assert client.post("/api/v1/runs/", body | {"weight": "wait"}, format="json").status_code == 422


def test_experiment_passes_the_weight_column_on(owner, dataset, capsys):
    experiment = experiments.start(
        owner=owner,
        dataset=dataset,
        folds=3,
        test_share=0.2,
        nested=False,
        weight="weight",
        candidates=[{"method": "cart", "parameters": {"depth": 2}}],
    )
    child = CandidateChild.prepare(experiment.candidates.get())
    command = child.command()
    call_command(*command[command.index("evaluate") :])
    assert last_line(capsys)["whole"]["weight"]["column"] == "weight"


@pytest.mark.parametrize(
    ("step", "words"), [("1", "of weight"), ("1/2", "steps of weight 0.5"), ("3", "steps of weight 3")]
)
def test_counts_name_the_step_of_their_weights(step, words):
    assert counted_words({"weights": {"step": step}}) == words
    assert counted_words({}) == "rows"
