"""Convert data frames and arrays to raw tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from trainer.data.formats.parquet_file import PARQUET, parquet_column
from trainer.data.formats.raw import RawTable
from trainer.errors import DataError, list_names


def raw_rows(X: Any) -> tuple[RawTable, list[str]]:
    """Return the rows of a frame or an array, and the names of its columns with declared categories."""
    import narwhals as nw

    named = [str(name) for name in getattr(X, "columns", ())]
    if twice := sorted({name for name in named if named.count(name) > 1}):
        raise DataError(f"Several columns are called {list_names(twice)}. Give each column a name of its own.")
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        values = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
        if values.ndim != 2:
            raise DataError(
                f"X needs two dimensions, but has {values.ndim}. Give one row for each case, and one column for each feature."
            )
        names = [f"x{j}" for j in range(values.shape[1])]
        return _raw_table(names, [arrow_cells(column) for column in values.T]), []
    columns = [frame_column(series) for series in frame.iter_columns()]
    declared = [str(s.name) for s in frame.iter_columns() if s.dtype in (nw.Categorical, nw.Enum)]
    return _raw_table([str(name) for name in frame.columns], columns), declared


def frame_column(series: Any) -> pa.Array:
    """Return a narwhals series as a column of a raw table."""
    native = series.to_native()
    if type(getattr(native, "dtype", None)).__name__ == "SparseDtype":
        return arrow_cells(native.sparse.to_dense().to_numpy())
    try:
        column = series.to_arrow()
        if pa.types.is_decimal(column.type):
            return column.cast(pa.float64())
    except (pa.ArrowException, TypeError, ValueError):  # the column holds objects of several types
        return arrow_cells(series.to_list())
    return parquet_column(pa.chunked_array([column]))


def arrow_cells(cells: Sequence[Any] | np.ndarray) -> pa.Array:
    """Convert cells to Arrow. NumPy arrays of numbers or booleans keep their type, floats become float64, all others become text."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf":
        return pa.array(cells.astype(np.float64) if cells.dtype.kind == "f" else cells, from_pandas=True)
    empty = [cell is None or (isinstance(cell, float) and cell != cell) for cell in cells]
    return pa.array(
        [None if is_empty_cell else str(cell) for is_empty_cell, cell in zip(empty, cells, strict=True)], pa.string()
    )


def _raw_table(names: Sequence[str], columns: Sequence[pa.Array]) -> RawTable:
    if not columns or not len(columns[0]):
        raise DataError("The table has no row or no column. Give a table with both.")
    return RawTable(
        names=tuple(names), columns=tuple(columns), line_numbers=np.arange(1, len(columns[0]) + 1), detected=PARQUET
    )
