"""Model files with goals: true ones are proved, and false F1, MCC and balanced accuracy are refuted."""

from __future__ import annotations

import json

import pytest

from tests.trainer.check.recount.files import findings, trained
from tests.trainer.check.recount.goals_cases import _file
from tests.trainer.goal_cases import GOALS, random_case
from trainer.check.recount import verdict, verify
from trainer.check.recount.search import small
from trainer.check.recount.trees.counts import goal_value
from trainer.goal import Goal


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def verdict_of(document, data, tmp_path):
    return verdict(findings(document, data, tmp_path))


@pytest.mark.parametrize("goal", ["accuracy", "balanced", *GOALS])
@pytest.mark.parametrize("method", ["exact", "exact-numeric"])
def test_honest_file_with_a_goal_is_proved(folder, tmp_path, method, goal):
    document, data = trained(folder, method, goal=goal, test_share=0.25)
    said = findings(document, data, tmp_path)
    assert verdict(said) == "proved", [f for f in said if f.verdict != "recounted"]


def test_honest_file_with_folds_and_price_is_proved(folder, tmp_path):
    document, data = trained(folder, "exact", goal="f1", folds=3, leaf_penalty=0.02, min_leaf=3, max_leaves=3)
    said = findings(document, data, tmp_path)
    assert verdict(said) == "proved", [f for f in said if f.verdict != "recounted"]


def goal_parameter(value):
    def change(document):
        document["parameters"]["goal"] = value

    return change


def certificate_goal(name, value):
    def change(document):
        document["certificate"]["goal"][name] = value

    return change


def other_positive(document):
    other = next(k for k in document["classes"] if k != document["certificate"]["goal"]["positive"])
    document["parameters"]["positive"] = document["certificate"]["goal"]["positive"] = other


def no_goal(document):
    document["certificate"]["goal"] = None


def higher_value(document):
    document["certificate"]["objective"] += 0.01
    document["certificate"]["bound"] += 0.01


def lower_bound(document):
    document["certificate"]["bound"] -= 0.01


def other_answer(document):
    leaf = next(node for node in document["nodes"] if "class" in node)
    leaf["class"] = next(k for k in document["classes"] if k != leaf["class"])


def free_leaves(document):
    document["certificate"]["leaf_penalty"] = "0"
    document["certificate"]["objective"] += 0.02 * document["certificate"]["leaves"]
    document["certificate"]["bound"] = document["certificate"]["objective"]


def class_weights(document):
    document["parameters"]["class_weight"] = "balanced"


def costs(document):
    document["parameters"]["costs"] = "a>b=1"


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize(
    "lie",
    [
        goal_parameter("auto"),
        goal_parameter("balanced"),
        goal_parameter("F1"),
        certificate_goal("maximise", "accuracy"),
        certificate_goal("positive", "b"),
        certificate_goal("weight", "2"),
        certificate_goal("sensitivity", "0.5"),
        no_goal,
        higher_value,
        lower_bound,
        other_answer,
        free_leaves,
        class_weights,
        costs,
    ],
)
def test_lie_about_a_goal_is_refuted(folder, tmp_path, goal, lie):
    document, data = trained(folder, "exact", goal=goal, positive="a", leaf_penalty=0.02)
    assert verdict_of(document, data, tmp_path) == "proved"
    lie(document)
    assert verdict_of(document, data, tmp_path) == "refuted"


def test_f1_of_the_other_class_is_refuted(folder, tmp_path):
    document, data = trained(folder, "exact", goal="f1", positive="a", leaf_penalty=0.02)
    other_positive(document)
    assert verdict_of(document, data, tmp_path) == "refuted"


def test_balanced_file_without_its_weights_is_refuted(folder, tmp_path):
    document, data = trained(folder, "exact", goal="balanced")
    document["parameters"]["class_weight"] = "none"
    assert verdict_of(document, data, tmp_path) == "refuted"


