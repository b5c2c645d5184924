"""Arrow files: categories that Parquet and Arrow files declare stay categories."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pytest

from trainer.check.recount.table.tables import candidate_readings
from trainer.data.formats.file_bytes import ReadLimits
from trainer.data.formats.read_file import read_table
from trainer.data.formats.staged import read_raw, write_raw
from trainer.data.reader import load, load_for_model
from trainer.errors import DataError
from trainer.table import ColumnKind

N = 60
FRAME = pd.DataFrame(
    {
        "region": pd.Categorical([i % 3 + 1 for i in range(N)]),
        "code": pd.Categorical([f"{i % 4}" for i in range(N)]),
        "colour": pd.Categorical(["rgb"[i % 3] for i in range(N)]),
        "size": [i / 4 for i in range(N)],
        "y": ["pq"[i % 2] for i in range(N)],
    }
)


@pytest.fixture(params=["parquet", "arrow", "lz4"])
def path(request, tmp_path):
    path = tmp_path / f"t.{request.param}"
    if request.param == "parquet":
        FRAME.to_parquet(path)
    else:
        feather.write_feather(FRAME, path, compression="lz4" if request.param == "lz4" else "uncompressed")
    return path


def test_declared_categories_stay_categories(path, tmp_path):
    table, labels, _ = load(path, target="y")
    kinds = {column.name: column.kind for column in table.columns}
    assert [kinds[name] for name in ("region", "code", "colour")] == [ColumnKind.CATEGORICAL] * 3
    assert kinds["size"] is ColumnKind.NUMERIC
    assert table.columns[0].schema.categories == ("1", "2", "3")
    text = tmp_path / "t.csv"
    FRAME.to_csv(text, index=False)
    for rows in (path, text):
        read = load_for_model(rows, table.schema, target="y", classes=labels.classes)
        assert not read.unknown
        assert np.array_equal(read.table.matrix(), table.matrix())
    numbers, _, _ = load(path, target="y", kinds={"region": ColumnKind.NUMERIC})
    assert numbers.columns[0].values[:3].tolist() == [1.0, 2.0, 3.0]


def test_stored_rows_keep_the_declaration(path, tmp_path):
    raw = read_table(path)
    write_raw(raw, tmp_path / "rows.parquet")
    for kept in (read_raw(tmp_path / "rows.parquet"), read_table(tmp_path / "rows.parquet")):
        assert pa.types.is_dictionary(kept.column("region").type)
        assert pa.types.is_string(kept.column("colour").type)


def test_checker_reads_the_same_cells(path):
    pieces, _ = next(candidate_readings(path, ["region", "size", "y"]))
    found = next(pieces)
    assert found[0][:4] == ["1", "2", "3", "1"]
    assert found[1][:3] == ["0", "0.25", "0.5"]


def test_file_of_arrow_is_read_as_one(tmp_path):
    feather.write_feather(FRAME, tmp_path / "t.feather", compression="uncompressed")
    raw = read_table(tmp_path / "t.feather")
    assert (raw.detected.format, raw.place, len(raw)) == ("arrow", "Row", N)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda content: content[:-200], "Arrow file is damaged"),
        (lambda content: b"FEA1" + content, "Feather file of version 1"),
        (lambda content: b"\xff\xff\xff\xff" + content, "Arrow stream"),
    ],
)
def test_damaged_arrow_is_refused(tmp_path, change, words):
    path = tmp_path / "t.arrow"
    feather.write_feather(FRAME, path, compression="uncompressed")
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DataError, match=words):
        read_table(path)


def test_size_of_arrow_is_limited(tmp_path):
    path = tmp_path / "t.arrow"
    feather.write_feather(pd.DataFrame({"a": np.zeros(10**6), "y": np.zeros(10**6)}), path, compression="zstd")
    assert path.stat().st_size < 100_000
    for limits in (ReadLimits(unpacked_bytes=10**6), ReadLimits(rows=1000), ReadLimits(bytes=100)):
        with pytest.raises(DataError, match=r"at most|more than|larger than"):
            read_table(path, limits=limits)


def test_index_of_pandas_in_arrow_is_left_out(tmp_path):
    frame = FRAME.set_axis([i * 7 % 11 for i in range(N)])
    table = pa.Table.from_pandas(frame)
    with pa.ipc.new_file(str(tmp_path / "t.arrow"), table.schema) as file:
        file.write_table(table)
    kept, _, _ = load(tmp_path / "t.arrow", target="y")
    assert "__index_level_0__" not in [column.name for column in kept.columns]
