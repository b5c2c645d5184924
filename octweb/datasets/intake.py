"""Parse a file, guess its columns, and describe what will be stored.

    python -m octweb.datasets.intake FOLDER

executes the request in `request.json` of the folder and writes `answer.json`. The web server parses large files in such
a process, with limits on memory and time. This module does not import Django, so it starts quickly.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from octweb.datasets.choice import ColumnChoice, ReadOptions
from octweb.datasets.model_rows import arrays_of
from octweb.datasets.record import column_records, empty_record, profile_record
from octweb.datasets.same_columns import check_same_columns
from trainer.cli.orphans import exit_with_parent
from trainer.data.build import LoadReport
from trainer.data.empty_report import empty_report
from trainer.data.formats.file_bytes import ReadLimits
from trainer.data.formats.raw import RawTable
from trainer.data.formats.read_file import read_table
from trainer.data.formats.staged import read_raw, write_raw
from trainer.data.inspect_table import Built, has_empty, inspect_built
from trainer.data.parsing import ColumnParsing as TableReading
from trainer.data.parsing import ParsingChoices, reading_of
from trainer.data.parsing.infer import GuessedColumn, guess_target, infer
from trainer.data.profile import profile
from trainer.data.reader import build_as_read, read_for_model
from trainer.errors import DataError, TrainerError
from trainer.table import ColumnKind, Labels, MissingPolicy, Table
from trainer.tree.file import from_json

REQUEST = "request.json"
ANSWER = "answer.json"
ROWS = "rows.parquet"
MEMORY = "OCTWEB_READING_BYTES"  # environment variable with the memory limit in bytes
OWN_FILES = ReadLimits(bytes=10**12, unpacked_bytes=10**12, rows=10**9, columns=10**6, cells=10**12)
MOST_TABLES = 1_000  # tables or files of a source that are listed
FIRST_LINES = 20  # the preview shows this many rows with their line numbers
TOO_MUCH_MEMORY = (
    "Reading this file takes more memory than this server gives. Take a sample of the rows, or leave columns out."
)


def stage(source: Path, reading: ReadOptions, limits: ReadLimits, rows: Path) -> dict[str, Any]:
    """Parse `source`, write its rows to `rows`, and return the description for the preview. Raises DataError."""
    return _stage(_read_source(source, reading, limits), reading, rows)


def sample(place: str, query: str | None, seconds: int, reading: ReadOptions, rows: Path) -> dict[str, Any]:
    """Read a sample of a source, write it to `rows`, and return the description for the preview. Raises DataError."""
    # this imports the code for counts, which no other command here needs
    from trainer.counts.database import QueryGuard
    from trainer.counts.sample import read_sample

    guard = QueryGuard(seconds=seconds)
    return _stage(read_sample(place, query=query, structure=reading.said().structure, guard=guard), reading, rows)


def tables(place: str) -> dict[str, Any]:
    """Return the `names` of the tables or files of a source. Raises DataError."""
    from trainer.counts.opening import list_tables

    names = list_tables(place)
    return {"names": names[:MOST_TABLES], "of": len(names)}


def _stage(raw: RawTable, reading: ReadOptions, rows: Path) -> dict[str, Any]:
    parsing = _reading(raw, reading)
    first = infer(raw)
    plain = {guess.name: guess for guess in first if guess.name not in parsing.columns}
    guesses = infer(parsing.apply(raw, needed=()), plain) if parsing.special else first
    write_raw(raw, rows)
    target = guess_target(first)[0]
    return {
        "rows": len(raw),
        "names": list(raw.names),
        "reading": parsing.to_json(),
        "lines": raw.line_numbers[:FIRST_LINES].tolist(),
        "target": target,
        "bytes": _bytes(raw),
        "detected": raw.detected.to_json(),
        "guesses": [_guess_record(guess) for guess in guesses],
        "outlook": _outlook(raw, ColumnChoice(target=target), parsing),
    }


def preview_outcome(rows: Path, choice: ColumnChoice, kept: dict[str, Any]) -> dict[str, Any]:
    """Preview the data set that this choice makes of a staged file. `kept` is the parsing of its columns."""
    return _outlook(read_raw(rows), choice, TableReading.from_json(kept))


def describe(
    rows: Path, choice: ColumnChoice, kept: dict[str, Any], said: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return target, row count, column records, parsing and profile of a staged or stored file. Raises DataError.

    `kept` is the parsing of its columns. `said` are new choices about their cells.
    """
    raw = read_stored_rows(rows)
    reading = TableReading.from_json(kept)
    return _describe(raw, choice, reading.read_again(raw, ParsingChoices.from_json(said)) if said else reading)


