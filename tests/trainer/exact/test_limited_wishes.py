"""Constraints combined with limits on the tree equal enumeration of all labelled trees."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.exact.test_workbench import INFINITE, Brute, _plain, check_mirrors, random_wishes
from tests.trainer.oracles.workbench import coarse_table, is_smallest_conflict, kept, places, plain, random_table
from trainer.constraints import Constraints
from trainer.errors import InfeasibleError, ParameterError
from trainer.families.exact.editing.fronts import TreeLimits
from trainer.families.exact.workbench import Workbench


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


def instance(seed):
    rng = np.random.default_rng(seed)
    problem = coarse_table(seed) if seed % 3 == 0 else random_table(seed, max_rows=10)
    limits = random_limits(rng, problem)
    depth = 3 if seed % 4 == 0 and len(problem.binary.features) < 5 else 2
    bench = Workbench(problem, depth=depth, limits=limits)
    texts = random_wishes(rng, problem, bench.space.questions)[:3]
    wishes = bench.wishes(texts)
    return bench, texts, wishes, Limited(problem, bench, wishes, depth, limits), rng


@seeds(300)
def test_limited_values_prices_and_conflicts_equal_enumeration(seed):
    bench, texts, wishes, brute, _ = instance(seed)
    want = brute.best(wishes)
    if brute.best([]) == INFINITE:
        with pytest.raises(InfeasibleError, match="limits"):
            bench.complete(texts)
        return
    completion = bench.complete(texts)
    if want == INFINITE:
        assert not completion.found
        assert completion.reason
        assert is_smallest_conflict(completion.conflict, brute.best, INFINITE)
        return
    assert completion.found
    assert completion.cost == completion.bound == want
    assert kept(plain(completion.tree), [_plain(w) for w in wishes], brute.columns)
    assert bench.completer.fronts.satisfies_limits(completion.tree)
    errors, leaves = bench.space.cost_of(completion.tree)
    assert errors + leaves * brute.penalty == want
    for price in completion.prices:
        assert price.price == want - brute.best([w for w in wishes if w != price.wish]) >= 0
    assert completion.optimum.cost == completion.optimum.bound == brute.best([])


@seeds(120)
def test_price_lists_within_limits_are_those_of_enumeration(seed):
    bench, texts, wishes, brute, rng = instance(seed)
    try:
        completion = bench.complete(texts)
    except InfeasibleError:
        return
    if not completion.found:
        return
    tree = plain(completion.tree)
    place = str(rng.choice([p for p, _ in places(tree)]))
    path = [dict(places(tree))[place[:k]][0] for k in range(len(place))]
    spoken = [_plain(w) for w in wishes if not (w.place == place and w.item.verb in ("ask", "leaf"))]
    spoken += [("ask", place[:k], q, brute.columns[q], None, None) for k, q in enumerate(path)]
    trees = [(t, brute.cost(t, spoken)) for t in brute.within if kept(t, spoken, brute.columns)]
    least = min(cost for _, cost in trees)
    want = {}
    for t, cost in trees:
        part = dict(places(t)).get(place)
        if part is not None and cost < INFINITE:
            want[part[0]] = min(want.get(part[0], INFINITE), cost - least)
    got = list(bench.price_list(place or "root", texts, tree=completion.tree))
    assert all(p.proved for p in got)
    check_mirrors(want, {p.question: p.price for p in got}, bench.space.questions)
    for p in got:
        errors, leaves = bench.space.cost_of(p.tree, bench.completer.spot(wishes, completion.tree, place).rows)
        assert (p.tree[0], p.errors, p.leaves) == (p.question, errors, leaves)


def test_good_trees_with_tree_limits_are_refused():
    problem = random_table(3)
    bench = Workbench(problem, depth=2, limits=TreeLimits(constraints=Constraints(max_leaves=2)))
    with pytest.raises(ParameterError, match="filters"):
        bench.good_trees(slack="0.1")


def test_a_stopped_search_within_limits_keeps_a_valid_bound():
    from trainer.data.problem import Problem
    from trainer.table import Labels, numeric_table

    rng = np.random.default_rng(5)
    X = rng.integers(0, 2, (300, 40))
    y = rng.integers(0, 2, 300).astype(np.int32)
    problem = Problem(table=numeric_table(X.astype(float)), labels=Labels(name="y", classes=("a", "b"), codes=y))
    limits = TreeLimits(constraints=Constraints(recalls=((0, Fraction(3, 5)),), max_leaves=6))
    for patience in (0, 3, 30):
        left = iter(range(patience))
        bench = Workbench(problem, depth=4, limits=limits)
        completion = bench.complete(["forbid y x3", "ask n x5"], stop=lambda left=left: next(left, None) is None)
        assert not completion.optimal
        if completion.found:
            assert completion.bound <= completion.cost
            assert bench.completer.fronts.satisfies_limits(completion.tree)
