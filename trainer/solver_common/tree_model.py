"""Solve a tree model by a back end, for every family.

A family implements `TreeProgram`: how to read trees from points, the incumbent, and the rounding of bounds. `drive` does the rest:
progress, contradictions of a solver, and the final bound.
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
STATUS_OF_LIMIT = {Termination.TIME: Status.TIME_LIMIT, Termination.MEMORY: Status.MEMORY_LIMIT}


class TreeProgram(ABC, Generic[T]):
    """A model whose integral points are trees of type T, with its incumbent. Values are exact, in the model's unit.

    `known` is an upper bound from elsewhere. `every_point`: each integral point is a tree, even if it violates lazy rows. `is_rough`: the rows admit trees
    that `forbids` excludes.
    """

    model: IntegerProgram
    known: Fraction | None = None
    every_point: bool = False
    is_rough: bool = False

    @abstractmethod
    def hooks(self) -> Hooks:
        """Return the hooks of the formulation: lazy rows and proposals."""

    @abstractmethod
    def read(self, values: FloatArray) -> T:
        """Return the tree of an integral point, float64 (model.size,)."""

    @abstractmethod
    def consider(self, tree: T) -> None:
        """Store the tree if it is admitted and improves the incumbent."""

    @property
    @abstractmethod
    def value(self) -> Fraction | None:
        """Value of the incumbent, None without one."""

    @property
    @abstractmethod
    def top(self) -> Fraction:
        """Upper bound before the search."""

    @abstractmethod
    def floor(self, bound: float) -> Fraction:
        """Round a solver's bound down to a value that a tree can have."""

    @abstractmethod
    def progress(self, bound: float, nodes: int) -> bool:
        """Report progress; return True to end the search. `bound` is infinite if nothing is proved yet."""

    def forbids(self, tree: T) -> Row | None:
        """Return a row that excludes only this tree; None if the tree is admitted."""
        return None

    def infeasible(self) -> InfeasibleError:
        """Return the error for a model without solutions."""
        return InfeasibleError("No tree satisfies the constraints. Relax one of them or allow a deeper tree.")

    def accept_value(self, bound: Fraction, solver: str) -> Fraction:
        """Return the valid bound if the incumbent exceeds the solver's bound; by default raise SolverError."""
        value = self.value
        assert value is not None
        raise SolverError(
            f"{solver} reported the bound {float(bound)}, which is below the value {float(value)} of its own tree. "
            "The result was discarded. Train again with another solver or seed, or report this model."
        )


@dataclass(frozen=True, kw_only=True)
class SolveResult:
    """Outcome of a solve, and the proved upper bound."""

    outcome: Outcome
    bound: Fraction


class TreeHooks(Hooks, Generic[T]):
    """Hooks of a tree model that add the formulation's rows, consider every tree, and report progress."""

    def __init__(self, kind: TreeProgram[T]) -> None:
        self.kind = kind
        self.inner = kind.hooks()
        self.behave_as(self.inner)
        self.lazy = self.lazy or kind.is_rough

    def on_integral(self, point: Point, origin: str) -> Sequence[Row]:
        """Return the formulation's rows, and one that excludes a tree that is not admitted."""
        rows = self.inner.on_integral(point, origin)
        if rows and not self.kind.every_point:
            return rows
        tree = self.kind.read(point.values)
        self.kind.consider(tree)
        forbidden = self.kind.forbids(tree) if self.kind.is_rough else None
        return rows if forbidden is None else [*rows, forbidden]

    def refuses(self, point: Point, origin: str) -> bool:
        """Return the formulation's verdict; consider the tree of a rejected point."""
        refused = self.inner.refuses(point, origin)
        if self.kind.is_rough or (refused and self.kind.every_point):
            tree = self.kind.read(point.values)
            self.kind.consider(tree)
            refused = refused or (self.kind.is_rough and self.kind.forbids(tree) is not None)
        return refused

    def on_fractional(self, point: Point, info: NodeInfo) -> Sequence[Row]:
        """Return the formulation's rows."""
        return self.inner.on_fractional(point, info)

    def propose(self) -> Sequence[FloatArray]:
        """Return the formulation's proposals."""
        return self.inner.propose()

    def on_progress(self, report: SolveReport) -> bool:
        """Report bound and nodes; end the search if a tree meets the given upper bound."""
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
    """Return limits and tolerances of settings and monitor; `remaining` seconds and `stopped` override the monitor."""
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
    """Solve the model; `kind` stores the best tree.

    Raises InfeasibleError if no tree satisfies the constraints, and SolverError if the solver contradicts a tree.
    """
    outcome = solver.solve(
        kind.model, TreeHooks(kind), replace(options, absolute_gap=absolute_gap, starts=tuple(starts))
    )
    if outcome.ended is Termination.INFEASIBLE:
        if kind.value is not None:
            raise SolverError(
                f"{solver.name} reported that the problem is infeasible, but a solution is known. The result was discarded. "
                "Train again with another solver or seed, or report this model."
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


def record_limit(monitor: Monitor, outcome: Outcome, *, proved: bool) -> None:
    """Record in the monitor which limit ended the solve, unless the tree is proved optimal."""
    reason = STATUS_OF_LIMIT.get(outcome.ended)
    if reason is not None and not proved:
        monitor.stop(reason)


def solve_record(outcome: Outcome, model: IntegerProgram) -> dict[str, Any]:
    """Return the record of a solve for the certificate."""
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
