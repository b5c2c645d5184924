"""Cases that show how many errors every tree of hyperplanes with given labels makes on some points (docs/proof-format.md).

A point after the other is sent to one side of the question where it is, until the points on both sides of a question cannot be parted
or the errors suffice. Two leaves below a question err on each set of points that nothing parts as their classes ask: such sets, if
they share no point, add up.

Symbols    v places, 1 for the root, 2v and 2v + 1 for its sides;  wrong[v][p] the least that a point costs at v
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.families.oblique.store import Columns, Labels, Step, Store, UndecidedCases

Named = tuple[Columns, int]  # a vector: the columns of its store, and its place there
FIRST_SETS = 40  # random sets of points that are tried before the cases begin
FEW = 4  # points that a vector may lack to count in the choice of a point
DEEPEST = 300  # points that are sent both ways on the path to a case


class FewerErrors(UndecidedCases):
    """A tree makes fewer errors: `at` int64 (points,) is the leaf of each point, 0 for points outside the block."""

    def __init__(self, at: CountArray) -> None:
        super().__init__()
        self.at = at


def _path(v: int) -> set[int]:
    """A place and those above it."""
    return {v >> s for s in range(v.bit_length())}


def predicts(labels: Labels) -> list[int]:
    """The classes of the leaves."""
    return [labels] if isinstance(labels, int) else sorted({*predicts(labels[0]), *predicts(labels[1])})


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What trees must keep or pay: `least` weight in a leaf; `charge` rows for each coefficient beyond the first of a question."""

    least: int = 1
    charge: Fraction = Fraction(0)


PLAIN = Terms()


