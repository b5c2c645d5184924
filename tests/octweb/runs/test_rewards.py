"""Rewards of answers: the search minimises regret, and reports state rewards."""

from __future__ import annotations

import io
import json
import threading

import numpy as np
import pandas as pd
import pytest
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient
from scipy.optimize import linprog

from octweb.datasets import actions as datasets
from octweb.experiments import actions as experiments
from octweb.experiments.board import board
from octweb.experiments.work import CandidateSupervisor
from octweb.registry.document.model_files import model_file
from octweb.runs.models import TrainingRun
from octweb.runs.training import TrainingSupervisor
from octweb.workbench import actions as workbench
from octweb.workbench import work
from octweb.workbench.work import EditingSupervisor
from trainer import make_classifier, regrets
from trainer.check.recount import verdict, verify
from trainer.tree.file import read_model
from trainer.tree.nodes import tree_from_json

REWARDS = {"unit": "EUR", "rewards": {"drug": "gain", "none": -1, "pill": "0.5*gain"}}


def best_reward(X, rewards, depth):
    """Return the highest reward of all trees over yes/no columns."""
    found = rewards.sum(axis=0).max() if len(rewards) else 0.0
    for x in X.T if depth else ():
        yes = x > 0.5
        found = max(
            found, best_reward(X[yes], rewards[yes], depth - 1) + best_reward(X[~yes], rewards[~yes], depth - 1)
        )
    return found


