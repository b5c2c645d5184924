"""The bound from rows in planes equals exact arithmetic and brute force."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.oblique.tables import table
from tests.trainer.oracles.oblique import best_value, separations
from trainer.check.recount import verify
from trainer.check.recount.search.planes import _least_errors
from trainer.check.recount.search.planes import line_separations as checked_separations
from trainer.families.oblique import packing as oblique_packing
from trainer.families.oblique.instance import ObliqueInstance
from trainer.families.oblique.lines import Roots, find_least_errors, line_separations
from trainer.families.oblique.local import LocalSearch
from trainer.families.oblique.packing import Packing, as_integers, find_plane
from trainer.families.oblique.s_oct import SOCT
from trainer.families.oblique.shattering import CutHooks, CutModel, CutOptions
from trainer.milo import SolveOptions, backend
from trainer.milo.lattice import Lattice
from trainer.training.run import TrainRequest, save, train


def flat(seed, most=9):
    """Return distinct points of a small grid in the plane or on a line, and counts of up to three classes."""
    r = np.random.default_rng(seed)
    X = r.integers(0, int(r.integers(2, 6)), (int(r.integers(2, most + 1)), 2))
    if seed % 5 == 0:
        X[:, 1] = 2 * X[:, 0] + 1
    X = np.unique(X, axis=0)
    counts = np.zeros((len(X), int(r.integers(1, 4))), np.int64)
    counts[np.arange(len(X)), r.integers(0, counts.shape[1], len(X))] = 1
    counts[r.integers(0, len(X)), r.integers(0, counts.shape[1])] += int(r.integers(0, 4))
    return X, counts


def solid(seed, most=8):
    """Return points in three columns, one with few values, and counts with many conflicts.

    Some of the points share a plane.
    """
    r = np.random.default_rng(seed)
    X = np.column_stack([r.integers(0, 2, most), r.integers(0, 4, most), r.integers(0, 3, most)])
    if seed % 3 == 0:
        X = np.column_stack([X, X[:, 1] * 25 - 7])
    X = np.unique(X, axis=0)
    counts = np.zeros((len(X), 2), np.int64)
    counts[np.arange(len(X)), X.sum(axis=1) % 2 if seed % 2 else r.integers(0, 2, len(X))] = 1
    counts[r.integers(0, len(X)), r.integers(0, 2)] += 2
    return X, counts


def scaled(X, counts, **more):
    span = np.maximum(X.max(axis=0) - X.min(axis=0), 1)
    return ObliqueInstance(
        Z=(X - X.min(axis=0)) / span,
        counts=counts,
        classes=np.arange(counts.shape[1], dtype=np.int32),
        group=np.arange(len(X)),
        **more,
    )


def as_sets(sides):
    every = frozenset(range(sides.shape[1]))
    one = {frozenset(np.flatnonzero(side).tolist()) for side in sides}
    return {s for side in one for s in (side, every - side) if s and s != every}


@pytest.mark.parametrize("first", range(0, 150, 50))
def test_line_separations_are_complete_and_errors_are_least(first):
    for seed in range(first, first + 50):
        X, counts = flat(seed)
        sides = line_separations(X[:, 0], X[:, 1])
        exact = separations(X)
        assert as_sets(sides) == exact == as_sets(checked_separations([tuple(map(int, p)) for p in X]))
        roots = Roots(sides, counts)
        least = find_least_errors(roots)
        assert list(least.errors) == _least_errors([tuple(map(int, p)) for p in X], counts)
        for t in range(1, 5):
            assert least.errors[t - 1] == counts.sum() - best_value(X, counts, 2, 0, most=t)
        for t, root in enumerate(least.roots, start=2):
            at = roots.nodes(root, t)
            leaves = [np.flatnonzero(at == u) for u in np.unique(at)]
            assert len(leaves) <= t
            made = int(counts.sum() - sum(counts[points].sum(axis=0).max() for points in leaves))
            assert (
                made == least.errors[t - 1] or least.errors[t - 1] < made == least.errors[0]
            )  # or a single leaf was better
            for v, u in ((1, 2), (2, 4), (3, 6)):
                here = np.flatnonzero((at == v) | (at >> 1 == v) | (at >> 2 == v))
                left = frozenset(np.flatnonzero((at == u) | (at >> 1 == u)).tolist())
                # A line that separates all points in this way separates each subset of them, too.
                assert not left or len(left) == len(here) or any(left == way & set(here.tolist()) for way in exact)


@pytest.mark.parametrize("seed", range(4))
def test_neighbours_that_are_ruled_out_change_no_errors(seed):
    """In sets of this size most roots are skipped; the verifier's check tries all."""
    r = np.random.default_rng(seed)
    X = np.unique(r.integers(0, 40, (32, 2)), axis=0)
    r.shuffle(X)
    counts = np.zeros((len(X), 2 + seed % 2), np.int64)
    y = (
        r.integers(0, counts.shape[1], len(X))
        if seed < 2
        else (np.abs(X[:, 0] - X[:, 1]) < 12) ^ (r.random(len(X)) < 0.1)
    )
    counts[np.arange(len(X)), y.astype(int)] = r.integers(1, 4, len(X))
    roots = Roots(line_separations(X[:, 0], X[:, 1]), counts)
    tried = []
    all_errors = roots.errors
    roots.errors = lambda block: tried.extend(block.tolist()) or all_errors(block)
    assert list(find_least_errors(roots).errors) == _least_errors([tuple(map(int, p)) for p in X], counts)
    assert len(tried) == len(set(tried)) < len(roots.sides)
    assert find_least_errors(roots, lambda: True) is None


