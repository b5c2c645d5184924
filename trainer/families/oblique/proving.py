"""The proof that no tree of hyperplanes costs less than a bound, for programs that check it (docs/proof-format.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from trainer.data.problem import Problem
from trainer.dtypes import CountArray, FloatArray
from trainer.families.oblique.cases import PLAIN, Cases, FewerErrors, Named, Terms, predicts
from trainer.families.oblique.hulls import Hulls
from trainer.families.oblique.instance import ObliqueInstance
from trainer.families.oblique.planes import DISTANCE
from trainer.families.oblique.store import Labels, Step, Store, UndecidedCases, lemma_steps
from trainer.families.oblique.units import Units, instance_of
from trainer.methods.base import NotProved, ProofSteps, Settings

NOISE = Fraction(1, 10**6)  # what rounding may have added to a cost
LARGEST_NUMBER = (1 << 53) - 1  # that every reader of JSON reads exactly
NEAR = (
    "A tree whose hyperplanes pass nearer to the rows than is allowed would be better, and there are no proof steps for what this "
    "distance alone rules out."
)
MOST_TREES = 20_000  # ways to label the leaves; a checker looks at no more


def build_proof(problem: Problem, settings: Settings, bound: Fraction, stop: Callable[[], bool]) -> ProofSteps | None:
    """The proof that no tree of the method has a better objective than `bound`; None if it is not found in time.

    Raises NotProved where the cases end at a better tree, which only the distance from the rows forbids.

    A smallest leaf only rules out trees, and is left out where that will do; questions that part nothing make paths as long as may be asked.
    """
    distant = settings.get("big_m", "none") != "none"  # planes as variables, which keep a distance
    robust = settings.get("scaling") == "robust"
    instance, units = instance_of(problem, settings["depth"], robust=distant and robust)
    instance = replace(instance, max_leaves=settings.get("max_leaves"))
    least = min(int(settings.get("min_leaf") or 1), problem.n)
    proof = analysis(problem, instance, units, DISTANCE if distant else 0.0, stop, min_leaf=least)
    unit, cost = cost_in_units(problem, bound)
    with threadpool_limits(limits=settings["threads"], user_api="blas"):  # small products: more threads only wait
        steps = proof.all_steps(Fraction(cost, unit))
    if steps is None and proof.fewer is not None:
        raise NotProved(NEAR)
    return None if steps is None else ProofSteps(scale=1, goal=cost, steps=steps)


def cost_in_units(problem: Problem, bound: Fraction) -> tuple[int, int]:
    """The parts of a row that prices are whole multiples of, and what each tree costs at least in them if none exceeds `bound`."""
    unit = math.lcm(problem.kappa.denominator, (problem.coefficient_penalty * problem.n).denominator)
    return unit, math.ceil((1 - bound) * problem.n * unit - NOISE)


def analysis(
    problem: Problem, instance: ObliqueInstance, units: Units, least: float, stop: Callable[[], bool], min_leaf: int = 1
) -> PlaneProof:
    """The case analysis of an instance at its prices, whose planes keep the distance `least`, 0 for none."""
    points = weighted_points(problem, instance)
    occurs = instance.counts.any(axis=0)
    most = 1 << instance.depth
    return PlaneProof(
        units.encoding.matrix(problem.table)[units.rows[points]],
        instance.Z[points],
        instance.counts[points][:, occurs],
        instance.classes[occurs].tolist(),
        least=least,
        depth=instance.depth,
        leaves=min(most, instance.max_leaves or most),
        penalty=instance.kappa,
        charge=instance.charge,
        min_leaf=min_leaf,
        stop=stop,
    )


def weighted_points(problem: Problem, instance: ObliqueInstance) -> CountArray:
    """The points of rows of positive weight, int64, in the order in which a proof numbers them: as they first occur."""
    rows = np.flatnonzero(problem.row_weights > 0)
    points, first = np.unique(instance.group[rows], return_index=True)
    return np.asarray(points[np.argsort(first)], np.int64)


class PlaneProof:
    """Points X (P, m) in the units of the table and Z (P, m) scaled, in the order in which they first occur; counts (P, K).

    `places` are the positions of the K classes among the classes of the model. A leaf costs `penalty` rows and a branching `charge`.
    """

    def __init__(
        self, X: FloatArray, Z: FloatArray, counts: CountArray, places: Sequence[int], *, least: float, depth: int,
        leaves: int, penalty: Fraction, charge: Fraction, stop: Callable[[], bool], min_leaf: int = 1,
    ) -> None:  # fmt: skip
        self.store = Store(Hulls(X, Z, least, stop), counts, stop)
        self.counts = counts
        self.places = places
        self.depth = depth
        self.leaves = min(leaves, len(counts)) if counts.shape[1] > 1 else 1
        self.penalty = penalty
        self.charge = charge
        self.terms = Terms(least=min_leaf, charge=charge)
        self.blocks: list[tuple[Labels, int | Fraction, list[Step]]] = []
        self.fewer: CountArray | None = None  # the leaf of each point in a tree that costs less

    def steps(self, cost: Fraction) -> list[Step] | None:
        """Steps which show that each tree costs at least so much, in rows; None if that cannot be shown in time.

        They count errors only; a smallest leaf and further coefficients are left out.
        """
        return self._steps(self.needed(cost))

    def all_steps(self, cost: Fraction) -> list[Step] | None:
        """The same, with a smallest leaf and further coefficients where these are needed."""
        found = self.steps(cost)
        return self._narrow([self._price(cost, t) for t in self._sizes], self.terms) if found is None else found

    def frontier(self, errors: Sequence[int]) -> list[Step] | None:
        """Steps which show that trees with at most t leaves make `errors[t - 1]` errors, larger ones the last number, or None."""
        least = np.minimum.accumulate(errors).tolist()
        goals = [least[min(t, len(least)) - 1] for t in self._sizes]
        found = self._steps(self._lacking(goals))
        return self._narrow(goals, Terms(least=self.terms.least)) if found is None else found

    @property
    def _sizes(self) -> range:
        return range(1, self.leaves + 1)

    def _narrow(self, errors: Sequence[int | Fraction], terms: Terms) -> list[Step] | None:
        """Steps for trees that keep and pay the terms, each number of leaves by itself; None without terms."""
        if terms == PLAIN:
            return None
        most = int(self.counts.sum()) // terms.least
        self.store.until(self.store.stop)
        return self._steps([(t, e) for t, e in enumerate(errors[:most], start=1) if e > self._floor(t)], terms)

    def _steps(self, needed: Iterable[tuple[int, int | Fraction]], terms: Terms = PLAIN) -> list[Step] | None:
        self.blocks = []
        self.fewer = None
        try:
            for t, errors in needed:
                self._all(t, errors, terms)
        except FewerErrors as found:
            self.fewer = found.at
            return None
        except UndecidedCases:
            return None
        return self._assembled(charged=terms.charge > 0)

    def needed(self, cost: Fraction) -> Iterator[tuple[int, int]]:
        """Numbers of leaves, and the errors of a tree with so many; those that follow from others are left out."""
        return self._lacking([math.ceil(self._price(cost, t)) for t in self._sizes])

    def _price(self, cost: Fraction, leaves: int) -> Fraction:
        """The errors that a tree of so many leaves must make to cost so much."""
        return max(Fraction(0), cost - self.penalty * leaves - self.charge * (leaves - 1))

    def _floor(self, leaves: int) -> int:
        """Errors of each tree with so many leaves: equal rows go together, and a leaf predicts one class."""
        sizes = np.sort(self.counts.sum(axis=0))[::-1]
        return max(int((self.counts.sum(axis=1) - self.counts.max(axis=1)).sum()), int(sizes[leaves:].sum()))

    def _lacking(self, errors: Sequence[int]) -> Iterator[tuple[int, int]]:
        for t, needed in enumerate(errors, start=1):
            idle = t < self.leaves and needed <= errors[t]
            if not idle and needed > self._floor(t):
                yield t, needed

    def _all(self, leaves: int, needed: int | Fraction, terms: Terms) -> None:
        """A block for each way to label so many leaves."""
        every = np.ones(len(self.counts), bool)
        for number, labels in enumerate(labelled(self.depth, leaves, self.counts.shape[1])):
            if number > MOST_TREES:
                raise UndecidedCases
            self.store.pause()
            wrong = self.counts.sum(axis=1) - self.counts[:, predicts(labels)].max(axis=1)
            if int(wrong.sum()) < needed:
                if isinstance(labels, int):
                    raise UndecidedCases
                self.blocks.append((labels, needed, Cases(self.store, labels, every, needed, terms).solve()))

    def _assembled(self, *, charged: bool) -> list[Step]:
        """Vectors and lemmas that are used, each once, before the blocks; numbers become those of the lines."""
        store = self.store
        lines = list[Step]()
        lemmas = sorted({k for *_, steps in self.blocks for s in steps if s["by"] == "sum" for k, _ in s["of"]})
        used = {s["of"] for *_, steps in self.blocks for s in steps if s["by"] == "meet"}
        columns = tuple(range(store.hulls.Z.shape[1]))
        used |= {(columns, store.made[k].vector) for k in lemmas}
        line_of: dict[Named, int] = {}
        for place in sorted(used):
            lines.append(self._vector(place))
            line_of[place] = len(lines)
        shown: dict[int, int] = {}
        for k in lemmas:
            lemma = store.made[k]
            meeting = store.vectors[store.made[k].vector]
            lines.append(self._block(lemma.labels, lemma.bound, [*meeting.left, *meeting.right]))
            shown[k] = len(lines)
            lines += lemma_steps(meeting, line_of[columns, lemma.vector])
        unit = math.lcm(self.penalty.denominator, self.charge.denominator) if charged else 1
        for labels, bound, steps in self.blocks:
            lines.append(self._block(labels, math.ceil(bound * unit)) | ({"charged": True} if charged else {}))
            lines += [self._numbered(step, line_of, shown) for step in steps]
        return lines

    def _vector(self, name: Named) -> Step:
        columns, place = name
        found = self.store.within(columns).vectors[place]
        sides = {"left": found.left, "right": found.right}
        beside = sorted(set(range(self.store.hulls.Z.shape[1])) - set(columns))
        return {"by": "vector", **({"beside": beside} if beside else {})} | {
            side: [[p, _exact_text(w)] for p, w in sorted(own.items())] for side, own in sides.items()
        }

    def _block(self, labels: Labels, bound: int, points: Sequence[int] | None = None) -> Step:
        own = {} if points is None else {"points": sorted(points)}
        return {"by": "errors", "tree": self._named(labels), **own, "bound": bound}

    def _named(self, labels: Labels) -> Any:
        return self.places[labels] if isinstance(labels, int) else [self._named(side) for side in labels]

    def _numbered(self, step: Step, line_of: dict[Named, int], shown: dict[int, int]) -> Step:
        if step["by"] == "meet":
            return step | {"of": line_of[step["of"]]}
        return step | {"of": [[shown[k], v] for k, v in step["of"]]} if step["by"] == "sum" else step


def _exact_text(weight: int) -> int | str:
    """A text where readers of JSON would round."""
    return weight if weight <= LARGEST_NUMBER else str(weight)


def labelled(depth: int, leaves: int, classes: int) -> Iterator[Labels]:
    """All ways to label so many leaves, one of each mirrored pair; two leaves below a question differ."""
    if leaves == 1:
        yield from range(classes)
    if leaves == 1 or depth == 0 or leaves > 1 << depth:
        return
    for few in range(max(1, leaves - (1 << (depth - 1))), leaves // 2 + 1):
        for i, one in enumerate(labelled(depth - 1, few, classes)):
            start = i if few == leaves - few else 0
            for two in islice(labelled(depth - 1, leaves - few, classes), start, None):
                if one != two or not isinstance(one, int):
                    yield one, two
