"""Solve by SCIP through PySCIPOpt, with hooks inside the search.

A constraint handler without constraints adds the lazy rows. Three settings keep SCIP valid with rows that it does not know yet.
Symmetry handling is off, because it would exchange columns that only lazy rows distinguish. Every variable is locked in both
directions, or else dual fixing sets scores to one. The handler's priorities are below those of linear constraints, so that hooks see
only points that satisfy the base rows.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pyscipopt
from pyscipopt import SCIP_EVENTTYPE, SCIP_HEURTIMING, SCIP_LOCKTYPE, SCIP_PARAMSETTING, SCIP_RESULT, SCIP_STAGE

from trainer.dtypes import FloatArray
from trainer.milo.backend import Backend, Capabilities
from trainer.milo.exchange import Exchange
from trainer.milo.expression import Row
from trainer.milo.hooks import NodeInfo, Termination
from trainer.milo.model import BuildStopped, IntegerProgram

log = logging.getLogger(__name__)

PRIORITY = -5_000_000  # runs after linear constraints, whose priority is -1_000_000
POLL = 0.1
# use pseudo-costs instead of strong branching, and neither cuts, heuristics nor conflicts at a node. With SCIP's
# defaults, plain BendOCT takes a tenth of the nodes, but about twice the time. Propagation stays on: without it, ODT
# with limited subsets needs tens of times as many nodes. Scaling is off: nearly all coefficients are 1 or -1, and
# scaling costs plain BendOCT a tenth of its time
CHEAP_NODES: dict[str, Any] = {
    "branching/pscost/priority": 100_000,
    "emphasis/separating": "OFF",
    "emphasis/heuristics": "OFF",
    "conflict/enable": False,
    "lp/scaling": 0,
}
# with more variables, do not polish the vertices of SCIP's dives. That simplex does not check the clock: with 25,000
# variables it exceeded a limit of 120 s by 14 s
LARGE = 5_000


@cache
def _version() -> str:
    scip = pyscipopt.Model()  # cached, because making a model takes a tenth of the time of a tiny problem
    return f"{scip.getMajorVersion()}.{scip.getMinorVersion()}.{scip.getTechVersion()}"


def _variable_type(model: IntegerProgram, j: int) -> str:
    """Return SCIP's letter for the type of variable j: continuous, binary or integer."""
    if not model.integer[j]:
        return "C"
    return "B" if (model.lower[j], model.upper[j]) == (0, 1) else "I"


