"""Read a sample of a source for a preview."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from trainer.counts.collect import concatenate, take_rows
from trainer.counts.database import QueryGuard
from trainer.counts.opening import is_database, open_source
from trainer.data.formats.raw import RawTable
from trainer.errors import DataError

SAMPLE_ROWS = 10_000
SAMPLE_BYTES = 200_000_000  # limit of a sample; its cells are shown on a page, as those of an upload
SAMPLE_FILES = 8  # of a folder, evenly spaced in the order of their names


def read_sample(
    place: Path | str,
    *,
    query: str | None = None,
    structure: Mapping[str, Any] | None = None,
    guard: QueryGuard | None = None,
    most: int = SAMPLE_ROWS,
) -> RawTable:
    """Return the first rows of a query or file, or of some files of a folder.

    Parameters
    ----------
    place, query, structure, guard
        As for `open_source`.
    most : int
        Largest number of rows.

    Raises
    ------
    DataError
        If the source cannot be read, or the sample is larger than `SAMPLE_BYTES`.
    ParameterError
        If the query is missing, or belongs to no database.
    """
    if query is not None and is_database(place):
        # `open_source` refuses what is not one SELECT, also after this line
        query = f"SELECT * FROM (\n{query.strip().rstrip(';')}\n) AS all_rows LIMIT {most:d}"  # noqa: S608
    with open_source(place, query=query, structure=structure, guard=guard) as source:
        files = min(SAMPLE_FILES, len(source.names))
        parts = []
        for part in sorted({i * len(source.names) // files for i in range(files)}):
            piece = next(source.pieces(first=part), None)
            if piece is not None:
                rows = min(len(piece.rows), -(-most // files))
                parts.append(take_rows(piece.rows, np.arange(rows)))
    sample = concatenate(parts)
    size = sum(column.nbytes for column in sample.columns)
    if size > SAMPLE_BYTES:
        raise DataError(
            f"The first {len(sample):,} rows have {size // 10**6:,} MB, but at most {SAMPLE_BYTES // 10**6:,} MB are possible. "
            "Leave columns with long texts out."
        )
    return sample
