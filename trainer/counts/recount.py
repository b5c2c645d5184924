"""Recount the rows of a source in the leaves of a tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trainer.counts.source import Source
from trainer.data.parsing import ColumnParsing
from trainer.data.reader import rows_for_model
from trainer.dtypes import CountArray
from trainer.errors import DataError
from trainer.tree.file import ModelFile


@dataclass(frozen=True, kw_only=True)
class Recount:
    """Result of a recount: `leaves`, int64 (nodes, classes), counts the rows of each class in each leaf.

    `no_answer` rows have an empty cell that the tree cannot answer; `no_class` rows have no class that the tree knows. `differ` lists
    the leaves whose rows are not those of the model file.
    """

    leaves: CountArray
    correct: int
    rows: int
    no_answer: int
    no_class: int
    differ: tuple[int, ...]

    @property
    def same(self) -> bool:
        """Whether each leaf has the counts of the model file."""
        return not self.differ

    def to_json(self) -> dict[str, Any]:
        """Return the record of `recount --json`."""
        return {
            "same": self.same, "rows": self.rows, "correct": self.correct, "no_answer": self.no_answer,
            "no_class": self.no_class, "differ": list(self.differ),
        }  # fmt: skip


def recount(model: ModelFile, source: Source) -> Recount:
    """Count the rows of a source in the leaves of a tree; raise DataError if a column is missing, or OSError."""
    tree = model.tree
    reading = ColumnParsing.from_json(model.reading)
    names = {tree.schema[j].name for j in tree.used_columns}
    needed_names = reading.sources(names) | {model.target}
    leaves = np.zeros((len(tree.nodes), len(tree.classes)), np.int64)
    no_answer = 0
    no_class = 0
    for piece in source.pieces(needed_names):
        rows = rows_for_model(
            piece.rows,
            tree.schema,
            target=model.target,
            classes=tree.classes,
            used=tree.used_columns,
            refused=tree.refused_columns,
            only_used=True,
            reading=reading,
        )
        if rows.labels is None:
            raise DataError(
                f"{source.names[piece.part]} has no column '{model.target}', so nothing can be compared. Give files with this column."
            )
        has_class = rows.labels.codes >= 0
        keep = has_class & rows.usable
        no_class += int((~has_class).sum())
        no_answer += int((has_class & ~rows.usable).sum())
        reached = tree.apply(rows.table.matrix()[keep])
        np.add.at(leaves, (reached, rows.labels.codes[keep]), 1)
    listed = np.array([node.counts for node in tree.nodes], np.int64)
    differ = tuple(leaf.id for leaf in tree.leaves if (leaves[leaf.id] != listed[leaf.id]).any())
    correct = sum(int(leaves[leaf.id, leaf.label]) for leaf in tree.leaves)
    return Recount(
        leaves=leaves, correct=correct, rows=int(leaves.sum()), no_answer=no_answer, no_class=no_class, differ=differ
    )
