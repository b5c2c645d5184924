"""Load files for training and prediction: `load`, `load_for_model`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trainer.data.build import LoadReport, build, check_name, suggestion, wrong_words
from trainer.data.dependence import check_dependence, dependence_notes, with_dependence
from trainer.data.formats.csv_file import read_csv
from trainer.data.formats.file_bytes import ReadLimits
from trainer.data.formats.raw import TYPED, DetectedFormat, RawTable
from trainer.data.formats.read_file import read_table
from trainer.data.formats.workbook import is_workbook, sheet_names
from trainer.data.odd_words import OddWords, add_words
from trainer.data.parsing import EVERY, ColumnParsing, ParsingChoices, reading_of
from trainer.data.parsing.alike import Spellings
from trainer.data.parsing.cells import LARGEST_EXACT, Cells
from trainer.data.parsing.codes import check_meanings
from trainer.data.parsing.infer import places
from trainer.data.row_weights import weight_notes, with_weights
from trainer.dtypes import CODE, MISSING_CODE, BoolArray, CodeArray, FloatArray
from trainer.errors import DataError, list_names
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table, UnknownPolicy, with_ranks, with_unknown
from trainer.tree.numbers import column_value, count_words

# code of a category that training did not have; no test of a category is true for it, so it goes right
UNKNOWN_CODE = -1.0

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
    """Rows of a file under a model's schema."""

    # has every column of the schema; a cell is NaN if missing and `UNKNOWN_CODE` if its category is unknown
    table: Table
    labels: Labels | None  # None without a target column; a missing or unknown class has code -1
    usable: BoolArray  # (n,), False for rows with an empty cell in a needed column that refuses empty cells
    unknown: Mapping[str, int]  # number of cells with an unknown category, by column
    missing: Mapping[str, int]  # number of empty cells, by column
    extra_columns: tuple[str, ...]
    absent_columns: tuple[str, ...]
    # by column, unknown words with the number of their cells
    unknown_words: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    # number of cells with another spelling of a category, by column
    respelled: Mapping[str, int] = field(default_factory=dict)
    # words that a column does not take as they are
    odd: OddWords = field(default_factory=OddWords)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about ignored columns, unknown categories and empty cells."""
        out = []
        if self.extra_columns:
            out.append(f"Columns that the model does not know are ignored: {', '.join(self.extra_columns)}.")
        if self.absent_columns:
            out.append(f"Columns that the tree does not use are missing: {', '.join(self.absent_columns)}.")
        for name, count in self.unknown.items():
            out.append(unknown_words(name, count))
        out += self.odd.notes
        if not self.usable.all():
            out.append(empty_words(int((~self.usable).sum()), len(self.usable)))
        return tuple(out)


def unknown_words(column: str, cells: int) -> str:
    """Return the note on `cells` whose category is not in the schema."""
    have = "1 cell has" if cells == 1 else f"{cells:,} cells have"
    return f"Column '{column}': {have} a category that the model does not know; every question about it is answered with no."


def empty_words(unusable: int, rows: int) -> str:
    """Return the note that `unusable` of `rows` rows get no prediction."""
    have, get = ("row has", "it gets") if unusable == 1 else ("rows have", "they get")
    return f"{unusable:,} of {rows:,} {have} an empty cell in a column that the tree needs, so {get} no prediction."


def empty_cell_notes(answers: int, unseen: int, columns: Collection[str]) -> list[str]:
    """Return notes on answers that depend on an empty cell.

    `unseen` of them took a side for empty cells that no training row took.
    """
    notes = []
    if answers:
        notes.append(f"{count_words(answers, 'answer')} {'rests' if answers == 1 else 'rest'} on an empty cell.")
    if unseen:
        notes.append(
            f"{count_words(unseen, 'answer')} used a side for empty cells that training never saw: {list_names(sorted(columns))}."
        )
    return notes


def outside_words(column: ColumnSchema, cells: int) -> str:
    """Return the note on `cells` values of a column outside its training range."""
    assert column.range is not None
    lie = "1 value lies" if cells == 1 else f"{cells:,} values lie"
    low, high = (column_value(column, end) for end in column.range)
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
    """Read a file and build its table, labels and report.

    Parameters
    ----------
    path : str or Path
        A CSV, Parquet or Excel file.
    target : str
        Column of the classes.
    delimiter, encoding, header, limits
        As for `read_table`.
    given : ParsingChoices, optional
        The user's choices about parsing.
    reading : ColumnParsing, optional
        An earlier parsing to repeat, without guessing.
    **options
        Arguments of `build_as_read` and `build`.

    Returns
    -------
    tuple of Table, Labels and LoadReport

    Raises
    ------
    DataError
        If the file cannot be read, or cannot train a tree.
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
    stated = {name: value for name, value in given.structure.items() if value is not None}
    raw = read_table(path, limits=limits, **earlier | stated)
    return build_as_read(raw, reading or reading_of(raw, given), target=target, **options)