METHODS = ("cut-h", "cutw-h", "s-oct", "oct-h")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_points_in_one_plane_need_no_search(seed, tmp_path):
    """A third column that combines the other two changes nothing. The verifier counts by other means."""
    r = np.random.default_rng(seed)
    n = int(r.integers(16, 32))
    depth = 1 + seed % 2
    penalty = (0.0, 0.03)[seed % 3 == 0]
    X = r.integers(0, 12, (n, 2)) / 4
    y = r.integers(0, 2 + seed % 2, n)
    X = X if seed % 4 < 2 else np.column_stack([X, 50 - 3 * X[:, 0] + X[:, 1]])
    data, labels = table(X, y)
    points, group = np.unique(X[:, :2], axis=0, return_inverse=True)
    counts = np.zeros((len(points), len(labels.classes)), np.int64)
    np.add.at(counts, (group.ravel(), labels.codes), 1)
    least = _least_errors([tuple(map(int, p)) for p in (4 * points).astype(int)], counts)
    best = max(Fraction(n - e, n) - Fraction(str(penalty)) * t for t, e in enumerate(least[: 1 << depth], start=1))
    parameters = {"depth": depth, "leaf_penalty": penalty, "first_trees": "none", "time_limit": 600}
    for method in METHODS[:3]:
        result = train(TrainRequest(table=data, labels=labels, method=method, parameters=parameters))
        certificate = result.certificate
        assert certificate.bound == pytest.approx(float(best), abs=1e-9)
        assert (certificate.status, certificate.evidence[0]["rounds_of_local_search"]) == ("optimal", 0)
        assert certificate.objective == pytest.approx(float(best), abs=1e-9)
        # the check enumerates all separations, which are the same for each method, so one method is enough
        if method == METHODS[seed % 3]:
            assert_verified(result.model, data, X, y, tmp_path)
    # oct-h claims no optimum here. Its planes keep a distance, so the best tree may not be among its trees.
    parameters |= {"time_limit": 0.5, "search_seconds": 0.1}
    apart = train(TrainRequest(table=data, labels=labels, method="oct-h", parameters=parameters)).certificate
    assert apart.objective <= float(best) + 1e-9