class ScipSession:
    """One SCIP problem with the variables of an `IntegerProgram`."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.scip = pyscipopt.Model()
        self.scip.hideOutput()
        self.variables = self._build(exchange.model)

    def _build(self, model: IntegerProgram) -> list[Any]:
        scip = self.scip
        pace = self.exchange.pace
        variables = []
        for j in range(model.size):
            variables.append(self._variable(model, j))
            pace.wrote(0)
        scip.setMaximize()
        scip.addObjoffset(model.objective.constant)
        for j, priority in enumerate(model.priority):
            if priority:
                scip.chgVarBranchPriority(variables[j], priority)
        self.variables = variables
        for row in model.rows:
            self.add(row)
            pace.wrote(len(row.columns))
        return variables

    def _variable(self, model: IntegerProgram, j: int) -> Any:
        return self.scip.addVar(
            lb=None if math.isinf(model.lower[j]) else model.lower[j],
            ub=None if math.isinf(model.upper[j]) else model.upper[j],
            vtype=_variable_type(model, j),
            obj=model.objective.terms.get(j, 0.0),
        )

    def expression(self, row: Row) -> Any:
        """Return the left-hand side of a row as a PySCIPOpt expression."""
        return pyscipopt.quicksum(
            c * self.variables[j] for j, c in zip(row.columns.tolist(), row.coefficients.tolist(), strict=True)
        )

    def add(self, row: Row) -> None:
        """Add a row permanently: SCIP never removes it from the relaxation."""
        left = self.expression(row)
        if row.lower == row.upper:
            self.scip.addCons(left == row.upper)
        elif math.isinf(row.lower):
            self.scip.addCons(left <= row.upper)
        elif math.isinf(row.upper):
            self.scip.addCons(left >= row.lower)
        else:
            self.scip.addCons((left <= row.upper) >= row.lower)

    def add_all(self, rows: Sequence[Row]) -> int:
        """Add rows that reject a point, until the solve must end; return the number of added rows.

        Thousands of long rows take seconds, and the first one alone rejects the point.
        """
        for count, row in enumerate(rows, 1):
            self.add(row)
            try:
                self.exchange.pace.wrote(len(row.columns))
            except BuildStopped:
                return count
        return len(rows)

    def add_cut(self, row: Row) -> bool:
        """Add a row to the relaxation only; return whether the node became infeasible."""
        scip = self.scip
        cut = scip.createEmptyRowUnspec(
            row.name or "user",
            lhs=None if math.isinf(row.lower) else row.lower,
            rhs=None if math.isinf(row.upper) else row.upper,
            local=False,
        )
        scip.cacheRowExtensions(cut)
        for j, c in zip(row.columns.tolist(), row.coefficients.tolist(), strict=True):
            scip.addVarToRow(cut, scip.getTransformedVar(self.variables[j]), c)
        scip.flushRowExtensions(cut)
        infeasible = bool(scip.addCut(cut, forcecut=True))
        scip.releaseRow(cut)
        return infeasible

    def values(self, solution: Any = None) -> FloatArray:
        """Return the values of all variables in a solution, or in the current relaxation."""
        value = self.scip.getSolVal
        return np.array([value(solution, v) for v in self.variables])

    def interrupt(self) -> None:
        """Interrupt SCIP; between its phases that has no effect, so callers must repeat it."""
        if self.scip.getStage() in (SCIP_STAGE.PRESOLVING, SCIP_STAGE.SOLVING):
            # the phase may end after the check, and then this call fails
            with contextlib.suppress(Exception):
                self.scip.interruptSolve()

    def tick(self) -> None:
        """Report progress, and interrupt the solve if it must end."""
        scip = self.scip
        exchange = self.exchange
        dual = scip.getDualbound()
        primal = scip.getPrimalbound()
        incumbent = None if abs(primal) >= 1e20 else primal
        bound = math.inf if abs(dual) >= 1e20 else dual
        exchange.progress(incumbent, bound, int(scip.getNTotalNodes()))
        if exchange.halted():
            self.interrupt()


class HiddenRows(pyscipopt.Conshdlr):
    """The constraint handler of the lazy rows."""

    def __init__(self, session: ScipSession) -> None:
        self.session = session
        self.exchange = session.exchange

    def _verdict(self, call: Any, otherwise: Any) -> dict[str, Any]:
        result = self.exchange.guard(call, otherwise)
        if self.exchange.halted():
            self.session.interrupt()
        return {"result": result}

    def conscheck(
        self,
        constraints: Any,
        solution: Any,
        checkintegrality: bool,
        checklprows: bool,
        printreason: bool,
        completely: bool,
    ) -> dict[str, Any]:
        """Judge a candidate of a heuristic, a start or a relaxation; add no rows."""
        if self.exchange.error is not None:
            return {"result": SCIP_RESULT.INFEASIBLE}

        def judge() -> Any:
            refused = self.exchange.is_rejected(self.session.values(solution), "heuristic")
            return SCIP_RESULT.INFEASIBLE if refused else SCIP_RESULT.FEASIBLE

        return self._verdict(judge, SCIP_RESULT.INFEASIBLE)

    def _enforce(self) -> Any:
        exchange = self.exchange
        rows = exchange.integral(self.session.values(), "lp", adding=False)
        added = self.session.add_all(rows)
        exchange.remember(rows[:added], again=0)
        return SCIP_RESULT.CONSADDED if rows else SCIP_RESULT.FEASIBLE

    def consenfolp(self, constraints: Any, nusefulconss: int, solinfeasible: bool) -> dict[str, Any]:
        """Reject an integral solution of the relaxation that violates lazy rows."""
        return self._verdict(self._enforce, SCIP_RESULT.INFEASIBLE)

    def consenfops(
        self, constraints: Any, nusefulconss: int, solinfeasible: bool, objinfeasible: bool
    ) -> dict[str, Any]:
        """Handle a pseudo solution: lazy rows need the relaxation."""
        return {"result": SCIP_RESULT.SOLVELP}

    def conssepalp(self, constraints: Any, nusefulconss: int) -> dict[str, Any]:
        """Separate the solution of a node's relaxation."""

        def separate() -> Any:
            scip = self.session.scip
            every = self.exchange.hooks.fractional
            info = NodeInfo(
                nodes=int(scip.getNTotalNodes()) - 1,
                depth=int(scip.getDepth()),
                bound=float(scip.getDualbound()),
                incumbent=-math.inf if self.exchange.incumbent is None else self.exchange.incumbent,
            )
            if every == 0 or (every < 0 and not info.is_root) or (every > 0 and info.depth % every):
                return SCIP_RESULT.DIDNOTRUN
            rows = self.exchange.fractional(self.session.values(), info)
            self.session.add_all([row for row in rows if not row.user])
            cut_off = [self.session.add_cut(row) for row in rows if row.user]
            if any(cut_off):
                return SCIP_RESULT.CUTOFF
            if not rows:
                return SCIP_RESULT.DIDNOTFIND
            return SCIP_RESULT.SEPARATED if rows[-1].user and all(r.user for r in rows) else SCIP_RESULT.CONSADDED

        return self._verdict(separate, SCIP_RESULT.DIDNOTRUN)

    def conslock(self, constraint: Any, locktype: int, nlockspos: int, nlocksneg: int) -> None:
        """Lock all variables: moving one in either direction may violate a lazy row."""
        if self.exchange.hooks.locked:
            both = nlockspos + nlocksneg
            for variable in self.session.variables:
                self.session.scip.addVarLocksType(variable, SCIP_LOCKTYPE.MODEL, both, both)


