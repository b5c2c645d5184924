"""The first tree is one that the method may return, and its bound holds for every tree of the method."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numba.core import event

from tests.seeds import seeds
from tests.trainer.oracles.exact import best_cost
from trainer.certificate import Limits
from trainer.cli.train import _first_tree_noter
from trainer.data.encoding import Scheme, encode_binary
from trainer.families.odt.grouping import make_groups
from trainer.methods.base import Solution
from trainer.methods.monitor import COMPILING, Monitor
from trainer.registry import METHODS, get
from trainer.solver_common.problem_setup import pose
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, MissingPolicy, Table
from trainer.training import first_tree, run
from trainer.training.first_tree import at_least_first_tree, grow_first_tree, report_first_tree
from trainer.training.run import TrainRequest, train
from trainer.tree.nodes import DraftLeaf, Tree
from trainer.tree.splits import goes_left


def random_rows(seed: int, *, empty: bool = True, most: int = 16) -> tuple[Table, Labels, np.ndarray]:
    """Return few rows with ties, duplicates, constant columns, empty cells, weights, and sometimes a single class."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(1, most))
    numbers = draw.integers(0, draw.integers(1, 5), n).astype(float)
    holed = draw.integers(0, 3, n).astype(float)
    policy = MissingPolicy.LEARN if empty and draw.random() < 0.5 else MissingPolicy.DROP
    if policy is MissingPolicy.LEARN:
        holed[draw.random(n) < 0.3] = np.nan
    letters = draw.integers(0, 3, n).astype(float)
    columns = (
        Column(schema=ColumnSchema(name="a", kind=ColumnKind.NUMERIC), cells=numbers),
        Column(schema=ColumnSchema(name="b", kind=ColumnKind.NUMERIC, missing=policy), cells=holed),
        Column(schema=ColumnSchema(name="c", kind=ColumnKind.CATEGORICAL, categories=("u", "v", "w")), cells=letters),
    )
    classes = int(draw.integers(1, 4))
    codes = draw.integers(0, classes, n).astype(np.int32)
    weights = np.ones(n, np.int64) if draw.random() < 0.5 else draw.integers(0, 5, n)
    weights[0] += 1
    table = Table(columns=columns, row_numbers=np.arange(1, n + 1))
    return table, Labels(name="y", classes=("k", "l", "m")[:classes], codes=codes), weights


def random_limits(seed: int) -> dict[str, object]:
    draw = np.random.default_rng(seed)
    chosen: dict[str, object] = {"depth": int(draw.integers(0, 4)), "leaf_penalty": float(draw.choice([0, 0.02, 0.1]))}
    chosen["min_leaf"] = int(draw.integers(1, 4))
    if draw.random() < 0.4:
        chosen["max_leaves"] = int(draw.integers(1, 5))
    if draw.random() < 0.3:
        chosen["forbidden"] = "c"
    return chosen


def assert_limits(tree: Tree, limits: dict[str, object]) -> None:
    assert max(tree.heights) <= limits["depth"]
    assert tree.n_leaves <= limits.get("max_leaves", 1 << 20)
    assert tree.n_leaves == 1 or min(leaf.rows for leaf in tree.leaves) >= limits["min_leaf"]
    assert limits.get("forbidden") is None or 2 not in tree.used_columns


@seeds(300)
@pytest.mark.parametrize("method_id", ["exact", "exact-numeric"])
def test_first_tree_is_legal_and_bound_holds(seed: int, method_id: str):
    """The oracle is the plain recurrence over the features, without any code of the growth."""
    table, labels, weights = random_rows(seed)
    limits = random_limits(seed)
    method = get(method_id)
    binary = {"bins": "4"} if method.binary else {}
    problem = pose(table, labels, method.settings(limits | binary), weights=weights)
    first = grow_first_tree(method, problem, method.settings(limits | binary))
    if first is None:
        assert len(labels.classes) == 1 or np.unique(labels.codes).size == 1 or not len(problem.binary.features)
        return
    tree = problem.tree(first.draft)
    assert_limits(tree, limits)
    every = problem.binary if method.binary else encode_binary(table, Scheme.ALL_THRESHOLDS)
    kept = [j for j, f in enumerate(every.features) if not (limits.get("forbidden") and f.column == 2)]
    bits = every.bits(table)[:, kept]
    cost, _ = best_cost(
        bits,
        labels.codes,
        weights,
        len(labels.classes),
        limits["depth"],
        problem.kappa,
        limits["min_leaf"],
        limits.get("max_leaves"),
    )
    best = 1 - cost / problem.n
    assert Fraction(problem.correct(tree), problem.n) - problem.leaf_penalty * tree.n_leaves <= best
    assert first.bound >= float(best) - 1e-12


