"""Drive tree formulations: instance, warm start, solve, and claim.

A formulation builds a model over an Instance, converts trees to points and back, and provides the hooks of its lazy rows. `optimise`
solves a formulation; `solve_problem` is the `solve` of a method.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from trainer.constraints import group_codes
from trainer.data.problem import Problem
from trainer.dtypes import FloatArray
from trainer.errors import InfeasibleError, SolverError
from trainer.families.mip import instance as instances
from trainer.families.mip.first_tree import EXACT_SECONDS, WARM_START, Halted, known_trees, make_start, start_kind
from trainer.families.mip.instance import LEAF, ArrayTree, Instance
from trainer.families.mip.side import relaxations, side_constraints
from trainer.families.mip.side.base import RelaxedConstraint, SideConstraint, View
from trainer.methods.base import (
    ANSWER_COSTS,
    BINARISE,
    BINS,
    COMMON,
    DEPTH,
    MIP_GAP,
    SOLVER,
    Settings,
    Solution,
    having,
)
from trainer.methods.monitor import Monitor
from trainer.milo import (
    Backend,
    BuildStopped,
    Expression,
    Hooks,
    IntegerProgram,
    Outcome,
    Row,
    SolveOptions,
    Termination,
    Variables,
    backend,
    total,
    weighted,
)
from trainer.milo.lattice import Lattice, Prices
from trainer.solver_common.tree_model import TreeHooks, TreeProgram, drive, options_of, record_limit, solve_record
from trainer.tree.nodes import Draft, DraftLeaf

NOTHING_FOUND = (
    "The search ended before it found a tree that satisfies the constraints. Allow more time, or relax one of them."
)


SOLVER_FAILED = "The solver gave up before it found a tree that satisfies the constraints. Choose another solver, or relax one of them."


class Formulation(ABC):
    """A tree model over an instance; subclasses build it in `__init__`."""

    instance: Instance
    model: IntegerProgram

    @abstractmethod
    def assignment(self, tree: ArrayTree) -> FloatArray:
        """Return the values of all variables for a tree, float64 (model.size,)."""

    @abstractmethod
    def read(self, values: FloatArray) -> ArrayTree:
        """Return the tree of an integral point."""

    def improve_starts(self, trees: Sequence[ArrayTree]) -> list[ArrayTree]:
        """Return the start trees, improved if the formulation can do that."""
        return list(trees)

    def hooks(self) -> Hooks:
        """Return the hooks of lazy rows; none by default."""
        return Hooks()

    side: Sequence[SideConstraint] = ()

    def constrain(
        self,
        side: Sequence[SideConstraint],
        score: Callable[[int], Expression],
        b: Variables,
        p: Mapping[int, Expression],
        w: Mapping[tuple[int, int], Expression],
    ) -> None:
        """Add side constraints over the branchings, leaves and labels, and the score of each row."""
        self.side = tuple(side)
        self._view = View(instance=self.instance, model=self.model, b=b, p=p, w=w, score=score)
        for constraint in self.side:
            constraint.add(self._view)

    def fill_constraints(self, values: FloatArray, tree: ArrayTree) -> None:
        """Write the values of the side constraints' variables for a tree."""
        for constraint in self.side:
            constraint.fill(self._view, values, tree)

    def admits(self, tree: ArrayTree) -> bool:
        """Return whether the tree satisfies the side constraints."""
        return all(constraint.holds(self.instance, tree) for constraint in self.side)

    @cached_property
    def is_rough(self) -> bool:
        """True if the rows of the side constraints admit trees that the constraints exclude."""
        return any(constraint.is_rough(self.instance) for constraint in self.side)

    def exclude(self, tree: ArrayTree) -> Row:
        """Return a row that excludes exactly this tree with its labels."""
        view = self._view
        nodes = np.flatnonzero(tree.feature[1:] >= 0) + 1
        splits = weighted(view.b.columns[nodes - 1, tree.feature[nodes]], np.ones(len(nodes)))
        labels = total(view.w[int(v), int(tree.label[v])] for v in tree.leaves)
        return (splits + labels <= len(nodes) + len(tree.leaves) - 1).named("not-admitted")

    @property
    def max_leaves(self) -> int:
        """Maximum number of leaves of a tree of the formulation."""
        return 1 << self.instance.depth


