"""A file of rows to a file of predictions: `predict_file` reads, predicts and writes piece by piece.

A result has one row for each row of the input, in its order: `row` (from 1, without the header), `label`, the share of each class
at the leaf, `leaf`; all but `row` are empty where a cell that the tree needs is empty.
"""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trainer.data.file_bytes import PARQUET_MAGIC, ReadLimits
from trainer.data.raw import ParquetPieces, RawTable, read
from trainer.data.reader import ModelRows, check_columns, rows_for_model, several
from trainer.data.spreadsheet import as_text
from trainer.dtypes import CodeArray
from trainer.errors import DataError, listed
from trainer.tree.file import ModelFile
from trainer.tree.known_rows import digests, unpacked
from trainer.tree.known_rows import known as among
from trainer.tree.nodes import Tree

PIECE = 50_000  # rows read, predicted and written at a time
LISTED = 20  # places of an error that are named

Report = Callable[[str, int, int], None]  # phase, rows done, rows in all (0: not known yet)


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """What was predicted: rows of the file, rows with a prediction, rows of each label, and notes on odd values.

    `known` rows have a class in the file, of which `correct` are predicted right; both are 0 without the target column. Of them
    `trained` equal rows of the training in their class and in every column that the tree asks; None where the model cannot tell.
    """

    rows: int
    predicted: int
    labels: dict[str, int]
    known: int
    correct: int
    trained: int | None
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The record as a dictionary."""
        return {
            "rows": self.rows, "predicted": self.predicted, "labels": self.labels, "known": self.known,
            "correct": self.correct, "trained": self.trained, "notes": list(self.notes),
        }  # fmt: skip


class Writer(Protocol):
    """Writes pieces of a result; see `writer_of`."""

    def write(self, first: int, leaves: CodeArray, usable: np.ndarray) -> None:
        """Rows from number `first` on: their leaves, int32 (n,), and whether they have a prediction, bool (n,)."""

    def close(self) -> None:
        """Write what is left."""


class CsvWriter:
    """Rows of the same leaf share their text, which is made once; labels stay text in spreadsheets where that is asked for."""

    def __init__(self, tree: Tree, stream: Any, *, for_spreadsheets: bool = False) -> None:
        label = as_text if for_spreadsheets else str
        self.stream = stream
        self.stream.write(_line(["row", "label", *(f"probability {c}" for c in tree.classes), "leaf"]))
        self.answers = [
            ","
            + _line([label(tree.classes[int(tree.labels[v.id])]), *map(repr, tree.probabilities[v.id].tolist()), v.id])
            for v in tree.nodes
        ]
        self.answers.append("," * (len(tree.classes) + 2) + "\n")

    def write(self, first: int, leaves: CodeArray, usable: np.ndarray) -> None:
        answers, nothing = self.answers, len(self.answers) - 1
        found = np.where(usable, leaves, nothing).tolist()
        self.stream.write("".join([f"{i}{answers[leaf]}" for i, leaf in enumerate(found, first)]))

    def close(self) -> None:
        self.stream.flush()


class ParquetWriter:
    """Columns row (int64), label (text), one share (double) for each class, leaf (int32)."""

    def __init__(self, tree: Tree, stream: Any) -> None:
        self.labels = pa.array([tree.classes[int(k)] for k in tree.labels], pa.string())
        self.shares = [pa.array(tree.probabilities[:, k]) for k in range(len(tree.classes))]
        names = [*(f"probability {c}" for c in tree.classes)]
        self.schema = pa.schema(
            [
                ("row", pa.int64()),
                ("label", pa.string()),
                *((name, pa.float64()) for name in names),
                ("leaf", pa.int32()),
            ]
        )
        self.writer = pq.ParquetWriter(stream, self.schema, compression="zstd")

    def write(self, first: int, leaves: CodeArray, usable: np.ndarray) -> None:
        found = pa.array(leaves, pa.int32(), mask=~usable)
        rows = pa.array(np.arange(first, first + len(leaves)))
        shares = [share.take(found) for share in self.shares]
        self.writer.write_batch(pa.record_batch([rows, self.labels.take(found), *shares, found], schema=self.schema))

    def close(self) -> None:
        self.writer.close()


def predict_file(
    model: ModelFile,
    data: str | Path,
    output: str | Path | io.TextIOBase,
    *,
    limits: ReadLimits | None = None,
    report: Report | None = None,
    for_spreadsheets: bool = False,
) -> Predicted:
    """Predict the rows of a CSV (also .gz) or Parquet file and write the answers to `output`, a path or a text stream.

    A path that ends in .parquet gets Parquet, any other CSV; the file is written beside it and renamed into place at the end.
    `for_spreadsheets`: labels of a CSV file that a spreadsheet would take for formulas get an apostrophe.
    `report` is called between the pieces. Raises DataError, whose `problems` name row and column, and OSError.
    """
    data, say = Path(data), report or (lambda phase, done, total: None)
    if isinstance(output, io.TextIOBase):
        return _predict(model, data, CsvWriter(model.tree, output, for_spreadsheets=for_spreadsheets), limits, say)
    path = Path(output)
    with _beside(path) as temporary:
        if path.suffix.lower() == ".parquet":
            with temporary.open("wb") as binary:
                found = _predict(model, data, ParquetWriter(model.tree, binary), limits, say)
                _flush(binary)
        else:
            with temporary.open("w", encoding="utf-8", newline="") as stream:
                found = _predict(
                    model, data, CsvWriter(model.tree, stream, for_spreadsheets=for_spreadsheets), limits, say
                )
                _flush(stream)
        temporary.replace(path)
    return found


def _predict(model: ModelFile, data: Path, writer: Writer, limits: ReadLimits | None, say: Report) -> Predicted:
    tree = model.tree
    total = _Total(model)
    problems: list[str] = []
    say("reading", 0, 0)
    for rows, count in _pieces(model, data, limits):
        if isinstance(rows, DataError):
            problems += rows.problems or [str(rows)]
            if len(problems) >= LISTED:
                break
            continue
        if not problems:  # an error elsewhere leaves no result, but its other places are still looked for
            leaves = tree.apply(rows.table.matrix())
            writer.write(total.rows + 1, leaves, rows.usable)
            total.add(rows, leaves)
            say("predicting", total.rows, count)
    if problems:
        raise several(problems[:LISTED])
    writer.close()
    return total.result()


def _pieces(model: ModelFile, data: Path, limits: ReadLimits | None) -> Iterator[tuple[ModelRows | DataError, int]]:
    """Rows of the file under the model's schema, or what is wrong with them, and the number of rows in all."""
    if not _is_parquet(data):
        raw = read(data, limits=limits)
        for start in range(0, len(raw), PIECE):
            part = RawTable(
                names=raw.names,
                columns=tuple(column.slice(start, PIECE) for column in raw.columns),
                line_numbers=raw.line_numbers[start : start + PIECE],
                detected=raw.detected,
            )
            yield _under_model(model, part, raw.names), len(raw)
        return
    with ParquetPieces(data, limits) as file:
        used = model.tree.used_columns
        check_columns(file.names, model.tree.schema, target=model.target, used=used)
        wanted = {model.tree.schema[j].name for j in used} | {model.target}
        for part in file.read(wanted, PIECE):
            yield _under_model(model, part, file.names), file.rows


