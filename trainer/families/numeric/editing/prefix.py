"""Search trees under wishes at nodes with thousands of thresholds.

Bounds of one threshold bound its neighbours. For thresholds s < t of one feature the rows below s are a subset of those
below t. Without wishes, more rows never cost less. With the same wishes, fewer rows cost less by at most the weight of
the missing rows, since their tree also fits the larger set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.editing.prefix import OPEN, Prefix, PrefixBound, Spot
from trainer.editing.space import INFINITE_COST
from trainer.families.numeric.editing.space import NumericSpace

FEW = 8  # up to this many questions, each is tried by itself
NEVER = 1 << 61  # bound of an infeasible child; it stays above every cost even after a weight is subtracted
POSSIBLE = 1 << 60  # larger than every cost


@dataclass
class ThresholdLine:
    """The thresholds of one feature at a node: questions, weight of the lower child, lower bounds (2, m) of both children."""

    questions: np.ndarray
    weight: np.ndarray
    bounds: np.ndarray
    flipped: bool

    def update_bounds(self, at: int, unit: int, child_bounds: list[int], free: list[int]) -> None:
        """Update all bounds from those of threshold `at`: of its children with the wishes, and without (`free`); lower child first."""
        behind = slice(at + 1, None)
        self.bounds[:, at] = np.minimum(child_bounds, NEVER)
        less = np.minimum(child_bounds[0], NEVER) - unit * (self.weight[at] - self.weight[:at])
        self.bounds[0, :at] = np.maximum(self.bounds[0, :at], less)
        self.bounds[1, :at] = np.maximum(self.bounds[1, :at], free[1])
        less = np.minimum(child_bounds[1], NEVER) - unit * (self.weight[behind] - self.weight[at])
        self.bounds[1, behind] = np.maximum(self.bounds[1, behind], less)
        self.bounds[0, behind] = np.maximum(self.bounds[0, behind], free[0])


class NumericPrefix(Prefix):
    """The search with wishes over all thresholds."""

    def __init__(self, space: NumericSpace) -> None:
        super().__init__(space)
        self.numeric = space

    def _questions(self, spot: Spot, ub: int, lower: int, best: PrefixBound, asks: bool) -> PrefixBound:
        numbers = self.candidates(spot)
        if len(numbers) <= FEW:
            return super()._questions(spot, ub, lower, best, asks)
        space = self.numeric
        encoded = self.numeric.questions.encoded
        loose = [self._sides(spot, q) for q in numbers if q >= encoded]
        lines = self._lines(spot, np.array([q for q in numbers if q < encoded], np.int64))
        sums = np.concatenate([line.bounds.sum(axis=0) for line in lines]) if lines else np.zeros(0, np.int64)
        ends = np.cumsum([0, *(len(line.questions) for line in lines)])
        done = np.full(len(sums), False)
        for side in sorted(loose, key=lambda side: side.lower):
            cost = self._attempt(side, best.upper) if side.lower < best.upper else INFINITE_COST
            if cost < best.upper:
                best = PrefixBound(cost, True, side.question, upper=cost)
        while len(sums) and not space.stopped():
            at = int(np.where(done, INFINITE_COST, sums).argmin())
            if done[at] or sums[at] >= best.upper or best.upper <= lower or sums[at] >= POSSIBLE:
                break
            done[at] = True
            k = int(np.searchsorted(ends, at, side="right")) - 1
            line = lines[k]
            place = at - int(ends[k])
            side = self._sides(spot, int(line.questions[place]))
            turn = -1 if line.flipped else 1  # yes has the smaller values unless the line is flipped
            side.bounds = [max(a, int(b)) for a, b in zip(side.bounds, line.bounds[::turn, place], strict=True)]
            cost = self._attempt(side, best.upper)
            if cost < best.upper:
                best = PrefixBound(cost, True, side.question, upper=cost)
            free = [space.cached_bound(s.rows, s.height, s.banned) if self._is_relaxed(s) else 0 for s in side.spots]
            line.update_bounds(place, space.unit, side.bounds[::turn], free[::turn])
            sums[ends[k] : ends[k + 1]] = line.bounds.sum(axis=0)
        leaf = INFINITE_COST if asks else space.leaf_cost(space.counts(spot.rows))
        least = int(sums.min()) if len(sums) else INFINITE_COST
        floor = max(lower, min([leaf, least if least < POSSIBLE else INFINITE_COST, *(s.lower for s in loose)]))
        if space.stopped():
            return PrefixBound(min(floor, best.upper), False, best.choice, best.label, best.upper, best.height)
        if best.choice != OPEN:
            return best
        return PrefixBound(max(ub, floor) if floor < INFINITE_COST else INFINITE_COST, floor >= INFINITE_COST)

    @staticmethod
    def _is_relaxed(spot: Spot) -> bool:
        """Return whether the subproblem has no held question, so that its bound without wishes is valid."""
        return not any(i.verb == "held" for i in spot.items)

    def _lines(self, spot: Spot, numbers: np.ndarray) -> list[ThresholdLine]:
        """Return the thresholds by feature, with bounds by the classes of both children."""
        space = self.numeric
        questions = self.numeric.questions
        lines = []
        features = np.searchsorted(questions.starts, numbers, side="right") - 1
        for f in np.unique(features).tolist():
            of_feature = np.sort(numbers[features == f])
            ranks = of_feature - int(questions.starts[f])
            counts = np.zeros((len(questions.levels[f]), space.n_classes), np.int64)
            np.add.at(counts, (space.rank[f, spot.rows], space.classes[spot.rows]), space.weights[spot.rows])
            low = np.cumsum(counts, axis=0)
            high = low[-1] - low
            bounds = np.array([self._floors(side[ranks], spot.height - 1) for side in (low, high)])
            lines.append(ThresholdLine(of_feature, low[ranks].sum(axis=1), bounds, questions.flipped[f]))
        return lines

    def _floors(self, counts: np.ndarray, height: int) -> np.ndarray:
        """Return `EditingSpace.floor` for each line of counts (m, classes)."""
        ordered = np.sort(counts, axis=1)[:, ::-1][:, : 1 << min(height, 20)]
        wrong = counts.sum(axis=1)[:, None] - np.cumsum(ordered, axis=1)
        leaves = np.arange(1, ordered.shape[1] + 1)
        floors: np.ndarray = (wrong * self.space.unit + leaves * self.space.leaf).min(axis=1)
        return floors
