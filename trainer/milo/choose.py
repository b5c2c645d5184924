"""The table of back ends, and which one is used: the requested one; otherwise Gurobi with a full licence, else SCIP.

Names, choices of the parameter `solver`, tests and benchmarks are made from the table: a new back end is a file and a line here.
"""

from __future__ import annotations

from collections.abc import Callable

from trainer.errors import ParameterError
from trainer.milo.backend import Backend
from trainer.milo.gurobi import Gurobi, licence
from trainer.milo.highs import Highs
from trainer.milo.scip import Scip

TABLE: dict[str, Callable[[], Backend]] = {"scip": Scip, "highs": Highs, "gurobi": Gurobi}
BACKENDS: tuple[str, ...] = tuple(TABLE)


def backend(name: str = "auto") -> Backend:
    """The back end called `name`; raises ParameterError for an unknown one and SolverError for one without a licence."""
    if name == "auto":
        return TABLE["gurobi" if licence() == "full" else "scip"]()
    if name not in TABLE:
        raise ParameterError({"solver": f"'{name}' is not a solver. Known: auto, {', '.join(TABLE)}."})
    return TABLE[name]()
