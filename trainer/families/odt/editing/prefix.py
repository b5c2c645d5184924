"""Search subsets under constraints by assigning categories one at a time.

Nodes may have thousands of subsets. Two costs add up to a lower bound for all completions of a partial assignment. One is that of
the assigned rows on their side, without constraints further down; the other is that of each remaining category by itself. Costs
are monotone in the rows, and those of disjoint rows add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trainer.editing.prefix import NO_ROOMS, OPEN, Prefix, PrefixBound, Spot, Topology
from trainer.editing.space import INFINITE_COST, DemandedQuestion
from trainer.editing.wishes import Items, items_below
from trainer.families.odt.editing.space import MemoBound, SubsetSpace
from trainer.families.odt.topology import Shape, child_topologies, complete, is_embedded, subtopologies
from trainer.tree.shapes import Shape as TreeShape

Pair = tuple[int, int]  # values of the yes side and the no side
MAX_CACHED_SIDES = 1000
NOTHING = 0  # topology of a leaf


class SubsetPrefix(Prefix):
    """The search under constraints over all subsets."""

    def __init__(self, space: SubsetSpace) -> None:
        super().__init__(space)
        self.subsets = space
        self.known_sides: dict[tuple[int, frozenset[int], Items, str], Spot] = {}
        self.topology = self.fit_topology(space.depth, space.shape)[1]

    def example(self, spot: Spot) -> int | None:
        local_items = [i for i in spot.items if not i.place]
        if spot.height <= 0 or any(i.verb in ("ask", "held") and i.number >= 0 for i in local_items):
            return super().example(spot)
        for g in self.groups(spot):
            if questions := self.subsets.of_group(g, spot.rows, spot.banned, alike=False):
                return questions[0]
        return None

    # -- topologies ----------------------------------------------------------------------------------------------------

    def fit_topology(self, height: int, room: Topology | None) -> tuple[int, Topology | None]:
        if not isinstance(room, Shape):
            return 0 if room == NOTHING else height, None
        parts = subtopologies(room, height)
        height = max((part.depth for part in parts), default=0)
        left = parts[0] if len(parts) == 1 else room
        return height, None if not parts or left == complete(height) else left

    def ways(self, spot: Spot) -> Sequence[tuple[Topology | None, Topology | None]]:
        """Return the pairs of child topologies; NOTHING represents a leaf."""
        if not isinstance(spot.topology, Shape):
            return NO_ROOMS
        return [(a or NOTHING, b or NOTHING) for a, b in child_topologies(spot.topology)]

    def solve_common(self, spot: Spot, ub: int) -> MemoBound:
        least = MemoBound(INFINITE_COST, True)
        for room in self._rooms(spot):
            bound = self.subsets.solve(spot.rows, spot.path, spot.height, spot.banned, min(ub, least.lower), room)
            if bound.lower < least.lower or (bound.lower == least.lower and not least.exact):
                least = bound
        return least

    def common_tree(self, spot: Spot, cost: int) -> TreeShape:
        rooms = self._rooms(spot)
        room = rooms[0] if len(rooms) == 1 else self._room_of(spot, rooms, cost)
        return self.subsets.tree(spot.rows, spot.path, spot.height, spot.banned, cost, room)

    def _room_of(self, spot: Spot, rooms: Sequence[Shape | None], cost: int) -> Shape | None:
        """Return the first topology that has a tree of this cost."""
        for room in rooms:
            bound = self.subsets.solve(spot.rows, spot.path, spot.height, spot.banned, cost + 1, room)
            if bound.exact and bound.lower == cost:
                return room
        raise ValueError(f"no tree costs {cost}")

    @staticmethod
    def _rooms(spot: Spot) -> Sequence[Shape | None]:
        """Return the largest topologies of a node within its height; None represents all trees of the height."""
        return subtopologies(spot.topology, spot.height) or (None,) if isinstance(spot.topology, Shape) else (None,)

    def admits_branches(self, places: set[str]) -> bool:
        return is_embedded(_branches(places), self.subsets.shape)

    # -- questions -----------------------------------------------------------------------------------------------------

    def groups(self, spot: Spot) -> list[int]:
        """Return the groups that may be tested at a node."""
        asks = [DemandedQuestion(i.column, i.questions) for i in spot.items if i.verb == "ask" and not i.place]
        avoided = {i.column for i in spot.items if i.verb == "avoid" and not i.place}
        usable = self.subsets.usable(spot.banned, asks) if spot.height > 0 else []
        return [g for g in usable if self.subsets.groups.columns[g] not in avoided]

    def _questions(self, spot: Spot, ub: int, lower: int, best: PrefixBound, asks: bool) -> PrefixBound:
        if any(i.verb == "ask" and not i.place and i.number >= 0 for i in spot.items):
            return super()._questions(spot, ub, lower, best, asks)
        best = self._try_held_questions(spot, best)
        ways = range(len(self.ways(spot)))
        sent = [GroupQuestions(self, spot, g, way) for g in self.groups(spot) for way in ways]
        for one in sorted(sent, key=lambda one: one.lower):
            if best.upper <= lower or self.space.stopped():
                break
            best = one.run(best, lower)
        if self.space.stopped():
            floor = max(lower, self.space.floor(self.space.counts(spot.rows), spot.height))
            return replace(best, lower=min(floor, best.upper), exact=False)
        return best if best.choice != OPEN else PrefixBound(ub, ub >= INFINITE_COST)

    def _try_held_questions(self, spot: Spot, best: PrefixBound) -> PrefixBound:
        """Improve `best` by the held questions that are allowed at this node."""
        for item in spot.items:
            if item.verb != "held" or item.place or not self.space.separates(spot.rows, item.number):
                continue
            if self.space.questions.is_barred(item.number, spot.banned) or self._is_refused(spot, item.column):
                continue
            for way in range(len(self.ways(spot))):
                side = self._sides(spot, item.number, way)
                cost = self._attempt(side, best.upper) if side.lower < best.upper else INFINITE_COST
                if cost < best.upper:
                    best = PrefixBound(cost, True, item.number, upper=cost, way=way)
        return best

    @staticmethod
    def _is_refused(spot: Spot, column: int) -> bool:
        """Return whether a constraint demands another column at this node, or avoids this one."""
        local_items = [i for i in spot.items if not i.place]
        return any(
            (i.verb == "ask" and i.column != column) or (i.verb == "avoid" and i.column == column) for i in local_items
        )

    def side(self, spot: Spot, letter: str, room: Topology | None = None) -> Spot:
        """Return the constraints of a child below any question of the encoding, without rows.

        `room` is the topology of the child; None: all trees of the height.
        """
        return self.settle(
            Spot(spot.rows[:0], None, spot.height - 1, spot.banned, items_below(spot.items, letter), room)
        )

    def _below(self, side: Spot, letter: str) -> Spot:
        """Return the cached result of `side` for a child."""
        key = (side.height, side.banned, side.items, letter)
        if key not in self.known_sides:
            if len(self.known_sides) >= MAX_CACHED_SIDES:
                self.known_sides.clear()
            self.known_sides[key] = self.side(side, letter)
        return self.known_sides[key]

    def least(self, side: Spot, rows: np.ndarray, ub: int) -> int:
        """Return a lower bound on the cost of rows in a child.

        It respects the constraints at the child, and those below a demanded question, but no others further down.
        """
        leaf_items = [i for i in side.items if i.verb == "leaf" and not i.place]
        if leaf_items:
            labels = {i.number for i in leaf_items} - {-1}
            if len(labels) > 1 or any(i.verb == "ask" for i in side.items):
                return INFINITE_COST
            return self.space.leaf_cost(self.space.counts(rows), next(iter(labels), None))
        questions = {i.number for i in side.items if i.verb == "ask" and not i.place and len(i.questions) == 1}
        if questions and side.height > 0:
            yes, no = self.space.split(rows, min(questions))  # a side without rows costs nothing here
            low = self.least(self._below(side, "y"), yes, ub)
            return low if low >= ub else min(INFINITE_COST, low + self.least(self._below(side, "n"), no, ub - low))
        if any(i.verb == "held" for i in side.items):
            return self.space.floor(self.space.counts(rows), side.height)
        return self.solve_common(replace(side, rows=rows), ub).lower


class GroupQuestions:
    """A search over all questions of one group at a node: categories go to yes or no, the heaviest first, the better side first."""

    def __init__(self, prefix: SubsetPrefix, spot: Spot, g: int, way: int) -> None:
        self.prefix = prefix
        self.space = prefix.subsets
        self.spot = spot
        self.g = g
        self.way = way
        rooms = prefix.ways(spot)[way]
        self.sides = (prefix.side(spot, "y", rooms[0]), prefix.side(spot, "n", rooms[1]))
        yes, no = self.sides
        self.mirrored = (yes.height, yes.banned, yes.items, yes.topology) == (
            no.height,
            no.banned,
            no.items,
            no.topology,
        )
        self.ordered = bool(self.space.groups.ordered[g])
        self.units, self.parts = self._parts()
        alone = [
            min(INFINITE_COST, *(prefix.least(side, part, INFINITE_COST) for side in self.sides)) for part in self.parts
        ]
        self.rest = _tails(alone)

    def _parts(self) -> tuple[list[int], list[np.ndarray]]:
        """Return the masks of the categories that occur, and their rows: bins in their order, others by weight."""
        cat = self.space.groups.cat[self.spot.rows, self.g]
        unit_rows = []
        for unit in self.space.allowed(self.spot.banned).units[self.g]:
            rows = self.spot.rows[np.isin(cat, [a for a in range(unit.bit_length()) if unit >> a & 1])]
            if len(rows):
                unit_rows.append((unit, rows))
        if not self.ordered:
            unit_rows.sort(key=lambda pair: -self.space.weight(pair[1]))
        return [unit for unit, _ in unit_rows], [rows for _, rows in unit_rows]

    @property
    def lower(self) -> int:
        """Lower bound on all questions of the group."""
        return self.rest[0]

    def run(self, best: PrefixBound, enough: int) -> PrefixBound:
        """Return the best question if it costs less than `best`. A tree of cost `enough` ends the search."""
        self.best = best
        self.enough = enough
        if len(self.parts) < 2 or self.lower >= best.upper:
            return best
        if self.ordered:
            for question in self.space.of_group(self.g, self.spot.rows, self.spot.banned, alike=True):
                self._try(question)
            return self.best
        empty = self.spot.rows[:0]
        self._send(0, (empty, empty), (0, 0), 0)
        return self.best

    def _send(self, t: int, rows: tuple[np.ndarray, np.ndarray], low: Pair, mask: int) -> None:
        """Assign the t-th category and all after it; `low` bounds both sides, `mask` are the categories of yes."""
        if self.best.upper <= self.enough or self.space.stopped():
            return
        if t == len(self.parts):
            present = sum(self.units)
            if 0 < mask < present:
                question = self.space.subset(self.g, mask, present, self.spot.banned)
                if question is not None:
                    self._try(question)
            return
        ways = []
        for s in (0,) if t == 0 and self.mirrored else (0, 1):
            enlarged = np.sort(np.concatenate([rows[s], self.parts[t]]))
            other = low[1 - s] + self.rest[t + 1]
            least = self.prefix.least(self.sides[s], enlarged, self.best.upper - other)
            ways.append((least + other, s, enlarged, max(least, low[s])))
        for total, s, enlarged, least in sorted(ways, key=lambda way: way[:2]):
            if total < self.best.upper:
                both = (enlarged, rows[1]) if s == 0 else (rows[0], enlarged)
                lows = (least, low[1]) if s == 0 else (low[0], least)
                self._send(t + 1, both, lows, mask | self.units[t] if s == 0 else mask)

    def _try(self, question: int) -> None:
        """Complete a question, and store it if it costs less than the incumbent."""
        side = self.prefix._sides(self.spot, question, self.way)
        if side.lower < self.best.upper and not self.space.stopped():
            cost = self.prefix._attempt(side, self.best.upper)
            if cost < self.best.upper:
                self.best = PrefixBound(cost, True, question, upper=cost, way=self.way)


def _branches(places: set[str]) -> Shape | None:
    """Return the topology of a tree with branches at these places and above them."""
    if not places:
        return None
    sides = ({p[1:] for p in places if p[:1] == letter} for letter in "yn")
    return Shape(*(_branches(side) for side in sides))


def _tails(alone: list[int]) -> list[int]:
    """Return for each t the sum of the costs from the t-th on, at most INFINITE_COST."""
    tails = [0]
    for cost in reversed(alone):
        tails.append(min(INFINITE_COST, tails[-1] + cost))
    return tails[::-1]
