"""Groups and times in training, studies and inner folds; how optimistic random folds are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn import config_context
from sklearn.model_selection import GroupKFold, cross_validate

from trainer.check.recount import verify
from trainer.data.folds import assign_folds, holdout
from trainer.data.reader import load
from trainer.data.share_interval import of_groups, widest, wilson
from trainer.errors import ParameterError
from trainer.evaluate import Study, StudyDataset, Variant, honest, report, run_study
from trainer.evaluate.folded import with_folds
from trainer.evaluate.tables import interval_of
from trainer.sklearn_api.estimator_input import read_groups
from trainer.sklearn_api.estimators import make_classifier
from trainer.table import Labels, RowGroups, RowTimes, Table, numeric_table
from trainer.training.metrics import unseen_accuracy
from trainer.training.run import TrainRequest, save, train

SIMULATIONS = 100


def clustered(rng: np.random.Generator, clusters: int, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, classes and the cluster of each row.

    They have a weak signal, and a mark by which a tree recognises the cluster.
    """
    lean = rng.integers(0, 2, clusters)
    answer = np.where(rng.random(clusters) < 0.7, lean, 1 - lean)
    mark = rng.normal(size=(clusters, 3))
    cluster = np.repeat(np.arange(clusters), rows)
    n = len(cluster)
    y = np.where(rng.random(n) < 0.95, answer[cluster], 1 - answer[cluster]).astype(np.int32)
    X = np.column_stack([lean[cluster], mark[cluster] + 0.02 * rng.normal(size=(n, 3))])
    return X, y, cluster


def table_of(X: np.ndarray, cluster: np.ndarray, *, group: bool = False, time: bool = False) -> Table:
    return replace(
        numeric_table(X),
        groups=RowGroups(column="patient", codes=cluster) if group else None,
        times=RowTimes(column="day", values=np.arange(len(X)) * 1.0) if time else None,
    )


def labels_of(y: np.ndarray) -> Labels:
    return Labels(name="y", classes=("a", "b"), codes=y)


def request(X, y, cluster, *, folds=0, test_share=0.0, depth=6, group=False, time=False, **more) -> TrainRequest:
    return TrainRequest(
        table=table_of(X, cluster, group=group, time=time),
        labels=labels_of(y),
        method="cart",
        parameters={"depth": depth} | more,
        folds=folds,
        test_share=test_share,
    )


# The tests below are about training.


def test_training_reports_groups_times_and_unseen_accuracy():
    X, y, cluster = clustered(np.random.default_rng(0), 40, 10)
    summary = train(request(X, y, cluster, folds=5, test_share=0.25, group=True)).summary
    assert summary["group"] == {"column": "patient"}
    assert "time" not in summary
    assert [fold["groups"] for fold in summary["by_fold"]] == [8] * 5
    unseen = summary["unseen_accuracy"]
    assert (unseen["n"], unseen["groups"]) == (400, 40)
    assert unseen["interval"][0] < unseen["accuracy"] < unseen["interval"][1]
    assert summary["metrics"]["test"]["groups"] == 10


def test_training_without_groups_reports_the_interval_of_rows():
    X, y, cluster = clustered(np.random.default_rng(0), 20, 4)
    unseen = train(request(X, y, cluster, test_share=0.25)).summary["unseen_accuracy"]
    assert tuple(unseen["interval"]) == wilson(unseen["correct"], unseen["n"])
    assert "groups" not in unseen
    assert "unseen_accuracy" not in train(request(X, y, cluster)).summary


def test_trees_of_forward_folds_are_grown_on_earlier_rows_only():
    X, y, cluster = clustered(np.random.default_rng(1), 30, 4)
    result = train(request(X, y, cluster, folds=4, depth=2, time=True))
    folds = assign_folds(y, 4, 0, table_of(X, cluster, time=True))
    for f, nodes in enumerate(result.model.rows["fold_trees"]):
        rows = folds.training(f)
        assert nodes[0]["counts"] == np.bincount(y[rows], minlength=2).tolist()
        assert rows.max() < folds.validation(f).min()


