"""`monotone` and `fairness` in the exact methods agree with brute force, the mixed-integer methods and both checkers."""

from __future__ import annotations

import gzip
import itertools
import json
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.check.proof.changes import page
from trainer.certificate import Status
from trainer.check.recount import verdict, verify
from trainer.data.encoding import Scheme
from trainer.data.problem import Problem
from trainer.data.reader import load
from trainer.errors import InfeasibleError, ParameterError
from trainer.families.exact.rules import rule_fronts
from trainer.methods.base import Solution
from trainer.methods.monitor import Monitor
from trainer.registry import get
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table
from trainer.training.run import TrainRequest, save, train
from trainer.tree.nodes import Tree
from trainer.workbench.requests import WorkbenchSession

NAMES = ("a", "b", "c", "g")
CLASSES = ("no", "maybe", "yes")


class Shape(NamedTuple):
    """A tree of the brute force: the class of each row (-1 outside), leaves, and the first and last class of its leaves."""

    answers: tuple[int, ...]
    leaves: int
    first: int
    last: int
    columns: frozenset[int]


def table(rng: np.random.Generator) -> Problem:
    """Return a table of integers with ties, equal rows, constant columns and sometimes one class, weights or a penalty."""
    n = int(rng.integers(1, 11))
    cells = [rng.integers(0, rng.integers(1, 4), n).astype(float) for _ in NAMES]
    classes = int(rng.integers(2, 4))
    y = (cells[0] + cells[1] + rng.integers(0, 2, n)).astype(int) % classes
    if rng.random() < 0.1:
        y[:] = y[0]
    schema = [ColumnSchema(name=name, kind=ColumnKind.NUMERIC) for name in NAMES]
    columns = tuple(Column(schema=s, cells=v) for s, v in zip(schema, cells, strict=True))
    return Problem(
        table=Table(columns=columns, row_numbers=np.arange(1, n + 1)),
        labels=Labels(name="kind", classes=CLASSES[:classes], codes=y.astype(np.int32)),
        leaf_penalty=Fraction(int(rng.integers(0, 3)), 20),
        weights=rng.integers(1, 4, n) if rng.random() < 0.4 else None,
        scheme=Scheme.ALL_THRESHOLDS,
    )


def restrictions(rng: np.random.Generator, problem: Problem) -> dict[str, Any]:
    """Return random settings, among them a monotone column or rates of groups."""
    classes = problem.labels.classes
    asked: dict[str, Any] = {"depth": int(rng.integers(0, 3))}
    kind = int(rng.integers(0, 3))
    if kind != 1:
        chosen = rng.choice(NAMES, int(rng.integers(1, 3)), replace=False)
        asked["monotone"] = "; ".join(f"{name} {rng.choice(['up', 'down'])}" for name in chosen)
    if kind != 0:
        asked["fairness"] = "parity" if len(classes) == 2 and rng.random() < 0.6 else "opportunity"
        asked["fairness_column"] = "g"
        asked["fairness_class"] = str(rng.choice(["", classes[int(rng.choice(problem.y))]]))
        asked["fairness_delta"] = float(rng.choice([0, 0.1, 0.25, 0.5]))
    if rng.random() < 0.25:
        asked["recall"] = f"{classes[int(rng.choice(problem.y))]}: {rng.choice(['0.5', '0.75', '1'])}"
    if rng.random() < 0.25:
        asked["max_leaves"] = int(rng.integers(1, 4))
    if rng.random() < 0.25:
        asked["max_columns"] = int(rng.integers(0, 3))
    if rng.random() < 0.25:
        asked["forbidden_pairs"] = "a + b"
    if rng.random() < 0.25:
        asked["forbidden"] = str(rng.choice(NAMES))
    if rng.random() < 0.25:
        asked["min_leaf"] = int(rng.integers(2, 4))
    return asked


