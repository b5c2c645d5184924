"""From a file to what a method trains on or a tree predicts: `read`, `load`, `load_for_model`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from trainer.data.build import LoadReport, build, check_name, gaps, suggestion, wrong_words
from trainer.data.dependence import check_dependence, dependence_notes, with_dependence
from trainer.data.formats.csv_file import read_csv
from trainer.data.formats.file_bytes import ReadLimits
from trainer.data.formats.raw import TYPED, DetectedFormat, RawTable
from trainer.data.formats.read_file import read_table
from trainer.data.formats.workbook import is_workbook, sheet_names
from trainer.data.parsing import EVERY, ColumnParsing, ParsingChoices, reading_of
from trainer.data.parsing.alike import Spellings
from trainer.data.parsing.cells import LARGEST_EXACT, Cells
from trainer.data.parsing.codes import check_meanings
from trainer.data.parsing.infer import places
from trainer.data.row_weights import weight_notes, with_weights
from trainer.dtypes import CODE, MISSING_CODE, BoolArray, CodeArray, FloatArray
from trainer.errors import DataError, list_names
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table, UnknownPolicy, with_unknown
from trainer.tree.numbers import column_number, count_words

UNKNOWN_CODE = (
    -1.0
)  # a category that the model never saw: every test of a category is false for it, so that it goes right

NOT_TRAINED = "a category that training did not have; the contract of the table refuses it"

__all__ = [
    "UNKNOWN_CODE",
    "ColumnParsing",
    "DetectedFormat",
    "LoadReport",
    "ModelRows",
    "ParsingChoices",
    "RawTable",
    "ReadLimits",
    "build_as_read",
    "load",
    "load_for_model",
    "read_csv",
    "read_for_model",
    "read_table",
    "reading_of",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ModelRows:
    """Rows of a file under a model's schema.

    `table` has every column of the schema (NaN: missing; `UNKNOWN_CODE`: unknown category). `labels` is None unless the
    target column is in the file; its codes are -1 where the class is missing or unknown to the model. `usable`, bool (n,), is
    False for rows with a gap in a needed column that refuses gaps. `unknown` and `missing` count such cells by column,
    `respelled` cells with another spelling of a category; `unknown_words` has the words that are unknown.
    """

    table: Table
    labels: Labels | None
    usable: BoolArray
    unknown: Mapping[str, int]
    missing: Mapping[str, int]
    extra_columns: tuple[str, ...]
    absent_columns: tuple[str, ...]
    unknown_words: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    respelled: Mapping[str, int] = field(default_factory=dict)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was ignored, unknown or missing, in sentences."""
        out = []
        if self.extra_columns:
            out.append(f"Columns that the model does not know are ignored: {', '.join(self.extra_columns)}.")
        if self.absent_columns:
            out.append(f"Columns that the tree does not use are missing: {', '.join(self.absent_columns)}.")
        for name, count in self.unknown.items():
            out.append(unknown_words(name, count))
        if not self.usable.all():
            out.append(empty_words(int((~self.usable).sum()), len(self.usable)))
        return tuple(out)


def unknown_words(column: str, cells: int) -> str:
    """What happens to `cells` with a category that is not in the schema."""
    have = "1 cell has" if cells == 1 else f"{cells:,} cells have"
    return f"Column '{column}': {have} a category that the model does not know; every question about it is answered with no."


def empty_words(gone: int, rows: int) -> str:
    """What happens to `gone` of `rows` rows."""
    have, get = ("row has", "it gets") if gone == 1 else ("rows have", "they get")
    return f"{gone:,} of {rows:,} {have} an empty cell in a column that the tree needs, so {get} no prediction."


def empty_cell_notes(answers: int, unseen: int, columns: Collection[str]) -> list[str]:
    """How many answers rest on an empty cell, and how many of them on a side that no training row took, in these columns."""
    notes = []
    if answers:
        notes.append(f"{count_words(answers, 'answer')} {'rests' if answers == 1 else 'rest'} on an empty cell.")
    if unseen:
        notes.append(
            f"{count_words(unseen, 'answer')} used a side for empty cells that training never saw: {list_names(sorted(columns))}."
        )
    return notes


def outside_words(column: ColumnSchema, cells: int) -> str:
    """Say that `cells` of a column lie outside its training range."""
    assert column.range is not None
    lie = "1 value lies" if cells == 1 else f"{cells:,} values lie"
    low, high = (column_number(column.name, end) for end in column.range)
    return f"Column '{column.name}': {lie} outside the training range, {low} to {high}."


