"""From a file to what a method trains on or a tree predicts: `read`, `load`, `load_for_model`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from trainer.data.build import LoadReport, build, gaps, suggestion, wrong_words
from trainer.data.cells import LARGEST_EXACT, Cells
from trainer.data.file_bytes import ReadLimits
from trainer.data.raw import TYPED, Detected, RawTable, read, read_csv
from trainer.dtypes import CODE, MISSING_CODE, BoolArray, CodeArray, FloatArray
from trainer.errors import DataError
from trainer.table import MISSING_CATEGORY, Column, ColumnSchema, Kind, Labels, MissingPolicy, Table

UNKNOWN_CODE = (
    -1.0
)  # a category that the model never saw: every test of a category is false for it, so that it goes right

__all__ = [
    "UNKNOWN_CODE", "Detected", "LoadReport", "ModelRows", "RawTable", "ReadLimits", "load", "load_for_model", "read", "read_csv",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ModelRows:
    """Rows of a file under a model's schema.

    `table` has every column of the schema (NaN: missing; `UNKNOWN_CODE`: unknown category). `labels` is None unless the
    target column is in the file; its codes are -1 where the class is missing or unknown to the model. `usable`, bool (n,), is
    False for rows with a gap in a needed column. `unknown` and `missing` count such cells by column.
    """

    table: Table
    labels: Labels | None
    usable: BoolArray
    unknown: Mapping[str, int]
    missing: Mapping[str, int]
    extra_columns: tuple[str, ...]
    absent_columns: tuple[str, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was ignored, unknown or missing, in sentences."""
        out = []
        if self.extra_columns:
            out.append(f"Columns that the model does not know are ignored: {', '.join(self.extra_columns)}.")
        if self.absent_columns:
            out.append(f"Columns that the tree does not use are absent: {', '.join(self.absent_columns)}.")
        for name, count in self.unknown.items():
            out.append(f"Column '{name}': {count} cells have a category that the model does not know; they go right.")
        if not self.usable.all():
            gone = int((~self.usable).sum())
            out.append(
                f"{gone} of {len(self.usable)} rows have an empty cell that the tree needs and get no prediction."
            )
        return tuple(out)


def load(
    path: str | Path,
    *,
    target: str,
    kinds: Mapping[str, Kind] | None = None,
    missing: Mapping[str, MissingPolicy] | None = None,
    default_missing: MissingPolicy = MissingPolicy.DROP,
    units: Mapping[str, str] | None = None,
    special: Mapping[str, Sequence[float]] | None = None,
    ignore: Collection[str] = (),
    delimiter: str | None = None,
    encoding: str | None = None,
    header: bool = True,
    limits: ReadLimits | None = None,
) -> tuple[Table, Labels, LoadReport]:
    """Read a file and build its table, labels and report; see `read` and `build` for the arguments and errors."""
    raw = read(path, delimiter=delimiter, encoding=encoding, header=header, limits=limits)
    return build(
        raw, target=target, kinds=kinds, missing=missing, default_missing=default_missing, units=units, special=special,
        ignore=ignore,
    )  # fmt: skip


def load_for_model(
    path: str | Path,
    schema: Sequence[ColumnSchema],
    *,
    target: str | None = None,
    classes: Sequence[str] = (),
    used: Collection[int] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    limits: ReadLimits | None = None,
) -> ModelRows:
    """Read a file under a model's `schema`; `used` are the columns that the tree needs (None: all of them).

    Raises DataError that names needed columns which are not in the file, and texts in needed numeric columns by line.
    """
    raw = read(path, delimiter=delimiter, encoding=encoding, limits=limits)
    return rows_for_model(raw, schema, target=target, classes=classes, used=used)


def rows_for_model(
    raw: RawTable,
    schema: Sequence[ColumnSchema],
    *,
    target: str | None = None,
    classes: Sequence[str] = (),
    used: Collection[int] | None = None,
    only_used: bool = False,
) -> ModelRows:
    """The same for rows that were read; with `only_used` columns that the tree does not need stay unread (NaN)."""
    absent, extra = check_columns(raw.names, schema, target=target, used=used)
    needed = {schema[j].name for j in (range(len(schema)) if used is None else used)}
    usable = np.ones(len(raw), bool)
    unknown: dict[str, int] = {}
    missing: dict[str, int] = {}
    problems: list[str] = []
    columns = []
    for own in schema:
        if own.name in absent or (only_used and own.name not in needed):
            columns.append(Column(schema=own, values=np.full(len(raw), np.nan)))
            continue
        column, strange, wrong = _read_column(own, raw, own.name in needed)
        columns.append(column)
        problems += wrong
        if strange:
            unknown[own.name] = strange
        if column.missing.any():
            missing[own.name] = int(column.missing.sum())
            if own.name in needed:
                usable &= ~column.missing
    if problems:
        raise several(problems)
    return ModelRows(
        table=Table(columns=tuple(columns), row_numbers=raw.line_numbers),
        labels=_labels(raw, target, classes),
        usable=usable,
        unknown=unknown,
        missing=missing,
        extra_columns=extra,
        absent_columns=absent,
    )


