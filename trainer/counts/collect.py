"""Count the rows of a source in two passes.

The first pass makes the questions, the second one counts. If the second pass over files is stopped, the next count
resumes at its last checkpoint.
"""

from __future__ import annotations

import io
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from trainer.counts.database import QueryGuard
from trainer.counts.folder import CountedQuestions, Counts, Part, check_size, suppress_small, write_counts
from trainer.counts.kernels import add_counts
from trainer.counts.opening import open_source
from trainer.counts.sets import number_of_sets
from trainer.counts.source import Source
from trainer.data.encoding import Scheme, Test, encode_binary
from trainer.data.folds import MOST_FOLDS
from trainer.data.formats.raw import RawTable, as_text
from trainer.data.parsing import ColumnParsing, ParsingChoices, reading_of
from trainer.data.parsing.cells import Cells
from trainer.data.reader import ModelRows, build_as_read, rows_for_model
from trainer.dtypes import BitArray, CountArray
from trainer.errors import DataError, ParameterError
from trainer.kernels.bits import pack_bits
from trainer.methods.base import BINS
from trainer.table import ClassType
from trainer.tree.document import write_atomically

MIN_SAMPLE_ROWS = 250_000  # least rows of the sample for the questions; a source of up to twice as many is read whole
BLOCK = 1 << 15  # rows per call of the kernel, so that the words of a question stay in the processor's cache
MOST_BINS = int(BINS.maximum or 0)
MOST_CLASSES = 1000
SECONDS = 10.0  # interval between two checkpoints
UNFINISHED = "unfinished"  # name of the checkpoint files of an unfinished count
NO_CLASS = "no class, or one that training does not have"

Report = Callable[[str, int], None]  # called with the phase and the number of rows so far


@dataclass(frozen=True, kw_only=True)
class CountRequest:
    """A request to count the rows of a source: a path, the URI of an object store, or the URL of a database with a `query`.

    `questions` are those of earlier counts. Without them, questions are made from the rows with `scheme` and
    `bins` as in training, and with the `options` of `trainer.data.reader.build_as_read`. A hash of the column
    `key`, which no question tests, assigns rows to `folds`. Numbers below `suppress` are kept secret.
    """

    source: Path | str
    target: str
    query: str | None = None
    depth: int = 3
    scheme: Scheme = Scheme.QUANTILE_THRESHOLDS
    bins: int = 5
    folds: int = 0
    key: str | None = None
    suppress: int = 0
    label: str = ""  # named in the counts in place of the file, or of the host of a database
    questions: CountedQuestions | None = None
    given: ParsingChoices = field(default_factory=ParsingChoices)
    options: Mapping[str, Any] = field(default_factory=dict)
    threads: int = 0  # 0 means one per processor
    most_rows: int | None = None  # a source with more rows is refused
    guard: QueryGuard | None = None


def count(
    request: CountRequest, folder: Path, report: Report | None = None, note: Callable[[str], None] | None = None
) -> Counts:
    """Count the rows of a source and write the folder of counts; `note` receives sentences about how the rows were read.

    Raises
    ------
    DataError
        If rows cannot be read, or the folder holds counts already.
    ParameterError
        If the depth, the folds or the number of questions cannot be counted.
    """
    say = report or (lambda phase, rows: None)
    check_request(request)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return _count_into(request, folder, say, note or (lambda text: None))
    except BaseException:
        with suppress(OSError):  # `rmdir` leaves a folder that is not empty
            folder.rmdir()
        raise


def _count_into(request: CountRequest, folder: Path, say: Report, note: Callable[[str], None]) -> Counts:
    with open_source(request.source, query=request.query, structure=_structure(request), guard=request.guard) as source:
        name = _name_of(request, source)
        state = _State.read(folder, name) if source.resumable else None
        if state is None:
            questions = request.questions or make_questions(request, source, say, note)
            check_size(len(questions), len(questions.classes), request.folds, request.depth)
            state = _State.begin(name, questions, request)
        _collect(request, source, state, folder, say)
        counts = state.result(request, source)
    counts = suppress_small(counts, request.suppress) if request.suppress else counts
    write_counts(counts, folder)
    _State.forget(folder)
    return counts