@pytest.mark.parametrize("goal", GOALS)
def test_tree_of_best_accuracy_is_no_best_tree_of_a_goal(tmp_path, goal):
    """The file is consistent in itself, but another tree is better, so the search refutes it."""
    for seed in range(60):
        table, labels, _, _ = random_case(seed, empty=False)
        best, other = (_file(table, labels, asked, tmp_path) for asked in ({"goal": goal, "positive": "yes"}, {}))
        value = _value(goal, table, labels, other)
        if best.certificate["objective"] - value < 0.01:
            continue
        document = json.loads((tmp_path / "model.json").read_text())
        document["parameters"] |= {"goal": goal, "positive": "yes"}
        document["certificate"] |= {"goal": best.certificate["goal"], "objective": value, "bound": value}
        document["certificate"]["evidence"] = []
        (tmp_path / "model.json").write_text(json.dumps(document))
        said = verify(tmp_path / "model.json", tmp_path / "rows.csv")
        assert next(f for f in said if f.verdict == "refuted").claim == "bound"
        return
    raise AssertionError("no table has two different best trees")


def _value(goal, table, labels, model):
    answers = model.tree.predict(table.matrix())
    positives = int((labels.codes == 1).sum())
    tp = int(((labels.codes == 1) & (answers == 1)).sum())
    tn = int(((labels.codes == 0) & (answers == 0)).sum())
    return float(Goal(positive="yes", maximise=goal).value(tp, positives, tn, len(answers) - positives))


@pytest.mark.parametrize("goal", GOALS)
def test_random_honest_files_are_proved(tmp_path, goal, count):
    for seed in range(3 * count):
        table, labels, _, parameters = random_case(seed)
        _file(table, labels, parameters | {"goal": goal}, tmp_path)
        said = verify(tmp_path / "model.json", tmp_path / "rows.csv")
        assert verdict(said) == "proved", (seed, [f for f in said if f.verdict not in ("recounted", "proved")])


def test_lines_of_few_leaves_do_not_bound_larger_trees(folder, tmp_path):
    """The file claims the best tree of two leaves as the best of all, with lines for trees of two leaves only."""
    document, data = trained(folder, "exact", goal="f1", positive="a", bins=5, max_leaves=2)
    best, _ = trained(folder, "exact", goal="f1", positive="a", bins=5)
    assert document["certificate"]["objective"] < best["certificate"]["objective"]
    document["parameters"]["max_leaves"] = None
    document["certificate"]["scope"] = best["certificate"]["scope"]
    lines = next(part for part in document["certificate"]["evidence"] if part["kind"] == "goal-search")["lines"]
    assert lines
    for line in lines:
        line[0] = 2
    assert verdict_of(document, data, tmp_path) == "refuted"


def test_checker_and_search_agree_on_values():
    for positives in range(5):
        for negatives in range(not positives, 5):
            for tp in range(positives + 1):
                for tn in range(negatives + 1):
                    for goal in GOALS:
                        own = Goal(positive="yes", maximise=goal).value(tp, positives, tn, negatives)
                        assert goal_value({"maximise": goal}, tp, positives, tn, negatives)[0] == own


@pytest.mark.slow
@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("penalty", [0, 0.02])
def test_lines_prove_what_no_list_of_pairs_does(tmp_path, monkeypatch, goal, penalty, count):
    """With lines the bound is proved without a list of all pairs; a lower bound is not proved by them."""
    monkeypatch.setattr(small, "_best_counts", lambda model, rows, goal: None)
    for seed in range(2 * count):
        table, labels, _, _ = random_case(seed)
        _file(table, labels, {"goal": goal, "leaf_penalty": penalty}, tmp_path)
        said = verify(tmp_path / "model.json", tmp_path / "rows.csv")
        assert verdict(said) == "proved", (seed, [f for f in said if f.verdict not in ("recounted", "proved")])
        document = json.loads((tmp_path / "model.json").read_text())
        document["certificate"]["evidence"] = [{"kind": "goal-search", "lines": []}]
        (tmp_path / "model.json").write_text(json.dumps(document))
        if document["certificate"]["objective"] + penalty * document["certificate"]["leaves"] < 1:
            said = verify(tmp_path / "model.json", tmp_path / "rows.csv")
            assert next(f for f in said if f.claim == "bound").verdict == "cannot be judged"
