"""Solve by HiGHS through highspy, in rounds if rows are lazy.

HiGHS accepts a subscription to its lazy-row callback but never calls it. So each round solves the model with the rows so far and
separates its best point. The bound of every round is valid, because each round solves a relaxation. The search ends with the first
round whose best point violates no lazy row.
"""

from __future__ import annotations

import math
from typing import Any

import highspy
import numpy as np

from trainer.dtypes import FloatArray
from trainer.errors import SolverError
from trainer.milo.backend import Backend, Capabilities
from trainer.milo.exchange import Exchange
from trainer.milo.expression import Row
from trainer.milo.hooks import NodeInfo, Termination

ROOT_ROUNDS = 20
LIMIT_REACHED = {
    highspy.HighsModelStatus.kSolutionLimit: Termination.NODES,
    highspy.HighsModelStatus.kMemoryLimit: Termination.MEMORY,
}


class Highs(Backend):
    """HiGHS, open source; for models without lazy rows, and for small ones with them."""

    name = "highs"
    capabilities = Capabilities(lazy=False, fractional=False)

    @property
    def version(self) -> str:
        """Version of HiGHS."""
        return str(highspy.Highs().version())

    def _solve(self, exchange: Exchange) -> Termination:
        session = HighsSession(exchange)
        for values in exchange.options.starts:
            session.offer(values)
        if exchange.hooks.fractional and not session.tighten():
            return session.end_reason()
        while True:
            ended = session.round()
            if ended is not None:
                return ended