class Brute:
    """All trees of a table within the settings, over every threshold."""

    def __init__(self, problem: Problem, asked: dict[str, Any]) -> None:
        self.asked = asked
        self.X = np.column_stack([column.values for column in problem.table.columns])
        self.y = problem.y
        self.w = problem.row_weights
        self.classes = problem.labels.classes
        self.penalty = problem.leaf_penalty
        way = [text.split(" ") for text in asked.get("monotone", "").split("; ") if text]
        self.way = {NAMES.index(name): direction for name, direction in way}
        self.banned = asked.get("forbidden", "")
        self.pair = {0, 1} if asked.get("forbidden_pairs") else None

    def trees(self, rows: np.ndarray, height: int, above: frozenset[int]) -> set[Shape]:
        shapes = set()
        for k in range(len(self.classes)):
            shapes.add(Shape(tuple(np.where(rows, k, -1).tolist()), 1, k, k, frozenset()))
        for column, name in enumerate(NAMES) if height else ():
            if name == self.banned or (self.pair and self.pair <= above | {column}):
                continue
            for cut in np.unique(self.X[rows, column])[:-1]:
                sides = [rows & (self.X[:, column] <= cut), rows & (self.X[:, column] > cut)]
                if min(self.w[side].sum() for side in sides) < self.asked.get("min_leaf", 1):
                    continue
                both = [self.trees(side, height - 1, above | {column}) for side in sides]
                for low, high in itertools.product(*both):
                    lower, upper = (high, low) if self.way.get(column) == "down" else (low, high)
                    if column not in self.way or lower.last <= upper.first:
                        answers = tuple(map(max, low.answers, high.answers))
                        columns = low.columns | high.columns | {column}
                        span = min(low.first, high.first), max(low.last, high.last)
                        shapes.add(Shape(answers, low.leaves + high.leaves, *span, columns))
        return shapes

    def admits(self, shape: Shape) -> bool:
        asked = self.asked
        answers = np.array(shape.answers)
        if shape.leaves > asked.get("max_leaves", 99) or len(shape.columns) > asked.get("max_columns", 99):
            return False
        if asked.get("recall"):
            name, share = asked["recall"].split(": ")
            own = self.y == self.classes.index(name)
            if self.w[own & (answers == self.y)].sum() < Fraction(share) * int(self.w[own].sum()):
                return False
        return self.rate_difference(answers) <= Fraction(str(asked.get("fairness_delta", 1)))

    def rate_difference(self, answers: np.ndarray) -> Fraction:
        if "fairness" not in self.asked:
            return Fraction(0)
        name = self.asked["fairness_class"]
        label = self.classes.index(name) if name else int(self.y.max())
        among = np.ones(len(self.y), bool) if self.asked["fairness"] == "parity" else self.y == label
        groups = [among & (self.X[:, 3] == g) for g in np.unique(self.X[among, 3])]
        rates = [Fraction(int(self.w[g & (answers == label)].sum()), int(self.w[g].sum())) for g in groups]
        return max(rates) - min(rates)

    def best(self) -> Fraction | None:
        """Return the best objective, or None if no tree is within the settings."""
        n = int(self.w.sum())
        objectives = [
            Fraction(int(self.w[np.array(shape.answers) == self.y].sum()), n) - self.penalty * shape.leaves
            for shape in self.trees(np.ones(len(self.y), bool), self.asked["depth"], frozenset())
            if self.admits(shape)
        ]
        return max(objectives, default=None)

    def is_monotone(self, tree: Tree, node: int = 0) -> tuple[int, int]:
        """Return the first and last class below a node, and check the order along the monotone columns."""
        v = tree.nodes[node]
        if v.split is None:
            return v.label, v.label
        low = self.is_monotone(tree, v.left)
        high = self.is_monotone(tree, v.right)
        direction = self.way.get(v.split.feature)
        assert direction != "up" or low[1] <= high[0]
        assert direction != "down" or high[1] <= low[0]
        return min(low[0], high[0]), max(low[1], high[1])


def solved(method: str, problem: Problem, asked: dict[str, Any], monitor: Monitor | None = None) -> Solution:
    declared = get(method)
    encoding = {"binarise": "all-thresholds"} if declared.parameter("binarise") else {}
    settings = declared.settings({**asked, **encoding, "leaf_penalty": 0.0})
    declared.check(settings, problem.names)
    return declared.solve(problem, settings, monitor or Monitor())