def _structure(request: CountRequest) -> dict[str, Any]:
    """Return the file structure that the request states, else that of the earlier counts."""
    structure = request.given.structure
    if request.questions is None or any(value is not None for value in structure.values()):
        return structure
    return ColumnParsing.from_json(request.questions.reading).given.structure


def check_request(request: CountRequest) -> None:
    """Raise ParameterError if depth, folds, bins, key, threads or suppression cannot be counted."""
    if request.folds and not 2 <= request.folds <= MOST_FOLDS:
        raise ParameterError({"folds": f"choose 2 to {MOST_FOLDS} folds, not {request.folds}."})
    if bool(request.folds) != (request.key is not None):
        raise ParameterError(
            {"key": "--folds and --key belong together: the key column assigns rows to folds. Give both or neither."}
        )
    if request.folds and request.suppress:
        raise ParameterError(
            {"suppress": "fold counts are small, so nearly all would be secret. Leave --folds or --suppress out."}
        )
    if request.suppress and request.suppress < 2:
        raise ParameterError(
            {"suppress": f"name the smallest number that may be shown, at least 2; not {request.suppress}."}
        )
    if not 2 <= request.bins <= MOST_BINS:
        raise ParameterError({"bins": f"choose 2 to {MOST_BINS} quantiles for numeric columns, not {request.bins}."})
    if request.threads < 0:
        raise ParameterError({"threads": f"name a number of threads, or 0 for all processors; not {request.threads}."})
    if request.key == request.target:
        raise ParameterError(
            {"key": "the key must differ from the target. Choose another column to assign rows to folds."}
        )
    check_size(0, 1, request.folds, request.depth)


def make_questions(
    request: CountRequest, source: Source, report: Report, note: Callable[[str], None]
) -> CountedQuestions:
    """Make the questions that training would ask, from all rows or every k-th; the classes come from all rows."""
    parts, stride, rows = _sample(request, source, report)
    raw = concatenate(parts)
    options = dict(request.options)
    if request.key is not None:
        options["ignore"] = [*options.get("ignore", ()), request.key]
    table, labels, read = build_as_read(raw, reading_of(raw, request.given), target=request.target, **options)
    for text in read.notes:  # notes may quote cells, so they are reported and not stored in the folder
        note(text)
    if len(labels.classes) < 2:
        raise DataError(
            f"Column '{request.target}' has one class only, so there is nothing to learn. Choose another target."
        )
    return CountedQuestions(
        target=request.target,
        classes=labels.classes,
        class_type=labels.type or ClassType.TEXT,
        encoding=encode_binary(table, request.scheme, request.bins),
        reading=table.reading,
        asked={
            "binarise": str(request.scheme),
            "bins": request.bins,
            "from_rows": len(raw),
            "of_rows": rows,
            "each": stride,
        },
    )


def _sample(request: CountRequest, source: Source, report: Report) -> tuple[list[RawTable], int, int]:
    """Return every k-th row and the first row of each class missing there, then k and the number of all rows."""
    pieces: list[tuple[np.ndarray, RawTable]] = []
    first: dict[str, RawTable] = {}
    stride = 1
    rows = 0
    for piece in source.pieces():
        raw = piece.rows
        if request.target not in raw.names:
            raise DataError(
                f"{source.names[piece.part]} has no column '{request.target}'. Correct the target, or leave out this file."
            )
        words = Cells.of(raw.column(request.target))
        for i, word in enumerate(words.words):
            if word not in first:
                first[word] = take_rows(raw, np.flatnonzero(words.index == i)[:1])
        if len(first) > MOST_CLASSES:
            raise DataError(
                f"Column '{request.target}' has more than {MOST_CLASSES:,} different values, too many for classes. Choose another target."
            )
        pieces.append(_every(np.arange(rows, rows + len(raw)), raw, stride))
        rows += len(raw)
        while sum(len(index) for index, _ in pieces) > 2 * MIN_SAMPLE_ROWS:
            stride *= 2
            pieces = [_every(index, part, stride) for index, part in pieces]
        _check_rows(request, rows)
        report("questions", rows)
    parts = [part for _, part in pieces if len(part)]
    there = {word for part in parts for word in Cells.of(part.column(request.target)).words}
    return [*parts, *(row for word, row in first.items() if word not in there)], stride, rows


