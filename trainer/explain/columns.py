"""Add paths and smallest changes as columns to a file of predictions."""

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
from trainer.explain.least import COLUMNS, ORDER_TEXTS, TOTAL, least_of
from trainer.explain.permission import permissions
from trainer.explain.record import explain_row
from trainer.explain.statistics import cost_source, with_costs
from trainer.explain.words import short_flip_text, step_text
from trainer.tree.nodes import Tree

PIECE_ROWS = 5_000  # texts of this many rows are in memory at a time, which takes some megabytes


@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    """Options of explanations: column statistics with their source, permitted changes, order, and seconds for all rows.

    `change` maps columns to words for `permissions`. `least` is the order of changes. The server sends the record as JSON to the
    predicting process.
    """

    statistics: Sequence[ColumnStatistics]
    source: str
    change: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = math.inf
    least: str = COLUMNS

    def to_json(self) -> dict[str, Any]:
        """Return the record as a dictionary; None means no time limit."""
        return {
            "statistics": [asdict(s) for s in self.statistics],
            "source": self.source,
            "change": dict(self.change),
            "seconds": self.seconds if math.isfinite(self.seconds) else None,
            "least": self.least,
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> ExplainOptions:
        """Build the options from the record of `to_json`."""
        return cls(
            statistics=tuple(ColumnStatistics(**s) for s in record["statistics"]),
            source=record["source"],
            change=record["change"],
            seconds=math.inf if record["seconds"] is None else float(record["seconds"]),
            least=record["least"],
        )


def explain_options(
    tree: Tree,
    statistics: Sequence[ColumnStatistics],
    source: str,
    *,
    change: Mapping[str, Any],
    cost: Mapping[str, Any],
    seconds: float = math.inf,
    least: str = COLUMNS,
) -> ExplainOptions:
    """Return options with the user's permissions, costs of a change of 1, and order of changes.

    Raises ParameterError for values that the tree's columns do not accept.
    """
    permissions(tree.schema, change)
    with_prices = with_costs(tree.schema, statistics, cost)
    source_text = cost_source(source, cost)
    return ExplainOptions(
        statistics=with_prices, source=source_text, change=change, seconds=seconds, least=least_of(least)
    )


class ExplainedColumns:
    """The explanation columns for `predict_file`; raises ParameterError if the tree's columns do not accept a `change`.

    After the time limit, further rows are predicted without explanations; `notes` counts them.
    """

    fields = (
        ("path", pa.string()),
        ("flip", pa.string()),
        ("flip_label", pa.string()),
        ("flip_distance", pa.float64()),
        ("flip_proved", pa.bool_()),
        ("no_flip", pa.string()),
    )
    piece = PIECE_ROWS

    def __init__(self, tree: Tree, wishes: ExplainOptions) -> None:
        allowed = permissions(tree.schema, wishes.change)
        self.flipper = Flipper(tree, wishes.statistics, allowed, seconds=wishes.seconds, least=wishes.least)
        self.source = wishes.source
        self.late = 0
        self.open = 0

    def of(self, matrix: FloatArray, usable: np.ndarray) -> list[list[Any]]:
        """Return n values of each field for rows, float64 of shape (n, columns); None for rows that are not `usable`."""
        rows = [
            self._row(row) if is_usable else (None,) * len(self.fields)
            for row, is_usable in zip(matrix, usable, strict=True)
        ]
        return [[row[k] for row in rows] for k in range(len(self.fields))]

    def notes(self) -> list[str]:
        """Return sentences on the source of sizes, and on rows without explanation or proof."""
        sentences = [f"The smallest changes are measured on {self.source}."]
        if self.flipper.least == TOTAL:
            sentences.append(f"The smallest change is {ORDER_TEXTS[TOTAL]}.")
        if self.late:
            sentences.append(f"{self.late} rows are predicted but not explained: the time for explanations was over.")
        if self.open:
            sentences.append(f"The smallest change of {self.open} rows is not proved.")
        return sentences

    def _row(self, row: FloatArray) -> tuple[Any, ...]:
        if time.monotonic() >= self.flipper.until:
            self.late += 1
            return (None,) * len(self.fields)
        record = explain_row(self.flipper, row, 0)
        path = "; ".join(step_text(step) for step in record["path"])
        flip = record["flip"]
        if flip is None:
            return path, None, None, None, None, record["no_flip"]
        self.open += not flip["proved"]
        return path, short_flip_text(flip), flip["label"], flip["distance"], flip["proved"], None
