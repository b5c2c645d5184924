"""Predict the rows of tensors, and describe models for the Open Inference Protocol.

A request has one tensor with all columns, or one for each column. Unusual values follow the rules of `/api/v1/`.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from octweb.registry.document.model_files import model_file
from octweb.registry.models import TreeModel
from octweb.registry.prediction.predictions import MISSING, OUTSIDE, UNSEEN, Predictions, predict_matrix, predict_rows
from octweb.serving.tensors import TEXT, CellError, ProtocolError, Tensor
from trainer.data.odd_words import OddWords, add_words
from trainer.data.parsing import ColumnParsing
from trainer.data.rows import is_blank_word, numbers_of_texts
from trainer.errors import Refusal, list_names
from trainer.table import ColumnKind, ColumnSchema
from trainer.tree.nodes import Tree

OUTPUTS = ("label", "probabilities", "leaf", "path", MISSING, UNSEEN, OUTSIDE)
DEFAULT_OUTPUTS = ("label", "probabilities", "leaf")


def metadata(model: TreeModel, versions: list[int]) -> dict[str, Any]:
    """Return the protocol's metadata of a model: inputs, outputs, the given versions, target and classes."""
    file = model_file(model)
    tree = file.tree
    ranked = ColumnParsing.from_json(file.reading).ranked
    inputs = [
        {
            "name": c.name,
            "datatype": TEXT if c.kind is ColumnKind.CATEGORICAL or c.name in ranked else "FP64",
            "shape": [-1, 1],
            "parameters": {"used": j in tree.used_columns, "kind": str(c.kind), "unit": c.unit},
        }
        for j, c in enumerate(tree.schema)
    ]
    outputs = [
        {"name": "label", "datatype": TEXT, "shape": [-1]},
        {"name": "probabilities", "datatype": "FP64", "shape": [-1, len(tree.classes)]},
        {"name": "leaf", "datatype": "INT64", "shape": [-1]},
        *({"name": name, "datatype": TEXT, "shape": [-1]} for name in ("path", MISSING, UNSEEN, OUTSIDE)),
    ]
    return {
        "name": model.family.name,
        "versions": [str(v) for v in versions],
        "platform": "octweb_tree",
        "inputs": inputs,
        "outputs": outputs,
        "parameters": {"target": file.target, "classes": list(tree.classes)},
    }


def configuration(model: TreeModel) -> dict[str, Any]:
    """Return the metadata as Triton's model configuration. The first dimension of each tensor counts the rows."""
    model_metadata = metadata(model, [model.version])

    def tensor(record: dict[str, Any]) -> dict[str, Any]:
        kind = "STRING" if record["datatype"] == TEXT else record["datatype"]
        return {"name": record["name"], "data_type": f"TYPE_{kind}", "dims": record["shape"]}

    return {
        "name": model_metadata["name"],
        "platform": model_metadata["platform"],
        "backend": "octweb",
        "version_policy": {"specific": {"versions": [model.version]}},
        "max_batch_size": 0,
        "input": [tensor(r) for r in model_metadata["inputs"]],
        "output": [tensor(r) for r in model_metadata["outputs"]],
        "parameters": {"target": {"string_value": model_metadata["parameters"]["target"]}},
    }


