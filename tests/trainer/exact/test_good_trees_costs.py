"""Good trees with costs equal enumeration: counts, filters, ranges, disputed rows and importance."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.trainer.costs_cases import has_choice, random_case, text_of, weighted_costs
from tests.trainer.exact.good_trees_costs_cases import CostedTrees
from tests.trainer.oracles.good_trees import leaves
from trainer.errors import ParameterError
from trainer.training.run import TrainRequest
from trainer.tree.nodes import tree_from_json
from trainer.workbench.good_trees import GoodRequest
from trainer.workbench.requests import WorkbenchSession


def case_of(seed):
    """Return a random case in which all rows have a choice, with session, trees and costs, or None if impossible."""
    table, labels, weights, costs, parameters = random_case(seed, rows=12)
    weighted = weighted_costs(table, labels, weights, costs)
    if not has_choice(weighted):
        return None
    depth = min(2, parameters["depth"])
    least = 2 if seed % 4 == 0 else 1
    penalty = Fraction(str(parameters["leaf_penalty"])) if min(weighted.sum(axis=0)) else Fraction(0)
    asked = {
        "costs": text_of(costs),
        "cost_unit": "EUR",
        "depth": depth,
        "min_leaf": least,
        "leaf_penalty": float(penalty),
    }
    request = TrainRequest(
        table=table,
        labels=labels,
        method="exact",
        weights=weights,
        parameters={**asked, "time_limit": 60, "binarise": "all-thresholds"},
    )
    try:
        session = WorkbenchSession(request)
    except ParameterError:  # a leaf costs more than any tree can save
        return None
    return session, CostedTrees(session, weighted, depth, least, penalty * min(weighted.sum(axis=0)))


def test_good_trees_with_costs_are_those_of_enumeration(count):
    seen = 0
    for seed in range(8 * count):
        case = case_of(seed)
        if case is None:
            continue
        session, every = case
        rng = np.random.default_rng(seed)
        least = min(every.total)
        by_share = rng.random() < 0.5
        slack = str(rng.choice(["0", "0.1", "0.37", "1"]))
        limit = (1 + Fraction(slack)) * least if by_share else least + Fraction(slack)
        names = session.problem.table.names
        must = [str(name) for name in names if rng.random() < 0.15]
        without = [str(name) for name in names if name not in must and rng.random() < 0.15]
        most = int(rng.integers(1, 5)) if rng.random() < 0.3 else None
        request = GoodRequest(
            slack=slack if by_share else None,
            slack_cost=None if by_share else slack,
            must=must,
            without=without,
            max_leaves=most,
            listed=1000,
            disputed=1000,
            sample=5,
        )
        record = session.good_trees(request, session.monitor())
        good = [
            t
            for t, cost in zip(every.trees, every.total, strict=True)
            if cost <= limit
            and {names.index(name) for name in must} <= every.asked(t)
            and not {names.index(name) for name in without} & every.asked(t)
            and (most is None or leaves(t) <= most)
        ]
        assert record["status"] == "complete", seed
        assert record["count"] == len(good), seed
        assert record["optimum_cost"] == pytest.approx(float(least), abs=1e-9)
        assert record["limit_cost"] <= float(limit) + 1e-9
        assert record["cost_unit"] == "EUR"
        said = np.array([every.said(t) for t in good]).reshape(len(good), len(every.costs))
        assert record["answers"] == len({row.tobytes() for row in said})
        cost = [float(sum(every.costs[np.arange(len(row)), row])) for row in said]
        assert sorted(t["cost"] for t in record["trees"]) == pytest.approx(sorted(cost), abs=1e-9)
        if good:
            votes = [np.bincount(column, minlength=every.costs.shape[1]) for column in said.T]
            differ = [row for row, v in enumerate(votes) if v.max() < len(good)]
            assert record["rows"]["depends"] == int(every.weights[differ].sum()), seed
            assert record["rows"]["of"] == int(every.weights.sum())
            stated = {part["row"]: sorted(part["answers"].values()) for part in record["rows"]["listed"]}
            assert stated == {row: sorted(n for n in votes[row].tolist() if n) for row in differ}, seed
            n = int(every.weights.sum())
            for j, name in enumerate(names):
                column = record["columns"][name]
                met = [every.met(t, j) / n for t in good]
                assert (column["asked_least"], column["asked_most"]) == pytest.approx((min(met), max(met)))
                assert column["trees"] == sum(j in every.asked(t) for t in good)
                if len(good) <= 40:
                    lost = [float(every.loss(t, j) / n) for t in good]
                    stated = column["importance_least"], column["importance_most"]
                    assert stated == pytest.approx((min(lost), max(lost)), abs=1e-9), (seed, name)
        seen += bool(good) and len(good) < len(every.trees)
    assert seen > count


@pytest.mark.slow
def test_agreement_and_rates_choose_among_the_trees_of_low_cost(count):
    chosen = 0
    for seed in range(6 * count):
        case = case_of(seed)
        if case is None:
            continue
        session, every = case
        rng = np.random.default_rng(seed)
        problem = session.problem
        free = session.good_trees(GoodRequest(slack="0.5", listed=1000), session.monitor())
        model = free["trees"][int(rng.integers(len(free["trees"])))]
        tree = tree_from_json(model["nodes"], schema=problem.table.schema, classes=problem.labels.classes)
        rows = sorted(rng.permutation(len(every.costs))[:3].tolist())
        lines = ", ".join(str(problem.table.row_numbers[row]) for row in rows)
        wanted = tree.predict(problem.matrix)[rows]
        limit = Fraction("1.5") * min(every.total)
        good = [every.said(t) for t, cost in zip(every.trees, every.total, strict=True) if cost <= limit]
        if 0 not in rows:  # line 0 does not exist, because lines count from 1
            record = session.good_trees(GoodRequest(slack="0.5", agree_rows=lines), session.monitor(), tree)
            assert record["count"] == sum((said[rows] == wanted).all() for said in good), seed
            chosen += record["count"] < free["count"]
        groups = problem.table.columns[0].values
        request = GoodRequest(slack="0.5", difference="0.3", groups="x0", favoured=problem.labels.classes[0])
        record = session.good_trees(request, session.monitor())

        def fair(said, groups=groups, every=every):
            rates = [
                Fraction(int(every.weights[(groups == g) & (said == 0)].sum()), int(every.weights[groups == g].sum()))
                for g in np.unique(groups)
            ]
            return max(rates) - min(rates) <= Fraction("0.3")

        assert record["count"] == sum(map(fair, good)), seed
    assert chosen


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        (GoodRequest(slack_rows="1"), "slack_rows"),
        (GoodRequest(slack="0.1", recalls={"a": "0.5"}), "recalls"),
        (GoodRequest(slack="0.1", difference="0.1", groups="x0", rate="opportunity"), "rate"),
    ],
)
def test_class_count_constraints_are_refused_with_costs(request_, name):
    session, _ = next(filter(None, map(case_of, range(20))))
    with pytest.raises(ParameterError) as refused:
        session.good_trees(request_, session.monitor())
    assert list(refused.value.errors) == [name]


def test_an_amount_needs_costs():
    table, labels, _, _, _ = random_case(1)
    session = WorkbenchSession(TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": 1}))
    with pytest.raises(ParameterError, match="it needs costs of answers"):
        session.good_trees(GoodRequest(slack_cost="1"), session.monitor())
