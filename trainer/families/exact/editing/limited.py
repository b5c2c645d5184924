"""Complete wishes under limits on the whole tree.

Limits concern leaves, recalls, pairs of columns on a path, and the number of columns. If the best tree with the wishes
is within the limits, it is the solution. Otherwise the search over fronts finds it. Branch and bound over columns
limits their number: a node branches on a column of its best tree, which a solution must use or must not use.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from trainer.editing.complete import Completer, Completion, QuestionPrice
from trainer.editing.conflict import minimal_conflict
from trainer.editing.prefix import PrefixBound, Spot
from trainer.editing.questions import asked_questions, leaves_of, path_to, subtree
from trainer.editing.space import INFINITE_COST, NONE_BANNED, SearchStopped
from trainer.editing.wishes import EditConstraint, Item, Items, held_questions
from trainer.errors import InfeasibleError
from trainer.families.exact.editing.fronts import VectorSearch
from trainer.tree.shapes import LabelledShape

NO_TREE = "No tree satisfies the limits, even without wishes. Relax one of them or allow a deeper tree."


@dataclass(frozen=True)
class Best:
    """The best tree below a cost limit and its cost, or INFINITE_COST; no tree costs less than `lower`."""

    cost: int
    lower: int
    tree: LabelledShape = None

    @property
    def exact(self) -> bool:
        return self.lower >= self.cost


class LimitedCompleter(Completer):
    """A completer of wishes over one space, with limits on the whole tree."""

    def __init__(self, fronts: VectorSearch) -> None:
        super().__init__(fronts.prefix)
        self.limits = fronts.limits
        self.fronts = fronts

    # -- the best tree -------------------------------------------------------------------------------------------------

    def best(self, items: Items, ub: int = INFINITE_COST, *, first: bool = False) -> Best:
        """Return the best tree below `ub` within wishes and limits; with `first` any tree, not necessarily the cheapest."""
        most = self.limits.constraints.max_columns
        if most is None:
            return self.best_within(items, NONE_BANNED, ub, first)
        every = frozenset(range(len(self.space.problem.table.names)))
        columns = self.space.questions.columns
        ids = itertools.count()
        # `closed` is the least bound of the nodes that turned out to have no tree below the limit
        best = Best(INFINITE_COST, 0)
        closed = INFINITE_COST
        open_nodes: list[tuple[int, int, frozenset[int], frozenset[int]]] = [(0, next(ids), frozenset(), every)]
        while open_nodes:
            bound, _, required, usable = open_nodes[0]
            limit = min(ub, best.cost)
            if bound >= limit or self.space.stopped() or (first and best.cost < INFINITE_COST):
                break
            heapq.heappop(open_nodes)
            usable = required if len(required) == most else usable
            solution = self.best_within(items, every - usable, limit, False)
            bound = max(bound, solution.lower)
            used = {columns[q] for q in asked_questions(solution.tree)}
            if solution.cost < INFINITE_COST and len(used) <= most:
                best = Best(solution.cost, 0, solution.tree)
            elif solution.cost < INFINITE_COST and len(required) < most:
                column = min(used - required)
                heapq.heappush(open_nodes, (bound, next(ids), required | {column}, usable))
                heapq.heappush(open_nodes, (bound, next(ids), required, usable - {column}))
            elif solution.cost >= INFINITE_COST:
                closed = min(closed, bound)
            if self.space.stopped():
                heapq.heappush(open_nodes, (bound, next(ids), required, usable))
        return replace(best, lower=min([best.cost, closed, *(bound for bound, *_ in open_nodes)]))

    def best_within(self, items: Items, banned: frozenset[int], ub: int, first: bool) -> Best:
        """Return the best tree below `ub` without banned columns within all limits except the number of columns."""
        top = self.prefix.settle(replace(self.prefix.top(items), banned=banned))
        free = self.prefix.value(top, ub)
        if free.exact and free.lower < ub:
            tree = self._tree(top, free)
            if self.fronts.satisfies_limits(tree):
                return Best(free.lower, free.lower, tree)
        if free.lower >= ub or self.space.stopped():
            return Best(INFINITE_COST, free.lower)
        best = Best(INFINITE_COST, 0)
        limit = ub
        # search shallow trees first, since they give incumbents early
        for height in range(min(2, top.height), top.height + 1):
            spot = self.prefix.settle(replace(top, height=height))
            vectors = self.fronts.search(spot, limit, cheapest=True, first=first)
            if len(vectors.vectors):
                place = int(vectors.vectors[:, 0].argmin())
                limit = int(vectors.vectors[place, 0])
                best = Best(limit, 0, self.fronts.tree(vectors, place))
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
        """Return the best tree within wishes and limits. Raises InfeasibleError if no tree is within the limits alone."""
        completion = super().complete(wishes, prices=prices)
        if completion.found or self.space.stopped():
            return completion
        stay = held_questions(wishes, self.space.questions)
        try:  # under the limits, a smaller set of wishes may already conflict
            conflict = minimal_conflict(self._possible, completion.conflict or wishes, stay)
            if not conflict and not self._possible(stay):
                raise InfeasibleError(NO_TREE)
        except SearchStopped:
            return replace(completion, reason="stopped")
        if conflict == completion.conflict and not self.feasible(frozenset(w.item for w in conflict) | stay):
            return completion
        reason = "No tree keeps these wishes and the limits on the whole tree."
        return replace(completion, conflict=conflict, reason=reason)

    def _possible(self, items: Items) -> bool:
        """Return whether a tree is within wishes and limits. Raises SearchStopped."""
        if not self.feasible(items):
            return False
        best = self.best(items, first=True)
        if best.cost >= INFINITE_COST and self.space.stopped():
            raise SearchStopped
        return best.cost < INFINITE_COST

    # -- price lists ---------------------------------------------------------------------------------------------------

    def price_list(self, wishes: Sequence[EditConstraint], tree: LabelledShape, place: str) -> Iterator[QuestionPrice]:
        """Price each question like the method without limits, but complete the whole tree, since limits couple both children."""
        questions = self.space.questions
        spot = self.spot(wishes, tree, place)
        path = path_to(tree, place)
        others = [w.item for w in wishes if not (w.place == place and w.item.verb in ("ask", "leaf"))]
        asks = [Item("ask", place[:k], q, questions.columns[q]) for k, q in enumerate(path)]
        held_there = [replace(i, verb="held") for i in asks if i.number >= questions.encoded]
        items = frozenset([*others, *asks, *held_there]) | held_questions(wishes, questions)
        least = self.best(items)
        base = min(least.cost, INFINITE_COST - 1)
        pending = []
        for question in self.prefix.candidates(spot, alike=True):
            bound = min(INFINITE_COST, self.prefix._sides(spot, question).lower)
            pending.append((bound, question))
        pending.sort()
        # first search every question below a near limit, where most searches end early; the second pass has no limit
        near = base + max(base // 4, self.space.leaf) + 1
        for ub in (near, INFINITE_COST):
            unsolved = []
            for bound, question in pending:
                item = Item("ask", place, question, questions.columns[question])
                best = Best(INFINITE_COST, base) if self.space.stopped() else self.best(items | {item}, ub)
                if best.cost < INFINITE_COST and best.exact:
                    yield self._price_line(question, best, base, least.exact, spot, place)
                elif best.lower < INFINITE_COST:
                    unsolved.append((max(bound, best.lower), question))
            pending = sorted(unsolved)
        for bound, question in pending:
            price = self.space.exact_cost(max(bound, base)) - self.space.exact_cost(base)
            yield QuestionPrice(question=question, price=price, proved=False)

    def _price_line(self, question: int, best: Best, base: int, proved: bool, spot: Spot, place: str) -> QuestionPrice:
        """Return the price of a question from its best tree; errors and leaves are those of the subtree at the place."""
        part = subtree(best.tree, place)
        errors, _ = self.space.cost_of(part, spot.rows)
        price = self.space.exact_cost(best.cost) - self.space.exact_cost(base)
        return QuestionPrice(
            question=question,
            price=max(Fraction(0), price),
            proved=proved,
            errors=errors,
            leaves=leaves_of(part),
            tree=part,
        )