def infer(model: TreeModel, inputs: tuple[Tensor, ...], max_rows: int) -> Predictions:
    """Predict the rows of the tensors. Raises ProtocolError, and RowError, which names row and column."""
    file = model_file(model)
    tree = file.tree
    ranked = ColumnParsing.from_json(file.reading).ranked
    columns = _columns(tree, inputs, ranked)
    n = len(next(iter(columns.values()))) if columns else inputs[0].shape[0]
    if n > max_rows:
        raise ProtocolError(
            f"{n:,} rows are too many; {max_rows:,} is the limit of one call. Send them in several calls."
        )
    has_words = {j: tree.schema[j].kind is ColumnKind.CATEGORICAL or tree.schema[j].name in ranked for j in columns}
    if all(values.dtype != object and not has_words[j] for j, values in columns.items()):
        return predict_matrix(model, _matrix(tree, columns, n), _infinite_notes(tree, columns))
    # texts, and numbers in columns of categories or ranks, follow the same rules as the rows of /api/v1/
    cells = {
        tree.schema[j].name: _cells(tree.schema[j], values, has_words[j], j in tree.used_columns)
        for j, values in columns.items()
    }
    rows = [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
    return predict_rows(model, rows)


def output(predictions: Predictions, name: str) -> np.ndarray:
    """Return one output as an array: float64 for probabilities, int64 for leaves, texts as objects for others."""
    tree = predictions.tree
    if name == "leaf":
        return predictions.leaves.astype(np.int64)
    if name == "probabilities":
        return tree.probabilities[predictions.leaves]
    if name == "label":
        return np.array(tree.classes, object)[tree.labels[predictions.leaves]]
    texts = np.empty(len(predictions.leaves), object)
    if name == "path":
        texts[:] = ["\n".join(path) for path in predictions.paths()]
    else:
        texts[:] = ["\n".join(mark.get(name, ())) for mark in predictions.marks or [{}] * len(predictions.leaves)]
    return texts


def _columns(tree: Tree, inputs: tuple[Tensor, ...], ranked: frozenset[str]) -> dict[int, np.ndarray]:
    """Return the values of each column of the model, with shape (rows,). Raises ProtocolError."""
    position = {c.name: j for j, c in enumerate(tree.schema)}
    if len(inputs) == 1 and (inputs[0].name not in position or _width(inputs[0]) > 1):
        return _one_table(tree, inputs[0], ranked)
    columns: dict[int, np.ndarray] = {}
    for tensor in inputs:
        if tensor.name not in position:
            raise ProtocolError(f"There is no input '{tensor.name[:60]}'. {_needs(tree)}")
        if position[tensor.name] in columns:
            raise ProtocolError(f"The input '{tensor.name[:60]}' appears twice. Send each column once.")
        if _width(tensor) != 1:
            raise ProtocolError(
                f"The input '{tensor.name[:60]}' has the shape {list(tensor.shape)}; use [rows] or [rows, 1]."
            )
        columns[position[tensor.name]] = tensor.values.reshape(-1)
    if len(lengths := sorted({len(values) for values in columns.values()})) > 1:
        counts = list_names([f"{length:,}" for length in lengths], 5)
        raise ProtocolError(f"The inputs have different numbers of rows ({counts}). Send one value per row in each.")
    if lacking := [tree.schema[j].name for j in tree.used_columns if j not in columns]:
        raise ProtocolError(f"The input '{lacking[0]}' is missing. {_needs(tree)}")
    return columns


def _one_table(tree: Tree, tensor: Tensor, ranked: frozenset[str]) -> dict[int, np.ndarray]:
    names = [c.name for c in tree.schema]
    plain = [j for j, c in enumerate(tree.schema) if c.kind is not ColumnKind.CATEGORICAL and c.name not in ranked]
    if len(tensor.shape) != 2 or tensor.shape[1] != len(names):
        raise ProtocolError(
            f"'{tensor.name[:60]}' has the shape {list(tensor.shape)}; one tensor for all columns has {len(names)} of them, "
            f"in this order: {', '.join(names)}."
        )
    text = [j for j in tree.used_columns if tree.schema[j].kind is ColumnKind.CATEGORICAL]
    if text and tensor.datatype != TEXT:
        raise ProtocolError(
            f"Column '{names[text[0]]}' holds text: send all columns as {TEXT}, or one tensor for each column."
        )
    # numbers cannot express the words of a column, so such a column may hold anything unless the tree asks it
    judged = range(len(names)) if tensor.datatype == TEXT else {*tree.used_columns, *plain}
    return {j: tensor.values[:, j] for j in judged}


def _width(tensor: Tensor) -> int:
    return tensor.shape[1] if len(tensor.shape) == 2 else 1


def _needs(tree: Tree) -> str:
    names = [tree.schema[j].name for j in tree.used_columns]
    return f"This model needs {len(names)} of them: {', '.join(names)}." if names else "This model needs none."


def _matrix(tree: Tree, columns: dict[int, np.ndarray], n: int) -> np.ndarray:
    """Return the numeric columns as a matrix, float64 (n, columns), NaN in unused columns.

    Raises CellError for unusable cells.
    """
    matrix = np.full((n, len(tree.schema)), math.nan)
    for j, values in columns.items():
        column = tree.schema[j]
        if j not in tree.used_columns:
            continue
        bad = ~np.isfinite(values) if j in tree.refused_columns else np.isinf(values)
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            empty = Refusal.EMPTY if math.isnan(values[i]) else Refusal.VALUE
            words = f"Row {i}: column '{column.name}' has no finite value, and the tree needs one. Send a number."
            raise CellError(words, row=i, column=column.name, reason=empty)
        matrix[:, j] = values + 0.0
    return matrix


def _infinite_notes(tree: Tree, columns: dict[int, np.ndarray]) -> tuple[str, ...]:
    """Return notes on infinite numbers in columns that the tree does not ask."""
    odd = OddWords()
    for j in columns.keys() - set(tree.used_columns):
        infinite = columns[j][np.isinf(columns[j])]
        add_words(odd.unfit, tree.schema[j].name, Counter(map(str, infinite.tolist())))
    return odd.notes


def _cells(column: ColumnSchema, values: np.ndarray, has_words: bool, used: bool) -> list[Any]:
    """Return cells as in a JSON row, None for missing ones. Texts are parsed, unless the column has words.

    Raises CellError for a text in a column of numbers, if the tree asks the column.
    """
    if values.dtype != object:
        return [None if math.isnan(v) else v for v in values.tolist()]
    if has_words:
        return values.tolist()
    numbers = numbers_of_texts({text.strip() for text in values.tolist() if text is not None})
    cells: list[Any] = []
    for i, text in enumerate(values.tolist()):
        number = math.nan if text is None else numbers.get(text.strip())
        if text is not None and (is_blank_word(text.strip(), numbers) or (number is None and not used)):
            cells.append(text)  # judged like a text of a row
            continue
        if number is None:
            words = f"Row {i}: column '{column.name}' must be a plain number such as 1234.5; it is {text[:40]!r}."
            raise CellError(words, row=i, column=column.name)
        cells.append(None if math.isnan(number) else number)
    return cells
