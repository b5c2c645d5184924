"""Explanations as columns of a file of predictions: the path and the smallest change in words, piece by piece."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from trainer.data.column_statistics import ColumnStatistics
from trainer.dtypes import FloatArray
from trainer.explain.flip import Flipper
from trainer.explain.least import COLUMNS, SAID, TOTAL, least_of
from trainer.explain.permission import permissions
from trainer.explain.record import explained
from trainer.explain.statistics import costs_said, priced
from trainer.explain.words import short_flip_text, step_text
from trainer.tree.nodes import Tree

PIECE = 5_000  # rows whose words are in memory at a time, some megabytes


@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    """How rows are explained: statistics of the columns and where they are from, what may change, which change is the smallest (`least`),
    and the seconds for all rows.

    `change` is column → words as `permissions` takes them. As JSON it goes from the server to the process that predicts.
    """

    statistics: Sequence[ColumnStatistics]
    source: str
    change: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = math.inf
    least: str = COLUMNS

    def to_json(self) -> dict[str, Any]:
        """The record as a dictionary; no limit of time is None."""
        return {
            "statistics": [asdict(s) for s in self.statistics],
            "source": self.source,
            "change": dict(self.change),
            "seconds": self.seconds if math.isfinite(self.seconds) else None,
            "least": self.least,
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> ExplainOptions:
        """The record that `to_json` wrote."""
        return cls(
            statistics=tuple(ColumnStatistics(**s) for s in record["statistics"]),
            source=record["source"],
            change=record["change"],
            seconds=math.inf if record["seconds"] is None else float(record["seconds"]),
            least=record["least"],
        )


def wishes(
    tree: Tree,
    statistics: Sequence[ColumnStatistics],
    source: str,
    *,
    change: Mapping[str, Any],
    cost: Mapping[str, Any],
    seconds: float = math.inf,
    least: str = COLUMNS,
) -> ExplainOptions:
    """Wishes with what people say may change, what a change of 1 costs, and which change is the smallest.

    Raises ParameterError for what the tree's columns do not take.
    """
    permissions(tree.schema, change)
    known = priced(tree.schema, statistics, cost)
    said = costs_said(source, cost)
    return ExplainOptions(statistics=known, source=said, change=change, seconds=seconds, least=least_of(least))


class ExplainedColumns:
    """The columns for `predict_file`; raises ParameterError for a `change` that the tree's columns do not take.

    When the seconds are over, further rows keep their predictions and get no explanation; `notes` counts them.
    """

    fields = (
        ("path", pa.string()),
        ("flip", pa.string()),
        ("flip_label", pa.string()),
        ("flip_distance", pa.float64()),
        ("flip_proved", pa.bool_()),
        ("no_flip", pa.string()),
    )
    piece = PIECE

    def __init__(self, tree: Tree, wishes: ExplainOptions) -> None:
        allowed = permissions(tree.schema, wishes.change)
        self.flipper = Flipper(tree, wishes.statistics, allowed, seconds=wishes.seconds, least=wishes.least)
        self.source = wishes.source
        self.late = 0
        self.open = 0

    def of(self, matrix: FloatArray, usable: np.ndarray) -> list[list[Any]]:
        """For rows float64 (n, columns), n values of each field; None for rows that are not `usable`, bool (n,)."""
        rows = [
            self._row(row) if known else (None,) * len(self.fields) for row, known in zip(matrix, usable, strict=True)
        ]
        return [[row[k] for row in rows] for k in range(len(self.fields))]

    def notes(self) -> list[str]:
        """What changes are measured on, and how many rows have no explanation or no proof."""
        found = [f"The smallest changes are measured on {self.source}."]
        if self.flipper.least == TOTAL:
            found.append(f"The smallest change is {SAID[TOTAL]}.")
        if self.late:
            found.append(f"{self.late} rows are predicted but not explained: the time for explanations was over.")
        if self.open:
            found.append(f"The smallest change of {self.open} rows is not proved.")
        return found

    def _row(self, row: FloatArray) -> tuple[Any, ...]:
        if time.monotonic() >= self.flipper.until:
            self.late += 1
            return (None,) * len(self.fields)
        record = explained(self.flipper, row, 0)
        path = "; ".join(step_text(step) for step in record["path"])
        flip = record["flip"]
        if flip is None:
            return path, None, None, None, None, record["no_flip"]
        self.open += not flip["proved"]
        return path, short_flip_text(flip), flip["label"], flip["distance"], flip["proved"], None