def create(source: Path, reading: ReadOptions, limits: ReadLimits, rows: Path, choice: ColumnChoice) -> dict[str, Any]:
    """Parse `source`, write its rows to `rows`, and return their description. Raises DataError."""
    raw = _read_source(source, reading, limits)
    parsing = _reading(raw, reading)
    if reading.columns is not None:
        check_same_columns(raw.names, reading.columns, parsing.for_target(choice.target))
    description = _describe(raw, choice, parsing)
    write_raw(raw, rows)
    return description


def model_rows(rows: Path, model: Path) -> dict[str, Any]:
    """Parse the rows of a stored file for the model in the file `model`. Write .npy files beside the latter.

    Return the names of the arrays, and whether the rows match the model's fingerprint.
    """
    arrays, same = arrays_of(rows, from_json(json.loads(model.read_text(encoding="utf-8"))))
    for name, values in arrays.items():
        np.save(model.with_name(f"{name}.npy"), values)
    return {"arrays": list(arrays), "same": same}


def bring(rows: Path, foreign: Path, kept: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """Convert the model of another program in the file `foreign`, and evaluate it on stored rows.

    `said` has target, name, classes and form. Return a dictionary with the model file as `document`.
    """
    # this imports the training code, which no other command here needs
    from trainer.convert import convert, count_rows, form_of

    content = foreign.read_bytes()
    converted = convert(content, said["form"] or form_of(content), classes=said["classes"] or None)
    parsing = TableReading.from_json(kept)
    return {
        "document": count_rows(
            converted, read_stored_rows(rows), parsing, target=said["target"], name=said["name"]
        ).to_json()
    }


def build_with(
    raw: RawTable, target: str, choice: ColumnChoice, reading: TableReading | None = None
) -> tuple[Table, Labels, LoadReport]:
    """Build table and labels from the rows under this choice. `reading` is the parsing of their cells."""
    reading = reading or TableReading()
    return build_as_read(raw, reading, target=target, **build_options(raw.names, target, choice, reading))


def build_options(columns: Sequence[str], target: str, choice: ColumnChoice, reading: TableReading) -> dict[str, Any]:
    """Return the choice as options of `build_as_read`, for a file with these columns."""
    ignore = [c for c in choice.ignore or () if c != target]
    names = {*reading.for_target(target).names(columns), *columns}
    # drop choices about columns that exist only with another target
    idle = {*reading.names(columns)} - names | {target, *ignore}
    numbers = {name for name, kind in (choice.kinds or {}).items() if kind is not ColumnKind.CATEGORICAL}
    return {
        "kinds": {k: v for k, v in (choice.kinds or {}).items() if k not in idle},
        "missing": {k: v for k, v in (choice.missing or {}).items() if k not in idle},
        "unknown": {k: v for k, v in (choice.unknown or {}).items() if k not in idle and k not in numbers},
        "units": {k: v for k, v in (choice.units or {}).items() if k not in idle},
        "special": {k: tuple(v) for k, v in (choice.special or {}).items() if k not in idle},
        "meanings": choice.meanings or {},
        "ignore": [c for c in ignore if c in names or c not in reading.names(columns)],
    }


def _read_source(source: Path, reading: ReadOptions, limits: ReadLimits) -> RawTable:
    if reading.kept is not None and reading.columns is not None:
        return read_for_model(source, TableReading.from_json(reading.kept), reading.columns, limits=limits)
    return read_table(source, limits=limits, **reading.said().structure)


def _reading(raw: RawTable, reading: ReadOptions) -> TableReading:
    """Return the column parsing: that of the previous version, or one from the user's choices and guesses."""
    return TableReading.from_json(reading.kept) if reading.kept is not None else reading_of(raw, reading.said())


def read_stored_rows(rows: Path) -> RawTable:
    """Read stored rows with their line numbers, which files of older versions do not have."""
    try:
        return read_raw(rows)
    except DataError:
        return read_table(rows, limits=OWN_FILES)


def _describe(raw: RawTable, choice: ColumnChoice, reading: TableReading) -> dict[str, Any]:
    guesses = infer(raw)
    target = choice.target or guess_target(guesses)[0]
    built = build_with(raw, target, choice, reading)
    table, labels, report = built
    if reading.special:
        texts = [name for name, kind in (choice.kinds or {}).items() if kind is ColumnKind.CATEGORICAL]
        guesses = infer(reading.without(texts).apply(raw, target=target, needed=()))
    return {
        "target": target,
        "reading": reading.to_json() if reading.special or reading.columns else {},
        "rows": len(table),
        "columns": column_records(guesses, table, target, choice),
        "profile": profile_record(profile(table, labels), labels, report, table)
        | {"read_bytes": _bytes(raw)}
        | _checks(raw, target, choice, reading, built),
    }


def _bytes(raw: RawTable) -> int:
    """Return the memory of the rows in bytes."""
    return sum(column.nbytes for column in raw.columns)


def _outlook(raw: RawTable, choice: ColumnChoice, reading: TableReading) -> dict[str, Any]:
    target = choice.target or guess_target(infer(raw))[0]
    record: dict[str, Any] = {"rows_read": len(raw), "notes": ()}
    try:
        built = build_with(raw, target, choice, reading)
    except DataError as error:
        return record | {"refusal": str(error)} | _checks(raw, target, choice, reading, None)
    table, labels, report = built
    return (
        record
        | _checks(raw, target, choice, reading, built)
        | {
            "rows_kept": len(table),
            "classes": len(labels.classes),
            "features": len(table.schema),
            "class_rows": [[label, int(rows)] for label, rows in zip(labels.classes, labels.counts(), strict=True)],
            "notes": replace(report, reading_notes=()).notes,  # the notes about parsing are shown elsewhere
        }
    )


def _checks(
    raw: RawTable, target: str, choice: ColumnChoice, reading: TableReading, built: Built | None
) -> dict[str, Any]:
    """Return the report on empty cells, and the findings of the intake report."""
    learned = _build_learning(raw, target, choice, reading, built)
    empty = None if learned is None else empty_report(learned[0], learned[1])
    findings = inspect_built(
        raw,
        reading,
        target,
        built,
        empty,
        ignored=choice.ignore or (),
        named={*(choice.kinds or {}), *(choice.missing or {}), *(choice.special or {})},
        posted_kinds=choice.kinds,
    )
    record = {} if learned is None or empty is None else empty_record(empty, learned[1])
    return {"empty": record, "findings": [own.to_json() for own in findings]}


def _build_learning(
    raw: RawTable, target: str, choice: ColumnChoice, reading: TableReading, built: Built | None
) -> Built | None:
    """Build the table without dropping rows for empty cells. None if no cell is empty or it cannot be built."""
    if built is not None and not has_empty(built):
        return None
    identifiers = {guess.name for guess in infer(raw) if guess.identifier} if built is None else ()
    known = reading.for_target(target).names(raw.names) if built is None else built[0].names
    names = [name for name in known if name != target and name not in identifiers]
    learned = replace(choice, missing=dict.fromkeys(names, MissingPolicy.LEARN))
    try:
        return build_with(raw, target, learned, reading)
    except DataError:
        return None


def _guess_record(guess: GuessedColumn) -> dict[str, Any]:
    record = {field.name: getattr(guess, field.name) for field in fields(guess)}
    record["schema"] = guess.schema.to_json()
    record["schema"].pop("categories", None)  # the list can be long, and the rows contain it
    return record


COMMANDS: dict[str, Callable[..., dict[str, Any]]] = {
    "stage": stage,
    "sample": sample,
    "preview": preview_outcome,
    "describe": describe,
    "create": create,
    "model_rows": model_rows,
    "bring": bring,
}


def answer(request: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Execute a request, and return its result. Raises DataError."""
    if request["command"] == "tables":
        return tables(request["place"])
    arguments: dict[str, Any] = {"rows": Path(request["rows"]) if "rows" in request else folder / ROWS}
    if "source" in request:
        arguments |= {"source": Path(request["source"]), "limits": ReadLimits(**request["limits"])}
    if "reading" in request:
        arguments["reading"] = ReadOptions(**request["reading"])
    if "place" in request:
        arguments |= {name: request[name] for name in ("place", "query", "seconds")}
    if "model" in request:
        arguments["model"] = Path(request["model"])
    if "foreign" in request:
        arguments["foreign"] = Path(request["foreign"])
    if "said" in request:
        arguments["said"] = request["said"]
    if "choice" in request:
        arguments["choice"] = ColumnChoice.from_json(request["choice"])
    if "kept" in request:
        arguments["kept"] = request["kept"]
    return COMMANDS[request["command"]](**arguments)


def main(folder: Path) -> None:
    """Execute the request in the folder. Write an error answer for a DataError, or if memory runs out."""
    exit_with_parent()
    limit = int(os.environ[MEMORY])
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    request = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
    try:
        response = {"found": answer(request, folder)}
    except DataError as error:
        response = {"error": str(error), "problems": error.problems}
    except TrainerError as error:
        response = {"error": str(error), "problems": ()}
    except MemoryError:
        response = {"error": TOO_MUCH_MEMORY, "problems": ()}
    (folder / ANSWER).write_text(json.dumps(response), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