class Proposals(pyscipopt.Heur):
    """A primal heuristic that tries the method's proposals."""

    def __init__(self, session: ScipSession) -> None:
        self.session = session

    def heurexec(self, heurtiming: int, nodeinfeasible: bool) -> dict[str, Any]:
        """Try every new proposal; SCIP checks it against all rows, including lazy ones."""
        exchange = self.session.exchange

        def offer() -> Any:
            accepted = [self.try_point(values) for values in exchange.proposals()]
            exchange.accepted += sum(accepted)
            self.session.tick()
            if not accepted:
                return SCIP_RESULT.DIDNOTRUN
            return SCIP_RESULT.FOUNDSOL if any(accepted) else SCIP_RESULT.DIDNOTFIND

        return {"result": exchange.guard(offer, SCIP_RESULT.DIDNOTRUN)}

    def try_point(self, values: FloatArray) -> bool:
        """Return whether SCIP accepts the point as a solution."""
        scip = self.session.scip
        solution = scip.createOrigSol(self)
        for variable, value in zip(self.session.variables, values.tolist(), strict=True):
            scip.setSolVal(solution, variable, value)
        return bool(scip.trySol(solution))


EVENTS = (
    SCIP_EVENTTYPE.BESTSOLFOUND,
    SCIP_EVENTTYPE.NODEFEASIBLE,
    SCIP_EVENTTYPE.NODEINFEASIBLE,
    SCIP_EVENTTYPE.NODEBRANCHED,
    SCIP_EVENTTYPE.LPSOLVED,
)


class ProgressHandler(pyscipopt.Eventhdlr):
    """An event handler that reports progress and ends a cancelled solve."""

    def __init__(self, session: ScipSession) -> None:
        self.session = session

    def eventinit(self) -> None:
        """Listen to solutions, nodes and relaxations."""
        for event in EVENTS:
            self.model.catchEvent(event, self)

    def eventexit(self) -> None:
        """Stop listening."""
        for event in EVENTS:
            self.model.dropEvent(event, self)

    def eventexec(self, event: Any) -> None:
        """Report progress."""
        self.session.exchange.guard(self.session.tick, None)


