"""Predict the rows of a file, piece by piece.

A result has one row for each row of the input, in its order: `row` (from 1, without the header), `label`, the share of each class
at the leaf, and `leaf`. All but `row` are empty if a cell that the tree needs is empty. `more` adds columns that a caller computes.
The columns of the file can precede them. `trainer.prediction.output_file` writes.
"""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from trainer.data.changed_form import ChangedForm
from trainer.data.formats.file_bytes import ReadLimits
from trainer.data.formats.parquet_file import ParquetPieces, is_parquet
from trainer.data.formats.raw import RawTable
from trainer.data.odd_words import OddWords
from trainer.data.parsing import ColumnParsing, around_notes
from trainer.data.reader import (
    ModelRows,
    check_columns,
    empty_cell_notes,
    empty_words,
    outside_words,
    read_for_model,
    rows_for_model,
    several,
    unknown_words,
)
from trainer.data.training_set import TrainingSet
from trainer.dtypes import CodeArray
from trainer.errors import DataError, list_names
from trainer.prediction.form_report import FormWatch, Reread, count_changes, renamed_schema, respelled_words
from trainer.prediction.output_file import PIECE, CsvWriter, MoreColumns, ParquetWriter, Piece, Writer
from trainer.table import ColumnKind, UnknownPolicy
from trainer.tree.file import ModelFile

LISTED = 20  # limit on the problems that an error names

Report = Callable[[str, int, int], None]  # phase, rows done and rows in total; 0 if not yet known


@dataclass(frozen=True, kw_only=True)
class PredictionSummary:
    """Counts of a prediction: rows of the file, rows with a prediction, rows of each label, and notes on odd values.

    `unknown` and `out_of_range` count, by column, the cells with an unknown category and the numbers outside the training range;
    `respelled` counts those with another spelling of a category. `proposals` are readings of columns that fit the training better.
    `known` predicted rows have a class in the file. The tree is right for `correct` of them, the most frequent training class for
    `base_correct`; all are 0 without the target column. `trained` of them equal a training row in the class and in every used
    column; None without the training rows. `life` counts the answers by leaf (`rows`), the unusual cells by column, and the rows
    without an answer (`refused_empty`).
    """

    rows: int
    predicted: int
    labels: dict[str, int]
    known: int
    correct: int
    base_correct: int
    trained: int | None
    unknown: dict[str, int]
    out_of_range: dict[str, int]
    respelled: dict[str, int]
    proposals: tuple[ChangedForm, ...]
    notes: tuple[str, ...]
    life: dict[str, dict[str, int]]

    def to_json(self) -> dict[str, Any]:
        """Return the record as a dictionary."""
        return {
            "rows": self.rows, "predicted": self.predicted, "labels": self.labels, "known": self.known,
            "correct": self.correct, "base_correct": self.base_correct, "trained": self.trained, "unknown": self.unknown,
            "out_of_range": self.out_of_range, "respelled": self.respelled,
            "proposals": [proposal.to_json() for proposal in self.proposals], "notes": list(self.notes), "life": self.life,
        }  # fmt: skip


