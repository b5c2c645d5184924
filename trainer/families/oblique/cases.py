"""Bound the errors of hyperplane trees with given labels by case analysis.

The steps are those of docs/proof-format.md. Points are assigned to children one at a time until some split has inseparable children or the error bound is reached. Two leaves below
a split misclassify at least one point of each inseparable set whose classes prefer different sides. Errors on disjoint sets add up.

Symbols    v nodes, 1 for the root, 2v and 2v + 1 for its children;  errors_at[v][p] the least cost of point p at node v
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.families.oblique.store import Columns, Labels, Step, Store, UndecidedCases

VectorName = tuple[Columns, int]  # a vector: the columns of its store, and its index in that store
RANDOM_SETS = 40  # number of random point sets that are tried before the case analysis
NEAR_POINTS = 4  # a vector influences the choice of a point if it lacks at most this many points
MAX_BRANCHINGS = 300  # limit on the points that are assigned to both sides on the path to a case


class FewerErrors(UndecidedCases):
    """A tree with fewer errors may exist: `at` int64 (points,) is the leaf of each point, 0 outside the block."""

    def __init__(self, at: CountArray) -> None:
        super().__init__()
        self.at = at


def _path(v: int) -> set[int]:
    """Return a node and its ancestors."""
    return {v >> s for s in range(v.bit_length())}


def predicted_classes(labels: Labels) -> list[int]:
    """Return the classes of the leaves."""
    return (
        [labels] if isinstance(labels, int) else sorted({*predicted_classes(labels[0]), *predicted_classes(labels[1])})
    )


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Constraints and prices: `least` weight of a leaf; `charge` rows for each coefficient beyond the first of a split."""

    least: int = 1
    charge: Fraction = Fraction(0)


PLAIN = Terms()


