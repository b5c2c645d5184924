"""Check of a proof about trees of hyperplanes: sets of rows that no hyperplane parts, and cases that end at them.

The format is docs/proof-format.md, "Hyperplanes".  Each tree sends each row to one side of each of its questions.  A block of cases
asks where: it goes through the sides of some rows until those on the two sides of a question cannot be parted, or enough rows are wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from fractions import Fraction
from itertools import accumulate, count
from math import ceil, lcm
from typing import Any, NamedTuple

import numpy as np

from trainer.check.proof.steps.labels import MOST, Tree, holds, labels, read_tree, trees
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
DIGITS = re.compile("[1-9][0-9]{0,3999}")  # of a weight too large for a number of JSON


class Vector(NamedTuple):
    """Two sets of points whose hulls meet: no hyperplane has one on each side that does not weigh the coordinates `beside`."""

    left: frozenset[int]
    right: frozenset[int]
    beside: frozenset[int]


class ShownBound(NamedTuple):
    """Each tree with these labels makes errors of at least `bound` on these points.

    `alone`: errors and, where they are charged, further coefficients, of trees with just these labels and no smaller ones.
    """

    tree: Tree
    points: frozenset[int]
    bound: int | Fraction
    alone: bool


class CaseBlock:
    """Cases that are being checked: where the points of the block are, and what that costs; `open` until every case has ended.

    Places are numbered 1 for the root, 2 v and 2 v + 1 for the sides of v.
    """

    def __init__(self, space: PlaneSpace, shown: ShownBound) -> None:
        self.shown = shown
        self.trees = dict(_places(1, shown.tree))
        self.space = space
        self.charge = space.charge if shown.alone else 0
        self.weighed: dict[Any, bool] = {}  # whether the question at a place weighs a coordinate
        # of each point at a place: the least that it costs
        self.wrong = {v: wrong(space, labels(tree)).tolist() for v, tree in self.trees.items()}
        self.at = dict.fromkeys(shown.points, 1)
        self.cost = sum(self.wrong[1][p] for p in shown.points)
        # a point, where it was, and the sides still to be looked at; or a coordinate at a place
        self.waiting: list[tuple[int | tuple[int, int], int, list[int]]] = []
        self.open = self.cost < shown.bound

    def here(self, v: int) -> set[int]:
        """The points that are known to come to a place."""
        return {p for p, at in self.at.items() if _below(v, at)}

    def part(self, point: int) -> None:
        """Look at both sides of the question where the point is, or at one if the other is its mirror image."""
        v = self.at.get(point, 0)
        require(not isinstance(self.trees.get(v, 0), int), f"point {point} is at no question of its block")
        left = 2 * v
        right = 2 * v + 1
        same = self.trees[left] == self.trees[right] and not self.here(left) and not self.here(right)
        self.waiting.append((point, v, [left] if same and not self.weighed else [right, left]))
        self.next()

    def weigh(self, v: int, column: int) -> None:
        """Look at questions at v that do not weigh a coordinate, then at those that do."""
        asked = not isinstance(self.trees.get(v, 0), int) and column < len(self.space.near)
        require(asked and (v, column) not in self.weighed, "whether it is weighed there is known, or no question")
        self.waiting.append(((v, column), -1, [1, 0]))
        self.next()

    def few(self, v: int) -> None:
        """End the open case: the points that can come to v are too few for its leaves. Raises BadProof."""
        leaves = sum(isinstance(tree, int) for u, tree in self.trees.items() if _below(v, u))
        away = [p for p, at in self.at.items() if not _below(v, at) and not _below(at, v)]
        most = int(self.space.counts.sum() - self.space.counts[away].sum())
        require(most < self.space.min_leaf * leaves, "enough points can come to the place, or it is none")
        self.shown = self.shown._replace(alone=True)
        self.next()

    def next(self) -> None:
        """The case that was open has ended: go to the next one that does not end by its cost."""
        while self.waiting:
            item, v, sides = self.waiting[-1]
            to = sides.pop() if sides else v  # when both sides have been looked at, the point goes back
            if isinstance(item, int):
                self.cost += self.wrong[to][item] - self.wrong[self.at[item]][item]
                self.at[item] = to
            else:
                self.weighed[item] = to > 0
            if to == v:
                self.weighed.pop(self.waiting.pop()[0], None)
            elif self.cost + self.further() < self.shown.bound:
                return
        self.open = False

    def further(self) -> Fraction | int:
        """What the coefficients cost that are known, but for the first one of each question."""
        places = [v for (v, _), on in self.weighed.items() if on]
        return self.charge * (len(places) - len(set(places)))

    def cannot(self, vector: Vector, v: int) -> None:
        """End the open case: the question at v cannot part its points. Raises BadProof."""
        left, right, (one, two, beside) = self.here(2 * v), self.here(2 * v + 1), vector
        apart = (one <= left and two <= right) or (two <= left and one <= right)
        require(apart, "the points of the vector are not on the two sides of the question")
        weighed = any(self.weighed.get((v, column), True) for column in beside)
        require(not weighed, "the question may weigh a coordinate in which the means of the vector differ")
        self.next()

    def adds(self, parts: list[tuple[ShownBound, Any]]) -> None:
        """End the open case: errors on disjoint sets of points add up. Raises BadProof."""
        used = frozenset[int]()
        total = self.further()
        for part, v in parts:
            there = type(v) is int and v in self.trees and part.points <= self.here(v) - used
            require(there, "the sets that it adds up share points, or do not come to their place")
            require(not part.alone and holds(part.tree, self.trees[v]), "a set that it adds up is of other labels")
            used = used | part.points
            total = total + part.bound
        total += sum(self.wrong[v][p] for p, v in self.at.items() if p not in used)
        require(total >= self.shown.bound, f"the sets add up to {total}, not {self.shown.bound}")
        self.next()


def _below(v: int, u: int) -> bool:
    """Whether place u is v, or below it."""
    return u >> max(0, u.bit_length() - v.bit_length()) == v


def _places(v: int, tree: Tree) -> Iterator[tuple[int, Tree]]:
    yield v, tree
    if not isinstance(tree, int):
        yield from (*_places(2 * v, tree[0]), *_places(2 * v + 1, tree[1]))


def check_planes(lines: Lines, space: PlaneSpace) -> ProvedBounds:
    """The bound that a proof shows for a space of hyperplanes; raises BadProof, which names the first line that does not hold."""
    kind = "about hyperplanes, version 3, 4 or 7"
    header, goals = read_header(lines, VERSIONS, kind, space.digest, space.leaves, empty=space.empty)
    require(whole_number(header, "scale", 1) == 1, "the scale of a proof about hyperplanes is 1")
    unit = lcm(space.penalty.denominator, space.charge.denominator)
    goal = Fraction(0 if goals else whole_number(header, "goal", 0), unit)
    check = _Check(space, 0 if goals else unit)
    steps = check_lines(lines, check.add)
    require(check.block is None, "the last block has open cases")
    if not goals:
        # the errors that a tree of so many leaves must make to cost at least the goal, in rows
        check.finish(lambda t: max(Fraction(0), goal - space.penalty * t - space.charge * (t - 1)))
        return ProvedBounds(goal, steps)
    check.finish(lambda t: Fraction(goals[min(t, len(goals)) - 1]))
    # a narrow block says nothing of trees with fewer leaves
    return ProvedBounds(cost_of(goals, space.penalty, space.charge), steps, tuple(accumulate(goals, min)))


class _Check:
    """The vectors and blocks that hold so far."""

    def __init__(self, space: PlaneSpace, unit: int) -> None:
        """`unit`: parts of a row in which charged blocks count; 0 where there are none."""
        self.space = space
        self.unit = unit
        self.vectors: dict[int, Vector] = {}
        self.shown: dict[int, ShownBound] = {}
        self.block: CaseBlock | None = None
        self.number = 0  # line of the block

    def add(self, number: int, record: Record) -> None:
        """Keep a vector, begin a block, or go on in the one that is open; raises BadProof."""
        reason = record.get("by")
        block = self.block
        if reason == "vector":
            self.vectors[number] = self._vector(record)
        elif reason == "errors" and block is None:
            self.block = self._begun(record)
            self.number = number
        elif block is None or reason not in ("side", "meet", "sum", "weigh", "few"):
            raise BadProof("it has no known reason, or stands at the wrong place")
        elif reason == "side":
            block.part(whole_number(record, "point", 0))
        elif reason == "meet":
            block.cannot(_earlier_line(self.vectors, record.get("of")), whole_number(record, "at", 1))
        elif reason == "weigh":
            block.weigh(whole_number(record, "at", 1), whole_number(record, "column", 0))
        elif reason == "few":
            block.few(whole_number(record, "at", 1))
        else:
            block.adds([(_earlier_line(self.shown, line), v) for line, v in _pairs(record, "of")])
        if self.block is not None and not self.block.open:
            self.shown[self.number] = self.block.shown
            self.block = None

    def _vector(self, record: Record) -> Vector:
        sides = [self._weights(record, name) for name in ("left", "right")]
        beside = numbers(record, "beside") or ()
        require(all(sides) and meets(self.space, sides[0], sides[1], beside), "the means of its two sides do not meet")
        return Vector(*map(frozenset, (*sides, beside)))

    def _weights(self, record: Record, name: str) -> dict[int, int]:
        pairs = _pairs(record, name)
        found = {point: int(w) if isinstance(w, str) and DIGITS.fullmatch(w) else w for point, w in pairs}
        good = all(type(w) is int and w > 0 and 0 <= point < len(self.space.counts) for point, w in found.items())
        require(good and len(found) == len(pairs), f"'{name}' has a point twice, or one or a weight that is none")
        return found

    def _begun(self, record: Record) -> CaseBlock:
        size = len(self.space.counts)
        listed = numbers(record, "points")
        every = range(size) if listed is None else listed
        require(max(every, default=0) < size, "'points' are not points")
        tree = read_tree(record.get("tree"), self.space.depth, self.space.counts.shape[1])
        bound = whole_number(record, "bound", 0)
        parts = self.unit if record.get("charged") is True else 0
        return CaseBlock(
            self.space, ShownBound(tree, frozenset(every), Fraction(bound, parts) if parts else bound, parts > 0)
        )

    def finish(self, needed_of: Callable[[int], Fraction]) -> None:
        """Raises BadProof unless trees with each number of leaves make so many errors."""
        space = self.space
        looked = count()
        idle = False
        present = np.flatnonzero(space.counts.any(axis=0)).tolist()  # no leaf does better with another label
        for t in range(max(1, min(space.leaves, int(space.counts.sum()) // space.min_leaf)), 0, -1):
            errors = needed_of(t)
            # a tree with fewer leaves is one with idle questions, if these were shown as well
            if idle and ceil(errors) <= ceil(needed_of(t + 1)):
                continue
            idle = True
            for tree in trees(space.depth, t, present) if errors > _floor(space, t) else ():
                plain, found = self._errors(tree)
                enough = found >= errors and next(looked) < MOST
                require(enough, f"nothing proves {errors} errors of trees with the labels {tree}, or they are too many")
                idle = idle and plain >= errors

    def _errors(self, tree: Tree) -> list[int | Fraction]:
        """What is shown of the trees with these labels, also if they have idle questions, and what is shown if they have none."""
        least = wrong(self.space, labels(tree))
        found: list[int | Fraction] = [int(least.sum())] * 2
        for one in self.shown.values():
            if holds(one.tree, tree) and (not one.alone or holds(tree, one.tree)):
                shown = one.bound + int(least.sum() - least[sorted(one.points)].sum())
                found = [found[0] if one.alone else max(found[0], shown), max(found[1], shown)]
        return found


def _floor(space: PlaneSpace, leaves: int) -> int:
    """Errors of each tree with so many leaves: equal rows go together, and a leaf predicts one class."""
    sizes = sorted(space.counts.sum(axis=0).tolist(), reverse=True)
    return max(int(space.counts.sum() - space.counts.max(axis=1).sum()), sum(sizes[leaves:]))


def _earlier_line(found: dict[int, Any], number: Any) -> Any:
    """What an earlier line holds."""
    before = type(number) is int and number in found
    require(before, "the line that it names does not come before it, or is of another kind")
    return found[number]


def _pairs(record: Record, name: str) -> list[list[Any]]:
    """A list of pairs that begin with a whole number."""
    pairs: Any = record.get(name)
    good = isinstance(pairs, list) and all(isinstance(p, list) and len(p) == 2 and type(p[0]) is int for p in pairs)
    require(good, f"'{name}' is not a list of pairs")
    return pairs


# -- points -----------------------------------------------------------------------------------------------------------


def wrong(space: PlaneSpace, labels: Collection[int]) -> np.ndarray:
    """Of each point the weight that is wrong at least where only these classes are predicted."""
    return space.counts.sum(axis=1) - space.counts[:, sorted(labels)].max(axis=1)


def meets(space: PlaneSpace, left: Mapping[int, int], right: Mapping[int, int], beside: Collection[int] = ()) -> bool:
    """True if these weighted means, which may differ `beside`, show that no hyperplane of the space parts the points."""
    one = sum(left.values())
    two = sum(right.values())
    points = [*left, *right]
    signed = [two * w for w in left.values()] + [-one * w for w in right.values()]
    for j, near in ((j, near) for j, near in enumerate(space.near) if j not in beside):
        read = [space.exactly(value) for value in space.values[points, j].tolist()]
        scale = lcm(*(number.denominator for number in read))
        whole = (w * x.numerator * (scale // x.denominator) for w, x in zip(signed, read, strict=True))
        gap = abs(sum(whole))
        if gap and gap >= near * scale * one * two:
            return False
    return True
