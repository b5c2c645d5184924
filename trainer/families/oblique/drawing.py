"""The planes of the best tree, drawn as they were asked for, and the tree in the columns' own units."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from trainer.errors import SolverError
from trainer.families.oblique.distance import keeps_distance
from trainer.families.oblique.instance import ObliqueTree
from trainer.families.oblique.local import LocalSearch
from trainer.families.oblique.plan import SolvePlan
from trainer.families.oblique.refit import refitted
from trainer.families.oblique.separable import Separator
from trainer.families.oblique.sparse import thinned
from trainer.families.oblique.target import Target
from trainer.families.oblique.units import draft_of
from trainer.methods.monitor import Monitor
from trainer.tree.nodes import Draft

# share of the time, and seconds at most, for drawing the planes of the best tree
DRAWING = {"margin": (0.03, 2.0), "svm": (0.1, 15.0), "sparse": (0.1, 15.0)}
MOST_DRAWING = 30.0


def kept_for_drawing(style: str, monitor: Monitor) -> float:
    """Seconds of the run that are left for drawing."""
    share, most = DRAWING[style]
    return min(most, share * monitor.remaining())


class Drawing:
    """Draws the best tree of a search; a drawn tree that would be worse is not used."""

    def __init__(self, target: Target, plan: SolvePlan, search: LocalSearch, monitor: Monitor) -> None:
        self.target = target
        self.plan = plan
        self.search = search
        self.monitor = monitor

    def drawn(self) -> tuple[ObliqueTree, bool]:
        """The best tree with its planes drawn as requested, and whether all of them are."""
        end = time.perf_counter() + MOST_DRAWING

        def stopped() -> bool:
            return self.monitor.stopped() or time.perf_counter() > end

        inst = self.target.instance
        style = self.target.settings["hyperplanes"]
        columns = np.array([f.column for f in self.target.units.encoding.features], np.int64)
        best = self.search.best
        separator = Separator(inst.Z)
        tree, as_asked = refitted(inst, best, separator, style, columns, stopped)
        if style == "sparse" and not self.plan.least:
            thin = self._thinnest(tree, stopped)
            if thin is not tree:
                thin, again = refitted(inst, thin, separator, style, columns, stopped)
                if self._fits(thin) and thin.coefficients < tree.coefficients:
                    tree = thin
                    as_asked = again
        return (tree, as_asked) if self._fits(tree) else (best, False)

    def in_units(self, tree: ObliqueTree, starts: Sequence[ObliqueTree]) -> tuple[ObliqueTree, Draft]:
        """The tree, or the best other one, that can be written in the columns' own units; the last one is a single leaf."""
        inst = self.target.instance
        leaf = inst.completed(inst.stump()) if inst.complete else inst.stump()
        others = sorted([*map(inst.pruned, starts), leaf], key=inst.value, reverse=True)
        for candidate in (tree, self.search.best, *others):
            draft = draft_of(candidate, inst, self.target.units)
            if draft is not None:
                return candidate, draft
        raise SolverError(
            "The hyperplanes cannot be written in the columns' own units without changing answers. Scale the columns."
        )

    def _fits(self, tree: ObliqueTree) -> bool:
        """True for a tree of the class that is as good as the best one."""
        inst = self.target.instance
        near = not self.plan.least or keeps_distance(inst, tree, self.plan.least)
        return near and inst.admits(tree) and inst.value(tree) >= self.search.value

    def _thinnest(self, tree: ObliqueTree, stopped: Callable[[], bool]) -> ObliqueTree:
        """Among the trees with coefficients left out the last one that is as good."""
        for thin in thinned(self.search, tree, stopped):
            if not self._fits(thin):
                break
            tree = thin
        return tree
