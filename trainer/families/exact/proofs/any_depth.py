"""Prove a bound on trees of any depth.

The search of the proof has no depth limit. Each step is about one set of rows. Counts of pairs of questions prove most
of them, because a tree deeper than two has at least four leaves. The others are splits, whose sides are proved by the
same counts, by similar sides, or by steps of their own. The format is docs/proof-format.md, "Any height".
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.kernels.bound_table import find, is_full
from trainer.families.exact.kernels.bounds import apply_similarity
from trainer.families.exact.kernels.depth2 import node_errors_by_leaves
from trainer.families.exact.kernels.refine import (
    ANY_HEIGHT,
    RefineContext,
    more_leaves,
    refine,
    side_bounds,
    smallest_side,
    two_level_bounds,
)
from trainer.families.exact.search.any_depth import AnyDepthSearch, write_rows
from trainer.families.exact.search.memo import DEFAULT_OPTIONS
from trainer.families.exact.search.proof import MOST_STEPS, ExactProofTooLarge, Step
from trainer.methods.base import ProofSteps
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits


class _Stopped(Exception):
    """The proof takes more time or memory than it may."""


class _Part(NamedTuple):
    """A set of rows with its path, and the key of the table."""

    rows: np.ndarray
    path: tuple[int, ...]
    key: np.ndarray


def prove_any_depth(problem: BinaryProblem, cost: Fraction, *, stop: Callable[[], bool]) -> ProofSteps | None:
    """Prove that no tree of any depth costs less than `cost` rows, or the optimum if that is less.

    Returns
    -------
    ProofSteps or None
        None if `stop` ended the search, or if it needs too much memory or too many steps.
    """
    search = AnyDepthSearch(problem, SearchLimits(stop=stop), DEFAULT_OPTIONS)
    scale = search.instance.scale
    writer = _Writer(search)
    root = writer.part(search.rows, ())
    try:
        goal = writer.raise_bound(root, scale * math.ceil(cost * search.instance.Q) + (scale > 1))
        writer.prove(root, goal)
    except (_Stopped, ExactProofTooLarge):
        return None
    return ProofSteps(scale=scale, goal=goal, steps=writer.steps)


class _Writer:
    """A writer that collects the steps of a proof, children before parents."""

    def __init__(self, search: AnyDepthSearch) -> None:
        self.search = search
        self.steps: list[Step] = []
        self.proved: dict[bytes, int] = {}  # for the key of each row set, its proved bound
        self.side = int(smallest_side(search.costs))

    def part(self, rows: np.ndarray, path: tuple[int, ...]) -> _Part:
        key = np.zeros_like(self.search.key)
        write_rows(self.search.instance, rows, key)
        key[-1] = ANY_HEIGHT
        return _Part(rows, path, key)

    def raise_bound(self, part: _Part, target: int) -> int:
        """Return `target`, or the optimum of the rows if that is less; search until the table has this bound."""
        if self._table_bound(part) >= target:
            return target
        while True:
            s = self.search
            s.work[1] = s.work[0] + s.visits_per_slice()
            bounds = refine(self._context(), part.rows, part.key, ANY_HEIGHT, target, 0)
            if bounds[0] >= min(target, bounds[1]):
                return min(target, int(bounds[0]))
            if is_full(s.table):
                s.grow()
            if s.out_of_memory or s.limits.stopped():
                raise _Stopped

    def prove(self, part: _Part, bound: int) -> None:
        """Write the steps that prove `bound`, which is at most the optimum of the rows."""
        name = hashlib.blake2b(part.rows.tobytes(), digest_size=16).digest()
        if self.proved.get(name, 0) >= bound:
            return
        reason = self._reason(part, bound)
        if len(self.steps) >= MOST_STEPS:
            raise ExactProofTooLarge
        if self.search.limits.stopped():
            raise _Stopped
        self.steps.append({"path": list(part.path), "height": None, "bound": bound, "by": reason})
        self.proved[name] = bound

    def _reason(self, part: _Part, bound: int) -> str:
        """Return the reason of a step, after the steps of the sides that it needs."""
        g = self.search.instance
        node = dp_node.prepare(g.data, part.rows, self.search.allowed, self.side, True, True)
        counts = np.sort(node.totals.astype(np.int64))[::-1].copy()
        if more_leaves(counts, node.equal, 1, 1 << 40, g.unit, g.leaf) >= bound:
            return "floor"
        m = len(node.features)
        if not m:
            return "split"
        P = np.empty((g.n_classes, m, m), np.int32)
        dp_node.pair_counts(node, P)
        errors = np.empty(4, np.int64)
        children = node_errors_by_leaves(node, P, int(self.search.costs[2]), errors)
        as_leaf = int(counts.sum() - counts[0]) * g.unit + g.leaf
        if two_level_bounds(self._context(), node, as_leaf, ANY_HEIGHT, errors)[0] >= bound:
            return "count"
        lower = side_bounds(self._context(), node, children, ANY_HEIGHT).lower
        self._prove_sides(part, node, P, lower, bound)
        return "split"

    def _prove_sides(self, part: _Part, node: dp_node.NodeView, P: np.ndarray, lower: np.ndarray, bound: int) -> None:
        """Write steps of sides until those of each split add up to `bound`."""
        for p in range(lower.shape[1]):
            for side in (0, 1):
                self._apply_similarity(node, P, p, side, lower)
        while True:
            sums = lower[0] + lower[1]
            p = int(sums.argmin())
            if sums[p] >= bound:
                return
            feature = int(node.features[p])
            rows = dp_node.split_rows(self.search.instance.rows, part.rows, feature)
            sides = [self.part(rows[side], (*part.path, 2 * feature + side)) for side in (0, 1)]
            targets = self._side_targets(sides, lower[:, p].tolist(), bound)
            for side in (0, 1):
                if targets[side] > lower[side, p]:
                    self.prove(sides[side], targets[side])
                    lower[side, p] = targets[side]
                    self._apply_similarity(node, P, p, side, lower)

    def _side_targets(self, sides: list[_Part], floors: list[int], bound: int) -> list[int]:
        """Return bounds of both sides that add up to `bound`, with a step for a single side if that is enough."""
        known = [max(floors[side], self._table_bound(sides[side])) for side in (0, 1)]
        first = 0 if len(sides[0].rows) >= len(sides[1].rows) else 1
        for side in (first, 1 - first):
            if known[0] + known[1] < bound:
                known[side] = max(known[side], self.raise_bound(sides[side], bound - known[1 - side]))
        for side in (first, 1 - first):
            if known[side] + floors[1 - side] >= bound:
                return [bound - floors[1 - side] if s == side else floors[s] for s in (0, 1)]
        targets = list(known)
        targets[1 - first] = bound - known[first]
        return targets

    def _table_bound(self, part: _Part) -> int:
        at = int(find(self.search.table, part.key))
        return int(self.search.table.lower[at]) if at >= 0 else 0

    def _context(self) -> RefineContext:
        s = self.search
        return RefineContext(s.instance.data, s.allowed, s.costs, s.table, s.work, s.limits.flag)

    def _apply_similarity(self, node: dp_node.NodeView, P: np.ndarray, p: int, side: int, lower: np.ndarray) -> None:
        """Raise the bounds of all sides by their similarity to one of them."""
        s = self.search
        if s.costs[3]:
            apply_similarity(node, P, p, side, int(lower[side, p]), s.instance.unit, lower)