class Cases:
    """One block: `labels` for the points `inside` (bool), which are to err by `bound`, or to cost it with further coefficients."""

    def __init__(
        self, store: Store, labels: Labels, inside: BoolArray, bound: int | Fraction, terms: Terms = PLAIN
    ) -> None:
        self.store = store
        self.inside = inside
        self.asked = bound
        self.terms = terms
        self.bound = math.ceil(bound)
        self.weighed: dict[tuple[int, int], bool] = {}
        self.columns = tuple(range(store.hulls.Z.shape[1]))
        self.labels: dict[int, Labels] = {}
        self.wrong: dict[int, CountArray] = {}
        self._number(1, labels)
        self.inner = [v for v, own in self.labels.items() if not isinstance(own, int)]
        self.last = [
            v for v in self.inner if isinstance(self.labels[2 * v], int) and isinstance(self.labels[2 * v + 1], int)
        ]
        self.leaves = [v for v, own in self.labels.items() if isinstance(own, int)]
        self.below = {v: [u for u in self.labels if v in _path(u)] for v in self.labels}
        size = len(inside)
        self.heavy = store.counts.sum(axis=1)
        # what can come to a place beyond what its leaves need
        self.spare = {
            v: int(self.heavy.sum()) - terms.least * sum(v in _path(u) for u in self.leaves) for v in self.labels
        }
        self.here = {v: np.zeros(size, bool) for v in self.labels}
        self.here[1] = inside.copy()
        self.at = np.where(inside, 1, 0)
        self.cost = int(self.wrong[1][inside].sum())
        self.deep = 0
        self.chosen: list[tuple[int, int]] = []  # (place, vector) of the sets that were added up last

    def _number(self, v: int, labels: Labels) -> None:
        self.labels[v] = labels
        counts = self.store.counts
        self.wrong[v] = counts.sum(axis=1) - counts[:, predicts(labels)].max(axis=1)
        if not isinstance(labels, int):
            self._number(2 * v, labels[0])
            self._number(2 * v + 1, labels[1])

    def solve(self) -> list[Step]:
        """The steps; raises UndecidedCases."""
        if self.cost >= self.bound:
            return []
        self._first_sets()
        return self._close()

    def _first_sets(self) -> None:
        """Vectors of random sets of points, each on the side that its class asks for."""
        size = 2 * (self.store.hulls.Z.shape[1] + 2)
        for v in self.last:
            left, right = self._preferring(v)
            for _ in range(FIRST_SETS):
                some = np.zeros(len(self.inside), bool)
                for side in (left, right):
                    points = np.flatnonzero(side & self.inside)
                    some[self.store.random.permutation(points)[:size]] = True
                self.store.cannot(left & some, right & some)

    def _preferring(self, v: int) -> tuple[BoolArray, BoolArray]:
        """Which points have to go left, or right, of a question above two leaves, or else cost more."""
        here, left, right = (self.wrong[u] for u in (v, 2 * v, 2 * v + 1))
        return (left == here) & (right > here), (right == here) & (left > here)

    # -- the open case --------------------------------------------------------------------------------------------------

    def _close(self) -> list[Step]:
        """Steps that end the open case."""
        head: list[Step] = []
        tail: list[list[Step]] = []
        placed: list[tuple[int, int]] = []
        while True:
            self.store.cases += 1
            self.store.pause()
            forced = self._forced()
            if forced is None:
                added = self._added()
                column = None if added is not None else self._unweighed()
                middle = [added] if added is not None else self._branch() if column is None else self._weigh(*column)
                break
            p, ends = forced
            v = int(self.at[p])
            open_ = [u for u in self._sides(v) if u not in ends]
            if not open_:
                middle = [{"by": "side", "point": p}, *(step for u in self._sides(v) for step in ends[u])]
                break
            u = open_[0]
            self._move(p, u)
            meeting = self._meeting(v)
            if meeting is not None:
                self._move(p, v)
                if not self._at(v).sides[:, meeting[1], p].any():
                    raise UndecidedCases  # rounding: the points before it were said to be parted
                continue  # the vector is known from now on, so that both sides of the point end
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

    def _branch(self) -> list[Step]:
        p = self._choice()
        v = int(self.at[p])
        self.deep += 1
        if self.deep > DEEPEST:
            raise UndecidedCases
        steps: list[Step] = [{"by": "side", "point": p}]
        for u in self._sides(v):
            self._move(p, u)
            if self.cost < self.bound:
                steps += self._ended(v, u) or self._close()
            self._move(p, v)
        self.deep -= 1
        return steps

    def _ended(self, v: int, u: int) -> list[Step]:
        """The step that ends the case in which a point has just come from v to u; none where it goes on."""
        few = next((w for w in self.below[u ^ 1] if self.spare[w] < 0), None) if self.terms.least > 1 else None
        if few is not None:
            return [{"by": "few", "at": few}]
        meeting = self._meeting(v)
        return [] if meeting is None else [{"by": "meet", "of": meeting, "at": v}]

    def _sides(self, v: int) -> list[int]:
        """The sides of a question that have to be looked at, its left one first."""
        same = self.labels[2 * v] == self.labels[2 * v + 1] and not (
            self.here[2 * v].any() or self.here[2 * v + 1].any() or self.weighed
        )
        return [2 * v] if same else [2 * v, 2 * v + 1]

    # -- coefficients ---------------------------------------------------------------------------------------------------

    def _usable(self, v: int) -> Columns:
        """The columns that the question at v may weigh."""
        return tuple(j for j in self.columns if self.weighed.get((v, j), True))

    def _at(self, v: int) -> Store:
        return self.store.within(self._usable(v)) if self.terms.charge else self.store

    def _unweighed(self) -> tuple[int, int] | None:
        """A place and a column of which it matters, and is not known, whether the question weighs it."""
        for v in self.inner if self.terms.charge else ():
            usable = self._usable(v)
            open_ = [j for j in usable if (v, j) not in self.weighed]
            if open_ and len(usable) > 1:
                return v, open_[0]
        return None

    def _weigh(self, v: int, column: int) -> list[Step]:
        """Both cases of a column at a place."""
        self.deep += 1
        if self.deep > DEEPEST:
            raise UndecidedCases
        steps: list[Step] = [{"by": "weigh", "at": v, "column": column}]
        for on in (False, True):
            self.weighed[v, column] = on
            self._price()
            if self.cost < self.bound:
                meeting = None if on else self._meeting(v)
                steps += self._close() if meeting is None else [{"by": "meet", "of": meeting, "at": v}]
        del self.weighed[v, column]
        self._price()
        self.deep -= 1
        return steps

    def _price(self) -> None:
        """What the points must cost, since the coefficients cost the rest."""
        places = [v for (v, _), on in self.weighed.items() if on]
        self.bound = math.ceil(self.asked - self.terms.charge * (len(places) - len(set(places))))

    def _move(self, p: int, to: int) -> None:
        now = int(self.at[p])
        self.cost += int(self.wrong[to][p] - self.wrong[now][p])
        self.at[p] = to
        if to > now:
            self.here[to][p] = True
        else:
            self.here[now][p] = False
        away = int(self.heavy[p]) * (1 if to > now else -1)
        for w in self.below[max(to, now) ^ 1]:  # where it cannot come to any more
            self.spare[w] -= away

    def _meeting(self, v: int) -> Named | None:
        columns = self._usable(v) if self.terms.charge else self.columns
        place = self._at(v).cannot(self.here[2 * v], self.here[2 * v + 1])
        return None if place is None else (columns, place)

    def _forced(self) -> tuple[int, dict[int, list[Step]]] | None:
        """A point with a side that ends at once, and the steps that end it; both sides if there is such a point."""
        best: tuple[int, dict[int, list[Step]]] | None = None
        for v in self.inner:
            free = self.here[v] & (self.at == v)
            if not free.any() or len(self._sides(v)) < 2:
                continue
            ends = self._ends(v, free)
            for p, own in ends.items():
                if len(own) == 2:
                    return p, own
                best = best or (p, own)
        return best

    def _ends(self, v: int, free: BoolArray) -> dict[int, dict[int, list[Step]]]:
        """For points at v, the sides that end at once."""
        found: dict[int, dict[int, list[Step]]] = {}
        room = self.bound - self.cost
        for u in (2 * v, 2 * v + 1):
            for p in np.flatnonzero(free & (self.wrong[u] - self.wrong[v] >= room)).tolist():
                found.setdefault(p, {})[u] = []
        if self.terms.least > 1:
            self._light(v, free, found)
        store = self._at(v)
        columns = self._usable(v)
        n = len(store.vectors)
        one = store.sides[0, :n]
        two = store.sides[1, :n]
        away = [(~self.here[u]).astype(np.float32) for u in (2 * v, 2 * v + 1)]
        for left, right in ((one, two), (two, one)):
            missing = left @ away[0] + right @ away[1]
            for s in np.flatnonzero(missing == 1.0).tolist():
                lacks = left[s] * away[0] > 0
                u = 2 * v if lacks.any() else 2 * v + 1
                p = int((lacks if lacks.any() else right[s] * away[1] > 0).argmax())
                if free[p]:
                    found.setdefault(p, {}).setdefault(u, [{"by": "meet", "of": (columns, s), "at": v}])
        return found

    def _light(self, v: int, free: BoolArray, found: dict[int, dict[int, list[Step]]]) -> None:
        """Sides of points at v on which they are missed elsewhere."""
        for u in (2 * v, 2 * v + 1):
            for w in self.below[u ^ 1]:
                for p in np.flatnonzero(free & (self.heavy > self.spare[w])).tolist():
                    found.setdefault(p, {}).setdefault(u, [{"by": "few", "at": w}])

    # -- sets that add up -----------------------------------------------------------------------------------------------

    def _added(self) -> Step | None:
        """The step that adds up disjoint sets above two leaves each, if they suffice; `chosen` holds the sets."""
        self.chosen = []
        parts = list[list[int]]()
        total = self.cost
        for v in self.last:
            left, right = self._preferring(v)
            left = left & self.here[v] & (self.at != 2 * v + 1)
            right = right & self.here[v] & (self.at != 2 * v)
            price = np.abs(self.wrong[2 * v] - self.wrong[2 * v + 1])
            while True:
                s = self._smallest(left, right)
                if s is None:
                    s = self.store.cannot(left, right)
                if s is None:
                    break
                used = (self.store.sides[:, s] > 0).any(axis=0)
                gain = int(price[used].min())
                labels = (self.labels[2 * v], self.labels[2 * v + 1])
                parts.append([self.store.lemma(s, labels, int(self.wrong[v][used].sum()) + gain), v])
                self.chosen.append((v, s))
                total += gain
                left = left & ~used
                right = right & ~used
                if total >= self.bound:
                    return {"by": "sum", "of": parts}
        return None

    def _smallest(self, left: BoolArray, right: BoolArray) -> int | None:
        """A vector with few points within two sets."""
        store = self.store
        n = len(store.vectors)
        if not n:
            return None
        one = store.sides[0, :n]
        two = store.sides[1, :n]
        outside = [(~side).astype(np.float32) for side in (left, right)]
        missing = np.minimum(one @ outside[0] + two @ outside[1], two @ outside[0] + one @ outside[1])
        whole = np.flatnonzero(missing == 0.0)
        if not len(whole):
            return None
        # points that many other sets hold are left for them
        held = (one[whole] + two[whole]).sum(axis=0)
        weight = (one[whole] + two[whole]) @ held
        return int(whole[weight.argmin()])

    def _choice(self) -> int:
        """The point that is sent to a side next: above the last questions first. Raises FewerErrors where every point has its leaf."""
        free = {v: self.here[v] & (self.at == v) for v in self.inner}
        upper = [v for v in self.inner if v not in self.last and free[v].any()]
        if upper:
            return self._upper(upper[0], free[upper[0]])
        weight = np.zeros(len(self.inside))
        for v, s in self.chosen:
            used = (self.store.sides[:, s] > 0).any(axis=0)
            weight[used & free[v]] += 1.0
        if not weight.any():  # points that cost the same on both sides may still be in the way of a plane
            weight = np.any([*free.values()], axis=0).astype(np.float64)
        if not weight.any():
            raise FewerErrors(self.at.copy())
        return int((weight * (1.0 + self._frequency())).argmax())

    def _frequency(self) -> FloatArray:
        """In how many vectors a point is, as a share of all."""
        n = len(self.store.vectors)
        return np.asarray(self.store.sides[:, :n].sum(axis=(0, 1)) / max(1, n), np.float64)

    def _upper(self, v: int, free: BoolArray) -> int:
        """The point that brings most vectors near to their end, on both sides of its question."""
        ends = self._near_ends(v)
        gains = [self._near_gains(2 * v), self._near_gains(2 * v + 1)]
        score = [1e-6 + ends[side] + gains[side] + 0.1 * (self.wrong[2 * v + side] - self.wrong[v]) for side in (0, 1)]
        return int(np.where(free, score[0] * score[1], -1.0).argmax())

    def _near_ends(self, v: int) -> tuple[FloatArray, FloatArray]:
        """How near each point, on the left or on the right of v, brings vectors whose points must not part."""
        store = self._at(v)
        one, two = store.sides[:, : len(store.vectors)]
        away = [(~self.here[u]).astype(np.float32) for u in (2 * v, 2 * v + 1)]
        found = [np.zeros(len(self.inside)), np.zeros(len(self.inside))]
        for left, right in ((one, two), (two, one)):
            near = _nearness(left @ away[0] + right @ away[1])
            found[0] += near @ (left * away[0])
            found[1] += near @ (right * away[1])
        return found[0], found[1]

    def _near_gains(self, u: int) -> FloatArray:
        """How near each point, at u, brings sets on which two leaves below u err."""
        found = np.zeros(len(self.inside))
        if u in self.last:
            one, two = self.store.sides[:, : len(self.store.vectors)]
            outside = [(~side).astype(np.float32) for side in self._preferring(u)]
            fits = np.minimum(one @ outside[0] + two @ outside[1], two @ outside[0] + one @ outside[1]) == 0
            both = (one + two)[fits]
            away = (~self.here[u]).astype(np.float32)
            found += _nearness(both @ away) @ (both * away)
        return found


def _nearness(missing: np.ndarray) -> np.ndarray:
    """What a set counts of which so many points are missing; float32 (sets,)."""
    return np.where(missing <= FEW, 8.0 ** -np.maximum(missing, 1), 0.0).astype(np.float32)