def test_rows_of_a_held_out_group_before_the_cut_are_set_aside():
    X, y, cluster = clustered(np.random.default_rng(1), 30, 5)
    table = table_of(X, np.roll(cluster, 2), group=True, time=True)
    asked = replace(request(X, y, cluster, test_share=0.2), table=table)
    result = train(asked)
    signs = result.model.rows["held_out"]
    assert signs.count("2") == result.summary["set_aside"] > 0
    assert result.summary["n"] == signs.count("0")
    assert result.model.metrics["test"]["n"] == signs.count("1")


def test_class_that_no_training_row_has_is_only_judged():
    """All rows of class b are late, so the trees of the folds never predict b."""
    X = np.arange(40.0)[:, None]
    y = (np.arange(40) >= 30).astype(np.int32)
    result = train(request(X, y, np.arange(40), test_share=0.2, folds=3, depth=2, time=True))
    assert result.model.metrics["test"]["confusion"][1][1] == result.model.metrics["test"]["n"]
    assert result.model.metrics["cross_validation"]["correct"] == 20


@pytest.mark.parametrize("method", ["cart", "exact", "odt", "bivariate"])
def test_inner_folds_obey_groups(method):
    """Pruning and the choice of a topology see no group on both sides, and still work with few groups."""
    X, y, cluster = clustered(np.random.default_rng(2), 6, 8)
    for own in (cluster, np.zeros_like(cluster)):
        asked = replace(
            request(X, y, own, group=True),
            method=method,
            parameters={"depth": 2, "time_limit": 20.0}
            | ({"pruning": "cross-validation"} if method in ("cart", "bivariate") else {}),
        )
        assert train(asked).tree.n_leaves >= 1


def test_estimators_pass_groups_to_inner_folds():
    X, y, cluster = clustered(np.random.default_rng(4), 12, 6)
    options = {"depth": 4, "pruning": "cross-validation"}
    names = np.array([f"p{c}" for c in cluster], dtype=object)
    estimator = make_classifier("cart", **options).fit(X, y, groups=names)
    result = train(replace(request(X, y, cluster, group=True), parameters=options))
    assert [node["counts"] for node in estimator.tree_.to_json()] == [node["counts"] for node in result.tree.to_json()]
    assert estimator.tree_.n_leaves < make_classifier("cart", **options).fit(X, y).tree_.n_leaves
    for wrong in (names[:-1], 3, np.zeros((len(y), 2))):
        with pytest.raises(ValueError, match="Give one value for each row"):
            make_classifier("cart").fit(X, y, groups=wrong)


def test_groups_survive_zero_weights_and_missing_ones_are_single():
    X, y, cluster = clustered(np.random.default_rng(4), 12, 6)
    names = [None if i % 7 == 0 else f"p{c}" for i, c in enumerate(cluster)]
    weights = (np.arange(len(y)) % 5 > 0).astype(float)
    found = read_groups(names, len(y))
    assert found.empty == len([name for name in names if name is None])
    estimator = make_classifier("cart", depth=3, pruning="cross-validation").fit(
        X, y, sample_weight=weights, groups=names
    )
    kept = weights > 0
    table = replace(numeric_table(X[kept]), groups=found.take(kept))
    asked = TrainRequest(
        table=table, labels=labels_of(y[kept]), method="cart", parameters={"depth": 3, "pruning": "cross-validation"}
    )
    assert estimator.tree_.n_leaves == train(asked).tree.n_leaves


def test_saved_estimator_verifies_without_the_group_column(tmp_path):
    X, y, cluster = clustered(np.random.default_rng(4), 12, 6)
    make_classifier("cart", depth=2).fit(X, y, groups=cluster).save(tmp_path / "model.json")
    lines = [",".join([*(repr(float(v)) for v in row), "ab"[c]]) for row, c in zip(X, y, strict=True)]
    (tmp_path / "rows.csv").write_text("x0,x1,x2,x3,class\n" + "\n".join(lines).replace(",a", ",0").replace(",b", ",1"))
    assert "refuted" not in {f.verdict for f in verify(tmp_path / "model.json", tmp_path / "rows.csv")}


