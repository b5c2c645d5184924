"""Profiles equal counts by hand, and stored tables come back unchanged."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.seeds import seeds
from trainer.data.formats.store import load_parquet, save_parquet
from trainer.data.profile import OTHER, profile
from trainer.errors import DataError
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table, fingerprint


def random_table(seed: int) -> tuple[Table, Labels]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    k = int(rng.integers(1, 4))
    columns = []
    for j in range(int(rng.integers(1, 4))):
        kind = rng.choice([ColumnKind.NUMERIC, ColumnKind.CATEGORICAL, ColumnKind.BINARY])
        top = 2 if kind == ColumnKind.BINARY else int(rng.integers(1, 18))
        values = rng.integers(0, top, n).astype(float)
        if kind == ColumnKind.NUMERIC:
            values = values / 4 - 1
        if rng.random() < 0.5:
            values[rng.random(n) < 0.2] = np.nan
        categories = tuple(f"v{c}" for c in range(top)) if kind == ColumnKind.CATEGORICAL else ()
        columns.append(
            Column(schema=ColumnSchema(name=f"c{j}", kind=ColumnKind(kind), categories=categories), cells=values)
        )
    labels = Labels(name="y", classes=tuple("abc"[:k]), codes=rng.integers(0, k, n).astype(np.int32))
    return Table(columns=tuple(columns), row_numbers=np.arange(1, n + 1)), labels


def best_cut_by_trying(column: Column, y) -> int:
    values = column.values
    gone = column.missing
    masks = [np.ones(len(values), bool)]
    for v in set(values[~gone].tolist()):
        masks += [values == v] if column.kind is ColumnKind.CATEGORICAL else [values <= v, (values <= v) | gone]
    if column.kind is not ColumnKind.CATEGORICAL:
        masks.append(gone)
    return max(sum(max(Counter(y[m].tolist()).values(), default=0) for m in (mask, ~mask)) for mask in masks)


@seeds(150)
def test_profile_agrees_with_counting(seed):
    table, labels = random_table(seed)
    found = profile(table, labels)
    groups = defaultdict(Counter)
    for row, y in zip(table.matrix(), labels.codes, strict=True):
        groups[tuple("?" if np.isnan(v) else v for v in row)][int(y)] += 1
    n = len(table)
    assert found.error_floor == pytest.approx(1 - sum(max(g.values()) for g in groups.values()) / n)
    assert found.duplicate_rows == n - sum(len(g) for g in groups.values())
    assert found.conflicting_rows == sum(sum(g.values()) for g in groups.values() if len(g) > 1)
    assert found.baseline == max(Counter(labels.codes.tolist()).values()) / n
    for column, own in zip(table.columns, found.columns, strict=True):
        values = column.values[~column.missing]
        assert round(own.cut_accuracy * n) == best_cut_by_trying(column, labels.codes)
        assert own.histogram.sum() == len(values)
        assert own.missing + len(values) == n
        assert own.distinct == len(set(values.tolist()))
        if own.cut is not None:
            assert (values <= own.cut).any()
            assert (values > own.cut).any()
        if own.edges and len(own.histogram) > 1:
            assert own.histogram.sum(1).tolist() == np.histogram(values, own.edges)[0].tolist()


def test_many_categories_are_summed_up():
    values = np.repeat(np.arange(30.0), np.arange(1, 31))
    schema = ColumnSchema(name="k", kind=ColumnKind.CATEGORICAL, categories=tuple(f"v{i}" for i in range(30)))
    labels = Labels(name="y", classes=("a", "b"), codes=(np.arange(len(values)) % 2).astype(np.int32))
    own = profile(Table(columns=(Column(schema=schema, cells=values),)), labels).columns[0]
    assert own.bars == (*(f"v{i}" for i in range(29, 17, -1)), OTHER)
    assert own.histogram[-1].sum() == sum(range(1, 19))


@seeds(20)
def test_stored_tables_come_back_exactly(tmp_path, seed):
    table, labels = random_table(seed)
    own = labels if seed % 2 else None
    digest = save_parquet(table, own, tmp_path / "t.parquet")
    back, back_labels = load_parquet(tmp_path / "t.parquet")
    assert back.schema == table.schema
    assert np.array_equal(back.matrix(), table.matrix(), equal_nan=True)
    assert back.row_numbers.tolist() == table.row_numbers.tolist()
    assert fingerprint(back, back_labels) == digest == fingerprint(table, own)


def test_a_changed_file_is_refused(tmp_path):
    table, labels = random_table(3)
    path = tmp_path / "t.parquet"
    save_parquet(table, labels, path)
    stored = pq.read_table(path)
    other = np.array(stored.column("0").to_numpy())
    other[0] = 77.0
    pq.write_table(stored.set_column(0, "0", [other]), path)
    with pytest.raises(DataError, match="content"):
        load_parquet(path)
    path.write_bytes(b"PAR1 nothing")
    with pytest.raises(DataError, match="damaged"):
        load_parquet(path)