def known_sheet(path: str | Path, sheet: str | None) -> str | None:
    """Return the sheet if the file is a workbook that has it."""
    if sheet is None or not is_workbook(Path(path)):
        return None
    return sheet if sheet in sheet_names(Path(path)) else None


def build_as_read(  # noqa: PLR0913 - public; each option has a default
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
    """Parse the columns of a raw table and build its table, labels and report.

    Parameters
    ----------
    raw : RawTable
    reading : ColumnParsing
        The parsing of the columns.
    target : str
        Column of the classes.
    kinds, units, special : mapping, optional
        As for `build`, by the names of parsed columns.
    unknown : mapping, optional
        Policy of predictions for new categories, by column; "" for all columns.
    meanings : mapping, optional
        Meanings of special values, by column and number.
    ignore : collection of str
        Columns to leave out, by their names in the file or after parsing.
    mentions : str
        A text. Identifiers that it names, and columns derived from dates, are not left out.
    group, time : str
        Columns of the file with the group and the time of each row, or "". They may be ignored. No split uses the group.
    weight : str
        Column of the file with the weight of each row, or "". No split uses it, and rows of weight 0 are left out.
    **options
        Other arguments of `build`.

    Raises
    ------
    DataError
        As for `build`, and if a used column can be parsed in two ways and the user has to choose.
    """
    check_name(target, raw.names, "target")
    unknown = dict(unknown or {})
    check_dependence(raw.names, target=target, group=group, time=time, weight=weight)
    ignore = [*ignore, *(name for name in (group, weight) if name and name not in ignore)]
    target_reading = reading.for_target(target).without(
        name for name, kind in (kinds or {}).items() if kind == ColumnKind.CATEGORICAL
    )
    ignored = {name for name in ignore if name in raw.names and name != target}
    target_reading.ask(name for name in raw.names if name not in ignored)
    # `ignore` names these dates, so all columns that derive from them are left out
    split = {name for name in ignored if target_reading.names([name]) != (name,)}
    plain = target_reading.apply(
        _drop_columns(raw, split), target=target, needed=set(target_reading.names(raw.names)) - ignored
    )
    names = [name for name in plain.names if name != target and name not in ignored]
    in_file = set(raw.names)
    mentioned = [name for name in names if name not in in_file or _is_mentioned(name, mentions)]
    table, labels, report = build(
        plain,
        target=target,
        kinds=target_reading.given.schema_kinds(names) | dict(kinds or {}),
        units={name: unit for name, unit in target_reading.units().items() if name in names} | dict(units or {}),
        ignore=[name for name in ignore if name not in split],
        # a column for which the user names special values is kept
        special=dict.fromkeys(mentioned, ()) | dict(special or {}),
        **options,
    )
    # the user may name a column that is left out
    for name in unknown.keys() - {EVERY, *target_reading.names(raw.names)}:
        check_name(name, names)
    explained = meanings or {}
    schema = tuple(
        replace(c, meanings=check_meanings(explained.get(c.name, {}), c.special, c.name)) for c in table.schema
    )
    table = table.with_schema(with_unknown(schema, unknown))
    model_reading = target_reading.for_model(target, table.names)
    table = table.with_schema(with_ranks(table.schema, model_reading))
    table = with_dependence(replace(table, reading=model_reading), raw, reading, group=group, time=time)
    table, labels = with_weights(table, labels, raw, reading, weight)
    notes = (
        *raw.detected.notes,
        *target_reading.notes_of([*names, target]),
        *dependence_notes(table),
        *weight_notes(table),
    )
    return table, labels, replace(report, reading_notes=notes)


def _is_mentioned(name: str, text: str) -> bool:
    """Return whether a text contains the name of a column as a whole word."""
    return bool(text) and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _drop_columns(raw: RawTable, names: Collection[str]) -> RawTable:
    pairs = [(name, column) for name, column in zip(raw.names, raw.columns, strict=True) if name not in names]
    return replace(raw, names=tuple(name for name, _ in pairs), columns=tuple(column for _, column in pairs))


def read_for_model(  # noqa: PLR0913 - public; each option has a default
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

    The format is detected first. If this does not give the needed columns, the file is read in the format of the training
    file.

    Parameters
    ----------
    path : str or Path
        The file.
    reading : ColumnParsing
        The parsing of the training file.
    needed : collection of str
        Parsed columns that the model needs.
    target : str, optional
        Column of the classes; a file without a header line may lack it.
    delimiter, encoding : str, optional
        As for `read_table`.
    header : bool, optional
        False if the first line is a row.
    sheet : str, optional
        Worksheet to read, by default the training sheet if the workbook has it.
    limits : ReadLimits, optional
        The largest file and table.

    Returns
    -------
    RawTable
        It may still lack needed columns.

    Raises
    ------
    DataError
        If the file cannot be read, or has no header line although the model reads columns by their names.
    """
    structure = reading.given.structure
    trained_sheet = structure.pop("sheet")
    sheet = sheet or known_sheet(path, trained_sheet)
    if header is False and not reading.width:
        raise DataError(
            f"The model reads columns by their names. Add a header line with {list_names(sorted(needed), 12)}."
        )
    silent = all(value is None for value in structure.values())
    try:
        raw = read_table(path, delimiter=delimiter, encoding=encoding, header=header, sheet=sheet, limits=limits)
        guessed = raw.detected.encoding_sure < 1 and structure["encoding"] is not None
        if silent or (_has_columns(raw, reading, needed) and not guessed):
            return raw
    except DataError:
        if silent:
            raise
    structure |= {name: value for name, value in (("delimiter", delimiter), ("encoding", encoding)) if value}
    raw = read_table(path, limits=limits, sheet=sheet, **structure)
    return raw if raw.detected.header else _numbered_columns(raw, reading, target)


def _has_columns(raw: RawTable, reading: ColumnParsing, needed: Collection[str]) -> bool:
    """Return whether a file has the columns `needed`; a model trained without a header line needs a header of numbered names."""
    if reading.width:
        numbered = {f"column {place}" for place in range(1, reading.width + 1)}
        return (
            raw.detected.header and not numbered.isdisjoint(raw.names) and set(needed) <= set(reading.names(raw.names))
        )
    return set(needed) <= set(reading.names(raw.names))


def _numbered_columns(raw: RawTable, reading: ColumnParsing, target: str | None) -> RawTable:
    """Name the columns of a file without a header line as in training; only the target may be absent."""
    width = len(raw.names)
    if not reading.width or width == reading.width:
        return raw
    names = [f"column {place}" for place in range(1, reading.width + 1)]
    if target not in names or width != reading.width - 1:
        raise DataError(
            f"The file has {width:,} columns and no header line, but the training file had {reading.width:,}. "
            f"Give all of its columns, in its order. Only the classes ('{target}') may be left out."
        )
    names.remove(target)
    return replace(raw, names=tuple(names))


def load_for_model(  # noqa: PLR0913 - public; each option has a default
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
    """Read a file under the schema and the parsing of a model.

    Parameters
    ----------
    path : str or Path
    schema : sequence of ColumnSchema
        Columns of the model.
    target : str, optional
        Column of the classes, if they are wanted.
    classes : sequence of str
        Classes of the model.
    used : collection of int, optional
        Columns that the tree needs; by default all.
    refused : collection of int, optional
        Used columns in which an empty cell gets no answer; by default, from the policies of the schema.
    delimiter, encoding, limits
        As for `read_table`.
    reading : mapping, optional
        The parsing of the columns, as in the model file.

    Returns
    -------
    ModelRows

    Raises
    ------
    DataError
        If a needed column is absent, or a needed numeric column holds a text; the message names columns and lines.
    """
    model_reading = ColumnParsing.from_json(reading)
    needed = {schema[j].name for j in (range(len(schema)) if used is None else used)}
    raw = read_for_model(
        path, model_reading, needed, target=target, delimiter=delimiter, encoding=encoding, limits=limits
    )
    return rows_for_model(
        raw, schema, target=target, classes=classes, used=used, refused=refused, reading=model_reading
    )


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
    """Read a raw table under the schema of a model, as `load_for_model` does.

    With `only_used`, columns that the tree does not need are NaN. Their words are only examined.
    """
    odd = OddWords()
    needed = {schema[j].name for j in (range(len(schema)) if used is None else used)}
    if reading is not None and reading.columns:
        raw = reading.apply(raw, target=target, needed=needed, odd=odd)
    absent, extra = check_columns(raw.names, schema, target=target, used=used)
    refusing = refusing_columns(schema, used, refused)
    usable = np.ones(len(raw), bool)
    unknown: dict[str, Mapping[str, int]] = {}
    respelled: dict[str, int] = {}
    missing: dict[str, int] = {}
    problems: list[str] = []
    columns = []
    for column_schema in schema:
        is_needed = column_schema.name in needed
        if not is_needed and column_schema.name not in absent:
            add_words(odd.unfit, column_schema.name, _unfit_words(column_schema, raw.column(column_schema.name)))
        if column_schema.name in absent or (only_used and not is_needed):
            columns.append(Column(schema=column_schema, cells=np.full(len(raw), np.nan)))
            continue
        read = _read_column(column_schema, raw, is_needed)
        columns.append(read.column)
        if is_needed:
            problems += read.wrong
            add_words(odd.blank, column_schema.name, read.blank_words)
            if read.unknown:
                unknown[column_schema.name] = read.unknown
            if read.respelled:
                respelled[column_schema.name] = read.respelled
        empty = read.column.missing
        if empty.any():
            missing[column_schema.name] = int(empty.sum())
            if column_schema.name in refusing:
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
        odd=odd,
    )


def refusing_columns(
    schema: Sequence[ColumnSchema], used: Collection[int] | None, refused: Collection[int] | None
) -> frozenset[str]:
    """Return the used columns in which an empty cell gets no answer; by the policies of the schema if `refused` is None."""
    if refused is None:
        places = range(len(schema)) if used is None else used
        refused = [j for j in places if not schema[j].answers_empty]
    return frozenset(schema[j].name for j in refused)


def several(problems: Sequence[str]) -> DataError:
    """Return the error for several problems: its message is the first one, `problems` lists all."""
    more = f" ({len(problems)} places are listed.)" if len(problems) > 1 else ""
    return DataError(problems[0] + more, problems=tuple(problems))


def check_columns(
    names: Sequence[str], schema: Sequence[ColumnSchema], *, target: str | None, used: Collection[int] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return absent columns of the schema, and names that it lacks; raise DataError if a needed column is absent."""
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
    schema_names = {c.name for c in schema}
    return absent, tuple(n for n in names if n != target and n not in schema_names)


class ReadColumn(NamedTuple):
    """A column read under its schema."""

    column: Column
    unknown: Mapping[str, int] = MappingProxyType({})  # unknown words, with the number of their cells
    respelled: int = 0  # number of cells with another spelling of a category
    wrong: tuple[str, ...] = ()  # messages about cells that do not fit
    # words such as "-" among numbers, with the number of their cells
    blank_words: Mapping[str, int] = MappingProxyType({})


def _read_column(column_schema: ColumnSchema, raw: RawTable, needed: bool) -> ReadColumn:
    """Read a column under its schema; only a needed column is checked."""
    cells_of = raw.column(column_schema.name)
    values = _plain_numbers(column_schema, cells_of)
    if values is not None:
        return ReadColumn(Column(schema=column_schema, cells=values))
    cells = Cells.of(cells_of)
    # read a binary column as numeric, since the model compares any number, not only 0 and 1
    kind = column_schema.kind if column_schema.kind is ColumnKind.CATEGORICAL else ColumnKind.NUMERIC
    wrong = wrong_words(column_schema.name, kind, cells, raw, cells.empty_numbers) if needed else ()
    column, strange, respelled = _under_schema(column_schema, cells)
    if needed and strange.any() and column_schema.unknown is UnknownPolicy.REFUSE:
        wrong += places(raw, cells, strange, f"column '{column_schema.name}' has %s, {NOT_TRAINED}")
    unknown = {cells.word(i): int(cells.counts[i]) for i in np.flatnonzero(strange)}
    blank = np.flatnonzero(cells.empty_numbers & ~cells.marks) if kind is ColumnKind.NUMERIC else ()
    return ReadColumn(
        column,
        unknown=unknown,
        respelled=int(cells.counts[respelled].sum()),
        wrong=wrong,
        blank_words={cells.word(i): int(cells.counts[i]) for i in blank},
    )


def _unfit_words(column_schema: ColumnSchema, column: pa.Array) -> dict[str, int]:
    """Return the words that would be an error if the tree asked the column, with the number of their cells."""
    if column_schema.kind is ColumnKind.CATEGORICAL:
        if column_schema.unknown is not UnknownPolicy.REFUSE:
            return {}
        cells = Cells.of(column)
        return cells.counts_of(_under_schema(column_schema, cells)[1])
    if _plain_numbers(column_schema, column) is not None or _are_numbers(column):
        return {}
    cells = Cells.of(column)
    return cells.counts_of(~cells.empty_numbers & ((~cells.numbers & ~cells.truths) | cells.inexact))


def _are_numbers(column: pa.Array) -> bool:
    """Return whether all filled cells of a column of texts are numbers; False if only the words can tell."""
    if not pa.types.is_string(column.type):
        return False
    try:
        values = pc.cast(pc.if_else(pc.equal(column, ""), None, column), pa.float64())
    except pa.ArrowInvalid:
        return False
    return bool(pc.all(pc.less(pc.abs(values), float(LARGEST_EXACT))).as_py() is not False)


def _plain_numbers(column_schema: ColumnSchema, column: pa.Array) -> FloatArray | None:
    """Return typed numbers of a numeric or binary column, without parsing text; None if a cell needs parsing."""
    if column_schema.kind is ColumnKind.CATEGORICAL or not any(test(column.type) for test in TYPED):
        return None
    values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    filled = values[~np.isnan(values)] if column.null_count or np.isnan(values).any() else values
    if not (np.abs(filled) < LARGEST_EXACT).all():  # the column has infinite values, or integers that float64 rounded
        return None
    return values + 0.0


def _under_schema(column_schema: ColumnSchema, cells: Cells) -> tuple[Column, BoolArray, BoolArray]:
    """Return the column, and for each word whether it is an unknown category, and whether it is another spelling of one."""
    respelled = np.zeros(len(cells.words), bool)
    if column_schema.kind is not ColumnKind.CATEGORICAL:
        values = cells.floats()
        values[cells.empty_numbers] = np.nan
        return Column(schema=column_schema, cells=values[cells.index]), np.zeros(len(cells.words), bool), respelled
    codes, strange = category_codes(cells.words, column_schema)
    # if the model has a category such as 'NA', the word means this category and not an empty cell
    empty = cells.marks & (codes == UNKNOWN_CODE)
    if (strange & ~empty).any():
        spellings = Spellings(column_schema.categories)
        for i in np.flatnonzero(strange & ~empty):
            code = spellings.code(cells.words[i])
            if code is not None and code != column_schema.missing_code:
                codes[i] = code
                strange[i] = False
                respelled[i] = True
    codes[empty] = np.nan if column_schema.missing_code is None else column_schema.missing_code
    return Column(schema=column_schema, cells=codes[cells.index]), strange & ~empty, respelled


def category_codes(words: Sequence[str], column_schema: ColumnSchema) -> tuple[np.ndarray, BoolArray]:
    """Return the code of each word, float64, `UNKNOWN_CODE` for unknown words, and the mask of unknown words."""
    place = {word: float(code) for code, word in enumerate(column_schema.categories)}
    codes = np.fromiter((place.get(w, UNKNOWN_CODE) for w in words), np.float64, len(words))
    return codes, codes == UNKNOWN_CODE


def _labels(raw: RawTable, target: str | None, classes: Sequence[str]) -> Labels | None:
    if target is None or target not in raw.names:
        return None
    cells = Cells.of(raw.column(target))
    place = {word: code for code, word in enumerate(classes)}
    codes: CodeArray = np.fromiter((place.get(w, MISSING_CODE) for w in cells.words), CODE, len(cells.words))
    return Labels(name=target, classes=tuple(classes), codes=codes[cells.index])