def _check_rows(request: CountRequest, rows: int) -> None:
    if request.most_rows is not None and rows > request.most_rows:
        raise DataError(
            f"The source has more than {request.most_rows:,} rows, the limit here. Choose fewer files, or a query with fewer rows."
        )


def _every(index: np.ndarray, rows: RawTable, stride: int) -> tuple[np.ndarray, RawTable]:
    """Return the rows whose index in the source, int64 (rows,), is a multiple of `stride`."""
    mask = index % stride == 0
    return (index, rows) if stride == 1 else (index[mask], take_rows(rows, np.flatnonzero(mask)))


def take_rows(raw: RawTable, rows: np.ndarray) -> RawTable:
    """Return the rows with these indices, int64 (rows,)."""
    indices = pa.array(rows)
    return replace(raw, columns=tuple(c.take(indices) for c in raw.columns), line_numbers=raw.line_numbers[rows])


def concatenate(parts: Sequence[RawTable]) -> RawTable:
    """Return pieces of one or more files as one table; raise DataError if a column is missing in one or has another type."""
    first = parts[0]
    if len(parts) == 1:
        return first
    columns = []
    for name in first.names:
        arrays = []
        for part in parts:
            if name not in part.names:
                raise DataError(f"A file of the source has no column '{name}'. All files need the same columns.")
            arrays.append(part.column(name))
        plain = any(part.detected.format == "csv" for part in parts) and len({array.type for array in arrays}) > 1
        columns.append(_join_arrays(name, [as_text(own) for own in arrays] if plain else arrays))
    lines = np.concatenate([part.line_numbers for part in parts])
    return RawTable(names=first.names, columns=tuple(columns), line_numbers=lines, detected=first.detected)


def _join_arrays(name: str, arrays: list[pa.Array]) -> pa.Array:
    """Join the pieces of a column; if some have integers and others floats, the result has floats."""
    types = {array.type for array in arrays}
    if any(pa.types.is_dictionary(kind) for kind in types):  # declared categories; pieces may number them differently
        if len(types) > 1:  # also ordered categories mixed with others
            arrays = [as_text(own).dictionary_encode() for own in arrays]
        return pa.chunked_array(arrays).unify_dictionaries().combine_chunks()
    if len(types) > 1 and all(pa.types.is_integer(t) or pa.types.is_floating(t) for t in types):
        arrays = [array.cast(pa.float64()) for array in arrays]
    elif len(types) > 1:
        words = " and ".join(sorted(map(str, types)))
        raise DataError(f"Column '{name}' has the types {words} in different files. Write it with one type.")
    return pa.concat_arrays(arrays)


