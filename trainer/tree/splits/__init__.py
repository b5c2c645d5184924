"""Define the tests of a branch, one file for each kind.

`base` has their interface. To add a kind: its file here, its line in KINDS, its shape in `model.schema.json`, and its
picture in `octweb/figures/split/__init__.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.errors import ModelFileError
from trainer.tree.splits.base import Condition, Flat, NumericSplit, Schema, Split
from trainer.tree.splits.interval import Interval
from trainer.tree.splits.linear import Linear, linear
from trainer.tree.splits.missing import Missing
from trainer.tree.splits.subset import Subset
from trainer.tree.splits.threshold import Threshold

__all__ = [
    "KINDS",
    "Condition",
    "Flat",
    "Interval",
    "Linear",
    "Missing",
    "NumericSplit",
    "Split",
    "Subset",
    "Threshold",
    "goes_left",
    "linear",
    "rows_go_left",
    "split_from_json",
    "split_to_json",
]

KINDS: dict[str, type[Split]] = {kind.kind: kind for kind in (Threshold, Interval, Subset, Linear, Missing)}


def goes_left(split: Split, matrix: FloatArray) -> BoolArray:
    """Return the mask of rows of `matrix` (n, columns) that `split` sends left, bool (n,); NumPy twin of the kernel."""
    return split.goes_left(matrix)


def split_to_json(split: Split, schema: Schema) -> dict[str, Any]:
    """Return the split as in the model file, with columns and categories by name."""
    return split.to_json(schema)


def rows_go_left(split: Split, matrix: FloatArray, rows: CountArray) -> BoolArray:
    """Return which of `rows` (positions in `matrix`) go left.

    A split reads few of many columns. If a copy of the rows would read more cells, the split is evaluated on all rows.
    """
    if len(rows) * matrix.shape[1] >= len(matrix) * len(split.used):
        return goes_left(split, matrix)[rows]
    return goes_left(split, matrix[rows])


def split_from_json(record: Mapping[str, Any], schema: Schema) -> Split:
    """Return the split of a dictionary; raise ModelFileError if it does not fit the schema or its kind is not known."""
    kind = KINDS.get(str(record.get("kind")))
    if kind is None:
        raise ModelFileError(
            f"The kind of split '{record.get('kind')}' is not known to this version. Use the version of octweb that wrote the file."
        )
    return kind.from_json(record, schema)
