"""A column of weights: reading, objective, reports and the check."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from tests.seeds import seeds
from trainer.check.recount import verify
from trainer.data.reader import load
from trainer.data.rewards import reward_record
from trainer.data.share_interval import WeightSums, of_groups, of_rows, of_weights, wilson
from trainer.errors import DataError, ParameterError
from trainer.evaluate import Study, StudyDataset, Variant, report, run_study
from trainer.evaluate.curves import curve, drawn_area_interval
from trainer.evaluate.folded import with_folds
from trainer.evaluate.intervals import difference, paired_difference
from trainer.evaluate.verdict import read_verdict
from trainer.registry import METHODS, get
from trainer.training.claims import weight_sentence
from trainer.training.run import TrainRequest, train

WEIGHTS = ("0", "0.5", "1", "2.5", "3")


def csv_text(seed: int, rows: int = 40, weights: tuple[str, ...] = WEIGHTS) -> str:
    rng = np.random.default_rng(seed)
    lines = ["a,b,c,w,class"]
    for _ in range(rows):
        a, b, c = rng.integers(0, 2, 3)
        label = "yes" if (a & b) ^ (rng.random() < 0.3) else "no"
        lines.append(f"{a},{b},{c},{rng.choice(weights)},{label}")
    return "\n".join([*lines, "0,0,0,1,no", "1,1,1,1,yes"]) + "\n"


def request_of(path: Path, text: str, method: str = "exact", **changes: Any) -> TrainRequest:
    path.write_text(text, encoding="utf-8")
    table, labels, _ = load(path, target="class", weight="w")
    own = {"depth": 2, "leaf_penalty": 0} | changes.pop("parameters", {})
    return TrainRequest(table=table, labels=labels, method=method, parameters=own, **changes)


def optimum(text: str, depth: int) -> Fraction:
    """Return the largest share of correct weight of all trees over the yes/no columns, by enumeration."""
    rows = [line.split(",") for line in text.splitlines()[1:]]

    def best(chosen: list[list[str]], height: int) -> Fraction:
        found = max(sum((Fraction(r[3]) for r in chosen if r[4] == label), Fraction(0)) for label in ("yes", "no"))
        for j in range(3) if height else ():
            sides = [[r for r in chosen if r[j] == value] for value in "01"]
            found = max(found, sum((best(side, height - 1) for side in sides), Fraction(0)))
        return found

    return best(rows, depth) / sum(Fraction(r[3]) for r in rows)


@pytest.mark.slow
@seeds(300)
def test_weighted_optimum_equals_enumeration(seed, tmp_path):
    text = csv_text(seed, rows=int(np.random.default_rng(seed).integers(4, 20)))
    result = train(request_of(tmp_path / "rows.csv", text, parameters={"depth": 1 + seed % 2}))
    assert result.certificate.proved_optimal
    assert result.certificate.objective == pytest.approx(float(optimum(text, 1 + seed % 2)), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("method", [method.id for method in METHODS])
def test_every_method_counts_weights_as_repeated_rows(method, tmp_path):
    text = csv_text(5, rows=24, weights=("1", "2", "3"))
    head, *lines = text.splitlines()
    repeated = "\n".join([head, *(line for line in lines for _ in range(int(line.split(",")[3])))])
    wanted = {"depth": 2, "leaf_penalty": 0, "time_limit": 10}
    own = {name: value for name, value in wanted.items() if get(method).parameter(name)}
    weighted = train(replace(request_of(tmp_path / "a.csv", text, method), parameters=own))
    (tmp_path / "b.csv").write_text(repeated, encoding="utf-8")
    table, labels, _ = load(tmp_path / "b.csv", target="class", ignore=["w"])
    plain = train(TrainRequest(table=table, labels=labels, method=method, parameters=own))
    assert weighted.certificate.n == plain.certificate.n
    assert weighted.certificate.objective == pytest.approx(plain.certificate.objective, abs=1e-9)


def test_weight_column_is_never_asked_and_zero_rows_left_out(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,w,class\n1,0,a\n2,2,a\n3,0.5,b\n4,1,b\n", encoding="utf-8")
    table, _, made = load(path, target="class", weight="w")
    assert table.names == ("x",)
    assert table.weights.values.tolist() == [4, 1, 2]
    assert table.weights.step == Fraction(1, 2)
    assert table.weights.counted.tolist() == [False, True, True, True]
    assert "one row of weight 0 was left out." in made.notes[-1].lower()


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("", "1 empty cell, the first in line 3"),
        ("-2", "gives no weight in line 3: '-2' is negative. Write 0"),
        ("much", "gives no weight in line 3: 'much' is not a number"),
    ],
)
def test_bad_weight_is_refused_with_its_line(tmp_path, cell, words):
    path = tmp_path / "rows.csv"
    path.write_text(f"x,w,class\n1,1,a\n2,{cell},a\n3,1,b\n4,1,b\n", encoding="utf-8")
    with pytest.raises(DataError, match=words):
        load(path, target="class", weight="w", kinds={})


def test_weights_that_are_all_zero_are_refused(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,w,class\n1,0,a\n2,0,b\n", encoding="utf-8")
    with pytest.raises(DataError, match="Every weight in column 'w' is 0"):
        load(path, target="class", weight="w")


@pytest.mark.parametrize("role", [{"group": "w"}, {"time": "w"}, {"target": "w"}])
def test_weight_column_with_another_role_is_refused(tmp_path, role):
    path = tmp_path / "rows.csv"
    path.write_text("x,w,class\n1,1,a\n2,2,b\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"'w'.*Choose"):
        load(path, **({"target": "class", "weight": "w"} | role))


def test_smallest_leaf_needs_whole_weights(tmp_path):
    with pytest.raises(ParameterError, match="weights in 'w' are not whole numbers"):
        train(request_of(tmp_path / "rows.csv", csv_text(1), parameters={"min_leaf": 3}))
    whole = request_of(tmp_path / "rows.csv", csv_text(1, weights=("1", "2")), parameters={"min_leaf": 3})
    assert all(sum(leaf.counts) >= 3 for leaf in train(whole).tree.leaves)


def test_costs_count_whole_weights(tmp_path):
    costs = {"costs": "no>yes=2;yes>no=3"}
    path = tmp_path / "whole.csv"
    result = train(request_of(path, csv_text(1, weights=("0", "1", "2")), parameters=costs, test_share=0.3))
    confusion = np.array(result.model.metrics["train"]["confusion"])
    assert result.certificate.costs["cost"] == 2 * confusion[0, 1] + 3 * confusion[1, 0]
    (tmp_path / "model.json").write_text(json.dumps(result.model.to_json()), encoding="utf-8")
    assert "refuted" not in {f.verdict for f in verify(tmp_path / "model.json", path)}


def test_rewards_count_weights():
    rewards = np.array([[1.0, 0.0], [0.0, 5.0]])
    found = reward_record(rewards, np.array([0, 1]), ("a", "b"), "EUR", np.array([3, 1]))
    assert found["reward"] == 8
    assert found["reward_per_row"] == 2
    assert found["best_constant_reward"] == {"answer": "b", "reward": 5.0}


# The tests below are about intervals.


def test_equal_weights_have_wilsons_interval():
    correct = np.array([1.0] * 30 + [0.0] * 10)
    assert of_weights(WeightSums.of(7 * correct, np.full(40, 7.0))) == pytest.approx(wilson(30, 40))


def test_effective_rows_are_kishs_where_all_rows_are_right():
    weights = np.array([1.0, 1.0, 2.0])
    assert WeightSums.of(weights, weights).effective_rows == pytest.approx(16 / 6)


def test_weighted_interval_covers_the_share_in_simulations():
    """At least 92 % of 300 intervals contain the true share. Intervals from summed weights do not reach that."""
    rng = np.random.default_rng(0)
    weights = rng.exponential(size=(300, 80)) + 0.05
    correct = rng.random((300, 80)) < 0.8
    found = [of_weights(WeightSums.of(w * c, w)) for w, c in zip(weights, correct, strict=True)]
    naive = [wilson(float(100 * w @ c), float(100 * w.sum())) for w, c in zip(weights, correct, strict=True)]
    assert np.mean([low <= 0.8 <= high for low, high in found]) >= 0.92
    assert np.mean([low <= 0.8 <= high for low, high in naive]) < 0.5


def test_interval_by_groups_agrees_with_the_bootstrap():
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(40), 10)
    correct = np.repeat(rng.random(40) < 0.7, 10) ^ (rng.random(400) < 0.05)
    found = of_rows(correct, groups=groups)
    drawn = of_groups(np.bincount(groups, correct), np.bincount(groups).astype(float))
    assert found == pytest.approx(drawn, abs=0.01)
    assert found[1] - found[0] > 2 * np.subtract(*wilson(correct.sum(), 400)[::-1])


def test_paired_difference_by_groups_is_wider_than_by_rows():
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(20), 10)
    first = np.repeat(rng.random(20) < 0.8, 10)
    second = np.repeat(rng.random(20) < 0.6, 10)
    found = paired_difference(first, second, None, groups)
    rows = difference(int((first & ~second).sum()), int((second & ~first).sum()), 200)
    assert found.points == pytest.approx(first.mean() - second.mean())
    assert found.interval[1] - found.interval[0] > 2 * (rows[1] - rows[0])
    assert found.p > 0.01


def test_paired_difference_over_rows_is_near_walds():
    rng = np.random.default_rng(4)
    first = rng.random(400) < 0.8
    second = rng.random(400) < 0.7
    found = paired_difference(first, second, np.full(400, 3), None)
    rows = difference(int((first & ~second).sum()), int((second & ~first).sum()), 400)
    assert found.interval == pytest.approx(rows, abs=0.005)


def test_area_interval_is_wider_by_groups_and_near_delongs():
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(30), 10)
    scores = np.repeat(rng.integers(0, 4, 30), 10) / 4
    positive = rng.random(300) < scores
    counts = [np.array([int((positive == p)[scores == s].sum()) for s in (0, 0.25, 0.5, 0.75)]) for p in (True, False)]
    own = curve(np.array([0, 0.25, 0.5, 0.75]), *counts)
    by_rows = drawn_area_interval(scores, positive, None, None)
    by_groups = drawn_area_interval(scores, positive, None, groups)
    assert by_rows == pytest.approx(own.area_interval, abs=0.01)
    assert by_groups[1] - by_groups[0] > 1.3 * (by_rows[1] - by_rows[0])


# The tests below are about model files and the checker.


@cache
def trained(seed: int, weights: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    text = csv_text(seed, 60, weights)
    with TemporaryDirectory() as folder:
        result = train(request_of(Path(folder) / "rows.csv", text, test_share=0.25, folds=3))
    return text, result.model.to_json()


def verdicts_of(folder: Path, text: str, model: dict[str, Any]) -> dict[str, str]:
    data = folder / "rows.csv"
    data.write_text(text, encoding="utf-8")
    (folder / "model.json").write_text(json.dumps(model), encoding="utf-8")
    return {f.claim: f.verdict for f in verify(folder / "model.json", data)}


IRRATIONAL = ("0", "0.7182818284590452", "3.14159265358979", "1.4142135623730951")


@pytest.mark.parametrize("weights", [WEIGHTS, ("1", "2", "7"), IRRATIONAL])
def test_weighted_model_file_is_counted_again(tmp_path, weights):
    text, model = trained(3, weights)
    found = verdicts_of(tmp_path, text, model)
    assert "refuted" not in found.values(), found
    assert found["weights"] == found["rows beside weights"] == found["metrics test interval"] == "recounted"
    assert found["bound"] == "proved"


def test_rounded_weights_state_their_error():
    _, model = trained(3, IRRATIONAL)
    assert 0 < model["certificate"]["weight_error"] < 1e-6
    assert "Weights were rounded" in weight_sentence(model["certificate"])


def refuted_by(tmp_path, change) -> set[str]:
    text, model = trained(3, WEIGHTS)
    model = copy.deepcopy(model)
    change(model)
    return {claim for claim, verdict in verdicts_of(tmp_path, text, model).items() if verdict == "refuted"}


def test_lies_about_weights_are_refuted(tmp_path):
    def heavier(model):
        weights = model["rows"]["weights"]
        weights[next(i for i, w in enumerate(weights) if w and model["rows"]["held_out"][i] == "0")] += 1

    def idle_row_trains(model):
        signs = model["rows"]["held_out"]
        place = model["rows"]["weights"].index(0)
        model["rows"]["held_out"] = signs[:place] + "0" + signs[place + 1 :]

    assert "weights" in refuted_by(tmp_path, heavier)
    assert refuted_by(tmp_path, idle_row_trains)
    assert "weights" in refuted_by(tmp_path, lambda m: m["rows"]["weight"].update(step="1"))
    assert "rows beside weights" in refuted_by(tmp_path, lambda m: m["certificate"]["weights"].update(correct_rows=1))
    assert "metrics test interval" in refuted_by(tmp_path, lambda m: m["metrics"]["test"].update(interval=[0.9, 1.0]))
    assert "metrics test interval" in refuted_by(tmp_path, lambda m: m["metrics"]["test"].update(rows=99))


def test_study_with_weights_matches_the_training_with_folds(tmp_path):
    request = request_of(tmp_path / "rows.csv", csv_text(4, 60), folds=3)
    result = train(request)
    dataset = StudyDataset(name="d", table=request.table, labels=request.labels)
    variant = Variant(label="v", method="exact", parameters=dict(request.parameters))
    study = Study(datasets=[dataset], variants=[variant], folds=3)
    records = run_study(study)
    cell = report(study, records).cells[0]
    crossed = result.model.metrics["cross_validation"]
    assert (cell.correct, cell.n) == (crossed["correct"], crossed["n"])
    assert cell.interval == pytest.approx(crossed["interval"])
    whole = with_folds(train(request_of(tmp_path / "rows.csv", csv_text(4, 60))).model, study, records)
    (tmp_path / "model.json").write_text(json.dumps(whole.to_json()), encoding="utf-8")
    assert "refuted" not in {f.verdict for f in verify(tmp_path / "model.json", tmp_path / "rows.csv")}


def test_verdict_and_base_rate_count_weights(tmp_path):
    lines = ["x,w,class", *(f"{i % 2},{9 if i % 2 else 1},{'b' if i % 2 else 'a'}" for i in range(60))]
    result = train(request_of(tmp_path / "rows.csv", "\n".join(lines), test_share=0.5))
    verdict = read_verdict(result.model)
    assert verdict.base_rate.share == pytest.approx(0.9)
    assert "of the weight of new rows" in verdict.sentence