def load(
    path: str | Path,
    *,
    target: str,
    delimiter: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    limits: ReadLimits | None = None,
    given: ParsingChoices | None = None,
    reading: ColumnParsing | None = None,
    **options: Any,
) -> tuple[Table, Labels, LoadReport]:
    """Read a file and build its table, labels and report; see `read`, `build_as_read` and `build` for the arguments and errors.

    `given` is what a person said about how it is read; a `reading` of earlier is repeated as it was, and nothing is guessed.
    """
    given = given or ParsingChoices()
    given = replace(
        given,
        delimiter=delimiter or given.delimiter,
        encoding=encoding or given.encoding,
        header=given.header if header is None or header else False,
    )
    earlier = reading.given.structure if reading is not None else {}
    earlier |= {"sheet": known_sheet(path, earlier.get("sheet"))}
    said = {name: value for name, value in given.structure.items() if value is not None}
    raw = read_table(path, limits=limits, **earlier | said)
    return build_as_read(raw, reading or reading_of(raw, given), target=target, **options)


def known_sheet(path: str | Path, sheet: str | None) -> str | None:
    """Return the sheet if the file is a workbook that has it."""
    if sheet is None or not is_workbook(Path(path)):
        return None
    return sheet if sheet in sheet_names(Path(path)) else None


def build_as_read(
    raw: RawTable,
    reading: ColumnParsing,
    *,
    target: str,
    kinds: Mapping[str, ColumnKind] | None = None,
    units: Mapping[str, str] | None = None,
    special: Mapping[str, Sequence[float]] | None = None,
    unknown: Mapping[str, UnknownPolicy] | None = None,
    meanings: Mapping[str, Mapping[str, str]] | None = None,
    ignore: Collection[str] = (),
    mentions: str = "",
    group: str = "",
    time: str = "",
    weight: str = "",
    **options: Any,
) -> tuple[Table, Labels, LoadReport]:
    """`build` for the rows as the reading has them; raises DataError for what the reading leaves open in a column that is used.

    `unknown` says by column, "" for all, what prediction does with a category that training did not have; `meanings` what special values mean, by column and number. Columns are named as they come out of the reading; in `ignore` also as they are in the file. An identifier that the text
    `mentions` names is not left out, nor is a column that was made from dates. The columns `group` and `time` of the file, which
    may be ignored, say which rows belong together and how they follow each other; no question asks about the group. The column `weight` says how
    much each row counts; no question asks it, and rows of weight 0 are left out.
    """
    check_name(target, raw.names, "target")
    unknown = dict(unknown or {})
    check_dependence(raw.names, target=target, group=group, time=time, weight=weight)
    ignore = [*ignore, *(name for name in (group, weight) if name and name not in ignore)]
    own = reading.for_target(target).without(
        name for name, kind in (kinds or {}).items() if kind == ColumnKind.CATEGORICAL
    )
    gone = {name for name in ignore if name in raw.names and name != target}
    own.ask(name for name in raw.names if name not in gone)
    split = {name for name in gone if own.names([name]) != (name,)}  # dates that are left out as a whole
    plain = own.apply(_drop_columns(raw, split), target=target, needed=set(own.names(raw.names)) - gone)
    names = [name for name in plain.names if name != target and name not in gone]
    named = [name for name in names if name not in raw.names or _is_mentioned(name, mentions)]
    table, labels, report = build(
        plain,
        target=target,
        kinds=own.given.schema_kinds(names) | dict(kinds or {}),
        units={name: unit for name, unit in own.units().items() if name in names} | dict(units or {}),
        ignore=[name for name in ignore if name not in split],
        special=dict.fromkeys(named, ()) | dict(special or {}),  # a column that is named stays
        **options,
    )
    for name in unknown.keys() - {EVERY, *own.names(raw.names)}:  # a column that is left out may be named
        check_name(name, names)
    explained = meanings or {}
    schema = tuple(
        replace(c, meanings=check_meanings(explained.get(c.name, {}), c.special, c.name)) for c in table.schema
    )
    table = table.with_schema(with_unknown(schema, unknown))
    kept = own.for_model(target, table.names)
    table = with_dependence(replace(table, reading=kept), raw, reading, group=group, time=time)
    table, labels = with_weights(table, labels, raw, reading, weight)
    notes = (*raw.detected.notes, *own.notes_of([*names, target]), *dependence_notes(table), *weight_notes(table))
    return table, labels, replace(report, reading_notes=notes)


def _is_mentioned(name: str, text: str) -> bool:
    """Return whether a text names a column, as a word of its own."""
    return bool(text) and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _drop_columns(raw: RawTable, names: Collection[str]) -> RawTable:
    pairs = [(name, column) for name, column in zip(raw.names, raw.columns, strict=True) if name not in names]
    return replace(raw, names=tuple(name for name, _ in pairs), columns=tuple(column for _, column in pairs))


