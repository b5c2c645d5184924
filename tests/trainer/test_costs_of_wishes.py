"""The workbench with costs: enumeration, prices in the unit of the costs, and verified files."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.trainer.check.recount.costs_cases import write_table
from tests.trainer.costs_cases import has_choice, random_case, weighted_costs
from tests.trainer.costs_of_wishes_cases import MANY_BINS, least_with_wishes, session_of, thresholds_of
from trainer.certificate import Status
from trainer.check.recount import verdict, verify
from trainer.registry import editable_ids
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table
from trainer.training.run import save


@pytest.mark.slow
@pytest.mark.parametrize("method", editable_ids())
def test_wishes_keep_the_least_cost_and_are_priced_in_the_unit(method, count, tmp_path):
    for seed in range(3 * count):
        case = random_case(seed, rows=14)
        table, labels, weights, costs, _ = case
        weighted = weighted_costs(table, labels, weights, costs)
        if not has_choice(weighted):
            continue
        rng = np.random.default_rng(seed)
        settings = {"depth": 2} | MANY_BINS[method]
        answers, column = thresholds_of(table)
        j, other = rng.permutation(len(table.columns))[:2].tolist()
        answer = int(rng.integers(len(labels.classes)))
        root = [q for q, c in enumerate(column) if c == j]
        banned = [q for q, c in enumerate(column) if c == other]
        session = session_of(method, case, **settings)
        for wishes, kept in (
            ([f"ask root {table.names[j]}"], {"root": root}),
            ([f"forbid root {table.names[other]}"], {"banned": banned}),
            ([f"ask root {table.names[j]}", f"leaf y {labels.classes[answer]}"], {"root": root, "leaf": ("y", answer)}),
        ):
            monitor = session.monitor()
            completion = session.complete(wishes, monitor)
            least = least_with_wishes(answers, weighted, 2, 0, **kept)
            assert (least is None) == bool(completion.conflict), (seed, wishes)
            if least is None:
                continue
            result = session.result(completion, monitor)
            certificate = result.model.certificate
            rows = np.arange(len(weighted))
            assert sum(weighted[rows, result.tree.predict(table.matrix())]) == least, (seed, wishes)
            assert certificate["status"] == Status.OPTIMAL
            assert certificate["costs"]["least"] == pytest.approx(float(least), abs=1e-9)
            free = least_with_wishes(answers, weighted, 2, 0)
            priced = {w["wish"]: w["price"] * certificate["optimum"]["objective_cost"] for w in certificate["wishes"]}
            if len(wishes) == 1:
                assert priced[wishes[0]] == pytest.approx(float(least - free), abs=1e-6)
            write_table(tmp_path / "rows.csv", table, labels)
            save(result.model, tmp_path / "model.json")
            assert verdict(verify(tmp_path / "model.json", tmp_path / "rows.csv")) == "proved", (seed, wishes)
            certificate["optimum"]["objective_cost"] *= 1.5
            save(result.model, tmp_path / "model.json")
            assert verdict(verify(tmp_path / "model.json", tmp_path / "rows.csv")) == "refuted"


@pytest.mark.parametrize("method", editable_ids())
def test_wish_separates_only_rows_without_cheaper_answer(method, tmp_path):
    """All rows with x0 = 1 cost nothing, so no copy of them has a saving; x0 still has a row on each side."""
    columns = tuple(
        Column(schema=ColumnSchema(name=name, kind=kind), cells=np.array(values))
        for name, kind, values in (
            ("x0", ColumnKind.BINARY, [0.0, 0.0, 0.0, 1.0, 1.0]),
            ("amount", ColumnKind.NUMERIC, [1.0, 2.0, 3.0, 0.0, 0.0]),
        )
    )
    table = Table(columns=columns, row_numbers=np.arange(5))
    labels = Labels(name="y", classes=("a", "b"), codes=np.array([0, 1, 0, 0, 1], np.int32))
    costs = {("a", "a"): "0", ("a", "b"): "2*amount", ("b", "a"): "6*amount", ("b", "b"): "0"}
    session = session_of(method, (table, labels, None, costs, {}), depth=1, **MANY_BINS[method])
    monitor = session.monitor()
    completion = session.complete(["ask root x0"], monitor)
    assert not completion.conflict
    result = session.result(completion, monitor)
    assert result.model.certificate["costs"]["least"] == pytest.approx(8.0)
    write_table(tmp_path / "rows.csv", table, labels)
    save(result.model, tmp_path / "model.json")
    assert verdict(verify(tmp_path / "model.json", tmp_path / "rows.csv")) == "proved"


def test_wishes_with_costs_count_leaves_and_smallest_leaf(count):
    for seed in range(200, 200 + 4 * count):
        case = random_case(seed, rows=16)
        table, labels, weights, costs, _ = case
        weighted = weighted_costs(table, labels, weights, costs)
        if weights is not None or not has_choice(weighted):
            continue
        penalty = Fraction("0.02") if min(weighted.sum(axis=0)) else Fraction(0)
        session = session_of("exact", case, depth=2, min_leaf=3, **MANY_BINS["exact"], leaf_penalty=float(penalty))
        answers, column = thresholds_of(table)
        price = penalty * min(weighted.sum(axis=0))
        root = [q for q, c in enumerate(column) if c == 0]
        least = least_with_wishes(answers, weighted, 2, price, root=root, least=3)
        monitor = session.monitor()
        completion = session.complete(["ask root x0"], monitor)
        assert (least is None) == bool(completion.conflict), seed
        if least is not None:
            stated = session.result(completion, monitor).model.certificate["costs"]
            assert stated["least"] == pytest.approx(float(least), abs=1e-9), seed
