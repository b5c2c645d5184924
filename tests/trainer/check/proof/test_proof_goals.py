"""Proofs of F1 and MCC agree with all trees, and false lines are refused."""

from __future__ import annotations

import gzip
import json
from fractions import Fraction

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.check.proof.changes import changed_proofs, page
from tests.trainer.check.recount.goals_cases import _file
from tests.trainer.goal_cases import ALL_THRESHOLDS, GOALS, all_trees, best_value, questions_of, random_case
from trainer.check.proof.proof import proved_bounds
from trainer.check.proof.steps.error_lines import _Steps
from trainer.check.proof.subject import BadProof
from trainer.check.recount import claims, verdict, verify
from trainer.check.recount.proof import check_model_proof
from trainer.check.recount.table.rows import load
from trainer.errors import TrainerError
from trainer.goal import Goal
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table

METHODS = ("exact", "exact-numeric")


def proved_file(folder, seed, method, goal, **asked):
    """Write rows, model and proof of a random table; return the errors and leaves of all trees, and the best value."""
    table, labels, _, parameters = random_case(seed, empty=method == "exact")
    parameters |= {"goal": goal, "positive": "yes"} | (ALL_THRESHOLDS if method == "exact" else {}) | asked
    _file(table, labels, parameters, folder, method, proof=folder / "proof.jsonl.gz")
    counted = np.ones(len(labels.codes), int)
    answers = questions_of(method, table, labels, None)
    trees = all_trees(answers, labels.codes, counted, parameters["depth"], parameters.get("min_leaf", 1))
    if "max_leaves" in parameters:
        trees = {tree for tree in trees if tree[2] <= parameters["max_leaves"]}
    penalty = Fraction(str(parameters["leaf_penalty"]))
    named = Goal(positive="yes", maximise=goal)
    return trees, best_value(named, trees, labels.codes, counted, penalty)


