"""BendOCT with the accelerations of Keegan, Forbes, Corry & Abolghasemi, each with its switch.

The master problem is that of bendoct.py. On top of it: strengthened cuts (12), polishing (Algorithm 1), equivalent-point rows
(13)-(22), path-bound cuts (23)-(26), and two of ours that hold for every tree: (24') and the split bounds (27').
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainer.cuts.equivalent import EquivalentPoints, Form, equivalent_sets
from trainer.cuts.instance import ArrayTree, Instance
from trainer.cuts.path_bound import PathBoundCuts
from trainer.dtypes import FloatArray
from trainer.methods.bendoct import BendersHooks, BendOCT
from trainer.milo import Hooks, NodeInfo, Point, Row
from trainer.search.polish import DepthTwo, polish


@dataclass(frozen=True, kw_only=True)
class Techniques:
    """Switches of the accelerations; the defaults are the best configuration of the paper and the split bounds.

    `equivalent_points` None leaves those rows out; `split_set` is the largest split set, `set_limit` the largest number of sets.
    """

    strengthened: bool = False
    polishing: bool = True
    equivalent_points: Form | None = "recursive"
    disaggregated: bool = True
    group_selection: bool = True
    split_set: int = 2
    set_limit: int = 200
    path_bounds: bool = True
    negative_samples: bool = True
    structure: bool = True
    endpoints_only: bool = False
    objective_form: bool = False
    at_integral: bool = True
    split_bounds: bool = True
    cache: bool = True
    root_cuts: bool = False

    @property
    def bounding(self) -> bool:
        """True if any bound of subtrees is used."""
        return self.path_bounds or self.split_bounds


VANILLA = Techniques(polishing=False, equivalent_points=None, path_bounds=False, split_bounds=False)
PAPER = Techniques(split_bounds=False, at_integral=False)


class AcceleratedBendOCT(BendOCT):
    """The master problem of BendOCT with the chosen techniques."""

    def __init__(self, instance: Instance, techniques: Techniques | None = None, *, whole_labels: bool = False) -> None:
        self.techniques = t = techniques or Techniques()
        super().__init__(
            instance,
            strengthened=t.strengthened,
            root_cuts=t.root_cuts,
            # structure cuts fix labels: with votes between two classes they could be evaded
            whole_labels=whole_labels or (t.path_bounds and t.structure),
        )
        self.depth_two = DepthTwo(instance, cache=t.cache)
        self.equivalent: EquivalentPoints | None = None
        if t.equivalent_points is not None:
            self.equivalent = EquivalentPoints(
                instance=instance,
                model=self.model,
                b=self.structure.b,
                theta=self.theta,
                form=t.equivalent_points,
                disaggregated=t.disaggregated,
                group_selection=t.group_selection,
            )
            self.equivalent.add(equivalent_sets(instance, split_size=t.split_set, limit=t.set_limit))
        s = self.structure
        self.paths = PathBoundCuts(
            instance=instance, b=s.b, p=s.p, w=s.w, theta=self.theta, best=self.depth_two.best,
            negative=t.negative_samples, structure=t.structure, endpoints_only=t.endpoints_only,
            objective_form=t.objective_form, split_bounds=t.split_bounds,
        )  # fmt: skip

    def assignment(self, tree: ArrayTree) -> FloatArray:
        """As in BendOCT, and the variables of the equivalent-point rows."""
        values = super().assignment(tree)
        if self.equivalent is not None:
            self.equivalent.fill(values)
        return values

    def start(self, tree: ArrayTree) -> ArrayTree:
        """A first tree, polished where polishing is on."""
        return polish(self.instance, tree, self.depth_two) if self.techniques.polishing else tree

    def hooks(self) -> Hooks:
        """Benders rows, polishing and path bounds."""
        return AcceleratedHooks(self)


class AcceleratedHooks(BendersHooks):
    """BendOCT's hooks with polishing at every integral point and path bounds at every node."""

    formulation: AcceleratedBendOCT

    def __init__(self, formulation: AcceleratedBendOCT) -> None:
        super().__init__(formulation)
        if formulation.techniques.bounding:
            self.fractional = 1

    def on_integral(self, point: Point, origin: str) -> Sequence[Row]:
        """Benders rows, the bounds of the paths of the tree, and a polished tree as a proposal."""
        form = self.formulation
        rows = list(super().on_integral(point, origin))
        if not rows:
            return rows
        if form.techniques.polishing and origin != "start":
            self.offer(polish(form.instance, form.read(point.values), form.depth_two))
        if form.techniques.bounding and form.techniques.at_integral:
            rows += self._bounds(point)
        return rows

    def on_fractional(self, point: Point, info: NodeInfo) -> Sequence[Row]:
        """Path bounds; at the root minimum cuts as well, where they are on."""
        rows = list(super().on_fractional(point, info))
        if self.formulation.techniques.bounding:
            rows += self._bounds(point)
        return rows

    def _bounds(self, point: Point) -> list[Row]:
        form = self.formulation
        s = form.structure
        found = form.paths.separate(point[s.b], point[s.p], point[form.theta])
        return found if form.techniques.path_bounds else [row for row in found if row.name == "split-bound"]


def first_trees(formulation: AcceleratedBendOCT, trees: Sequence[ArrayTree]) -> list[ArrayTree]:
    """The starting trees and their polished forms, best first."""
    inst = formulation.instance
    both = [*trees, *(formulation.start(tree) for tree in trees)]
    return sorted(both, key=inst.value, reverse=True)[:1]


__all__ = ["PAPER", "VANILLA", "AcceleratedBendOCT", "Techniques", "first_trees"]