def agrees(seed: int, method: str) -> bool:
    """Check a random case against brute force; return whether the case has a tree."""
    rng = np.random.default_rng(seed)
    problem = table(rng)
    asked = restrictions(rng, problem)
    brute = Brute(problem, asked)
    best = brute.best()
    if best is None:
        with pytest.raises(InfeasibleError):
            solved(method, problem, asked)
        return False
    solution = solved(method, problem, asked)
    tree = problem.tree(solution.draft)
    assert solution.finished
    assert solution.bound == pytest.approx(float(best), abs=1e-9)
    assert problem.objective(tree) == pytest.approx(float(best), abs=1e-9)
    brute.is_monotone(tree)
    answers = tree.predict(problem.matrix)
    assert brute.rate_difference(answers) <= Fraction(str(asked.get("fairness_delta", 1)))
    return True


@pytest.mark.parametrize("method", ["exact", "exact-numeric"])
def test_rules_in_few_random_tables_give_optimum(method):
    assert sum(agrees(seed, method) for seed in range(20)) > 10


@pytest.mark.slow
@pytest.mark.parametrize("method", ["exact", "exact-numeric"])
@seeds(400)
def test_rules_in_random_tables_give_optimum(seed, method):
    agrees(1000 + seed, method)


def larger(rows: int, seed: int = 3) -> Problem:
    """Return a table whose best tree breaks some of the rules of RULES."""
    rng = np.random.default_rng(seed)
    cells = [rng.integers(0, 5, rows).astype(float) for _ in NAMES[:3]]
    cells.append(rng.integers(0, 2, rows).astype(float))
    y = ((cells[0] + 2 * cells[3] + rng.integers(0, 3, rows)) > 4).astype(np.int32)
    y[cells[1] == 2] = 1
    schema = [ColumnSchema(name=name, kind=ColumnKind.NUMERIC) for name in NAMES]
    columns = tuple(Column(schema=s, cells=v) for s, v in zip(schema, cells, strict=True))
    return Problem(
        table=Table(columns=columns, row_numbers=np.arange(1, rows + 1)),
        labels=Labels(name="kind", classes=("no", "yes"), codes=y),
        leaf_penalty=Fraction(1, 100),
        scheme=Scheme.ALL_THRESHOLDS,
    )


RULES = {
    "monotone": {"monotone": "b up"},
    "parity": {"fairness": "parity", "fairness_column": "g", "fairness_delta": 0.05},
    "both": {"monotone": "b up; a up", "fairness": "opportunity", "fairness_column": "g", "fairness_delta": 0.1},
}


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("depth", [2, 3])
def test_rules_give_objective_of_mixed_integer_method(rule, depth):
    problem = larger(40)
    asked = {"depth": depth, **RULES[rule]}
    exact = solved("exact", problem, asked)
    integer = solved("bendoct-accelerated", problem, asked)
    assert exact.finished
    assert integer.finished
    trees = [problem.objective(problem.tree(s.draft)) for s in (exact, integer)]
    assert trees[0] == pytest.approx(trees[1], abs=1e-9)
    assert trees[0] <= problem.objective(problem.tree(solved("exact", problem, {"depth": depth}).draft)) + 1e-9


@pytest.mark.parametrize("rule", RULES)
def test_stopped_search_within_rules_gives_tree_and_valid_bound(rule):
    problem = larger(60)
    best = solved("exact", problem, {"depth": 2, **RULES[rule]})
    monitor = Monitor()
    monitor.stop(Status.TIME_LIMIT)
    stopped = solved("exact", problem, {"depth": 2, **RULES[rule]}, monitor)
    assert not stopped.finished
    assert problem.objective(problem.tree(stopped.draft)) <= best.bound + 1e-9 <= stopped.bound + 2e-9


def test_too_many_rates_leave_tree_and_valid_bound_with_note(monkeypatch):
    problem = larger(60)
    asked = {"depth": 3, **RULES["parity"]}
    best = solved("exact", problem, asked)
    monkeypatch.setattr(rule_fronts, "MOST_VECTORS", 20)
    cut = solved("exact", problem, asked)
    assert not cut.finished
    assert "too many combinations of rates" in cut.note
    assert problem.objective(problem.tree(cut.draft)) <= best.bound + 1e-9 <= cut.bound + 2e-9