def read_lines(path):
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def write_lines(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def changes(lines, draw):
    """Yield proofs with one change: another goal, factor or number of leaves of a line, or without a step."""
    header, *steps = lines
    for k, line in enumerate(header["lines"]):
        for name, value in (
            ("goal", line["goal"] + line["scale"]),
            ("a", line["a"] + 1),
            ("b", line["b"] + 1),
            ("leaves", 1),
        ):
            others = [*header["lines"][:k], {**line, name: value}, *header["lines"][k + 1 :]]
            yield [{**header, "lines": others}, *steps]
    for k in draw.permutation(len(steps))[:3].tolist():
        yield [header, *steps[:k], *steps[k + 1 :]]
        yield [header, *steps[:k], {**steps[k], "bound": steps[k]["bound"] + 1}, *steps[k + 1 :]]
        yield [header, *steps[:k], {**steps[k], "line": steps[k]["line"] + 1}, *steps[k + 1 :]]


def check_case(folder, seed, method, goal, **asked):
    trees, wanted = proved_file(folder, seed, method, goal, **asked)
    document = json.loads((folder / "model.json").read_text())
    rows = load(folder / "rows.csv", document).training
    path = folder / "proof.jsonl.gz"
    found, _ = check_model_proof(document, rows, path)
    assert [f.verdict for f in found] == ["proved"], (seed, found)
    assert document["certificate"]["bound"] == pytest.approx(float(wanted), abs=1e-12)
    lines = read_lines(path)
    for changed in (lines, *changes(lines, np.random.default_rng(seed))):
        write_lines(folder / "changed", changed)
        try:
            proved = proved_bounds(document, rows, folder / "changed").lines
        except BadProof:
            assert changed is not lines
            continue
        assert all(
            a * fn + b * fp >= least
            for most, a, b, least in proved
            for fn, fp, size in trees
            if not most or size <= most
        )
        found, _ = check_model_proof(document, rows, folder / "changed")
        assert found[0].top is None or found[0].top >= wanted - Fraction(1, 10**20)


def limits_of(seed):
    return ({"max_leaves": 3} if seed % 7 == 0 else {}) | ({"min_leaf": 2 + seed % 4} if seed % 2 else {})


@pytest.mark.slow
@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("method", METHODS)
def test_proof_of_goal_holds_for_all_trees(tmp_path, method, goal, count):
    for seed in range(5 * count):
        check_case(tmp_path, seed, method, goal, **limits_of(seed))


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("method", METHODS)
def test_proof_of_goal_of_few_tables_holds(tmp_path, method, goal):
    for seed in range(3):
        check_case(tmp_path, seed, method, goal, **limits_of(seed + 5))


def check_both_checkers(folder, cases, most):
    """Compare the checker and the page on proofs, and on at most `most` changes of each; return how many changes both accept."""
    files = []
    own = []
    honest = []
    for seed, method, goal in cases:
        proved_file(folder, seed, method, goal, **limits_of(seed))
        document = json.loads((folder / "model.json").read_text())
        rows = load(folder / "rows.csv", document).training
        lines = read_lines(folder / "proof.jsonl.gz")
        changed = list(changed_proofs(lines))
        picked = np.random.default_rng(seed).permutation(len(changed))[:most].tolist()
        for proof in (lines, *(changed[k] for k in picked)):
            text = "\n".join(map(json.dumps, proof))
            (folder / "changed").write_text(text)
            found, _ = check_model_proof(document, rows, folder / "changed")
            files.append((json.dumps(document), text, (folder / "rows.csv").read_text()))
            own.append([f.verdict for f in found] == ["proved"])
            honest += [own[-1]] if proof is lines else []
    assert all(honest)
    assert page(files) == own
    return sum(own) - len(honest)


def test_checkers_agree_on_changed_proofs_of_few_goals(tmp_path):
    cases = [(seed, METHODS[seed % 2], GOALS[seed // 2 % 2]) for seed in range(8)]
    assert check_both_checkers(tmp_path, cases, 6)


@pytest.mark.slow
@seeds(300)
def test_checkers_agree_on_changed_proofs_of_goals(tmp_path, seed):
    check_both_checkers(tmp_path, [(seed, METHODS[seed % 2], GOALS[seed // 2 % 2])], 25)


@pytest.mark.slow
def test_goal_with_more_than_1000_thresholds_is_proved(tmp_path):
    """With a price of leaves, each threshold is a yes/no question; both checkers count their pairs."""
    rng = np.random.default_rng(1)
    values = rng.permutation(1050) / 1000
    wrong = rng.random(1050) < 0.2
    codes = ((values > 0.6) ^ wrong).astype(np.int32)
    schema = ColumnSchema(name="x", kind=ColumnKind.NUMERIC)
    table = Table(columns=(Column(schema=schema, cells=values),), row_numbers=np.arange(len(values)))
    labels = Labels(name="y", classes=("no", "yes"), codes=codes)
    asked = {"depth": 2, "goal": "f1", "positive": "yes", "leaf_penalty": 0.05, "min_leaf": 3}
    _file(table, labels, asked, tmp_path, "exact-numeric", proof=tmp_path / "proof.jsonl.gz")
    document = json.loads((tmp_path / "model.json").read_text())
    rows = load(tmp_path / "rows.csv", document).training
    found, _ = check_model_proof(document, rows, tmp_path / "proof.jsonl.gz")
    assert [f.verdict for f in found] == ["proved"]
    text = "\n".join(map(json.dumps, read_lines(tmp_path / "proof.jsonl.gz")))
    assert page([(json.dumps(document), text, (tmp_path / "rows.csv").read_text())]) == [True]


def test_proof_of_another_goal_is_not_enough(tmp_path):
    """The lines of F1 leave open whether a tree of higher MCC exists, or the file is refuted."""
    for seed in range(20):
        proved_file(tmp_path, seed, "exact", "f1")
        document = json.loads((tmp_path / "model.json").read_text())
        document["certificate"]["goal"]["maximise"] = document["parameters"]["goal"] = "mcc"
        (tmp_path / "model.json").write_text(json.dumps(document))
        try:
            found = verdict(verify(tmp_path / "model.json", tmp_path / "rows.csv", tmp_path / "proof.jsonl.gz"))
        except TrainerError:
            continue
        assert found == "refuted" or document["certificate"]["objective"] in (0, 1)


def test_steps_of_a_thousand_lines_are_read():
    """Each line with a step of its own, without nesting one reader in another."""
    steps = _Steps(iter([(k + 1, {"line": k}) for k in range(1000)]))
    assert all(len(list(steps.of_line(k))) == 1 for k in range(1000))
    assert steps.following is None


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("lie", ["classes", "recall", "fairness", "monotone"])
def test_goal_beside_what_training_refuses_is_refuted(goal, lie):
    """Lines count errors between other classes, and rates of weighted rows, which the goal does not."""
    model = {
        "method": "exact",
        "classes": ["no", "yes", *(["third"] if lie == "classes" else [])],
        "parameters": {"goal": goal, "positive": "yes"},
        "certificate": {"goal": {"positive": "yes", "maximise": goal, "weight": "1"}, "leaf_penalty": "0"},
    }
    sizes = [3] * len(model["classes"])
    if lie != "classes":
        assert claims.prices(model, sizes, Fraction(1)).verdict == "recounted"
        model["parameters"][lie] = "parity" if lie == "fairness" else "yes: 0.5"
    assert claims.prices(model, sizes, Fraction(1)).verdict == "refuted"
