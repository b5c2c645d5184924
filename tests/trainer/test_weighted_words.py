"""With weights or costs, no text calls a sum of weights a number of rows."""

from __future__ import annotations

import json
import re
from fractions import Fraction

import numpy as np
import pytest

from tests.octweb.small_models import trained
from trainer.check.recount import verdict, verify
from trainer.check.recount.table import rows as checked_rows
from trainer.cli.dispatch import main
from trainer.data import problem
from trainer.data.problem import balanced_weights
from trainer.data.reader import load
from trainer.errors import ParameterError
from trainer.evaluate.verdict import training_base_words
from trainer.sklearn_api.estimators import make_classifier
from trainer.sklearn_api.loading import load as load_fitted
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table
from trainer.training.claims import goal_sentence, saving_sentence, weight_sentence
from trainer.training.run import TrainRequest, train
from trainer.tree.describe import path_in_words, rules_text
from trainer.tree.file import from_json, read_model, write
from trainer.tree.render.figure import tree_figure
from trainer.tree.render.paper import svg_of
from trainer.workbench.requests import WorkbenchSession

WEIGHTS = {"weights": {"column": "w", "step": "1", "rows": 7, "correct_rows": 5}}


@pytest.fixture
def tree():
    return from_json(trained("cart", depth=2)).tree


@pytest.mark.parametrize(("step", "words"), [("1", "(weight "), ("1/2", " steps of weight 0.5)")])
def test_rules_call_counts_of_weighted_rows_weight(tree, step, words):
    text = rules_text(tree, {"weights": WEIGHTS["weights"] | {"step": step}})
    assert text.count(words) == tree.n_leaves
    assert " rows)" not in text
    assert " rows)" in rules_text(tree, {})


def test_base_rate_of_weighted_rows_is_a_share_of_weight(tree):
    words = training_base_words(tree, WEIGHTS)
    root = tree.nodes[0]
    assert "of the weight of the training rows is right" in words
    assert f"{100 * max(root.counts) / root.rows:.1f}" in words
    assert f"{max(root.counts)} of {root.rows} training rows" in training_base_words(tree)


def test_saving_counts_rows_and_not_their_weight():
    costs = {"cost": 3.0, "unit": "EUR", "best_constant": {"answer": "yes", "cost": 10.0}, "leaf_price": 0.0}
    assert "on the 7 training rows" in saving_sentence({"n": 20, "costs": costs} | WEIGHTS)
    assert "on the 20 training rows" in saving_sentence({"n": 20, "costs": costs})


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "the 4 rows that arrive"),
        ({"weights": np.array([3, 1, 2, 5])}, "the rows that arrive"),
        ({"parameters": {"costs": "a>b=7"}}, "the rows that arrive"),
    ],
)
def test_conflict_counts_neither_weights_nor_copies_as_rows(more, words):
    columns = tuple(
        Column(schema=ColumnSchema(name=name, kind=ColumnKind.BINARY), cells=np.array(values))
        for name, values in (("x", [0.0, 0.0, 0.0, 0.0]), ("z", [0.0, 1.0, 0.0, 1.0]))
    )
    table = Table(columns=columns, row_numbers=np.arange(4))
    labels = Labels(name="y", classes=("a", "b"), codes=np.array([0, 1, 0, 1], np.int32))
    parameters = {"depth": 1} | more.get("parameters", {})
    session = WorkbenchSession(
        TrainRequest(table=table, labels=labels, method="exact", weights=more.get("weights"), parameters=parameters)
    )
    assert words in session.complete(["ask root x"], session.monitor()).reason


@pytest.fixture(params=["", "w"])
def balanced(request, tmp_path):
    """Provide a model with balanced classes, without and with a column of weights, and its rows."""
    rng = np.random.default_rng(4)
    lines = ["a,b,w,y"]
    for _ in range(60):
        a, b = rng.integers(0, 9, 2)
        lines.append(f"{a},{b},{rng.choice([0, 0.5, 1, 2.5])},{rng.choice(['x', 'y', 'z'], p=[0.6, 0.3, 0.1])}")
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([*lines, ""]))
    bound = {"weight": request.param} if request.param else {"ignore": ["w"]}
    table, labels, _ = load(path, target="y", missing={}, **bound)
    asked = TrainRequest(
        table=table, labels=labels, method="exact", parameters={"depth": 2, "goal": "balanced"}, test_share=0.2
    )
    return train(asked).model, path