class Scip(Backend):
    """SCIP, the default solver; it needs no licence and uses one thread."""

    name = "scip"
    capabilities = Capabilities(lazy=True, fractional=True)

    @property
    def version(self) -> str:
        """Version of SCIP itself."""
        return _version()

    def _solve(self, exchange: Exchange) -> Termination:
        session = ScipSession(exchange)
        scip = session.scip
        _configure(scip, exchange)
        if exchange.hooks.lazy or exchange.hooks.fractional:
            scip.includeConshdlr(
                HiddenRows(session),
                "hidden",
                "rows that the method adds",
                sepapriority=0,
                enfopriority=PRIORITY,
                chckpriority=PRIORITY,
                sepafreq=0 if exchange.hooks.fractional < 0 else 1,
                propfreq=-1,
                eagerfreq=1,
                maxprerounds=0,
                delaysepa=False,
                delayprop=False,
                needscons=False,
            )
        scip.includeHeur(
            Proposals(session),
            "proposals",
            "solutions of the method",
            "Y",
            priority=1_000_000,
            freq=1,
            freqofs=0,
            maxdepth=-1,
            timingmask=SCIP_HEURTIMING.BEFORENODE | SCIP_HEURTIMING.AFTERLPLOOP,
            usessubscip=False,
        )
        scip.includeEventhdlr(ProgressHandler(session), "clock", "progress and cancel")
        for values in exchange.options.starts:
            solution = scip.createSol()
            for variable, value in zip(session.variables, values.tolist(), strict=True):
                scip.setSolVal(solution, variable, value)
            scip.addSol(solution)
        try:
            _run(session)
        # PySCIPOpt raises no narrower exception; the exchange stores an error of a hook and raises it later
        except Exception:
            log.warning("SCIP failed; its solutions and bound so far are kept", exc_info=True)
            return Termination.FAILED
        return _end_status(session)


def _configure(scip: Any, exchange: Exchange) -> None:
    options = exchange.options
    settings: dict[str, Any] = {
        "limits/gap": options.gap,
        "limits/absgap": options.absolute_gap,
        "numerics/feastol": 1e-6,
        "randomization/randomseedshift": options.seed,
        "display/verblevel": 0,
        # signals belong to Python's main thread, so only the session may interrupt the solver
        "misc/catchctrlc": False,
    }
    if scip.getNVars() > LARGE:
        settings["lp/solutionpolishing"] = 0
    if exchange.hooks.lazy:
        settings |= {"misc/usesymmetry": 0, "presolving/maxrestarts": 0, "misc/allowstrongdualreds": False}
        settings |= {"misc/allowweakdualreds": False}
    if exchange.hooks.many_nodes:
        settings |= CHEAP_NODES
    if not exchange.hooks.presolve:
        settings["presolving/maxrounds"] = 0
    if options.time is not None:
        settings["limits/time"] = max(0.0, float(exchange.remaining() or 0.0))
    if options.memory is not None:
        settings["limits/memory"] = float(options.memory)
    if options.nodes is not None:
        settings["limits/totalnodes"] = options.nodes
    for key, value in (settings | options.parameters).items():
        if key == "emphasis/heuristics":
            scip.setHeuristics(getattr(SCIP_PARAMSETTING, str(value)))
        elif key == "emphasis/separating":
            scip.setSeparating(getattr(SCIP_PARAMSETTING, str(value)))
        else:
            scip.setParam(key, value)


def _run(session: ScipSession) -> None:
    """Solve without the interpreter lock, while another thread interrupts a solve that must end."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(POLL):
            if session.exchange.halted():
                session.interrupt()
                # SCIP clears the flag when the solve begins, so set it repeatedly until the solve ends

    watcher = threading.Thread(target=watch, name="scip-watch", daemon=True)
    watcher.start()
    try:
        session.scip.optimizeNogil()
    finally:
        ended.set()
        watcher.join()


def _end_status(session: ScipSession) -> Termination:
    scip = session.scip
    exchange = session.exchange
    status = scip.getStatus()
    bound = scip.getDualbound()
    if status == "infeasible":
        exchange.bound = -math.inf
        return Termination.INFEASIBLE
    if scip.getNSols() > 0:
        best = session.values(scip.getBestSol())
        exchange.guard(lambda: bool(exchange.integral(best, "lp", adding=False)), True)
    exchange.progress(None, math.inf if abs(bound) >= 1e20 else bound, int(scip.getNTotalNodes()), always=True)
    if status in ("optimal", "gaplimit"):
        return Termination.OPTIMAL
    if status == "timelimit":
        return Termination.TIME
    if status == "memlimit":
        return Termination.MEMORY
    if status in ("totalnodelimit", "nodelimit"):
        return Termination.NODES
    return Termination.CANCELLED
