"""Build a training's table, labels and load report from a raw table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from trainer.data.formats.parquet_file import declared_order
from trainer.data.formats.raw import RawTable
from trainer.data.parsing.cells import Cells
from trainer.data.parsing.infer import GuessedColumn, guess, places, sorted_words
from trainer.dtypes import CODE, BoolArray, FloatArray
from trainer.errors import DataError, UnknownColumnError, closest, list_names
from trainer.table import (
    MISSING_CATEGORY,
    ClassType,
    Column,
    ColumnKind,
    ColumnSchema,
    Labels,
    MissingPolicy,
    Table,
    narrow,
)

MOST_CLASSES = 1000
TOO_MANY_FOR_ROWS = 50


@dataclass(frozen=True, kw_only=True)
class LoadReport:
    """Rows and columns of a file that were read, dropped or left out."""

    rows_read: int
    rows_dropped: int
    dropped_by_column: Mapping[str, int]  # a row with empty cells in two columns counts in both
    left_out: Mapping[str, str]  # column names, with the reason
    constant_columns: tuple[str, ...]
    duplicate_columns: tuple[tuple[str, str], ...]  # a column, and the earlier column with the same values
    identifiers: tuple[str, ...] = ()  # columns that name or count the rows, but are used
    reading_notes: tuple[str, ...] = ()  # how the cells of a messy file were interpreted
    guesses: Mapping[str, GuessedColumn] = field(
        default_factory=dict, repr=False
    )  # by parsed column, without the target

    @property
    def notes(self) -> tuple[str, ...]:
        """The report in sentences; empty if nothing is left out."""
        out = list(self.reading_notes)
        if self.rows_dropped:
            where = ", ".join(f"{name} ({count})" for name, count in self.dropped_by_column.items())
            verb = "was" if self.rows_dropped == 1 else "were"
            out.append(f"{self.rows_dropped} of {self.rows_read} rows {verb} dropped for empty cells in: {where}.")
        out += [f"Column '{name}' was left out: {why}." for name, why in self.left_out.items()]
        out += [f"Column '{name}' is used, but its values name or count the rows." for name in self.identifiers]
        if self.constant_columns:
            out.append(f"Columns with only one value, which the tree cannot use: {', '.join(self.constant_columns)}.")
        out += [f"Column '{one}' has the same values as '{other}'." for one, other in self.duplicate_columns]
        return tuple(out)


NONE_USABLE = "There is no usable column besides the target '{}'"


def build(
    raw: RawTable,
    *,
    target: str,
    kinds: Mapping[str, ColumnKind] | None = None,
    missing: Mapping[str, MissingPolicy] | None = None,
    default_missing: MissingPolicy = MissingPolicy.LEARN,
    units: Mapping[str, str] | None = None,
    special: Mapping[str, Sequence[float]] | None = None,
    ignore: Collection[str] = (),
) -> tuple[Table, Labels, LoadReport]:
    """Build the table, labels and report of a training.

    Leave out columns without a value, and columns that name or count the rows, unless `kinds`, `missing` or `special` names
    them. Keep numbers that count the rows if no other column is left.

    Parameters
    ----------
    raw : RawTable
        Cells as text or typed values.
    target : str
        Column of the classes.
    kinds : mapping, optional
        Kinds by column; other columns are guessed.
    missing : mapping, optional
        Policies for empty cells by column.
    default_missing : MissingPolicy
        Policy of the other columns. 'category' drops the rows of numeric columns, which cannot have such a category.
    units : mapping, optional
        Units by column.
    special : mapping, optional
        Values of numeric columns that are codes.
    ignore : collection of str
        Columns to leave out.

    Returns
    -------
    tuple of Table, Labels and LoadReport
        Categories and classes are sorted: numbers by value, texts by code point.

    Raises
    ------
    DataError
        If a cell does not fit its column, with line numbers, or if no column or row is left.
    """
    kinds = kinds or {}
    missing = missing or {}
    units = units or {}
    special = special or {}
    for name in (target, *kinds, *missing, *units, *special, *ignore):
        check_name(name, raw.names, "target" if name == target else "column")
    if target in ignore:
        raise DataError(f"Column '{target}' is the target and cannot be ignored. Choose another target.")
    policies = {target: _policy_for_target(missing.get(target, default_missing))}
    all_cells = {target: Cells.of(raw.column(target))}
    schemas: dict[str, ColumnSchema] = {}
    problems: list[str] = []
    cells_by_name = {name: Cells.of(raw.column(name)) for name in raw.names if name != target and name not in ignore}
    guesses = {name: guess(name, cells, raw) for name, cells in cells_by_name.items()}
    left_out = useless_columns(tuple(guesses.values()), {*kinds, *missing, *special})
    for name, cells in cells_by_name.items():
        column_guess = guesses[name]
        if name in left_out:
            continue
        kind = ColumnKind(kinds.get(name, column_guess.schema.kind))
        policy = MissingPolicy(missing.get(name, _policy_for_kind(default_missing, kind)))
        codes = tuple(sorted({float(v) for v in special.get(name, ())})) if kind is ColumnKind.NUMERIC else ()
        schemas[name] = ColumnSchema(
            name=name,
            kind=kind,
            missing=policy,
            unit=units.get(name, ""),
            special=codes,
            names_rows=column_guess.names_rows,
        )
        problems += wrong_words(name, kind, cells, raw)
        all_cells[name] = cells
        policies[name] = policy
    if problems:
        raise DataError(_several(problems), problems=tuple(problems))
    if not schemas:
        raise DataError(f"{NONE_USABLE.format(target)}." + _why(left_out))
    keep, dropped = _rows(raw, all_cells, schemas, policies)
    labels = replace(_labels(target, all_cells[target], keep), type=_class_type(raw.column(target).type))
    orders = {name: declared_order(raw.column(name)) for name in schemas}
    columns = tuple(_column(schema, all_cells[name], keep, orders[name]) for name, schema in schemas.items())
    report = LoadReport(
        rows_read=len(raw),
        rows_dropped=int(len(raw) - keep.sum()),
        dropped_by_column=dropped,
        left_out=left_out,
        constant_columns=tuple(c.name for c in columns if _constant(c.cells)),
        duplicate_columns=duplicate_columns(columns),
        identifiers=tuple(name for name in schemas if guesses[name].identifier),
        guesses=guesses,
    )
    if len(report.constant_columns) == len(columns):
        raise DataError(f"{NONE_USABLE.format(target)}: every column has one value only.{_why(left_out)}")
    return Table(columns=columns, row_numbers=raw.line_numbers[keep]), labels, report


def _policy_for_kind(policy: MissingPolicy, kind: ColumnKind) -> MissingPolicy:
    """Return the policy of a column of this kind under a policy for all columns."""
    return policy if policy is not MissingPolicy.CATEGORY or kind is ColumnKind.CATEGORICAL else MissingPolicy.DROP


def _policy_for_target(policy: MissingPolicy) -> MissingPolicy:
    """Return the policy of the target: a row without a class cannot train, so it is dropped or refused."""
    return MissingPolicy.REFUSE if policy is MissingPolicy.REFUSE else MissingPolicy.DROP


def check_name(name: str, names: Sequence[str], what: str = "column") -> None:
    """Raise DataError with a suggestion unless `name` is one of `names`."""
    if name not in names:
        raise UnknownColumnError(f"There is no {what} '{name}' in the file.{suggestion(name, names)}")


def suggestion(name: str, names: Sequence[str]) -> str:
    """Return ' Did you mean ...?' for an unknown name, followed by the known names."""
    return f"{closest(name, names)} Its columns are: {list_names(names, 12)}."


def useless_columns(guesses: Sequence[GuessedColumn], named: Collection[str]) -> dict[str, str]:
    """Return the columns that are left out, each with the reason.

    Parameters
    ----------
    guesses : sequence of GuessedColumn
        The columns that can be features, without the target.
    named : collection of str
        Columns that a user named; only those without a value are left out.
    """
    others = any(not guess.identifier and not guess.constant for guess in guesses)
    reasons = {guess.name: _useless(guess, guess.name in named, others) for guess in guesses}
    return {name: reason for name, reason in reasons.items() if reason}


def _useless(guessed: GuessedColumn, named: bool, others: bool) -> str:
    """Return why a column is left out, or "" if it is used; `others` says whether another column can be used."""
    if guessed.distinct == 0:
        return "it has no value"
    if named or not guessed.identifier:
        return ""
    if guessed.schema.kind is ColumnKind.CATEGORICAL:
        return "its texts name the rows; choose its kind yourself to use it anyway"
    return "its numbers name or count the rows; choose its kind yourself to use it anyway" if others else ""


def wrong_words(
    name: str, kind: ColumnKind, cells: Cells, raw: RawTable, empty: BoolArray | None = None
) -> tuple[str, ...]:
    """Return a message for each place whose word does not fit a column of this kind; words in `empty` are empty cells."""
    if kind is ColumnKind.CATEGORICAL:
        return ()
    values = ~(cells.marks if empty is None else empty)
    if kind is ColumnKind.BINARY:
        wrong = values & ~np.isin(cells.floats(), (0.0, 1.0))
        return places(raw, cells, wrong, f"column '{name}' is binary, but has %s; only 0, 1, true and false are binary")
    wrong = values & ~cells.numbers & ~cells.truths
    messages = places(raw, cells, wrong, f"column '{name}' is numeric, but has %s, which is not a finite number")
    return messages + places(
        raw, cells, values & cells.inexact, f"column '{name}' has %s, which is rounded beyond 2^53; make it categorical"
    )


def _rows(
    raw: RawTable,
    all_cells: Mapping[str, Cells],
    schemas: Mapping[str, ColumnSchema],
    policies: Mapping[str, MissingPolicy],
) -> tuple[BoolArray, dict[str, int]]:
    """Return the mask of rows that stay, and the number of dropped rows by column."""
    keep = np.ones(len(raw), bool)
    dropped: dict[str, int] = {}
    problems: list[str] = []
    for name, cells in all_cells.items():
        empty_words = gaps(cells, schemas[name].kind if name in schemas else ColumnKind.CATEGORICAL)
        policy = policies[name]
        if not empty_words.any() or policy in (MissingPolicy.CATEGORY, MissingPolicy.LEARN):
            continue
        if policy is MissingPolicy.REFUSE:
            problems += places(raw, cells, empty_words, f"column '{name}' is empty and refuses missing values")
            continue
        dropped_rows = empty_words[cells.index]
        dropped[name] = int(dropped_rows.sum())
        keep &= ~dropped_rows
    if problems:
        raise DataError(_several(problems) + " Fill the cells, or choose to drop these rows.", problems=tuple(problems))
    if not keep.any():
        raise DataError(
            f"Every one of the {len(raw)} rows has an empty cell ({', '.join(dropped)}), so none is left to train on. "
            "Ignore the columns with many empty cells, or choose that 'missing' becomes a category of them."
        )
    return keep, dropped


def gaps(cells: Cells, kind: ColumnKind) -> BoolArray:
    """Return the mask of words that are empty cells in a column of this kind; numeric columns count every mark."""
    return cells.missing if kind is ColumnKind.CATEGORICAL else cells.marks


def _labels(target: str, cells: Cells, keep: BoolArray) -> Labels:
    present = np.zeros(len(cells.array), bool)
    present[cells.index[keep]] = True
    classes = sorted_words(cells, present)
    n = int(keep.sum())
    if len(classes) < 2:
        raise DataError(
            f"The target '{target}' has only one class ('{classes[0]}') in the {n} remaining rows, but a tree needs two. "
            "Choose another target, or look at the rows that were dropped."
        )
    if len(classes) > MOST_CLASSES or (len(classes) > TOO_MANY_FOR_ROWS and 2 * len(classes) > n):
        raise DataError(
            f"The target '{target}' has {len(classes)} different values in {n} rows: it does not name classes. "
            "Choose another target, or group its values first."
        )
    codes = _codes(cells, classes)[cells.index[keep]].astype(CODE)
    return Labels(name=target, classes=classes, codes=codes)


def _class_type(kind: pa.DataType) -> ClassType | None:
    """Return the type of classes of a typed column; None for text."""
    if pa.types.is_boolean(kind):
        return ClassType.BOOL
    if pa.types.is_integer(kind):
        return ClassType.INT
    return ClassType.FLOAT if pa.types.is_floating(kind) else None


def _codes(cells: Cells, words: Sequence[str]) -> np.ndarray:
    code_of = {word: code for code, word in enumerate(words)}
    return np.fromiter((code_of.get(w, -1) for w in cells.words), np.int64, len(cells.words))


def _column(schema: ColumnSchema, cells: Cells, keep: BoolArray, order: Sequence[str] = ()) -> Column:
    index = cells.index[keep]
    if schema.kind is not ColumnKind.CATEGORICAL:
        values = cells.floats()
        values[gaps(cells, schema.kind)] = np.nan
        return Column(schema=schema, cells=narrow(values[index]))
    present = np.zeros(len(cells.array), bool)
    present[index] = True
    empty = cells.missing
    categories = sorted_words(cells, present & ~empty)
    ordered = bool(order) and set(categories) <= set(order)
    if ordered:
        categories = tuple(word for word in order if word in set(categories))
    codes = _codes(cells, categories)
    if (present & empty).any() or schema.missing is MissingPolicy.CATEGORY:
        # the rows to predict may have empty cells even if the training rows have none
        if MISSING_CATEGORY not in categories:
            categories = (*categories, MISSING_CATEGORY)
        codes[empty] = categories.index(MISSING_CATEGORY)
    return Column(
        schema=replace(schema, categories=categories, ordered=ordered), cells=narrow(codes[index].astype(np.float64))
    )


def _constant(values: FloatArray) -> bool:
    return bool((values == values[0]).all())


def duplicate_columns(columns: Sequence[Column]) -> tuple[tuple[str, str], ...]:
    """Return pairs of a column and an earlier one with the same kind, values and categories; constant columns are skipped."""
    first_names: dict[tuple[str, tuple[str, ...], bytes], str] = {}
    pairs = []
    for column in columns:
        if _constant(column.cells):
            continue
        key = (str(column.kind), column.schema.categories, column.cells.tobytes())
        if key in first_names:
            pairs.append((column.name, first_names[key]))
        else:
            first_names[key] = column.name
    return tuple(pairs)


def _several(problems: Sequence[str]) -> str:
    return problems[0] + (f" ({len(problems)} places are listed.)" if len(problems) > 1 else "")


def _why(left_out: Mapping[str, str]) -> str:
    if not left_out:
        return " Choose a file with more columns, or another delimiter."
    return " Left out: " + "; ".join(f"'{name}', {why}" for name, why in list(left_out.items())[:5]) + "."
