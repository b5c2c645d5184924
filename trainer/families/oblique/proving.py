"""Write proofs that no hyperplane tree costs less than a bound (docs/proof-format.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from trainer.data.problem import Problem
from trainer.dtypes import CountArray, FloatArray
from trainer.families.oblique.cases import PLAIN, Cases, FewerErrors, Terms, VectorName, predicted_classes
from trainer.families.oblique.hulls import Hulls
from trainer.families.oblique.instance import ObliqueInstance
from trainer.families.oblique.planes import DISTANCE
from trainer.families.oblique.store import Labels, Step, Store, UndecidedCases, lemma_steps
from trainer.families.oblique.units import Units, make_instance
from trainer.methods.base import NotProved, ProofSteps, Settings

ROUNDING_TOLERANCE = Fraction(1, 10**6)  # largest rounding error of a cost
MAX_JSON_INTEGER = (1 << 53) - 1  # JSON readers round larger integers
DISTANCE_UNPROVED = (
    "A tree whose hyperplanes are nearer to the rows than allowed would be better, and proof steps cannot exclude trees by this "
    "distance alone."
)
MAX_LABELLINGS = 20_000  # limit on the labellings of the leaves, as in the checkers


def build_proof(problem: Problem, settings: Settings, bound: Fraction, stop: Callable[[], bool]) -> ProofSteps | None:
    """Prove that no tree of the method has a better objective than `bound`; return None if that takes too long.

    The proof first ignores the minimum leaf size, which only excludes trees. Raises NotProved if the cases end at a better tree that
    only the distance from the rows forbids.
    """
    distant = settings.get("big_m", "none") != "none"  # planes are variables of the model and keep a distance
    robust = settings.get("scaling") == "robust"
    instance, units = make_instance(problem, settings["depth"], robust=distant and robust)
    instance = replace(instance, max_leaves=settings.get("max_leaves"))
    least = min(int(settings.get("min_leaf") or 1), problem.n)
    proof = make_plane_proof(problem, instance, units, DISTANCE if distant else 0.0, stop, min_leaf=least)
    unit, cost = cost_in_units(problem, bound)
    with threadpool_limits(limits=settings["threads"], user_api="blas"):  # more threads slow small matrix products down
        steps = proof.all_steps(Fraction(cost, unit))
    if steps is None and proof.fewer is not None:
        raise NotProved(DISTANCE_UNPROVED)
    return None if steps is None else ProofSteps(scale=1, goal=cost, steps=steps)


def cost_in_units(problem: Problem, bound: Fraction) -> tuple[int, int]:
    """Return the number of units in a row, and a lower bound on the cost in units that follows from `bound`.

    Prices are integer multiples of a unit.
    """
    unit = math.lcm(problem.kappa.denominator, (problem.coefficient_penalty * problem.n).denominator)
    return unit, math.ceil((1 - bound) * problem.n * unit - ROUNDING_TOLERANCE)


def make_plane_proof(
    problem: Problem, instance: ObliqueInstance, units: Units, least: float, stop: Callable[[], bool], min_leaf: int = 1
) -> PlaneProof:
    """Make the case analysis of an instance at its prices; planes keep the distance `least`, 0 for none."""
    points = weighted_points(problem, instance)
    occurs = instance.counts.any(axis=0)
    most = 1 << instance.depth
    return PlaneProof(
        units.encoding.matrix(problem.table)[units.rows[points]],
        instance.Z[points],
        instance.counts[points][:, occurs],
        instance.classes[occurs].tolist(),
        PlaneTrees(
            depth=instance.depth,
            leaves=min(most, instance.max_leaves or most),
            penalty=instance.kappa,
            charge=instance.charge,
            min_leaf=min_leaf,
        ),
        least=least,
        stop=stop,
    )


def weighted_points(problem: Problem, instance: ObliqueInstance) -> CountArray:
    """Return the points of rows of positive weight, int64, in order of first occurrence, as proofs number them."""
    rows = np.flatnonzero(problem.row_weights > 0)
    points, first = np.unique(instance.group[rows], return_index=True)
    return np.asarray(points[np.argsort(first)], np.int64)


@dataclass(frozen=True, kw_only=True)
class PlaneTrees:
    """The trees of a proof by planes, and their prices in rows."""

    depth: int
    leaves: int  # the largest number
    penalty: Fraction  # of a leaf
    charge: Fraction = Fraction(0)  # of a coefficient
    min_leaf: int = 1


class PlaneProof:
    """Proof writer over points X (P, m) in the units of the table and Z (P, m) scaled, in order of first occurrence.

    `counts` (P, K). `places` are the positions of the K classes among those of the model.
    """

    def __init__(
        self,
        X: FloatArray,
        Z: FloatArray,
        counts: CountArray,
        places: Sequence[int],
        trees: PlaneTrees,
        *,
        least: float,
        stop: Callable[[], bool],
    ) -> None:
        self.store = Store(Hulls(X, Z, least, stop), counts, stop)
        self.counts = counts
        self.places = places
        self.depth = trees.depth
        self.leaves = min(trees.leaves, len(counts)) if counts.shape[1] > 1 else 1
        self.penalty = trees.penalty
        self.charge = trees.charge
        self.terms = Terms(least=trees.min_leaf, charge=trees.charge)
        self.blocks: list[tuple[Labels, int | Fraction, list[Step]]] = []
        self.fewer: CountArray | None = None  # leaf of each point in a cheaper tree, if the cases ended at one

    def steps(self, cost: Fraction) -> list[Step] | None:
        """Return steps that prove that each tree costs at least `cost` rows; None if that takes too long.

        They count errors only, without minimum leaf size and further coefficients.
        """
        return self._steps(self.required_errors(cost))

    def all_steps(self, cost: Fraction) -> list[Step] | None:
        """Return the same as `steps`; use minimum leaf size and further coefficients only if that fails."""
        steps = self.steps(cost)
        return self._narrow([self._price(cost, t) for t in self._sizes], self.terms) if steps is None else steps

    def frontier(self, errors: Sequence[int]) -> list[Step] | None:
        """Return steps that prove `errors[t - 1]` for trees with at most t leaves; None if not found.

        Larger trees have the last bound.
        """
        least = np.minimum.accumulate(errors).tolist()
        goals = [least[min(t, len(least)) - 1] for t in self._sizes]
        steps = self._steps(self._open_goals(goals))
        return self._narrow(goals, Terms(least=self.terms.least)) if steps is None else steps

    @property
    def _sizes(self) -> range:
        return range(1, self.leaves + 1)

    def _narrow(self, errors: Sequence[int | Fraction], terms: Terms) -> list[Step] | None:
        """Return steps under the terms, for each number of leaves by itself; None if the terms are plain or it fails."""
        if terms == PLAIN:
            return None
        most = int(self.counts.sum()) // terms.least
        self.store.restart(self.store.stop)
        return self._steps([(t, e) for t, e in enumerate(errors[:most], start=1) if e > self._floor(t)], terms)

    def _steps(self, required: Iterable[tuple[int, int | Fraction]], terms: Terms = PLAIN) -> list[Step] | None:
        self.blocks = []
        self.fewer = None
        try:
            for t, errors in required:
                self._add_blocks(t, errors, terms)
        except FewerErrors as found:
            self.fewer = found.at
            return None
        except UndecidedCases:
            return None
        return self._assemble(charged=terms.charge > 0)

    def required_errors(self, cost: Fraction) -> Iterator[tuple[int, int]]:
        """Return numbers of leaves and the errors to prove for them, without those that follow from others."""
        return self._open_goals([math.ceil(self._price(cost, t)) for t in self._sizes])

    def _price(self, cost: Fraction, leaves: int) -> Fraction:
        """Return the errors at which a tree of `leaves` leaves costs `cost`."""
        return max(Fraction(0), cost - self.penalty * leaves - self.charge * (leaves - 1))

    def _floor(self, leaves: int) -> int:
        """Return a lower bound on the errors: equal rows share a leaf, and a leaf predicts one class."""
        sizes = np.sort(self.counts.sum(axis=0))[::-1]
        return max(int((self.counts.sum(axis=1) - self.counts.max(axis=1)).sum()), int(sizes[leaves:].sum()))

    def _open_goals(self, errors: Sequence[int]) -> Iterator[tuple[int, int]]:
        for t, goal in enumerate(errors, start=1):
            idle = t < self.leaves and goal <= errors[t]
            if not idle and goal > self._floor(t):
                yield t, goal

    def _add_blocks(self, leaves: int, goal: int | Fraction, terms: Terms) -> None:
        """Add a block for each labelling of `leaves` leaves that the class counts alone do not rule out."""
        every = np.ones(len(self.counts), bool)
        for number, labels in enumerate(enumerate_labellings(self.depth, leaves, self.counts.shape[1])):
            if number > MAX_LABELLINGS:
                raise UndecidedCases
            self.store.check_limits()
            wrong = self.counts.sum(axis=1) - self.counts[:, predicted_classes(labels)].max(axis=1)
            if int(wrong.sum()) < goal:
                if isinstance(labels, int):
                    raise UndecidedCases
                self.blocks.append((labels, goal, Cases(self.store, labels, every, goal, terms).solve()))

    def _assemble(self, *, charged: bool) -> list[Step]:
        """Return all lines: vectors and lemmas that are used, then the blocks. References become line numbers."""
        store = self.store
        lines = list[Step]()
        lemmas = sorted({k for *_, steps in self.blocks for s in steps if s["by"] == "sum" for k, _ in s["of"]})
        vectors = {s["of"] for *_, steps in self.blocks for s in steps if s["by"] == "meet"}
        columns = tuple(range(store.hulls.Z.shape[1]))
        vectors |= {(columns, store.lemma_list[k].vector) for k in lemmas}
        line_of: dict[VectorName, int] = {}
        for place in sorted(vectors):
            lines.append(self._vector(place))
            line_of[place] = len(lines)
        lemma_lines: dict[int, int] = {}
        for k in lemmas:
            lemma = store.lemma_list[k]
            meeting = store.vectors[store.lemma_list[k].vector]
            lines.append(self._block(lemma.labels, lemma.bound, [*meeting.left, *meeting.right]))
            lemma_lines[k] = len(lines)
            lines += lemma_steps(meeting, line_of[columns, lemma.vector])
        unit = math.lcm(self.penalty.denominator, self.charge.denominator) if charged else 1
        for labels, bound, steps in self.blocks:
            lines.append(self._block(labels, math.ceil(bound * unit)) | ({"charged": True} if charged else {}))
            lines += [self._number_lines(step, line_of, lemma_lines) for step in steps]
        return lines

    def _vector(self, name: VectorName) -> Step:
        columns, place = name
        meeting = self.store.narrowed(columns).vectors[place]
        sides = {"left": meeting.left, "right": meeting.right}
        beside = sorted(set(range(self.store.hulls.Z.shape[1])) - set(columns))
        return {"by": "vector", **({"beside": beside} if beside else {})} | {
            side: [[p, _exact_text(w)] for p, w in sorted(weights.items())] for side, weights in sides.items()
        }

    def _block(self, labels: Labels, bound: int, points: Sequence[int] | None = None) -> Step:
        subset = {} if points is None else {"points": sorted(points)}
        return {"by": "errors", "tree": self._class_names(labels), **subset, "bound": bound}

    def _class_names(self, labels: Labels) -> Any:
        return self.places[labels] if isinstance(labels, int) else [self._class_names(side) for side in labels]

    def _number_lines(self, step: Step, line_of: dict[VectorName, int], lemma_lines: dict[int, int]) -> Step:
        if step["by"] == "meet":
            return step | {"of": line_of[step["of"]]}
        return step | {"of": [[lemma_lines[k], v] for k, v in step["of"]]} if step["by"] == "sum" else step


def _exact_text(weight: int) -> int | str:
    """Return the weight; as a text if readers of JSON would round it."""
    return weight if weight <= MAX_JSON_INTEGER else str(weight)


def enumerate_labellings(depth: int, leaves: int, classes: int) -> Iterator[Labels]:
    """Yield all labellings of `leaves` leaves, one of each mirrored pair; two leaves below a split differ."""
    if leaves == 1:
        yield from range(classes)
    if leaves == 1 or depth == 0 or leaves > 1 << depth:
        return
    for few in range(max(1, leaves - (1 << (depth - 1))), leaves // 2 + 1):
        for i, one in enumerate(enumerate_labellings(depth - 1, few, classes)):
            start = i if few == leaves - few else 0
            for two in islice(enumerate_labellings(depth - 1, leaves - few, classes), start, None):
                if one != two or not isinstance(one, int):
                    yield one, two