@dataclass(frozen=True, kw_only=True)
class MipResult:
    """A tree with its exact value and a proved upper bound, in rows; `tree` is None if none was found in time."""

    tree: ArrayTree | None
    value: Fraction | None
    bound: Fraction
    outcome: Outcome
    start: ArrayTree | None = None

    @property
    def optimal(self) -> bool:
        """True if the bound proves the tree optimal."""
        return self.value is not None and self.bound <= self.value


Listener = Callable[[Fraction | None, float, int, ArrayTree | None], bool]


class InstanceModel(TreeProgram[ArrayTree]):
    """Driver callbacks of a formulation. Values are computed from the trees, not from the scores of points."""

    every_point = True

    def __init__(
        self, formulation: Formulation, listener: Listener = lambda *_: False, known: Fraction | None = None
    ) -> None:
        self.formulation = formulation
        self.listener = listener
        self.known = known
        self.model = formulation.model
        self.instance = formulation.instance
        self.is_rough = formulation.is_rough
        leaves = min(formulation.max_leaves, 1 << min(self.instance.depth, 12))
        self.lattice = Lattice(kappa=self.instance.kappa, leaves=leaves)
        self.best: Fraction | None = None
        self.tree: ArrayTree | None = None

    def hooks(self) -> Hooks:
        """Return the hooks of the formulation."""
        return self.formulation.hooks()

    def read(self, values: FloatArray) -> ArrayTree:
        """Return the tree of a point."""
        return self.formulation.read(values)

    def consider(self, tree: ArrayTree) -> None:
        """Make an admitted tree the incumbent if it is better."""
        value = self.instance.value(tree)
        if (self.best is None or value > self.best) and self.formulation.admits(tree):
            self.best = value
            self.tree = tree

    @property
    def value(self) -> Fraction | None:
        """Value of the incumbent: correct rows minus the price of leaves; None without one."""
        return self.best

    @property
    def top(self) -> Fraction:
        """Value if every row is correct with one leaf."""
        return Fraction(self.instance.total) - self.instance.kappa

    def floor(self, bound: float) -> Fraction:
        """Round a bound down to integer rows minus the price of integer leaves."""
        return self.lattice.floor(bound)

    def progress(self, bound: float, nodes: int) -> bool:
        """Report incumbent and bound to the listener; return whether to stop."""
        return self.listener(self.best, bound, nodes, self.tree)

    def forbids(self, tree: ArrayTree) -> Row | None:
        """Return the row that excludes a tree if the constraints do not admit it."""
        return None if self.formulation.admits(tree) else self.formulation.exclude(tree)


def optimise(
    formulation: Formulation,
    solver: Backend,
    *,
    options: SolveOptions | None = None,
    starts: Sequence[ArrayTree] = (),
    listener: Listener = lambda *_: False,
    known: Fraction | None = None,
) -> MipResult:
    """Solve a formulation; the search ends at the upper bound `known`, in rows.

    Raises InfeasibleError if no tree satisfies the constraints and SolverError if the claims contradict each other.
    """
    kind = InstanceModel(formulation, listener, known)
    usable = [tree for tree in starts if formulation.admits(tree)]
    for tree in usable:
        kind.consider(tree)
    first = kind.tree
    points = [formulation.assignment(tree) for tree in usable]
    driven = drive(kind, solver, options or SolveOptions(), absolute_gap=kind.lattice.gap, starts=points)
    return MipResult(tree=kind.tree, value=kind.value, bound=driven.bound, outcome=driven.outcome, start=first)


