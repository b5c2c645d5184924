"""Time limits hold on tables of any shape (`benchmarks/limits.py` measures more from outside)."""

from __future__ import annotations

import functools
import time
from fractions import Fraction

import numpy as np
import pytest

from trainer import make_classifier
from trainer.certificate import Status
from trainer.families.bivariate.node import list_pairs
from trainer.families.exact.search.solve import solve_binary
from trainer.families.mip.bendoct import BendOCT
from trainer.families.mip.binoct_model import BinOCT
from trainer.families.mip.flowoct import FlowOCT
from trainer.families.mip.instance import build
from trainer.families.mip.oct_model import OCT
from trainer.families.numeric.search import NumericProblem, solve_numeric
from trainer.milo import BuildStopped, Hooks, IntegerProgram, Point, SolveOptions, Termination, backend, total
from trainer.milo.exchange import Exchange
from trainer.milo.scip import ScipSession
from trainer.registry import METHODS
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits

# Time limit in seconds, and seconds by which a slow machine may exceed it. Without a limit these searches take hours.
LIMIT = 0.15
MORE = 15.0


def table(rows: int, columns: int, classes: int = 2, levels: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.integers(0, levels, (rows, columns)).astype(float) if levels else rng.normal(size=(rows, columns))
    return X, rng.permutation(np.arange(rows) % classes)


def compiled(method: str, X: np.ndarray, y: np.ndarray) -> None:
    """Fit a few similar rows, so that compilation does not count."""
    make_classifier(method, depth=1, time_limit=2.0).fit(X[:20, :3], y[:20])


@functools.cache
def ready(method: str) -> None:
    """Compile the kernels once for all shapes.

    Another shape compiles so little that the tolerance at the end covers it.
    """
    compiled(method, *table(20, 3))


def taken(method: str, X: np.ndarray, y: np.ndarray) -> tuple[float, Status]:
    """Return the processor seconds and the status of a fit. On a busy machine the clock says little."""
    model = make_classifier(method, time_limit=LIMIT)
    begun = time.process_time()
    model.fit(X, y)
    return time.process_time() - begun, model.certificate_.status


@pytest.mark.slow
def test_a_million_pairs_of_columns_stop_at_the_limit():
    X, y = table(60, 1500)
    compiled("bivariate", X, y)
    seconds, status = taken("bivariate", X, y)
    assert status is Status.TIME_LIMIT
    assert seconds < LIMIT + MORE


def test_pairs_of_columns_are_listed_in_order():
    for features in range(2, 12):
        assert np.array_equal(list_pairs(features), np.transpose(np.triu_indices(features, 1)))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["oct", "binoct", "flowoct"])
def test_a_model_over_thousands_of_questions_stops_at_the_limit(method):
    X, y = table(100, 4000)
    compiled(method, X, y)
    seconds, status = taken(method, X, y)
    assert status is Status.TIME_LIMIT
    assert seconds < LIMIT + MORE


@pytest.mark.parametrize("formulation", [OCT, BinOCT, FlowOCT])
def test_cancel_interrupts_model_of_few_long_rows(formulation):
    bits = np.random.default_rng(0).integers(0, 2, (40, 1200)).astype(np.uint8)
    instance = build(bits, np.arange(40, dtype=np.int32) % 2, depth=2, kappa=Fraction(0))
    asked = []
    with pytest.raises(BuildStopped):
        formulation(instance, halted=lambda: bool(asked.append(1)) or len(asked) > 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "ended"),
    [(SolveOptions(stopped=lambda: True), Termination.CANCELLED), (SolveOptions(time=1e-6), Termination.TIME)],
    ids=["cancelled", "out of time"],
)
def test_limit_interrupts_loading_of_a_model(options, ended, monkeypatch):
    model = IntegerProgram()
    x = model.binary("x", range(400))
    for i in range(400):
        model.add(total(x.values()) >= 1, f"r{i}")
    handed = []
    add = ScipSession.add
    monkeypatch.setattr(ScipSession, "add", lambda session, row: (handed.append(row), add(session, row)))
    assert backend("scip").solve(model, options=options).ended is ended
    assert len(handed) < len(model.rows)


