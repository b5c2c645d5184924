"""Cases and oracles of `test_limited_wishes.py` that other tests use, too."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tests.trainer.exact.workbench_cases import INFINITE, Brute, _plain
from tests.trainer.oracles.workbench import kept, places
from trainer.constraints import Constraints
from trainer.families.exact.editing.fronts import TreeLimits


def random_limits(rng, problem):
    """Return one to three limits on the whole tree.

    The trees that a limit of leaves or recalls excludes are often the best ones.
    """
    names = len(problem.table.names)
    chosen = rng.random(4) < 0.4
    chosen[rng.integers(4)] = True
    pairs: dict[int, frozenset[int]] = {}
    for _ in range(2 if chosen[2] else 0):
        a, b = (int(j) for j in rng.integers(names, size=2))
        pairs[a], pairs[b] = pairs.get(a, frozenset()) | {b}, pairs.get(b, frozenset()) | {a}
    columns = np.array([f.column for f in problem.binary.features], np.int64)
    conflict = np.zeros((len(columns), len(columns)), np.uint8)
    for a, others in pairs.items():
        for b in others:
            conflict[np.ix_(columns == a, columns == b)] = 1
    present = sorted({int(k) for k in problem.y})
    recalls = [(int(rng.choice(present)), Fraction(int(rng.integers(1, 5)), 4))] if chosen[1] else []
    if chosen[1] and len(present) > 1 and rng.random() < 0.4:
        recalls = [(k, Fraction(int(rng.integers(1, 4)), 4)) for k in present[:2]]
    return TreeLimits(
        constraints=Constraints(
            max_leaves=int(rng.integers(1, 5)) if chosen[0] else None,
            recalls=tuple(recalls),
            conflict=conflict if conflict.any() else None,
            max_columns=int(rng.integers(0, 3)) if chosen[3] else None,
            columns=columns,
        ),
        pairs=pairs,
    )


class Limited(Brute):
    """All trees of a problem within limits, each with the best classes of its leaves within them."""

    def __init__(self, problem, bench, wishes, depth, limits):
        super().__init__(problem, bench, wishes, depth)
        self.limits = limits
        self.within = [t for t in self.trees if self._shape_fits(t)]

    def _shape_fits(self, tree):
        c = self.limits.constraints
        leaves = [p for p, part in places(tree) if part is None]
        asked = {place: self.columns[part[0]] for place, part in places(tree) if part is not None}
        if c.max_leaves is not None and len(leaves) > c.max_leaves:
            return False
        if c.max_columns is not None and len(set(asked.values())) > c.max_columns:
            return False
        pairs = {(a, b) for a, others in self.limits.pairs.items() for b in others}
        return not any((asked[p[:k]], asked[p]) in pairs for p in asked for k in range(len(p)))

    def best(self, wishes):
        spoken = [_plain(w) for w in wishes]
        return min((self.cost(t, spoken) for t in self.within if kept(t, spoken, self.columns)), default=INFINITE)

    def cost(self, tree, spoken):
        """Return the least cost over all classes of the leaves that meet the recalls, or INFINITE if none does."""
        named = {place: label for verb, place, _, _, label, _ in spoken if verb == "leaf" and label is not None}
        classes = self.problem.n_classes
        totals = {(0,) * classes}  # tuples with the errors of each class

        def leaves(part, rows, place):
            if part is None:
                counts = [int(self.w[rows & (self.y == k)].sum()) for k in range(classes)]
                yield counts, [named[place]] if place in named else range(classes)
                return
            yield from leaves(part[1], rows & self.answers[part[0]], place + "y")
            yield from leaves(part[2], rows & ~self.answers[part[0]], place + "n")

        number = 0
        for counts, labels in leaves(tree, np.ones(len(self.y), bool), ""):
            number += 1
            totals = {
                tuple(t[k] + (counts[k] if k != label else 0) for k in range(classes))
                for t in totals
                for label in labels
            }
        sizes = [int(self.w[self.y == k].sum()) for k in range(classes)]
        right = [
            t
            for t in totals
            if all(sizes[k] - t[k] >= share * sizes[k] for k, share in self.limits.constraints.recalls)
        ]
        return min(map(sum, right)) + number * self.penalty if right else INFINITE
