"""CUT-H and CUT_w-H against all linear separations of small random instances, and the separation of minimal sets."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.oracles.oblique import best_value, circuits, random_points, separations
from trainer.errors import DataError, ParameterError
from trainer.families.oblique import drawing
from trainer.families.oblique.instance import ObliqueInstance, mirrored
from trainer.families.oblique.local import LocalSearch
from trainer.families.oblique.refit import drawn
from trainer.families.oblique.separable import Separator
from trainer.families.oblique.shattering import CONNECT, CutHooks, CutModel, CutOptions
from trainer.milo import Options, Point, backend
from trainer.milo.hooks import NodeInfo
from trainer.milo.lattice import Lattice, same_order, tie_price
from trainer.run import TrainRequest, save, train
from trainer.table import Labels, numeric_table
from trainer.tree.nodes import tree_from_json
from trainer.verify import refuted, verify


def instance(seed, **changes):
    X, counts, depth, kappa = random_points(seed)
    span = np.maximum(X.max(axis=0) - X.min(axis=0), 1)
    return X, ObliqueInstance(
        Z=(X - X.min(axis=0)) / span, counts=counts, classes=np.arange(counts.shape[1], dtype=np.int32),
        group=np.arange(len(X)), depth=depth, kappa=kappa, **changes,
    )  # fmt: skip


def options(seed):
    return CutOptions(
        weak=seed % 2 == 0, connect=CONNECT[seed % 5], tight=seed % 3 > 0, symmetry=seed % 4 > 0, everywhere=seed % 7 > 2,
        several=1 + seed % 5,
    )  # fmt: skip


def check(name, seed, **changes):
    X, inst = instance(seed, **changes)
    form = CutModel(instance=inst, options=options(seed))
    hooks = CutHooks(form)
    lattice = Lattice(kappa=inst.kappa, leaves=1 << inst.depth)
    outcome = backend(name).solve(form.model, hooks, Options(time=60, absolute_gap=lattice.gap))
    best = best_value(X, inst.counts, inst.depth, inst.kappa, complete=inst.complete, most=inst.max_leaves)
    tree = form.read(outcome.values)
    assert lattice.floor(outcome.bound) == best
    assert inst.value(inst.pruned(tree)) == best
    assert inst.ceiling >= best
    known = circuits(X)
    assert all((frozenset(a), frozenset(b)) in known for a, b in hooks.pool)


@pytest.mark.parametrize("name", ["scip", "gurobi"])
@pytest.mark.parametrize("first", range(0, 200, 25))
def test_finds_and_proves_the_best_tree_of_200_instances(name, first):
    for seed in range(first, first + 25):
        check(name, seed)


@pytest.mark.parametrize("seed", range(300, 306))
def test_highs_solves_separates_and_solves_again(seed):
    check("highs", seed)


@pytest.mark.parametrize("seed", range(400, 420))
def test_balanced_trees_and_a_limit_of_leaves(seed):
    check("scip", seed, complete=True)
    check("scip", seed, max_leaves=1 + seed % 3)


@seeds(60)
def test_separability_is_that_of_exact_arithmetic_and_supports_are_circuits(seed):
    X, inst = instance(seed)
    separator, known = Separator(inst.Z), circuits(X)
    possible = separations(X, known)
    r = np.random.default_rng(seed)
    for _ in range(10):
        left = np.flatnonzero(r.random(len(X)) < 0.5)
        right = np.setdiff1d(np.arange(len(X)), left)
        plane, supports = separator.plane(left, right), separator.supports(left, right)
        if not len(left) or not len(right) or frozenset(left.tolist()) in possible:
            assert plane is not None
            assert not supports
            assert plane.left(inst.Z[left]).all()
            assert not plane.left(inst.Z[right]).any()
            continue
        assert plane is None
        assert supports
        for support in supports:
            assert (frozenset(support[0]), frozenset(support[1])) in known
            assert len(support[0]) + len(support[1]) <= X.shape[1] + 2


def test_a_point_on_both_sides_is_its_own_support():
    separator = Separator(np.array([[0.0], [1.0]]))
    assert separator.plane([0], [0, 1]) is None
    assert separator.supports([0], [0, 1]) == [((0,), (0,))]


@seeds(40)
def test_a_tree_written_into_the_model_keeps_its_exact_value(seed):
    X, inst = instance(seed, complete=seed % 3 == 0)
    search = LocalSearch(inst, seed)
    search.run([inst.stump()] if not inst.complete else [], enough=inst.ceiling, stopped=lambda: False, most=20)
    form = CutModel(instance=inst, options=options(seed))
    values = form.assignment(search.best)
    assert form.model.violated(values) is None
    assert form.model.value(values) == pytest.approx(float(inst.value(form.normal_form(search.best))), abs=1e-9)
    assert not CutHooks(form).on_integral(Point(values), "start")
    assert inst.value(form.read(values)) >= search.value
    assert search.value <= best_value(X, inst.counts, inst.depth, inst.kappa, complete=inst.complete)


def test_local_search_meets_the_oracle_and_weights_leave_a_local_optimum():
    left = 0
    for seed in range(25):
        X, inst = instance(seed)
        best = best_value(X, inst.counts, inst.depth, inst.kappa)
        search = LocalSearch(inst, seed)
        search.run([], enough=inst.ceiling, stopped=lambda: False, most=75)
        assert search.value == inst.value(search.best) == best
        walker = LocalSearch(inst, seed)
        walker.best = walker.improve(walker.random_subtree(inst.empty(), 1), lambda: False)
        walker.value = optimum = inst.value(walker.best)
        walker._reweigh(walker.consider, inst.ceiling, lambda: False)
        assert optimum <= walker.value == inst.value(walker.best) <= best
        left += walker.value > optimum
    assert left >= 5


def test_local_search_without_success_ends_by_its_patience():
    X = np.array([[0.0], [1.0], [2.0]])
    counts = np.array(
        [[1, 0], [0, 1], [1, 0]]
    )  # one plane cannot be right everywhere, and the ceiling does not know it
    inst = ObliqueInstance(Z=X / 2, counts=counts, classes=np.arange(2, dtype=np.int32), group=np.arange(3), depth=1)
    search = LocalSearch(inst, 0)
    search.run([], enough=inst.ceiling, stopped=lambda: False, patience=30)
    assert search.value == 2 < inst.ceiling
    assert 30 <= search.rounds < 60


@seeds(20)
def test_mirroring_moves_no_point_to_another_leaf(seed):
    _, inst = instance(seed)
    tree = LocalSearch(inst, seed).random_subtree(inst.empty(), 1)
    labels = tree.label[inst.route(tree)]
    for v in tree.branches:
        other = mirrored(inst, tree, v)
        assert (other.label[inst.route(other)] == labels).all()


def test_root_cuts_of_the_three_types():
    _, inst = instance(3)
    counts = {}
    for kind in ("I", "II", "III"):
        form = CutModel(instance=inst, options=CutOptions(weak=True, connect=kind, tight=False))
        values = np.zeros(form.model.size)
        values[form.s.columns.ravel()] = 0.5
        counts[kind] = len(CutHooks(form).on_fractional(Point(values), NodeInfo()))
    assert counts["I"] > counts["II"] == counts["III"] > 0


def table(X, y):
    words = tuple(str(k) for k in np.unique(y))
    codes = np.searchsorted(np.unique(y), y).astype(np.int32)
    return numeric_table(np.asarray(X, float)), Labels(name="class", classes=words, codes=codes)


def rows_of(seed):
    """Rows in awkward units, with the points of an instance repeated."""
    X, counts, depth, kappa = random_points(seed)
    g, k = np.nonzero(counts)
    times = counts[g, k]
    factor = np.array([1e-3, 250.0, 1.0])[: X.shape[1]]
    return X, counts, depth, kappa, np.repeat(X[g] * factor - 7.25, times, axis=0), np.repeat(k, times)


@pytest.mark.parametrize("method", ["cut-h", "cutw-h"])
@pytest.mark.parametrize("first", range(0, 30, 10))
def test_the_method_returns_the_best_tree_and_a_certificate_that_verifies(method, first, tmp_path, monkeypatch):
    for seed in range(first, first + 10):
        monkeypatch.setattr(
            "trainer.families.oblique.presolve.LARGEST", 200 * (seed % 4 < 2)
        )  # else points in a plane are searched, too
        X, counts, depth, kappa, values, y = rows_of(seed)
        n = int(counts.sum())
        data, labels = table(values, y)
        parameters = {
            "depth": depth, "leaf_penalty": float(kappa / n), "first_trees": "none", "search_seconds": 0.0 if seed % 2 else 2.0,
            "solver": "scip", "hyperplanes": ("margin", "svm", "sparse")[seed % 3],
        }  # fmt: skip
        result = train(TrainRequest(table=data, labels=labels, method=method, parameters=parameters))
        best = float(best_value(X, counts, depth, kappa) / n)
        assert result.certificate.status == "optimal"
        assert result.certificate.objective == pytest.approx(best, abs=1e-9)
        model, rows = tmp_path / f"{seed}.json", tmp_path / f"{seed}.csv"
        save(result.model, model)
        lines = [",".join([*data.names, "class"])]
        lines += [",".join([*(repr(float(x)) for x in row), str(k)]) for row, k in zip(values, y, strict=True)]
        rows.write_text("\n".join(lines) + "\n")
        findings = {f.claim: f.verdict for f in verify(model, rows)}
        assert findings["counts"] == findings["objective"] == findings["correct"] == "recounted"
        if result.certificate.evidence[:1] and result.certificate.evidence[0]["kind"] == "bound-met":
            assert findings["bound"] == findings["optimal"] == "proved"
        assert findings["bound"] in {"proved", "cannot be judged"}
        record = json.loads(model.read_text())
        record["certificate"]["correct"] += 1
        model.write_text(json.dumps(record))
        assert refuted(verify(model, rows))


def test_then_fewest_leaves_proves_the_smaller_tree():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 2.0]])
    data, labels = table(X, np.array([0, 0, 1, 1, 1]))
    result = train(
        TrainRequest(table=data, labels=labels, method="cut-h", parameters={"depth": 2, "then_fewest": True})
    )
    assert result.tree.n_leaves == 2
    assert result.certificate.status == "optimal"
    assert result.certificate.objective == 1.0


@pytest.mark.parametrize("pareto", [False, True])
def test_a_limit_leaves_the_fewest_leaves_open_though_the_accuracy_is_proved(pareto):
    X = np.array([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0], [0.1, 0.1]])
    data, labels = table(X, np.array([0, 1, 1, 0, 0]))
    perfect = train(TrainRequest(table=data, labels=labels, method="cart", parameters={"depth": 2}))
    assert perfect.certificate.correct == 5
    parameters = {"depth": 2, "time_limit": 0, "pareto": pareto}
    request = TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters, warm_start=perfect.tree)
    plain = train(request).certificate
    assert (plain.status, plain.gap, plain.unproved) == ("optimal", 0.0, "")
    both = train(replace(request, parameters=parameters | {"then_fewest": True}))
    assert both.certificate.gap == 0.0
    assert both.certificate.status == "time_limit"
    assert not both.certificate.proved_optimal
    assert "fewer leaves" in both.certificate.unproved
    assert both.summary["unproved"] == both.certificate.unproved


def test_settings_that_leave_each_other_no_meaning_are_refused():
    data, labels = table(np.array([[0.0], [1.0]]), np.array([0, 1]))
    pairs = [("pareto", {"balanced": True}), ("then_fewest", {"balanced": True}), ("then_fewest", {"mip_gap": 0.1})]
    priced = [("balanced", other) for other in ({"leaf_penalty": 0.01}, {"paper_lambda": 0.1}, {"max_leaves": 2})]
    for name, other in (*pairs, *priced):
        parameters = {"depth": 1, name: True} | other
        with pytest.raises(ParameterError, match="leave"):
            train(TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters))


def test_a_price_that_solvers_can_see_orders_trees_as_the_price_itself():
    r = np.random.default_rng(6)
    fine = [
        Fraction(1, 10**7),
        Fraction("0.99999"),
        Fraction("2.6666664"),
        Fraction(3, 4) + Fraction(1, 10**9),
        Fraction("7e-9"),
    ]
    for kappa in (*fine, *(Fraction(int(r.integers(0, 10**6)), int(r.integers(1, 10**6))) for _ in range(200))):
        most = int(r.integers(1, 17))
        other = same_order(kappa, most)
        trees = [(c, t) for c in range(20) for t in range(1, most + 1)]
        before, after = ([c - price * t for c, t in trees] for price in (kappa, other))
        for i in range(len(trees)):
            j = int(r.integers(len(trees)))
            assert (before[i] > before[j], before[i] == before[j]) == (after[i] > after[j], after[i] == after[j])
        assert other == kappa or Lattice(kappa=other, leaves=most).step >= Fraction(1, 2 * most)


@pytest.mark.parametrize("penalty", [1e-9, 1e-7, 0.1111111111, 0.3333333333])
@pytest.mark.parametrize("fewest", [False, True])
def test_prices_finer_than_a_solver_sees_are_kept_exactly(penalty, fewest):
    for seed in range(6):
        r = np.random.default_rng(seed)
        X, y = r.integers(0, 4, (8, 2)).astype(float), r.integers(0, 2, 8)
        points, group = np.unique(X, axis=0, return_inverse=True)
        counts = np.zeros((len(points), 2), np.int64)
        np.add.at(counts, (group.ravel(), y), 1)
        data, labels = table(X, y)
        parameters = {
            "depth": 2,
            "leaf_penalty": penalty,
            "then_fewest": fewest,
            "search_seconds": 0.1,
            "first_trees": "cart",
        }
        result = train(TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters)).certificate
        best = best_value(points.astype(int), counts, 2, Fraction(str(penalty)) * 8)
        assert result.status == "optimal"
        assert result.objective == pytest.approx(float(best / 8), abs=1e-12)


def test_what_is_left_of_the_time_is_for_drawing_and_it_is_said_where_that_was_too_little(monkeypatch):
    monkeypatch.setitem(drawing.DRAWING, "sparse", (0.9, 60.0))  # 13 s are enough on a machine that is busy, too
    r = np.random.default_rng(1)
    X = r.normal(size=(200, 8)).round(3)
    data, labels = table(X, ((X[:, 1] - X[:, 3] > 0) ^ (r.random(200) < 0.1)).astype(int))
    common = {"depth": 1, "hyperplanes": "sparse", "first_trees": "none", "solver": "scip"}
    request = TrainRequest(table=data, labels=labels, method="cut-h", parameters=common | {"time_limit": 15})
    result = train(request)
    late = train(replace(request, parameters=common | {"time_limit": 0}, warm_start=result.tree))
    for run, said in ((result, "sparse"), (late, "as found")):
        assert run.certificate.status == "time_limit"
        assert [e["hyperplanes"] for e in run.certificate.evidence if "hyperplanes" in e] == [said]
        assert all(len(v.split.features) < 8 for v in run.tree.branches)


def test_one_hyperplane_between_two_classes_is_found_without_search():
    r = np.random.default_rng(2)
    X = r.normal(size=(3000, 30)).round(4)
    data, labels = table(X, (X @ r.normal(size=30) > 0).astype(int))
    parameters = {"depth": 1, "first_trees": "none", "search_seconds": 0, "time_limit": 600}
    result = train(TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters)).certificate
    assert (result.status, result.correct, result.solver) == ("optimal", 3000, "octweb")


def test_a_tree_that_is_given_counts_where_no_other_first_tree_is_asked_for():
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    data, labels = table(X, np.array([0, 0, 1, 1, 0, 0]))
    known = train(TrainRequest(table=data, labels=labels, method="cart", parameters={"depth": 2}))
    assert known.certificate.correct == 6
    parameters = {"depth": 2, "first_trees": "none", "time_limit": 0}
    request = TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters, warm_start=known.tree)
    assert train(request).certificate.correct == 6


def test_values_that_lie_too_far_apart_are_refused():
    data, labels = table(np.array([[-1.7e308], [1.7e308], [0.0]]), np.array([0, 1, 0]))
    with pytest.raises(DataError, match="too far apart"):
        train(TrainRequest(table=data, labels=labels, method="cut-h", parameters={"depth": 1}))


def test_the_frontier_begins_with_the_trees_of_all_methods_and_tells_of_its_trees():
    r = np.random.default_rng(1)
    X = r.normal(size=(150, 4)).round(3)
    data, labels = table(X, ((X[:, 1] - X[:, 3] > 0) ^ (r.random(150) < 0.1)).astype(int))
    news = []
    parameters = {"depth": 1, "pareto": True, "time_limit": 4, "search_seconds": 1}
    request = TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters)
    result = train(request, sink=lambda progress, draft: news.append(progress))
    few = {e["kind"]: e["points"] for e in result.certificate.evidence}["coefficient-frontier"]
    stump = train(TrainRequest(table=data, labels=labels, method="cart", parameters={"depth": 1})).certificate
    assert few[0]["coefficients"] == 0
    assert few[0]["proved"]
    one = next(p for p in few if p["coefficients"] == 1)
    assert one["correct"] >= stump.correct
    assert all(p["bound"] >= p["correct"] for p in few)
    values = [p.incumbent for p in news if p.incumbent is not None]
    assert len(values) > 2
    assert values[-1] == pytest.approx(result.certificate.objective)
    assert any(p.bound is not None for p in news[:-1])


def test_the_price_of_a_leaf_orders_trees_by_value_and_then_by_leaves():
    r = np.random.default_rng(5)
    for _ in range(300):
        kappa, most = Fraction(int(r.integers(0, 30)), int(r.integers(1, 40))), int(r.integers(1, 9))
        price = tie_price(kappa, most)
        trees = [(c, t) for c in range(12) for t in range(1, most + 1)]
        paid = {tree: tree[0] - (kappa + price) * tree[1] for tree in trees}
        levels = {tree: (tree[0] - kappa * tree[1], -tree[1]) for tree in trees}
        assert sorted(trees, key=paid.__getitem__) == sorted(trees, key=levels.__getitem__), kappa
        if most > 1 and not all((kappa * s) % 1 for s in range(1, most)):
            assert len(set(paid.values())) == len(trees)


def test_sparse_planes_use_the_fewest_columns():
    r = np.random.default_rng(0)
    X = r.normal(size=(60, 5))
    y = (X[:, 1] - X[:, 3] > 0).astype(int)
    data, labels = table(X[np.abs(X[:, 1] - X[:, 3]) > 0.3], y[np.abs(X[:, 1] - X[:, 3]) > 0.3])
    for style, used in (("sparse", 2), ("margin", 5)):
        request = TrainRequest(
            table=data,
            labels=labels,
            method="cut-h",
            parameters={"depth": 1, "hyperplanes": style, "first_trees": "none"},
        )
        result = train(request)
        assert result.certificate.status == "optimal"
        assert result.certificate.correct == len(data)
        assert len(result.tree.used_columns) == used
        assert result.certificate.evidence[0]["hyperplanes"] == style


def test_sparse_means_fewest_columns_whatever_the_margin_and_other_trees_that_are_as_good():
    one = np.array([0.498, 0.3, 0.1, 0.499, 0.501, 0.6, 0.9, 0.502, 0.0, 1.0])  # parts the classes, but narrowly
    other = np.array([0, 0.55, 0.2, 0, 1, 0.5, 0.9, 1, 0, 1])
    y = (one > 0.5).astype(int)
    data, labels = table(np.column_stack([one, other]), y)
    for style, used in (("sparse", 1), ("margin", 2)):
        parameters = {"depth": 1, "hyperplanes": style, "first_trees": "none"}
        found = train(TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters))
        assert (found.certificate.correct, len(found.tree.used_columns)) == (10, used)
        assert style == "margin" or 0.499 < found.tree.branches[0].split.threshold < 0.501
    # a checkerboard of four fields: two questions on single columns, or planes that need both
    r = np.random.default_rng(1)
    X = r.random((80, 2))
    X = X[(np.abs(X - 0.5) > 0.02).all(axis=1)]
    data, labels = table(X, (X[:, 0] > 0.5) ^ (X[:, 1] > 0.5))
    coefficients = {}
    for style in ("margin", "sparse"):
        parameters = {"depth": 2, "hyperplanes": style, "first_trees": "none", "time_limit": 600}
        found = train(TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters))
        assert found.certificate.correct == len(data)
        coefficients[style] = found.certificate.evidence[0]["coefficients"]
    assert coefficients["sparse"] == 3 < coefficients["margin"]


def test_time_is_up_before_the_first_tree():
    r = np.random.default_rng(1)
    data, labels = table(r.normal(size=(200, 3)), r.integers(0, 3, 200))
    result = train(TrainRequest(table=data, labels=labels, method="cut-h", parameters={"depth": 2, "time_limit": 0}))
    assert result.certificate.status == "time_limit"
    assert result.certificate.bound >= result.certificate.objective


def test_a_known_tree_is_the_first_one():
    r = np.random.default_rng(2)
    X = r.integers(0, 6, (60, 3)).astype(float)
    data, labels = table(X, ((X[:, 0] > X[:, 1]) ^ (r.random(60) < 0.15)).astype(int))
    common = {"depth": 2, "time_limit": 1.0}
    known = train(TrainRequest(table=data, labels=labels, method="cut-h", parameters=common))
    again = train(
        TrainRequest(
            table=data, labels=labels, method="cut-h", parameters=common | {"time_limit": 0.5}, warm_start=known.tree
        )
    )
    assert again.certificate.warm_start_objective >= known.certificate.objective - 1e-9
    assert again.certificate.objective >= known.certificate.objective


@pytest.mark.parametrize("seed", [1, 4, 9])
def test_the_frontier_has_the_best_tree_of_every_size(seed):
    X, counts, _, _, values, y = rows_of(seed)
    data, labels = table(values, y)
    parameters = {
        "depth": 2,
        "pareto": True,
        "first_trees": "none",
        "search_seconds": 0.2,
        "time_limit": 600,
        "solver": "scip",
    }
    result = train(TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters))
    kept = {e["kind"]: e for e in result.certificate.evidence}
    best = 0
    points = {p["leaves"]: p for p in kept["leaf-frontier"]["points"]}
    for t in range(1, 5):
        most = int(best_value(X, counts, 2, 0, most=t))
        if most > best:
            assert points[t]["correct"] == points[t]["bound"] == most
            assert points[t]["proved"]
            tree = tree_from_json(points[t]["tree"], schema=result.tree.schema, classes=result.tree.classes)
            assert tree.n_leaves == t
            assert (tree.predict(data.matrix()) == labels.codes).sum() == most
        else:
            assert t not in points
        best = max(best, most)
    assert kept["leaf-frontier"]["unsettled"] == []
    assert result.certificate.status == "optimal"
    assert result.certificate.correct == best
    few = kept["coefficient-frontier"]["points"]
    assert [p["coefficients"] for p in few] == sorted({p["coefficients"] for p in few})


def most_correct(X, counts, depth):
    """The most rows right for each number of coefficients, over all trees: a side costs the fewest columns that part it."""
    price = {}
    for size in range(1, X.shape[1] + 1):
        for columns in itertools.combinations(range(X.shape[1]), size):
            values, where = np.unique(X[:, columns], axis=0, return_inverse=True)
            for side in separations(values):
                points = frozenset(np.flatnonzero(np.isin(where.ravel(), sorted(side))).tolist())
                price[points] = min(size, price.get(points, size))

    @cache
    def best(points, height):
        value = {0: int(counts[sorted(points)].sum(axis=0).max())}
        for side, cost in price.items() if height else ():
            left = points & side
            if left and left != points:
                for a, x in best(left, height - 1).items():
                    for b, z in best(points - left, height - 1).items():
                        value[a + b + cost] = max(value.get(a + b + cost, 0), x + z)
        return value

    found = best(frozenset(range(len(X))), depth)
    return [max(v for k, v in found.items() if k <= most) for most in range(max(found) + 1)]


def test_few_coefficients_meet_the_oracle_on_most_and_never_exceed_it():
    met = 0
    for seed in range(6):
        r = np.random.default_rng(seed)
        X, y = r.integers(0, 4, (11, 2)), r.integers(0, 2 + seed % 2, 11)
        data, labels = table(X, y)
        points, where = np.unique(X, axis=0, return_inverse=True)
        counts = np.zeros((len(points), len(labels.classes)), np.int64)
        np.add.at(counts, (where.ravel(), labels.codes), 1)
        best = most_correct(points, counts, 2)
        parameters = {"depth": 2, "pareto": True, "search_seconds": 0.5}
        result = train(TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters))
        found = next(e["points"] for e in result.certificate.evidence if e["kind"] == "coefficient-frontier")
        for p in found:
            k = min(p["coefficients"], len(best) - 1)
            assert p["correct"] <= best[k] <= p["bound"]
        reached = [max(p["correct"] for p in found if p["coefficients"] <= k) for k in range(len(best))]
        met += reached == best
    assert met >= 5


def test_the_frontier_keeps_its_limit_and_the_points_found_while_planes_are_drawn():
    r = np.random.default_rng(3)
    data, labels = table(r.normal(size=(300, 30)).round(3), r.integers(0, 2, 300))
    parameters = {"depth": 2, "pareto": True, "search_seconds": 0.5, "time_limit": 3.0, "first_trees": "cart"}
    result = train(TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters))
    assert result.certificate.status == "time_limit"
    assert result.certificate.seconds < 100  # it would take hours
    points = {e["kind"]: e["points"] for e in result.certificate.evidence}
    assert max(p["correct"] for p in points["leaf-frontier"]) == result.certificate.correct
    assert points["coefficient-frontier"]
    still = next(e["unsettled"] for e in result.certificate.evidence if e["kind"] == "leaf-frontier")
    bounds = [p["bound"] for p in sorted([*points["leaf-frontier"], *still], key=lambda p: p["leaves"])]
    assert bounds == sorted(bounds)  # what no larger tree exceeds, no smaller one does


@pytest.mark.parametrize("pareto", [False, True])
def test_a_tree_and_a_bound_are_shown_from_the_first_moment(pareto):
    """The single leaf before any other method is asked, then the trees of the other methods as they come."""
    r = np.random.default_rng(6)
    X = r.integers(0, 9, (60, 3)).astype(float)
    data, labels = table(X, (X[:, 0] * X[:, 1] > 14).astype(int))
    parameters = {"depth": 2, "pareto": pareto, "leaf_penalty": 0.01, "time_limit": 4.0, "search_seconds": 0.5}
    shown = []
    result = train(
        TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters),
        sink=lambda news, _: shown.append((news.phase, news.leaves, news.incumbent, news.bound)),
    )
    first = [s for s in shown if s[0] == "first trees" and s[2] is not None]
    assert first[0][1] == 1
    assert all(bound is not None for *_, bound in first[1:])
    values = [value for _, _, value, _ in first]
    assert len(set(values)) > 1
    assert values == sorted(values)
    assert values[-1] <= result.certificate.objective + 1e-12


@pytest.mark.parametrize("style", ["svm", "sparse"])
def test_a_cancel_ends_the_drawing_of_a_plane(style):
    r = np.random.default_rng(4)
    Z = r.random((400, 40))
    wanted = Z @ r.normal(size=40)
    order = np.argsort(wanted)
    L, R = order[:200], order[200:]
    separator = Separator(Z)
    widest = separator.plane(L, R)
    asked = []

    def stopped() -> bool:
        asked.append(1)
        return len(asked) > 3

    planes = drawn(Z, L, R, widest, style, separator, np.arange(40), stopped)
    assert planes[-1] is widest
    assert 3 < len(asked) < 7  # uncancelled it asks more often
