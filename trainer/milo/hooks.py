"""What a method gives to a back end (Hooks, Options) and gets from it (Outcome)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from trainer.dtypes import FloatArray
from trainer.milo.expression import Row
from trainer.milo.model import Point

INTEGRALITY = 1e-5  # a value this near to a whole number is rounded before a hook sees it
VIOLATION = 2e-6  # lazy rows: twice the feasibility tolerance, so that a solver never thinks an added row satisfied
USER_VIOLATION = 1e-4  # user rows at fractional points (Keegan et al.; Alston et al.)


class Termination(StrEnum):
    """Why a solver returned."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    TIME = "time"
    MEMORY = "memory"
    NODES = "nodes"
    CANCELLED = "cancelled"
    FAILED = "failed"  # gave up by an error of its own; the solutions and the bound that it had hold


@dataclass(frozen=True, kw_only=True)
class NodeInfo:
    """Where a fractional point was found; `nodes` counts from 0 at the root, `alone` says that no node after it is asked about."""

    nodes: int = 0
    alone: bool = False
    depth: int = 0
    bound: float = math.inf
    incumbent: float = -math.inf

    @property
    def is_root(self) -> bool:
        return self.nodes == 0


@dataclass(frozen=True, kw_only=True)
class SolveReport:
    """News of a running solve, in the unit of the model's objective."""

    t: float
    incumbent: float | None
    bound: float | None
    nodes: int
    rows: dict[str, int]


class Hooks:
    """The method's side of a solve; override what is needed. Hooks see arrays, never a solver, and must be deterministic.

    `lazy` says that rows may cut off points which satisfy the base rows. `fractional` says at which nodes `on_fractional` is
    called: 0 never, 1 at every node, -1 at the root only, f > 1 at nodes whose depth is a multiple of f (Gurobi does not tell the
    depth: every f-th node).
    """

    lazy: bool = False
    fractional: int = 0
    presolve: bool = True  # False if rows come at once that are worth more than presolving finds
    # True where many cheap nodes close the gap sooner than what the solver does at each by itself; only SCIP has to be told
    many_nodes: bool = False
    locked: bool = (
        True  # hidden rows may hold any variable back in both directions, so no solver may fix one by rounding
    )

    def behave_as(self, inner: Hooks) -> None:
        """Take over what other hooks say about themselves, for hooks around them."""
        self.lazy = inner.lazy
        self.fractional = inner.fractional
        self.locked = inner.locked
        self.presolve = inner.presolve
        self.many_nodes = inner.many_nodes

    def on_integral(self, point: Point, origin: str) -> Sequence[Row]:
        """Rows that an integral point violates; an empty answer accepts the point.

        `origin` is lp, heuristic or injected, as far as the solver tells: a start comes as heuristic.
        """
        return ()

    def refuses(self, point: Point, origin: str) -> bool:
        """True if an integral point is surely cut off, found without writing the rows; False says nothing.

        Asked before `on_integral` by solvers that judge many candidates without adding rows.
        """
        return False

    def on_fractional(self, point: Point, info: NodeInfo) -> Sequence[Row]:
        """Rows (lazy or user) that the solution of a node's relaxation violates."""
        return ()

    def propose(self) -> Sequence[FloatArray]:
        """Complete assignments that the solver should try as incumbents; each is handed out once."""
        return ()

    def on_progress(self, report: SolveReport) -> bool:
        """News at most every 0.2 s and for each better incumbent; True asks the solver to stop."""
        return False


@dataclass(frozen=True, kw_only=True)
class SolveOptions:
    """Limits and tolerances of a solve; `stopped` is called often and from any thread."""

    time: float | None = None
    memory: int | None = None
    nodes: int | None = None
    threads: int = 1
    seed: int = 0
    gap: float = 0.0
    absolute_gap: float = 1e-9
    starts: tuple[FloatArray, ...] = ()
    stopped: Callable[[], bool] = field(default=lambda: False)
    parameters: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a solver found: `values` of the best accepted point (None without one) and a proved upper `bound`.

    `objective` is recomputed from `values`. `rows` counts the rows added by family, `hook_seconds` the processor time of callbacks:
    hooks, and values and rows passed between them and the solver.
    """

    ended: Termination
    values: FloatArray | None
    objective: float | None
    bound: float
    nodes: int
    seconds: float
    hook_seconds: float
    rows: dict[str, int]
    proposed: int
    accepted: int
    solver: str
    version: str