def read_for_model(
    path: str | Path,
    reading: ColumnParsing,
    needed: Collection[str],
    *,
    target: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    sheet: str | None = None,
    limits: ReadLimits | None = None,
) -> RawTable:
    """Read a file for a model that needs the columns `needed`.

    The file is read as it shows itself. If that does not lead to these columns, it is read as the training file was.
    `header=False` says that its first line is a row. Of a workbook the `sheet` is read, or the one of the training if it is there.
    """
    said = reading.given.structure
    trained_sheet = said.pop("sheet")
    sheet = sheet or known_sheet(path, trained_sheet)
    if header is False and not reading.width:
        raise DataError(
            f"The model reads columns by their names. Add a header line with {list_names(sorted(needed), 12)}."
        )
    silent = all(value is None for value in said.values())
    try:
        raw = read_table(path, delimiter=delimiter, encoding=encoding, header=header, sheet=sheet, limits=limits)
        guessed = raw.detected.encoding_sure < 1 and said["encoding"] is not None
        if silent or (_has_columns(raw, reading, needed) and not guessed):
            return raw
    except DataError:
        if silent:
            raise
    said |= {name: value for name, value in (("delimiter", delimiter), ("encoding", encoding)) if value}
    raw = read_table(path, limits=limits, sheet=sheet, **said)
    return raw if raw.detected.header else _numbered_columns(raw, reading, target)


def _has_columns(raw: RawTable, reading: ColumnParsing, needed: Collection[str]) -> bool:
    """Return whether a file names the columns `needed`; after a training without a header line it must have one to do so."""
    if reading.width:
        numbered = {f"column {place}" for place in range(1, reading.width + 1)}
        return (
            raw.detected.header and not numbered.isdisjoint(raw.names) and set(needed) <= set(reading.names(raw.names))
        )
    return set(needed) <= set(reading.names(raw.names))


def _numbered_columns(raw: RawTable, reading: ColumnParsing, target: str | None) -> RawTable:
    """Return a file without a header line with the names of the training file; only the column of the classes may be absent."""
    width = len(raw.names)
    if not reading.width or width == reading.width:
        return raw
    names = [f"column {place}" for place in range(1, reading.width + 1)]
    if target not in names or width != reading.width - 1:
        raise DataError(
            f"The file has {width:,} columns and no header line; the training file had {reading.width:,}. "
            f"Give all of its columns, in its order; only the classes ('{target}') may be left out."
        )
    names.remove(target)
    return replace(raw, names=tuple(names))


def load_for_model(
    path: str | Path,
    schema: Sequence[ColumnSchema],
    *,
    target: str | None = None,
    classes: Sequence[str] = (),
    used: Collection[int] | None = None,
    refused: Collection[int] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    limits: ReadLimits | None = None,
    reading: Mapping[str, Any] | None = None,
) -> ModelRows:
    """Read a file under a model's `schema` and `reading`; `used` are the columns that the tree needs (None: all of them).

    `refused` are those of them in which an empty cell gets no answer (None: by the policies of the schema).

    Raises DataError that names needed columns which are not in the file, and texts in needed numeric columns by line.
    """
    own = ColumnParsing.from_json(reading)
    needed = {schema[j].name for j in (range(len(schema)) if used is None else used)}
    raw = read_for_model(path, own, needed, target=target, delimiter=delimiter, encoding=encoding, limits=limits)
    return rows_for_model(raw, schema, target=target, classes=classes, used=used, refused=refused, reading=own)


def rows_for_model(
    raw: RawTable,
    schema: Sequence[ColumnSchema],
    *,
    target: str | None = None,
    classes: Sequence[str] = (),
    used: Collection[int] | None = None,
    refused: Collection[int] | None = None,
    only_used: bool = False,
    reading: ColumnParsing | None = None,
) -> ModelRows:
    """The same for rows that were read; with `only_used` columns that the tree does not need stay unread (NaN)."""
    needed = {schema[j].name for j in (range(len(schema)) if used is None else used)}
    if reading is not None and reading.columns:
        raw = reading.apply(raw, target=target, needed=needed)
    absent, extra = check_columns(raw.names, schema, target=target, used=used)
    refusing = refusing_columns(schema, used, refused)
    usable = np.ones(len(raw), bool)
    unknown: dict[str, Mapping[str, int]] = {}
    respelled: dict[str, int] = {}
    missing: dict[str, int] = {}
    problems: list[str] = []
    columns = []
    for own in schema:
        if own.name in absent or (only_used and own.name not in needed):
            columns.append(Column(schema=own, values=np.full(len(raw), np.nan)))
            continue
        read = _read_column(own, raw, own.name in needed)
        columns.append(read.column)
        problems += read.wrong
        if read.unknown:
            unknown[own.name] = read.unknown
        if read.respelled:
            respelled[own.name] = read.respelled
        empty = read.column.missing
        if empty.any():
            missing[own.name] = int(empty.sum())
            if own.name in refusing:
                usable &= ~empty
    if problems:
        raise several(problems)
    return ModelRows(
        table=Table(columns=tuple(columns), row_numbers=raw.line_numbers),
        labels=_labels(raw, target, classes),
        usable=usable,
        unknown={name: sum(words.values()) for name, words in unknown.items()},
        missing=missing,
        extra_columns=extra,
        absent_columns=absent,
        unknown_words=unknown,
        respelled=respelled,
    )