class Cases:
    """A search for the proof that trees with `labels` cost at least `bound` on the points `inside` (bool).

    The cost counts errors and coefficients, in rows.
    """

    def __init__(
        self, store: Store, labels: Labels, inside: BoolArray, bound: int | Fraction, terms: Terms = PLAIN
    ) -> None:
        self.store = store
        self.inside = inside
        self.goal = bound
        self.terms = terms
        self.bound = math.ceil(bound)
        self.weighed: dict[tuple[int, int], bool] = {}
        self.columns = tuple(range(store.hulls.Z.shape[1]))
        self.labels: dict[int, Labels] = {}
        self.errors_at: dict[int, CountArray] = {}
        self._number_nodes(1, labels)
        self.inner = [v for v, label in self.labels.items() if not isinstance(label, int)]
        self.last = [
            v for v in self.inner if isinstance(self.labels[2 * v], int) and isinstance(self.labels[2 * v + 1], int)
        ]
        self.leaves = [v for v, label in self.labels.items() if isinstance(label, int)]
        self.below = {v: [u for u in self.labels if v in _path(u)] for v in self.labels}
        size = len(inside)
        self.weight = store.counts.sum(axis=1)
        # weight that each node can lose before its leaves have too few rows
        self.spare = {
            v: int(self.weight.sum()) - terms.least * sum(v in _path(u) for u in self.leaves) for v in self.labels
        }
        self.reached = {v: np.zeros(size, bool) for v in self.labels}
        self.reached[1] = inside.copy()
        self.at = np.where(inside, 1, 0)
        self.cost = int(self.errors_at[1][inside].sum())
        self.deep = 0
        self.summed_sets: list[tuple[int, int]] = []  # (node, vector) for each set in the last sum

    def _number_nodes(self, v: int, labels: Labels) -> None:
        self.labels[v] = labels
        counts = self.store.counts
        self.errors_at[v] = counts.sum(axis=1) - counts[:, predicted_classes(labels)].max(axis=1)
        if not isinstance(labels, int):
            self._number_nodes(2 * v, labels[0])
            self._number_nodes(2 * v + 1, labels[1])

    def solve(self) -> list[Step]:
        """Return the steps of the proof; none if the points cost enough already. Raises UndecidedCases."""
        if self.cost >= self.bound:
            return []
        self._first_sets()
        return self._close()

    def _first_sets(self) -> None:
        """Find vectors of random sets of points, each on the side that its class prefers."""
        size = 2 * (self.store.hulls.Z.shape[1] + 2)
        for v in self.last:
            left, right = self._preferred_sides(v)
            for _ in range(RANDOM_SETS):
                some = np.zeros(len(self.inside), bool)
                for side in (left, right):
                    points = np.flatnonzero(side & self.inside)
                    some[self.store.random.permutation(points)[:size]] = True
                self.store.find_meeting(left & some, right & some)

    def _preferred_sides(self, v: int) -> tuple[BoolArray, BoolArray]:
        """Return the points that cost less on the left, and on the right, of a split above two leaves."""
        undecided, left, right = (self.errors_at[u] for u in (v, 2 * v, 2 * v + 1))
        return (left == undecided) & (right > undecided), (right == undecided) & (left > undecided)

    # -- the open case --------------------------------------------------------------------------------------------------

    def _close(self) -> list[Step]:
        """Return steps that close the open case."""
        head: list[Step] = []
        tail: list[list[Step]] = []
        placed: list[tuple[int, int]] = []
        while True:
            self.store.cases += 1
            self.store.check_limits()
            forced = self._find_forced_point()
            if forced is None:
                middle = self._last_steps()
                break
            p, ends = forced
            v = int(self.at[p])
            open_ = [u for u in self._sides(v) if u not in ends]
            if not open_:
                middle = [{"by": "side", "point": p}, *(step for u in self._sides(v) for step in ends[u])]
                break
            u = open_[0]
            self._move(p, u)
            meeting = self._find_meeting(v)
            if meeting is not None:
                self._move(p, v)
                if not self._store_at(v).sides[:, meeting[1], p].any():
                    raise UndecidedCases  # rounding error: these points were classified as separable earlier
                continue  # the store now has the vector, so both sides of the point are closed
            placed.append((p, v))
            other = ends.get(u ^ 1, [])
            head.append({"by": "side", "point": p})
            if u & 1:
                head += other
            else:
                tail.append(other)
        for p, v in reversed(placed):
            self._move(p, v)
        return [*head, *middle, *(step for steps in reversed(tail) for step in steps)]

    def _last_steps(self) -> list[Step]:
        """Return steps that close the open case without a point of forced place."""
        added = self._sum_step()
        if added is not None:
            return [added]
        column = self._next_column()
        return self._branch() if column is None else self._weigh(*column)

    def _branch(self) -> list[Step]:
        p = self._choose_point()
        v = int(self.at[p])
        self.deep += 1
        if self.deep > MAX_BRANCHINGS:
            raise UndecidedCases
        steps: list[Step] = [{"by": "side", "point": p}]
        for u in self._sides(v):
            self._move(p, u)
            if self.cost < self.bound:
                steps += self._closing_step(v, u) or self._close()
            self._move(p, v)
        self.deep -= 1
        return steps

    def _closing_step(self, v: int, u: int) -> list[Step]:
        """Return the step that closes the case in which a point has moved from v to u; none if it stays open."""
        few = next((w for w in self.below[u ^ 1] if self.spare[w] < 0), None) if self.terms.least > 1 else None
        if few is not None:
            return [{"by": "few", "at": few}]
        meeting = self._find_meeting(v)
        return [] if meeting is None else [{"by": "meet", "of": meeting, "at": v}]

    def _sides(self, v: int) -> list[int]:
        """Return the children to search, the left one first; one of them if they are symmetric."""
        same = self.labels[2 * v] == self.labels[2 * v + 1] and not (
            self.reached[2 * v].any() or self.reached[2 * v + 1].any() or self.weighed
        )
        return [2 * v] if same else [2 * v, 2 * v + 1]

    # -- coefficients ---------------------------------------------------------------------------------------------------

    def _usable(self, v: int) -> Columns:
        """Return the columns that may have a coefficient at v."""
        return tuple(j for j in self.columns if self.weighed.get((v, j), True))

    def _store_at(self, v: int) -> Store:
        return self.store.narrowed(self._usable(v)) if self.terms.charge else self.store

    def _next_column(self) -> tuple[int, int] | None:
        """Return a node and a column whose coefficient is undecided; None if all are decided."""
        for v in self.inner if self.terms.charge else ():
            usable = self._usable(v)
            open_ = [j for j in usable if (v, j) not in self.weighed]
            if open_ and len(usable) > 1:
                return v, open_[0]
        return None

    def _weigh(self, v: int, column: int) -> list[Step]:
        """Return the steps of both cases: the column has no coefficient at v, or has one."""
        self.deep += 1
        if self.deep > MAX_BRANCHINGS:
            raise UndecidedCases
        steps: list[Step] = [{"by": "weigh", "at": v, "column": column}]
        for on in (False, True):
            self.weighed[v, column] = on
            self._update_bound()
            if self.cost < self.bound:
                meeting = None if on else self._find_meeting(v)
                steps += self._close() if meeting is None else [{"by": "meet", "of": meeting, "at": v}]
        del self.weighed[v, column]
        self._update_bound()
        self.deep -= 1
        return steps

    def _update_bound(self) -> None:
        """Set the errors that the points must make, given the price of the decided coefficients."""
        places = [v for (v, _), on in self.weighed.items() if on]
        self.bound = math.ceil(self.goal - self.terms.charge * (len(places) - len(set(places))))

    def _move(self, p: int, to: int) -> None:
        now = int(self.at[p])
        self.cost += int(self.errors_at[to][p] - self.errors_at[now][p])
        self.at[p] = to
        if to > now:
            self.reached[to][p] = True
        else:
            self.reached[now][p] = False
        away = int(self.weight[p]) * (1 if to > now else -1)
        for w in self.below[max(to, now) ^ 1]:  # the point can no longer reach these nodes
            self.spare[w] -= away

    def _find_meeting(self, v: int) -> VectorName | None:
        columns = self._usable(v) if self.terms.charge else self.columns
        place = self._store_at(v).find_meeting(self.reached[2 * v], self.reached[2 * v + 1])
        return None if place is None else (columns, place)

    def _find_forced_point(self) -> tuple[int, dict[int, list[Step]]] | None:
        """Return a point with a side that closes at once, and its closing steps. Prefer a point with two such sides."""
        best: tuple[int, dict[int, list[Step]]] | None = None
        for v in self.inner:
            free = self.reached[v] & (self.at == v)
            if not free.any() or len(self._sides(v)) < 2:
                continue
            ends = self._ends(v, free)
            for p, sides in ends.items():
                if len(sides) == 2:
                    return p, sides
                best = best or (p, sides)
        return best

    def _ends(self, v: int, free: BoolArray) -> dict[int, dict[int, list[Step]]]:
        """Return for points at v the sides that close at once, with their steps."""
        ends: dict[int, dict[int, list[Step]]] = {}
        room = self.bound - self.cost
        for u in (2 * v, 2 * v + 1):
            for p in np.flatnonzero(free & (self.errors_at[u] - self.errors_at[v] >= room)).tolist():
                ends.setdefault(p, {})[u] = []
        if self.terms.least > 1:
            self._add_light_ends(v, free, ends)
        store = self._store_at(v)
        columns = self._usable(v)
        n = len(store.vectors)
        one = store.sides[0, :n]
        two = store.sides[1, :n]
        away = [(~self.reached[u]).astype(np.float32) for u in (2 * v, 2 * v + 1)]
        for left, right in ((one, two), (two, one)):
            missing = left @ away[0] + right @ away[1]
            for s in np.flatnonzero(missing == 1.0).tolist():
                lacks = left[s] * away[0] > 0
                u = 2 * v if lacks.any() else 2 * v + 1
                p = int((lacks if lacks.any() else right[s] * away[1] > 0).argmax())
                if free[p]:
                    ends.setdefault(p, {}).setdefault(u, [{"by": "meet", "of": (columns, s), "at": v}])
        return ends

    def _add_light_ends(self, v: int, free: BoolArray, ends: dict[int, dict[int, list[Step]]]) -> None:
        """Add sides that close since a leaf elsewhere would have too little weight."""
        for u in (2 * v, 2 * v + 1):
            for w in self.below[u ^ 1]:
                for p in np.flatnonzero(free & (self.weight > self.spare[w])).tolist():
                    ends.setdefault(p, {}).setdefault(u, [{"by": "few", "at": w}])

    # -- sets that add up -----------------------------------------------------------------------------------------------

    def _sum_step(self) -> Step | None:
        """Return the step that sums the errors on disjoint sets, if they suffice; store the sets in `summed_sets`."""
        self.summed_sets = []
        parts = list[list[int]]()
        total = self.cost
        for v in self.last:
            left, right = self._preferred_sides(v)
            left = left & self.reached[v] & (self.at != 2 * v + 1)
            right = right & self.reached[v] & (self.at != 2 * v)
            price = np.abs(self.errors_at[2 * v] - self.errors_at[2 * v + 1])
            while True:
                s = self._smallest_vector(left, right)
                if s is None:
                    s = self.store.find_meeting(left, right)
                if s is None:
                    break
                members = (self.store.sides[:, s] > 0).any(axis=0)
                gain = int(price[members].min())
                labels = (self.labels[2 * v], self.labels[2 * v + 1])
                parts.append([self.store.lemma(s, labels, int(self.errors_at[v][members].sum()) + gain), v])
                self.summed_sets.append((v, s))
                total += gain
                left = left & ~members
                right = right & ~members
                if total >= self.bound:
                    return {"by": "sum", "of": parts}
        return None

    def _smallest_vector(self, left: BoolArray, right: BoolArray) -> int | None:
        """Return a vector within two sets, one that overlaps few others; None if there is none."""
        store = self.store
        n = len(store.vectors)
        if not n:
            return None
        one = store.sides[0, :n]
        two = store.sides[1, :n]
        outside = [(~side).astype(np.float32) for side in (left, right)]
        missing = np.minimum(one @ outside[0] + two @ outside[1], two @ outside[0] + one @ outside[1])
        contained = np.flatnonzero(missing == 0.0)
        if not len(contained):
            return None
        # prefer points that few other sets contain, so that more disjoint sets remain
        frequency = (one[contained] + two[contained]).sum(axis=0)
        weight = (one[contained] + two[contained]) @ frequency
        return int(contained[weight.argmin()])

    def _choose_point(self) -> int:
        """Return the point to assign next, upper nodes first. Raises FewerErrors if every point has its leaf."""
        free = {v: self.reached[v] & (self.at == v) for v in self.inner}
        upper = [v for v in self.inner if v not in self.last and free[v].any()]
        if upper:
            return self._choose_upper_point(upper[0], free[upper[0]])
        weight = np.zeros(len(self.inside))
        for v, s in self.summed_sets:
            members = (self.store.sides[:, s] > 0).any(axis=0)
            weight[members & free[v]] += 1.0
        if not weight.any():  # points that cost the same on both sides may still be inseparable
            weight = np.any([*free.values()], axis=0).astype(np.float64)
        if not weight.any():
            raise FewerErrors(self.at.copy())
        return int((weight * (1.0 + self._frequency())).argmax())

    def _frequency(self) -> FloatArray:
        """Return the share of vectors that contain each point."""
        n = len(self.store.vectors)
        return np.asarray(self.store.sides[:, :n].sum(axis=(0, 1)) / max(1, n), np.float64)

    def _choose_upper_point(self, v: int, free: BoolArray) -> int:
        """Return the point with the highest score for completing vectors on both sides of its split."""
        ends = self._near_ends(v)
        gains = [self._near_gains(2 * v), self._near_gains(2 * v + 1)]
        score = [
            1e-6 + ends[side] + gains[side] + 0.1 * (self.errors_at[2 * v + side] - self.errors_at[v])
            for side in (0, 1)
        ]
        return int(np.where(free, score[0] * score[1], -1.0).argmax())

    def _near_ends(self, v: int) -> tuple[FloatArray, FloatArray]:
        """Score how much each point, on the left or right of v, completes inseparable vectors."""
        store = self._store_at(v)
        one, two = store.sides[:, : len(store.vectors)]
        away = [(~self.reached[u]).astype(np.float32) for u in (2 * v, 2 * v + 1)]
        scores = [np.zeros(len(self.inside)), np.zeros(len(self.inside))]
        for left, right in ((one, two), (two, one)):
            near = _nearness(left @ away[0] + right @ away[1])
            scores[0] += near @ (left * away[0])
            scores[1] += near @ (right * away[1])
        return scores[0], scores[1]

    def _near_gains(self, u: int) -> FloatArray:
        """Score how much each point, at u, completes sets on which two leaves below u err."""
        scores = np.zeros(len(self.inside))
        if u in self.last:
            one, two = self.store.sides[:, : len(self.store.vectors)]
            outside = [(~side).astype(np.float32) for side in self._preferred_sides(u)]
            fits = np.minimum(one @ outside[0] + two @ outside[1], two @ outside[0] + one @ outside[1]) == 0
            both = (one + two)[fits]
            away = (~self.reached[u]).astype(np.float32)
            scores += _nearness(both @ away) @ (both * away)
        return scores


def _nearness(missing: np.ndarray) -> np.ndarray:
    """Return weights that decrease with the number of missing points, float32 (sets,)."""
    return np.where(missing <= NEAR_POINTS, 8.0 ** -np.maximum(missing, 1), 0.0).astype(np.float32)
