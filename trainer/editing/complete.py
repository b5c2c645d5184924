"""Complete wishes: find the best tree, its bound, prices and conflicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from trainer.editing.conflict import Feasible, minimal_conflict, reason
from trainer.editing.prefix import OPEN, Prefix, PrefixBound, Spot
from trainer.editing.questions import leaves_of, path_to
from trainer.editing.space import INFINITE_COST, SearchStopped, literal
from trainer.editing.wishes import EditConstraint, Item, Items, held_questions, items_below
from trainer.errors import InfeasibleError
from trainer.tree.shapes import LabelledShape


@dataclass(frozen=True, kw_only=True)
class ConstraintPrice:
    """A wish's price: the objective gained by removing only this wish, in rows; None if the search was stopped before."""

    wish: EditConstraint
    price: Fraction | None


@dataclass(frozen=True, kw_only=True)
class Optimum:
    """Cost of the best tree without wishes and its proved bound, in rows."""

    cost: Fraction
    bound: Fraction


@dataclass(frozen=True, kw_only=True)
class Completion:
    """The best tree that satisfies the wishes; cost and proved bound in rows; `tree` has (question, yes, no) and classes.

    `found` is False if no tree satisfies the wishes, or if the search was stopped before it had one. In the first case `conflict` is a
    minimal set of wishes without a tree.
    """

    wishes: tuple[EditConstraint, ...]
    found: bool
    tree: LabelledShape = None
    cost: Fraction = Fraction(0)
    bound: Fraction = Fraction(0)
    prices: tuple[ConstraintPrice, ...] = ()
    optimum: Optimum | None = None
    conflict: tuple[EditConstraint, ...] = ()
    reason: str = ""
    states: int = 0

    @property
    def optimal(self) -> bool:
        return self.found and self.bound >= self.cost


@dataclass(frozen=True, kw_only=True)
class QuestionPrice:
    """A possible question at a place, and its price: the additional cost of the best tree with it, in rows.

    If `proved` is False, the price is at least `price`. `errors`, `leaves` and `tree` describe the subtree at the place.
    """

    question: int
    price: Fraction
    proved: bool
    errors: int | None = None
    leaves: int | None = None
    tree: LabelledShape = None


class ConflictError(InfeasibleError):
    """The wishes contradict each other.

    `conflict` is a minimal contradiction: without any one of its wishes, the others can be kept. `reason` explains it.
    """

    def __init__(self, conflict: tuple[str, ...], reason: str) -> None:
        super().__init__(f"No tree keeps all these wishes: {'; '.join(conflict)}. {reason} Take one of them back.")
        self.conflict = conflict
        self.reason = reason


def check_conflict(completion: Completion) -> None:
    """Raise ConflictError if the wishes of a completion contradict each other."""
    if completion.conflict:
        raise ConflictError(tuple(wish.text for wish in completion.conflict), completion.reason)


