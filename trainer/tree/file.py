"""Read and write model files.

A model file is a tree with the record of its training. It has everything that a reader needs to predict and
to check the claims.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from trainer.table import ClassType, class_type_of, class_values
from trainer.tree.describe import counted_words
from trainer.tree.document import (
    FORMAT,
    FORMAT_VERSION,
    MAX_BYTES,
    check,
    class_type_in,
    columns_of,
    document,
    json_schema,
    read_document,
    write_atomically,
    write_document,
)
from trainer.tree.nodes import Tree, tree_from_json
from trainer.version import VERSION

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "MAX_BYTES",
    "ModelFile",
    "check",
    "from_json",
    "json_schema",
    "read_model",
    "write",
    "write_atomically",
]


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
    # roles of the rows in training, see trainer.data.folds.rows_record; None in older files
    rows: Mapping[str, Any] | None = None
    version: str = VERSION
    reading: Mapping[str, Any] | None = (
        None  # how a messy table was parsed, see `trainer.data.parsing`; None for a clean one
    )
    sizes: Mapping[str, Any] | None = None  # how training chose the number of leaves; None if it did not
    class_type: ClassType | None = None  # None if the type is guessed from the texts of the classes

    @property
    def class_values(self) -> np.ndarray:
        """The classes as values of their type, shape (classes,)."""
        classes = self.tree.classes
        return class_values(classes, self.class_type or class_type_of(classes))

    @classmethod
    def of_tree(cls, tree: Tree) -> ModelFile:
        """Return the model file of a tree, without a claim."""
        return cls(tree=tree)

    def to_json(self) -> dict[str, Any]:
        """Return the document as a dictionary."""
        return document(
            self.tree.to_json(),
            schema=self.tree.schema,
            classes=self.tree.classes,
            target=self.target,
            version=self.version,
            class_type=self.class_type,
            name=self.name,
            method=self.method,
            parameters=dict(self.parameters),
            metrics=dict(self.metrics),
            fingerprint=self.fingerprint,
            certificate=dict(self.certificate),
            **({} if self.rows is None else {"rows": dict(self.rows)}),
            **({} if self.sizes is None else {"sizes": dict(self.sizes)}),
            **({} if self.reading is None else {"reading": dict(self.reading)}),
        )


def from_json(document: Any) -> ModelFile:
    """Build the model from a parsed document.

    Parameters
    ----------
    document : object
        A parsed JSON document.

    Returns
    -------
    ModelFile

    Raises
    ------
    ModelFileError
        If the document is invalid or contradicts itself.
    """
    check(document)
    return _model(document)


def read_model(path: str | Path) -> ModelFile:
    """Read a model file.

    Parameters
    ----------
    path : str or Path
        The file, of at most MAX_BYTES.

    Returns
    -------
    ModelFile

    Raises
    ------
    ModelFileError
        If it is not a model file, is damaged or is too large.
    OSError
        If it cannot be opened.
    """
    return _model(read_document(path))


def write(model: ModelFile, path: str | Path) -> None:
    """Write a model file after checking it against its schema; the old file stays until the new one is complete.

    Parameters
    ----------
    model : ModelFile
    path : str or Path
        The file.

    Raises
    ------
    ModelFileError
        If the document of the model does not follow the schema.
    OSError
        If the file cannot be written.
    """
    write_document(model.to_json(), path)


def _model(document: Mapping[str, Any]) -> ModelFile:
    certificate = document.get("certificate", {})
    tree = tree_from_json(document["nodes"], schema=columns_of(document), classes=document["classes"])
    return ModelFile(
        tree=replace(tree, count_unit=counted_words(certificate)),
        target=document["target"],
        method=document.get("method", ""),
        name=document.get("name", ""),
        parameters=document.get("parameters", {}),
        metrics=document.get("metrics", {}),
        certificate=certificate,
        fingerprint=document.get("fingerprint", ""),
        rows=document.get("rows"),
        version=document.get("version", ""),
        sizes=document.get("sizes"),
        reading=document.get("reading"),
        class_type=class_type_in(document),
    )
