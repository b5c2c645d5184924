"""Define the hooks, options and outcome of a solve."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from trainer.dtypes import FloatArray
from trainer.milo.expression import Row
from trainer.milo.model import Point

INTEGRALITY = 1e-5  # values at most this far from an integer are rounded before a hook sees them
# least violation of a lazy row: twice the feasibility tolerance, so that the solver also sees it as violated
VIOLATION = 2e-6
USER_VIOLATION = 1e-4  # least violation of a user row at a fractional point (Keegan et al.; Alston et al.)


class Termination(StrEnum):
    """The reason why a solver returned."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    TIME = "time"
    MEMORY = "memory"
    NODES = "nodes"
    CANCELLED = "cancelled"
    FAILED = "failed"  # the solver failed; its solutions and bound so far are valid


@dataclass(frozen=True, kw_only=True)
class NodeInfo:
    """Node of a fractional point; `nodes` counts from 0 at the root; `alone`: the back end separates at no later node."""

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
    """Progress of a running solve, in the unit of the model's objective."""

    t: float
    incumbent: float | None
    bound: float | None
    nodes: int
    rows: dict[str, int]


class Hooks:
    """Callbacks of a method; override as needed. Hooks receive arrays, not a solver, and must be deterministic.

    `lazy`: rows may reject points that satisfy the base rows. `fractional`: nodes at which `on_fractional` is called; 0 never, 1 at every
    node, -1 at the root only, f > 1 at nodes whose depth is a multiple of f (Gurobi does not report the depth: every f-th node).
    """

    lazy: bool = False
    fractional: int = 0
    presolve: bool = True  # False if early rows are more useful than presolve
    # whether many cheap nodes are better than expensive processing of each; only SCIP needs this hint
    many_nodes: bool = False
    locked: bool = (
        True  # lazy rows may restrict any variable in both directions, so solvers must not fix one by rounding
    )

    def behave_as(self, inner: Hooks) -> None:
        """Copy the flags of other hooks, for hooks that wrap them."""
        self.lazy = inner.lazy
        self.fractional = inner.fractional
        self.locked = inner.locked
        self.presolve = inner.presolve
        self.many_nodes = inner.many_nodes

    def on_integral(self, point: Point, origin: str) -> Sequence[Row]:
        """Return rows that an integral point violates; an empty result accepts the point.

        `origin` is lp, heuristic or injected, if the solver reports it; start points are heuristic.
        """
        return ()

    def refuses(self, point: Point, origin: str) -> bool:
        """Return True if an integral point certainly violates a lazy row; False means unknown.

        It must be cheap: solvers that check many candidates without adding rows call it before `on_integral`.
        """
        return False

    def on_fractional(self, point: Point, info: NodeInfo) -> Sequence[Row]:
        """Return rows (lazy or user) that the solution of a node's relaxation violates."""
        return ()

    def propose(self) -> Sequence[FloatArray]:
        """Return complete assignments that the solver should try as incumbents; each one once."""
        return ()

    def on_progress(self, report: SolveReport) -> bool:
        """Receive progress every 0.2 s and for each better incumbent; return True to stop the solver."""
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
    """Result of a solve: `values` of the best accepted point (None without one) and a proved upper `bound`.

    `objective` is computed from `values`. `rows` are the numbers of added rows by family. `hook_seconds` is the processor time of callbacks,
    including the transfer of values and rows.
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
