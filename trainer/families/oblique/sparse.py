"""Remove coefficients of hyperplane trees by backward elimination."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from trainer.dtypes import CountArray
from trainer.families.oblique.instance import ObliqueTree
from trainer.families.oblique.local import LocalSearch

MAX_CANDIDATES = 6  # this many coefficients are tried per branching, starting with the least effect on the scores
MANY_COEFFICIENTS = 8  # with more coefficients, removing half of them at once is tried, too


def eliminate_coefficients(
    search: LocalSearch, tree: ObliqueTree, stopped: Callable[[], bool]
) -> Iterator[ObliqueTree]:
    """Yield trees with fewer and fewer coefficients, each the best of several removals from the one before.

    After each removal all planes are fitted again to the remaining coefficients. Ends at one coefficient per branching. Nothing is
    proved.
    """
    inst = search.instance
    tree = inst.prune(tree)
    while not stopped():
        trials = []
        for v, dropped in _candidates(search, tree):
            if stopped():
                return
            trial = tree.copy()
            trial.a[v, dropped] = 0.0
            trial = search.improve(trial, stopped, support=trial.a != 0.0)
            trials.append(inst.prune(trial))
        if not trials:
            return
        tree = max(trials, key=lambda t: (inst.correct(t), -t.coefficients))
        yield tree


def _candidates(search: LocalSearch, tree: ObliqueTree) -> Iterator[tuple[int, CountArray]]:
    """Yield branchings with several coefficients, and indices of coefficients to remove."""
    inst = search.instance
    at = inst.route(tree)
    for v in tree.branches:
        support = np.flatnonzero(tree.a[v])
        if len(support) < 2:
            continue
        moved = np.abs(tree.a[v, support]) * inst.Z[inst.visits(at, v)][:, support].std(axis=0)
        order = support[np.argsort(moved)]
        if len(support) > MANY_COEFFICIENTS:
            yield v, order[: len(support) // 2]
        for h in order[:MAX_CANDIDATES]:
            yield v, np.array([h])