class HighsSession:
    """One HiGHS model that grows by the rows of each round."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.solver = highspy.Highs()
        self._options()
        self._build()
        self.nodes = 0
        for hook in (self.solver.cbMipInterrupt, self.solver.cbSimplexInterrupt):
            hook.subscribe(self._interrupt)
        self.solver.cbMipUserSolution.subscribe(self._inject)
        self._offers: list[FloatArray] = []

    def _options(self) -> None:
        options = self.exchange.options
        solver = self.solver
        found: dict[str, Any] = {
            "output_flag": False,
            "mip_rel_gap": options.gap,
            "mip_abs_gap": options.absolute_gap,
            "mip_feasibility_tolerance": 1e-6,
            "primal_feasibility_tolerance": 1e-7,
            "random_seed": options.seed,
            "threads": options.threads,
        }
        if options.nodes is not None:
            found["mip_max_nodes"] = options.nodes
        for name, value in (found | options.parameters).items():
            if solver.setOptionValue(name, value) != highspy.HighsStatus.kOk:
                raise SolverError(f"HiGHS refuses the option {name}={value}. Correct its name or value.")

    def _build(self) -> None:
        model = self.exchange.model
        cost = np.zeros(model.size)
        cost[list(model.objective.terms)] = list(model.objective.terms.values())
        lp = highspy.HighsLp()
        lp.num_col_ = model.size
        lp.num_row_ = len(model.rows)
        lp.col_cost_ = cost
        lp.col_lower_ = np.array(model.lower)
        lp.col_upper_ = np.array(model.upper)
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.offset_ = model.objective.constant
        lp.row_lower_ = np.array([row.lower for row in model.rows], np.float64)
        lp.row_upper_ = np.array([row.upper for row in model.rows], np.float64)
        lp.integrality_ = [self._kind(whole) for whole in model.integer]
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.num_col_ = model.size
        lp.a_matrix_.num_row_ = len(model.rows)
        sizes = [len(row.columns) for row in model.rows]
        lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        lp.a_matrix_.index_ = np.concatenate([np.zeros(0, np.int32), *(row.columns for row in model.rows)]).astype(
            np.int32
        )
        lp.a_matrix_.value_ = np.concatenate([np.zeros(0), *(row.coefficients for row in model.rows)])
        if self.solver.passModel(lp) == highspy.HighsStatus.kError:
            raise SolverError("HiGHS refuses the model. Choose another solver, or report this model.")

    @staticmethod
    def _kind(whole: bool) -> Any:
        return highspy.HighsVarType.kInteger if whole else highspy.HighsVarType.kContinuous

    def add(self, row: Row) -> None:
        """Add a row for all further rounds."""
        low = -highspy.kHighsInf if math.isinf(row.lower) else row.lower
        high = highspy.kHighsInf if math.isinf(row.upper) else row.upper
        self.solver.addRow(low, high, len(row.columns), row.columns.astype(np.int32), row.coefficients)

    def offer(self, values: FloatArray) -> None:
        """Accept a complete assignment if it violates no base or lazy row."""
        exchange = self.exchange
        if exchange.model.violated(values) is None:
            exchange.integral(values, "injected", adding=False)

    def tighten(self) -> bool:
        """Solve the linear relaxation in rounds with `on_fractional`; return False if the solve must end."""
        exchange = self.exchange
        solver = self.solver
        solver.setOptionValue("solve_relaxation", True)
        for _ in range(ROOT_ROUNDS):
            if not self._run() or solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                break
            value = float(solver.getInfo().objective_function_value)
            exchange.progress(None, value, 0)
            values = np.array(solver.getSolution().col_value)
            rows = exchange.fractional(
                values, NodeInfo(alone=True, bound=value, incumbent=exchange.incumbent or -math.inf)
            )
            for row in rows:
                self.add(row)
            if not rows or exchange.halted():
                break
        solver.setOptionValue("solve_relaxation", False)
        return not exchange.halted() and exchange.remaining() != 0.0

    def round(self) -> Termination | None:
        """Solve with the rows so far and separate the best point; return None if another round is needed."""
        exchange = self.exchange
        solver = self.solver
        if exchange.best is not None:
            start = highspy.HighsSolution()
            start.col_value = exchange.best.tolist()
            solver.setSolution(start)
        if not self._run():
            return self.end_reason()
        status = solver.getModelStatus()
        info = solver.getInfo()
        self.nodes += max(0, int(info.mip_node_count))
        if status == highspy.HighsModelStatus.kInfeasible:
            exchange.bound = -math.inf
            return Termination.INFEASIBLE
        has_integers = bool(exchange.model.integers.any())
        bound = float(info.mip_dual_bound if has_integers else info.objective_function_value)
        if not has_integers and status != highspy.HighsModelStatus.kOptimal:
            bound = math.inf
        exchange.progress(None, bound if math.isfinite(bound) else math.inf, self.nodes)
        rows: list[Row] = []
        if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
            rows = exchange.integral(np.array(solver.getSolution().col_value), "lp", adding=True)
            for row in rows:
                self.add(row)
        for values in exchange.proposals():
            self.offer(values)
        exchange.progress(exchange.incumbent, bound, self.nodes, always=True)
        if exchange.halted() or status in (highspy.HighsModelStatus.kInterrupt, highspy.HighsModelStatus.kTimeLimit):
            return self.end_reason()
        if status in LIMIT_REACHED:
            return LIMIT_REACHED[status]
        if exchange.incumbent is not None and self._gap_is_closed(exchange.incumbent, exchange.bound):
            return Termination.OPTIMAL
        if status != highspy.HighsModelStatus.kOptimal:
            raise SolverError(
                f"HiGHS ended with the status '{solver.modelStatusToString(status)}'. The result was discarded. "
                "Train again with another solver or seed, or report this model."
            )
        return None if rows else Termination.OPTIMAL

    def _gap_is_closed(self, incumbent: float, bound: float) -> bool:
        options = self.exchange.options
        return bound - incumbent <= max(options.absolute_gap, options.gap * abs(incumbent), 1e-9)

    def _run(self) -> bool:
        exchange = self.exchange
        left = exchange.remaining()
        if exchange.halted() or left == 0.0:
            return False
        # HiGHS counts the time limit from the first run of this object
        self.solver.setOptionValue("time_limit", highspy.kHighsInf if left is None else self.solver.getRunTime() + left)
        self.solver.run()
        return True

    def end_reason(self) -> Termination:
        """Return why the solve ends early."""
        return Termination.CANCELLED if self.exchange.cancelled or self.exchange.error is not None else Termination.TIME

    def _interrupt(self, event: Any) -> None:
        if self.exchange.guard(self.exchange.halted, True):
            event.interrupt()

    def _inject(self, event: Any) -> None:
        # with lazy rows, a proposal waits for the end of the round, because HiGHS cannot check it against them
        if self.exchange.hooks.lazy:
            return
        nothing: list[FloatArray] = []
        for values in self.exchange.guard(self.exchange.proposals, nothing):
            event.data_in.setSolution(values)
            self.exchange.accepted += 1
