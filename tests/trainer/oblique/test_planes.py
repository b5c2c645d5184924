"""Hyperplane trees: sparse hyperplanes, the frontier of sizes, and drawing."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.trainer.oblique.tables import rows_of, table
from tests.trainer.oracles.oblique import best_value, separations
from trainer.families.oblique import drawing
from trainer.families.oblique.refit import candidate_planes
from trainer.families.oblique.separable import Separator
from trainer.training.run import TrainRequest, train
from trainer.tree.nodes import tree_from_json


def test_drawing_uses_remaining_time_and_reports_lack_of_it(monkeypatch):
    monkeypatch.setitem(drawing.DRAWING_BUDGETS, "sparse", (0.9, 60.0))  # 13 s are enough on a busy machine, too
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


def test_one_separating_hyperplane_is_found_without_search():
    r = np.random.default_rng(2)
    X = r.normal(size=(3000, 30)).round(4)
    data, labels = table(X, (X @ r.normal(size=30) > 0).astype(int))
    parameters = {"depth": 1, "first_trees": "none", "search_seconds": 0, "time_limit": 600}
    result = train(TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters)).certificate
    assert (result.status, result.correct, result.solver) == ("optimal", 3000, "octweb")


def test_frontier_starts_with_all_methods_and_reports_its_trees():
    r = np.random.default_rng(1)
    X = r.normal(size=(150, 4)).round(3)
    data, labels = table(X, ((X[:, 1] - X[:, 3] > 0) ^ (r.random(150) < 0.1)).astype(int))
    reports = []
    parameters = {"depth": 1, "pareto": True, "time_limit": 4, "search_seconds": 1}
    request = TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters)
    result = train(request, sink=lambda progress, draft: reports.append(progress))
    few = {e["kind"]: e["points"] for e in result.certificate.evidence}["coefficient-frontier"]
    stump = train(TrainRequest(table=data, labels=labels, method="cart", parameters={"depth": 1})).certificate
    assert few[0]["coefficients"] == 0
    assert few[0]["proved"]
    one = next(p for p in few if p["coefficients"] == 1)
    assert one["correct"] >= stump.correct
    assert all(p["bound"] >= p["correct"] for p in few)
    values = [p.incumbent for p in reports if p.incumbent is not None]
    assert len(values) > 2
    assert values[-1] == pytest.approx(result.certificate.objective)
    assert any(p.bound is not None for p in reports[:-1])


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


def test_sparse_style_has_fewest_columns_of_equally_good_trees():
    # separates the classes, but with a narrow margin
    one = np.array([0.498, 0.3, 0.1, 0.499, 0.501, 0.6, 0.9, 0.502, 0.0, 1.0])
    other = np.array([0, 0.55, 0.2, 0, 1, 0.5, 0.9, 1, 0, 1])
    y = (one > 0.5).astype(int)
    data, labels = table(np.column_stack([one, other]), y)
    for style, used in (("sparse", 1), ("margin", 2)):
        parameters = {"depth": 1, "hyperplanes": style, "first_trees": "none"}
        result = train(TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters))
        assert (result.certificate.correct, len(result.tree.used_columns)) == (10, used)
        assert style == "margin" or 0.499 < result.tree.branches[0].split.threshold < 0.501
    # A checkerboard of four fields: two splits on single columns suffice, or hyperplanes that use both.
    r = np.random.default_rng(1)
    X = r.random((80, 2))
    X = X[(np.abs(X - 0.5) > 0.02).all(axis=1)]
    data, labels = table(X, (X[:, 0] > 0.5) ^ (X[:, 1] > 0.5))
    coefficients = {}
    for style in ("margin", "sparse"):
        parameters = {"depth": 2, "hyperplanes": style, "first_trees": "none", "time_limit": 600}
        result = train(TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters))
        assert result.certificate.correct == len(data)
        coefficients[style] = result.certificate.evidence[0]["coefficients"]
    assert coefficients["sparse"] == 3 < coefficients["margin"]


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
    """Return the most correct rows for each number of coefficients, over all trees."""
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


@pytest.mark.slow
def test_coefficient_points_reach_oracle_mostly_and_never_exceed():
    met = 0
    for seed in range(6):
        r = np.random.default_rng(seed)
        X = r.integers(0, 4, (11, 2))
        y = r.integers(0, 2 + seed % 2, 11)
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


def test_frontier_keeps_limit_and_points_during_drawing():
    r = np.random.default_rng(3)
    data, labels = table(r.normal(size=(300, 30)).round(3), r.integers(0, 2, 300))
    parameters = {"depth": 2, "pareto": True, "search_seconds": 0.2, "time_limit": 1.0, "first_trees": "cart"}
    result = train(TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters))
    assert result.certificate.status == "time_limit"
    assert result.certificate.seconds < 100  # without a limit it would take hours
    points = {e["kind"]: e["points"] for e in result.certificate.evidence}
    assert max(p["correct"] for p in points["leaf-frontier"]) == result.certificate.correct
    assert points["coefficient-frontier"]
    still = next(e["unsettled"] for e in result.certificate.evidence if e["kind"] == "leaf-frontier")
    bounds = [p["bound"] for p in sorted([*points["leaf-frontier"], *still], key=lambda p: p["leaves"])]
    assert bounds == sorted(bounds)  # no smaller tree may have a larger bound than a larger tree


@pytest.mark.parametrize("style", ["svm", "sparse"])
def test_cancel_interrupts_drawing_of_a_plane(style):
    r = np.random.default_rng(4)
    Z = r.random((400, 40))
    wanted = Z @ r.normal(size=40)
    order = np.argsort(wanted)
    L = order[:200]
    R = order[200:]
    separator = Separator(Z)
    widest = separator.plane(L, R)
    asked = []

    def stopped() -> bool:
        asked.append(1)
        return len(asked) > 3

    planes = candidate_planes(Z, L, R, widest, style, separator, np.arange(40), stopped)
    assert planes[-1] is widest
    assert 3 < len(asked) < 7  # without cancelling, it asks more often