def test_limit_stops_loading_of_hidden_rows():
    """The first lazy row is still passed to the solver, which would otherwise accept the forbidden point."""
    model = IntegerProgram()
    x = model.binary("x", range(400))
    over: list[int] = []
    session = ScipSession(Exchange(model, Hooks(), SolveOptions(stopped=lambda: bool(over))))
    rows = [(total(x.values()) + 0.001 * i * x[0] <= 1).named("sum") for i in range(600)]
    assert session.add_all(rows) == 600
    over.append(1)
    assert 0 < session.add_all(rows) < 300
    assert session.add_all(rows[:1]) == 1


def test_limit_stops_writing_of_long_cuts():
    bits = np.random.default_rng(0).integers(0, 2, (6000, 20)).astype(np.uint8)
    instance = build(bits, np.arange(6000, dtype=np.int32) % 2, depth=1, kappa=Fraction(0))
    over: list[int] = []
    form = BendOCT(instance, halted=lambda: bool(over))
    point = Point(form.assignment(instance.majority_leaf()))
    b = point[form.structure.b]
    w = point[form.structure.w]
    theta = np.ones(instance.n)
    every = len(form.benders.integral(b, w, theta))
    over.append(1)
    assert 0 < len(form.benders.integral(b, w, theta)) <= every // 2


SHAPES = {
    "wide": table(150, 1200),
    "tall": table(60_000, 6),
    "classes": table(1_000, 8, classes=200),
    "yes or no": table(500, 600, levels=2),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.id)
def test_every_method_keeps_its_limit(method, shape):
    X, y = SHAPES[shape]
    y = y % 2 if method.two_classes else y
    ready(method.id)
    assert taken(method.id, X, y)[0] < LIMIT + MORE


def test_ranking_thousands_of_columns_keeps_the_limit():
    X, y = table(50, 40)
    asked = []
    solution = solve_numeric(
        NumericProblem(X, y.astype(np.int32), n_classes=2, depth=2),
        SearchLimits(stop=lambda: bool(asked.append(1)) or len(asked) > 3),
    )
    assert len(asked) < 10
    assert (solution.shape, solution.cost) == (None, 25)
    assert solution.bound == 0


@pytest.mark.slow
def test_counting_pairs_of_thousands_of_features_keeps_the_limit():
    """Counting 32 million pairs can be interrupted, and happens only once."""
    bits = np.random.default_rng(0).integers(0, 2, (40, 4000)).astype(np.uint8)
    y = np.arange(40, dtype=np.int32) % 2
    asked = []
    given_up = solve_binary(
        BinaryProblem(bits, y, n_classes=2, depth=2, leaf_cost=Fraction(0)),
        limits=SearchLimits(stop=lambda: bool(asked.append(1)) or len(asked) > 2),
    )
    assert len(asked) < 6
    assert not given_up.optimal
    one = solve_binary(BinaryProblem(bits, y, n_classes=2, depth=1, leaf_cost=Fraction(0)))
    assert given_up.cost == one.cost < 20
    assert given_up.shape == one.shape
    solution = solve_binary(
        BinaryProblem(bits, y, n_classes=2, depth=2, leaf_cost=Fraction(0)), limits=SearchLimits(stop=lambda: False)
    )
    assert solution.optimal
    assert given_up.bound <= solution.cost
    brief = solve_binary(BinaryProblem(bits[:, :60], y, n_classes=2, depth=2, leaf_cost=Fraction(0)))
    assert solution.cost <= brief.cost


@pytest.mark.parametrize("seed", range(40))
def test_rows_that_are_merged_by_their_bytes_are_those_of_numpy(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 60))
    kinds = int(rng.integers(1, 20))
    X = rng.integers(0, 2, (n, kinds)).astype(np.uint8) if seed % 3 else np.zeros((n, kinds), np.uint8)
    y = rng.integers(0, 300, n).astype(np.int32)
    group = rng.integers(0, 3, n).astype(np.int32)
    made = build(X, y, depth=1, kappa=Fraction(0), group=group)
    named = np.unique(y, return_inverse=True)[1].reshape(-1)
    rows, counts = np.unique(np.column_stack([X[:, made.features], named, group]), axis=0, return_counts=True)
    assert np.array_equal(np.column_stack([made.X, made.y, made.group]), rows)
    assert np.array_equal(made.weight, counts)