def assert_verified(made, data, X, y, folder):
    """Assert that the check proves the bound and the optimum from the file and the rows alone."""
    model = folder / "model.json"
    rows = folder / "rows.csv"
    save(made, model)
    lines = [",".join([*map(repr, map(float, row)), str(k)]) for row, k in zip(X, y, strict=True)]
    rows.write_text("\n".join([",".join([*data.names, "class"]), *lines]) + "\n")
    verdicts = {f.claim: f.verdict for f in verify(model, rows)}
    assert verdicts["bound"] == verdicts["optimal"] == "proved"


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters", [{"min_leaf": 5}, {"balanced": True}, {"max_leaves": 3}, {"then_fewest": True}, {"pareto": True}]
)
def test_points_in_one_plane_keep_optimum_with_other_settings(parameters, monkeypatch):
    r = np.random.default_rng(3)
    X = r.integers(0, 6, (12, 2)).astype(float)
    y = r.integers(0, 2, 12)
    data, labels = table(X, y)
    request = TrainRequest(
        table=data,
        labels=labels,
        method="cut-h",
        parameters={"depth": 2, "time_limit": 600, "search_seconds": 0.1} | parameters,
    )
    with_roots = train(request).certificate
    monkeypatch.setattr("trainer.families.oblique.presolve.MAX_SET_POINTS", 0)
    monkeypatch.setattr(oblique_packing, "MAX_SET_POINTS", 2)
    without = train(request).certificate
    assert with_roots.status == without.status == "optimal"
    assert with_roots.objective == without.objective
    assert with_roots.leaves == without.leaves or "then_fewest" not in parameters


@seeds(30)
def test_ways_of_wide_and_close_directions(seed):
    r = np.random.default_rng(seed)
    X = np.unique(np.vstack([r.integers(0, 1 << 20, (6, 2)), (1 << 20) - r.integers(0, 3, (4, 2))]), axis=0)
    assert as_sets(line_separations(X[:, 0], X[:, 1])) == separations(X)


def test_planes_are_found_exactly():
    X = np.array([[1, 5, 0.5, 3], [1, 6, 1.5, 4], [1, 8, 3.5, 1], [1, 9, 4.5, 0], [1, 5, 0.5, 1]], float)
    assert find_plane(as_integers(X), X, np.arange(5)) == (1, 3)  # the third column is the second minus 4.5
    X[4, 2] = 0.75
    assert find_plane(as_integers(X), X, np.arange(5)) is None
    X[:, 2:] = X[:, 1:2] * 2
    assert find_plane(as_integers(X), X, np.arange(5)) == (1, -1)
    X[0, 2] = np.pi
    assert find_plane(as_integers(X), X, np.arange(5)) is None


@pytest.mark.parametrize("first", range(0, 50, 25))
def test_no_tree_exceeds_the_bound_of_planes(first):
    helped = 0
    for seed in range(first, first + 25):
        X, counts = solid(seed)
        packed = Packing(X.astype(float), counts, lambda: False, 2 + seed % 2).best()
        used = [p for s in packed for p in s.points.tolist()]
        assert len(used) == len(set(used))
        for depth, kappa, most in ((1, 0, None), (2, Fraction(1, 3), None), (2, 0, 3)):
            plain = scaled(X, counts, depth=depth, kappa=Fraction(kappa), max_leaves=most)
            inst = replace(plain, packed=packed)
            best = best_value(X, counts, depth, kappa, most=most)
            assert best <= inst.ceiling <= plain.ceiling
            helped += inst.ceiling < plain.ceiling
    assert helped > 2  # the bound improves the upper bound in some cases


@seeds(20)
def test_three_questions_on_a_path_are_not_bounded_by_two(seed):
    X = np.arange(8)[:, None] if seed % 2 else np.column_stack([np.arange(8), 3 * np.arange(8)])
    counts = np.eye(2, dtype=np.int64)[np.random.default_rng(seed).integers(0, 2, len(X))]
    packed = Packing(X.astype(float), counts, lambda: False).best()
    for most, kappa in itertools.product((None, 3, 4, 5), (0, Fraction(1, 2))):
        inst = scaled(X, counts, depth=3, kappa=Fraction(kappa), max_leaves=most, packed=packed)
        assert inst.ceiling >= best_value(X, counts, 3, kappa, most=most)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scip", "gurobi"])
