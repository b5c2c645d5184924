"""Read, check and write model files as JSON documents.

`nodes` and `file` interpret the content. A file is written beside its target and renamed, so no half-written model
exists.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from trainer.errors import DataError, ModelFileError
from trainer.table import ClassType, ColumnSchema, class_type_of, with_ranks
from trainer.version import VERSION

FORMAT = "octweb-tree"
FORMAT_VERSION = 1
SCHEMA_PATH = Path(__file__).with_name("model.schema.json")
MAX_BYTES = 256_000_000
ROW_DIGESTS = "training_rows"  # member of old files; it reveals which rows trained, and their class


def document(
    nodes: Sequence[Mapping[str, Any]],
    *,
    schema: Sequence[ColumnSchema],
    classes: Sequence[str],
    target: str = "class",
    version: str = VERSION,
    class_type: ClassType | None = None,
    **record: Any,
) -> dict[str, Any]:
    """Build the document of a tree's `nodes`; `record` has its other members."""
    empty = {"name": "", "method": "", "parameters": {}, "metrics": {}, "fingerprint": "", "certificate": {}}
    members = empty | record
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "version": version,
        "name": members.pop("name"),
        "method": members.pop("method"),
        "target": target,
        "classes": list(classes),
        "columns": [column.to_json() for column in schema],
        "nodes": list(nodes),
        "contract": _contract(schema, classes, class_type),
        **members,
    }


def _contract(schema: Sequence[ColumnSchema], classes: Sequence[str], class_type: ClassType | None) -> dict[str, Any]:
    """Return the part of the table's contract that `columns`, `classes` and `reading` do not state."""
    columns = {column.name: column.contract_json() for column in schema}
    return {
        "target": {"type": str(class_type or class_type_of(classes))},
        "columns": {name: record for name, record in columns.items() if record},
    }


@cache
def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of model files."""
    return json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))


def check(document: Any) -> None:
    """Raise ModelFileError unless `document` follows the JSON Schema of model files.

    Parameters
    ----------
    document : object
        A parsed JSON document.

    Raises
    ------
    ModelFileError
        If the format or its version differs, or a member does not follow the schema; the message names its place.
    """
    import jsonschema  # import here, because it takes 0.1 s and prediction from a checked file does not need it

    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(
            f'This is not an octweb model file: its "format" is not "{FORMAT}". Give a file that octweb wrote.'
        )
    if document.get("format_version") != FORMAT_VERSION:
        raise ModelFileError(
            f"The file has format version {document.get('format_version')}, but this program reads only version {FORMAT_VERSION}. Use the version of octweb that wrote the file."
        )
    error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(json_schema()).iter_errors(document))
    if error is not None:
        raise ModelFileError(
            f"The model file is damaged at {error.json_path}: {error.message[:300]}. Download or export it again."
        )


def columns_of(document: Mapping[str, Any]) -> tuple[ColumnSchema, ...]:
    """Return the columns of a checked document; raise ModelFileError if one is damaged or two have the same name."""
    added = document.get("contract", {}).get("columns", {})
    try:
        columns = [ColumnSchema.from_json(record) for record in document["columns"]]
        schema = tuple(column.with_contract(added.get(column.name, {})) for column in columns)
        schema = with_ranks(schema, document.get("reading"))
    except DataError as error:
        raise ModelFileError(str(error)) from error
    if len({column.name for column in schema}) != len(schema):
        raise ModelFileError(
            "The model file is damaged: two of its columns have the same name. Rename one, and train again."
        )
    return schema


def class_type_in(document: Mapping[str, Any]) -> ClassType:
    """Return the class type of a checked document; without a contract, it is guessed from the class texts."""
    type_name = document.get("contract", {}).get("target", {}).get("type")
    return class_type_of(document["classes"]) if type_name is None else ClassType(type_name)


def read_document(path: str | Path) -> dict[str, Any]:
    """Read and check a model file; raise ModelFileError if it is not one, and OSError if it cannot be opened."""
    path = Path(path)
    if path.stat().st_size > MAX_BYTES:
        raise ModelFileError(f"The model file is larger than the limit of {MAX_BYTES // 10**6} MB. Use a smaller tree.")
    try:
        record = json.loads(path.read_bytes(), parse_constant=_refuse_constant)
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"The model file is not JSON: {error}. Download or export it again.") from error
    check(record)
    return without_row_digests(record)


def without_row_digests(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document without the digests of training rows that earlier versions wrote."""
    return {name: value for name, value in document.items() if name != ROW_DIGESTS}


def publishable(content: bytes) -> bytes:
    """Return the bytes of a model file without digests of training rows; a file that has none stays as it is."""
    if ROW_DIGESTS.encode() not in content:
        return content
    document = json.loads(content)
    if ROW_DIGESTS not in document:
        return content
    return serialise(without_row_digests(document))


def serialise(document: Mapping[str, Any]) -> bytes:
    """Return the document as the bytes of a model file."""
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False).encode()


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON")


def write_document(document: Mapping[str, Any], path: str | Path) -> None:
    """Write a document after checking it against its schema; the old file stays until the new one is complete."""
    check(document)
    write_atomically(Path(path), serialise(without_row_digests(document)))


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` beside `path`, flush it to the disk and rename it into place.

    Parameters
    ----------
    path : Path
        The file; an old one stays until the new one is complete.
    content : bytes

    Raises
    ------
    OSError
        If the file cannot be written; the message names the path.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):  # the temporary file may not exist, for example if its folder is gone
            temporary.unlink()
        raise OSError(error.errno, f"{path} could not be written: {error.strerror}") from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