def _under_model(model: ModelFile, part: RawTable, names: tuple[str, ...]) -> ModelRows | DataError:
    tree = model.tree
    absent, extra = check_columns(names, tree.schema, target=model.target, used=tree.used_columns)
    try:
        rows = rows_for_model(
            part, tree.schema, target=model.target, classes=tree.classes, used=tree.used_columns, only_used=True
        )
    except DataError as error:
        return error
    return ModelRows(
        table=rows.table, labels=rows.labels, usable=rows.usable, unknown=rows.unknown, missing=rows.missing,
        extra_columns=extra, absent_columns=absent,
    )  # fmt: skip


def _is_parquet(data: Path) -> bool:
    try:
        with data.open("rb") as stream:
            return stream.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC
    except OSError as error:
        raise DataError(f"The file '{data.name}' cannot be read: {error.strerror or error}.") from error


class _Total:
    """Counts over the pieces."""

    def __init__(self, model: ModelFile) -> None:
        self.tree = tree = model.tree
        self.digests = unpacked(model.training_rows)
        self.trained = 0
        self.rows = self.predicted = self.known = self.correct = 0
        self.labels = np.zeros(len(tree.classes), np.int64)
        self.unknown: Counter[str] = Counter()
        self.last: ModelRows | None = None

    def add(self, rows: ModelRows, leaves: CodeArray) -> None:
        codes = self.tree.labels[leaves]
        self.rows += len(leaves)
        self.predicted += int(rows.usable.sum())
        self.labels += np.bincount(codes[rows.usable], minlength=len(self.labels))
        self.unknown.update(rows.unknown)
        self.last = rows
        if rows.labels is not None:
            known = rows.usable & (rows.labels.codes >= 0)
            self.known += int(known.sum())
            self.correct += int((codes[known] == rows.labels.codes[known]).sum())
            if self.digests is not None and known.any():
                found = digests(self.tree, rows.table.matrix()[known], rows.labels.codes[known])
                self.trained += int(among(found, self.digests).sum())

    def result(self) -> Predicted:
        notes: list[str] = []
        if self.last is not None:
            if self.last.extra_columns:
                notes.append(f"Columns that the model does not know are ignored: {listed(self.last.extra_columns)}.")
            if self.last.absent_columns:
                notes.append(f"Columns that the tree does not use are absent: {listed(self.last.absent_columns)}.")
        for name, count in self.unknown.items():
            notes.append(f"Column '{name}': {count} cells have a category that the model does not know; they go right.")
        if self.trained:
            notes.append(
                f"{self.trained} of the {self.known} rows with a known class equal rows of the training in all columns that the "
                "tree asks: right answers on them say little about new rows."
            )
        if gone := self.rows - self.predicted:
            notes.append(f"{gone} of {self.rows} rows have an empty cell that the tree needs and get no prediction.")
        return Predicted(
            rows=self.rows,
            predicted=self.predicted,
            labels=dict(zip(self.tree.classes, self.labels.tolist(), strict=True)),
            known=self.known,
            correct=self.correct,
            trained=None if self.digests is None else self.trained,
            notes=tuple(notes),
        )


def _line(cells: list[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


def _flush(stream: Any) -> None:
    stream.flush()
    os.fsync(stream.fileno())


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to, so that nobody reads half of it; gone afterwards, whatever happened."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