class Completer:
    """A search for the best trees under wishes in one space."""

    def __init__(self, prefix: Prefix) -> None:
        self.prefix = prefix
        self.space = prefix.space
        self.feasible = Feasible(prefix)

    def complete(self, wishes: Sequence[EditConstraint], *, prices: bool = True) -> Completion:
        """Find the best tree that satisfies the wishes."""
        self.prefix.trim()
        stay = held_questions(wishes, self.space.questions)
        items = frozenset(w.item for w in wishes) | stay
        begun = self.space.nodes + self.prefix.states
        try:
            if not self.feasible(items):
                return self._conflict(wishes, stay)
        except SearchStopped:
            return Completion(wishes=tuple(wishes), found=False, reason="stopped")
        best, tree, lower = self._best(items)
        completion = Completion(
            wishes=tuple(wishes),
            found=best.upper < INFINITE_COST,
            tree=tree,
            cost=self.space.exact_cost(best.upper) if best.upper < INFINITE_COST else Fraction(0),
            bound=self.space.exact_cost(min(lower, best.upper)) if lower < INFINITE_COST else Fraction(0),
        )
        if completion.found and prices:
            completion = self._add_prices(completion, wishes, stay, best)
        return replace(completion, states=self.space.nodes + self.prefix.states - begun)

    def _conflict(self, wishes: Sequence[EditConstraint], stay: Items) -> Completion:
        conflict = minimal_conflict(self.feasible, wishes, stay)
        why = reason(self.prefix, conflict)
        return Completion(wishes=tuple(wishes), found=False, conflict=conflict, reason=why)

    def _best(self, items: Items) -> tuple[PrefixBound, LabelledShape, int]:
        """Return the best tree and a lower bound on all trees; shallow trees are searched first for an early incumbent."""
        need = max((len(i.place) + 1 for i in items if i.verb == "ask"), default=0)
        best = PrefixBound(INFINITE_COST, False)
        tree = None
        lower = 0
        for height in range(min(max(need, 2), self.space.depth), self.space.depth + 1):
            spot = replace(self.prefix.top(items), height=height)
            value = self.prefix.value(spot, best.upper)
            if value.upper < best.upper and value.choice != OPEN:
                best = value
                tree = self._tree(spot, value)
            if height == self.space.depth:
                lower = min(value.lower, best.upper)
            if self.space.stopped():
                lower = max(lower, self._floor(items)) if height < self.space.depth else lower
                break
        return best, tree, lower

    def _floor(self, items: Items) -> int:
        return self.space.floor(self.space.counts(self.space.all_rows), self.space.depth)

    def _tree(self, spot: Spot, value: PrefixBound) -> LabelledShape:
        """Build the tree from memoised subproblems, even after the time limit."""
        with self.space.without_limits():
            return self.prefix.tree(spot, value)

    def _add_prices(
        self, completion: Completion, wishes: Sequence[EditConstraint], stay: Items, best: PrefixBound
    ) -> Completion:
        prices = [ConstraintPrice(wish=w, price=self._price(completion, wishes, stay, w, best.upper)) for w in wishes]
        free = self._least(stay, best.upper)
        optimum = Optimum(
            cost=self.space.exact_cost(min(free.upper, best.upper)),
            bound=self.space.exact_cost(min(free.lower, best.upper)),
        )
        return replace(completion, prices=tuple(prices), optimum=optimum)

    def _price(
        self, completion: Completion, wishes: Sequence[EditConstraint], stay: Items, wish: EditConstraint, cost: int
    ) -> Fraction | None:
        if not completion.optimal or self.space.stopped():
            return None
        without = self._least(frozenset(w.item for w in wishes if w is not wish) | stay, cost)
        if not without.exact and without.lower < cost:
            return None
        return completion.cost - self.space.exact_cost(min(without.lower, cost))

    def _least(self, items: Items, ub: int) -> PrefixBound:
        """Return E with these wishes if it is below `ub`, the cost of a tree that satisfies them."""
        return self.prefix.value(self.prefix.top(items), ub)

    # -- price lists ---------------------------------------------------------------------------------------------------

    def spot(self, wishes: Sequence[EditConstraint], tree: LabelledShape, place: str) -> Spot:
        """Return the subproblem of a place below the tree's own splits, without the wishes for a split or leaf at the place itself.

        Raises KeyError if the tree does not have the place.
        """
        stay = held_questions(wishes, self.space.questions)
        spot = self.prefix.settle(self.prefix.top(frozenset(w.item for w in wishes) | stay))
        for letter, question in zip(place, path_to(tree, place), strict=True):
            yes, no = self.space.split(spot.rows, question)
            spot = self.prefix.settle(
                Spot(
                    yes if letter == "y" else no,
                    literal(spot.path, question, letter == "y", self.space.questions.encoded),
                    spot.height - 1,
                    spot.banned,
                    items_below(spot.items, letter),
                )
            )
        items = frozenset(i for i in spot.items if i.place or i.verb not in ("ask", "leaf"))
        return replace(spot, items=items)

    def price_list(self, wishes: Sequence[EditConstraint], tree: LabelledShape, place: str) -> Iterator[QuestionPrice]:
        """Yield the price of each possible question at a place, ordered by bound.

        Questions that no tree within the wishes asks are left out. If the search is stopped, the remaining prices are
        bounds.
        """
        spot = self.spot(wishes, tree, place)
        least = self.prefix.value(spot)
        base = self.space.exact_cost(least.lower if least.exact else min(least.upper, INFINITE_COST - 1))
        sides = [self.prefix._sides(spot, q) for q in self.prefix.candidates(spot, alike=True)]
        for side in sorted(sides, key=lambda s: s.lower):
            if not self.space.stopped():
                cost = self.prefix._attempt(side, INFINITE_COST)
                if cost < INFINITE_COST:
                    yield self._question(side.question, side.spots, cost, base, least.exact)
                    continue
            if side.lower < INFINITE_COST:
                price = max(Fraction(0), self.space.exact_cost(side.lower) - base)
                yield QuestionPrice(question=side.question, price=price, proved=False)

    def _question(
        self, question: int, spots: tuple[Spot, ...], cost: int, base: Fraction, proved: bool
    ) -> QuestionPrice:
        yes, no = (self._tree(spot, self.prefix.value(spot)) for spot in spots)
        tree = question, yes, no
        leaves = leaves_of(tree)
        exact = self.space.exact_cost(cost)
        errors = exact - leaves * self.space.leaf_rows
        return QuestionPrice(
            question=question,
            price=max(Fraction(0), exact - base),
            proved=proved,
            errors=int(errors),
            leaves=leaves,
            tree=tree,
        )


class ColumnCompleter(Completer):
    """A completer for methods with many questions per column; its price list has one line per column."""

    def price_list(self, wishes: Sequence[EditConstraint], tree: LabelledShape, place: str) -> Iterator[QuestionPrice]:
        """Yield for each column the price of its cheapest question at the place."""
        spot = self.spot(wishes, tree, place)
        least = self.prefix.value(spot)
        base = self.space.exact_cost(least.lower if least.exact else min(least.upper, INFINITE_COST - 1))
        for column in range(len(self.space.problem.table.names)):
            asking = self.prefix.settle(replace(spot, items=spot.items | {Item("ask", "", -1, column)}))
            example = self.prefix.example(asking)
            if example is None:
                continue
            value = self.prefix.value(asking)
            if value.exact and value.upper < INFINITE_COST:
                side = self.prefix._sides(asking, value.choice, value.way)
                yield self._question(value.choice, side.spots, value.upper, base, least.exact)
            elif value.lower < INFINITE_COST:
                price = max(base * 0, self.space.exact_cost(value.lower) - base)
                yield QuestionPrice(question=example, price=price, proved=False)