@pytest.fixture
def trial():
    """Provide rows with yes/no columns, a treatment, and an estimated gain that may be negative."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, (60, 3))
    frame = pd.DataFrame(X, columns=["p", "q", "r"])
    frame["gain"] = np.round(rng.normal(0, 4, 60) + 3 * X[:, 0] - 2 * X[:, 1], 2)
    frame["treatment"] = np.array(["drug", "none", "pill"])[np.arange(60) % 3]
    return frame


def rewards_of(frame):
    gain = frame["gain"].to_numpy()
    return np.column_stack((gain, np.full(len(gain), -1.0), gain / 2))


def trained(trial, tmp_path, capsys, record, *arguments):
    trial.to_csv(tmp_path / "trial.csv", index=False)
    (tmp_path / "rewards.json").write_text(json.dumps(record))
    command = [
        "train",
        str(tmp_path / "trial.csv"),
        "--target=treatment",
        "--method=exact",
        "--depth=2",
        "--leaf-penalty=0",
    ]
    call_command(*command, f"--costs={tmp_path / 'rewards.json'}", *arguments)
    return capsys.readouterr().out


def test_treatment_rule_earns_the_highest_reward(trial, tmp_path, capsys):
    model = tmp_path / "model.json"
    out = trained(trial, tmp_path, capsys, REWARDS, "--json", f"--output={model}")
    record = json.loads(out.strip().splitlines()[-1])
    rewards = rewards_of(trial)
    assert record["reward"] == pytest.approx(best_reward(trial[["p", "q", "r"]].to_numpy(), rewards, 2))
    assert record["reward_per_row"] == pytest.approx(record["reward"] / 60)
    assert record["best_constant_reward"]["reward"] == pytest.approx(rewards.sum(axis=0).max())
    assert record["reward"] == pytest.approx(rewards.max(axis=1).sum() - record["cost"])
    assert record["cost_unit"] == record["reward_unit"] == "EUR"
    assert [c.name for c in read_model(model).tree.schema] == ["p", "q", "r"]
    assert verdict(verify(model, tmp_path / "trial.csv")) == "proved"


def test_rewards_of_held_out_rows_are_counted(trial, tmp_path, capsys):
    model = tmp_path / "model.json"
    out = trained(trial, tmp_path, capsys, REWARDS, f"--output={model}", "--test-share=0.25")
    assert "The answers earn" in out
    metrics = json.loads(model.read_text())["metrics"]
    assert metrics["test"]["n"] == 15
    assert metrics["test"]["cost"] >= 0
    assert verdict(verify(model, tmp_path / "trial.csv")) == "proved"


def test_estimator_maximises_rewards_as_regrets(trial):
    X = trial[["p", "q", "r"]]
    rewards = rewards_of(trial)
    model = make_classifier("exact", depth=2, leaf_penalty=0).fit(X, trial["treatment"], costs=regrets(rewards))
    answers = np.searchsorted(model.classes_, model.predict(X))
    assert rewards[np.arange(60), answers].sum() == pytest.approx(best_reward(X.to_numpy(), rewards, 2))


def test_regrets_are_differences_of_decimals():
    assert regrets([[0.3, 0.1], [-1, 0.7]]).tolist() == [[0.0, 0.2], [1.7, 0.0]]
    with pytest.raises(ValueError, match="finite numbers"):
        regrets([[np.nan, 1.0]])


@pytest.mark.parametrize(
    ("rewards", "words"),
    [
        ({"drug": 1, "none": 0}, "'pill' has no reward"),
        ({"drug": 1, "none": 0, "pill": 0, "tea": 2}, "'tea' is not a class"),
        ({"drug": "much", "none": 0, "pill": 0}, "is not a number, a column"),
        ({"drug": "2*height", "none": 0, "pill": 0}, "'height' is not a column"),
        ({"drug": "2*treatment", "none": 0, "pill": 0}, "'treatment' is not a column"),
        ({"drug": {"none": 1}}, "one value for each answer"),
    ],
)
def test_rewards_that_cannot_be_used_are_refused(trial, tmp_path, capsys, rewards, words):
    with pytest.raises(CommandError, match=words):
        trained(trial, tmp_path, capsys, {"rewards": rewards})


def test_empty_reward_is_named(trial, tmp_path, capsys):
    trial.loc[4, "gain"] = np.nan
    with pytest.raises(CommandError, match="'gain' is empty in row 5"):
        trained(trial, tmp_path, capsys, REWARDS)


def test_rewards_elsewhere_are_refused(trial):
    with pytest.raises(ValueError, match="rewards work in commands and runs"):
        make_classifier("exact", costs=REWARDS).fit(trial[["p", "q", "gain"]], trial["treatment"])


@pytest.fixture
def posted(owner, media, trial):
    """Provide a function that posts a run with rewards over REST, and returns the response."""
    file = io.BytesIO(trial.to_csv(index=False).encode())
    dataset = datasets.create(owner=owner, file=file, source_name="trial.csv", name="Trial", target="treatment")
    client = APIClient()
    client.force_authenticate(owner)

    def post(record, **parameters):
        asked = {"depth": 2, "leaf_penalty": 0, "costs": record, **parameters}
        body = {"dataset": str(dataset.pk), "method": "exact", "parameters": asked}
        return client.post("/api/v1/runs/", body, format="json")

    return post


@pytest.mark.one_database
@pytest.mark.django_db(transaction=True)
def test_run_over_rest_earns_the_highest_reward(posted, trial, owner, client):
    answer = posted(REWARDS)
    assert answer.status_code == 201, answer.json()
    run = TrainingRun.objects.get(pk=answer.json()["id"])
    assert TrainingSupervisor(job_id=str(run.pk), worker="here", stopping=threading.Event()).run() == "succeeded"
    run.refresh_from_db()
    model = model_file(run.model)
    assert [column.name for column in model.tree.schema] == ["p", "q", "r"]
    rewards = rewards_of(trial)
    least = rewards.max(axis=1).sum() - best_reward(trial[["p", "q", "r"]].to_numpy(), rewards, 2)
    assert model.certificate["costs"]["cost"] == pytest.approx(least)
    assert model.certificate["costs"]["unit"] == "EUR"
    client.force_login(owner)
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert "rewards drug=gain; none=-1; pill=0.5*gain" in page


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("record", "more", "words"),
    [
        ({"rewards": {"drug": 1, "none": 0}}, {}, "'pill' has no reward"),
        ({"rewards": {"drug": "gain", "none": 0, "pill": 0}}, {"forbidden": "gain"}, "gain"),
        ({"rewards": {"drug": 1, "none": 0, "pill": 0}}, {"class_weight": "balanced"}, "class_weight"),
    ],
)
def test_run_with_rewards_that_do_not_fit_is_refused(posted, record, more, words):
    answer = posted(record, **more)
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert not TrainingRun.objects.exists()


@pytest.fixture
def called(trial, tmp_path, capsys):
    """Provide a function that runs a command on the trial with its rewards, and returns the lines of its output."""
    trial.to_csv(tmp_path / "trial.csv", index=False)
    (tmp_path / "rewards.json").write_text(json.dumps(REWARDS))

    def call(command, *arguments):
        given = [str(tmp_path / "trial.csv"), "--target=treatment", f"--costs={tmp_path / 'rewards.json'}"]
        call_command(command, *given, "--depth=2", *map(str, arguments))
        return capsys.readouterr().out.strip().splitlines()

    return call


def test_frontier_of_rewards_ends_with_the_highest(trial, called):
    record = json.loads(called("frontier", "--method=exact", "--json")[-1])
    rewards = rewards_of(trial)
    assert record["best_reward"] == pytest.approx(rewards.max(axis=1).sum())
    best = best_reward(trial[["p", "q", "r"]].to_numpy(), rewards, 2)
    assert record["best_reward"] - record["points"][-1]["cost"] == pytest.approx(best)
    assert record["best_reward"] - record["points"][0]["cost"] == pytest.approx(rewards.sum(axis=0).max())
    assert "A cost is what the best answer of a row earns more" in called("frontier", "--method=exact")[0]


def highest_reward_of_one_plane(X, rewards):
    """Return the highest reward of a tree with one hyperplane, over all pairs of sets that a hyperplane separates."""
    cells, cell = np.unique(X, axis=0, return_inverse=True)
    totals = np.array([rewards[cell == c].sum(axis=0) for c in range(len(cells))])
    found = totals.sum(axis=0).max()
    for bits in range(1, 2 ** len(cells) - 1):
        yes = (bits >> np.arange(len(cells))) & 1 == 1
        sign = np.where(yes, 1, -1)
        sides = linprog(
            np.zeros(X.shape[1] + 1),
            A_ub=-sign[:, None] * np.column_stack((cells, np.ones(len(cells)))),
            b_ub=-np.ones(len(cells)),
            bounds=(None, None),
        )
        if sides.status == 0:
            found = max(found, totals[yes].sum(axis=0).max() + totals[~yes].sum(axis=0).max())
    return found


def test_pareto_front_of_rewards_equals_enumeration(trial, called):
    asked = ("--depth=1", "--set=first_trees=cart", "--set=search_seconds=1", "--time-limit=60")
    record = json.loads(called("pareto", *asked, "--json")[-1])
    rewards = rewards_of(trial)
    assert record["best_reward"] == pytest.approx(rewards.max(axis=1).sum())
    earned = [record["best_reward"] - point["cost"] for point in record["branchings"]]
    assert earned[0] == pytest.approx(rewards.sum(axis=0).max())
    assert earned[-1] == pytest.approx(highest_reward_of_one_plane(trial[["p", "q", "r"]].to_numpy(), rewards))
    assert all(point["proved"] for point in record["branchings"])
    assert record["coefficients"][-1]["cost"] == pytest.approx(record["branchings"][-1]["cost"])
    assert "A cost is what the best answer of a row earns more" in "".join(called("pareto", *asked))


def test_good_trees_of_rewards_lie_around_the_highest(trial, called):
    record = json.loads(called("good-trees", "--slack-cost=3", "--json")[-1])
    best = best_reward(trial[["p", "q", "r"]].to_numpy(), rewards_of(trial), 2)
    assert record["best_reward"] - record["optimum_cost"] == pytest.approx(best)
    assert all(best - 3 - 1e-9 <= record["best_reward"] - t["cost"] <= best + 1e-9 for t in record["trees"])
    assert set(record["columns"]) == {"p", "q", "r"}


def test_wish_keeps_the_highest_reward_and_is_priced(trial, called, tmp_path):
    model = tmp_path / "model.json"
    asked = ("complete", "--method=exact", "--wish=ask root r", f"--output={model}")
    record = json.loads(called(*asked, "--json")[-1])
    rewards = rewards_of(trial)
    X = trial[["p", "q", "r"]].to_numpy()
    yes = X[:, 2] > 0.5
    kept = best_reward(X[yes], rewards[yes], 1) + best_reward(X[~yes], rewards[~yes], 1)
    assert record["reward"] == pytest.approx(kept)
    worth = read_model(model).certificate["optimum"]["objective_cost"]
    assert record["wishes"][0]["price"] * worth == pytest.approx(best_reward(X, rewards, 2) - kept)
    assert verdict(verify(model, tmp_path / "trial.csv")) == "proved"
    assert any(line.startswith("The answers earn") for line in called(*asked))


def test_evaluate_counts_what_unseen_rows_lose(trial, called, tmp_path):
    model = tmp_path / "model.json"
    asked = ("evaluate", "--method=exact", "--set=leaf_penalty=0", "--folds=4", f"--model={model}", "--json")
    record = json.loads(called(*asked)[-1])
    cell = record["results"][0]
    assert cell["cost_unit"] == "EUR"
    assert cell["failed"] == 0
    assert record["whole"]["reward"] == pytest.approx(
        best_reward(trial[["p", "q", "r"]].to_numpy(), rewards_of(trial), 2)
    )
    document = json.loads(model.read_text())
    rewards = rewards_of(trial)
    schema = read_model(model).tree.schema
    answers = np.empty(60, int)
    for f, nodes in enumerate(document["rows"]["fold_trees"]):
        tree = tree_from_json(nodes, schema=schema, classes=("drug", "none", "pill"))
        unseen = np.array([mark == str(f) for mark in document["rows"]["folds"]])
        answers[unseen] = tree.predict(trial[["p", "q", "r"]].to_numpy(float)[unseen])
    lost = rewards.max(axis=1).sum() - rewards[np.arange(60), answers].sum()
    assert cell["cost"] == pytest.approx(lost)
    assert verdict(verify(model, tmp_path / "trial.csv")) == "proved"


@pytest.mark.one_database
@pytest.mark.django_db(transaction=True)
def test_workbench_of_a_model_keeps_its_rewards(posted, trial, owner, monkeypatch):
    run = TrainingRun.objects.get(pk=posted(REWARDS).json()["id"])
    assert TrainingSupervisor(job_id=str(run.pk), worker="here", stopping=threading.Event()).run() == "succeeded"
    run.refresh_from_db()
    bench = workbench.open_for(owner=owner, model=run.model)
    assert json.loads(bench.parameters["costs"]) == REWARDS
    workbench.edit(bench, wishes=["ask root r"])
    monkeypatch.setattr(work, "IDLE_SECONDS", 0.3)
    EditingSupervisor(job_id=str(bench.pk), worker="here", stopping=threading.Event()).run()
    first, kept = bench.steps.all()
    rewards = rewards_of(trial)
    X = trial[["p", "q", "r"]].to_numpy()
    yes = X[:, 2] > 0.5
    best = best_reward(X[yes], rewards[yes], 1) + best_reward(X[~yes], rewards[~yes], 1)
    costs = [json.loads(step.document)["certificate"]["costs"]["cost"] for step in (first, kept)]
    assert costs[0] == pytest.approx(rewards.max(axis=1).sum() - best_reward(X, rewards, 2))
    assert costs[1] == pytest.approx(rewards.max(axis=1).sum() - best)


@pytest.mark.slow
@pytest.mark.one_database
@pytest.mark.django_db(transaction=True)
def test_experiment_takes_rewards(posted, trial, owner, client):
    waiting = TrainingRun.objects.get(pk=posted(REWARDS).json()["id"])
    dataset = waiting.dataset
    waiting.delete()  # it would go first
    asked = {"depth": 2, "leaf_penalty": 0, "costs": json.dumps(REWARDS)}
    experiment = experiments.start(
        owner=owner, dataset=dataset, candidates=[{"method": "exact", "parameters": asked}], folds=3
    )
    candidate = experiment.candidates.get()
    CandidateSupervisor(job_id=str(candidate.pk), worker="here", stopping=threading.Event()).run()
    candidate.refresh_from_db()
    assert candidate.status == "succeeded", candidate.error
    rewards = rewards_of(trial)
    costs = json.loads(candidate.document)["certificate"]["costs"]
    best = best_reward(trial[["p", "q", "r"]].to_numpy(), rewards, 2)
    assert costs["cost"] == pytest.approx(rewards.max(axis=1).sum() - best)
    alone = [record for record in candidate.records if record["second"] < 0]
    lost = sum(record["cost"] for record in alone)
    line = board(experiment).lines[0]
    assert line.cost.per_row == pytest.approx(lost / sum(record["n"] for record in alone))
    assert line.cost.constant_per_row > 0
    client.force_login(owner)
    body = client.get(f"/api/v1/experiments/{experiment.pk}/").json()
    told = body["candidates"][0]
    assert (told["cost_per_row"], told["cost_unit"]) == (line.cost.per_row, "EUR")
    assert told["cost_interval"][0] < line.cost.per_row < told["cost_interval"][1]
    assert body["ranked_by"] == "cost_per_row"
    page = client.get(f"/experiments/{experiment.pk}/").content.decode()
    assert line.cost.constant_words in page
    assert "The order and the recommendation follow the cost of answers per row, not accuracy." in page
