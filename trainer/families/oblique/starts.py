"""Find start trees by other methods, each with its own time limit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Self

from trainer.certificate import Limits, Status
from trainer.data.problem import Problem
from trainer.errors import TrainerError
from trainer.families.oblique.instance import ObliqueInstance, ObliqueTree
from trainer.families.oblique.units import Units, plane_tree
from trainer.methods.base import Settings
from trainer.methods.monitor import Monitor
from trainer.solver_common import cross_family
from trainer.tree.nodes import Draft

STARTS = ("cart", "exact", "bivariate", "oc1")


class InnerMonitor(Monitor):
    """Monitor with its own time limit that also ends with the run; it does not report progress.

    Inside `with`, a thread watches the clock, since kernels check only the flag.
    """

    def __init__(self, outer: Monitor, seconds: float) -> None:
        super().__init__(Limits(time=seconds, memory=outer.limits.memory, threads=outer.limits.threads))
        self.outer = outer
        self._done = threading.Event()

    def __enter__(self) -> Self:
        def tick() -> None:
            while not self.stopped() and not self._done.wait(0.05):
                pass

        threading.Thread(target=tick, name="inner-clock", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()

    def stopped(self) -> bool:
        if self.reason is None and self.outer.stopped():
            self.stop(self.outer.reason or Status.CANCELLED)
        return super().stopped()


def first_trees(
    problem: Problem,
    settings: Settings,
    monitor: Monitor,
    instance: ObliqueInstance,
    units: Units,
    enough: Fraction,
    seconds: float,
    on_tree: Callable[[ObliqueTree], object],
) -> list[ObliqueTree]:
    """Return the warm start and trees of other methods on the same rows, until a tree has the value `enough`.

    `on_tree` receives each tree at once. Methods that fail give no tree.
    """
    trees: list[ObliqueTree] = []

    def take(draft: Draft) -> None:
        trees.append(plane_tree(draft, instance, units))
        on_tree(trees[-1])

    if problem.warm_start is not None:
        take(problem.warm_start)
    methods = {"all": STARTS, "cart": STARTS[:1], "none": ()}[settings["first_trees"]]
    for method in map(cross_family.method, methods):
        if monitor.stopped() or any(instance.value(tree) >= enough for tree in trees):
            break
        raw = {"depth": settings["depth"], "seed": settings["seed"]}
        try:
            with InnerMonitor(monitor, seconds / len(methods)) as inner:
                draft = method.solve(problem, method.settings(raw), inner).draft
            take(draft)  # `take` raises for a split on a special value alone
        except TrainerError:
            continue
    return trees