def to_instance(problem: Problem, depth: int, group: np.ndarray | None = None) -> Instance:
    """Return the instance of a problem's binary encoding."""
    bits = problem.binary.bits(problem.table)
    return instances.build(bits, problem.y, depth=depth, kappa=problem.kappa, weight=problem.row_weights, group=group)


def to_draft(problem: Problem, instance: Instance, tree: ArrayTree, v: int = 1) -> Draft:
    """Return the subtree at node v as a draft over the columns of the problem."""
    f = int(tree.feature[v])
    if f == LEAF or f < 0:
        return DraftLeaf(label=int(instance.labels[tree.label[v]]))
    zero = to_draft(problem, instance, tree, 2 * v)
    one = to_draft(problem, instance, tree, 2 * v + 1)
    return problem.binary.branch(int(instance.features[f]), zero, one)


def solve_problem(
    problem: Problem,
    settings: Settings,
    monitor: Monitor,
    make: Callable[[Instance, Halted, Sequence[SideConstraint]], Formulation],
) -> Solution:
    """Run a formulation over a problem; return its tree and proved bound.

    Raises InfeasibleError if no tree satisfies the side constraints, with reachable limits, and SolverError if none was found.
    """
    solver = backend(settings["solver"])
    monitor.report(phase="model")
    group = group_codes(problem, settings)
    instance = to_instance(problem, settings["depth"], group)
    # a requested gap refers to the true price, so do not round the price then
    leaves = 1 if settings["mip_gap"] else 1 << min(instance.depth, 12)
    prices = Prices.of(instance.kappa, leaves)
    instance = replace(instance, kappa=prices.used)
    side = side_constraints(problem, settings, instance)
    if not side and (instance.depth == 0 or not len(instance.F)):
        return _single_leaf_solution(problem, replace(instance, kappa=prices.asked), solver)
    seconds = min(settings["exact_seconds"], monitor.remaining())
    start = make_start(instance, start_kind(problem, settings["first_tree"]), seconds, monitor.stopped, side)
    start = replace(start, trees=(*known_trees(problem, instance, labelled=bool(side)), *start.trees))
    try:
        formulation = make(instance, monitor.stopped, side)
        starts = formulation.improve_starts(start.trees)
    except BuildStopped:
        if side:
            raise SolverError(NOTHING_FOUND) from None
        return _build_stopped_solution(problem, replace(instance, kappa=prices.asked), solver, start.trees)
    monitor.report(phase="search")
    options = options_of(settings, monitor)
    listener = _reporter(problem, instance, prices, monitor)
    try:
        result = optimise(formulation, solver, options=options, starts=starts, listener=listener, known=start.bound)
    except InfeasibleError as error:
        monitor.report(phase="what can be reached")
        raise _explain_infeasible(
            error, instance, side, lambda kept: make(instance, monitor.stopped, kept), solver, options, monitor
        ) from None
    return _make_solution(problem, instance, prices, formulation, result, monitor)


def _explain_infeasible(
    error: InfeasibleError,
    instance: Instance,
    side: Sequence[SideConstraint],
    make: Callable[[Sequence[SideConstraint]], Formulation],
    solver: Backend,
    options: SolveOptions,
    monitor: Monitor,
) -> InfeasibleError:
    """Add to the error what a tree can reach if one kind of constraint is relaxed; `best` is for the first kind."""
    words = [str(error)]
    best = None
    of = None
    for relaxed, remaining_constraints in relaxations(side):
        remaining = replace(options, time=None if math.isinf(monitor.remaining()) else monitor.remaining())
        try:
            price = find_least_price(instance, relaxed, remaining_constraints, make, solver, remaining)
        except (BuildStopped, SolverError):  # without this price, the proof of infeasibility still holds
            continue
        if price is not None:
            words.append(relaxed.sentence(price))
            if best is None:
                best = float(price)
                of = relaxed.of
    return InfeasibleError(" ".join(words), best=best, of=of)


