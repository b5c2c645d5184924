"""Write the proof of a bound in a second pass.

The pass starts with the bound and the warm caches of the search. For each split, the bounds of its children must add up to the bound
of the node. Most children need no step, since the checker bounds them by classes, equal rows and similar splits. The checker counts
trees of depth two, so a proof for depth three is one step. The format is docs/proof-format.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.kernels.bounds import apply_similarity
from trainer.families.exact.search.memo import INFINITE, UNKNOWN_PATH
from trainer.families.exact.search.search import ExactSearch
from trainer.methods.base import ProofSteps

Step = dict[str, Any]
MOST_STEPS = 2_000_000


class ExactProofTooLarge(Exception):
    """The proof needs more than MOST_STEPS steps."""


def build_proof(search: ExactSearch, bound: int, stop: Callable[[], bool]) -> ProofSteps | None:
    """Return the proof of the integer bound of a search that has ended; None if it is too large or stopped."""
    search.flag = np.zeros(1, np.int64)
    search.stop = stop
    search.improved = None
    search.report = lambda cost, lower, nodes: None
    try:
        steps, proved = prove(search, bound, stop)
    except ExactProofTooLarge:
        return None
    return ProofSteps(scale=search.instance.scale, goal=proved, steps=steps) if proved >= bound else None


def prove(search: ExactSearch, bound: int, stop: Callable[[], bool] = lambda: False) -> tuple[list[Step], int]:
    """Return the steps that prove the integer bound for all rows, and the bound they prove: less if `stop` ended the pass.

    `search` has been run. Raises ExactProofTooLarge beyond MOST_STEPS steps.
    """
    writer = _Writer(search, stop)
    rows = np.arange(len(search.instance.rows), dtype=np.int32)
    proved = writer.prove(rows, (), search.depth, bound)
    return writer.steps, proved


def part_steps(search: ExactSearch, rows: np.ndarray, height: int, bound: int, stop: Callable[[], bool]) -> list[Step]:
    """Return the steps that prove `bound` for some rows, with paths relative to them. Raises ExactProofTooLarge."""
    writer = _Writer(search, stop)
    writer.prove(rows, UNKNOWN_PATH, height, bound)
    return [step | {"path": step["path"][1:]} for step in writer.steps]


class _Writer:
    def __init__(self, search: ExactSearch, stop: Callable[[], bool]) -> None:
        self.search = search
        self.stop = stop
        self.steps = list[Step]()
        self.proved: dict[Any, int] = {}  # proved bounds for each height and row set

    def prove(self, rows: np.ndarray, path: tuple[int, ...], height: int, bound: int) -> int:
        """Write the steps that prove `bound` and return the proved bound."""
        s = self.search
        key = (height, rows.tobytes())
        if self.proved.get(key, 0) >= bound:
            return bound
        # the checker derives the parent's bounds from this child, whose pairs it counts itself
        if path and height == 3:
            self._write(path, height, bound, "split")
            self.proved[key] = bound
            return bound
        node = s.prepare(rows)
        leaf, floor = s.node_bounds(node, height)
        if min(leaf, floor) >= bound or not len(node.features):
            bound = min(bound, leaf)
            self._write(path, height, bound, "floor" if floor >= bound else "split")
        elif height <= 2:
            self._write(path, height, bound, "count")
        else:
            bound = min(bound, leaf)
            if height > 3:
                bound = self._sides(rows, path, height, bound)
            self._write(path, height, bound, "split")
        self.proved[key] = bound
        return bound

    def _sides(self, rows: np.ndarray, path: tuple[int, ...], height: int, bound: int) -> int:
        """Write steps of children until their bounds add up to `bound` for each split; return the least sum."""
        s = self.search
        frame = s.build_frame(s.prepare(rows), height)
        lower = frame.lower
        for p in range(len(frame.node.features)):
            if lower[0, p] + lower[1, p] >= bound:
                continue
            feature = int(frame.node.features[p])
            parts = dp_node.split_rows(s.instance.rows, rows, feature)
            paths = [(*path, 2 * feature + side) for side in (0, 1)]
            targets = self._side_targets(parts, paths, height - 1, bound, lower[:, p])
            for side in (0, 1):
                if targets[side] > lower[side, p]:
                    lower[side, p] = self.prove(parts[side], paths[side], height - 1, targets[side])
                    if s.similar:
                        apply_similarity(frame.node, frame.P, p, side, lower[side, p], s.instance.unit, lower)
        return min(bound, int((lower[0] + lower[1]).min()))

    def _side_targets(
        self,
        parts: tuple[np.ndarray, np.ndarray],
        paths: list[tuple[int, ...]],
        height: int,
        bound: int,
        lower: np.ndarray,
    ) -> list[int]:
        """Return provable bounds of both children that just add up to `bound`; lower ones if the pass is stopped."""
        floors = [int(value) for value in lower]
        lower_bounds = [max(floors[side], self._known_bound(parts[side], paths[side], height, 0)) for side in (0, 1)]
        first = 0 if len(parts[0]) >= len(parts[1]) else 1
        for side in (first, 1 - first):
            if lower_bounds[0] + lower_bounds[1] < bound and not self.stop():
                lower_bounds[side] = max(
                    lower_bounds[side],
                    self._known_bound(parts[side], paths[side], height, bound - lower_bounds[1 - side]),
                )
        for side in (first, 1 - first):
            if lower_bounds[side] + floors[1 - side] >= bound:
                return [bound - floors[1 - side] if s == side else floors[s] for s in (0, 1)]
        targets = list(lower_bounds)
        targets[1 - first] = min(lower_bounds[1 - first], max(floors[1 - first], bound - lower_bounds[first]))
        return targets

    def _known_bound(self, rows: np.ndarray, path: tuple[int, ...], height: int, target: int) -> int:
        """Return the memoised bound of a child; with a target, search until the bound reaches it."""
        s = self.search
        literals = tuple(sorted(path))
        entry = s.memo.get(s._key(rows, literals, height))
        if entry is not None and (entry.exact or entry.lower >= target):
            return entry.lower
        if not target:
            return 0 if entry is None else entry.lower
        return s.solve(rows, literals, height, min(target, int(INFINITE))).lower

    def _write(self, path: tuple[int, ...], height: int, bound: int, by: str) -> None:
        if len(self.steps) >= MOST_STEPS:
            raise ExactProofTooLarge
        self.steps.append({"path": list(path), "height": height, "bound": int(bound), "by": by})
