"""Check a proof about trees of hyperplanes.

It consists of inseparable sets of rows, and of cases that end at them. Each tree sends each row to one side of each of
its questions. A block of cases enumerates the sides of some rows. A case ends when a question would have to separate an
inseparable set, or when enough rows are misclassified. docs/proof-format.md, "Hyperplanes", states the rules `vector`,
`errors`, `side`, `meet`, `sum`, `few` and `weigh`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from fractions import Fraction
from itertools import accumulate, count
from math import ceil, lcm
from typing import Any, NamedTuple

import numpy as np

from trainer.check.proof.steps.labels import MAX_LABEL_TREES, Tree, includes, labels, read_tree, trees
from trainer.check.proof.steps.lines import (
    Lines,
    ProvedBounds,
    Record,
    check_lines,
    cost_of,
    numbers,
    read_header,
    whole_number,
)
from trainer.check.proof.subject import BadProof, PlaneSpace, require

VERSIONS = (3, 4, 7)
DIGITS = re.compile("[1-9][0-9]{0,3999}")  # JSON writes a weight as text if it is too large for a number


class Vector(NamedTuple):
    """Two sets of points that no hyperplane separates unless it has a nonzero coefficient for a coordinate of `beside`."""

    left: frozenset[int]
    right: frozenset[int]
    beside: frozenset[int]


class ShownBound(NamedTuple):
    """Each tree with these labels makes errors of at least `bound` on these points.

    If `alone`, the bound is that of trees with exactly these labels, not with a subset, and may include charged coefficients.
    """

    tree: Tree
    points: frozenset[int]
    bound: int | Fraction
    alone: bool


class CaseBlock:
    """A block whose cases are being checked: the places of its points and the cost of these; `open` until every case has ended.

    Places are numbered 1 for the root, 2 v and 2 v + 1 for the sides of v.
    """

    def __init__(self, space: PlaneSpace, shown: ShownBound) -> None:
        self.shown = shown
        self.trees = dict(_places(1, shown.tree))
        self.space = space
        self.charge = space.charge if shown.alone else 0
        # for a place, whether its question is known to have a nonzero coefficient for a coordinate
        self.weighed: dict[Any, bool] = {}
        # for each place, the least cost of each point below it
        self.wrong = {v: least_errors(space, labels(tree)).tolist() for v, tree in self.trees.items()}
        self.at = dict.fromkeys(shown.points, 1)
        self.cost = sum(self.wrong[1][p] for p in shown.points)
        # stack of open cases: a point, its previous place, and the sides still to be checked; or a coordinate at a
        # place
        self.waiting: list[tuple[int | tuple[int, int], int, list[int]]] = []
        self.open = self.cost < shown.bound

    def points_at(self, v: int) -> set[int]:
        """Return the points that come to a place in the open case."""
        return {p for p, at in self.at.items() if _is_below(v, at)}

    def check_side(self, point: int) -> None:
        """Apply rule `side`: branch on the side of a point, once if both sides mirror each other."""
        v = self.at.get(point, 0)
        require(not isinstance(self.trees.get(v, 0), int), f"point {point} is not at a question of the open case")
        left = 2 * v
        right = 2 * v + 1
        same = self.trees[left] == self.trees[right] and not self.points_at(left) and not self.points_at(right)
        self.waiting.append((point, v, [left] if same and not self.weighed else [right, left]))
        self.next_case()

    def check_weigh(self, v: int, column: int) -> None:
        """Apply rule `weigh`: branch on whether the question at v has a nonzero coefficient for a coordinate."""
        is_unknown = not isinstance(self.trees.get(v, 0), int) and column < len(self.space.near)
        require(
            is_unknown and (v, column) not in self.weighed,
            f"at place {v} there is no question, or its weight of column {column} is already decided",
        )
        self.waiting.append(((v, column), -1, [1, 0]))
        self.next_case()

    def check_few(self, v: int) -> None:
        """Apply rule `few`: end the open case, since too few points can come to v for its leaves. Raises BadProof."""
        leaves = sum(isinstance(tree, int) for u, tree in self.trees.items() if _is_below(v, u))
        away = [p for p, at in self.at.items() if not _is_below(v, at) and not _is_below(at, v)]
        most = int(self.space.counts.sum() - self.space.counts[away].sum())
        require(
            most < self.space.min_leaf * leaves,
            f"up to {most} rows can come to place {v}, which suffices for its {leaves} leaves",
        )
        self.shown = self.shown._replace(alone=True)
        self.next_case()

    def next_case(self) -> None:
        """Leave the case that has ended, and open the next one that does not end by its cost."""
        while self.waiting:
            item, v, sides = self.waiting[-1]
            to = sides.pop() if sides else v  # when both sides are done, the point returns to its previous place
            if isinstance(item, int):
                self.cost += self.wrong[to][item] - self.wrong[self.at[item]][item]
                self.at[item] = to
            else:
                self.weighed[item] = to > 0
            if to == v:
                self.weighed.pop(self.waiting.pop()[0], None)
            elif self.cost + self.further_cost() < self.shown.bound:
                return
        self.open = False

    def further_cost(self) -> Fraction | int:
        """Return the charge of the known coefficients, without the first one of each question."""
        places = [v for (v, _), on in self.weighed.items() if on]
        return self.charge * (len(places) - len(set(places)))

    def check_meet(self, vector: Vector, v: int) -> None:
        """Apply rule `meet`: end the open case, since the question at v cannot separate its points. Raises BadProof."""
        left = self.points_at(2 * v)
        right = self.points_at(2 * v + 1)
        one, two, beside = vector
        apart = (one <= left and two <= right) or (two <= left and one <= right)
        require(apart, f"the points of the vector are not on the two sides of the question at place {v}")
        weighed = any(self.weighed.get((v, column), True) for column in beside)
        require(
            not weighed, f"the question at place {v} may weigh a coordinate in which the means of the vector differ"
        )
        self.next_case()

    def check_sum(self, parts: list[tuple[ShownBound, Any]]) -> None:
        """Apply rule `sum`: end the open case, since errors on disjoint sets of points add up. Raises BadProof."""
        used_points = frozenset[int]()
        total = self.further_cost()
        for part, v in parts:
            disjoint = type(v) is int and v in self.trees and part.points <= self.points_at(v) - used_points
            require(disjoint, "two of the sets that it adds up share a point, or a set is not at its place")
            require(
                not part.alone and includes(part.tree, self.trees[v]),
                "a set that it adds up was proved for other labels than those of its place",
            )
            used_points = used_points | part.points
            total = total + part.bound
        total += sum(self.wrong[v][p] for p, v in self.at.items() if p not in used_points)
        require(total >= self.shown.bound, f"the sets add up to {total}, not {self.shown.bound}")
        self.next_case()


def _is_below(v: int, u: int) -> bool:
    """Return True if place u is v or below it."""
    return u >> max(0, u.bit_length() - v.bit_length()) == v


def _places(v: int, tree: Tree) -> Iterator[tuple[int, Tree]]:
    yield v, tree
    if not isinstance(tree, int):
        yield from (*_places(2 * v, tree[0]), *_places(2 * v + 1, tree[1]))


def check_planes(lines: Lines, space: PlaneSpace) -> ProvedBounds:
    """Check a proof for a space of hyperplanes; raise BadProof, which names the first line that does not hold."""
    kind = "about hyperplanes, version 3, 4 or 7"
    header, goals = read_header(lines, VERSIONS, kind, space.digest, space.leaves, empty=space.empty)
    require(whole_number(header, "scale", 1) == 1, "the scale of a proof about hyperplanes is 1")
    unit = lcm(space.penalty.denominator, space.charge.denominator)
    goal = Fraction(0 if goals else whole_number(header, "goal", 0), unit)
    check = _Check(space, 0 if goals else unit)
    steps = check_lines(lines, check.add)
    require(check.block is None, "the file ends while its last block has open cases")
    if not goals:
        # a tree of t leaves with fewer errors than this costs less than the goal
        check.check_goals(lambda t: max(Fraction(0), goal - space.penalty * t - space.charge * (t - 1)))
        return ProvedBounds(goal, steps)
    check.check_goals(lambda t: Fraction(goals[min(t, len(goals)) - 1]))
    # a narrow block proves nothing about trees with fewer leaves, so take the minimum over all sizes up to t
    return ProvedBounds(cost_of(goals, space.penalty, space.charge), steps, tuple(accumulate(goals, min)))


class _Check:
    """The state of a check: the vectors and blocks that have been proved so far, and the open block."""

    def __init__(self, space: PlaneSpace, unit: int) -> None:
        """Start without lines; charged blocks state bounds in 1/`unit` rows, and with 0 no block is charged."""
        self.space = space
        self.unit = unit
        self.vectors: dict[int, Vector] = {}
        self.shown: dict[int, ShownBound] = {}
        self.block: CaseBlock | None = None
        self.number = 0  # line on which the current block begins

    def add(self, number: int, record: Record) -> None:
        """Check a line: a vector, the beginning of a block, or a step of the open block; raise BadProof."""
        reason = record.get("by")
        block = self.block
        if reason == "vector":
            self.vectors[number] = self._vector(record)
        elif reason == "errors" and block is None:
            self.block = self._begin_block(record)
            self.number = number
        elif block is None or reason not in ("side", "meet", "sum", "weigh", "few"):
            raise BadProof(
                f"its reason '{str(reason)[:40]}' is unknown, or not allowed {'outside' if block is None else 'inside'} a block"
            )
        elif reason == "side":
            block.check_side(whole_number(record, "point", 0))
        elif reason == "meet":
            block.check_meet(_earlier_line(self.vectors, record.get("of")), whole_number(record, "at", 1))
        elif reason == "weigh":
            block.check_weigh(whole_number(record, "at", 1), whole_number(record, "column", 0))
        elif reason == "few":
            block.check_few(whole_number(record, "at", 1))
        else:
            block.check_sum([(_earlier_line(self.shown, line), v) for line, v in _pairs(record, "of")])
        if self.block is not None and not self.block.open:
            self.shown[self.number] = self.block.shown
            self.block = None

    def _vector(self, record: Record) -> Vector:
        sides = [self._weights(record, name) for name in ("left", "right")]
        beside = numbers(record, "beside") or ()
        require(
            all(sides) and means_meet(self.space, sides[0], sides[1], beside),
            "the weighted means of its two sides differ, or a side is empty",
        )
        left, right = sides
        return Vector(frozenset(left), frozenset(right), frozenset(beside))

    def _weights(self, record: Record, name: str) -> dict[int, int]:
        pairs = _pairs(record, name)
        weights = {point: int(w) if isinstance(w, str) and DIGITS.fullmatch(w) else w for point, w in pairs}
        good = all(type(w) is int and w > 0 and 0 <= point < len(self.space.counts) for point, w in weights.items())
        require(
            good and len(weights) == len(pairs),
            f"'{name}' names a point twice or one that does not exist, or has a weight that is no positive integer",
        )
        return weights

    def _begin_block(self, record: Record) -> CaseBlock:
        """Apply rule `errors`: begin a block."""
        size = len(self.space.counts)
        listed = numbers(record, "points")
        every = range(size) if listed is None else listed
        require(max(every, default=0) < size, f"'points' names a point that does not exist; the last one is {size - 1}")
        tree = read_tree(record.get("tree"), self.space.depth, self.space.counts.shape[1])
        bound = whole_number(record, "bound", 0)
        parts = self.unit if record.get("charged") is True else 0
        return CaseBlock(
            self.space, ShownBound(tree, frozenset(every), Fraction(bound, parts) if parts else bound, parts > 0)
        )

    def check_goals(self, needed_of: Callable[[int], Fraction]) -> None:
        """Raise BadProof unless the blocks prove the needed errors for each number of leaves."""
        space = self.space
        looked = count()
        idle = False
        # a leaf with a class that no row has never makes fewer errors
        present = np.flatnonzero(space.counts.any(axis=0)).tolist()
        for t in range(max(1, min(space.leaves, int(space.counts.sum()) // space.min_leaf)), 0, -1):
            errors = needed_of(t)
            # if the proved blocks include idle questions, a larger tree of labels covers the smaller ones
            if idle and ceil(errors) <= ceil(needed_of(t + 1)):
                continue
            idle = True
            for tree in trees(space.depth, t, present) if errors > _floor(space, t) else ():
                with_idle, without_idle = self._errors(tree)
                enough = without_idle >= errors and next(looked) < MAX_LABEL_TREES
                require(
                    enough,
                    f"nothing proves {errors} errors for trees with the labels {tree}, or more than {MAX_LABEL_TREES} label trees need proof",
                )
                idle = idle and with_idle >= errors

    def _errors(self, tree: Tree) -> list[int | Fraction]:
        """Return the errors that are proved for trees with these labels: with idle questions, and without."""
        least = least_errors(self.space, labels(tree))
        bounds: list[int | Fraction] = [int(least.sum())] * 2
        for block in self.shown.values():
            if includes(block.tree, tree) and (not block.alone or includes(tree, block.tree)):
                errors = block.bound + int(least.sum() - least[sorted(block.points)].sum())
                bounds = [bounds[0] if block.alone else max(bounds[0], errors), max(bounds[1], errors)]
        return bounds


def _floor(space: PlaneSpace, leaves: int) -> int:
    """Return the unavoidable errors of trees with `leaves` leaves: equal rows go together, and a leaf predicts one class."""
    sizes = sorted(space.counts.sum(axis=0).tolist(), reverse=True)
    return max(int(space.counts.sum() - space.counts.max(axis=1).sum()), sum(sizes[leaves:]))


def _earlier_line(earlier: dict[int, Any], number: Any) -> Any:
    """Return the vector or bound of an earlier line."""
    before = type(number) is int and number in earlier
    require(before, "a line that it names in 'of' does not come before it, or is of another kind")
    return earlier[number]


def _pairs(record: Record, name: str) -> list[list[Any]]:
    """Read a list of pairs that begin with an integer."""
    pairs: Any = record.get(name)
    good = isinstance(pairs, list) and all(isinstance(p, list) and len(p) == 2 and type(p[0]) is int for p in pairs)
    require(good, f"'{name}' is not a list of pairs that begin with an integer")
    return pairs


# -- points -----------------------------------------------------------------------------------------------------------


def least_errors(space: PlaneSpace, labels: Collection[int]) -> np.ndarray:
    """Return for each point the least misclassified weight if only these classes are predicted."""
    return space.counts.sum(axis=1) - space.counts[:, sorted(labels)].max(axis=1)


def means_meet(
    space: PlaneSpace, left: Mapping[int, int], right: Mapping[int, int], beside: Collection[int] = ()
) -> bool:
    """Apply rule `vector`: return True if the weighted means are equal in all coordinates that are not `beside`.

    Then no hyperplane of the space separates the points, unless it has a nonzero coefficient for a coordinate of
    `beside`.
    """
    one = sum(left.values())
    two = sum(right.values())
    points = [*left, *right]
    signed = [two * w for w in left.values()] + [-one * w for w in right.values()]
    for j, near in ((j, near) for j, near in enumerate(space.near) if j not in beside):
        read = [space.exactly(value) for value in space.values[points, j].tolist()]
        scale = lcm(*(number.denominator for number in read))
        weighted_sums = (w * x.numerator * (scale // x.denominator) for w, x in zip(signed, read, strict=True))
        gap = abs(sum(weighted_sums))
        if gap and gap >= near * scale * one * two:
            return False
    return True
