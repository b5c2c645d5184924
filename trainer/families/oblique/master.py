"""Connect the master model of a hyperplane method to the driver."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from trainer.dtypes import FloatArray
from trainer.errors import SolverError
from trainer.families.oblique.instance import ObliqueTree
from trainer.families.oblique.local import LocalSearch
from trainer.families.oblique.plan import Master
from trainer.families.oblique.target import Target
from trainer.milo import Hooks, Point
from trainer.solver_common.tree_model import TreeProgram


class PlaneModel(TreeProgram[ObliqueTree]):
    """Driver callbacks of a master model; the local search stores the best tree, and `tell` receives bounds."""

    def __init__(
        self,
        form: Master,
        hooks: Hooks,
        target: Target,
        search: LocalSearch,
        top: Fraction,
        tell: Callable[[float, int], bool],
    ) -> None:
        self.form = form
        self.plane_hooks = hooks
        self.target = target
        self.search = search
        self.tell = tell
        self.model = form.model
        self._top = top

    def hooks(self) -> Hooks:
        """Return the cuts of the method, which also propose trees made of rejected points."""
        return self.plane_hooks

    def read(self, values: FloatArray) -> ObliqueTree:
        """Return the tree of the routes, with a plane for each branching."""
        return self.form.read(values)

    def consider(self, tree: ObliqueTree) -> None:
        """Store the tree if it is better."""
        self.search.accept(tree)

    @property
    def value(self) -> Fraction:
        """Value of the incumbent: correct rows minus prices; the search always has a tree."""
        return self.search.value

    @property
    def top(self) -> Fraction:
        """Upper bound that was proved before the model was solved."""
        return self._top

    def floor(self, bound: float) -> Fraction:
        """Round a bound down to a value that a tree can have."""
        return self.target.round_down(bound)

    def progress(self, bound: float, nodes: int) -> bool:
        """Report a bound to the run; return whether to stop."""
        return self.tell(bound, nodes)

    def accept_value(self, bound: Fraction, solver: str) -> Fraction:
        """Return the incumbent's value, which exceeds the model's bound.

        That is valid only if the tree is infeasible in the model (planes too near to rows). Otherwise raise SolverError.
        """
        values = self.form.assignment(self.search.best)
        is_feasible = values is not None and self.model.violated(values) is None
        if is_feasible and values is not None and not self.plane_hooks.on_integral(Point(values), "start"):
            raise SolverError(
                f"{solver} reported the bound {float(bound)}, which is below the value {float(self.search.value)} of a tree. "
                "The result was discarded. Train again with another solver or seed, or report this model."
            )
        return self.search.value