def find_least_price(
    instance: Instance,
    relaxed: RelaxedConstraint,
    remaining_constraints: Sequence[SideConstraint],
    make: Callable[[Sequence[SideConstraint]], Formulation],
    solver: Backend,
    options: SolveOptions,
) -> Fraction | None:
    """Return the least price of a relaxed kind among trees that satisfy the rest; None if none exists or it is not proved."""
    form = make([*remaining_constraints, relaxed])
    watching = TreeHooks(InstanceModel(form))
    outcome = solver.solve(form.model, watching, replace(options, gap=0.0, absolute_gap=1e-7, starts=()))
    if outcome.ended is not Termination.OPTIMAL or outcome.values is None:
        return None
    return relaxed.price(instance, form.read(outcome.values))


def _reporter(
    problem: Problem, instance: Instance, prices: Prices, monitor: Monitor
) -> Callable[[Fraction | None, float, int, ArrayTree | None], bool]:
    """Return a listener that reports exact objectives to the monitor."""

    def listener(value: Fraction | None, bound: float, nodes: int, tree: ArrayTree | None) -> bool:
        true = None if value is None or tree is None else prices.value(value, len(tree.leaves))
        upper = None if math.isinf(bound) else prices.bound(Fraction(bound))
        if upper is not None and true is not None:
            upper = max(upper, true)
        monitor.report(
            incumbent=None if true is None else float(true / instance.total),
            bound=None if upper is None else float(upper / instance.total),
            nodes=nodes,
            leaves=None if tree is None else len(tree.leaves),
            draft=None if tree is None else to_draft(problem, instance, tree),
        )
        return monitor.stopped()

    return listener


def _make_solution(
    problem: Problem,
    instance: Instance,
    prices: Prices,
    formulation: Formulation,
    result: MipResult,
    monitor: Monitor,
) -> Solution:
    outcome = result.outcome
    if result.tree is None and formulation.side:
        raise SolverError(SOLVER_FAILED if outcome.ended is Termination.FAILED else NOTHING_FOUND)
    record_limit(monitor, outcome, proved=result.optimal)
    return Solution(
        draft=to_draft(problem, instance, result.tree or instance.majority_leaf()),
        bound=float(prices.bound(result.bound) / instance.total),
        finished=outcome.ended is Termination.OPTIMAL or result.optimal,
        nodes=outcome.nodes,
        cuts=outcome.rows,
        encoded_features=len(problem.binary.features),
        solver=outcome.solver,
        solver_version=outcome.version,
        warm_start_objective=None
        if result.start is None
        else float(prices.value(instance.value(result.start), len(result.start.leaves)) / instance.total),
        evidence=(solve_record(outcome, formulation.model),),
    )


def _single_leaf_solution(problem: Problem, instance: Instance, solver: Backend) -> Solution:
    """Return the majority leaf, the only tree if no split is possible."""
    tree = instance.majority_leaf()
    return Solution(
        draft=to_draft(problem, instance, tree),
        bound=float(instance.value(tree) / instance.total),
        encoded_features=len(problem.binary.features),
        solver=solver.name,
        solver_version=solver.version,
    )


def _build_stopped_solution(
    problem: Problem, instance: Instance, solver: Backend, trees: Sequence[ArrayTree]
) -> Solution:
    """Return the best start tree and the trivial bound, after a stop during the build of the model."""
    tree = max([*trees, instance.majority_leaf()], key=instance.value)
    return Solution(
        draft=to_draft(problem, instance, tree),
        bound=float((instance.total - instance.kappa) / instance.total),
        finished=False,
        encoded_features=len(problem.binary.features),
        solver=solver.name,
        solver_version=solver.version,
    )


MIP_DEPTH = having(DEPTH, default=2, maximum=8)
TAIL = (WARM_START, EXACT_SECONDS, SOLVER, MIP_GAP, BINARISE, BINS, *ANSWER_COSTS, *COMMON)
