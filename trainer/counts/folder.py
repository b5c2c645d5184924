"""Store counts in a folder, and add folders of the same questions.

`counts.json` describes the count, `counts.npz` has the numbers.
"""

from __future__ import annotations

import io
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from trainer.counts.sets import DEEPEST, number_of_sets, place
from trainer.data.encoding import EncodedFeature, Encoding, Test
from trainer.dtypes import CountArray
from trainer.errors import DataError, ParameterError
from trainer.table import ClassType, ColumnSchema, UnknownPolicy, with_ranks
from trainer.tree.document import write_atomically
from trainer.version import VERSION

FORMAT = "octweb-counts"
RECORD = "counts.json"
NUMBERS = "counts.npz"
MAX_RECORD_BYTES = 64_000_000  # limit on the bytes of counts.json
MOST_NUMBERS = 100_000_000  # limit on the counts over all classes and folds


@dataclass(frozen=True, kw_only=True)
class CountedQuestions:
    """The classes of `target`, and the yes/no questions that encode the columns.

    `reading` is the parsing of a messy table, as in a model file. `asked` states how the questions were made.
    """

    target: str
    classes: tuple[str, ...]
    class_type: ClassType
    encoding: Encoding
    reading: Mapping[str, Any] | None = None
    asked: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.encoding.features)

    def to_json(self) -> dict[str, Any]:
        """Return the questions as a dictionary."""
        schema = self.encoding.schema
        return {
            "target": self.target,
            "classes": list(self.classes),
            "class_type": str(self.class_type),
            "columns": [_column_json(column) for column in schema],
            "reading": None if self.reading is None else dict(self.reading),
            "questions": [_question_json(feature, schema) for feature in self.encoding.features],
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> CountedQuestions:
        """Read the questions; raise LookupError, TypeError, ValueError or DataError for a damaged dictionary."""
        schema = tuple(ColumnSchema.from_json(column).with_contract(column) for column in record["columns"])
        schema = with_ranks(schema, record.get("reading"))
        places = {column.name: j for j, column in enumerate(schema)}
        features = tuple(_question(one, schema, places) for one in record["questions"])
        return cls(
            target=str(record["target"]),
            classes=tuple(str(name) for name in record["classes"]),
            class_type=ClassType(record["class_type"]),
            encoding=Encoding(features=features, schema=schema),
            reading=record.get("reading"),
            asked=record.get("asked") or {},
        )


def _column_json(column: ColumnSchema) -> dict[str, Any]:
    """Return the schema of a column, with its policy for unknown categories unless that is the default."""
    record = column.to_json()
    return record if column.unknown is UnknownPolicy.WARN else record | {"unknown": str(column.unknown)}


def _question_json(feature: EncodedFeature, schema: Sequence[ColumnSchema]) -> dict[str, Any]:
    column = schema[feature.column]
    record: dict[str, Any] = {"name": feature.name, "column": column.name, "test": str(feature.test)}
    if feature.test is Test.LEVEL:
        record["category"] = column.categories[feature.level]
    for end, value in (("low", feature.low), ("high", feature.high)):
        if math.isfinite(value):
            record[end] = value
    if feature.empty is not None:
        record["empty"] = feature.empty == 1
    return record


def _question(record: Mapping[str, Any], schema: Sequence[ColumnSchema], places: Mapping[str, int]) -> EncodedFeature:
    column = places[record["column"]]
    test = Test(record["test"])
    empty = record.get("empty")
    return EncodedFeature(
        name=str(record["name"]),
        column=column,
        test=test,
        level=schema[column].categories.index(record["category"]) if test is Test.LEVEL else -1,
        low=float(record.get("low", -math.inf)),
        high=float(record.get("high", math.inf)),
        empty=None if empty is None else float(bool(empty)),
    )


@dataclass(frozen=True, kw_only=True)
class Part:
    """A counted file or query: its name, a SHA-256 that identifies its rows, and the number of counted rows."""

    name: str
    sha256: str
    rows: int


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Number of rows that answer yes to all questions of a set, for each set of at most `depth` questions.

    `low` and `high`, int64 (folds, classes, sets), in the order of `trainer.counts.sets`, are lower and upper
    bounds. They are the same array without suppression; with it, each count from 1 to `suppress` − 1 becomes
    an interval. Without folds, the first axis has length 1. `left_out` counts rows in no set, by reason;
    `unknown` counts cells with an unknown category, by column. `origin` describes the engine of the source, and query and
    snapshot of a database; the SHA-256 does not cover it.
    """

    questions: CountedQuestions
    depth: int
    low: CountArray
    high: CountArray
    rows: int
    parts: tuple[Part, ...]
    key: str | None = None
    suppress: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)
    source: str = ""
    created: str = ""
    origin: Mapping[str, str] = field(default_factory=dict)

    @property
    def folds(self) -> int:
        """The number of folds; 0 if the rows were not assigned to folds."""
        return len(self.low) if self.key is not None else 0

    @cached_property
    def total(self) -> tuple[CountArray, CountArray]:
        """Lower and upper bounds of the counts of all folds together, int64 (classes, sets)."""
        low = self.low.sum(axis=0)
        return low, low if self.high is self.low else self.high.sum(axis=0)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the questions, the parts and the numbers, without names of files and times."""
        record = self.questions.to_json() | {
            "format": FORMAT,
            "depth": self.depth,
            "key": self.key,
            "folds": self.folds,
            "suppress": self.suppress,
            "rows": self.rows,
            "parts": sorted([part.sha256, part.rows] for part in self.parts),
            "left_out": dict(self.left_out),
        }
        digest = sha256(json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())
        ends = [self.low] if self.high is self.low else [self.low, self.high]
        for end in ends:
            digest.update(b"\0" + np.ascontiguousarray(end, "<i8").tobytes())
        return digest.hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the content of `counts.json`."""
        return {
            "format": FORMAT,
            "format_version": 1,
            "version": VERSION,
            "sha256": self.sha256,
            "created": self.created,
            "source": self.source,
            "origin": dict(self.origin),
            "depth": self.depth,
            "rows": self.rows,
            "left_out": dict(self.left_out),
            "unknown": dict(self.unknown),
            "folds": self.folds,
            "key": self.key,
            "suppress": self.suppress,
            "parts": [{"name": p.name, "sha256": p.sha256, "rows": p.rows} for p in self.parts],
            "asked": dict(self.questions.asked),
            **self.questions.to_json(),
        }

    def of_path(self, yes: set[int], no: set[int], fold: int | None = None) -> tuple[CountArray, CountArray]:
        """Return lower and upper bounds on the rows of each class, int64 (classes,), with these answers, in one fold or in all."""
        ends = self.total if fold is None else (self.low[fold], self.high[fold])
        low = np.zeros(len(self.questions.classes), np.int64)
        high = low.copy()
        no_questions = sorted(no)
        # rows that answer no to a set of questions are counted by inclusion and exclusion over its subsets
        for subset in range(1 << len(no_questions)):
            members = yes | {q for i, q in enumerate(no_questions) if subset >> i & 1}
            at = place(len(self.questions), members)
            odd = bool(subset.bit_count() & 1)
            low += -ends[1][:, at] if odd else ends[0][:, at]
            high += -ends[0][:, at] if odd else ends[1][:, at]
        return np.maximum(low, 0), high


def check_size(questions: int, classes: int, folds: int, depth: int) -> int:
    """Return the number of counts; raise ParameterError if they are too many, or if the depth cannot be counted."""
    if not 1 <= depth <= DEEPEST:
        raise ParameterError({"depth": f"choose a depth of 1 to {DEEPEST} for counts, not {depth}."})
    numbers = number_of_sets(questions, depth) * classes * max(folds, 1)
    if numbers > MOST_NUMBERS:
        raise ParameterError(
            {
                "depth": f"{questions:,} questions in sets of {depth}, with {classes} classes and {max(folds, 1)} folds, need {numbers:,} "
                f"counts, but at most {MOST_NUMBERS:,} are possible. Ask fewer questions (--bins), or set a smaller depth."
            }
        )
    return numbers


def suppress_small(counts: Counts, least: int) -> Counts:
    """Replace each count from 1 to `least` − 1 by the interval of these numbers; raise ParameterError.

    Entries of `left_out` and `unknown` below `least` are removed.
    """
    if least < 2:
        raise ParameterError({"suppress": f"must be at least 2. It is {least}."})
    if counts.suppress:
        raise ParameterError({"suppress": "small numbers of these counts are secret already. Leave suppress out."})
    secret = (counts.low > 0) & (counts.low < least)
    low = counts.low.copy()
    low[secret] = 1
    high = counts.high.copy()
    high[secret] = least - 1
    other_counts = {
        name: {reason: n for reason, n in getattr(counts, name).items() if n >= least}
        for name in ("left_out", "unknown")
    }
    return replace(
        counts, low=low, high=high, suppress=least, left_out=other_counts["left_out"], unknown=other_counts["unknown"]
    )


def merge(several: Sequence[Counts]) -> Counts:
    """Return the sum of counts of the same questions; raise DataError for other questions, or a part that occurs twice."""
    first = several[0]
    for other in several[1:]:
        _check_same(first, other)
    parts = tuple(sorted((p for one in several for p in one.parts), key=lambda part: (part.sha256, part.name)))
    times = Counter(part.sha256 for part in parts)
    twice = [part.name for part in parts if times[part.sha256] > 1]
    if twice:
        raise DataError(f"The same rows would count twice: {', '.join(twice[:5])} are one file. Leave all but one out.")
    low = np.asarray(np.sum([one.low for one in several], axis=0), np.int64)
    exact = all(one.high is one.low for one in several)
    high = low if exact else np.asarray(np.sum([one.high for one in several], axis=0), np.int64)
    return replace(
        first,
        low=low,
        high=high,
        rows=sum(one.rows for one in several),
        parts=parts,
        suppress=max(one.suppress for one in several),
        left_out=_sum(one.left_out for one in several),
        unknown=_sum(one.unknown for one in several),
        source=f"{len(several)} folders of counts",
        created=max(one.created for one in several),
        origin={},
    )


def _sum(several: Any) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in several:
        total.update(one)
    return dict(sorted(total.items()))


def _check_same(first: Counts, other: Counts) -> None:
    pairs = [
        (name, first.questions.to_json()[name], other.questions.to_json()[name]) for name in first.questions.to_json()
    ]
    pairs += [("depth", first.depth, other.depth), ("folds", first.folds, other.folds), ("key", first.key, other.key)]
    for name, value, others in pairs:
        if value != others:
            raise DataError(
                f"Counts of different questions do not add up: their '{name}' differ. Count each source with "
                "--questions and the counts.json of the first one."
            )


def write_counts(counts: Counts, folder: Path) -> None:
    """Write a folder of counts; `counts.json` comes last, so that a folder with it is complete. Raise OSError or DataError."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / RECORD).exists():
        raise DataError(f"The folder '{folder.name}' holds counts already. Name another one.")
    stream = io.BytesIO()
    if counts.high is counts.low:
        np.savez_compressed(stream, low=counts.low)
    else:
        np.savez_compressed(stream, low=counts.low, high=counts.high)
    write_atomically(folder / NUMBERS, stream.getvalue())
    record = json.dumps(counts.to_json(), ensure_ascii=False, indent=1, allow_nan=False)
    write_atomically(folder / RECORD, record.encode())


def holds_counts(path: str | Path) -> bool:
    """Return whether the path is a folder of counts."""
    return (Path(path) / RECORD).is_file()


def read_record(path: str | Path) -> dict[str, Any]:
    """Read `counts.json` by its own path or its folder's; raise DataError or OSError."""
    path = Path(path)
    path = path / RECORD if path.is_dir() else path
    if path.stat().st_size > MAX_RECORD_BYTES:
        raise DataError(
            f"'{path.name}' is larger than the limit of {MAX_RECORD_BYTES // 10**6} MB. Give the counts.json of a count."
        )
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"'{path.name}' is not JSON: {error}. Count again.") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT or record.get("format_version") != 1:
        raise DataError(f"'{path.name}' does not describe counts of version 1. Give the counts.json of a count.")
    return record


