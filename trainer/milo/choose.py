"""Which solver is used: the one that was asked for, Gurobi by itself only with a full licence, else SCIP."""

from __future__ import annotations

from collections.abc import Callable

from trainer.errors import ParameterError
from trainer.milo.backend import Backend
from trainer.milo.gurobi import Gurobi, licence
from trainer.milo.highs import Highs
from trainer.milo.scip import Scip

BACKENDS: tuple[str, ...] = ("scip", "gurobi", "highs")


def backend(name: str = "auto") -> Backend:
    """The back end called `name`; raises ParameterError for an unknown one and SolverError for one without a licence."""
    if name == "auto":
        return Gurobi() if licence() == "full" else Scip()
    makers: dict[str, Callable[[], Backend]] = {"scip": Scip, "gurobi": Gurobi, "highs": Highs}
    if name not in makers:
        raise ParameterError({"solver": f"'{name}' is not a solver. Known: auto, {', '.join(makers)}."})
    return makers[name]()