@seeds(60)
def test_some_features_of_large_table_are_used(seed: int):
    table, labels, weights = random_rows(seed)
    method = get("exact")
    settings = method.settings({"depth": 2, "leaf_penalty": 0.02, "bins": 4})
    problem = pose(table, labels, settings, weights=weights)
    cells = max(3, len(problem.binary.features) // 2) * len(table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(first_tree, "MOST_CELLS", cells)
        first = grow_first_tree(method, problem, settings)
    if first is None:
        assert np.unique(labels.codes).size == 1 or not problem.binary.features
        return
    bits = problem.binary.bits(table)
    cost, _ = best_cost(bits, labels.codes, weights, len(labels.classes), 2, problem.kappa)
    assert problem.objective(problem.tree(first.draft)) <= float(1 - cost / problem.n) + 1e-12 <= first.bound + 2e-12


@seeds(120)
def test_first_tree_of_odt_asks_its_groups(seed: int):
    table, labels, weights = random_rows(seed, empty=False)
    method = get("odt")
    settings = method.settings({"depth": 2, "bins": 2 + seed % 3, "max_card": seed % 2})
    problem = pose(table, labels, settings, weights=weights)
    first = grow_first_tree(method, problem, settings)
    if first is None:
        assert np.unique(labels.codes).size == 1 or len(table) == 1 or not problem.numeric.features
        return
    tree = problem.tree(first.draft)
    groups = make_groups(problem, settings["bins"], settings["max_card"])
    for node in tree.branches:
        g, categories = groups.question(node.split)
        assert (np.isin(groups.cat[:, g], categories) == goes_left(node.split, problem.matrix)).all()
    best = method.solve(problem, settings, Monitor(Limits()))
    assert problem.objective(tree) <= best.bound <= first.bound + 1e-12


@seeds(30)
def test_first_tree_under_costs_is_no_better_than_optimum(seed: int):
    table, labels, weights = random_rows(seed)
    if len(labels.classes) < 2 or np.unique(labels.codes).size < 2:
        return
    limits = {"depth": 2, "costs": "k>l=3; l>k=0.5", "leaf_penalty": 0.01}
    request = TrainRequest(table=table, labels=labels, method="exact-numeric", parameters=limits, weights=weights)
    method = get(request.method)
    problem = run.training_problem(request)
    first = grow_first_tree(method, problem, method.settings(limits))
    certificate = train(request).certificate
    if first is not None:
        assert problem.objective(problem.tree(first.draft)) <= certificate.objective + 1e-12
        assert certificate.objective <= first.bound + 1e-12


def table_of() -> dict[str, object]:
    """Return 40 rows of two classes, which a threshold on `a` separates."""
    n = 40
    numbers = np.arange(n) % 4.0
    columns = (
        Column(schema=ColumnSchema(name="a", kind=ColumnKind.NUMERIC), cells=numbers),
        Column(
            schema=ColumnSchema(name="c", kind=ColumnKind.CATEGORICAL, categories=("u", "v", "w")),
            cells=np.arange(n) % 3.0,
        ),
    )
    labels = Labels(name="y", classes=("k", "l"), codes=(numbers > 1).astype(np.int32))
    return {"table": Table(columns=columns, row_numbers=np.arange(1, n + 1)), "labels": labels}


UNKNOWN_LIMITS = (
    ("exact", {"recall": "k: 0.9"}),
    ("exact", {"forbidden_pairs": "a + c"}),
    ("exact", {"goal": "f1", "leaf_penalty": 0}),
    ("exact", {"max_columns": 1}),
    ("bivariate", {"min_node": 5}),
    ("odt", {"topology": "imbalanced"}),
    ("odt", {"sensitivity": "0.9"}),
    ("binoct", {}),
)


@pytest.mark.parametrize(("method_id", "parameters"), UNKNOWN_LIMITS)
def test_no_first_tree_under_limits_that_growth_ignores(method_id: str, parameters: dict[str, object]):
    method = get(method_id)
    rows = table_of()
    settings = method.settings(parameters)
    assert grow_first_tree(method, pose(rows["table"], rows["labels"], settings), settings) is None


@pytest.mark.parametrize("method", [m for m in METHODS if m.precompile], ids=lambda m: m.id)
def test_methods_with_kernels_have_a_first_tree(method):
    rows = table_of()
    settings = method.settings({})
    problem = pose(rows["table"], rows["labels"], settings)
    first = grow_first_tree(method, problem, settings)
    assert first.leaves > 1
    assert problem.correct(problem.tree(first.draft)) > np.bincount(problem.y).max()


def compile_until_shown(problem, settings, monitor):
    """Compile until a tree is shown, at most 20 s, and return a leaf."""
    until = time.monotonic() + 20
    with event.trigger_event("numba:compile", {}):
        while monitor.draft is None and time.monotonic() < until:
            time.sleep(0.01)
    return Solution(draft=DraftLeaf(), bound=1.0, finished=False)


@pytest.mark.parametrize("penalty", ["0", "auto"])
def test_first_tree_is_reported_while_kernels_compile(monkeypatch, penalty):
    method = replace(get("exact"), solve=compile_until_shown)
    monkeypatch.setattr(run, "get", lambda name: method)
    records = []
    request = TrainRequest(**table_of(), method="exact", parameters={"leaf_penalty": penalty})
    result = train(request, sink=lambda progress, draft: records.append((progress, draft)))
    progress = next(progress for progress, draft in records if draft is not None)
    assert progress.phase == COMPILING
    assert progress.incumbent is not None
    assert (
        progress.bound is None
    )  # a perfect tree without a price of leaves meets its bound, which the search has to prove
    assert progress.compile_seconds > 0
    assert result.certificate.objective == progress.incumbent  # the search found only a leaf
    assert "first one" in result.certificate.note


def test_first_tree_has_no_objective_while_penalty_is_open():
    method = get("exact")
    rows = table_of()
    settings = method.settings({"leaf_penalty": "auto"})
    monitor = Monitor()
    report_first_tree(method, pose(rows["table"], rows["labels"], settings), settings, monitor)
    assert monitor.draft is not None
    assert monitor.incumbent is None


@pytest.mark.parametrize(("incumbent", "is_shown"), [(0.1, True), (1.0, False)])
def test_first_tree_is_shown_if_better_than_incumbent(incumbent: float, is_shown: bool):
    """A search may report the value of a leaf, without its tree, before its kernels compile."""
    method = get("exact")
    rows = table_of()
    settings = method.settings({"leaf_penalty": "0.01"})
    monitor = Monitor()
    monitor.report(incumbent=incumbent)
    report_first_tree(method, pose(rows["table"], rows["labels"], settings), settings, monitor)
    assert (monitor.draft is not None) == is_shown
    assert monitor.incumbent == (pytest.approx(0.98) if is_shown else incumbent)


def test_proved_solution_is_kept_beside_first_tree():
    method = get("exact")
    rows = table_of()
    settings = method.settings({"leaf_penalty": "0"})
    problem = pose(rows["table"], rows["labels"], settings)
    first = grow_first_tree(method, problem, settings)
    proved = Solution(draft=DraftLeaf(), bound=0.5)
    assert at_least_first_tree(problem, settings, proved, first.draft) is proved
    stopped = replace(proved, finished=False)
    assert at_least_first_tree(problem, settings, stopped, first.draft).draft == first.draft


def test_command_line_notes_first_tree_once(capsys):
    request = TrainRequest(**table_of(), method="exact", parameters={"leaf_penalty": "0"})
    problem = run.training_problem(request)
    first = grow_first_tree(get("exact"), problem, get("exact").settings({"leaf_penalty": "0"}))
    monitor = Monitor(sink=_first_tree_noter(request))
    monitor.compiling(True)
    monitor.report(incumbent=0.9, draft=first.draft)
    monitor.report(incumbent=0.95, draft=first.draft)
    lines = capsys.readouterr().err.splitlines()
    correct = problem.correct(problem.tree(first.draft))
    assert len(lines) == 1
    assert f"right for {correct} of {problem.n} rows with two leaves" in lines[0]