def several(problems: Sequence[str]) -> DataError:
    """The error for places that were found: the first one in words, all of them in `problems`."""
    more = f" ({len(problems)} places are listed.)" if len(problems) > 1 else ""
    return DataError(problems[0] + more, problems=tuple(problems))


def check_columns(
    names: Sequence[str], schema: Sequence[ColumnSchema], *, target: str | None, used: Collection[int] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Columns of the schema that are absent, and names that it does not know; raises DataError where a needed one is absent."""
    needed = {schema[j].name for j in (range(len(schema)) if used is None else used)}
    absent = tuple(c.name for c in schema if c.name not in names)
    lacking = [name for name in absent if name in needed]
    if lacking:
        problems = tuple(f"Column '{name}' is missing.{suggestion(name, names)}" for name in lacking)
        raise DataError(
            f"The file lacks {len(lacking)} of the {len(needed)} columns that the tree needs: "
            f"{', '.join(lacking[:20])}.{suggestion(lacking[0], names)}",
            problems=problems,
        )
    known = {c.name for c in schema}
    return absent, tuple(n for n in names if n != target and n not in known)


def _read_column(own: ColumnSchema, raw: RawTable, needed: bool) -> tuple[Column, int, tuple[str, ...]]:
    """The column under its schema, how many cells have an unknown category, and what is wrong in a needed column."""
    cells_of = raw.column(own.name)
    values = _plain_numbers(own, cells_of)
    if values is not None:
        return Column(schema=own, values=values), 0, ()
    cells = Cells.of(cells_of)
    wrong = wrong_words(own.name, own.kind, cells, raw) if needed else ()
    return *_under_schema(own, cells), wrong


def _plain_numbers(own: ColumnSchema, column: pa.Array) -> FloatArray | None:
    """Typed numbers of a numeric or binary column without the way over text; None where a cell needs a closer look."""
    if own.kind is Kind.CATEGORICAL or not any(test(column.type) for test in TYPED):
        return None
    values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    rest = values[~np.isnan(values)] if column.null_count or np.isnan(values).any() else values
    if not (np.abs(rest) < LARGEST_EXACT).all():  # infinite, or whole numbers that were rounded
        return None
    if own.kind is Kind.BINARY and not ((rest == 0.0) | (rest == 1.0)).all():
        return None
    return values + 0.0


def _under_schema(own: ColumnSchema, cells: Cells) -> tuple[Column, int]:
    """The column of a known schema, and how many cells have an unknown category."""
    if own.kind is not Kind.CATEGORICAL:
        values = cells.floats()
        values[gaps(cells, own.kind)] = np.nan
        return Column(schema=own, values=values[cells.index]), 0
    codes, strange = category_codes(cells.words, own)
    # a word that the model knows as a category is one, even where it could mean 'missing'
    empty = cells.marks & (codes == UNKNOWN_CODE)
    if own.missing is MissingPolicy.CATEGORY and MISSING_CATEGORY in own.categories:
        codes[empty] = own.categories.index(MISSING_CATEGORY)
    else:
        codes[empty] = np.nan
    return Column(schema=own, values=codes[cells.index]), int(cells.counts[strange & ~empty].sum())


def category_codes(words: Sequence[str], own: ColumnSchema) -> tuple[np.ndarray, BoolArray]:
    """The code of each word as float64, `UNKNOWN_CODE` where the schema does not have it, and which those are."""
    place = {word: float(code) for code, word in enumerate(own.categories)}
    codes = np.fromiter((place.get(w, UNKNOWN_CODE) for w in words), np.float64, len(words))
    return codes, codes == UNKNOWN_CODE


def _labels(raw: RawTable, target: str | None, classes: Sequence[str]) -> Labels | None:
    if target is None or target not in raw.names:
        return None
    cells = Cells.of(raw.column(target))
    place = {word: code for code, word in enumerate(classes)}
    codes: CodeArray = np.fromiter((place.get(w, MISSING_CODE) for w in cells.words), CODE, len(cells.words))
    return Labels(name=target, classes=tuple(classes), codes=codes[cells.index])
