"""The master model of a method with hyperplanes under the driver of all tree models."""

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
    """A point whose rows are accepted is a tree; the local search keeps the best one. `tell` hears the rounded bound."""

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
        self.own = hooks
        self.target = target
        self.search = search
        self.tell = tell
        self.model = form.model
        self._top = top

    def hooks(self) -> Hooks:
        """The cuts of the method, with better trees made of rejected points."""
        return self.own

    def read(self, values: FloatArray) -> ObliqueTree:
        """The tree of the routes, with a plane for each branching."""
        return self.form.read(values)

    def consider(self, tree: ObliqueTree) -> None:
        """Keep the tree if it is better."""
        self.search.accept(tree)

    @property
    def value(self) -> Fraction:
        """Rows right less prices; the search always has a tree."""
        return self.search.value

    @property
    def top(self) -> Fraction:
        """The bound before the model."""
        return self._top

    def floor(self, bound: float) -> Fraction:
        """Onto the values that a tree can have."""
        return self.target.rounded(bound)

    def progress(self, bound: float, nodes: int) -> bool:
        """To the run."""
        return self.tell(bound, nodes)

    def beaten(self, bound: Fraction, solver: str) -> Fraction:
        """The best tree beats the model's bound: right only if the model does not know the tree (planes too near to rows)."""
        values = self.form.assignment(self.search.best)
        known = values is not None and self.model.violated(values) is None
        if known and values is not None and not self.own.on_integral(Point(values), "start"):
            raise SolverError(
                f"{solver} claims the bound {float(bound)} below the value {float(self.search.value)} of a tree."
            )
        return self.search.value
