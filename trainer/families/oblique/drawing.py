"""Draw the planes of the best tree in the requested style."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from trainer.errors import SolverError
from trainer.families.oblique.distance import keeps_distance
from trainer.families.oblique.instance import ObliqueTree
from trainer.families.oblique.local import LocalSearch
from trainer.families.oblique.plan import SolvePlan
from trainer.families.oblique.refit import refit_planes
from trainer.families.oblique.separable import Separator
from trainer.families.oblique.sparse import eliminate_coefficients
from trainer.families.oblique.target import Target
from trainer.families.oblique.units import make_draft
from trainer.methods.monitor import Monitor
from trainer.tree.nodes import Draft

# for each style, the share of the remaining time and the limit in seconds
DRAWING_BUDGETS = {"margin": (0.03, 2.0), "svm": (0.1, 15.0), "sparse": (0.1, 15.0)}
MAX_DRAWING_SECONDS = 30.0


def drawing_seconds(style: str, monitor: Monitor) -> float:
    """Return the seconds of the run that are reserved for drawing."""
    share, most = DRAWING_BUDGETS[style]
    return min(most, share * monitor.remaining())


class Drawing:
    """Draws the planes of the best tree of a search, and discards drawn trees that are worse."""

    def __init__(self, target: Target, plan: SolvePlan, search: LocalSearch, monitor: Monitor) -> None:
        self.target = target
        self.plan = plan
        self.search = search
        self.monitor = monitor

    def draw(self) -> tuple[ObliqueTree, bool]:
        """Return the best tree with drawn planes, and whether all of them have the requested style."""
        end = time.perf_counter() + MAX_DRAWING_SECONDS

        def stopped() -> bool:
            return self.monitor.stopped() or time.perf_counter() > end

        inst = self.target.instance
        style = self.target.settings["hyperplanes"]
        columns = np.array([f.column for f in self.target.units.encoding.features], np.int64)
        best = self.search.best
        separator = Separator(inst.Z)
        tree, in_style = refit_planes(inst, best, separator, style, columns, stopped)
        if style == "sparse" and not self.plan.least:
            thin = self._thinnest(tree, stopped)
            if thin is not tree:
                thin, again = refit_planes(inst, thin, separator, style, columns, stopped)
                if self._fits(thin) and thin.coefficients < tree.coefficients:
                    tree = thin
                    in_style = again
        return (tree, in_style) if self._fits(tree) else (best, False)

    def in_units(self, tree: ObliqueTree, starts: Sequence[ObliqueTree]) -> tuple[ObliqueTree, Draft]:
        """Return the best tree that has a draft in the columns' units, and the draft. The last candidate is a single leaf."""
        inst = self.target.instance
        leaf = inst.complete_to_depth(inst.majority_leaf()) if inst.complete else inst.majority_leaf()
        others = sorted([*map(inst.prune, starts), leaf], key=inst.value, reverse=True)
        for candidate in (tree, self.search.best, *others):
            draft = make_draft(candidate, inst, self.target.units)
            if draft is not None:
                return candidate, draft
        raise SolverError(
            "The hyperplanes cannot be written in the columns' own units without changing answers. Scale the columns."
        )

    def _fits(self, tree: ObliqueTree) -> bool:
        """Return whether a tree is in the class, admitted, and at least as good as the best one."""
        inst = self.target.instance
        near = not self.plan.least or keeps_distance(inst, tree, self.plan.least)
        return near and inst.admits(tree) and inst.value(tree) >= self.search.value

    def _thinnest(self, tree: ObliqueTree, stopped: Callable[[], bool]) -> ObliqueTree:
        """Return the last tree that is as good while coefficients are removed."""
        for thin in eliminate_coefficients(self.search, tree, stopped):
            if not self._fits(thin):
                break
            tree = thin
        return tree
