"""The best tree that keeps a set of wishes: E(D, h, A, W), with A the columns that are not banned and W a partial tree.

Where no wish and no held question lies at or below a place its value is that of the common search; only places on the way to a
wish have states of their own, so that a wish below a place searches nothing off its way.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from trainer.editing.space import INFINITE_COST, NONE_BANNED, DemandedQuestion, EditingSpace, SubproblemBound, literal
from trainer.editing.wishes import Items, bans, below, satisfies
from trainer.tree.shapes import LabelledShape, Shape

# choices beside questions: a leaf, the tree of the common search, none
LEAF = -1
COMMON = -2
OPEN = -3
MOST_STATES = 400_000
Topology = Hashable
NO_ROOMS = ((None, None),)


@dataclass(frozen=True)
class Spot:
    """A subproblem: rows, how they were reached, the height that is left, what is banned (`Questions.barred`), and what it has to satisfy.

    room: the topology that is left at the place, where the space has one that is not complete.
    """

    rows: np.ndarray
    path: tuple[int, ...] | None
    height: int
    banned: frozenset[int]
    items: Items
    room: Topology | None = None


@dataclass(frozen=True)
class PrefixBound:
    """A lower bound, whether it is exact, and the choice at the top: a question, LEAF with its label, COMMON, OPEN.

    `way` says how the room is shared out below the question (`Prefix.ways`). `upper` and `choice` are a tree that keeps the wishes even if the search was stopped.
    """

    lower: int
    exact: bool
    choice: int = OPEN
    label: int | None = None
    upper: int = INFINITE_COST
    height: int = 0
    way: int = 0


class Prefix:
    """The search with wishes over one space; what it finds stays for the next wishes."""

    room: Topology | None = None  # of the whole

    def __init__(self, space: EditingSpace) -> None:
        self.space = space
        self.memo: dict[tuple[int, bytes, frozenset[int], Items, Topology | None], PrefixBound] = {}
        self.states = 0

    def top(self, items: Items) -> Spot:
        """The whole problem with these wishes."""
        return Spot(self.space.all_rows, (), self.space.depth, NONE_BANNED, items, self.room)

    # -- the recursion -------------------------------------------------------------------------------------------------

    def settle(self, spot: Spot) -> Spot:
        """The same subproblem with what binds here applied, and without what cannot bind."""
        here = [i for i in spot.items if not i.place]
        banned = spot.banned | bans(here)
        height, room = self.fitted(min([spot.height, *(i.number for i in here if i.verb == "depth")]), spot.room)
        items = frozenset(
            i
            for i in spot.items
            if not (not i.place and i.verb in ("forbid", "together", "depth"))
            and not (i.verb == "held" and (i.column in banned or len(i.place) >= height))
            and not (i.verb == "leaf" and len(i.place) > height)
            and not (i.verb in ("forbid", "avoid", "together") and (i.column in banned or len(i.place) >= height))
            and not (i.verb == "depth" and len(i.place) + i.number >= height)
        )
        return Spot(spot.rows, spot.path, height, banned, items, room)

    def fitted(self, height: int, room: Topology | None) -> tuple[int, Topology | None]:
        """The height and the room of a place where both bind."""
        return height, None

    def ways(self, spot: Spot) -> Sequence[tuple[Topology | None, Topology | None]]:
        """What is left of the room for yes and no below any question here, for each way to share it out."""
        return NO_ROOMS

    def holds(self, places: set[str]) -> bool:
        """Whether some tree that the room of the whole admits has branches at all these places."""
        return all(len(place) < self.space.depth for place in places)

    def value(self, spot: Spot, ub: int = INFINITE_COST) -> PrefixBound:
        """E of the subproblem if below `ub`, else a lower bound of at least `ub`, less only if the search was stopped."""
        spot = self.settle(spot)
        if not spot.items:
            return self._common(spot, ub)
        key = (spot.height, spot.rows.tobytes(), spot.banned, spot.items, spot.room)
        known = self.memo.get(key)
        if known is not None and (known.exact or known.lower >= ub):
            return known
        self.states += 1
        found = self._search(spot, ub)
        if not self.space.stopped():
            self.memo[key] = found
        return found

    def trim(self) -> None:
        """Forget the states if they are many; between questions only."""
        if len(self.memo) > MOST_STATES:
            self.memo.clear()

    def _common(self, spot: Spot, ub: int) -> PrefixBound:
        known = self.solved(spot, ub)
        return PrefixBound(
            known.lower, known.exact, COMMON, upper=known.lower if known.exact else INFINITE_COST, height=spot.height
        )

    def solved(self, spot: Spot, ub: int) -> SubproblemBound:
        """What the common search knows of a place, see `EditingSpace.solve`."""
        return self.space.solve(spot.rows, spot.path, spot.height, spot.banned, ub)

    def grown(self, spot: Spot, cost: int) -> Shape:
        """The tree of the common search at a place, of its known cost."""
        return self.space.tree(spot.rows, spot.path, spot.height, spot.banned, cost)

    def _search(self, spot: Spot, ub: int) -> PrefixBound:
        here = [i for i in spot.items if not i.place]
        asks = any(i.verb == "ask" for i in spot.items)
        labels = {i.number for i in here if i.verb == "leaf"}
        if labels:
            return self._leaf(spot, labels - {-1}, asks)
        lower = 0
        best = PrefixBound(ub, False, upper=ub)
        if not any(i.verb == "held" for i in spot.items):
            if not any(i.verb == "ask" for i in here):
                common = self._common(spot, ub)
                lower = common.lower
                if lower >= ub or self.space.stopped():
                    return PrefixBound(lower, False)
                if not asks and self._kept(spot, common):
                    return common
        elif not asks and not any(i.verb != "held" for i in spot.items):
            common = self._common(spot, ub)  # a tree that asks no held question
            if common.exact and common.upper < ub:
                best = common
        if not asks:
            cost = self.space.leaf_cost(self.space.counts(spot.rows))
            if cost <= best.upper and cost < ub:
                best = PrefixBound(cost, True, LEAF, upper=cost)
        return self._questions(spot, ub, lower, best, asks)

    def _leaf(self, spot: Spot, named: set[int], asks: bool) -> PrefixBound:
        if asks or len(named) > 1:
            return PrefixBound(INFINITE_COST, True)
        label = next(iter(named)) if named else None
        cost = self.space.leaf_cost(self.space.counts(spot.rows), label)
        return PrefixBound(cost, True, LEAF, label, cost)

    def _kept(self, spot: Spot, common: PrefixBound) -> bool:
        """Whether the best tree without the wishes keeps them anyway."""
        if not common.exact:
            return False
        with self.space.unhurried():
            tree = self.grown(spot, common.lower)
        return satisfies(tree, spot.items, self.space.questions, spot.banned)

    def _questions(self, spot: Spot, ub: int, lower: int, best: PrefixBound, asks: bool) -> PrefixBound:
        """The minimum over the questions that may stand here, cheapest bounds first."""
        ways = range(len(self.ways(spot)))
        sides = [self._sides(spot, q, way) for q in self.candidates(spot) for way in ways]
        sides.sort(key=lambda side: side.lower)
        for side in sides:
            if self.space.stopped():
                break
            if side.lower >= best.upper:
                continue
            cost = self._attempt(side, best.upper)
            if cost < best.upper:
                best = PrefixBound(cost, True, side.question, upper=cost, way=side.way)
            if best.upper <= lower:
                break
        leaf = INFINITE_COST if asks else self.space.leaf_cost(self.space.counts(spot.rows))
        floor = max(lower, min([leaf, *(s.lower for s in sides)]))
        if self.space.stopped():
            return replace(best, lower=min(floor, best.upper), exact=False)
        if best.choice != OPEN:
            return best
        return PrefixBound(max(ub, floor) if floor < INFINITE_COST else INFINITE_COST, floor >= INFINITE_COST)

    def _sides(self, spot: Spot, question: int, way: int = 0) -> QuestionSides:
        space = self.space
        rooms = self.ways(spot)[way]
        yes, no = space.split(spot.rows, question)
        encoded = space.questions.encoded
        spots = tuple(
            self.settle(
                Spot(
                    rows,
                    literal(spot.path, question, letter == "y", encoded),
                    spot.height - 1,
                    spot.banned,
                    below(spot.items, letter),
                    room,
                )
            )
            for rows, letter, room in ((yes, "y", rooms[0]), (no, "n", rooms[1]))
        )
        return QuestionSides(question, spots, [space.floor(space.counts(s.rows), s.height) for s in spots], way)

    def _attempt(self, side: QuestionSides, ub: int) -> int:
        """The cost of the best tree with this question if it is below `ub`, else something that is not; raises its bounds."""
        order = sorted((0, 1), key=lambda s: (bool(side.spots[s].items), -len(side.spots[s].rows)))
        exact = 0
        for s in order:
            spot = side.spots[s]
            rest = side.bounds[1 - s]
            if spot.items and not any(i.verb == "held" for i in spot.items):
                relaxed = self._common(spot, ub - rest)
                side.bounds[s] = max(side.bounds[s], relaxed.lower)
                if side.lower >= ub or self.space.stopped():
                    return INFINITE_COST
            found = self.value(spot, ub - rest)
            side.bounds[s] = max(side.bounds[s], found.lower)
            exact += found.exact
            if side.lower >= ub or self.space.stopped():
                return INFINITE_COST
        return side.lower if exact == 2 else INFINITE_COST

    def candidates(self, spot: Spot, *, alike: bool = False) -> list[int]:
        """The questions that are possible at a place: allowed, separating its rows, admitted by every `ask` here.

        `alike`: also those that separate the rows like another one.
        """
        if spot.height <= 0:
            return []
        space = self.space
        here = [i for i in spot.items if not i.place]
        asks = [DemandedQuestion(i.column, i.named) for i in here if i.verb == "ask"]
        # with wishes on one side a question and its opposite are not the same
        avoided = {i.column for i in here if i.verb == "avoid"}
        # and a question that is avoided must not stand for those that separate the rows like it
        alike = alike or bool(avoided) or any(i.place for i in spot.items)
        found = [
            q
            for q in space.candidates(spot.rows, spot.banned, asks, alike=alike)
            if space.questions.columns[q] not in avoided
        ]
        mirrors = space.questions.mirrors
        if any(i.place for i in spot.items) or any(q in mirrors.values() for a in asks for q in a.named):
            found += self._mirrored(spot, asks, avoided)
        for item in here:
            if item.verb != "held" or item.number in found or item.column in avoided:
                continue
            if space.questions.barred(item.number, spot.banned | space.banned):
                continue
            if all(a.admits(item.column, item.number) for a in asks) and space.parts(spot.rows, item.number):
                found.append(item.number)
        return found

    def _mirrored(self, spot: Spot, asks: list[DemandedQuestion], avoided: set[int]) -> list[int]:
        """The mirrored questions that are possible at a place, where it matters which answer is yes."""
        questions = self.space.questions
        banned = spot.banned | self.space.banned
        return [
            q
            for q in questions.mirrors.values()
            if questions.columns[q] not in avoided
            and not questions.barred(q, banned)
            and all(a.admits(questions.columns[q], q) for a in asks)
            and self.space.parts(spot.rows, q)
        ]

    def example(self, spot: Spot) -> int | None:
        """Some question that is possible at a settled place."""
        return next(iter(self.candidates(spot)), None)

    # -- trees ---------------------------------------------------------------------------------------------------------

    def tree(self, spot: Spot, found: PrefixBound) -> LabelledShape:
        """The tree behind an answer."""
        spot = self.settle(spot)
        if found.choice == LEAF:
            return self._label(spot, found.label)
        if found.choice == COMMON:
            return self._labelled(self.grown(spot, found.upper), spot.rows)
        side = self._sides(spot, found.choice, found.way)
        parts = []
        for part in side.spots:
            value = self.value(part)
            parts.append(self.tree(part, value))
        return found.choice, parts[0], parts[1]

    def _label(self, spot: Spot, label: int | None) -> int:
        return int(self.space.counts(spot.rows).argmax()) if label is None else label

    def _labelled(self, tree: LabelledShape, rows: np.ndarray) -> LabelledShape:
        """The tree with the majority written into its leaves."""
        if not isinstance(tree, tuple):
            return int(self.space.counts(rows).argmax()) if tree is None else tree
        yes, no = self.space.split(rows, tree[0])
        return tree[0], self._labelled(tree[1], yes), self._labelled(tree[2], no)


@dataclass
class QuestionSides:
    """Both sides of a question with lower bounds of their costs."""

    question: int
    spots: tuple[Spot, ...]
    bounds: list[int]
    way: int = 0

    @property
    def lower(self) -> int:
        return min(INFINITE_COST, self.bounds[0] + self.bounds[1])