def read_counts(folder: str | Path) -> Counts:
    """Read a folder of counts; raise DataError if it is damaged or does not match its SHA-256, or OSError."""
    folder = Path(folder)
    record = read_record(folder)
    try:
        questions = CountedQuestions.from_json(record)
        folds = int(record["folds"])
        check_size(len(questions), len(questions.classes), folds, int(record["depth"]))
        sets = number_of_sets(len(questions), int(record["depth"]))
        shape = (max(folds, 1), len(questions.classes), sets)
        low, high = _read_numbers(folder / NUMBERS, shape)
        counts = Counts(
            questions=questions,
            depth=int(record["depth"]),
            low=low,
            high=high,
            rows=int(record["rows"]),
            parts=tuple(Part(**part) for part in record["parts"]),
            key=record["key"],
            suppress=int(record["suppress"]),
            left_out=record["left_out"],
            unknown=record["unknown"],
            source=str(record["source"]),
            created=str(record["created"]),
            origin={str(name): str(text) for name, text in dict(record.get("origin") or {}).items()},
        )
    except (LookupError, TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"The counts in '{folder.name}' are damaged: {error}. Count again.") from error
    if counts.sha256 != record.get("sha256"):
        raise DataError(f"The counts in '{folder.name}' were changed: they do not match their SHA-256. Count again.")
    return counts


def _read_numbers(path: Path, shape: tuple[int, ...]) -> tuple[CountArray, CountArray]:
    with np.load(path, allow_pickle=False) as archive:
        low = archive["low"]
        high = archive["high"] if "high" in archive.files else low
    for end in (low, high):
        if end.shape != shape or end.dtype != np.int64 or end.min() < 0:
            raise ValueError(f"counts.npz holds {end.dtype} {end.shape} and not int64 {shape}")
    return low, high