@pytest.mark.parametrize("first", range(0, 16, 8))
def test_the_rows_of_planes_change_no_optimum(name, first):
    for seed in range(first, first + 8):
        X, counts = solid(seed, 8)
        inst = scaled(X, counts, depth=1 + seed % 2, kappa=Fraction(seed % 3, 3), min_leaf=1 + seed % 2)
        inst = replace(inst, packed=Packing(X.astype(float), counts, lambda: False, 1 << inst.depth).best())
        lattice = Lattice(kappa=inst.kappa, leaves=1 << inst.depth)
        search = LocalSearch(inst, seed)
        search.run([], enough=inst.ceiling, stopped=lambda: False, most=10)
        best = best_value(X, counts, inst.depth, inst.kappa, min_leaf=inst.min_leaf)
        assert best <= inst.ceiling
        for form in (CutModel(instance=inst, options=CutOptions()), SOCT(inst, CutOptions())):
            assert form.model.violated(form.assignment(search.best)) is None
            outcome = backend(name).solve(form.model, CutHooks(form), SolveOptions(time=60, absolute_gap=lattice.gap))
            assert lattice.floor(outcome.bound) == best


def grid():
    """Return a checkerboard in two columns, with a multiple of the first as a third: too hard for depth two."""
    X = np.array(list(itertools.product(range(5), range(5))), float)
    return np.column_stack([X, 2.5 * X[:, 0] + 1]), ((X[:, 0] + X[:, 1]) % 2).astype(int)


@pytest.mark.parametrize("method", ["cut-h", "oct-h"])
def test_the_bound_is_in_the_certificate_and_is_counted_again(method, tmp_path):
    X, y = grid()
    data, labels = table(X, y)
    parameters = {"depth": 2, "first_trees": "none", "search_seconds": 2, "time_limit": 600, "leaf_penalty": 0.01}
    result = train(TrainRequest(table=data, labels=labels, method=method, parameters=parameters))
    evidence = {e["kind"]: e for e in result.certificate.evidence}
    assert sorted(i for g in evidence["planes"]["groups"] for i in g["rows"]) == list(range(25))
    model = tmp_path / "model.json"
    rows = tmp_path / "rows.csv"
    save(result.model, model)
    lines = [",".join([*data.names, "class"])]
    lines += [",".join([*(repr(float(x)) for x in row), str(c)]) for row, c in zip(X, y, strict=True)]
    rows.write_text("\n".join(lines) + "\n")
    verdicts = {f.claim: f.verdict for f in verify(model, rows)}
    assert verdicts["bound"] == "proved"
    assert (result.certificate.status == "optimal") == (verdicts.get("optimal") == "proved")
    record = json.loads(model.read_text())
    kept = next(e for e in record["certificate"]["evidence"] if e["kind"] == "planes")
    for change in (
        lambda g: g["rows"].append(g["rows"][0]),
        lambda g: g["rows"].append(25),
        lambda g: g["rows"].clear(),
    ):
        group = json.loads(json.dumps(kept["groups"][0]))
        change(group)
        others = [e for e in record["certificate"]["evidence"] if e["kind"] != "planes"]
        changed = record | {
            "certificate": record["certificate"] | {"evidence": [*others, {"kind": "planes", "groups": [group]}]}
        }
        model.write_text(json.dumps(changed))
        assert {f.verdict for f in verify(model, rows) if f.claim == "bound"} == {"cannot be judged"}
    kept["groups"][0]["errors"][1] -= 1
    model.write_text(json.dumps(record))
    assert {f.verdict for f in verify(model, rows) if f.claim == "bound"} == {"refuted"}


