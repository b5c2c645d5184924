"""The solver interface: one test suite for all solvers."""

from __future__ import annotations

import math
import threading
import time

import numpy as np
import pytest

from trainer.errors import ParameterError, SolverError
from trainer.milo import BACKENDS, Hooks, IntegerProgram, NodeInfo, Row, SolveOptions, Termination, backend, total
from trainer.milo import gurobi as gurobi_module
from trainer.milo import scip as scip_module

backends = pytest.mark.parametrize("name", BACKENDS)


def knapsack(items: int, seed: int = 0) -> tuple[IntegerProgram, object, np.ndarray, np.ndarray]:
    """Return a knapsack with 0/1 items, its variables, values and weights."""
    r = np.random.default_rng(seed)
    value = r.integers(5, 40, items)
    weight = r.integers(5, 40, items)
    model = IntegerProgram()
    x = model.binary("x", range(items))
    model.add(total(int(weight[i]) * x[i] for i in range(items)) <= int(weight.sum() // 2), "capacity")
    model.maximize(total(int(value[i]) * x[i] for i in range(items)))
    return model, x, value, weight


def brute_force(
    items: int, value: np.ndarray, weight: np.ndarray, forbidden: set[tuple[int, int]] = frozenset()
) -> float:
    points = (np.arange(1 << items)[:, None] >> np.arange(items)) & 1
    allowed = points @ weight <= weight.sum() // 2
    for i, j in forbidden:
        allowed &= points[:, i] + points[:, j] <= 1
    return float((points @ value)[allowed].max())


class Pairs(Hooks):
    """Hidden rows, by which some pairs of items exclude each other."""

    lazy = True

    def __init__(self, x: object, pairs: set[tuple[int, int]]) -> None:
        self.x = x
        self.pairs = pairs
        self.reports: list = []
        self.accepted: list = []

    def on_integral(self, point, origin):
        v = point[self.x]
        rows = [(self.x[i] + self.x[j] <= 1).named("pair") for i, j in self.pairs if v[i] + v[j] > 1.5]
        if not rows:
            self.accepted.append(v.copy())
        return rows

    def on_progress(self, report):
        self.reports.append(report)
        return False


@pytest.mark.slow
@backends
@pytest.mark.parametrize("seed", range(12))
def test_hidden_rows_are_obeyed_and_the_optimum_is_proved(name, seed):
    model, x, value, weight = knapsack(9, seed)
    r = np.random.default_rng(seed)
    pairs = {tuple(sorted(r.choice(9, 2, replace=False).tolist())) for _ in range(10)}
    hooks = Pairs(x, pairs)
    solution = backend(name).solve(model, hooks, SolveOptions(absolute_gap=0.5))
    best = brute_force(9, value, weight, pairs)
    assert solution.ended is Termination.OPTIMAL
    assert solution.objective == pytest.approx(best)
    assert solution.bound - best < 1
    assert any(np.array_equal(a, solution.values[x.columns]) for a in hooks.accepted)


@backends
def test_progress_only_improves(name):
    model, x, _, _ = knapsack(30, 3)
    hooks = Pairs(x, {(i, i + 1) for i in range(0, 28, 2)})
    backend(name).solve(model, hooks, SolveOptions())
    bounds = [r.bound for r in hooks.reports if r.bound is not None]
    incumbents = [r.incumbent for r in hooks.reports if r.incumbent is not None]
    assert bounds
    assert bounds == sorted(bounds, reverse=True)
    assert incumbents == sorted(incumbents)


@backends
def test_start_that_violates_hidden_rows_is_rejected(name):
    model, x, value, weight = knapsack(6, 1)
    start = np.zeros(6)
    start[:2] = 1
    solution = backend(name).solve(model, Pairs(x, {(0, 1)}), SolveOptions(starts=(start,)))
    assert solution.values[0] + solution.values[1] <= 1
    assert solution.objective == pytest.approx(brute_force(6, value, weight, {(0, 1)}))


@backends
def test_proposals_reach_the_solver_and_are_checked(name):
    model, x, value, weight = knapsack(8, 2)
    points = (np.arange(256)[:, None] >> np.arange(8)) & 1
    forbidden = points[np.argmax(points @ value)].astype(float)  # this point exceeds the capacity
    feasible = np.zeros(8)

    class Proposing(Pairs):
        handed = False

        def propose(self):
            if self.handed:
                return ()
            self.handed = True
            return (forbidden, feasible)

    hooks = Proposing(x, {(2, 3)})
    solution = backend(name).solve(model, hooks, SolveOptions())
    assert hooks.handed or name == "gurobi"  # Gurobi calls hooks only at nodes, and may need none
    assert solution.objective == pytest.approx(brute_force(8, value, weight, {(2, 3)}))


@backends
def test_an_exception_in_a_hook_ends_the_solve_and_is_raised(name):
    model, x, _, _ = knapsack(10, 4)

    class Broken(Pairs):
        def on_integral(self, point, origin):
            raise ZeroDivisionError("planted")

    with pytest.raises(ZeroDivisionError, match="planted"):
        backend(name).solve(model, Broken(x, set()), SolveOptions())


@backends
def test_row_that_keeps_its_point_is_refused_or_dropped(name):
    model, x, value, weight = knapsack(7, 5)

    class Idle(Pairs):
        def on_integral(self, point, origin):
            return [(self.x[0] <= 1).named("idle")]

    solution = backend(name).solve(model, Idle(x, set()), SolveOptions())
    assert solution.objective == pytest.approx(brute_force(7, value, weight))
    assert solution.rows.get("idle", 0) == 0


@backends
def test_optimum_holds_if_only_lazy_rows_distinguish_columns(name):
    """Columns are symmetric, and no visible row limits the scores, which are traps for symmetry handling and dual fixing."""
    model = IntegerProgram()
    w = model.binary("w", range(4))
    score = model.continuous("score", range(4))
    model.add(total(w.values()) == 1, "one")
    model.maximize(total(score.values()))
    earned = [3, 1, 0, 2]  # label k earns this many scores

    class Labels(Hooks):
        lazy = True

        def on_integral(self, point, origin):
            k = int(point[w].argmax())
            return [
                (score[i] <= total(w[h] for h in range(4) if earned[h] > i)).named("earned")
                for i in range(4)
                if point[score][i] > (earned[k] > i) + 1e-6
            ]

    solution = backend(name).solve(model, Labels(), SolveOptions())
    assert solution.objective == pytest.approx(3)
    assert solution.bound == pytest.approx(3)
    assert solution.values[w.columns].argmax() == 0


@backends
def test_user_rows_tighten_and_keep_the_optimum(name):
    model, x, value, weight = knapsack(9, 6)
    pairs = {(0, 1), (1, 2), (0, 2), (3, 4)}

    class Cliques(Pairs):
        fractional = -1

        def on_fractional(self, point, info: NodeInfo):
            v = point[self.x]
            if v[0] + v[1] + v[2] > 1.01:
                return [(self.x[0] + self.x[1] + self.x[2] <= 1).named("clique", user=True)]
            return ()

    solution = backend(name).solve(model, Cliques(x, pairs), SolveOptions())
    assert solution.objective == pytest.approx(brute_force(9, value, weight, pairs))


@backends
def test_infeasible_model_is_reported(name):
    model, x, _, _ = knapsack(4)
    model.add(total(x.values()) >= 5)
    assert backend(name).solve(model).ended is Termination.INFEASIBLE


@backends
def test_no_time_gives_no_claim(name):
    model, _, value, _ = knapsack(5)
    solution = backend(name).solve(model, Hooks(), SolveOptions(time=0))
    assert solution.ended is Termination.TIME
    assert solution.values is None
    assert solution.bound >= value.sum() / 2


def hard(items: int = 60, seed: int = 1) -> tuple[IntegerProgram, np.ndarray]:
    """Return a market-split problem that no solver finishes soon, and a poor solution of it."""
    r = np.random.default_rng(seed)
    model = IntegerProgram()
    x = model.binary("x", range(items))
    slack = model.continuous("slack", range(6), upper=1e4)
    for k in range(6):
        a = r.integers(0, 100, items)
        left = total(int(a[i]) * x[i] for i in range(items))
        model.add(left - slack[k] <= int(a.sum() // 2))
        model.add(left + slack[k] >= int(a.sum() // 2))
    model.maximize(-total(slack.values()))
    start = np.zeros(model.size)
    start[slack.columns] = 1e4
    return model, start


@backends
def test_cancel_from_another_thread_keeps_incumbent(name):
    model, start = hard()
    cancel = threading.Event()
    known = threading.Event()

    class Seen(Hooks):
        lazy = True  # a lazy hook receives every point, and first the start

        def on_integral(self, point, origin):
            known.set()
            return ()

    threading.Thread(target=lambda: known.wait(600) and (time.sleep(0.3), cancel.set()), daemon=True).start()
    solution = backend(name).solve(model, Seen(), SolveOptions(stopped=cancel.is_set, time=6000, starts=(start,)))
    assert solution.ended is Termination.CANCELLED
    assert solution.values is not None
    assert solution.bound >= solution.objective
    assert model.violated(solution.values) is None


@backends
def test_the_time_limit_is_kept(name):
    model, _ = hard()
    begin = time.perf_counter()
    solution = backend(name).solve(model, Hooks(), SolveOptions(time=0.5))
    assert solution.ended is Termination.TIME
    assert time.perf_counter() - begin < 60  # without a limit it would take days


def test_nothing_without_a_clock_is_run_on_large_programs(monkeypatch):
    """SCIP polishes the vertices of its dives without checking the time."""
    seen = []
    real = scip_module._configure

    def configure(model, exchange):
        real(model, exchange)
        seen.append(model.getParam("lp/solutionpolishing"))

    monkeypatch.setattr(scip_module, "_configure", configure)
    monkeypatch.setattr(scip_module, "LARGE", 11)
    for items in (11, 12):
        model, _, value, weight = knapsack(items)
        assert backend("scip").solve(model, Hooks(), SolveOptions()).objective == brute_force(items, value, weight)
    assert seen == [3, 0]


def test_auto_is_the_open_solver_unless_a_full_licence_is_found(monkeypatch):
    import trainer.milo.choose as choose

    monkeypatch.setattr(choose, "licence", lambda: "small")
    assert backend("auto").name == "scip"
    monkeypatch.setattr(choose, "licence", lambda: "full")
    assert backend("auto").name == "gurobi"
    with pytest.raises(ParameterError, match="not a solver"):
        backend("cplex")


def test_a_model_above_the_licence_is_refused_before_the_solve():
    if gurobi_module.licence() != "small":
        pytest.skip("needs the size-limited licence of Gurobi")
    model = IntegerProgram()
    x = model.binary("x", range(2001))
    model.maximize(total(x.values()))
    with pytest.raises(SolverError, match="2000"):
        backend("gurobi").solve(model)


def test_rows_are_what_they_read_like():
    model = IntegerProgram()
    x = model.continuous("x", ("a", "b"), upper=9)
    row = 2 * x["a"] - (x["b"] - 1) + 3 <= x["a"] + 10
    assert isinstance(row, Row)
    values = np.array([5.0, 1.0])
    assert row.activity(values) == pytest.approx(4)
    assert row.upper == pytest.approx(6)
    assert row.violation(np.array([8.0, 0.0])) == pytest.approx(2 / 8)
    assert (x["a"] >= 3).violation(values) < 0
    with pytest.raises(SolverError, match="cannot hold"):
        model.add(total([]) >= 1)


def test_inconclusive_status_of_highs_is_an_error():
    """The limit of iterations is not one of the requested limits."""
    model = IntegerProgram()
    x = model.continuous("x", range(6), upper=1.0)
    for i in range(5):
        model.add(x[i] + x[i + 1] <= 1.5, f"pair{i}")
    model.maximize(total(x[i] for i in range(6)))
    with pytest.raises(SolverError, match="The result was discarded"):
        backend("highs").solve(
            model, options=SolveOptions(parameters={"simplex_iteration_limit": 0, "presolve": "off"})
        )
    assert backend("highs").solve(model).ended is Termination.OPTIMAL


def test_failed_scip_keeps_best_solution_and_proves_nothing(monkeypatch):
    """The error occurs in its linear programs, before the search and during it."""
    model, x, value, weight = knapsack(9)
    pairs = {(0, 1), (2, 3)}

    def gives_up(session):
        raise Exception("SCIP: error in LP solver!")

    def searches_then_gives_up(session):
        searched(session)
        _ended(session)
        gives_up(session)

    searched = scip_module._run
    _ended = scip_module._end_status
    monkeypatch.setattr(scip_module, "_run", gives_up)
    solution = backend("scip").solve(model, Pairs(x, pairs))
    assert solution.ended is Termination.FAILED
    assert solution.values is None
    assert solution.bound == math.inf
    monkeypatch.setattr(scip_module, "_run", searches_then_gives_up)
    solution = backend("scip").solve(model, Pairs(x, pairs))
    assert solution.ended is Termination.FAILED
    assert solution.objective == pytest.approx(brute_force(9, value, weight, pairs))
    assert solution.bound >= solution.objective


@backends
def test_time_in_hooks_has_callbacks_in_it_once(name):
    model, x, *_ = knapsack(8)

    class Slow(Pairs):
        def on_integral(self, point, origin):
            until = time.thread_time() + 0.02
            while time.thread_time() < until:
                pass
            return super().on_integral(point, origin)

    hooks = Slow(x, {(0, 1)})
    solution = backend(name).solve(model, hooks)
    assert 0.02 <= solution.hook_seconds <= solution.seconds
