"""Split at a threshold of a column."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from xml.etree import ElementTree as ET

from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.table import ColumnKind, EmptySide
from trainer.tree.numbers import column_value, decimal_text, in_list, label, schema_number, shortest_between, unit
from trainer.tree.splits.base import (
    BELOW,
    Condition,
    Dialect,
    Flat,
    NumericSplit,
    OnnxGraph,
    PmmlModel,
    Schema,
    Split,
    Term,
    Values,
    column_index,
    finite,
    gap_around,
    read_empty,
)


@dataclass(frozen=True, kw_only=True)
class Threshold(NumericSplit):
    """A split that sends a row left if column `feature` ≤ `threshold`."""

    feature: int
    threshold: float

    kind = "threshold"

    @property
    def used(self) -> tuple[int, ...]:
        return (self.feature,)

    @property
    def cut(self) -> tuple[int, float] | None:
        return self.feature, self.threshold

    def goes_left(self, matrix: FloatArray) -> BoolArray:
        return self.sides(matrix[:, self.feature] <= self.threshold, matrix)

    def flat(self, schema: Schema) -> Flat:
        return Flat(test=BELOW, feature=self.feature, high=self.threshold, empty_left=self.missing is EmptySide.LEFT)

    def to_json(self, schema: Schema) -> dict[str, Any]:
        record = {"kind": self.kind, "feature": schema[self.feature].name, "threshold": self.threshold}
        return record | self.empty_json()

    @classmethod
    def from_json(cls, record: Mapping[str, Any], schema: Schema) -> Threshold:
        feature = column_index(record["feature"], schema)
        return cls(feature=feature, threshold=finite(record["threshold"]), **read_empty(record))

    def rename(self, column: Callable[[int], int], code: Callable[[int, int], int]) -> Threshold:
        return replace(self, feature=column(self.feature))

    def text(self, schema: Schema, most: int | None = None) -> str:
        column = schema[self.feature]
        if column.kind is ColumnKind.BINARY and 0 <= self.threshold < 1:
            return f"{label(column.name)} is 0{self.empty_words()}"
        if (word := column.rank_word(self.threshold)) is not None:
            return f"{label(column.name)} is at most {in_list(word)}{self.empty_words()}"
        return f"{label(column.name)} ≤ {schema_number(column, self.threshold)}{unit(column)}{self.empty_words()}"

    def value_text(self, schema: Schema, row: FloatArray) -> str:
        return column_value(schema[self.feature], float(row[self.feature]))

    def conditions(self, schema: Schema, left: bool) -> tuple[Condition, ...]:
        column = schema[self.feature]
        return (
            Condition(
                column=column.name,
                op="<=" if left else ">",
                value=decimal_text(self.threshold),
                missing=self.empty_condition(left),
                word=column.rank_word(self.threshold),
            ),
        )

    def comparison(self, dialect: Dialect) -> str:
        return dialect.at_most(self.feature, self.threshold)

    def onnx(self, graph: OnnxGraph, node: int) -> None:
        graph.test_column(node, self.feature, self.threshold, empty_left=self.missing is EmptySide.LEFT)

    def pmml(self, model: PmmlModel, node: int) -> ET.Element:
        return model.simple(model.name(self.feature), "lessOrEqual", repr(self.threshold))

    def wish(self, schema: Schema) -> str:
        return f"{schema[self.feature].name} <= {self.threshold!r}{self.empty_wish()}"

    def plane(self) -> tuple[tuple[Term, ...], float, bool] | None:
        return ((self.feature, -1, 1.0),), self.threshold, False

    def shorten(self, values: Values, matrix: FloatArray, rows: CountArray) -> tuple[Split, bool]:
        return replace(self, threshold=shortest_cut(self.threshold, values(self.feature))), False


def shortest_cut(threshold: float, values: FloatArray) -> float:
    """Return the shortest decimal in the gap of ascending `values` around `threshold`; the threshold itself without such a gap."""
    gap = gap_around(threshold, values)
    if gap is None or not (math.isfinite(gap[0]) and math.isfinite(gap[1])):
        return threshold
    return shortest_between(*gap)