@seeds(40)
def test_integer_units_are_exact_decimals_at_any_offset(seed):
    """At 1e9 a thousandth of a unit is many roundings wide.

    Different values have units that differ by the same amount.
    """
    r = np.random.default_rng(seed)
    offset = 10.0 ** r.integers(0, 13) * r.integers(-1, 2)
    decimals = int(r.integers(0, 6))
    column = np.array(
        [float(f"{offset:.0f}") + float(f"{k / 10.0**decimals:.{decimals}f}") for k in r.integers(0, 60, 9)]
    )
    (units,) = as_integers(column[:, None])
    if units is None:
        return
    exact = [Fraction(repr(v)) for v in column.tolist()]
    differences = [e - min(exact) for e in exact]
    scale = {d / int(u) for d, u in zip(differences, units.tolist(), strict=True) if u}
    assert len(scale) <= 1
    assert [u == 0 for u in units.tolist()] == [d == 0 for d in differences]


def test_column_far_from_zero_has_same_best_tree():
    X = np.array(
        [[500000, 5400000.004], [500000, 5400000.001], [500030, 5400000.004], [500010, 5400000.009],
         [500020, 5400000.005], [500020, 5400000.0], [500020, 5400000.005], [500000, 5400000.001]]
    )  # fmt: skip
    y = np.array([1, 1, 1, 1, 1, 0, 0, 1])
    for columns in (X, (X - X.min(axis=0)).round(3)):
        data, labels = table(columns, y)
        parameters = {"depth": 1, "first_trees": "none", "search_seconds": 0}
        result = train(TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters))
        assert (result.certificate.status, result.certificate.objective) == ("optimal", 0.875)
    far, labels = table(np.array([[1e9, 0.0], [1e9 + 0.1, 1], [1e9 + 0.2, 0], [1e9 + 0.3, 1]]), np.array([0, 1, 1, 0]))
    assert (
        train(TrainRequest(table=far, labels=labels, method="cut-h", parameters={"depth": 1})).certificate.objective
        == 0.75
    )


def test_rows_are_separated_as_binary_numbers():
    """The points are on a line as decimals but not as floats, so six rows can be correct instead of five."""
    X = np.array([[float(f"1000000000.{i:03d}"), float(i)] for i in range(7)])
    assert as_integers(X)[0] is None
    data, labels = table(X, np.array([0, 1, 2, 0, 0, 0, 0]))
    for method in ("cut-h", "s-oct"):
        parameters = {"depth": 1, "first_trees": "none", "search_seconds": 0}
        result = train(TrainRequest(table=data, labels=labels, method=method, parameters=parameters))
        assert (result.certificate.status, result.certificate.correct) == ("optimal", 6)


@pytest.mark.parametrize("seed", [11, 35])
def test_undrawable_tree_is_replaced_by_drawable_one(seed):
    """Then there is no proof, but also no limit, and at least a single leaf is returned."""
    r = np.random.default_rng(seed)
    columns = 1e16 + 2 * r.integers(0, 3, 12), r.integers(0, 3, 12) * 1e-300, r.integers(0, 4, 12)
    y = (r.random(12) < 0.7).astype(int)
    data, labels = table(np.column_stack(columns), y)
    parameters = {"depth": 1, "first_trees": "none", "search_seconds": 1, "leaf_penalty": 0.01}
    certificate = train(TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters)).certificate
    assert certificate.correct >= np.bincount(y).max()
    assert certificate.status in ("optimal", "heuristic")


def test_the_search_for_planes_looks_at_the_clock_between_sets(monkeypatch):
    """Thousands of rows form hundreds of sets for each choice of columns."""
    r = np.random.default_rng(1)
    X = r.normal(size=(20_000, 20)).round(4)
    counts = np.zeros((20_000, 2), np.int64)
    counts[np.arange(20_000), r.integers(0, 2, 20_000)] = 1
    tried = 0

    def count(units, X, points):
        nonlocal tried
        tried += 1

    monkeypatch.setattr(oblique_packing, "find_plane", count)
    assert Packing(X, counts, lambda: tried >= 7).best() == ()
    assert tried == 7
