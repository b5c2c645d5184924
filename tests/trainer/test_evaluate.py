"""Studies: the same folds for all, resumption, statistics against SciPy and the paper's printed values, tables."""

from __future__ import annotations

import csv
import io
import json
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import friedmanchisquare

from tests.seeds import seeds
from tests.trainer.evaluate_cases import dataset, records_of, small, variant
from trainer.cli.command import CommandError
from trainer.cli.evaluate import note_failures
from trainer.data.folds import stratified_folds
from trainer.errors import DataError, ParameterError
from trainer.evaluate import Study, StudyDataset, average_ranks, compare, report, run_study
from trainer.evaluate import study as study_module
from trainer.evaluate.groups import MIN_GROUP_ROWS, group_rows
from trainer.evaluate.intervals import of_folds
from trainer.evaluate.study import read_records
from trainer.table import Labels
from trainer.training.run import TrainRequest, train


def test_fold_equals_training_on_the_other_rows():
    study = small(seed=3)
    records = run_study(study)
    data = study.datasets[0]
    fold = stratified_folds(data.labels.codes, 4, 3)
    for record in records:
        chosen = next(v for v in study.variants if v.label == record.variant)
        inside = np.flatnonzero(fold != record.fold)
        outside = np.flatnonzero(fold == record.fold)
        tree = train(
            TrainRequest(
                table=data.table.take(inside),
                labels=data.labels.take(inside),
                method="cart",
                parameters=chosen.parameters,
            )
        ).tree
        right = tree.predict(data.table.take(outside).matrix()) == data.labels.codes[outside]
        assert (record.correct, record.n, record.leaves) == (right.sum(), len(outside), tree.n_leaves)
        most = np.bincount(data.labels.codes[inside]).argmax()
        assert record.base_correct == (data.labels.codes[outside] == most).sum()
    assert [(r.variant, r.fold) for r in records] == [(v, f) for v in ("CART", "Deep") for f in range(4)]


def test_an_interrupted_study_computes_only_what_is_missing(tmp_path, monkeypatch):
    path = tmp_path / "state.jsonl"
    study = small()
    first = run_study(study, path=path)
    lines = path.read_text().splitlines()
    # as if the process had been killed while it wrote a line
    path.write_text("\n".join(lines[:5]) + "\n" + lines[5][:20])
    heard: list[tuple[int, int]] = []
    again = run_study(study, path=path, on_record=lambda record, done, total: heard.append((done, total)))
    assert heard == [(6, 8), (7, 8), (8, 8)]
    assert [r.accuracy for r in again] == [r.accuracy for r in first]
    monkeypatch.setattr(study_module, "_fold", None)  # everything is computed already, so this would fail if called
    renamed = small(datasets=[dataset(name="other name")])
    assert {r.dataset for r in run_study(renamed, path=path)} == {"other name"}


def test_changed_parameter_is_computed_anew(tmp_path):
    path = tmp_path / "state.jsonl"
    run_study(small(), path=path)
    count = len(path.read_text().splitlines())
    run_study(small(variants=[variant(depth=3)]), path=path)
    run_study(small(variants=[variant(depth=3)], seed=1), path=path)
    run_study(small(variants=[variant(depth=3)], folds=3), path=path)
    assert len(path.read_text().splitlines()) == count + 4 + 4 + 3


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "state.jsonl"
    path.write_text('{"dataset": "x"}\n{"dataset": "y"}\n')
    with pytest.raises(DataError, match="Line 1"):
        list(read_records(path))


def test_failed_fold_is_reported_and_retried(tmp_path):
    three = dataset()
    codes = (np.arange(40) % 3).astype(np.int32)
    three = StudyDataset(name="three", table=three.table, labels=Labels(name="y", classes=("a", "b", "c"), codes=codes))
    huge = variant(method="oct", label="OCT", depth=8, solver="highs", time_limit=0)
    path = tmp_path / "state.jsonl"
    study = Study(datasets=[three], variants=[variant(), huge], folds=2)
    monkey = dict(study_module.__dict__)

    def fails(request):
        if request.method == "oct":
            raise DataError("no such tree")
        return monkey["train"](request)

    study_module.train = fails
    study_module._warmed = lambda method: None
    try:
        found = report(study, run_study(study, path=path))
    finally:
        study_module.train = monkey["train"]
        study_module._warmed = monkey["_warmed"]
    assert found.cell("three", "OCT").failed == 2
    assert found.cell("three", "OCT").error == "no such tree"
    assert found.text("three", "OCT", "accuracy") == "failed"
    assert found.comparisons == {}  # there is no data set for which all methods have a result
    assert sum(r.error == "" for r in read_records(path)) == 2
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_jobs_and_threads_change_no_tree(jobs):
    study = small(variants=[variant("Bivariate", "bivariate", depth=2)], threads=(1, 2), folds=3)
    records = run_study(study, jobs=jobs)
    one, two = ([r for r in records if r.threads == t] for t in (1, 2))
    assert [(r.correct, r.leaves) for r in one] == [(r.correct, r.leaves) for r in two]
    assert set(report(study, records).cells[0].seconds) == {1, 2}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"folds": 1}, "from 2 to 50"),
        ({"folds": 41}, "too few for 41 folds"),
        ({"variants": [variant(depth=99)]}, "out of range"),
        ({"variants": [variant(), variant()]}, "same name"),
        ({"datasets": [dataset(), dataset(1)]}, "same name"),
    ],
)
def test_impossible_study_is_refused(changes, words):
    with pytest.raises(ParameterError, match=words):
        small(**changes)