@dataclass(kw_only=True)
class _State:
    """Checkpoint of the counting pass, which has counted all rows before row `start` of part `part`.

    `numbers`, int64 (folds, classes, sets), are the counts. `parts` are the finished parts.
    """

    name: str
    questions: CountedQuestions
    numbers: CountArray
    part: int = 0
    start: int = 0
    part_rows: int = 0  # rows of this part that have been counted
    parts: list[Part] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)

    @classmethod
    def begin(cls, name: str, questions: CountedQuestions, request: CountRequest) -> _State:
        sets = number_of_sets(len(questions), request.depth)
        numbers = np.zeros((max(request.folds, 1), len(questions.classes), sets), np.int64)
        return cls(name=name, questions=questions, numbers=numbers)

    def keep(self, folder: Path) -> None:
        """Write the checkpoint; the description comes last and names the numbers, so that the two always belong together."""
        stream = io.BytesIO()
        np.save(stream, self.numbers, allow_pickle=False)
        numbers = sha256(stream.getvalue()).hexdigest()
        record = {
            "name": self.name,
            "numbers": numbers,
            "questions": self.questions.to_json() | {"asked": dict(self.questions.asked)},
            "part": self.part,
            "start": self.start,
            "part_rows": self.part_rows,
            "parts": [[part.name, part.sha256, part.rows] for part in self.parts],
            "left_out": self.left_out,
            "unknown": self.unknown,
        }
        number = f"{UNFINISHED}-{numbers[:16]}.npy"
        write_atomically(folder / number, stream.getvalue())
        write_atomically(folder / f"{UNFINISHED}.json", json.dumps(record, allow_nan=False).encode())
        for old in folder.glob(f"{UNFINISHED}-*.npy"):
            if old.name != number:
                old.unlink(missing_ok=True)

    @classmethod
    def read(cls, folder: Path, name: str) -> _State | None:
        """Return the checkpoint of an earlier pass of the same request; None if there is no complete one."""
        try:
            record = json.loads((folder / f"{UNFINISHED}.json").read_text(encoding="utf-8"))
            content = (folder / f"{UNFINISHED}-{record['numbers'][:16]}.npy").read_bytes()
            if record["name"] != name or sha256(content).hexdigest() != record["numbers"]:
                return None
            return cls(
                name=name,
                questions=CountedQuestions.from_json(record["questions"]),
                numbers=np.load(io.BytesIO(content), allow_pickle=False),
                part=record["part"],
                start=record["start"],
                part_rows=record["part_rows"],
                parts=[Part(name=n, sha256=digest, rows=rows) for n, digest, rows in record["parts"]],
                left_out=Counter(record["left_out"]),
                unknown=Counter(record["unknown"]),
            )
        except (OSError, ValueError, LookupError, TypeError):
            return None

    @staticmethod
    def forget(folder: Path) -> None:
        for old in [*folder.glob(f"{UNFINISHED}-*.npy"), folder / f"{UNFINISHED}.json"]:
            old.unlink(missing_ok=True)

    def result(self, request: CountRequest, source: Source) -> Counts:
        if not sum(part.rows for part in self.parts):
            raise DataError(
                "No row of the source can be counted: each lacks a class, or has an empty cell that the questions do not allow. "
                "Choose another target, or fill the empty cells."
            )
        label = request.label or source.label
        parts = [replace(part, name=label) if part.name == source.label else part for part in self.parts]
        return Counts(
            questions=self.questions,
            depth=request.depth,
            low=self.numbers,
            high=self.numbers,
            rows=sum(part.rows for part in parts),
            parts=tuple(sorted(parts, key=lambda part: (part.sha256, part.name))),
            key=request.key,
            left_out=dict(sorted((+self.left_out).items())),
            unknown=dict(sorted((+self.unknown).items())),
            source=label,
            origin=source.origin,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )


def _name_of(request: CountRequest, source: Source) -> str:
    """Return a digest of the request and its parts, which identifies its checkpoint."""
    questions = None if request.questions is None else request.questions.to_json()
    record = {
        "request": [request.target, request.depth, str(request.scheme), request.bins, request.folds, request.key],
        "questions": questions,
        "given": request.given.to_json(),
        "options": repr(sorted(request.options.items())),
        "parts": [[name, source.digest(part)] for part, name in enumerate(source.names)],
    }
    return sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _collect(request: CountRequest, source: Source, state: _State, folder: Path, report: Report) -> None:
    """Count all rows from the checkpoint on; raise DataError for a part that changed meanwhile."""
    encoding = state.questions.encoding
    used_columns = sorted({feature.column for feature in encoding.features})
    reading = ColumnParsing.from_json(state.questions.reading)
    names = {encoding.schema[j].name for j in used_columns}
    needed_names = reading.sources(names) | {state.questions.target, *([request.key] if request.key else [])}
    last = time.monotonic()
    threads = request.threads or os.cpu_count() or 1
    with ThreadPoolExecutor(threads) as pool:
        rows_done = sum(part.rows for part in state.parts) + state.part_rows
        for piece in source.pieces(needed_names, first=state.part, start=state.start):
            while state.part < piece.part:
                _end_part(state, source)
            bits, groups = _rows_of(piece.rows, state, request, reading, used_columns)
            _add(bits, groups, state.numbers, request.depth, pool, threads)
            state.start = piece.start + len(piece.rows)
            state.part_rows += len(bits)
            rows_done += len(bits)
            _check_rows(request, rows_done)
            report("counting", rows_done)
            if source.resumable and time.monotonic() - last > SECONDS:
                state.keep(folder)
                last = time.monotonic()
    while state.part < len(source.names):
        _end_part(state, source)


