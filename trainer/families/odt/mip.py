"""Solve ODT by mixed-integer programming, with start trees and progress."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.data.problem import Problem, SettingNames
from trainer.errors import InfeasibleError, ParameterError, SolverError
from trainer.families.odt.goals import orient_classes
from trainer.families.odt.grouping import predict_labels, relabel
from trainer.families.odt.groups import Groups
from trainer.families.odt.levels import LevelLimitReached
from trainer.families.odt.model import ModelTechniques, OdtModel
from trainer.families.odt.plan import grow_greedy_tree
from trainer.families.odt.search import SubsetSearch
from trainer.families.odt.topology import Shape
from trainer.goal import Goal, downwards, needed_rows, required_text, share
from trainer.methods.base import Parameter, Settings, Solution
from trainer.methods.monitor import Monitor
from trainer.milo import Hooks, Termination, backend
from trainer.solver_common.tree_model import TreeProgram, drive, options_of, record_limit, solve_record
from trainer.tree.nodes import Draft, DraftLeaf

INTEGER_GAP = 0.5  # solvers may stop at this absolute gap, because objective values are integers
MAX_CELLS = 3_000_000  # limit on the constraints of a model


def parse_techniques(text: str) -> ModelTechniques:
    """Return all techniques but those named in `text`. Raises ParameterError for an unknown name."""
    out = [word.strip() for word in text.split(",") if word.strip()]
    unknown = [word for word in out if word not in ("anchor", "relax", "strengthen")]
    if unknown:
        raise ParameterError(
            {"without": f"'{unknown[0]}' is not a technique. Choose among anchor, relax and strengthen."}
        )
    return ModelTechniques(**dict.fromkeys(out, False))


def _check_techniques(settings: Settings, names: SettingNames) -> None:
    parse_techniques(settings["without"])


MIP = (
    Parameter(
        name="first_tree", type="choice", default="cart", choices=("cart", "exact", "none"), label="First tree of a solver",
        help="The tree the solver starts from: a greedy tree (CART), the tree of the exact search, or none.", advanced=True,
    ),
    Parameter(
        name="exact_seconds", type="number", default=5.0, minimum=0, maximum=86_400, label="Exact search first",
        help="How long the exact search may look for the first tree, with first_tree=exact.", unit="s", advanced=True,
    ),
    Parameter(
        name="without", type="text", default="", label="Leave out of the model",
        help="Techniques of the paper to leave out, for comparison: anchor, relax, strengthen.", advanced=True,
        check=_check_techniques,
    ),
)  # fmt: skip


class SolverTask:
    """The objective of a solver: row weights by class, required weights, and values in the unit of the goal."""

    def __init__(self, problem: Problem, groups: Groups, goal: Goal | None) -> None:
        self.problem = problem
        self.goal = goal
        self.groups = groups
        self.classes = tuple(range(problem.n_classes))
        self.value = (1,) * problem.n_classes
        self.least = (0,) * problem.n_classes
        if goal is not None:
            self.groups, (a, b) = orient_classes(problem, groups, goal)
            self.classes = (a, b)
        self.rows = tuple(int(self.groups.w[self.groups.y == k].sum()) for k in range(problem.n_classes))
        if goal is not None:
            weight = Fraction(goal.weight)
            self.value = {
                "accuracy": (weight.numerator, weight.denominator), "sensitivity": (0, 1), "specificity": (1, 0),
            }[goal.maximise]  # fmt: skip
            self.least = (needed_rows(goal.specificity, self.rows[0]), needed_rows(goal.sensitivity, self.rows[1]))
        self.top = sum(v * n for v, n in zip(self.value, self.rows, strict=True))

    def score(self, draft: Draft) -> int | None:
        """Return the objective of a tree, in units; None if it misses a required weight."""
        right = predict_labels(draft, self.problem.matrix) == self.groups.y
        correct = [int(self.groups.w[right & (self.groups.y == k)].sum()) for k in range(len(self.rows))]
        if any(n < least for n, least in zip(correct, self.least, strict=True)):
            return None
        return sum(v * n for v, n in zip(self.value, correct, strict=True))

    def share(self, units: int) -> float:
        """Return units as a share of the maximum; the share is 1 if there are no rows."""
        return float(share(units, self.top))


class GroupModel(TreeProgram[Draft]):
    """Driver callbacks of the model over distinct rows; values are integer units of the goal."""

    def __init__(self, task: SolverTask, form: OdtModel, monitor: Monitor) -> None:
        self.task = task
        self.form = form
        self.monitor = monitor
        self.model = form.model
        self.best: int | None = None
        self.draft: Draft | None = None

    def hooks(self) -> Hooks:
        """Return hooks without lazy rows that prefer many cheap nodes."""
        hooks = Hooks()
        hooks.many_nodes = True
        return hooks

    def read(self, values: np.ndarray) -> Draft:
        """Return the tree of a point; tests above two leaves are chosen again by counting if that is valid."""
        return self.form.read(values, best_last=True)

    def consider(self, tree: Draft) -> None:
        """Store and report a tree if it improves the incumbent."""
        value = self.task.score(tree)
        if value is not None and (self.best is None or value > self.best):
            self.best = value
            self.draft = relabel(tree, self.task.classes)
            self.monitor.report(incumbent=self.task.share(value), draft=self.draft)

    @property
    def value(self) -> Fraction | None:
        """Objective of the incumbent, in units."""
        return None if self.best is None else Fraction(self.best)

    @property
    def top(self) -> Fraction:
        """Objective if every row is correct, in units."""
        return Fraction(self.task.top)

    def floor(self, bound: float) -> Fraction:
        """Round a bound down to integer units."""
        return Fraction(_round_bound(bound))

    def progress(self, bound: float, nodes: int) -> bool:
        """Report the bound as a share; return whether to stop."""
        share = None if math.isinf(bound) else self.task.share(max(_round_bound(bound), self.best or 0))
        self.monitor.report(bound=share, nodes=nodes)
        return self.monitor.stopped()

    def infeasible(self) -> InfeasibleError:
        """Return an error without a message; the caller computes what is reachable."""
        return InfeasibleError("")


def solve_mip(
    problem: Problem,
    groups: Groups,
    shape: Shape,
    goal: Goal | None,
    settings: Settings,
    monitor: Monitor,
    solution_fields: dict[str, Any],
) -> Solution:
    """Solve the model by the solver of the settings. Raises InfeasibleError if no tree reaches the required shares."""
    solver = backend(settings["solver"])
    task = SolverTask(problem, groups, goal)
    _check_size(task.groups, shape)
    monitor.report(phase="model")
    form = OdtModel(
        task.groups, shape, least=task.least, value=task.value, techniques=parse_techniques(settings["without"])
    )
    program = GroupModel(task, form, monitor)
    for draft in first_trees(task, shape, settings, monitor):
        program.consider(draft)
    start = program.best
    monitor.report(phase="search")
    points = _assignments(form, task, program.draft)
    try:
        driven = drive(program, solver, options_of(settings, monitor), absolute_gap=INTEGER_GAP, starts=points)
    except InfeasibleError:
        raise _unreachable_error(task, lambda one: _best_share(one, shape, settings, monitor)) from None
    if program.draft is None or program.best is None:
        raise SolverError(
            "The search ended before it found a tree with the required shares. Allow more time, or relax one of them."
        )
    outcome = driven.outcome
    optimal = driven.bound == program.best
    record_limit(monitor, outcome, proved=optimal)
    return Solution(
        draft=program.draft,
        bound=task.share(int(driven.bound)),
        finished=outcome.ended is Termination.OPTIMAL or optimal,
        nodes=outcome.nodes,
        solver=outcome.solver,
        solver_version=outcome.version,
        warm_start_objective=None if start is None else task.share(start),
        evidence=(solve_record(outcome, form.model),),
        **solution_fields,
    )


def first_trees(task: SolverTask, shape: Shape, settings: Settings, monitor: Monitor) -> list[Draft]:
    """Return the start trees of the settings and the constant trees; some constant tree reaches each required share."""
    if settings["first_tree"] == "none":
        return []
    trees: list[Draft] = [DraftLeaf(label=k) for k in range(len(task.rows))]
    g = task.groups
    heavy = replace(g, w=g.w * np.asarray(task.value, np.int64)[g.y]) if min(task.value) > 0 else g
    trees.append(grow_greedy_tree(heavy, shape))
    if settings["first_tree"] == "exact":
        end = monitor.elapsed() + settings["exact_seconds"]
        search = SubsetSearch(
            groups=heavy,
            root=shape,
            stopped=lambda: monitor.stopped() or monitor.elapsed() > end,
            on_incumbent=lambda _, draft: trees.append(draft),
        )
        try:
            draft = search.solve(shape, np.arange(len(g.y)))[1]
            if draft is not None:
                trees.append(draft)
        except LevelLimitReached:
            pass
    return trees


def _assignments(form: OdtModel, task: SolverTask, draft: Draft | None) -> tuple[np.ndarray, ...]:
    if draft is None:
        return ()
    back = tuple(int(np.flatnonzero(np.asarray(task.classes) == k)[0]) for k in range(len(task.classes)))
    values = form.assignment(relabel(draft, back))
    return () if values is None else (values,)


def _best_share(task: SolverTask, shape: Shape, settings: Settings, monitor: Monitor) -> int | None:
    """Return the optimal value of a task; None if it is infeasible or not proved."""
    form = OdtModel(task.groups, shape, least=task.least, value=task.value)
    program = GroupModel(task, form, Monitor(monitor.limits))
    try:
        driven = drive(program, backend(settings["solver"]), options_of(settings, monitor), absolute_gap=INTEGER_GAP)
    except InfeasibleError:
        return None
    return program.best if driven.outcome.ended is Termination.OPTIMAL else None


def _unreachable_error(task: SolverTask, best_of: Callable[[SolverTask], int | None]) -> InfeasibleError:
    """Return the error for unreachable rates; it states the best specificity under the required sensitivity."""
    goal = task.goal
    assert goal is not None
    task_left = SolverTask(task.problem, task.groups, None)
    task_left.groups = task.groups
    task_left.classes = task.classes
    task_left.rows = task.rows
    task_left.least = (0, task.least[1])
    task_left.value = (1, 0)
    task_left.top = task.rows[0]
    best = best_of(task_left)
    message = (
        f"With a sensitivity of at least {required_text(goal.sensitivity or '0')}, no tree reaches a specificity of "
        f"{required_text(goal.specificity or '0')}"
    )
    if best is None:
        return InfeasibleError(f"{message}. Relax one of them, or allow a larger topology.")
    reached = share(best, task.rows[0])
    return InfeasibleError(
        f"{message}: the best is {downwards(reached)}. Relax one of them, or allow a larger topology.",
        best=float(reached),
        of="specificity",
    )


def _check_size(groups: Groups, shape: Shape) -> None:
    rows = 2 * len(groups.y) * shape.nodes
    if rows > MAX_CELLS:
        raise ParameterError(
            {"solver": f"The model would have about {rows:,} rows, but the limit is {MAX_CELLS:,}. Use solver=search."}
        )


def _round_bound(bound: float) -> int:
    return math.floor(bound + 1e-6 * max(1.0, abs(bound) * 1e-3))
