"""Solve by Gurobi through gurobipy, which is optional."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from trainer.dtypes import FloatArray
from trainer.errors import SolverError
from trainer.milo.backend import Backend, Capabilities
from trainer.milo.exchange import Exchange
from trainer.milo.expression import Row
from trainer.milo.hooks import NodeInfo, Termination

# rows of a point may be posted this many times, since Gurobi may submit points that it found before a row was added
REPEATS = 1000
SMALL_LICENCE = 2000  # limit on variables and base rows of Gurobi's free licence; rows added in callbacks do not count


@functools.cache
def licence() -> str:
    """Return `full`, `small` (2000 variables and rows) or `none`, by solving a model just above the small limit."""
    try:
        import gurobipy as gp
    except ImportError:
        return "none"
    try:
        with gp.Env(params={"OutputFlag": 0}) as env, gp.Model(env=env) as model:
            x = model.addVars(SMALL_LICENCE + 1, ub=1.0)
            model.setObjective(x.sum())
            try:
                model.optimize()
            except gp.GurobiError:
                return "small"
            return "full"
    except gp.GurobiError:
        return "none"


class GurobiSession:
    """One Gurobi model with the variables of an `IntegerProgram`, and its callback."""

    def __init__(self, exchange: Exchange, env: Any) -> None:
        import gurobipy as gp

        self.gp = gp
        self.exchange = exchange
        self.pending: list[FloatArray] = []
        model = exchange.model
        self.model = gp.Model(env=env)
        kinds: Any = [gp.GRB.INTEGER if whole else gp.GRB.CONTINUOUS for whole in model.integer]
        cost = np.zeros(model.size)
        cost[list(model.objective.terms)] = list(model.objective.terms.values())
        self.x = self.model.addMVar(
            model.size, lb=np.array(model.lower), ub=np.array(model.upper), obj=cost, vtype=kinds
        )
        self.x.setAttr("BranchPriority", np.array(model.priority, np.int32))
        self.model.ModelSense = gp.GRB.MAXIMIZE
        self.model.ObjCon = model.objective.constant
        self.model.update()
        self.variables = self.x.tolist()
        self.callback_codes = (gp.GRB.Callback.MIP, gp.GRB.Callback.MIPSOL, gp.GRB.Callback.MIPNODE)
        for row in model.rows:
            self._post(row, self.model.addLConstr)
            exchange.pace.wrote(len(row.columns))

    def _post(self, row: Row, add: Any) -> None:
        left = self.gp.LinExpr(row.coefficients.tolist(), [self.variables[j] for j in row.columns.tolist()])
        equal = row.lower == row.upper
        if not math.isinf(row.upper):
            add(left, "=" if equal else "<", row.upper)
        if not math.isinf(row.lower) and not equal:
            add(left, ">", row.lower)

    def callback(self, model: Any, where: int) -> None:
        """Handle a callback of Gurobi; store Python exceptions, which Gurobi would drop."""
        if where in self.callback_codes:  # most calls come from presolve and the simplex, and need no handling
            self.exchange.guard(lambda: self._callback(model, where), None)
        if self.exchange.halted():
            model.terminate()

    def _callback(self, model: Any, where: int) -> None:
        GRB = self.gp.GRB
        exchange = self.exchange
        if where == GRB.Callback.MIP:
            self._tick(GRB.Callback.MIP_OBJBST, GRB.Callback.MIP_OBJBND, GRB.Callback.MIP_NODCNT)
        elif where == GRB.Callback.MIPSOL:
            values = np.array(model.cbGetSolution(self.variables))
            rows = exchange.integral(values, "heuristic", adding=True, again=REPEATS)
            for row in rows:
                self._post(row, model.cbLazy)
            self._tick(GRB.Callback.MIPSOL_OBJBST, GRB.Callback.MIPSOL_OBJBND, GRB.Callback.MIPSOL_NODCNT)
        elif where == GRB.Callback.MIPNODE:
            self._tick(GRB.Callback.MIPNODE_OBJBST, GRB.Callback.MIPNODE_OBJBND, GRB.Callback.MIPNODE_NODCNT)
            if model.cbGet(GRB.Callback.MIPNODE_STATUS) == GRB.OPTIMAL:
                self._separate(model)
            self._inject(model)

    def _separate(self, model: Any) -> None:
        GRB = self.gp.GRB
        hooks = self.exchange.hooks
        nodes = int(model.cbGet(GRB.Callback.MIPNODE_NODCNT))
        if (
            hooks.fractional == 0
            or (hooks.fractional < 0 and nodes > 0)
            or (hooks.fractional > 0 and nodes % hooks.fractional)
        ):
            return
        info = NodeInfo(
            nodes=nodes,
            bound=model.cbGet(GRB.Callback.MIPNODE_OBJBND),
            incumbent=-math.inf if self.exchange.incumbent is None else self.exchange.incumbent,
        )
        for row in self.exchange.fractional(np.array(model.cbGetNodeRel(self.variables)), info):
            # with lazy rows, a user row may reject points that satisfy the base rows, so it must be lazy, too
            self._post(row, model.cbLazy if hooks.lazy else model.cbCut)

    def _inject(self, model: Any) -> None:
        for values in self.exchange.proposals():
            model.cbSetSolution(self.variables, values.tolist())
            objective = model.cbUseSolution()
            self.exchange.accepted += objective < self.gp.GRB.INFINITY and objective > -self.gp.GRB.INFINITY

    def _tick(self, best: int, bound: int, nodes: int) -> None:
        incumbent = self.model.cbGet(best)
        limit = self.model.cbGet(bound)
        known_incumbent = None if abs(incumbent) >= 1e100 else incumbent
        known_bound = math.inf if abs(limit) >= 1e100 else limit
        self.exchange.progress(known_incumbent, known_bound, int(self.model.cbGet(nodes)))


class Gurobi(Backend):
    """Gurobi, commercial; the licence of the package is limited to 2000 variables and rows."""

    name = "gurobi"

    def __init__(self) -> None:
        kind = licence()
        if kind == "none":
            raise SolverError(
                "Gurobi is not installed or has no licence. Install it with pip install 'octweb[gurobi]', "
                "or choose solver=auto or solver=scip."
            )
        self.capabilities = Capabilities(
            lazy=True, fractional=True, max_size=SMALL_LICENCE if kind == "small" else None
        )

    @property
    def version(self) -> str:
        """Version of Gurobi."""
        import gurobipy as gp

        return ".".join(str(part) for part in gp.gurobi.version())

    def _solve(self, exchange: Exchange) -> Termination:
        import gurobipy as gp

        with gp.Env(params={"OutputFlag": 0}) as env:
            session = GurobiSession(exchange, env)
            model = session.model
            for name, value in _parameters(exchange).items():
                model.setParam(name, value)
            if exchange.options.starts:
                model.NumStart = len(exchange.options.starts)
                for number, values in enumerate(exchange.options.starts):
                    model.Params.StartNumber = number
                    session.x.setAttr("Start", values)
            model.optimize(session.callback)
            return _end_status(model, session)


def _parameters(exchange: Exchange) -> dict[str, Any]:
    options = exchange.options
    parameters: dict[str, Any] = {
        "MIPGap": options.gap,
        "MIPGapAbs": options.absolute_gap,
        "IntFeasTol": 1e-6,
        "FeasibilityTol": 1e-6,
        "Seed": options.seed,
        "Threads": options.threads,
    }
    if exchange.hooks.lazy:
        parameters["LazyConstraints"] = 1
    if exchange.hooks.fractional:
        parameters["PreCrush"] = 1
    if not exchange.hooks.presolve:
        parameters["Presolve"] = 0
    if options.time is not None:
        parameters["TimeLimit"] = float(exchange.remaining() or 0.0)
    if options.memory is not None:
        parameters["SoftMemLimit"] = options.memory / 1000.0
    if options.nodes is not None:
        parameters["NodeLimit"] = options.nodes
    return parameters | options.parameters


def _end_status(model: Any, session: GurobiSession) -> Termination:
    GRB = session.gp.GRB
    exchange = session.exchange
    if model.Status in (GRB.INFEASIBLE, GRB.INF_OR_UNBD):
        exchange.bound = -math.inf
        return Termination.INFEASIBLE
    bound = model.ObjBound
    if model.SolCount > 0:
        exchange.accept(np.array(session.x.X))
    exchange.progress(None, math.inf if abs(bound) >= 1e100 else bound, int(model.NodeCount), always=True)
    known = {
        GRB.OPTIMAL: Termination.OPTIMAL,
        GRB.TIME_LIMIT: Termination.TIME,
        GRB.MEM_LIMIT: Termination.MEMORY,
        GRB.NODE_LIMIT: Termination.NODES,
    }
    return known.get(model.Status, Termination.CANCELLED)
