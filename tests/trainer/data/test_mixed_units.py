"""Columns in which some numbers have another unit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from trainer.data.inspect_table import inspect
from trainer.data.mixed_units import mixed_units
from trainer.table import Column, ColumnKind, ColumnSchema, Table

N = 400
PLACES = np.arange(N)


def found_in(values, sites=None, name="site"):
    columns = [Column(schema=ColumnSchema(name="v", kind=ColumnKind.NUMERIC), cells=np.asarray(values, np.float64))]
    if sites is not None:
        schema = ColumnSchema(name=name, kind=ColumnKind.CATEGORICAL, categories=("A", "B", "C"))
        columns.append(Column(schema=schema, cells=np.asarray(sites, np.float64)))
    return [(m.rows, m.factor, m.where) for m in mixed_units(Table(columns=tuple(columns), row_numbers=PLACES + 1))]


@pytest.mark.parametrize("factor", [10, 100, 1000])
def test_part_in_another_unit_is_found(factor):
    rng = np.random.default_rng(factor)
    narrow = rng.uniform(40, 100, N)
    wide = rng.lognormal(3, 1, N)
    sites = rng.integers(0, 3, N)
    assert found_in(np.where(PLACES % 2, narrow * factor, narrow)) == [(200, factor, "the larger ones")]
    [(rows, found, _)] = found_in(np.where(PLACES >= 250, wide * factor, wide))
    assert (rows, found) == (150, factor)
    [(rows, found, where)] = found_in(np.where(sites == 1, wide * factor, wide), sites)
    assert (rows, found) == ((sites == 1).sum(), factor)
    assert where in ("where site is B", "the larger ones")


def test_smaller_part_before_a_row_names_the_larger_numbers():
    wide = np.random.default_rng(5).lognormal(3, 1, N)
    assert found_in(np.where(PLACES < 150, wide * 10, wide)) == [(150, 10.0, "before row 151 of the file")]


def test_categories_in_other_unit_are_found_except_one():
    rng = np.random.default_rng(6)
    sites = rng.integers(0, 3, N)
    wide = rng.lognormal(3, 1, N)
    found = found_in(np.where(sites == 0, wide, wide * 10), sites, name="What is sent")
    assert found == [((sites > 0).sum(), 10.0, "where What is sent is not A")]


@pytest.mark.parametrize("seed", range(8))
def test_ordinary_columns_have_one_unit(seed):
    rng = np.random.default_rng(seed)
    sites = rng.integers(0, 3, N)
    for values in (
        rng.lognormal(3, 2, N),
        np.sort(rng.lognormal(3, 2, N)),
        rng.normal(50, 10, N),
        rng.pareto(1, N) + 1,
        np.concatenate([rng.normal(5, 1, N // 2), rng.normal(30, 10, N // 2)]),
        rng.choice([1, 2, 5, 10, 20, 50, 100], N),
    ):
        assert found_in(values, sites) == []


@pytest.mark.parametrize("n", [60, 100, 400])
@pytest.mark.parametrize("seed", range(6))
def test_growing_or_sorted_columns_have_one_unit(n, seed):
    rng = np.random.default_rng(seed)
    for values in (
        np.exp(np.linspace(0, 4.6, n) + rng.normal(0, 0.3, n)),
        np.sort(rng.lognormal(3, 1.4, n)),
        1e6 / np.arange(1, n + 1) ** 1.2,
        np.sort(rng.exponential(100, n))[::-1],
    ):
        assert found_in(values) == []


@pytest.mark.parametrize("seed", range(6))
def test_categories_that_all_differ_have_one_unit(seed):
    """One category may have ten times the numbers of the others by chance."""
    rng = np.random.default_rng(seed)
    sites = rng.integers(0, 3, N)
    for typical in ([1, 5, 22], [2, 10, 45]):
        assert found_in(np.array(typical)[sites] * rng.lognormal(0, 1, N), sites) == []


def test_intake_report_names_the_numbers(tmp_path):
    rng = np.random.default_rng(1)
    kilograms = rng.integers(40, 100, 120)
    frame = pd.DataFrame(
        {"kg": np.where(np.arange(120) % 2, kilograms * 10, kilograms), "y": rng.choice(["a", "b"], 120)}
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    own = next(finding for finding in inspect(tmp_path / "t.csv", target="y") if finding.kind == "mixed_units")
    assert own.figure.startswith("60 of 120 numbers (the larger ones), such as ")
    assert own.mend == {"column": "kg", "role": "ignored"}