def predict_file(  # noqa: PLR0913 - public; its options are those of the command
    model: ModelFile,
    data: str | Path,
    output: str | Path | io.TextIOBase,
    *,
    limits: ReadLimits | None = None,
    report: Report | None = None,
    for_spreadsheets: bool = False,
    delimiter: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    sheet: str | None = None,
    more: MoreColumns | None = None,
    keep_columns: bool = False,
    training: TrainingSet | None = None,
) -> PredictionSummary:
    """Predict the rows of a CSV (also .gz), .xlsx, Parquet or Arrow file and write the answers.

    Parameters
    ----------
    model : ModelFile
        Cells are read as in its training.
    data : path
        The file of rows.
    output : path or text stream
        A path that ends in .parquet gets Parquet, any other CSV. The file is written beside it and renamed at the end.
    report : callable, optional
        Called before the first piece and after each one.
    for_spreadsheets : bool
        Put an apostrophe before texts of a CSV file that a spreadsheet would read as formulas.
    delimiter, encoding : str, optional
        Of a CSV file; None: detected.
    header : bool, optional
        False: the first line of a CSV file is a row.
    sheet : str, optional
        The worksheet of a workbook.
    more : MoreColumns, optional
        Further columns of the answers.
    keep_columns : bool
        Write all columns of the file before the answers. An answer column whose name the file has gets the prefix "predicted".
    training : TrainingSet, optional
        The training rows, to count the rows that equal one.

    Returns
    -------
    PredictionSummary

    Raises
    ------
    DataError
        Its `problems` name row and column.
    OSError
    """
    say = report or (lambda phase, done, total: None)
    source = RowSource(Path(data), limits, delimiter, encoding, header, sheet, keep_columns, training)
    if isinstance(output, io.TextIOBase):
        return _predict(
            model, source, CsvWriter(model.tree, output, for_spreadsheets=for_spreadsheets, more=more), say, more
        )
    path = Path(output)
    with _temporary_name(path) as temporary:
        if path.suffix.lower() == ".parquet":
            with temporary.open("wb") as binary:
                summary = _predict(model, source, ParquetWriter(model.tree, binary, more=more), say, more)
                _flush(binary)
        else:
            with temporary.open("w", encoding="utf-8", newline="") as stream:
                writer = CsvWriter(model.tree, stream, for_spreadsheets=for_spreadsheets, more=more)
                summary = _predict(model, source, writer, say, more)
                _flush(stream)
        temporary.replace(path)
    return summary


@dataclass(frozen=True)
class RowSource:
    """A file of rows, and the options for reading it."""

    path: Path
    limits: ReadLimits | None
    delimiter: str | None = None
    encoding: str | None = None
    header: bool | None = None
    sheet: str | None = None
    keep: bool = False  # whether to copy all columns of the file into the result
    training: TrainingSet | None = None


def _predict(
    model: ModelFile, source: RowSource, writer: Writer, say: Report, more: MoreColumns | None = None
) -> PredictionSummary:
    tree = model.tree
    total = _Total(model, source.training)
    problems: list[str] = []
    say("reading", 0, 0)
    for rows, count, file_columns in _pieces(model, source, total, more.piece if more else PIECE):
        if isinstance(rows, DataError):
            problems += rows.problems or [str(rows)]
            if len(problems) >= LISTED:
                break
            continue
        if not problems:  # after an error nothing is written; later pieces are only checked for further errors
            matrix = rows.table.matrix()
            leaves = tree.apply(matrix)
            further = more.of(matrix, rows.usable) if more else ()
            writer.write(Piece(total.rows + 1, leaves, rows.usable, further, file_columns))
            total.add(rows, leaves)
            say("predicting", total.rows, count)
    if problems:
        raise several(problems[:LISTED])
    writer.close()
    summary = total.result(_with_changes(model, source, total.watch.proposals()))
    return replace(summary, notes=(*summary.notes, *more.notes())) if more else summary


def _pieces(
    model: ModelFile, source: RowSource, total: _Total, size: int
) -> Iterator[tuple[ModelRows | DataError, int, pa.RecordBatch | None]]:
    """Yield per piece the rows under the model's schema or an error, the number of rows in all, and the kept columns.

    Notes on lines that are not rows go to `total`.
    """
    reading = ColumnParsing.from_json(model.reading)
    names = model.tree.used_names
    if not is_parquet(source.path):
        raw = read_for_model(
            source.path,
            reading,
            names,
            target=model.target,
            delimiter=source.delimiter,
            encoding=source.encoding,
            header=source.header,
            sheet=source.sheet,
            limits=source.limits,
        )
        total.around = [*raw.detected.notes, *around_notes(raw.detected.top, raw.detected.bottom)]
        for start in range(0, len(raw), size):
            part = RawTable(
                names=raw.names,
                columns=tuple(column.slice(start, size) for column in raw.columns),
                line_numbers=raw.line_numbers[start : start + size],
                detected=raw.detected,
            )
            file_columns = pa.RecordBatch.from_arrays(list(part.columns), list(raw.names)) if source.keep else None
            yield _rows_under_model(model, part, raw.names, reading), len(raw), file_columns
        return
    with ParquetPieces(source.path, source.limits) as file:
        used_columns = model.tree.used_columns
        check_columns(reading.names(file.names), model.tree.schema, target=model.target, used=used_columns)
        # a stored number always fits; texts of columns that the tree does not ask are read to report those that do not fit
        judged = {
            c.name
            for c in model.tree.schema
            if c.kind is not ColumnKind.CATEGORICAL or c.unknown is UnknownPolicy.REFUSE
        }
        requested = reading.sources(names) | (reading.sources(judged) & file.text_names) | {model.target}
        parts: Iterator[tuple[RawTable, pa.RecordBatch | None]] = (
            file.read_all(requested, size) if source.keep else ((part, None) for part in file.read(requested, size))
        )
        for part, file_columns in parts:
            yield _rows_under_model(model, part, file.names, reading), file.rows, file_columns


