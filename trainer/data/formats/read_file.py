"""Read a table from a CSV, gzip, .xlsx, Parquet or Arrow file."""

from __future__ import annotations

from pathlib import Path

from trainer.data.formats.csv_file import read_csv
from trainer.data.formats.file_bytes import ReadLimits, read_bytes
from trainer.data.formats.parquet_file import is_arrow, is_parquet, read_arrow, read_parquet
from trainer.data.formats.raw import RawTable
from trainer.data.formats.workbook import is_workbook, read_workbook
from trainer.errors import DataError


def read_table(
    path: str | Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    limits: ReadLimits | None = None,
    skip_top: int | None = None,
    skip_bottom: int | None = None,
    sheet: str | None = None,
) -> RawTable:
    """Read a CSV file (also gzipped), a sheet of an .xlsx workbook, a Parquet or an Arrow file; detect what is not given.

    Parameters
    ----------
    path : str or Path
        The file; its first bytes decide its format.
    delimiter, encoding : str, optional
        Of a CSV file, as for `read_csv`.
    header : bool, optional
        False if the first line of a CSV file, or the first row of a sheet, is data. Columns are then called `column 1` and so on.
    limits : ReadLimits, optional
        The largest file and table.
    skip_top, skip_bottom : int, optional
        Lines of a CSV file, or rows of a sheet, above and below the table. If both are None, titles and footers are detected.
    sheet : str, optional
        Name of a worksheet; only for a workbook.

    Returns
    -------
    RawTable

    Raises
    ------
    DataError
        If the file cannot be read, is not a table or exceeds a limit; `problems` lists at most 20 places of a kind.
    """
    limits = limits or ReadLimits()
    path = Path(path)
    if is_parquet(path):
        return read_parquet(path, limits)
    if is_arrow(path):
        return read_arrow(path, limits)
    if is_workbook(path):
        return read_workbook(path, limits, sheet=sheet, header=header, skip_top=skip_top, skip_bottom=skip_bottom)
    if sheet is not None:
        raise DataError(f"Only an .xlsx file has sheets, and '{path.name}' is none. Leave the sheet out.")
    # pass the bytes without a local name, so that they are freed as soon as they are decoded
    return read_csv(
        read_bytes(path, limits),
        delimiter=delimiter,
        encoding=encoding,
        header=header,
        limits=limits,
        skip_top=skip_top,
        skip_bottom=skip_bottom,
    )