def test_class_weights_make_all_classes_equally_heavy(balanced):
    model, _ = balanced
    record = model.certificate["class_weights"]
    root = model.tree.nodes[0]
    assert len(set(root.counts)) == 1
    assert sum(root.counts) == model.certificate["n"]
    signs = model.rows["held_out"]
    plain = model.rows["weights"] or [1] * len(signs)
    assert record["rows"] == sum(sign == "0" and weight > 0 for sign, weight in zip(signs, plain, strict=True))
    own = {name: root.counts[k] / float(Fraction(record["weights"][name])) for k, name in enumerate(model.tree.classes)}
    assert sum(own.values()) == sum(weight for sign, weight in zip(signs, plain, strict=True) if sign == "0")


def test_words_of_balanced_model_never_call_weights_rows(balanced):
    model, _ = balanced
    text = rules_text(model.tree, model.certificate)
    assert " rows)" not in text
    assert text.count("(weight ") == model.tree.n_leaves
    sentence = weight_sentence(model.certificate)
    assert f"{model.certificate['class_weights']['rows']} training rows weigh {model.certificate['n']:,}" in sentence
    assert "of the weight of the training rows" in training_base_words(model.tree, model.certificate)


@pytest.mark.parametrize("lie", [{"rows": 9}, {"correct_rows": 1}, {"weights": {"x": "1", "y": "1", "z": "1"}}])
def test_lies_about_class_weights_are_refuted(balanced, tmp_path, lie):
    model, path = balanced
    document = json.loads(json.dumps(model.to_json()))
    file = tmp_path / "model.json"
    file.write_text(json.dumps(document))
    assert verdict(findings := verify(file, path)) == "proved"
    assert "weights of classes" in {finding.claim for finding in findings}
    document["certificate"]["class_weights"] |= lie
    file.write_text(json.dumps(document))
    assert "weights of classes" in {f.claim for f in verify(file, path) if f.verdict == "refuted"}


