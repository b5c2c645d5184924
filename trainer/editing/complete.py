"""The best tree with wishes as one answer: tree, bound, what each wish costs, and which wishes contradict each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from trainer.editing.conflict import Feasible, minimal_conflict, reason
from trainer.editing.prefix import OPEN, Prefix, PrefixBound, Spot
from trainer.editing.questions import leaves_of, path_to
from trainer.editing.space import INFINITE_COST, SearchStopped, literal
from trainer.editing.wishes import EditConstraint, Item, Items, below, held_questions
from trainer.tree.shapes import LabelledShape


@dataclass(frozen=True, kw_only=True)
class ConstraintPrice:
    """What is won back, in rows, if this wish alone is dropped; None if the search was stopped before it was known."""

    wish: EditConstraint
    price: Fraction | None


@dataclass(frozen=True, kw_only=True)
class Optimum:
    """Cost of the best tree without wishes, in rows, and what is proved about it."""

    cost: Fraction
    bound: Fraction


@dataclass(frozen=True, kw_only=True)
class Completion:
    """The best tree that keeps the wishes: cost and proved bound in rows; `tree` has (question, yes, no) and classes.

    `found` is False if no tree keeps the wishes (`conflict` then names some wishes of which none can be left out), or if the
    search was stopped before it had one.
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
    """A question that is possible at a place: how much more the best tree with it costs than the best tree, in rows.

    Where `proved` is False the price is at least `price`. `errors`, `leaves` and `tree` describe the part at the place.
    """

    question: int
    price: Fraction
    proved: bool
    errors: int | None = None
    leaves: int | None = None
    tree: LabelledShape = None


class Completer:
    """Answers about wishes over one space."""

    def __init__(self, prefix: Prefix) -> None:
        self.prefix = prefix
        self.space = prefix.space
        self.feasible = Feasible(prefix)

    def complete(self, wishes: Sequence[EditConstraint], *, prices: bool = True) -> Completion:
        """The best tree that keeps the wishes."""
        self.prefix.trim()
        stay = held_questions(wishes, self.space.questions)
        items = frozenset(w.item for w in wishes) | stay
        begun = self.space.nodes + self.prefix.states
        try:
            if not self.feasible(items):
                return self._conflict(wishes, stay)
        except SearchStopped:
            return Completion(wishes=tuple(wishes), found=False, reason="stopped")
        found, tree, lower = self._best(items)
        done = Completion(
            wishes=tuple(wishes),
            found=found.upper < INFINITE_COST,
            tree=tree,
            cost=self.space.exact_cost(found.upper) if found.upper < INFINITE_COST else Fraction(0),
            bound=self.space.exact_cost(min(lower, found.upper)) if lower < INFINITE_COST else Fraction(0),
        )
        if done.found and prices:
            done = self._priced(done, wishes, stay, found)
        return replace(done, states=self.space.nodes + self.prefix.states - begun)

    def _conflict(self, wishes: Sequence[EditConstraint], stay: Items) -> Completion:
        conflict = minimal_conflict(self.feasible, wishes, stay)
        why = reason(self.prefix, conflict)
        return Completion(wishes=tuple(wishes), found=False, conflict=conflict, reason=why)

    def _best(self, items: Items) -> tuple[PrefixBound, LabelledShape, int]:
        """The best tree, shallow ones first so that there is one early, and a lower bound of the cost of all."""
        need = max((len(i.place) + 1 for i in items if i.verb == "ask"), default=0)
        best = PrefixBound(INFINITE_COST, False)
        tree = None
        lower = 0
        for height in range(min(max(need, 2), self.space.depth), self.space.depth + 1):
            spot = replace(self.prefix.top(items), height=height)
            found = self.prefix.value(spot, best.upper)
            if found.upper < best.upper and found.choice != OPEN:
                best = found
                tree = self._tree(spot, found)
            if height == self.space.depth:
                lower = min(found.lower, best.upper)
            if self.space.stopped():
                lower = max(lower, self._floor(items)) if height < self.space.depth else lower
                break
        return best, tree, lower

    def _floor(self, items: Items) -> int:
        return self.space.floor(self.space.counts(self.space.all_rows), self.space.depth)

    def _tree(self, spot: Spot, found: PrefixBound) -> LabelledShape:
        """The tree, even if time is over: all of its parts are known."""
        with self.space.unhurried():
            return self.prefix.tree(spot, found)

    def _priced(
        self, done: Completion, wishes: Sequence[EditConstraint], stay: Items, found: PrefixBound
    ) -> Completion:
        prices = [ConstraintPrice(wish=w, price=self._price(done, wishes, stay, w, found.upper)) for w in wishes]
        free = self._least(stay, found.upper)
        optimum = Optimum(
            cost=self.space.exact_cost(min(free.upper, found.upper)),
            bound=self.space.exact_cost(min(free.lower, found.upper)),
        )
        return replace(done, prices=tuple(prices), optimum=optimum)

    def _price(
        self, done: Completion, wishes: Sequence[EditConstraint], stay: Items, wish: EditConstraint, cost: int
    ) -> Fraction | None:
        if not done.optimal or self.space.stopped():
            return None
        without = self._least(frozenset(w.item for w in wishes if w is not wish) | stay, cost)
        if not without.exact and without.lower < cost:
            return None
        return done.cost - self.space.exact_cost(min(without.lower, cost))

    def _least(self, items: Items, ub: int) -> PrefixBound:
        """E with these wishes if below `ub`, which is the cost of a tree that keeps them."""
        return self.prefix.value(self.prefix.top(items), ub)

    # -- price lists ---------------------------------------------------------------------------------------------------

    def spot(self, wishes: Sequence[EditConstraint], tree: LabelledShape, place: str) -> Spot:
        """The subproblem of a place whose ancestors are held fast, what the wishes at the place itself ask set aside.

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
                    below(spot.items, letter),
                )
            )
        kept = frozenset(i for i in spot.items if i.place or i.verb not in ("ask", "leaf"))
        return replace(spot, items=kept)

    def price_list(self, wishes: Sequence[EditConstraint], tree: LabelledShape, place: str) -> Iterator[QuestionPrice]:
        """For each question that is possible at the place its price, cheapest bounds first, each as it is known.

        Questions that no tree with the wishes can ask there are left out; where the search is stopped the rest comes as bounds.
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
    """Answers about wishes where a column has too many questions for a line each."""

    def price_list(self, wishes: Sequence[EditConstraint], tree: LabelledShape, place: str) -> Iterator[QuestionPrice]:
        """One line for each column: its cheapest question at the place, of all that could stand there."""
        spot = self.spot(wishes, tree, place)
        least = self.prefix.value(spot)
        base = self.space.exact_cost(least.lower if least.exact else min(least.upper, INFINITE_COST - 1))
        for column in range(len(self.space.problem.table.names)):
            asking = self.prefix.settle(replace(spot, items=spot.items | {Item("ask", "", -1, column)}))
            example = self.prefix.example(asking)
            if example is None:
                continue
            found = self.prefix.value(asking)
            if found.exact and found.upper < INFINITE_COST:
                side = self.prefix._sides(asking, found.choice, found.way)
                yield self._question(found.choice, side.spots, found.upper, base, least.exact)
            elif found.lower < INFINITE_COST:
                price = max(base * 0, self.space.exact_cost(found.lower) - base)
                yield QuestionPrice(question=example, price=price, proved=False)