def test_scikit_learn_routes_groups_to_fit():
    X, y, cluster = clustered(np.random.default_rng(5), 12, 5)
    with config_context(enable_metadata_routing=True):
        estimator = make_classifier("cart", depth=3, pruning="cross-validation").set_fit_request(groups=True)
        found = cross_validate(estimator, X, y, cv=GroupKFold(3), params={"groups": cluster}, return_estimator=True)
    assert len(found["test_score"]) == 3


# The tests below are about intervals.


def test_agreeing_rows_of_a_group_count_as_one():
    correct = np.array([10.0, 0.0] * 20)
    n = np.full(40, 10.0)
    low, high = of_groups(correct, n)
    narrow = wilson(200, 400)
    assert high - low == pytest.approx(wilson(20, 40)[1] - wilson(20, 40)[0], rel=0.1)
    assert high - low > 2.5 * (narrow[1] - narrow[0])


def test_independent_rows_of_groups_count_nearly_as_rows():
    rng = np.random.default_rng(0)
    correct = rng.binomial(10, 0.7, 200).astype(float)
    low, high = of_groups(correct, np.full(200, 10.0))
    rows = wilson(correct.sum(), 2000)
    assert high - low == pytest.approx(rows[1] - rows[0], rel=0.15)


def test_group_interval_of_extreme_shares_is_bounded():
    assert of_groups(np.array([3.0]), np.array([4.0])) is None
    assert of_groups(np.array([3.0, 0.0]), np.array([4.0, 0.0])) is None
    assert of_groups(np.array([3.0, 2.0]), np.array([4.0, 4.0]), 1) is None
    low, high = of_groups(np.full(40, 5.0), np.full(40, 5.0))
    assert high == 1.0
    assert 0.85 < low < wilson(200, 200)[0]
    low, high = of_groups(np.array([9.0, 1.0]), np.array([10.0, 10.0]))
    assert high - low > 0.9
    many = of_groups(np.ones(5000) * 0.5, np.ones(5000))
    assert many[1] - many[0] < 0.1
    assert widest([None, (0.1, 0.2)]) is None
    assert widest([(0.1, 0.4), (0.1, 0.2)]) == (0.1, 0.4)


# The tests below are about studies.


def study(*, group: bool = False, time: bool = False, **more) -> Study:
    X, y, cluster = clustered(np.random.default_rng(3), 24, 5)
    dataset = StudyDataset(name="noise", table=table_of(X, cluster, group=group, time=time), labels=labels_of(y))
    variants = [Variant(label=f"depth {d}", method="cart", parameters={"depth": d}) for d in (1, 3)]
    return Study(**{"datasets": [dataset], "variants": variants, "folds": 4, "seed": 0} | more)


def test_study_and_training_have_the_same_grouped_folds():
    asked = study(group=True)
    records = run_study(asked)
    dataset = asked.datasets[0]
    result = train(
        TrainRequest(table=dataset.table, labels=dataset.labels, method="cart", parameters={"depth": 1}, folds=4)
    )
    own = [r for r in records if r.variant == "depth 1"]
    crossed = result.model.metrics["cross_validation"]
    assert [r.accuracy for r in own] == crossed["accuracies"]
    assert list(interval_of(own)) == crossed["interval"]
    cell = report(asked, records).cell("noise", "depth 1")
    assert list(cell.interval) == crossed["interval"]
    alone = replace(asked, variants=asked.variants[:1])
    plain = train(TrainRequest(table=dataset.table, labels=dataset.labels, method="cart", parameters={"depth": 1}))
    kept = with_folds(plain.model, alone, own)
    assert kept.metrics["cross_validation"] == crossed
    assert kept.rows["folds"] == result.model.rows["folds"]


