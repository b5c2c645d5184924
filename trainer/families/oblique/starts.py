"""First trees for the methods with hyperplanes: trees of other methods over the same rows, each in its own time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Self

from trainer.certificate import Limits, Status
from trainer.data.problem import Problem
from trainer.errors import TrainerError
from trainer.families.oblique.instance import ObliqueInstance, ObliqueTree
from trainer.families.oblique.units import Units, tree_of
from trainer.methods.base import Settings
from trainer.methods.monitor import Monitor
from trainer.solver_common import cross_family
from trainer.tree.nodes import Draft

STARTS = ("cart", "exact", "bivariate", "oc1")


class Inner(Monitor):
    """A monitor with its own time limit that also ends with the whole run; it does not report progress.

    Inside `with`, a thread keeps its time: kernels look at the flag alone.
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
    found: Callable[[ObliqueTree], object],
) -> list[ObliqueTree]:
    """Trees of other methods over the same rows, until one has the value `enough`; a method that fails or is too slow gives none.

    `found` hears of each tree at once.
    """
    trees: list[ObliqueTree] = []

    def take(draft: Draft) -> None:
        trees.append(tree_of(draft, instance, units))
        found(trees[-1])

    if problem.warm_start is not None:
        take(problem.warm_start)
    wanted = {"all": STARTS, "cart": STARTS[:1], "none": ()}[settings["first_trees"]]
    for method in map(cross_family.method, wanted):
        if monitor.stopped() or any(instance.value(tree) >= enough for tree in trees):
            break
        raw = {"depth": settings["depth"], "seed": settings["seed"]}
        try:
            with Inner(monitor, seconds / len(wanted)) as inner:
                draft = method.solve(problem, method.settings(raw), inner).draft
            take(draft)  # which fails for a tree that asks for a special value by itself
        except TrainerError:
            continue
    return trees