def _end_part(state: _State, source: Source) -> None:
    name = source.names[state.part]
    if source.changed(state.part):
        raise DataError(f"{name} was changed while it was counted. Count again.")
    if state.start:  # a file without rows is not a part: all such files look the same
        digest = source.digest(state.part)
        if not source.resumable:  # a query may give other rows later, and then other numbers
            digest = sha256(digest.encode() + state.numbers.tobytes()).hexdigest()
        state.parts.append(Part(name=name, sha256=digest, rows=state.part_rows))
    state.part += 1
    state.start = 0
    state.part_rows = 0


def _rows_of(
    raw: RawTable, state: _State, request: CountRequest, reading: ColumnParsing, used: Sequence[int]
) -> tuple[BitArray, np.ndarray]:
    """Return the answers of the counted rows, uint8 (rows, questions), and the index of each row's fold and class."""
    questions = state.questions
    encoding = questions.encoding
    rows = rows_for_model(
        raw,
        encoding.schema,
        target=questions.target,
        classes=questions.classes,
        used=used,
        refused=_refused_columns(questions),
        only_used=True,
        reading=reading,
    )
    state.unknown.update(rows.unknown)
    if rows.labels is None:
        raise DataError(f"There is no column '{questions.target}'. Give files with the target column of the questions.")
    codes = rows.labels.codes
    has_class = codes >= 0
    keep = rows.usable & has_class
    _count_left_out(state, rows, has_class)
    groups = codes.astype(np.int64)
    if request.key is not None:
        if request.key not in raw.names:
            raise DataError(f"There is no column '{request.key}' to assign rows to folds. Choose another key.")
        groups += len(questions.classes) * folds_of(Cells.of(raw.column(request.key)), request.folds)
    return encoding.bits(rows.table)[keep], groups[keep]


def _count_left_out(state: _State, rows: ModelRows, known: np.ndarray) -> None:
    state.left_out[NO_CLASS] += int((~known).sum())
    unusable = known & ~rows.usable
    if unusable.any():
        state.left_out["an empty cell in a column whose questions know none"] += int(unusable.sum())


def _refused_columns(questions: CountedQuestions) -> list[int]:
    """Return the columns in which questions have no answer for an empty cell, since the sample had none."""
    schema = questions.encoding.schema
    refused = set()
    for feature in questions.encoding.features:
        level = feature.test is Test.LEVEL
        if (level and schema[feature.column].missing_code is None) or (not level and feature.empty is None):
            refused.add(feature.column)
    return sorted(refused)


def folds_of(cells: Cells, folds: int) -> np.ndarray:
    """Return the fold of each row, int64 (rows,), by a hash of its cell; equal cells have the same fold in every count."""
    each = [int.from_bytes(sha256(word.encode()).digest()[:8], "big") % folds for word in cells.words]
    return np.array(each, np.int64)[cells.index]


def _add(
    bits: BitArray, groups: np.ndarray, numbers: CountArray, depth: int, pool: ThreadPoolExecutor, threads: int
) -> None:
    """Add the answers of some rows, uint8 (rows, questions), to the counts `numbers`."""
    flat = numbers.reshape(-1, numbers.shape[-1])
    order = np.argsort(groups, kind="stable")
    ends = np.searchsorted(groups[order], np.arange(len(flat) + 1))
    columns = np.ascontiguousarray(bits.T)
    for group in range(len(flat)):
        rows = order[ends[group] : ends[group + 1]]
        if not len(rows):
            continue
        flat[group, 0] += len(rows)
        blocks = [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]
        shares = [blocks[i::threads] for i in range(min(threads, len(blocks)))]
        for partial in pool.map(lambda share: _of_blocks(columns, share, depth, flat.shape[1]), shares):
            flat[group] += partial


def _of_blocks(columns: BitArray, blocks: Sequence[np.ndarray], depth: int, sets: int) -> CountArray:
    out = np.zeros(sets, np.int64)
    for rows in blocks:
        add_counts(pack_bits(columns[:, rows]), depth, out)
    return out
