"""The one-standard-error rule and nested folds equal plain recomputations, also with ties."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.octweb.small_models import small_table
from tests.seeds import seeds
from trainer.data.folds import holdout, stratified_folds
from trainer.errors import ParameterError
from trainer.evaluate import Score, Study, StudyDataset, Variant, choose, honest, run_study
from trainer.training.run import TrainRequest, train

VARIANTS = (
    Variant(label="stump", method="cart", parameters={"depth": 1}),
    Variant(label="deep", method="cart", parameters={"depth": 4}),
    Variant(label="exact", method="exact", parameters={"depth": 2, "leaf_penalty": 0.02}),
)
KINDS = {"stump": (1, 2), "deep": (1, 2), "exact": (1, 0)}


@seeds(50)
def test_chosen_variant_is_the_simplest_within_one_error(seed):
    draw = np.random.default_rng(seed)
    scores = [
        Score(
            label=str(i),
            accuracies=tuple(draw.integers(0, 5, 5) / 4),
            leaves=float(draw.integers(1, 4)),
            columns=int(draw.integers(1, 3)),
            claim=int(draw.integers(0, 3)),
        )
        for i in range(int(draw.integers(1, 7)))
    ]
    found = choose(scores)
    top = max(sum(s.accuracies) / 5 for s in scores)
    assert found.highest.mean == pytest.approx(top)
    error = np.std(found.highest.accuracies, ddof=1) / 5**0.5
    allowed = [s for s in scores if sum(s.accuracies) / 5 >= top - error - 1e-9]
    assert set(found.within) == {s.label for s in allowed}
    order = min((s.leaves, s.columns, s.claim, -round(s.mean, 12)) for s in allowed)
    chosen = found.chosen
    assert (chosen.leaves, chosen.columns, chosen.claim, -round(chosen.mean, 12)) == order


@seeds(50)
def test_chosen_variant_by_cost_is_simplest_within_one_error(seed):
    draw = np.random.default_rng(seed)
    scores = [
        Score(
            label=str(i),
            accuracies=(0.5,) * 5,
            leaves=float(draw.integers(1, 4)),
            costs=tuple(draw.integers(0, 9, 5) / 4),
        )
        for i in range(int(draw.integers(1, 7)))
    ]
    choice = choose(scores)
    least = min(np.mean(s.costs) for s in scores)
    error = min(np.std(s.costs, ddof=1) / 5**0.5 for s in scores if np.mean(s.costs) <= least + 1e-9)
    allowed = [s for s in scores if np.mean(s.costs) <= least + error + 1e-9]
    assert choice.floor == pytest.approx(least + error)
    assert set(choice.within) == {s.label for s in allowed}
    assert choice.chosen.leaves == min(s.leaves for s in allowed)


def test_scores_with_and_without_costs_are_not_compared():
    scores = [Score(label="a", accuracies=(0.5,), leaves=1.0, costs=costs) for costs in ((), (2.0,))]
    with pytest.raises(ParameterError, match="cannot be compared"):
        choose(scores)


@pytest.fixture(scope="module")
def priced():
    """Return a nested study with costs, and its records."""
    table, labels = small_table()
    costs = {"costs": f"{labels.classes[0]}>{labels.classes[1]}=5", "cost_unit": "EUR"}
    variants = [Variant(label=f"depth {d}", method="cart", parameters={"depth": d} | costs) for d in (1, 3)]
    study = Study(
        datasets=[StudyDataset(name="small", table=table, labels=labels)], variants=variants, folds=3, nested=True
    )
    return study, run_study(study)


def test_records_have_the_costs_of_both_folds(priced):
    study, records = priced
    dataset = study.datasets[0]
    fold = stratified_folds(dataset.labels.codes, 3, 0)
    cost = np.ones((len(dataset.labels.classes),) * 2)
    np.fill_diagonal(cost, 0)
    cost[0, 1] = 5
    for record in records:
        inside = np.flatnonzero((fold != record.fold) & (fold != record.second))
        variant = next(v for v in study.variants if v.label == record.variant)
        request = TrainRequest(
            table=dataset.table.take(inside),
            labels=dataset.labels.take(inside),
            method="cart",
            parameters=variant.parameters,
        )
        tree = train(request).tree
        for place, stated in ((record.fold, record.cost), (record.second, record.second_cost)):
            out = np.flatnonzero(fold == place)
            each = cost[dataset.labels.codes[out], tree.predict(dataset.table.take(out).matrix())] if len(out) else None
            assert stated == (None if each is None else pytest.approx(each.sum()))
            if place == record.fold:
                assert record.cost_sums == pytest.approx([each @ each, each.sum(), len(out), len(out)])


def test_nested_estimate_by_cost_chooses_by_cost(priced):
    study, records = priced
    by = {v.label: [r for r in records if r.variant == v.label] for v in study.variants}
    kinds = dict.fromkeys(by, (1, 2))
    estimate = honest(by, kinds, 3, by_cost=True)
    total = 0.0
    for o in range(3):
        scores = []
        for label, own in by.items():
            pairs = [r for r in own if r.second >= 0 and o in (r.fold, r.second)]
            costs = [r.cost / r.n if r.second == o else r.second_cost / r.second_n for r in pairs]
            leaves = float(np.mean([r.leaves for r in pairs]))
            scores.append(Score(label=label, accuracies=(0.0,) * 2, leaves=leaves, costs=tuple(costs)))
        pick = choose(scores).chosen.label
        assert estimate.picks[o] == pick
        total += next(r.cost for r in by[pick] if (r.fold, r.second) == (o, -1))
    assert estimate.cost_per_row == pytest.approx(total / estimate.n)
    assert estimate.cost_interval[0] < estimate.cost_per_row < estimate.cost_interval[1]


def test_nothing_to_choose_from_is_an_error():
    with pytest.raises(ParameterError, match="no scores to choose"):
        choose([])


@pytest.fixture(scope="module")
def nested():
    table, labels = small_table()
    study = Study(
        datasets=[StudyDataset(name="small", table=table, labels=labels)],
        variants=VARIANTS,
        folds=4,
        seed=3,
        test_share=0.2,
        nested=True,
    )
    return study, run_study(study)


@pytest.mark.slow
def test_every_fold_and_every_pair_is_left_out_once(nested):
    _, records = nested
    for variant in VARIANTS:
        own = {(r.fold, r.second) for r in records if r.variant == variant.label}
        assert own == {(f, -1) for f in range(4)} | set(itertools.combinations(range(4), 2))
    assert not any(r.error for r in records)


def test_records_are_those_of_trees_grown_without_these_rows(nested):
    study, records = nested
    table = study.datasets[0].table
    labels = study.datasets[0].labels
    rows, held = holdout(labels.codes, 0.2, 3)
    fold = stratified_folds(labels.codes[rows], 4, 3)
    assert len(held) > 0
    for record in records:
        variant = next(v for v in VARIANTS if v.label == record.variant)
        inside = rows[(fold != record.fold) & (fold != record.second)]
        request = TrainRequest(
            table=table.take(inside), labels=labels.take(inside), method=variant.method, parameters=variant.parameters
        )
        tree = train(request).tree
        for place, correct, n in (
            (record.fold, record.correct, record.n),
            (record.second, record.second_correct, record.second_n),
        ):
            out = rows[fold == place]
            expected = int((tree.predict(table.take(out).matrix()) == labels.codes[out]).sum()) if len(out) else 0
            assert (correct, n) == (expected, len(out))


def test_nested_estimate_chooses_without_the_measuring_fold(nested):
    study, records = nested
    by = {v.label: [r for r in records if r.variant == v.label] for v in VARIANTS}
    estimate = honest(by, KINDS, 4)
    correct = n = 0
    for o in range(4):
        scores = []
        for label, own in by.items():
            inner = []
            leaves = []
            for r in own:
                if r.second < 0 or o not in (r.fold, r.second):
                    continue
                inner.append(r.correct / r.n if r.second == o else r.second_correct / r.second_n)
                leaves.append(r.leaves)
            scores.append(
                Score(
                    label=label,
                    accuracies=tuple(inner),
                    leaves=float(np.mean(leaves)),
                    columns=KINDS[label][0],
                    claim=KINDS[label][1],
                )
            )
        pick = choose(scores).chosen.label
        assert estimate.picks[o] == pick
        outer = next(r for r in by[pick] if (r.fold, r.second) == (o, -1))
        correct = correct + outer.correct
        n = n + outer.n
    assert (estimate.correct, estimate.n) == (correct, n)
    assert estimate.n == len(holdout(study.datasets[0].labels.codes, 0.2, 3)[0])


def test_there_is_no_estimate_while_records_are_missing(nested):
    _, records = nested
    assert honest({"stump": [r for r in records if r.variant == "stump"][:-1]}, KINDS, 4) is None