def refusing_columns(
    schema: Sequence[ColumnSchema], used: Collection[int] | None, refused: Collection[int] | None
) -> frozenset[str]:
    """Names of the used columns in which an empty cell gets no answer; by the policies of the schema if `refused` is None."""
    if refused is None:
        places = range(len(schema)) if used is None else used
        refused = [j for j in places if not schema[j].answers_empty]
    return frozenset(schema[j].name for j in refused)


def several(problems: Sequence[str]) -> DataError:
    """The error for places that were found: the first one in words, all of them in `problems`."""
    more = f" ({len(problems)} places are listed.)" if len(problems) > 1 else ""
    return DataError(problems[0] + more, problems=tuple(problems))


def check_columns(
    names: Sequence[str], schema: Sequence[ColumnSchema], *, target: str | None, used: Collection[int] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Columns of the schema that are absent, and names that it does not know; raises DataError if a needed one is absent."""
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


class ReadColumn(NamedTuple):
    """A column under its schema, its unknown words and how many cells have each, its other spellings, and what is wrong in it."""

    column: Column
    unknown: Mapping[str, int] = MappingProxyType({})
    respelled: int = 0
    wrong: tuple[str, ...] = ()


def _read_column(own: ColumnSchema, raw: RawTable, needed: bool) -> ReadColumn:
    """Read a column under its schema; what is wrong is looked for in a needed one only."""
    cells_of = raw.column(own.name)
    values = _plain_numbers(own, cells_of)
    if values is not None:
        return ReadColumn(Column(schema=own, values=values))
    cells = Cells.of(cells_of)
    # a model compares any number, also in a column of 0 and 1
    kind = own.kind if own.kind is ColumnKind.CATEGORICAL else ColumnKind.NUMERIC
    wrong = wrong_words(own.name, kind, cells, raw) if needed else ()
    column, strange, respelled = _under_schema(own, cells)
    if needed and strange.any() and own.unknown is UnknownPolicy.REFUSE:
        wrong += places(raw, cells, strange, f"column '{own.name}' has %s, {NOT_TRAINED}")
    unknown = {cells.word(i): int(cells.counts[i]) for i in np.flatnonzero(strange)}
    return ReadColumn(column, unknown, int(cells.counts[respelled].sum()), wrong)


def _plain_numbers(own: ColumnSchema, column: pa.Array) -> FloatArray | None:
    """Typed numbers of a numeric or binary column without the way over text; None if a cell needs a closer look."""
    if own.kind is ColumnKind.CATEGORICAL or not any(test(column.type) for test in TYPED):
        return None
    values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    rest = values[~np.isnan(values)] if column.null_count or np.isnan(values).any() else values
    if not (np.abs(rest) < LARGEST_EXACT).all():  # infinite, or whole numbers that were rounded
        return None
    return values + 0.0


def _under_schema(own: ColumnSchema, cells: Cells) -> tuple[Column, BoolArray, BoolArray]:
    """The column of a known schema, and for each word whether it is an unknown category, and another spelling of a known one."""
    respelled = np.zeros(len(cells.words), bool)
    if own.kind is not ColumnKind.CATEGORICAL:
        values = cells.floats()
        values[gaps(cells, own.kind)] = np.nan
        return Column(schema=own, values=values[cells.index]), np.zeros(len(cells.words), bool), respelled
    codes, strange = category_codes(cells.words, own)
    # a word that the model knows as a category is one, even where it could mean 'missing'
    empty = cells.marks & (codes == UNKNOWN_CODE)
    if (strange & ~empty).any():
        spellings = Spellings(own.categories)
        for i in np.flatnonzero(strange & ~empty):
            code = spellings.code(cells.words[i])
            if code is not None and code != own.missing_code:
                codes[i] = code
                strange[i] = False
                respelled[i] = True
    codes[empty] = np.nan if own.missing_code is None else own.missing_code
    return Column(schema=own, values=codes[cells.index]), strange & ~empty, respelled


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
