"""Find the best tree within minimum recalls from counts, by the Pareto fronts of `exact`.

The vectors are those of `trainer.families.exact.kernels.pareto`. A front of depth two needs only counts of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from trainer.counts.search import Counted, Shape, TreeSearch
from trainer.dtypes import CountArray
from trainer.errors import InfeasibleError, ParameterError
from trainer.families.exact.kernels import pareto
from trainer.families.exact.kernels.node import NodeView
from trainer.goal import lowered_recalls_words

NO_LIMIT = (1 << 62) - 1
MOST_COST = 1 << 61

Recalls = Sequence[tuple[int, Fraction]]  # classes with their minimum recalls


class Front(NamedTuple):
    """The Pareto front of a node: vectors int64 (size, entries), and how to rebuild their trees."""

    vectors: CountArray
    aux: CountArray
    questions: CountArray


@dataclass(kw_only=True)
class RecallSearch:
    """The search over the trees of `search` that keep `recalls`; `price` is that of a leaf in rows."""

    search: TreeSearch
    recalls: Recalls
    price: Fraction
    max_leaves: int | None

    def best(self) -> Shape:
        """Return a best tree with a class in each leaf, of fewest leaves among equals; raise InfeasibleError without one."""
        best: tuple[int, Shape] | None = None
        for bound, question in self._roots():
            if best is not None and bound >= best[0]:
                break
            best = self._best_below(question, self._costs, self.caps, best)
        if best is None:
            shortfall = self._shortfall()
            raise InfeasibleError(
                f"No tree satisfies the constraints. {lowered_recalls_words(shortfall, len(self.recalls))}",
                best=float(shortfall),
                of="shortfall of the recalls",
            )
        return best[1]

    def keeps(self, shape: Shape) -> bool:
        """Return whether a tree whose leaves have their majority class keeps the recalls."""
        wrong = self._errors(self.search.root, shape, self.search.depth)
        return all(wrong[k] <= cap for (k, _), cap in zip(self.recalls, self.caps, strict=False))

    def _errors(self, node: Counted, shape: Shape, depth: int) -> CountArray:
        """Return the misclassified rows of each class below a node."""
        if not isinstance(shape, tuple):
            counts = node.own.total.copy()
            counts[int(counts.argmax())] = 0
            return counts
        sides = self.search.sides(node, shape[0], depth)
        parts = [self._errors(side, part, depth - 1) for side, part in zip(sides, shape[1:], strict=True)]
        return parts[0] + parts[1]

    @cached_property
    def _costs(self) -> CountArray:
        """The integer costs of an error and of a leaf. Ties are broken by fewer leaves if that fits."""
        total = int(self.search.root.own.total.sum())
        most = 1 << self.search.depth
        for scale in (most + 1, 1):
            unit = scale * self.price.denominator
            leaf = scale * self.price.numerator + (scale > 1)
            if unit * total + leaf * most < MOST_COST:
                return np.array([unit, leaf], np.int64)
        raise ParameterError(
            {"leaf_penalty": "it has too many digits for exact integer costs. Round it to six digits."}
        )

    @cached_property
    def caps(self) -> list[int]:
        """The most errors of each class with a minimum recall, and the most leaves if they are limited."""
        sizes = self.search.root.own.total
        caps = [int(sizes[k]) - math.ceil(share * int(sizes[k])) for k, share in self.recalls]
        return caps if self.max_leaves is None else [*caps, self.max_leaves]

    def _roots(self) -> list[tuple[int, int | None]]:
        """Return each question of the root with a lower bound on the cost of its trees; None stands for depth two or less."""
        root = self.search.root
        if self.search.depth < 3:
            return [(0, None)]
        bounds: list[tuple[int, int | None]] = [(0, None)]
        for question in np.flatnonzero(root.allowed).tolist():
            sides = self.search.sides(root, question, 3)
            if min(int(side.own.total.sum()) for side in sides) >= self.search.min_leaf:
                bounds.append((sum(map(self._side_bound, sides)), question))
        return [bounds[0], *sorted(bounds[1:])]

    def _side_bound(self, side: Counted) -> int:
        """Return the least cost of a side without recalls."""
        unit, leaf = self._costs.tolist()
        rows = int(side.own.total.sum())
        correct = self.search.best_of_two(side, 2).correct
        return min(unit * (rows - won) + leaf * leaves for leaves, won in enumerate(correct, 1) if won >= 0)

    def _best_below(
        self, question: int | None, costs: CountArray, caps: list[int], best: tuple[int, Shape] | None
    ) -> tuple[int, Shape] | None:
        """Return the best tree of a root question, or of depth two for None, if it costs less than `best`."""
        most = np.array([NO_LIMIT if best is None else best[0] - 1, *caps], np.int64)
        root = self.search.root
        if question is None:
            front = self.front(root, min(2, self.search.depth), costs, most)
            if not len(front.vectors):
                return best
            place = int(front.vectors[:, 0].argmin())
            return int(front.vectors[place, 0]), front_shape(front, place)
        fronts = [self.front(side, 2, costs, most) for side in self.search.sides(root, question, 3)]
        no, yes = fronts
        sums = no.vectors[:, None] + yes.vectors[None]
        cost = np.where((sums <= most).all(axis=2), sums[:, :, 0], NO_LIMIT)
        if not cost.size or cost.min() == NO_LIMIT:
            return best
        at = np.unravel_index(int(cost.argmin()), cost.shape)
        return int(cost[at]), (question, front_shape(no, int(at[0])), front_shape(yes, int(at[1])))

    def front(self, node: Counted, height: int, costs: CountArray, most: CountArray) -> Front:
        """Return the front of a node of height at most two."""
        end = node.own
        entries = pareto.VectorEntries(costs, np.array([k for k, _ in self.recalls], np.int64), most)
        sizes = end.one.sum(axis=0)
        enough = np.minimum(sizes, int(end.total.sum()) - sizes) >= self.search.min_leaf
        questions = np.flatnonzero(node.allowed & enough)
        # counts of int32 take the kernel that `exact` has compiled
        kind = np.int32 if int(end.total.sum()) < 1 << 31 else np.int64
        ones = np.ascontiguousarray(end.one[:, questions], kind)
        nothing = np.zeros(0, np.uint64)
        view = NodeView(
            features=questions.astype(np.int32),
            columns=np.zeros((0, len(questions)), np.uint64),
            valid=nothing,
            segment=np.zeros((0, 2), np.int32),
            weights=np.zeros(0, np.int32),
            ones=ones,
            equal_ones=np.zeros(len(questions), np.int64),
            totals=end.total.astype(kind),
            equal=0,
        )
        if not height or not len(questions):
            vectors, aux = pareto.leaf_front(view.totals, entries)
            return Front(vectors, aux, questions)
        pairs = np.ascontiguousarray(end.two[:, questions[:, None], questions], kind)
        m = len(questions)
        apart = self.search.apart
        conflict = np.zeros((m, m), np.uint8) if apart is None else apart[np.ix_(questions, questions)].astype(np.uint8)
        rules = pareto.SplitRules(np.ascontiguousarray(conflict), np.zeros((m, m), np.int64))
        vectors, aux = pareto.small_front(view, pairs, rules, height, self.search.min_leaf, entries)
        return Front(vectors, aux, questions)

    def _shortfall(self) -> Fraction:
        """Return the least amount by which all recalls must be lowered for a tree to exist."""
        free = [NO_LIMIT] * len(self.recalls) + self.caps[len(self.recalls) :]
        most = np.array([NO_LIMIT, *free], np.int64)
        root = self.search.root
        none = np.zeros(2, np.int64)
        sums = [self.front(root, min(2, self.search.depth), none, most).vectors]
        for _, question in self._roots():
            if question is not None:
                no, yes = (self.front(side, 2, none, most).vectors for side in self.search.sides(root, question, 3))
                pairs = (no[:, None] + yes[None]).reshape(-1, len(most))
                sums.append(pairs[(pairs <= most).all(axis=1)])
        sizes = root.own.total
        return min(
            max(
                share - Fraction(int(sizes[k]) - int(wrong), int(sizes[k]))
                for (k, share), wrong in zip(self.recalls, v[1:], strict=False)
            )
            for v in np.unique(np.concatenate(sums), axis=0).tolist()
        )


def front_shape(front: Front, place: int) -> Shape:
    """Return the tree of a vector, with a class in each leaf."""
    split, no, yes, *labels = (int(x) for x in front.aux[place])
    if split < 0:
        return labels[0]
    sides = [
        low if inner < 0 else (int(front.questions[inner]), low, high)
        for inner, (low, high) in ((no, (labels[0], labels[1])), (yes, (labels[2], labels[3])))
    ]
    return int(front.questions[split]), sides[0], sides[1]
