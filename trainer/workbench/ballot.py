"""Store all good trees in short form, for votes on any row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainer.dtypes import FloatArray
from trainer.families.exact.rashomon.good import GoodTrees
from trainer.families.exact.workbench import Workbench
from trainer.table import ColumnSchema
from trainer.tree.shapes import Shape
from trainer.tree.splits import Split, goes_left, split_from_json

MOST_TREES = 5_000  # limit on the trees, which take about 300 kB of JSON
ShortTree = Any  # a class code, or [question, tree for yes, tree for no]


@dataclass(frozen=True)
class Ballot:
    """All good trees in short form: their questions, and each tree by the numbers of its questions and classes."""

    questions: Sequence[Split]
    trees: Sequence[ShortTree]

    def votes(self, row: FloatArray, classes: int) -> list[int] | None:
        """Return how many trees predict each class for a row (columns,); None if an empty cell meets a
        question.

        For an empty cell that training did not see, each tree has its own side, which the short form does not store.
        """
        row = np.asarray(row, np.float64).reshape(1, -1)
        if any(split.empty_in(row[0]) for split in self.questions):
            return None
        yes = [bool(goes_left(split, row)[0]) for split in self.questions]
        votes = [0] * classes
        for tree in self.trees:
            part = tree
            while isinstance(part, list):
                part = part[1] if yes[part[0]] else part[2]
            votes[part] += 1
        return votes


def ballot_record(bench: Workbench, good: GoodTrees, schema: Sequence[ColumnSchema]) -> dict[str, Any]:
    """Return the JSON of all good trees; raise SearchStopped."""
    numbers: dict[int, int] = {}
    trees = [_short(bench, shape, good.rows, numbers) for _, shape in good.trees()]
    splits = bench.space.questions.splits
    return {"questions": [splits[q].to_json(schema) for q in numbers], "trees": trees}


def _short(bench: Workbench, shape: Shape, rows: np.ndarray, numbers: dict[int, int]) -> ShortTree:
    if shape is None:
        return int(bench.space.counts(rows).argmax())
    yes, no = bench.space.split(rows, shape[0])
    number = numbers.setdefault(shape[0], len(numbers))
    return [number, _short(bench, shape[1], yes, numbers), _short(bench, shape[2], no, numbers)]


def ballot_from_json(record: Mapping[str, Any], schema: Sequence[ColumnSchema]) -> Ballot:
    """Build the ballot from the record of `ballot_record`.

    Raise KeyError, TypeError or TrainerError for columns that the schema lacks.
    """
    return Ballot([split_from_json(split, schema) for split in record["questions"]], record["trees"])