def _rows_under_model(
    model: ModelFile, part: RawTable, names: tuple[str, ...], reading: ColumnParsing
) -> ModelRows | DataError:
    tree = model.tree
    absent, extra = check_columns(reading.names(names), tree.schema, target=model.target, used=tree.used_columns)
    try:
        rows = rows_for_model(
            part,
            tree.schema,
            target=model.target,
            classes=tree.classes,
            used=tree.used_columns,
            refused=tree.refused_columns,
            only_used=True,
            reading=reading,
        )
    except DataError as error:
        return error
    return replace(rows, extra_columns=extra, absent_columns=absent)


def _with_changes(model: ModelFile, source: RowSource, proposals: tuple[ChangedForm, ...]) -> tuple[ChangedForm, ...]:
    """Return the proposals with the number of answers that each would change; reads the file again if there are any."""
    if not proposals:
        return ()
    again = replace(source, keep=False, training=None)
    pieces = _pieces(model, again, _Total(model, None), PIECE)
    pairs: Iterable[tuple[Any, Any]] = ((piece, piece) for piece in pieces)
    if any(proposal.words for proposal in proposals):
        renamed = replace(model, tree=replace(model.tree, schema=renamed_schema(model.tree.schema, proposals)))
        pairs = zip(pieces, _pieces(renamed, again, _Total(model, None), PIECE), strict=True)
    return count_changes(model.tree, proposals, _readable(pairs))


def _readable(pieces: Iterable[tuple[Any, Any]]) -> Iterator[Reread]:
    for (rows, *_), (other, *_) in pieces:
        if isinstance(rows, DataError) or isinstance(other, DataError):  # the file has changed since it was predicted
            raise rows if isinstance(rows, DataError) else other
        yield Reread(rows.table.matrix(), rows.usable, other.table.matrix())


