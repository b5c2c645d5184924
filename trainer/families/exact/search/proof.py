"""A proof of the bound of an exact search: a second pass from the root that writes the steps which the bound needs.

The pass starts from the known bound with all caches of the search warm.  Each question needs bounds of its two sides that add up to
it; most have them from classes, equal rows and similar questions, which the checker sees for itself.  Trees of depth two are
counted by the checker, so that a proof for depth three is one step, and one for depth four a step for each side that is
not excused.  The format is docs/proof-format.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.kernels.bounds import share
from trainer.families.exact.search.memo import INFINITE, UNKNOWN_PATH
from trainer.families.exact.search.search import ExactSearch
from trainer.methods.base import ProofSteps

Step = dict[str, Any]
MOST_STEPS = 2_000_000


class ExactProofTooLarge(Exception):
    """The proof has more steps than are written."""


def build_proof(search: ExactSearch, bound: int, stop: Callable[[], bool]) -> ProofSteps | None:
    """The proof of the integer cost `bound` of a search that has been run; None if it has too many steps or is stopped."""
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
    """The steps that prove the integer cost `bound` for all rows, and the bound that they do prove: less where `stop` ended the pass.

    `search` has been run.  Raises ExactProofTooLarge beyond two million steps.
    """
    writer = _Writer(search, stop)
    rows = np.arange(len(search.instance.rows), dtype=np.int32)
    proved = writer.prove(rows, (), search.depth, bound)
    return writer.steps, proved


def part_steps(search: ExactSearch, rows: np.ndarray, height: int, bound: int, stop: Callable[[], bool]) -> list[Step]:
    """The steps that prove `bound` for some rows, with paths from there. Raises ExactProofTooLarge."""
    writer = _Writer(search, stop)
    writer.prove(rows, UNKNOWN_PATH, height, bound)
    return [step | {"path": step["path"][1:]} for step in writer.steps]


class _Writer:
    def __init__(self, search: ExactSearch, stop: Callable[[], bool]) -> None:
        self.search = search
        self.stop = stop
        self.steps = list[Step]()
        self.held: dict[Any, int] = {}  # what is proved already, by height and rows

    def prove(self, rows: np.ndarray, path: tuple[int, ...], height: int, bound: int) -> int:
        """Write what proves that no tree costs less than `bound`, and return what is proved."""
        s = self.search
        key = (height, rows.tobytes())
        if self.held.get(key, 0) >= bound:
            return bound
        if path and height == 3:  # asked for by a split whose floors fall short: the checker counts
            self._write(path, height, bound, "split")
            self.held[key] = bound
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
        self.held[key] = bound
        return bound

    def _sides(self, rows: np.ndarray, path: tuple[int, ...], height: int, bound: int) -> int:
        """Steps of the sides until the bounds of the sides of each question add up to `bound`; returns the least sum."""
        s = self.search
        frame = s.frame(s.prepare(rows), height)
        lower = frame.lower
        for p in range(len(frame.node.features)):
            if lower[0, p] + lower[1, p] >= bound:
                continue
            feature = int(frame.node.features[p])
            parts = dp_node.split_rows(s.instance.rows, rows, feature)
            paths = [(*path, 2 * feature + side) for side in (0, 1)]
            needed = self._needed(parts, paths, height - 1, bound, lower[:, p])
            for side in (0, 1):
                if needed[side] > lower[side, p]:
                    lower[side, p] = self.prove(parts[side], paths[side], height - 1, needed[side])
                    if s.similar:
                        share(frame.node, frame.P, p, side, lower[side, p], s.instance.unit, lower)
        return min(bound, int((lower[0] + lower[1]).min()))

    def _needed(
        self, parts: tuple[np.ndarray, np.ndarray], paths: list[tuple[int, ...]], height: int, bound: int,
        lower: np.ndarray,
    ) -> list[int]:  # fmt: skip
        """True bounds of both sides that add up to `bound`, as low as they may be; lower ones if the pass is stopped."""
        floors = [int(value) for value in lower]
        known = [max(floors[side], self._known(parts[side], paths[side], height, 0)) for side in (0, 1)]
        first = 0 if len(parts[0]) >= len(parts[1]) else 1
        for side in (first, 1 - first):
            if known[0] + known[1] < bound and not self.stop():
                known[side] = max(known[side], self._known(parts[side], paths[side], height, bound - known[1 - side]))
        for side in (first, 1 - first):
            if known[side] + floors[1 - side] >= bound:
                return [bound - floors[1 - side] if s == side else floors[s] for s in (0, 1)]
        needed = list(known)
        needed[1 - first] = min(known[1 - first], max(floors[1 - first], bound - known[first]))
        return needed

    def _known(self, rows: np.ndarray, path: tuple[int, ...], height: int, target: int) -> int:
        """What the search knows about a side; with a target it searches for a proof of it."""
        s = self.search
        literals = tuple(sorted(path))
        found = s.memo.get(s._key(rows, literals, height))
        if found is not None and (found.exact or found.lower >= target):
            return found.lower
        if not target:
            return 0 if found is None else found.lower
        return s.solve(rows, literals, height, min(target, int(INFINITE))).lower

    def _write(self, path: tuple[int, ...], height: int, bound: int, by: str) -> None:
        if len(self.steps) >= MOST_STEPS:
            raise ExactProofTooLarge
        self.steps.append({"path": list(path), "height": height, "bound": int(bound), "by": by})
