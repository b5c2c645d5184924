"""Prove a bound with prices of columns.

The checker counts trees of depth two on each side of a question, so a proof for depth three is one step. For deeper
trees, sides whose floors are too low get a step. The format is docs/proof-format.md, "Prices of columns".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.search.column_cases import Case, CasesProof
from trainer.families.exact.search.memo import ExactOptions
from trainer.families.exact.search.priced import (
    ColumnPrices,
    PricedSearch,
    Subproblem,
    begin_priced,
    priced_instance,
)
from trainer.methods.base import ProofSteps
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits

CHECKED_HEIGHT = 3  # the checker counts subtrees up to this height by itself
MOST_STEPS = 500_000
Step = dict[str, Any]


class _ProofStopped(Exception):
    """The proof needs too many steps or too much time."""


class _SideBound(NamedTuple):
    """A child of a split, the answer that leads to it, and the bound that a step must prove."""

    part: Subproblem
    answer: int
    bound: int


def priced_proof(
    problem: BinaryProblem,
    prices: ColumnPrices,
    bound: Fraction,
    *,
    options: ExactOptions,
    max_leaves: int | None,
    stop: Callable[[], bool],
) -> ProofSteps | None:
    """Prove that no tree costs less than `bound` rows, leaves and prices included; None if stopped or too large."""
    search, depth = begin_priced(problem, prices, limits=SearchLimits(stop=stop), options=options)
    instance = search.search.instance
    scale = instance.scale
    goal = scale * math.ceil(bound * instance.Q) + (scale > 1)  # a leaf adds 1 to a scaled cost
    steps = _steps_of(search, depth, max_leaves, goal, stop)
    return None if steps is None else ProofSteps(scale=scale, goal=goal, steps=steps, priced=True)


def priced_cases_proof(
    problem: BinaryProblem,
    prices: ColumnPrices,
    root: Case,
    bound: Fraction,
    *,
    options: ExactOptions,
    max_leaves: int | None,
    stop: Callable[[], bool],
) -> ProofSteps | None:
    """Prove `bound`, in rows, from the cases of a search with a limit of columns; None if stopped or too large."""
    instance, _ = priced_instance(problem, prices)

    def close(case: Case, goal: int) -> list[Step] | None:
        usable = np.isin(prices.columns, list(case.usable)).astype(np.uint8)
        among = replace(problem, allowed=problem.allowed_features * usable)
        search, depth = begin_priced(among, prices, limits=SearchLimits(stop=stop), options=options)
        return _steps_of(search, depth, max_leaves, goal, stop)

    return CasesProof(
        root=root,
        bound=bound,
        depth=problem.depth,
        leaves=max_leaves,
        Q=instance.Q,
        scale=instance.scale,
        close=close,
        stop=stop,
        priced=True,
    ).build_steps()


def _steps_of(
    search: PricedSearch, depth: int, max_leaves: int | None, goal: int, stop: Callable[[], bool]
) -> list[Step] | None:
    """Return the steps that prove the integer cost `goal` for all rows; None if stopped or too large."""
    rows = np.arange(len(search.search.instance.rows), dtype=np.int32)
    writer = _Writer(search, stop)
    try:
        writer.prove(Subproblem(rows, depth, max_leaves or 1 << depth, frozenset()), (), goal)
    except _ProofStopped:
        return None
    return writer.steps


class _Writer:
    def __init__(self, search: PricedSearch, stop: Callable[[], bool]) -> None:
        self.search = search
        self.stop = stop
        self.steps = list[Step]()
        self.proved: dict[tuple[int, int, frozenset[int], bytes], int] = {}

    def prove(self, part: Subproblem, path: tuple[int, ...], bound: int) -> None:
        """Write the steps that prove a bound of a subproblem; raise _ProofStopped without one."""
        key = (*part[1:], part.rows.tobytes())
        if self.proved.get(key, 0) >= bound:
            return
        if self.stop() or len(self.steps) >= MOST_STEPS:
            raise _ProofStopped
        if part.height > CHECKED_HEIGHT:
            self._prove_sides(part, path, bound)
        step = {"path": list(path), "height": part.height, "bound": int(bound)}
        limit = {"leaves": part.leaves} if part.leaves < 1 << part.height else {}
        self.steps.append(step | {"by": "split" if part.height > 2 else "count"} | limit)
        self.proved[key] = bound

    def _prove_sides(self, part: Subproblem, path: tuple[int, ...], bound: int) -> None:
        """Write steps of children until each split costs at least `bound`."""
        search = self.search
        node = search.prepare(part.rows)
        charges = int(node.totals.sum()) * search.tolls.unpaid(node.features, part.paid)
        largest = 1 << (part.height - 1)
        for feature, charge in zip(node.features.tolist(), charges.tolist(), strict=True):
            rows = dp_node.split_rows(search.search.instance.rows, part.rows, feature)
            paid = search.tolls.paid_below(part.paid, feature)
            for leaves in range(max(1, part.leaves - largest), min(largest, part.leaves - 1) + 1):
                sides = (
                    Subproblem(rows[0], part.height - 1, leaves, paid),
                    Subproblem(rows[1], part.height - 1, part.leaves - leaves, paid),
                )
                for side in self._needed(sides, bound - charge):
                    self.prove(side.part, (*path, 2 * feature + side.answer), side.bound)

    def _needed(self, sides: tuple[Subproblem, Subproblem], bound: int) -> list[_SideBound]:
        """Return the sides that need a step, with bounds that add up to `bound`; raise _ProofStopped if they cost less."""
        floors = [self._floor(side) for side in sides]
        larger = 0 if len(sides[0].rows) >= len(sides[1].rows) else 1
        targets = list(floors)
        for s in (larger, 1 - larger):
            if sum(targets) < bound:
                target = bound - targets[1 - s]
                targets[s] = max(targets[s], min(target, self.search.solve(sides[s], target).lower))
        if sum(targets) < bound:
            raise _ProofStopped
        return [
            _SideBound(side, s, target)
            for s, (side, target) in enumerate(zip(sides, targets, strict=True))
            if target > floors[s]
        ]

    def _floor(self, part: Subproblem) -> int:
        """Return the bound that the checker knows without a step."""
        leaf, floor = self.search.search.node_bounds(self.search.prepare(part.rows), min(part.height, part.leaves - 1))
        return min(int(leaf), int(floor))
