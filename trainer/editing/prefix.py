"""Find the best tree that satisfies wishes.

The recursion is E(D, h, A, W), with A the allowed columns and W a partial tree. A subproblem without a wish or held
question at or below it has the value of the common search, the search without wishes. Only ancestors of wishes have
states of their own.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from trainer.editing.space import INFINITE_COST, NONE_BANNED, DemandedQuestion, EditingSpace, SubproblemBound, literal
from trainer.editing.wishes import Items, banned_at, items_below, satisfies
from trainer.tree.shapes import LabelledShape, Shape

# values of a choice that is not a question
LEAF = -1
COMMON = -2  # take the tree of the search without wishes
OPEN = -3  # no tree is known yet
MOST_STATES = 400_000
Topology = Hashable
NO_ROOMS = ((None, None),)


@dataclass(frozen=True)
class Spot:
    """A subproblem: rows, their path, the remaining height, banned columns and groups (`Questions.is_barred`), and the wishes.

    topology: the remaining topology if the space has an incomplete one.
    """

    rows: np.ndarray
    path: tuple[int, ...] | None
    height: int
    banned: frozenset[int]
    items: Items
    topology: Topology | None = None


@dataclass(frozen=True)
class PrefixBound:
    """A lower bound, whether it is exact, and the choice at the root: a question, LEAF with its label, COMMON or OPEN.

    `way`: index of the topologies of the children (`Prefix.ways`). `upper` and `choice` describe a tree that satisfies the wishes, even
    if the search was stopped.
    """

    lower: int
    exact: bool
    choice: int = OPEN
    label: int | None = None
    upper: int = INFINITE_COST
    height: int = 0
    way: int = 0


class Prefix:
    """The search with wishes over one space; its cache serves all sets of wishes."""

    topology: Topology | None = None  # topology of the whole tree

    def __init__(self, space: EditingSpace) -> None:
        self.space = space
        self.memo: dict[tuple[int, bytes, frozenset[int], Items, Topology | None], PrefixBound] = {}
        self.states = 0

    def top(self, items: Items) -> Spot:
        """Return the root subproblem with these wishes."""
        return Spot(self.space.all_rows, (), self.space.depth, NONE_BANNED, items, self.topology)

    # -- the recursion -------------------------------------------------------------------------------------------------

    def settle(self, spot: Spot) -> Spot:
        """Apply the wishes at this place to the subproblem and drop those that have no effect."""
        items_here = [i for i in spot.items if not i.place]
        banned = spot.banned | banned_at(items_here)
        height, topology = self.fit_topology(
            min([spot.height, *(i.number for i in items_here if i.verb == "depth")]), spot.topology
        )
        items = frozenset(
            i
            for i in spot.items
            if not (not i.place and i.verb in ("forbid", "together", "depth"))
            and not (i.verb == "held" and (i.column in banned or len(i.place) >= height))
            and not (i.verb == "leaf" and len(i.place) > height)
            and not (i.verb in ("forbid", "avoid", "together") and (i.column in banned or len(i.place) >= height))
            and not (i.verb == "depth" and len(i.place) + i.number >= height)
        )
        return Spot(spot.rows, spot.path, height, banned, items, topology)

    def fit_topology(self, height: int, topology: Topology | None) -> tuple[int, Topology | None]:
        """Return height and topology of a place after each has limited the other."""
        return height, None

    def ways(self, spot: Spot) -> Sequence[tuple[Topology | None, Topology | None]]:
        """Return the possible topologies of the children yes and no."""
        return NO_ROOMS

    def admits_branches(self, places: set[str]) -> bool:
        """Return whether some tree of the topology has splits at all these places."""
        return all(len(place) < self.space.depth for place in places)

    def value(self, spot: Spot, ub: int = INFINITE_COST) -> PrefixBound:
        """Return E of the subproblem if it is below `ub`, else a lower bound of at least `ub`; less only if the search was stopped."""
        spot = self.settle(spot)
        if not spot.items:
            return self._common(spot, ub)
        key = (spot.height, spot.rows.tobytes(), spot.banned, spot.items, spot.topology)
        cached = self.memo.get(key)
        if cached is not None and (cached.exact or cached.lower >= ub):
            return cached
        self.states += 1
        value = self._search(spot, ub)
        if not self.space.stopped():
            self.memo[key] = value
        return value

    def trim(self) -> None:
        """Clear the cache if it has many states; only between two searches."""
        if len(self.memo) > MOST_STATES:
            self.memo.clear()

    def _common(self, spot: Spot, ub: int) -> PrefixBound:
        known = self.solve_common(spot, ub)
        return PrefixBound(
            known.lower, known.exact, COMMON, upper=known.lower if known.exact else INFINITE_COST, height=spot.height
        )

    def solve_common(self, spot: Spot, ub: int) -> SubproblemBound:
        """Solve a subproblem by the common search (`EditingSpace.solve`)."""
        return self.space.solve(spot.rows, spot.path, spot.height, spot.banned, ub)

    def common_tree(self, spot: Spot, cost: int) -> Shape:
        """Return the tree of the common search with the optimal `cost`."""
        return self.space.tree(spot.rows, spot.path, spot.height, spot.banned, cost)

    def _search(self, spot: Spot, ub: int) -> PrefixBound:
        items_here = [i for i in spot.items if not i.place]
        asks = any(i.verb == "ask" for i in spot.items)
        labels = {i.number for i in items_here if i.verb == "leaf"}
        if labels:
            return self._leaf(spot, labels - {-1}, asks)
        lower = 0
        best = PrefixBound(ub, False, upper=ub)
        if not any(i.verb == "held" for i in spot.items):
            if not any(i.verb == "ask" for i in items_here):
                common = self._common(spot, ub)
                lower = common.lower
                if lower >= ub or self.space.stopped():
                    return PrefixBound(lower, False)
                if not asks and self._common_satisfies(spot, common):
                    return common
        elif not asks and not any(i.verb != "held" for i in spot.items):
            common = self._common(spot, ub)  # the best tree without the held questions is a first incumbent
            if common.exact and common.upper < ub:
                best = common
        if not asks:
            cost = self.space.leaf_cost(self.space.counts(spot.rows))
            if cost <= best.upper and cost < ub:
                best = PrefixBound(cost, True, LEAF, upper=cost)
        return self._questions(spot, ub, lower, best, asks)

    def _leaf(self, spot: Spot, classes: set[int], asks: bool) -> PrefixBound:
        if asks or len(classes) > 1:
            return PrefixBound(INFINITE_COST, True)
        label = next(iter(classes)) if classes else None
        cost = self.space.leaf_cost(self.space.counts(spot.rows), label)
        return PrefixBound(cost, True, LEAF, label, cost)

    def _common_satisfies(self, spot: Spot, common: PrefixBound) -> bool:
        """Return whether the best tree without the wishes satisfies them."""
        if not common.exact:
            return False
        with self.space.without_limits():
            tree = self.common_tree(spot, common.lower)
        return satisfies(tree, spot.items, self.space.questions, spot.banned)

    def _questions(self, spot: Spot, ub: int, lower: int, best: PrefixBound, asks: bool) -> PrefixBound:
        """Return the minimum over all candidate questions, ordered by bound."""
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
        topologies = self.ways(spot)[way]
        yes, no = space.split(spot.rows, question)
        encoded = space.questions.encoded
        spots = tuple(
            self.settle(
                Spot(
                    rows,
                    literal(spot.path, question, letter == "y", encoded),
                    spot.height - 1,
                    spot.banned,
                    items_below(spot.items, letter),
                    topology,
                )
            )
            for rows, letter, topology in ((yes, "y", topologies[0]), (no, "n", topologies[1]))
        )
        return QuestionSides(question, spots, [space.floor(space.counts(s.rows), s.height) for s in spots], way)

    def _attempt(self, side: QuestionSides, ub: int) -> int:
        """Return the cost of the best tree with this question if it is below `ub`, else INFINITE_COST; raise the bounds of its
        sides.
        """
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
            value = self.value(spot, ub - rest)
            side.bounds[s] = max(side.bounds[s], value.lower)
            exact += value.exact
            if side.lower >= ub or self.space.stopped():
                return INFINITE_COST
        return side.lower if exact == 2 else INFINITE_COST

    def candidates(self, spot: Spot, *, alike: bool = False) -> list[int]:
        """Return the possible questions at a place: allowed, separating its rows, and admitted by every `ask` there.

        `alike`: whether to include questions that separate the rows like another one.
        """
        if spot.height <= 0:
            return []
        space = self.space
        items_here = [i for i in spot.items if not i.place]
        asks = [DemandedQuestion(i.column, i.questions) for i in items_here if i.verb == "ask"]
        avoided = {i.column for i in items_here if i.verb == "avoid"}
        # a question and its complement differ if only one side has wishes. An avoided question must not hide others
        # that separate the same rows
        alike = alike or bool(avoided) or any(i.place for i in spot.items)
        questions = [
            q
            for q in space.candidates(spot.rows, spot.banned, asks, alike=alike)
            if space.questions.columns[q] not in avoided
        ]
        mirrors = space.questions.mirrors
        if any(i.place for i in spot.items) or any(q in mirrors.values() for a in asks for q in a.questions):
            questions += self._mirror_candidates(spot, asks, avoided)
        for item in items_here:
            if item.verb != "held" or item.number in questions or item.column in avoided:
                continue
            if space.questions.is_barred(item.number, spot.banned | space.banned):
                continue
            if all(a.admits(item.column, item.number) for a in asks) and space.separates(spot.rows, item.number):
                questions.append(item.number)
        return questions

    def _mirror_candidates(self, spot: Spot, asks: list[DemandedQuestion], avoided: set[int]) -> list[int]:
        """Return the possible mirrored questions at a place; called if it matters which answer is yes."""
        questions = self.space.questions
        banned = spot.banned | self.space.banned
        return [
            q
            for q in questions.mirrors.values()
            if questions.columns[q] not in avoided
            and not questions.is_barred(q, banned)
            and all(a.admits(questions.columns[q], q) for a in asks)
            and self.space.separates(spot.rows, q)
        ]

    def example(self, spot: Spot) -> int | None:
        """Return some possible question of a settled place."""
        return next(iter(self.candidates(spot)), None)

    # -- trees ---------------------------------------------------------------------------------------------------------

    def tree(self, spot: Spot, answer: PrefixBound) -> LabelledShape:
        """Build the tree that `answer`, a result of `value`, describes."""
        spot = self.settle(spot)
        if answer.choice == LEAF:
            return self._label(spot, answer.label)
        if answer.choice == COMMON:
            return self._label_leaves(self.common_tree(spot, answer.upper), spot.rows)
        side = self._sides(spot, answer.choice, answer.way)
        parts = []
        for part in side.spots:
            part_value = self.value(part)
            parts.append(self.tree(part, part_value))
        return answer.choice, parts[0], parts[1]

    def _label(self, spot: Spot, label: int | None) -> int:
        return int(self.space.counts(spot.rows).argmax()) if label is None else label

    def _label_leaves(self, tree: LabelledShape, rows: np.ndarray) -> LabelledShape:
        """Return the tree with the majority class in each leaf."""
        if not isinstance(tree, tuple):
            return int(self.space.counts(rows).argmax()) if tree is None else tree
        yes, no = self.space.split(rows, tree[0])
        return tree[0], self._label_leaves(tree[1], yes), self._label_leaves(tree[2], no)


@dataclass
class QuestionSides:
    """Both children of a question with lower bounds on their costs."""

    question: int
    spots: tuple[Spot, ...]
    bounds: list[int]
    way: int = 0

    @property
    def lower(self) -> int:
        return min(INFINITE_COST, self.bounds[0] + self.bounds[1])
