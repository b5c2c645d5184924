"""Columns of small whole numbers are stored in bytes, and nothing else depends on it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.seeds import seeds
from trainer.data.column_statistics import describe_schema
from trainer.data.encoding import Scheme, encode_binary, encode_filled, encode_numeric
from trainer.table import Column, ColumnKind, ColumnSchema, MissingPolicy, Table, fingerprint, narrow, numeric_table


@pytest.mark.parametrize(
    ("values", "fit"),
    [
        ([0.0, 1.0, 255.0], True),
        ([], True),
        ([False, True], True),
        (np.array([0, 255], np.int64), True),
        (np.array([0, 255], np.float32), True),
        ([0.0, 256.0], False),
        ([0.0, -1.0], False),
        ([0.0, 0.5], False),
        ([0.0, -0.0], False),
        ([0.0, np.nan], False),
        ([0.0, np.inf], False),
        ([0.0, 1e300], False),
        (np.array([-1, 255], np.int64), False),
        (np.array([0, 1 << 40], np.uint64), False),
    ],
)
def test_only_whole_numbers_from_0_to_255_become_bytes(values, fit):
    given = np.asarray(values)
    for cells in (narrow(given), *(column.cells for column in numeric_table(given.reshape(-1, 1)).columns)):
        assert (cells.dtype == np.uint8) == fit
        assert np.array_equal(cells, given, equal_nan=True)


def test_a_late_number_keeps_a_column_of_many_rows_as_floats():
    values = np.zeros(100_000)
    values[-1] = 0.5
    assert narrow(values) is values
    assert numeric_table(values.reshape(-1, 1)).columns[0].cells.dtype == np.float64


def _tables(seed):
    """Return a random table whose columns are in bytes, and the same table as float64."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    columns = []
    for j in range(int(rng.integers(1, 5))):
        kind = rng.choice(list(ColumnKind))
        most = {ColumnKind.BINARY: 2, ColumnKind.CATEGORICAL: 4}.get(kind, int(rng.choice([2, 6, 256])))
        schema = ColumnSchema(
            name=f"x{j}",
            kind=kind,
            categories=tuple("abcd") if kind is ColumnKind.CATEGORICAL else (),
            missing=MissingPolicy.LEARN,
            special=(3.0,) if kind is ColumnKind.NUMERIC and rng.random() < 0.3 else (),
        )
        columns.append(Column(schema=schema, cells=rng.integers(0, most, n).astype(np.uint8)))
    in_bytes = Table(columns=tuple(columns), row_numbers=np.arange(1, n + 1))
    return in_bytes, replace(in_bytes, columns=tuple(replace(c, cells=c.values) for c in columns))


@seeds(200)
def test_bytes_are_encoded_and_described_as_floats_are(seed):
    in_bytes, floats = _tables(seed)
    rows = np.random.default_rng(seed).integers(0, len(floats), 9)
    weights = np.random.default_rng(seed).integers(0, 3, len(floats))
    assert fingerprint(in_bytes) == fingerprint(floats)
    assert np.array_equal(in_bytes.matrix(), floats.matrix())
    assert np.array_equal(in_bytes.take(rows).stored_matrix(), floats.take(rows).matrix())
    assert describe_schema(in_bytes.schema, in_bytes.stored_matrix()) == describe_schema(floats.schema, floats.matrix())
    for one, other in zip(in_bytes.columns, floats.columns, strict=True):
        assert np.array_equal(one.distinct, other.distinct)
        assert one.distinct.dtype == one.values.dtype == np.float64
        assert not one.missing.any()
        assert not one.has_missing
    for scheme in (Scheme.QUANTILE_THRESHOLDS, Scheme.QUANTILE_BUCKETS, Scheme.ALL_THRESHOLDS):
        for counted in (None, weights):
            encoding = encode_binary(in_bytes, scheme, 4, counted)
            assert encoding == encode_binary(floats, scheme, 4, counted)
            assert np.array_equal(encoding.bits(in_bytes), encoding.bits(floats))
    for encode in (encode_numeric, encode_filled):
        assert encode(in_bytes) == encode(floats)
        assert np.array_equal(encode(in_bytes).matrix(in_bytes), encode(floats).matrix(floats))
