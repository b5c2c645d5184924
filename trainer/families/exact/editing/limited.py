"""Answers about wishes where limits bind the whole tree: leaves, recalls, pairs of columns on a path, different columns.

Where the best tree with the wishes is within the limits it is the answer; else the search over vectors is. Different columns are limited
by branch and bound: the best tree without that limit asks some column that the best tree within it either asks or may not ask.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from trainer.editing.complete import Completer, Completion, QuestionPrice
from trainer.editing.conflict import minimal_conflict
from trainer.editing.prefix import Prefix, PrefixBound, Spot
from trainer.editing.questions import asked_questions, leaves_of, path_to, subtree
from trainer.editing.space import INFINITE_COST, NONE_BANNED, SearchStopped
from trainer.editing.wishes import EditConstraint, Item, Items, held_questions
from trainer.errors import InfeasibleError
from trainer.families.exact.editing.fronts import TreeLimits, VectorSearch
from trainer.families.exact.editing.space import ExactSpace
from trainer.tree.shapes import LabelledShape

NONE = "No tree satisfies the limits, even without wishes. Relax one of them or allow a deeper tree."


@dataclass(frozen=True)
class Best:
    """A tree below the cost that was asked for and its cost, or FAR; no tree costs less than `lower`."""

    cost: int
    lower: int
    tree: LabelledShape = None

    @property
    def exact(self) -> bool:
        return self.lower >= self.cost


class LimitedCompleter(Completer):
    """Answers about wishes over one space within limits."""

    def __init__(self, prefix: Prefix, space: ExactSpace, limits: TreeLimits) -> None:
        super().__init__(prefix)
        self.limits = limits
        self.fronts = VectorSearch(prefix, space, limits)

    # -- the best tree -------------------------------------------------------------------------------------------------

    def best(self, items: Items, ub: int = INFINITE_COST, *, first: bool = False) -> Best:
        """The best tree below `ub` within wishes and limits; with `first` any tree, whose cost then need not be the least."""
        most = self.limits.constraints.max_columns
        if most is None:
            return self._within(items, NONE_BANNED, ub, first)
        every = frozenset(range(len(self.space.problem.table.names)))
        columns = self.space.questions.columns
        ids = itertools.count()
        # closed: what is proved of nodes without a tree below the cost that was asked for
        best = Best(INFINITE_COST, 0)
        closed = INFINITE_COST
        left: list[tuple[int, int, frozenset[int], frozenset[int]]] = [(0, next(ids), frozenset(), every)]
        while left:
            bound, _, required, usable = left[0]
            limit = min(ub, best.cost)
            if bound >= limit or self.space.stopped() or (first and best.cost < INFINITE_COST):
                break
            heapq.heappop(left)
            usable = required if len(required) == most else usable
            found = self._within(items, every - usable, limit, False)
            bound = max(bound, found.lower)
            asked = {columns[q] for q in asked_questions(found.tree)}
            if found.cost < INFINITE_COST and len(asked) <= most:
                best = Best(found.cost, 0, found.tree)
            elif found.cost < INFINITE_COST and len(required) < most:
                column = min(asked - required)
                heapq.heappush(left, (bound, next(ids), required | {column}, usable))
                heapq.heappush(left, (bound, next(ids), required, usable - {column}))
            elif found.cost >= INFINITE_COST:
                closed = min(closed, bound)
            if self.space.stopped():
                heapq.heappush(left, (bound, next(ids), required, usable))
        return replace(best, lower=min([best.cost, closed, *(bound for bound, *_ in left)]))

    def _within(self, items: Items, banned: frozenset[int], ub: int, first: bool) -> Best:
        """The best tree below `ub` within all limits but the number of columns, that asks no banned column."""
        whole = self.prefix.settle(replace(self.prefix.top(items), banned=banned))
        free = self.prefix.value(whole, ub)
        if free.exact and free.lower < ub:
            tree = self._tree(whole, free)
            if self.fronts.keeps(tree):
                return Best(free.lower, free.lower, tree)
        if free.lower >= ub or self.space.stopped():
            return Best(INFINITE_COST, free.lower)
        best = Best(INFINITE_COST, 0)
        limit = ub
        # shallow trees first, so that there is one early and the search of the last height is below its cost
        for height in range(min(2, whole.height), whole.height + 1):
            spot = self.prefix.settle(replace(whole, height=height))
            found = self.fronts.search(spot, limit, cheapest=True, first=first)
            if len(found.vectors):
                place = int(found.vectors[:, 0].argmin())
                limit = int(found.vectors[place, 0])
                best = Best(limit, 0, self.fronts.tree(found, place))
            if self.space.stopped() or (first and best.cost < INFINITE_COST):
                return replace(best, lower=min(free.lower, limit))
        return replace(best, lower=limit)

    def _best(self, items: Items) -> tuple[PrefixBound, LabelledShape, int]:
        best = self.best(items)
        return PrefixBound(best.lower, best.exact, upper=best.cost), best.tree, best.lower

    def _least(self, items: Items, ub: int) -> PrefixBound:
        best = self.best(items, ub)
        return PrefixBound(best.lower, best.exact, upper=best.cost)

    # -- conflicts -----------------------------------------------------------------------------------------------------

    def complete(self, wishes: Sequence[EditConstraint], *, prices: bool = True) -> Completion:
        """The best tree within wishes and limits. Raises InfeasibleError where no tree is within the limits alone."""
        done = super().complete(wishes, prices=prices)
        if done.found or self.space.stopped():
            return done
        stay = held_questions(wishes, self.space.questions)
        try:  # of wishes that contradict each other even without the limits some may be too much already with them
            conflict = minimal_conflict(self._possible, done.conflict or wishes, stay)
            if not conflict and not self._possible(stay):
                raise InfeasibleError(NONE)
        except SearchStopped:
            return replace(done, reason="stopped")
        if conflict == done.conflict and not self.feasible(frozenset(w.item for w in conflict) | stay):
            return done
        return replace(done, conflict=conflict, reason="Together with the limits on the whole tree no tree is left.")

    def _possible(self, items: Items) -> bool:
        """Whether a tree is within wishes and limits. Raises SearchStopped."""
        if not self.feasible(items):
            return False
        found = self.best(items, first=True)
        if found.cost >= INFINITE_COST and self.space.stopped():
            raise SearchStopped
        return found.cost < INFINITE_COST

    # -- price lists ---------------------------------------------------------------------------------------------------

    def price_list(self, wishes: Sequence[EditConstraint], tree: LabelledShape, place: str) -> Iterator[QuestionPrice]:
        """As without limits, but the whole tree is completed for each question: a limit reaches from one side to the other."""
        questions = self.space.questions
        spot = self.spot(wishes, tree, place)
        path = path_to(tree, place)
        others = [w.item for w in wishes if not (w.place == place and w.item.verb in ("ask", "leaf"))]
        asked = [Item("ask", place[:k], q, questions.columns[q]) for k, q in enumerate(path)]
        held_there = [replace(i, verb="held") for i in asked if i.number >= questions.encoded]
        items = frozenset([*others, *asked, *held_there]) | held_questions(wishes, questions)
        least = self.best(items)
        base = min(least.cost, INFINITE_COST - 1)
        left = []
        for question in self.prefix.candidates(spot, alike=True):
            bound = min(INFINITE_COST, self.prefix._sides(spot, question).lower)
            left.append((bound, question))
        left.sort()
        # those that cost little more first: a search below a cost that is near ends early
        near = base + max(base // 4, self.space.leaf) + 1
        for ub in (near, INFINITE_COST):
            rest = []
            for bound, question in left:
                item = Item("ask", place, question, questions.columns[question])
                found = Best(INFINITE_COST, base) if self.space.stopped() else self.best(items | {item}, ub)
                if found.cost < INFINITE_COST and found.exact:
                    yield self._whole(question, found, base, least.exact, spot, place)
                elif found.lower < INFINITE_COST:
                    rest.append((max(bound, found.lower), question))
            left = sorted(rest)
        for bound, question in left:
            price = self.space.exact_cost(max(bound, base)) - self.space.exact_cost(base)
            yield QuestionPrice(question=question, price=price, proved=False)

    def _whole(self, question: int, found: Best, base: int, proved: bool, spot: Spot, place: str) -> QuestionPrice:
        """A line of the price list from a tree that asks the question; errors and leaves are those of the part at the place."""
        part = subtree(found.tree, place)
        errors, _ = self.space.cost_of(part, spot.rows)
        price = self.space.exact_cost(found.cost) - self.space.exact_cost(base)
        return QuestionPrice(
            question=question,
            price=max(Fraction(0), price),
            proved=proved,
            errors=errors,
            leaves=leaves_of(part),
            tree=part,
        )
