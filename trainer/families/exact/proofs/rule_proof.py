"""Write the steps that prove a bound within rules (docs/proof-format.md).

The checker searches children of height two by itself, so trees of depth three need one step for each case of columns.
For deeper
trees, each split whose children have too low bounds gets a step for each child and each span of classes.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from trainer.data.problem import Problem
from trainer.editing.space import SearchStopped
from trainer.families.exact.editing.places import CHECKED_HEIGHT, MOST_STEPS, FreeSteps, split_bound
from trainer.families.exact.editing.space import ExactSpace
from trainer.families.exact.rules import rule_fronts
from trainer.families.exact.rules.rule_fronts import FrontsTooLarge, RuledFronts, RulePlace, ruled_fronts
from trainer.families.exact.search.proof import ExactProofTooLarge
from trainer.methods.base import NotProved, ProofSteps, Settings

Step = dict[str, Any]


def proof_within_rules(
    problem: Problem, settings: Settings, cost: Fraction, stop: Callable[[], bool]
) -> ProofSteps | None:
    """Return the proof that no tree within the restrictions costs less than `cost` rows, or None; raise NotProved like `ruled_proof`.

    The checker itself searches trees of depth three.
    """
    if settings["depth"] > CHECKED_HEIGHT + 1 or settings["max_columns"] is not None:
        return ruled_proof(problem, settings, cost, stop)
    price = problem.kappa
    goal = -(-cost.numerator * price.denominator // cost.denominator)
    return ProofSteps(
        scale=1, goal=goal, steps=[{"path": [], "height": settings["depth"], "bound": goal, "by": "within"}]
    )


def ruled_proof(problem: Problem, settings: Settings, bound: Fraction, stop: Callable[[], bool]) -> ProofSteps | None:
    """Return the proof that no tree within the restrictions of the settings costs less than `bound` rows; None if stopped.

    Raises NotProved if the bound is wrong, or if checking the proof would take too long.
    """
    fronts = ruled_fronts(problem, settings, rule_fronts.MAX_SUBPROBLEMS)
    space = fronts.space
    g = space.instance
    cost = -(-bound.numerator * g.Q // bound.denominator)
    goal = g.scale * cost + (1 if g.scale > 1 else 0)  # a tree has at least one leaf, which adds 1 to its scaled cost
    space.begin(None, stop)
    writer = _Writer(space, fronts, settings["max_columns"], stop)
    try:
        writer.cases(frozenset(), writer.every, goal)
    except (SearchStopped, ExactProofTooLarge):
        return None
    except FrontsTooLarge:
        words = (
            f"{space.questions.encoded} questions are too many for depth {settings['depth']} within these restrictions"
        )
        raise NotProved(
            f"A check of the proof would take too long: {words}. Ask fewer questions, or set a lower depth."
        ) from None
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
        self.proved: dict[tuple[object, ...], int] = {}
        self.columns: list[int] | None = None
        plain = space.problem.binary.bits(space.problem.table)
        self.turned = [bool((plain[:, q] > 0)[0] != space.questions.answers(q)[0]) for q in range(plain.shape[1])]

    def cases(self, required: frozenset[int], usable: frozenset[int], goal: int) -> None:
        """Prove that no tree that uses all `required` and only `usable` columns costs less than the goal."""
        full = self.most is not None and len(required) >= self.most
        within = required if full else usable
        top = RulePlace(self.space.all_rows, self.space.depth, self.every - within, self.span)
        front = self.fronts.front(top, goal)
        if len(front.vectors):
            used = {int(c) for c in front.columns[front.vectors[:, 0].argmin()].nonzero()[0]}
            if self.most is None or full or not used - required:
                raise NotProved(
                    "The proof found a better tree than the claimed bound allows. Report this model with its data."
                )
            return self._split_case(required, usable, min(used - required), goal)
        self.columns = None if within == self.every else sorted(within)
        return self.prove(top, [], goal)

    def _split_case(self, required: frozenset[int], usable: frozenset[int], column: int, goal: int) -> None:
        """Prove the case of trees with the column, and the case of trees without it."""
        self.cases(required | {column}, usable, goal)
        self.cases(required, usable - {column}, goal)
        self.columns = None if usable == self.every else sorted(usable)
        step = {"path": [], "height": self.space.depth, "bound": goal, "by": "cases", "column": column}
        self._add(step | {"with": sorted(required)})

    def prove(self, place: RulePlace, path: list[int], cost: int) -> None:
        """Write the steps that cover the trees of a subproblem with costs below `cost`."""
        if self.proved.get(place.key, -1) >= cost:
            return
        self.proved[place.key] = cost
        if self.places.least(place, cost) >= cost:
            self._free(place, path, cost)
            return
        vectors = self.fronts.front(place, cost).vectors
        if place.height > CHECKED_HEIGHT + 1:
            self._sides(place, path, cost)
        step: Step = {"path": path, "height": place.height, "bound": cost, "by": "within"}
        step |= {} if place.span == self.span else {"classes": list(place.span)}
        self._add(step | ({"vectors": vectors.tolist()} if len(vectors) else {}))

    def _sides(self, place: RulePlace, path: list[int], cost: int) -> None:
        """Write steps for the children of all candidate splits whose floors are too low."""
        for question, sides in self.places.questions(place):
            floors = self.places.floors(sides)
            low = self.places.lows(sides, floors, cost)
            paths = [[*path, self._literal(question, yes)] for yes in (0, 1)]
            enough = low[0] + low[1] >= cost
            least = split_bound(low, floors, cost) if enough else low
            for k in (0, 1):
                if least[k] > floors[k]:
                    self._free(sides[k], paths[k], least[k])
            for both in self.fronts.assign_spans(question, sides) if not enough else ():
                for k, target in enumerate(self._side_targets(both, low, cost)):
                    if target > low[k]:
                        self.prove(both[k], paths[k], target)

    def _side_targets(self, sides: tuple[RulePlace, RulePlace], low: tuple[int, int], cost: int) -> tuple[int, int]:
        """Return targets of both children, such that vectors below them and the targets themselves cover all trees below `cost`."""
        least = [self.fronts.front(side, cost - low[1 - k]).least for k, side in enumerate(sides)]
        if least[0] + least[1] >= cost:
            return split_bound((least[0], least[1]), low, cost)
        return cost - least[1], cost - least[0]

    def _free(self, place: RulePlace, path: list[int], cost: int) -> None:
        """Write steps for a bound that holds without rules, so for leaves of any class."""
        key = (*place.key[:-1], None)
        if self.proved.get(key, -1) < cost:
            self.proved[key] = cost
            for step in self.free.of(place, cost):
                answers = [self._literal(*divmod(answer, 2)) for answer in step["path"]]
                self._add(step | {"path": [*path, *answers]})

    def _literal(self, question: int, yes: int) -> int:
        return 2 * question + (yes ^ self.turned[question])

    def _add(self, step: Step) -> None:
        if len(self.steps) >= MOST_STEPS or self.stop():
            raise SearchStopped
        self.steps.append(step if self.columns is None else step | {"columns": self.columns})