class _Total:
    """Counts over all pieces."""

    def __init__(self, model: ModelFile, training: TrainingSet | None) -> None:
        self.tree = tree = model.tree
        self.training = training
        self.trained = 0
        self.rows = self.predicted = self.known = self.correct = self.base_correct = 0
        self.most = int(np.argmax(tree.nodes[0].counts))
        self.labels = np.zeros(len(tree.classes), np.int64)
        self.unknown: Counter[str] = Counter()
        self.empty = self.unseen = 0
        # number of cells outside the training range, by used column
        self.outside = np.zeros(len(tree.used_columns), np.int64)
        self.respelled: Counter[str] = Counter()
        self.odd = OddWords()
        self.watch = FormWatch(tree)
        self.unseen_columns: set[str] = set()
        self.last: ModelRows | None = None
        self.around: list[str] = []  # notes on the format and on lines that are not rows
        self.life: dict[str, Counter[str]] = {}

    def add(self, rows: ModelRows, leaves: CodeArray) -> None:
        codes = self.tree.labels[leaves]
        self.rows += len(leaves)
        self.predicted += int(rows.usable.sum())
        self.labels += np.bincount(codes[rows.usable], minlength=len(self.labels))
        self.unknown.update(rows.unknown)
        self.respelled.update(rows.respelled)
        self.odd.add(rows.odd)
        self.watch.add(rows.table.matrix(), rows.unknown_words)
        self._count_empty(rows)
        self._count_life(rows, leaves)
        self.outside += self.tree.outside(rows.table.matrix()[rows.usable]).sum(axis=0)
        self.last = rows
        if rows.labels is not None:
            has_class = rows.usable & (rows.labels.codes >= 0)
            self.known += int(has_class.sum())
            self.correct += int((codes[has_class] == rows.labels.codes[has_class]).sum())
            self.base_correct += int((rows.labels.codes[has_class] == self.most).sum())
            if self.training is not None:
                self.trained += self.training.count(rows.table.matrix()[has_class], rows.labels.codes[has_class])

    def _count_life(self, rows: ModelRows, leaves: CodeArray) -> None:
        """Count answers by leaf, refused rows and unusual cells, as a server does."""
        matrix = rows.table.matrix()
        counts = np.bincount(leaves[rows.usable])
        life: dict[str, dict[str, int]] = {
            "rows": {str(leaf): int(counts[leaf]) for leaf in np.flatnonzero(counts).tolist()},
            "refused_empty": {},
        }
        refused = list(self.tree.refused_columns)
        first = np.isnan(matrix[~rows.usable][:, refused]).argmax(axis=1) if refused else np.zeros(0, np.int64)
        for k, number in enumerate(np.bincount(first).tolist()):
            life["refused_empty"][self.tree.schema[refused[k]].name] = number
        for kind, numbers in (life | self.tree.unusual_cells(matrix[rows.usable])).items():
            self.life.setdefault(kind, Counter()).update({name: number for name, number in numbers.items() if number})

    def _count_empty(self, rows: ModelRows) -> None:
        """Count the rows whose path tests empty cells; the tree is walked only for rows with an empty cell."""
        matrix = rows.table.matrix()
        with_empty = rows.usable & self.tree.has_empty(matrix)
        if not with_empty.any():
            return
        unseen = self.tree.unseen_empty(matrix[with_empty])
        self.empty += int(self.tree.empty_cells(matrix[with_empty]).any(axis=1).sum())
        self.unseen += int(unseen.any(axis=1).sum())
        self.unseen_columns |= {self.tree.schema[j].name for j in np.flatnonzero(unseen.any(axis=0))}

    def result(self, proposals: tuple[ChangedForm, ...] = ()) -> PredictionSummary:
        notes = list(self.around)
        if self.last is not None:
            if self.last.extra_columns:
                notes.append(
                    f"Columns that the model does not know are ignored: {list_names(self.last.extra_columns)}."
                )
            if self.last.absent_columns:
                notes.append(f"Columns that the tree does not use are missing: {list_names(self.last.absent_columns)}.")
        notes += [proposal.sentence for proposal in proposals]
        for name, count in self.unknown.items():
            notes.append(unknown_words(name, count))
        notes += self.odd.notes
        notes += [respelled_words(name, count) for name, count in self.respelled.items()]
        for j, count in zip(self.tree.used_columns, self.outside.tolist(), strict=True):
            if count:
                notes.append(outside_words(self.tree.schema[j], count))
        if self.trained:
            notes.append(
                f"{self.trained} of the {self.known} rows with a known class equal rows of the training in all columns that the "
                "tree asks: right answers on them say little about new rows."
            )
        if self.known and self.training is None:
            notes.append(
                f"Training rows may be among the {self.known} rows with a known class: right answers on them say "
                "little about new rows. The model file does not show which rows these are."
            )
        notes += empty_cell_notes(self.empty, self.unseen, self.unseen_columns)
        if unanswered := self.rows - self.predicted:
            notes.append(empty_words(unanswered, self.rows))
        return PredictionSummary(
            rows=self.rows,
            predicted=self.predicted,
            labels=dict(zip(self.tree.classes, self.labels.tolist(), strict=True)),
            known=self.known,
            correct=self.correct,
            base_correct=self.base_correct,
            trained=None if self.training is None else self.trained,
            unknown=dict(self.unknown),
            out_of_range={
                self.tree.schema[j].name: count
                for j, count in zip(self.tree.used_columns, self.outside.tolist(), strict=True)
                if count
            },
            respelled=dict(self.respelled),
            proposals=proposals,
            notes=tuple(notes),
            life={kind: dict(numbers) for kind, numbers in self.life.items() if numbers},
        )


def _flush(stream: Any) -> None:
    stream.flush()
    os.fsync(stream.fileno())


@contextmanager
def _temporary_name(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, so that nobody reads a half-written file; remove it afterwards in any case."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