@pytest.mark.parametrize("method", ["exact", "exact-numeric"])
@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"fairness": "parity", "fairness_column": "g", "class_weight": "balanced"}, "class_weight 'balanced'"),
        ({"fairness": "parity", "fairness_column": "g", "costs": "yes>no=3"}, "must be none with costs"),
        ({"monotone": "a up", "column_price": "a=1"}, "not possible with column_price"),
        ({"monotone": "a up", "goal": "f1"}, "not possible with the goal F1"),
        ({"monotone": "a up", "optimal_trees": 3}, "not possible with optimal_trees"),
    ],
)
def test_rules_refuse_settings_that_they_do_not_support(method, asked, message):
    with pytest.raises(ParameterError, match=message):
        solved(method, larger(20), {"depth": 2, **asked})


def test_rules_refuse_unlimited_depth_and_workbench(tmp_path):
    exact = get("exact")
    settings = exact.settings({"depth": None, "leaf_penalty": 0.01, "monotone": "a up"})
    with pytest.raises(ParameterError, match="it needs a number of questions with monotone"):
        exact.check(settings, larger(20).names)
    rows, labels, _ = load(written(tmp_path, 20), target="kind")
    for method in ("exact", "exact-numeric"):
        with pytest.raises(ParameterError, match="wishes and good trees do not support it"):
            WorkbenchSession(
                TrainRequest(table=rows, labels=labels, method=method, parameters={"depth": 2, "monotone": "a up"})
            )


@pytest.mark.parametrize("method", ["exact", "exact-numeric"])
def test_monotone_column_of_categories_is_refused(method):
    problem = larger(20)
    schema = ColumnSchema(name="a", kind=ColumnKind.CATEGORICAL, categories=tuple("vwxyz"))
    columns = (Column(schema=schema, cells=problem.table.columns[0].values), *problem.table.columns[1:])
    changed = Problem(
        table=Table(columns=columns, row_numbers=problem.table.row_numbers),
        labels=problem.labels,
        scheme=Scheme.ALL_THRESHOLDS,
    )
    with pytest.raises(ParameterError, match="'a' is not encoded by thresholds"):
        solved(method, changed, {"depth": 2, "monotone": "a up"})


def written(folder, rows: int):
    problem = larger(rows)
    lines = zip(*(column.values.astype(int) for column in problem.table.columns), problem.y, strict=True)
    path = folder / "rows.csv"
    path.write_text(
        "\n".join(["a,b,c,g,kind", *(f"{a},{b},{c},{g},{CLASSES[2 * k]}" for a, b, c, g, k in lines)]) + "\n"
    )
    return path


@pytest.mark.parametrize(("method", "depth"), [("exact", 2), ("exact", 4), ("exact-numeric", 2)])
@pytest.mark.parametrize("rule", ["monotone", "parity"])
def test_both_checkers_accept_ruled_proof_and_no_higher_goal(tmp_path, method, depth, rule):
    data = written(tmp_path, 24)
    rows, labels, _ = load(data, target="kind")
    proof = tmp_path / "proof.jsonl.gz"
    path = tmp_path / "model.json"
    asked = {"depth": depth, "leaf_penalty": 0.02, **RULES[rule]}
    request = TrainRequest(table=rows, labels=labels, method=method, parameters=asked, proof=proof)
    result = train(request)
    save(result.model, path)
    assert verdict(verify(path, data, proof)) == "proved"
    lines = [json.loads(line) for line in gzip.decompress(proof.read_bytes()).splitlines()]
    higher = [lines[0] | {"goal": lines[0]["goal"] + lines[0]["scale"]}, *lines[1:]]
    texts = ["\n".join(map(json.dumps, some)) for some in (lines, higher)]
    assert page([(path.read_text(), text, data.read_text()) for text in texts]) == [True, False]
    if depth == 2:
        assert verdict(verify(path, data)) == "proved", "the space is small, so the checker searches it"
        document = json.loads(path.read_text())
        document["certificate"]["bound"] -= 0.05
        document["certificate"]["objective"] -= 0.05
        path.write_text(json.dumps(document))
        assert verdict(verify(path, data, proof)) == "refuted"