def test_class_weights_of_an_unweighted_training_are_refuted(balanced, tmp_path):
    model, path = balanced
    table, labels, _ = load(path, target="y", ignore=["w"], missing={})
    plain = train(TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": 1})).model
    document = json.loads(json.dumps(plain.to_json()))
    assert "class_weights" not in document["certificate"]
    document["certificate"]["class_weights"] = model.certificate["class_weights"]
    file = tmp_path / "model.json"
    file.write_text(json.dumps(document))
    assert "weights of classes" in {f.claim for f in verify(file, path) if f.verdict == "refuted"}


def test_class_weights_of_one_are_refuted(balanced, tmp_path):
    """A file that calls rows of equal weight balanced hides which training it had."""
    _, path = balanced
    table, labels, _ = load(path, target="y", ignore=["w"], missing={})
    plain = train(TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": 1})).model
    document = json.loads(json.dumps(plain.to_json()))
    correct = document["certificate"]["correct"]
    record = {"weights": dict.fromkeys(document["classes"], "1"), "rows": len(labels.codes), "correct_rows": correct}
    document["certificate"]["class_weights"] = record
    file = tmp_path / "model.json"
    file.write_text(json.dumps(document))
    assert "weights of classes" in {f.claim for f in verify(file, path) if f.verdict == "refuted"}


@pytest.mark.parametrize(("bound", "unit"), [({}, "rows"), ({"weight": "w"}, "of weight")])
def test_balanced_classes_of_equal_size_have_no_record(tmp_path, bound, unit):
    path = tmp_path / "rows.csv"
    rows = "".join(f"{i},{1 + i % 2},{'ab'[i // 4]}\n" for i in range(8))
    path.write_text(f"x,w,y\n{rows}", encoding="utf-8")
    table, labels, _ = load(path, target="y", missing={}, **bound)
    asked = TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": 1, "goal": "balanced"})
    result = train(asked)
    assert "class_weights" not in result.model.certificate
    assert result.summary["count_unit"] == unit


def test_balanced_class_of_too_many_rows_is_refused(monkeypatch):
    monkeypatch.setattr(problem, "MOST_BALANCED", 32)
    codes = np.repeat(np.arange(2, dtype=np.int32), [20, 1])
    with pytest.raises(ParameterError, match="a class of 20 rows is too large"):
        balanced_weights(Labels(name="y", classes=("a", "b"), codes=codes), None)


@pytest.mark.parametrize("seed", range(6))
def test_large_weights_are_balanced_within_their_error(seed, tmp_path):
    """Factors of classes that are rounded to integers would leave the classes of these tables as they are."""
    rng = np.random.default_rng(seed)
    size = 60
    X = rng.integers(0, 2, (size, 3))
    y = np.sort(rng.integers(0, 3, size))
    weights = rng.random(size) if seed % 2 else 1_000_000 * (y + 1) + rng.integers(1, 50, size)
    tree = make_classifier("exact", depth=1, goal="balanced", leaf_penalty=0).fit(X, y, sample_weight=weights)
    certificate = tree.certificate_.to_json()
    recalls = [mean_recall(answers == y, y, weights) for answers in all_stumps(X)]
    error = certificate["class_weights"]["error"] + certificate.get("weight_error", 0.0)
    assert error < 1e-5
    assert certificate["n"] <= problem.MOST_BALANCED
    assert max(recalls) - 2 * error <= mean_recall(tree.predict(X) == y, y, weights) <= max(recalls) + 1e-12
    assert abs(tree.certificate_.objective - max(recalls)) <= 2 * error
    low, high = re.findall(r"0\.\d+", goal_sentence(certificate, {"class_weight": "balanced"}))[:2]
    assert float(low) - error <= max(recalls) <= float(high) + error
    assert verdict(tree.verify(X, y)) == "proved"


def test_frontier_of_rounded_class_weights_says_so(tmp_path, capsys):
    path = tmp_path / "rows.csv"
    rows = [f"{i % 3},{1_000_000 + i},{'no' if i < 20 else 'yes'}" for i in range(47)]
    path.write_text("\n".join(["a,w,y", *rows]) + "\n")
    options = ["--target=y", "--method=exact", "--depth=1", "--goal=balanced", "--weight=w"]
    assert main("octweb", ["frontier", str(path), *options]) == 0
    printed = capsys.readouterr().err
    assert re.search(r"\(no 6\.\d+, yes 4\.\d+\)", printed)
    assert "Class weights were rounded: no mean of recalls differs by more than" in printed


def mean_recall(is_correct, y, weights):
    return np.mean([np.average(is_correct[y == k], weights=weights[y == k]) for k in np.unique(y)])


@pytest.mark.parametrize("seed", range(12))
def test_rounded_class_weights_state_their_error(seed, tmp_path, monkeypatch):
    """The best tree for rounded weights is within the stated error of the highest mean recall, found by trying all trees."""
    monkeypatch.setattr(problem, "MOST_BALANCED", 220)
    monkeypatch.setattr(checked_rows, "MOST_BALANCED", 220)
    rng = np.random.default_rng(seed)
    size = int(rng.integers(40, 60))
    X = rng.integers(0, 2, (size, 3))
    y = np.sort(rng.choice(3, size, p=[0.5, 0.3, 0.2]))
    tree = make_classifier("exact", depth=1, goal="balanced", leaf_penalty=0).fit(X, y)
    record = tree.certificate_.class_weights
    certificate = tree.certificate_.to_json()
    assert ("rounded" in weight_sentence(certificate)) == ("error" in record)
    assert ("rounded" in goal_sentence(certificate, {"class_weight": "balanced"})) == ("error" in record)
    recalls = [[(answers == y)[y == k].mean() for k in range(3)] for answers in all_stumps(X)]
    best = max(map(np.mean, recalls))
    reached = np.mean([(tree.predict(X) == y)[y == k].mean() for k in range(3)])
    error = record.get("error", 0.0)
    assert best - 2 * error - 1e-12 <= reached <= best + 1e-12
    assert abs(tree.certificate_.objective - reached) <= error + 1e-12
    assert best <= tree.certificate_.bound + error + 1e-12
    assert verdict(tree.verify(X, y)) == "proved"


def all_stumps(X):
    """Yield the answers of all trees of at most one question, for three classes."""
    for j in range(X.shape[1]):
        for left in range(3):
            for right in range(3):
                yield np.where(X[:, j] == 1, left, right)


def test_classes_of_many_rows_are_balanced_and_verified(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(["no", "yes"], [20_000, 15_003])
    path = tmp_path / "rows.csv"
    path.write_text("a,b,y\n" + "".join(f"{rng.integers(2)},{rng.integers(3)},{word}\n" for word in y))
    table, labels, _ = load(path, target="y", missing={})
    asked = TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": 2, "goal": "balanced"})
    document = train(asked).model.to_json()
    assert 0 < document["certificate"]["class_weights"]["error"] < 1e-4
    file = tmp_path / "model.json"
    file.write_text(json.dumps(document))
    assert verdict(verify(file, path)) == "proved"
    record = document["certificate"]["class_weights"]
    for forged in (record | {"error": record["error"] / 2}, None):
        document["certificate"]["class_weights"] = forged
        file.write_text(json.dumps(document))
        assert {f.claim for f in verify(file, path) if f.verdict == "refuted"} == {"weights of classes"}


@pytest.mark.parametrize("weights", [[0.5, 1.0, 2.0], [0, 1, 2], [1, 2, 5], None])
def test_fit_with_sample_weights_states_them_and_verifies(weights, tmp_path):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 2)).round(2)
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    given = None if weights is None else rng.choice(weights, 60)
    tree = make_classifier("exact", depth=2, leaf_penalty=0.01).fit(X, y, sample_weight=given)
    assert verdict(tree.verify(X, y, sample_weight=given)) == "proved"
    unit = "rows" if weights is None else tree.tree_.count_unit
    hover = [text for trace in tree.plot().data for text in trace.hovertext or ()]
    assert f"{tree.tree_.nodes[0].rows} {unit} in all" in hover[0]
    record = tree.certificate_.weights
    assert (" rows)" in tree.rules()) == (weights is None)
    if given is None:
        assert record is None
        return
    right = (tree.predict(X) == y) & (given > 0)
    assert (record["rows"], record["correct_rows"]) == ((given > 0).sum(), right.sum())
    assert tree.certificate_.correct * Fraction(record["step"]) == Fraction(float(given[right].sum()))
    tree.save(tmp_path / "model.json")
    assert load_fitted(tmp_path / "model.json").rules() == tree.rules()


def test_frontier_of_balanced_classes_names_their_weights(balanced, capsys):
    _, path = balanced
    options = ["--target", "y", "--ignore", "w", "--set", "goal=balanced", "--method", "exact", "--depth", "2"]
    assert main("octweb", ["frontier", str(path), *options]) == 0
    printed = capsys.readouterr()
    assert "counts weights that make all classes equally heavy (x " in printed.err
    assert " rows" not in printed.out


def test_pictures_of_balanced_classes_count_weight(balanced, tmp_path):
    model, _ = balanced
    write(model, tmp_path / "model.json")
    tree = read_model(tmp_path / "model.json").tree
    assert tree.count_unit == model.tree.count_unit == "of weight"
    hover = [text for trace in tree_figure(tree)["data"] for text in trace.get("hovertext", ())]
    svg, _ = svg_of(tree)
    assert hover
    assert " rows" not in " ".join(hover) + svg.partition("</title>")[2]
    assert f"{tree.nodes[0].rows:,} of weight in all" in hover[0]
    assert " rows" not in " ".join(path_in_words(tree, tree.leaves[0].id, np.zeros(len(tree.schema))))
