"""Choose a back end by name from the table of back ends.

Choices of the parameter `solver`, tests and benchmarks use the table. A new back end needs a module and a line here.
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
    """Return a back end.

    Parameters
    ----------
    name : str
        A name of `BACKENDS`, or 'auto': Gurobi with a full licence, otherwise SCIP.

    Raises
    ------
    ParameterError
        If the name is unknown.
    SolverError
        If the solver has no licence.
    """
    if name == "auto":
        return TABLE["gurobi" if licence() == "full" else "scip"]()
    if name not in TABLE:
        raise ParameterError({"solver": f"'{name}' is not a solver. Choose one of: auto, {', '.join(TABLE)}."})
    return TABLE[name]()