@seeds(40)
def test_friedman_is_that_of_scipy(seed):
    draw = np.random.default_rng(seed)
    values = draw.integers(0, 5 if seed % 2 else 1000, (int(draw.integers(2, 25)), int(draw.integers(3, 7)))).astype(
        float
    )
    comparison = compare([str(j) for j in range(values.shape[1])], values, higher_is_better=False)
    if all(len(set(row)) == 1 for row in values.tolist()):
        assert comparison.p is None
        return
    expected = friedmanchisquare(*values.T)
    assert comparison.chi_square == pytest.approx(expected.statistic)
    assert comparison.p == pytest.approx(expected.pvalue)
    assert sum(comparison.ranks) == pytest.approx(sum(range(1, values.shape[1] + 1)))


def test_statistics_equal_those_of_the_paper():
    """The ranks are 1.4, 2.1 and 2.5 over 20 data sets, so chi-square is 12.4 and p = 0.002.

    Holm is computed by hand.
    """
    rows = [(1, 2, 3)] * 10 + [(1, 3, 2)] * 5 + [(2, 1, 3)] * 2 + [(3, 1, 2)] * 1 + [(3, 2, 1)] * 2
    ranks = np.array(rows, float)
    assert ranks.sum(axis=0).tolist() == [28, 42, 50]
    comparison = compare(["BiDT", "OC1", "DT"], ranks, higher_is_better=False)
    assert comparison.ranks == pytest.approx((1.4, 2.1, 2.5))
    assert comparison.chi_square == pytest.approx(12.4)
    assert comparison.p == pytest.approx(2.0e-3, rel=0.02)
    z = [0.7 * np.sqrt(10), 1.1 * np.sqrt(10)]
    p = [2 * (1 - _phi(v)) for v in z]
    assert comparison.holm[0] is None
    assert comparison.holm[1] == pytest.approx(max(p[0], min(1, 2 * p[1])), rel=1e-6)
    assert comparison.holm[2] == pytest.approx(2 * p[1], rel=1e-6)


def _phi(z: float) -> float:
    from scipy.stats import norm

    return float(norm.cdf(z))


def test_ranks_share_ties_and_know_the_direction():
    values = np.array([[3.0, 1.0, 3.0], [1.0, 2.0, 3.0]])
    assert average_ranks(values, higher_is_better=True).tolist() == [[1.5, 3, 1.5], [3, 2, 1]]
    assert average_ranks(values, higher_is_better=False).tolist() == [[2.5, 1, 2.5], [1, 2, 3]]


def test_tables():
    study = small(datasets=[dataset(), dataset(1, name="more")], folds=2)
    found = report(
        study,
        records_of(
            study, {(d, v): [0.5, 0.7 + 0.2 * (v == "Deep")] for d in ("noise", "more") for v in ("CART", "Deep")}
        ),
    )
    text = found.to_markdown()
    low, high = of_folds(12, 20, 2)
    interval = f"({100 * low:.1f} to {100 * high:.1f})"
    assert f"| noise | 50.0 | 60.0 ± 14.1 {interval} | 70.0 ± 28.3 " in text
    assert "*" in text.split("70.0 ± 28.3")[1].split("|")[0]  # the mark says that a limit ended a fit
    assert "| *average rank* | | *2.00* | *1.00* |" in text
    cell = found.to_json()["results"][0]
    assert (cell["correct"], cell["n"], cell["base_rate"], cell["interval"]) == (12, 20, 0.5, (low, high))
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert len(rows) == 4
    assert float(rows[0]["accuracy"]) == pytest.approx(0.6)
    assert float(rows[0]["seconds_1_threads"]) == 0.5
    assert found.to_json()["comparisons"][""]["accuracy"]["ranks"] == (2.0, 1.0)


@seeds(60)
def test_numeric_groups_have_enough_rows(seed):
    draw = np.random.default_rng(seed)
    values = np.round(draw.normal(size=int(draw.integers(20, 200))), int(draw.integers(1, 4)))
    labels, codes = group_rows(values)
    sizes = np.bincount(codes, minlength=len(labels))
    assert sizes.sum() == len(values)
    if len(np.unique(values)) == len(values):  # without ties, the parts have nearly equal sizes
        assert len(labels) == min(4, max(2, len(values) // MIN_GROUP_ROWS))
    if len(values) >= 2 * MIN_GROUP_ROWS + 10:
        assert sizes.min() >= MIN_GROUP_ROWS or len(labels) == 2


@pytest.mark.parametrize(("failed", "refused"), [((1, 2), False), ((3, 0), False), ((3, 3), True)])
def test_evaluation_fails_only_if_every_fold_failed(failed, refused, capsys):
    cells = [
        SimpleNamespace(variant="exact", dataset=f"table {k}", folds=3, failed=n, error="no memory")
        for k, n in enumerate(failed)
    ]
    expected = pytest.raises(CommandError, match="every fold") if refused else nullcontext()
    with expected:
        note_failures(SimpleNamespace(cells=cells))
    assert f"{failed[0]} of 3 folds failed: no memory" in capsys.readouterr().err


def test_groups_of_ranks_have_their_words():
    few = group_rows(np.array([1.0, 3.0, np.nan]), ("low", "mid", "high"))
    assert (few[0], few[1].tolist()) == (["low", "high", "missing"], [0, 1, 2])
    ranks = tuple("abcdefgh")
    labels, codes = group_rows(np.repeat(np.arange(1.0, 9.0), 20), ranks)
    assert labels == ["at most b", "above b to d", "above d to f", "above f"]
    assert np.bincount(codes).tolist() == [40, 40, 40, 40]
