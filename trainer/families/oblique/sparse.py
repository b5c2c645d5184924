"""Trees of hyperplanes with ever fewer coefficients: one is left out, all planes are fitted again to the columns that are left."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from trainer.dtypes import CountArray
from trainer.families.oblique.instance import ObliqueTree
from trainer.families.oblique.local import LocalSearch

TRIED = 6  # coefficients of a branching that are left out in turn, those that move its scores least
MANY = 8  # of more, half are left out at once, too


def thinned(search: LocalSearch, tree: ObliqueTree, stopped: Callable[[], bool]) -> Iterator[ObliqueTree]:
    """Backward elimination: of all trees with something left out the one with most rows right, then again from there.

    Ends at one coefficient a branching. Nothing is proved.
    """
    inst = search.instance
    tree = inst.pruned(tree)
    while not stopped():
        found = []
        for v, dropped in _candidates(search, tree):
            if stopped():
                return
            trial = tree.copy()
            trial.a[v, dropped] = 0.0
            trial = search.improve(trial, stopped, support=trial.a != 0.0)
            found.append(inst.pruned(trial))
        if not found:
            return
        tree = max(found, key=lambda t: (inst.correct(t), -t.coefficients))
        yield tree


def _candidates(search: LocalSearch, tree: ObliqueTree) -> Iterator[tuple[int, CountArray]]:
    """Branchings with several coefficients, and places of coefficients to leave out."""
    inst = search.instance
    at = inst.route(tree)
    for v in tree.branches:
        used = np.flatnonzero(tree.a[v])
        if len(used) < 2:
            continue
        moved = np.abs(tree.a[v, used]) * inst.Z[inst.visits(at, v)][:, used].std(axis=0)
        order = used[np.argsort(moved)]
        if len(used) > MANY:
            yield v, order[: len(used) // 2]
        for h in order[:TRIED]:
            yield v, np.array([h])