@pytest.mark.parametrize("time", [False, True])
def test_nested_folds_leave_groups_and_later_rows_out(time):
    asked = study(group=True, time=time, nested=True, folds=3, test_share=0.2)
    records = run_study(asked)
    dataset = asked.datasets[0]
    rows, test = holdout(dataset.labels.codes, 0.2, 0, dataset.table)
    groups = dataset.table.groups.codes
    assert not set(groups[rows]) & set(groups[test])
    assert not any(r.error for r in records)
    by_variant = {v.label: [r for r in records if r.variant == v.label] for v in asked.variants}
    estimate = honest(by_variant, {v.label: (1, 2) for v in asked.variants}, 3)
    assert len(estimate.picks) == (2 if time else 3)
    assert estimate.interval[0] < estimate.accuracy < estimate.interval[1]


def test_records_of_other_groups_are_not_taken_for_these(tmp_path):
    path = tmp_path / "state.jsonl"
    plain = run_study(study(), path=path)
    lines = len(path.read_text().splitlines())
    grouped = run_study(study(group=True), path=path)
    assert len(path.read_text().splitlines()) == 2 * lines
    assert [r.correct for r in plain] != [r.correct for r in grouped]
    assert run_study(study(group=True), path=path) == grouped


def test_study_refuses_more_folds_than_groups():
    with pytest.raises(ParameterError, match="24 groups, too few for 30 folds"):
        study(group=True, folds=30)


# The tests below measure how optimistic random folds are.


def simulate(seed: int, *, group: bool, time: bool) -> tuple[float, float, tuple[float, float]]:
    """Return the accuracy on new clusters, that of random folds, and the interval of folds by clusters."""
    rng = np.random.default_rng(seed)
    X, y, cluster = clustered(rng, 40, 10)
    plain = train(request(X, y, cluster, folds=5))
    known = train(request(X, y, cluster, folds=5, group=group, time=time))
    new, actual, _ = clustered(rng, 1000, 3)
    truth = float((plain.tree.predict(new) == actual).mean())
    low, high = unseen_accuracy(known.model.metrics)["interval"]
    return truth, unseen_accuracy(plain.model.metrics)["accuracy"], (low, high)


def simulations(count: int, *, group: bool = False, time: bool = False) -> tuple[float, int]:
    """Return by how many points random folds overstate the accuracy on average, and how often the interval contains the truth."""
    found = [simulate(seed, group=group, time=time) for seed in range(count)]
    overstated = 100 * float(np.mean([stated - truth for truth, stated, _ in found]))
    return overstated, sum(low <= truth <= high for truth, _, (low, high) in found)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"group": True}, {"time": True}])
def test_random_folds_flatter_where_rows_depend(options):
    overstated, covered = simulations(8, **options)
    assert overstated > 10
    assert covered >= 7


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"group": True}, {"time": True}])
def test_intervals_hold_the_truth_in_95_of_100(options):
    overstated, covered = simulations(SIMULATIONS, **options)
    assert overstated > 10
    assert covered >= 0.95 * SIMULATIONS


def test_times_in_one_minute_are_ordered_by_seconds(tmp_path):
    path = tmp_path / "rows.csv"
    seconds = [f"{(7 * i) % 40:02}.{'05'[i % 2]}" for i in range(40)]
    rows = "".join(f"2024-01-01 10:00:{second},{i % 3},{'ab'[i % 2]}\n" for i, second in enumerate(seconds))
    path.write_text(f"at,x,class\n{rows}", encoding="utf-8")
    table, labels, _ = load(path, target="class", time="at", ignore=["at"])
    result = train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 1}, test_share=0.25))
    held_out = [i for i, sign in enumerate(result.model.rows["held_out"]) if sign == "1"]
    assert held_out == [i for i in range(40) if float(seconds[i]) >= 30]
    save(result.model, tmp_path / "model.json")
    verdicts = {f.claim: f.verdict for f in verify(tmp_path / "model.json", path)}
    assert verdicts["rows held out"] == "recounted"
