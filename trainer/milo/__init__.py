"""Solve integer programs with hooks for lazy rows by three back ends.

    model = IntegerProgram()
    b = model.binary("b", nodes, features)           # b[n, f] is an expression, b.columns their numbers as an array
    theta = model.continuous("theta", range(n))      # in [0, 1] unless lower and upper are given
    model.add(total(b[1, f] for f in features) == 1, "root")
    model.maximize(total(theta.values()))

    class Cuts(Hooks):
        lazy = True                                  # rows may reject points that satisfy the base rows
        fractional = 1                               # call on_fractional at every node (0 never, -1 at the root)
        def on_integral(self, point, origin):        # point[b] is an array shaped like b.columns
            return [(theta[i] <= b[1, f]).named("benders") for ...]   # an empty result accepts the point
        def on_fractional(self, point, info): ...    # rows; `.named(name, user=True)` only tightens the relaxation
        def propose(self): ...                       # complete assignments, float64 (model.size,), each returned once
        def on_progress(self, report): ...           # True stops the solve

    outcome = backend("auto").solve(model, Cuts(), SolveOptions(time=60, absolute_gap=0.5, starts=(values,)))

Large rows are cheaper as `Row(columns, coefficients, upper=..., name=...)`. `outcome.values` is the best point that the hooks
accepted, `outcome.bound` an upper bound that no accepted point exceeds. An exception in a hook ends the solve, and `solve` raises
it. To cancel, let `SolveOptions(stopped=...)`, called about ten times a second, or `on_progress` return True.
"""

from trainer.milo.backend import Backend, Capabilities
from trainer.milo.choose import BACKENDS, backend
from trainer.milo.expression import Expression, Row, at_most, row, total, weighted
from trainer.milo.hooks import (
    INTEGRALITY,
    USER_VIOLATION,
    VIOLATION,
    Hooks,
    NodeInfo,
    Outcome,
    SolveOptions,
    SolveReport,
    Termination,
)
from trainer.milo.model import BuildStopped, IntegerProgram, Point, Variables

__all__ = [
    "BACKENDS",
    "INTEGRALITY",
    "USER_VIOLATION",
    "VIOLATION",
    "Backend",
    "BuildStopped",
    "Capabilities",
    "Expression",
    "Hooks",
    "IntegerProgram",
    "NodeInfo",
    "Outcome",
    "Point",
    "Row",
    "SolveOptions",
    "SolveReport",
    "Termination",
    "Variables",
    "at_most",
    "backend",
    "row",
    "total",
    "weighted",
]
