"""The steps that prove a bound within rules (docs/proof-format.md): bounds without rules, and vectors where these fall short.

The checker searches sides of height two by itself, so that trees of depth three need one step for each set of columns that is told
apart.  Above, each question whose sides are not known to cost enough gets a step for each side and the classes that it may predict.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from trainer.constraints import Constraints
from trainer.data.problem import Problem
from trainer.editing.space import SearchStopped
from trainer.families.exact.editing.places import COUNTED, MOST_STEPS, FreeSteps, shared
from trainer.families.exact.editing.space import ExactSpace
from trainer.families.exact.proofs.rule_fronts import ProofPlacesExceeded, RuledFronts, RulePlace
from trainer.families.exact.proofs.rules import rules_of
from trainer.families.exact.search.constraints import column_pairs, exact_constraints
from trainer.families.exact.search.proof import ExactProofTooLarge
from trainer.methods.base import NotProved, ProofSteps, Settings

Step = dict[str, Any]


def ruled_proof(problem: Problem, settings: Settings, bound: Fraction, stop: Callable[[], bool]) -> ProofSteps | None:
    """The proof that no tree within the restrictions of the settings costs less than `bound`, in rows; None if it is stopped.

    Raises NotProved if the bound is not true, or if a check of the proof would take too long.
    """
    space = ExactSpace(problem, depth=settings["depth"])
    limits = exact_constraints(problem, settings) or Constraints(max_leaves=settings["max_leaves"])
    fronts = RuledFronts(space, limits, column_pairs(problem, settings), rules_of(problem, settings, space))
    g = space.instance
    cost = -(-bound.numerator * g.Q // bound.denominator)
    goal = g.scale * cost + (1 if g.scale > 1 else 0)  # a tree of that cost has a leaf
    space.begin(None, stop)
    writer = _Writer(space, fronts, limits.max_columns, stop)
    try:
        writer.cases(frozenset(), writer.every, goal)
    except (SearchStopped, ExactProofTooLarge):
        return None
    except ProofPlacesExceeded:
        words = (
            f"{space.questions.encoded} questions are too many for depth {settings['depth']} within these restrictions"
        )
        raise NotProved(f"A check of the proof would take too long: {words}.") from None
    return ProofSteps(scale=g.scale, goal=goal, steps=writer.steps)


class _Writer:
    def __init__(self, space: ExactSpace, fronts: RuledFronts, most: int | None, stop: Callable[[], bool]) -> None:
        self.space = space
        self.fronts = fronts
        self.most = most
        self.stop = stop
        self.places = fronts.free
        self.free = FreeSteps(space, fronts.free.pairs, stop)
        self.every = frozenset(range(len(space.problem.table.names)))
        self.span = (0, space.n_classes - 1)
        self.steps: list[Step] = []
        self.done: dict[tuple[object, ...], int] = {}
        self.columns: list[int] | None = None
        plain = space.problem.binary.bits(space.problem.table)
        self.turned = [bool((plain[:, q] > 0)[0] != space.questions.answers(q)[0]) for q in range(plain.shape[1])]

    def cases(self, asked: frozenset[int], usable: frozenset[int], goal: int) -> None:
        """No tree that asks all of `asked` and only `usable` columns costs less than the goal."""
        full = self.most is not None and len(asked) >= self.most
        within = asked if full else usable
        top = RulePlace(self.space.all_rows, self.space.depth, self.every - within, self.span)
        found = self.fronts.front(top, goal)
        if len(found.vectors):
            own = {int(c) for c in found.asked[found.vectors[:, 0].argmin()].nonzero()[0]}
            if self.most is None or full or not own - asked:
                raise NotProved("The search found a better tree than the bound allows.")
            return self._parted(asked, usable, min(own - asked), goal)
        self.columns = None if within == self.every else sorted(within)
        return self.prove(top, [], goal)

    def _parted(self, asked: frozenset[int], usable: frozenset[int], column: int, goal: int) -> None:
        """Trees that ask the column, and trees that do not."""
        self.cases(asked | {column}, usable, goal)
        self.cases(asked, usable - {column}, goal)
        self.columns = None if usable == self.every else sorted(usable)
        step = {"path": [], "height": self.space.depth, "bound": goal, "by": "cases", "column": column}
        self._add(step | {"with": sorted(asked)})

    def prove(self, place: RulePlace, path: list[int], cost: int) -> None:
        """Write what covers the trees of a place that cost less than `cost`."""
        if self.done.get(place.key, -1) >= cost:
            return
        self.done[place.key] = cost
        if self.places.least(place, cost) >= cost:
            self._free(place, path, cost)
            return
        vectors = self.fronts.front(place, cost).vectors
        if place.height > COUNTED + 1:
            self._sides(place, path, cost)
        step: Step = {"path": path, "height": place.height, "bound": cost, "by": "within"}
        step |= {} if place.span == self.span else {"classes": list(place.span)}
        self._add(step | ({"vectors": vectors.tolist()} if len(vectors) else {}))

    def _sides(self, place: RulePlace, path: list[int], cost: int) -> None:
        """Steps for the sides of the questions that may stand here, as far as their floors fall short."""
        for question, sides in self.places.questions(place):
            floors = self.places.floors(sides)
            low = self.places.lows(sides, floors, cost)
            paths = [[*path, self._literal(question, yes)] for yes in (0, 1)]
            enough = low[0] + low[1] >= cost
            least = shared(low, floors, cost) if enough else low
            for k in (0, 1):
                if least[k] > floors[k]:
                    self._free(sides[k], paths[k], least[k])
            for both in self.fronts.parted(question, sides) if not enough else ():
                for k, needed in enumerate(self._needed(both, low, cost)):
                    if needed > low[k]:
                        self.prove(both[k], paths[k], needed)

    def _needed(self, sides: tuple[RulePlace, RulePlace], low: tuple[int, int], cost: int) -> tuple[int, int]:
        """Costs for both sides whose vectors below them, and themselves, add up to the cost of each tree, or to `cost`."""
        least = [self.fronts.front(side, cost - low[1 - k]).least for k, side in enumerate(sides)]
        if least[0] + least[1] >= cost:
            return shared((least[0], least[1]), low, cost)
        return cost - least[1], cost - least[0]

    def _free(self, place: RulePlace, path: list[int], cost: int) -> None:
        """Steps for a bound that holds without rules, and so for leaves of any class."""
        key = (*place.key[:-1], None)
        if self.done.get(key, -1) < cost:
            self.done[key] = cost
            for step in self.free.of(place, cost):
                answers = [self._literal(*divmod(own, 2)) for own in step["path"]]
                self._add(step | {"path": [*path, *answers]})

    def _literal(self, question: int, yes: int) -> int:
        return 2 * question + (yes ^ self.turned[question])

    def _add(self, step: Step) -> None:
        if len(self.steps) >= MOST_STEPS or self.stop():
            raise SearchStopped
        self.steps.append(step if self.columns is None else step | {"columns": self.columns})
