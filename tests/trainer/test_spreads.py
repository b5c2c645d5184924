"""The data of the threshold slider: stops, and rows by class, also with empty cells."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from trainer.table import ColumnKind, ColumnSchema, EmptySide, MissingPolicy
from trainer.tree.nodes import DraftBranch, DraftLeaf, grow
from trainer.tree.splits import Threshold
from trainer.workbench.spreads import spreads

SCHEMA = (ColumnSchema(name="age", kind=ColumnKind.NUMERIC, missing=MissingPolicy.LEARN),)


def test_spread_counts_empty_cells_apart():
    matrix = np.array([[1.0], [2.0], [np.nan], [3.0], [np.nan], [2.0]])
    y = np.array([0, 0, 1, 1, 0, 1], np.int32)
    split = Threshold(feature=0, threshold=2.0).with_empty(EmptySide.LEFT)
    draft = DraftBranch(split=split, left=DraftLeaf(), right=DraftLeaf())
    tree = grow(draft, matrix, y, schema=SCHEMA, classes=("no", "yes"))
    weights = np.array([1, 1, 5, 1, 1, 1])
    session = SimpleNamespace(problem=SimpleNamespace(matrix=matrix, y=y, row_weights=weights))
    assert spreads(session, tree) == {
        "root": {
            "column": "age",
            "values": ["1", "2"],
            "counts": [[1, 0], [1, 1], [0, 1]],
            "empty": [1, 1],  # rows, whatever they weigh
        }
    }
