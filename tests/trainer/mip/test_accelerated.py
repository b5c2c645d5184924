"""Accelerated BendOCT: every technique on or off gives the value of the plain recurrence; its rows keep a best tree."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.mip.cases import affordable_instance, all_trees, best_value, excess, random_instance, violated
from trainer.errors import DataError
from trainer.families.mip import greedy
from trainer.families.mip import instance as instances
from trainer.families.mip import polish as polishing
from trainer.families.mip.bendoct_accelerated import PAPER, VANILLA, AcceleratedBendOCT, Techniques
from trainer.families.mip.cuts.equivalent import EquivalentPoints, find_equivalent_sets
from trainer.families.mip.deep_bounds import DeepBounds
from trainer.families.mip.first_tree import make_start
from trainer.families.mip.instance import CUT, LEAF, Instance
from trainer.families.mip.polish import DepthTwo, polish
from trainer.families.mip.tree_mip import optimise
from trainer.milo import BACKENDS, Point, backend

ALL = Techniques(separated=False)
STATED = replace(VANILLA, separated=False)
VARIANTS = {
    "default": Techniques(),
    "everything": ALL,
    "paper": PAPER,
    "vanilla": VANILLA,
    "polishing": replace(VANILLA, polishing=True),
    "strengthened": replace(VANILLA, strengthened=True),
    "strengthened and all": replace(ALL, strengthened=True, root_cuts=True),
    "plain path bounds": replace(VANILLA, path_bounds=True, negative_samples=False, structure=False),
    "negative samples": replace(VANILLA, path_bounds=True, structure=False),
    "structure": replace(VANILLA, path_bounds=True, negative_samples=False, at_integral=False),
    "end points": replace(ALL, endpoints_only=True, split_bounds=False, equivalent_points=None),
    "objective form": replace(ALL, objective_form=True, equivalent_points=None),
    "split bounds": replace(VANILLA, split_bounds=True),
    "no cache": replace(ALL, cache=False),
    "basic": replace(STATED, equivalent_points="basic", group_selection=False),
    "basic, groups": replace(STATED, equivalent_points="basic"),
    "chain": replace(VANILLA, equivalent_points="chain", disaggregated=False, group_selection=False),
    "chain, disaggregated": replace(STATED, equivalent_points="chain"),
    "recursive": replace(VANILLA, equivalent_points="recursive", disaggregated=False, group_selection=False),
    "recursive, disaggregated": replace(STATED, equivalent_points="recursive", group_selection=False),
    "split sets of one": replace(STATED, equivalent_points="recursive", split_set=1),
    "no split set": replace(STATED, equivalent_points="recursive", split_set=0),
    "basic, separated": replace(VANILLA, equivalent_points="basic", group_selection=False),
    "chain, separated": replace(VANILLA, equivalent_points="chain", split_set=1),
    "recursive, separated": replace(VANILLA, equivalent_points="recursive"),
    "recursive, separated, no groups": replace(VANILLA, equivalent_points="recursive", group_selection=False),
    "chain, groups": replace(VANILLA, equivalent_points="chain", disaggregated=False),
    "recursive, groups": replace(VANILLA, equivalent_points="recursive", disaggregated=False),
    "split sets of three": replace(VANILLA, equivalent_points="recursive", split_set=3),
    "cuts at the root": replace(VANILLA, root_cuts=True),
    "default, no cache": Techniques(cache=False),
    "default, exact bounds": Techniques(exact_bounds=True),
    "default, cuts at the root": Techniques(root_cuts=True, strengthened=True),
}


def check(name: str, seed: int, techniques: Techniques, inst: Instance | None = None) -> None:
    inst = inst or random_instance(seed)
    form = AcceleratedBendOCT(inst, techniques)
    starts = form.improve_starts([greedy.cart(inst)]) if seed % 2 else []
    optimum = optimise(form, backend(name), starts=starts)
    assert optimum.value == optimum.bound == best_value(inst), (seed, techniques)
    assert inst.value(optimum.tree) == optimum.value


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_technique_finds_and_proves_the_best_tree(variant):
    for seed in range(10):
        check("scip", 100 * list(VARIANTS).index(variant) + seed, VARIANTS[variant])


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("seed", range(12))
def test_the_default_finds_and_proves_the_best_tree(name, seed):
    check(name, seed, Techniques())


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", BACKENDS)
def test_every_technique_on_many_instances_on_every_solver(count, name, variant):
    first = 5000 + 200 * list(VARIANTS).index(variant)
    t = VARIANTS[variant]
    for seed in range(first, first + count):
        check(name, seed, t, affordable_instance(name, seed, bounded=t.path_bounds and t.split_bounds))


@pytest.mark.slow
@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("depth", [2, 3])
def test_equivalent_points_separated_if_split_bounds_leave_gap(name, depth):
    """At depth two there are no split bounds, and HiGHS has no node after the root."""
    r = np.random.default_rng(5)
    X = r.integers(0, 2, (60, 5)).astype(np.uint8)
    inst = instances.build(X, r.integers(0, 2, 60).astype(np.int32), depth=depth, kappa=Fraction(1, 2))
    optimum = optimise(AcceleratedBendOCT(inst, Techniques(path_bounds=False)), backend(name))
    assert optimum.value == optimum.bound == best_value(inst)
    if depth == 2 or name == "highs":
        assert optimum.outcome.rows["equivalent-points"] > 0


def test_trees_that_are_not_cut_off_are_polished_too():
    """Algorithm 1 polishes every integral solution of the master problem."""
    r = np.random.default_rng(3)
    X = r.integers(0, 2, (40, 6)).astype(np.uint8)
    inst = instances.build(X, (X[:, 0] ^ X[:, 1]).astype(np.int32), depth=3, kappa=Fraction(1, 2))
    form = AcceleratedBendOCT(inst, replace(VANILLA, polishing=True))
    hooks = form.hooks()
    values = form.assignment(inst.majority_leaf())
    assert list(hooks.on_integral(Point(values), "lp")) == []
    (better,) = hooks.propose()
    assert inst.value(form.read(better)) == best_value(inst) > inst.value(inst.majority_leaf())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_equivalent_point_rows_hold_for_every_tree(seed):
    inst = random_instance(seed, max_depth=2, max_rows=8)
    shapes = itertools.product(("basic", "chain", "recursive"), (False, True), (False, True))
    trees = list(itertools.islice(all_trees(inst, labels=True), 600))
    for form, disaggregated, groups in shapes:
        t = replace(
            STATED, equivalent_points=form, disaggregated=disaggregated, group_selection=groups, strengthened=True
        )
        model = AcceleratedBendOCT(inst, t)
        assert not violated(model.model, np.array([model.assignment(tree) for tree in trees])).any()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("form", ["basic", "chain", "recursive"])
def test_separated_equivalent_points_say_what_stated_ones_say(seed, form):
    """At a fractional point equally many sets are violated, with the largest mediators that the stated rows allow.

    No tree is cut off.
    """
    inst = random_instance(seed, max_rows=13)
    groups = bool(seed % 2)
    sets = find_equivalent_sets(inst, split_size=2, limit=1000)
    stated = AcceleratedBendOCT(inst, replace(STATED, equivalent_points=form, group_selection=groups))
    apart = AcceleratedBendOCT(inst, replace(VANILLA, equivalent_points=form, group_selection=groups))
    assert apart.model.size <= stated.model.size
    r = np.random.default_rng(seed)
    trees = np.array([apart.assignment(tree) for tree in itertools.islice(all_trees(inst), 300)])
    for density in (0.05, 0.2, 0.4):
        b = r.random((len(inst.tree.branch_nodes), len(inst.F))) * density
        theta = r.random(inst.n) ** 0.5
        values = np.zeros(stated.model.size)
        values[stated.structure.b.columns] = b
        values[stated.theta.columns] = theta
        stated.equivalent.fill(values)
        claims = [row.activity(values) - row.upper for row in stated.model.rows if row.name in ("E17", "E22")]
        # The rows that define the selectors hold with equality, so only E17 and E22 are counted.
        broken = sum(claim > 1.1e-3 for claim in claims)
        rows = apart.equivalent_cuts.fractional(b, theta, limit=10_000)
        assert len(rows) == sum(claim > 1e-3 for claim in claims) >= broken
        assert len(rows) <= len(sets)
        point = np.zeros(apart.model.size)
        point[apart.structure.b.columns] = b
        point[apart.theta.columns] = theta
        assert all(row.activity(point) > row.upper for row in rows)
        assert not rows or excess(rows, trees).max() <= 1e-9


@seeds(20)
def test_split_sets_that_cannot_occur_are_not_looked_at(seed):
    """The sets are those of all pairs of features."""
    inst = random_instance(seed, max_rows=40)
    found = [(J.split, J.rows.tolist()) for J in find_equivalent_sets(inst, split_size=2, limit=10_000)]
    wanted = set()
    for size in range(3):
        for split in itertools.combinations(inst.F, size):
            kept = np.setdiff1d(np.arange(len(inst.F)), split).astype(np.int64)
            for i in range(inst.n):
                J = np.flatnonzero((inst.X[:, kept] == inst.X[i, kept]).all(axis=1))
                if len(np.unique(inst.y[J])) > 1 and np.ptp(inst.X[J][:, list(split)], axis=0).all():
                    wanted.add((split, tuple(J.tolist())))
    assert {(s, tuple(rows)) for s, rows in found} == wanted
    assert len(found) == len(wanted)


@seeds(30)
def test_bounds_that_claim_to_hold_for_every_tree_do(seed):
    """This compares (24'), (24'') and (27') at the paths of random trees with all other trees."""
    inst = random_instance(seed, max_depth=3 if seed % 2 else 2, max_rows=9)
    form = AcceleratedBendOCT(inst, replace(ALL, objective_form=True, equivalent_points=None))
    trees = list(itertools.islice(all_trees(inst), 400))
    s = form.structure
    rows = []
    deep = DeepBounds(inst)
    for tree in trees[:: max(1, len(trees) // 25)]:
        values = form.assignment(tree)
        values[form.theta.columns] = 1.0  # these scores are too high, so every path must be separated
        rows += form.paths.separate(values[s.b.columns], values[s.p.columns], values[form.theta.columns])
        for path, v, members, _ in form.paths._paths(values[s.b.columns]):
            bound = deep(members, inst.tree.height(v))
            rows.append(form.paths.deep_row(path, v, members, float(bound)))
    assert rows or inst.depth < 2 or inst.n == 1 or inst.classes == 1
    assert not rows or excess(rows, np.array([form.assignment(tree) for tree in trees])).max() <= 1e-9


@seeds(40)
def test_path_bound_and_structure_cuts_keep_a_best_tree(seed):
    inst = random_instance(seed, max_depth=3, max_rows=9)
    form = AcceleratedBendOCT(inst, replace(PAPER, equivalent_points=None))
    trees = list(itertools.islice(all_trees(inst), 1200))
    best = max(inst.value(tree) for tree in trees)
    s = form.structure
    rows = []
    for tree in trees[:: max(1, len(trees) // 80)]:
        values = form.assignment(tree)
        values[form.theta.columns] = 1.0
        rows += form.paths.separate(values[s.b.columns], values[s.p.columns], values[form.theta.columns])
    points = np.array([form.assignment(tree) for tree in trees if inst.value(tree) == best])
    assert not rows or (excess(rows, points) <= 1e-9).all(axis=1).any()


@seeds(60)
def test_depth_two_equals_the_recurrence(seed):
    inst = random_instance(seed, max_depth=2)
    inst = replace(inst, depth=2)
    block = DepthTwo(inst).best(np.arange(inst.n))
    assert block.value == best_value(inst)
    assert block.value == Fraction(inst.total - int(inst.weight[block.wrong].sum())) - inst.kappa * block.leaves


@seeds(60)
def test_depth_two_breaks_ties_by_leaves_and_then_by_features(seed):
    """Among all best trees it is one with the fewest leaves, then smallest root feature, left child split first, smallest child features."""
    inst = replace(random_instance(seed, max_depth=2, max_rows=8), depth=2)
    rows = np.flatnonzero(np.random.default_rng(seed).random(inst.n) < 0.8)
    rows = rows if len(rows) else np.arange(inst.n)
    part = replace(inst, X=inst.X[rows], y=inst.y[rows], weight=inst.weight[rows])
    last = len(inst.F)
    best = max(part.value(tree) for tree in all_trees(part))
    order = min(
        (len(tree.leaves), f, g if g >= 0 else last, h if h >= 0 else last)
        for tree in all_trees(part)
        for f, g, h in [tree.feature[1:4].tolist()]
        if part.value(tree) == best
    )
    block = DepthTwo(inst).best(rows)
    f, g, h = block.features
    assert block.value == best
    assert (block.leaves, f, g if g >= 0 else last, h if h >= 0 else last) == order


@seeds(40)
def test_split_bounds_are_the_best_subtrees_of_both_sides(seed):
    inst = random_instance(seed, max_rows=40)
    solver = DepthTwo(inst)
    rows = np.arange(inst.n)
    for f, bound in enumerate(solver.split_bounds(rows)):
        sides = (rows[~inst.ones[:, f]], rows[inst.ones[:, f]])
        assert bound == pytest.approx(float(sum(solver.best(side).value for side in sides)), abs=1e-9)


def test_split_bounds_that_are_halted_stay_valid_and_end_at_once(monkeypatch):
    monkeypatch.setattr(polishing, "CELLS_PER_CALL", 1)  # the kernel handles one feature in each call
    bits = np.random.default_rng(0).integers(0, 2, (40, 6)).astype(np.uint8)
    inst = instances.build(bits, np.arange(40, dtype=np.int32) % 2, depth=3, kappa=Fraction(1, 2))
    asked = []
    rows = np.arange(inst.n)
    whole = DepthTwo(inst).split_bounds(rows)
    halted = DepthTwo(inst, halted=lambda: len(asked.append(1) or asked) > 2).split_bounds(rows)
    assert len(asked) == 3 < len(whole)
    assert np.array_equal(halted[:2], whole[:2])
    assert (halted[2:] >= whole[2:]).all()


@pytest.mark.slow
@seeds(30)
def test_polishing_never_loses(seed):
    inst = random_instance(seed, max_depth=3)
    solver = DepthTwo(inst)
    for tree in itertools.islice(all_trees(inst), 60):
        polished = polish(inst, tree, solver)
        assert inst.value(polished) >= inst.value(tree)
        if inst.depth == 2:
            assert inst.value(polished) == best_value(inst) or tree.feature[1] < 0


def test_equivalent_sets_agree_outside_their_split_set():
    inst = random_instance(11, max_rows=13)
    for J in find_equivalent_sets(inst, split_size=2, limit=1000):
        outside = np.setdiff1d(np.arange(len(inst.F)), J.split)
        assert (inst.X[J.rows][:, outside] == inst.X[J.rows[0], outside]).all()
        assert len(np.unique(inst.y[J.rows])) > 1
        assert J.loss >= 1
    assert isinstance(EquivalentPoints, type)


def test_polishing_ends_at_a_halt_with_a_tree_that_is_no_worse():
    r = np.random.default_rng(1)
    X = r.integers(0, 2, (60, 8)).astype(np.uint8)
    inst = instances.build(X, (X[:, 0] ^ X[:, 1] ^ X[:, 2]).astype(np.int32), depth=3, kappa=Fraction(1, 10))
    feature = np.full(16, CUT, np.int32)
    feature[1:8] = (3, 0, 4, 5, 5, 5, 5)
    feature[8:] = LEAF
    tree = inst.label_leaves(feature)
    asked = []
    whole = polish(inst, tree, DepthTwo(inst))
    half = polish(inst, tree, DepthTwo(inst, halted=lambda: bool(asked.append(1)) or len(asked) > 1))
    assert inst.value(tree) <= inst.value(half) < inst.value(whole)
    assert polish(inst, tree, DepthTwo(inst, halted=lambda: True)).feature.tolist() == feature.tolist()


@seeds(20)
def test_the_equivalent_sets_that_are_kept_lose_most(seed):
    inst = random_instance(seed, max_rows=13)
    every = [(J.split, J.rows.tolist(), J.loss) for J in find_equivalent_sets(inst, split_size=2, limit=10_000)]
    assert every == sorted(every, key=lambda J: (-J[2], len(J[0]), J[0]))
    for limit in (0, 1, 4):
        assert [
            (J.split, J.rows.tolist(), J.loss) for J in find_equivalent_sets(inst, split_size=2, limit=limit)
        ] == every[:limit]


@pytest.mark.slow
def test_equivalent_sets_are_given_up_at_a_halt():
    r = np.random.default_rng(0)
    X = r.integers(0, 2, (1_500, 12)).astype(np.uint8)
    y = r.integers(0, 2, 1_500).astype(np.int32)
    inst = instances.build(X, y, depth=3, kappa=Fraction(0))
    every = {(J.split, tuple(J.rows)) for J in find_equivalent_sets(inst, split_size=2, limit=100_000)}
    asked = []
    found = find_equivalent_sets(
        inst, split_size=2, limit=100_000, halted=lambda: bool(asked.append(1)) or len(asked) > 9
    )
    assert len(asked) < 15
    assert 0 < len(found) < len(every)
    assert {(J.split, tuple(J.rows)) for J in found} <= every


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_deep_trees_are_proved_with_bounds_of_the_exact_search(seed):
    """At depth 4 and 5, depth-two blocks end far below the root."""
    inst = random_instance(seed, max_depth=2, max_rows=12)
    inst = replace(inst, depth=4 + seed % 2)
    for techniques in (replace(VANILLA, exact_bounds=True), Techniques(exact_bounds=True)):
        optimum = optimise(AcceleratedBendOCT(inst, techniques), backend("scip"), starts=[inst.majority_leaf()])
        assert optimum.value == optimum.bound == best_value(inst)


@seeds(25)
def test_exact_search_gives_first_tree_and_valid_bound(seed):
    inst = random_instance(seed)
    best = best_value(inst)
    start = make_start(inst, "exact", 600.0)
    assert inst.value(start.trees[0]) == best == start.bound
    form = AcceleratedBendOCT(inst)
    optimum = optimise(form, backend("scip"), starts=form.improve_starts(start.trees), known=start.bound)
    assert optimum.optimal
    assert optimum.value == best
    nothing = make_start(inst, "exact", 0.0)
    assert nothing.bound >= best
    form = AcceleratedBendOCT(inst)
    optimum = optimise(form, backend("scip"), starts=form.improve_starts(nothing.trees), known=nothing.bound)
    assert optimum.value == optimum.bound == best


def test_automatic_start_outlives_refusal_of_exact_search():
    """The exact search takes no total weight above 2^28, but the solver does."""
    X = np.array([[0], [1]], np.uint8)
    inst = instances.build(X, np.array([0, 1], np.int32), depth=1, kappa=Fraction(0), weight=np.array([1 << 28, 5]))
    with pytest.raises(DataError, match="add up to"):
        make_start(inst, "exact", 600.0)
    start = make_start(inst, "auto", 600.0)
    assert start.bound is None
    assert inst.value(start.trees[0]) == best_value(inst)
