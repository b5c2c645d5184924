"""Split by an interval: rows with a value between its ends go left."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from xml.etree import ElementTree as ET

from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.table import ColumnSchema, EmptySide
from trainer.tree.numbers import column_value, decimal_text, in_list, label, number_text, schema_number, unit
from trainer.tree.splits.base import (
    BETWEEN,
    Condition,
    Dialect,
    Flat,
    NumericSplit,
    OnnxGraph,
    PmmlModel,
    Schema,
    Split,
    Values,
    column_index,
    finite,
    read_empty,
)
from trainer.tree.splits.threshold import shortest_cut


@dataclass(frozen=True, kw_only=True)
class Interval(NumericSplit):
    """A split that sends a row left if `low` < column `feature` ≤ `high`; -inf and inf are allowed ends."""

    feature: int
    low: float
    high: float

    kind = "interval"

    @property
    def used(self) -> tuple[int, ...]:
        return (self.feature,)

    def goes_left(self, matrix: FloatArray) -> BoolArray:
        values = matrix[:, self.feature]
        return self.sides((values > self.low) & (values <= self.high), matrix)

    def flat(self, schema: Schema) -> Flat:
        return Flat(
            test=BETWEEN,
            feature=self.feature,
            low=self.low,
            high=self.high,
            empty_left=self.missing is EmptySide.LEFT,
        )

    def to_json(self, schema: Schema) -> dict[str, Any]:
        low = None if math.isinf(self.low) else self.low
        high = None if math.isinf(self.high) else self.high
        return {"kind": self.kind, "feature": schema[self.feature].name, "low": low, "high": high} | self.empty_json()

    @classmethod
    def from_json(cls, record: Mapping[str, Any], schema: Schema) -> Interval:
        low = -math.inf if record.get("low") is None else finite(record["low"])
        high = math.inf if record.get("high") is None else finite(record["high"])
        return cls(feature=column_index(record["feature"], schema), low=low, high=high, **read_empty(record))

    def rename(self, column: Callable[[int], int], code: Callable[[int, int], int]) -> Interval:
        return replace(self, feature=column(self.feature))

    def code(self, schema: Schema) -> float | None:
        """Return the only special value of the column between two finite ends; None if there is none, or more than one."""
        codes = [value for value in schema[self.feature].special if self.low < value <= self.high]
        return codes[0] if len(codes) == 1 and math.isfinite(self.low) and math.isfinite(self.high) else None

    def brief(self, schema: Schema, most: int | None = None) -> str:
        """Return the test in one line; a bucket around a code names the code, because codes are not numbers."""
        code = self.code(schema)
        if code is None:
            return self.text(schema, most)
        return f"{label(schema[self.feature].name)} is code {number_text(code, full=True)}{self.empty_words()}"

    def text(self, schema: Schema, most: int | None = None) -> str:
        column = schema[self.feature]
        low = schema_number(column, self.low)
        high = schema_number(column, self.high)
        name = label(column.name)
        words = f"{unit(column)}{self.empty_words()}"
        if column.ranks and not (math.isinf(self.low) and math.isinf(self.high)):
            return f"{name} is {self._ranks_text(column)}{self.empty_words()}"
        if math.isinf(self.low) and math.isinf(self.high):
            return f"{name} is a finite number{self.empty_words()}"
        if math.isinf(self.low):
            return f"{name} ≤ {high}{words}"
        if math.isinf(self.high):
            return f"{name} > {low}{words}"
        code = self.code(schema)
        code_note = "" if code is None else f" (the code {number_text(code, full=True)})"
        return f"{low} < {name} ≤ {high}{unit(column)}{code_note}{self.empty_words()}"

    def _ranks_text(self, column: ColumnSchema) -> str:
        lowest = column.rank_word(max(math.floor(max(self.low, 0.0)) + 1, 1))
        highest = column.rank_word(min(self.high, float(len(column.ranks))))
        low = in_list(lowest or schema_number(column, self.low))
        high = in_list(highest or schema_number(column, self.high))
        if math.isinf(self.high):
            return f"at least {low}"
        return f"at most {high}" if math.isinf(self.low) else f"{low} to {high}"

    def value_text(self, schema: Schema, row: FloatArray) -> str:
        return column_value(schema[self.feature], float(row[self.feature]))

    def conditions(self, schema: Schema, left: bool) -> tuple[Condition, ...]:
        column = schema[self.feature]
        name = column.name
        empty = self.empty_condition(left)
        ops = (">", "<=") if left else ("<=", ">")
        above, below = (
            Condition(column=name, op=op, value=decimal_text(end), missing=empty, word=column.rank_word(end))
            for op, end in zip(ops, (self.low, self.high), strict=True)
        )
        if math.isinf(self.low) and math.isinf(self.high) and left and self.missing is not EmptySide.LEFT:
            return (Condition(column=name, op="is not missing", value=None, missing=False),)
        ends = [c for c, end in ((above, self.low), (below, self.high)) if math.isfinite(end)]
        # a single condition cannot say "below or above", so the rules for the rows inside must come first
        return tuple(ends) if left or len(ends) == 1 else ()

    def comparison(self, dialect: Dialect) -> str:
        return dialect.between(self.feature, self.low, self.high)

    def onnx(self, graph: OnnxGraph, node: int) -> None:
        inside = graph.between(graph.number(self.feature), self.low, self.high)
        graph.test_value(node, inside, 0.5, empty_left=self.empty_left)

    def pmml(self, model: PmmlModel, node: int) -> ET.Element:
        name = model.name(self.feature)
        tests = []
        if math.isfinite(self.low):
            tests.append(model.simple(name, "greaterThan", repr(self.low)))
        if math.isfinite(self.high):
            tests.append(model.simple(name, "lessOrEqual", repr(self.high)))
        if not tests:
            return ET.Element("True") if self.missing is EmptySide.LEFT else model.simple(name, "isNotMissing")
        if len(tests) == 1:
            return tests[0]
        both = ET.Element("CompoundPredicate", {"booleanOperator": "and"})
        both.extend(tests)
        return both

    def wish(self, schema: Schema) -> str:
        return f"{schema[self.feature].name} between {self.low!r} and {self.high!r}{self.empty_wish()}"

    def shorten(self, values: Values, matrix: FloatArray, rows: CountArray) -> tuple[Split, bool]:
        low, high = (shortest_cut(end, values(self.feature)) for end in (self.low, self.high))
        return (replace(self, low=low, high=high) if low < high else self), False
