"""One solve of a tree model by a back end, the same for every family of formulations.

A family says through `TreeProgram` how trees are read out of its model, which tree is the best one so far, and onto which values a
bound may be rounded. `drive` does the rest: limits, progress, contradictions of a solver, and what is proved at the end.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Generic, TypeVar

from trainer.certificate import Evidence, Status
from trainer.dtypes import FloatArray
from trainer.errors import InfeasibleError, SolverError
from trainer.methods.base import Settings
from trainer.methods.monitor import Monitor
from trainer.milo import Backend, Hooks, IntegerProgram, Outcome, Point, Row, SolveOptions, SolveReport, Termination
from trainer.milo.hooks import NodeInfo

T = TypeVar("T")
STRUCK = {Termination.TIME: Status.TIME_LIMIT, Termination.MEMORY: Status.MEMORY_LIMIT}


class TreeProgram(ABC, Generic[T]):
    """A model whose integral points are trees of type T, and what is known about the best tree; values are exact, in the model's unit.

    `known` is an upper bound from elsewhere. `every_point` says that an integral point is a tree whatever hidden rows say about its
    other variables. `rough` says that the rows let trees pass that `forbids` does not admit.
    """

    model: IntegerProgram
    known: Fraction | None = None
    every_point: bool = False
    rough: bool = False

    @abstractmethod
    def hooks(self) -> Hooks:
        """The hidden rows and the proposals of the formulation."""

    @abstractmethod
    def read(self, values: FloatArray) -> T:
        """The tree of an integral point, float64 (model.size,)."""

    @abstractmethod
    def consider(self, tree: T) -> None:
        """Keep the tree if it is admitted and better than all before."""

    @property
    @abstractmethod
    def value(self) -> Fraction | None:
        """The value of the best tree, None without one."""

    @property
    @abstractmethod
    def top(self) -> Fraction:
        """An upper bound that is known before the search."""

    @abstractmethod
    def floor(self, bound: float) -> Fraction:
        """A bound of the solver, rounded down onto the values that a tree can have."""

    @abstractmethod
    def progress(self, bound: float, nodes: int) -> bool:
        """Tell the monitor; True ends the search. `bound` is infinite if nothing is proved yet."""

    def forbids(self, tree: T) -> Row | None:
        """The row that cuts off this tree alone, if the rows of the model let a tree pass that is not admitted."""
        return None

    def infeasible(self) -> InfeasibleError:
        """What is said if the model has no solution."""
        return InfeasibleError("No tree satisfies the constraints. Relax one of them or allow a deeper tree.")

    def accept_value(self, bound: Fraction, solver: str) -> Fraction:
        """The bound that holds if the best tree beats the solver's tree; by default this means that the solver is wrong, which is an error."""
        value = self.value
        assert value is not None
        raise SolverError(f"{solver} claims the bound {float(bound)} below the value {float(value)} of its own tree.")


@dataclass(frozen=True, kw_only=True)
class SolveResult:
    """How a solve ended, and the upper bound that is proved."""

    outcome: Outcome
    bound: Fraction


class TreeHooks(Hooks, Generic[T]):
    """The hooks of a tree model: its rows, with every tree that is met kept and progress passed on."""

    def __init__(self, kind: TreeProgram[T]) -> None:
        self.kind = kind
        self.inner = kind.hooks()
        self.behave_as(self.inner)
        self.lazy = self.lazy or kind.rough

    def on_integral(self, point: Point, origin: str) -> Sequence[Row]:
        """The formulation's rows, and one against a tree that is not admitted."""
        rows = self.inner.on_integral(point, origin)
        if rows and not self.kind.every_point:
            return rows
        tree = self.kind.read(point.values)
        self.kind.consider(tree)
        forbidden = self.kind.forbids(tree) if self.kind.rough else None
        return rows if forbidden is None else [*rows, forbidden]

    def refuses(self, point: Point, origin: str) -> bool:
        """The formulation's verdict; a refused point may be a tree all the same."""
        refused = self.inner.refuses(point, origin)
        if self.kind.rough or (refused and self.kind.every_point):
            tree = self.kind.read(point.values)
            self.kind.consider(tree)
            refused = refused or (self.kind.rough and self.kind.forbids(tree) is not None)
        return refused

    def on_fractional(self, point: Point, info: NodeInfo) -> Sequence[Row]:
        """The formulation's rows."""
        return self.inner.on_fractional(point, info)

    def propose(self) -> Sequence[FloatArray]:
        """The formulation's proposals."""
        return self.inner.propose()

    def on_progress(self, report: SolveReport) -> bool:
        """Bound and nodes to the family; the search ends once a tree meets the bound known from elsewhere."""
        known = self.kind.known
        value = self.kind.value
        bound = math.inf if report.bound is None else report.bound
        if known is not None:
            bound = min(bound, float(known))
        met = known is not None and value is not None and value >= known
        return self.kind.progress(bound, report.nodes) or met


def options_of(
    settings: Settings,
    monitor: Monitor,
    *,
    remaining: float | None = None,
    stopped: Callable[[], bool] | None = None,
) -> SolveOptions:
    """Limits and tolerances as the settings and the monitor say; `remaining` seconds and `stopped` take the monitor's place."""
    seconds = monitor.remaining() if remaining is None else remaining
    return SolveOptions(
        time=None if math.isinf(seconds) else seconds,
        memory=monitor.limits.memory,
        threads=monitor.limits.threads,
        seed=settings["seed"],
        gap=settings["mip_gap"],
        stopped=stopped or monitor.stopped,
    )


def drive(
    kind: TreeProgram[T],
    solver: Backend,
    options: SolveOptions,
    *,
    absolute_gap: float,
    starts: Sequence[FloatArray] = (),
) -> SolveResult:
    """Solve; the best tree stays with `kind`.

    Raises InfeasibleError if no tree satisfies the constraints, and SolverError if the solver contradicts a tree.
    """
    outcome = solver.solve(
        kind.model, TreeHooks(kind), replace(options, absolute_gap=absolute_gap, starts=tuple(starts))
    )
    if outcome.ended is Termination.INFEASIBLE:
        if kind.value is not None:
            raise SolverError(
                f"{solver.name} says that the problem is infeasible, but it has a solution; none of its results are used."
            )
        raise kind.infeasible()
    if outcome.values is not None:
        kind.consider(kind.read(outcome.values))
    bound = kind.top if math.isinf(outcome.bound) else min(kind.top, kind.floor(outcome.bound))
    if kind.known is not None:
        bound = min(bound, kind.known)
    if kind.value is not None and bound < kind.value:
        bound = kind.accept_value(bound, solver.name)
    return SolveResult(outcome=outcome, bound=bound)


def strike(monitor: Monitor, outcome: Outcome, *, proved: bool) -> None:
    """Tell the monitor which limit ended the solve, unless the tree is proved all the same."""
    reason = STRUCK.get(outcome.ended)
    if reason is not None and not proved:
        monitor.stop(reason)


def record(outcome: Outcome, model: IntegerProgram) -> dict[str, Any]:
    """What the certificate keeps of a solve."""
    return {
        "kind": Evidence.MIP,
        "solver": outcome.solver,
        "version": outcome.version,
        "ended": str(outcome.ended),
        "variables": model.size,
        "integers": int(model.integers.sum()),
        "rows": len(model.rows),
        "seconds_in_hooks": round(outcome.hook_seconds, 3),
        "share_in_hooks": round(outcome.hook_seconds / max(outcome.seconds, 1e-9), 3),
        "proposed": outcome.proposed,
        "accepted": outcome.accepted,
    }
