"""The model file: everything that a reader needs to predict and to check what is claimed, as one JSON document.

Written in a neighbouring file and renamed into place, so that no half-written model exists.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from trainer.errors import DataError, ModelFileError
from trainer.table import ColumnSchema
from trainer.tree.nodes import Tree, tree_from_json
from trainer.version import VERSION

FORMAT = "octweb-tree"
FORMAT_VERSION = 1
SCHEMA_PATH = Path(__file__).with_name("model.schema.json")
MAX_BYTES = 256_000_000


@dataclass(frozen=True, kw_only=True)
class ModelFile:
    """A tree with the record of its training."""

    tree: Tree
    target: str = "class"
    method: str = ""
    name: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    certificate: Mapping[str, Any] = field(default_factory=dict)
    fingerprint: str = ""
    version: str = VERSION

    @classmethod
    def of_tree(cls, tree: Tree) -> ModelFile:
        """A model file that claims nothing."""
        return cls(tree=tree)

    def to_json(self) -> dict[str, Any]:
        """The document as a dictionary."""
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "version": self.version,
            "name": self.name,
            "method": self.method,
            "target": self.target,
            "classes": list(self.tree.classes),
            "columns": [column.to_json() for column in self.tree.schema],
            "nodes": self.tree.to_json(),
            "parameters": dict(self.parameters),
            "metrics": dict(self.metrics),
            "fingerprint": self.fingerprint,
            "certificate": dict(self.certificate),
        }


@cache
def json_schema() -> dict[str, Any]:
    """The JSON Schema of model files."""
    return json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))


def check(document: Any) -> None:
    """Raise ModelFileError, naming the place, unless `document` follows the JSON Schema."""
    import jsonschema  # takes 0.1 s to import, and prediction from a checked file does not need it

    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f'This is no octweb model file: its "format" is not "{FORMAT}".')
    if document.get("format_version") != FORMAT_VERSION:
        raise ModelFileError(
            f"The file has format version {document.get('format_version')}; this program reads version {FORMAT_VERSION}."
        )
    error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(json_schema()).iter_errors(document))
    if error is not None:
        raise ModelFileError(f"The model file is damaged at {error.json_path}: {error.message[:300]}")


def from_json(document: Any) -> ModelFile:
    """The model of a parsed document; raises ModelFileError where it is damaged or contradicts itself."""
    check(document)
    try:
        schema = tuple(ColumnSchema.from_json(record) for record in document["columns"])
    except DataError as error:
        raise ModelFileError(str(error)) from error
    if len({column.name for column in schema}) != len(schema):
        raise ModelFileError("Two columns of the model have the same name.")
    return ModelFile(
        tree=tree_from_json(document["nodes"], schema=schema, classes=document["classes"]),
        target=document["target"],
        method=document.get("method", ""),
        name=document.get("name", ""),
        parameters=document.get("parameters", {}),
        metrics=document.get("metrics", {}),
        certificate=document.get("certificate", {}),
        fingerprint=document.get("fingerprint", ""),
        version=document.get("version", ""),
    )


def read(path: str | Path) -> ModelFile:
    """Read a model file; raises ModelFileError where it is no model file, and OSError where it cannot be opened."""
    path = Path(path)
    if path.stat().st_size > MAX_BYTES:
        raise ModelFileError(f"The model file is larger than {MAX_BYTES // 10**6} MB and is not read.")
    try:
        document = json.loads(path.read_bytes(), parse_constant=_refuse_constant)
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"The model file is no JSON: {error}.") from error
    return from_json(document)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number in JSON")


def write(model: ModelFile, path: str | Path) -> None:
    """Write a model file after checking it against its schema; the old file stays until the new one is complete."""
    document = model.to_json()
    check(document)
    write_atomically(Path(path), json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False).encode())


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` beside `path`, flush it to the disk and rename it into place."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise OSError(error.errno, f"{path} could not be written: {error.strerror}") from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
