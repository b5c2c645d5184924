"""Save and log trees as MLflow models (`mlflow.pyfunc`).

Needs the extra `mlflow`. An MLflow model holds the model file, and MLflow loads it with this module, without pickle. So octweb must be
installed where the model is served.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from trainer.data.parsing.values import plain_values, sources_named
from trainer.data.rows import ParsedRows, parse_rows
from trainer.dtypes import FloatArray
from trainer.errors import DataError
from trainer.prediction.form_report import report_forms, warning_sentences
from trainer.table import ColumnSchema
from trainer.tree.file import ModelFile, read_model, write
from trainer.tree.nodes import Tree
from trainer.version import VERSION

LOADER = "trainer.prediction.mlflow_flavour"
FILE = "model.json"


class TreePredictor:
    """The model that `mlflow.pyfunc.load_model` wraps; `params={"output": "probabilities"}` returns class shares."""

    def __init__(self, model: ModelFile) -> None:
        self.model = model

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """Return the class of each row, (n,) in the type of the classes, or a list of dicts of shares by class.

        `model_input` is a pandas data frame or a list of dicts by column. Raises RowError that names the row and the column of a
        cell that the tree needs and cannot read, and DataError.
        """
        output = (params or {}).get("output", "labels")
        if output not in ("labels", "probabilities"):
            raise DataError(f"'{str(output)[:40]}' is not an output. Choose labels or probabilities.")
        tree = self.model.tree
        matrix = self._matrix(_records(model_input))
        if output == "probabilities":
            return [dict(zip(tree.classes, shares, strict=True)) for shares in tree.predict_proba(matrix).tolist()]
        return self.model.class_values[tree.predict(matrix)]

    def _matrix(self, rows: list[dict[str, Any]]) -> FloatArray:
        """Read rows into a matrix; warn of unknown categories, changed forms and far numbers, once per column."""
        tree = self.model.tree
        plain_rows = plain_values(self.model.reading, rows, tree.used_names)

        def read(schema: tuple[ColumnSchema, ...]) -> ParsedRows:
            with sources_named(self.model.reading):
                return parse_rows(schema, tree.used_columns, plain_rows, refused=tree.refused_columns)

        parsed = read(tree.schema)
        report = report_forms(tree, parsed.matrix, parsed.unknown_words, lambda schema: read(schema).matrix)
        sentences = warning_sentences(tree, tree.schema, parsed.matrix, parsed.unknown_words, report)
        for sentence in (*sentences, *parsed.odd.notes):
            warnings.warn(sentence, UserWarning, stacklevel=3)
        return parsed.matrix


def save_model(model: Any, path: str | Path, **options: Any) -> None:
    """Write an MLflow model to a folder.

    Parameters
    ----------
    model : classifier, Tree, ModelFile, str or Path
        A fitted classifier, a tree, a model file or its path.
    path : str or Path
        The folder.
    **options
        Further arguments of `mlflow.pyfunc.save_model`.

    Raises
    ------
    DataError
        If `model` is none of these.
    ModelFileError
        If the model file cannot be read.
    ImportError
        If MLflow is not installed.
    """
    with _file_of(model) as file:
        import mlflow.pyfunc

        mlflow.pyfunc.save_model(path=str(path), **_describe_file(file), **options)


def log_model(model: Any, name: str = "model", **options: Any) -> Any:
    """Log a model in the active run of MLflow, as `save_model` writes it.

    Parameters
    ----------
    model : classifier, Tree, ModelFile, str or Path
        As for `save_model`.
    name : str
        Name of the logged model.
    **options
        Further arguments of `mlflow.pyfunc.log_model`.

    Returns
    -------
    mlflow.models.model.ModelInfo

    Raises
    ------
    DataError, ModelFileError, ImportError
        As `save_model` does.
    """
    with _file_of(model) as file:
        import mlflow.pyfunc

        return mlflow.pyfunc.log_model(name=name, **_describe_file(file), **options)


def _load_pyfunc(path: str) -> TreePredictor:
    """Load the model file at a path; MLflow calls this function."""
    return TreePredictor(read_model(path))


def _describe_file(file: Path) -> dict[str, Any]:
    return {"loader_module": LOADER, "data_path": str(file), "pip_requirements": [f"octweb[mlflow]=={VERSION}"]}


@contextmanager
def _file_of(model: Any) -> Iterator[Path]:
    """Write a model file in a temporary folder and yield its path; raises DataError for other kinds of objects."""
    source = model if isinstance(model, str | Path | Tree | ModelFile) else _fitted_file(model)
    if source is None:
        raise DataError(
            f"{type(model).__name__} is neither a fitted classifier, nor a tree, nor a model file. Give one of these."
        )
    if isinstance(source, str | Path):
        source = read_model(source)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / FILE
        write(ModelFile.of_tree(source) if isinstance(source, Tree) else source, file)
        yield file


def _fitted_file(model: Any) -> ModelFile | None:
    """Return the model file of a fitted classifier, with class types and column ranges; None for other objects."""
    fitted = getattr(model, "_fitted", None)
    return None if fitted is None else replace(fitted, certificate=model.certificate_.to_json())


def _records(records: Any) -> list[dict[str, Any]]:
    """Return rows as dicts by column; NaN is None, and dates are text. Raises DataError for other inputs."""
    if hasattr(records, "to_dict"):
        records = records.to_dict("records")
    if not isinstance(records, list) or not all(isinstance(row, dict) for row in records):
        raise DataError(
            "Send rows with the names of their columns: a data frame, or dataframe_split or dataframe_records in JSON."
        )
    return [{str(name): _cell(value) for name, value in row.items()} for row in records]


def _cell(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return None if value != value else str(value)
    plain = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and np.isnan(plain) else plain
