"""Split at whether the cell of a numeric column is empty."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from trainer.dtypes import BoolArray, FloatArray
from trainer.errors import ModelFileError
from trainer.table import ColumnKind
from trainer.tree.numbers import label, schema_number
from trainer.tree.splits.base import (
    EMPTY,
    IS_EMPTY,
    Condition,
    Dialect,
    Flat,
    OnnxGraph,
    PmmlModel,
    Schema,
    Split,
    Term,
    column_index,
)


@dataclass(frozen=True, kw_only=True)
class Missing(Split):
    """A split that sends a row left if its cell of column `feature` is empty."""

    feature: int

    kind = "missing"

    @property
    def used(self) -> tuple[int, ...]:
        return (self.feature,)

    @property
    def refused(self) -> tuple[int, ...]:
        return ()

    @property
    def reads_empty(self) -> bool:
        return True

    @property
    def empty_goes_left(self) -> bool | None:
        return True

    def goes_left(self, matrix: FloatArray) -> BoolArray:
        return np.isnan(matrix[:, self.feature])

    def flat(self, schema: Schema) -> Flat:
        return Flat(test=IS_EMPTY, feature=self.feature, empty_left=True)

    def to_json(self, schema: Schema) -> dict[str, Any]:
        return {"kind": self.kind, "feature": schema[self.feature].name}

    @classmethod
    def from_json(cls, record: Mapping[str, Any], schema: Schema) -> Missing:
        feature = column_index(record["feature"], schema)
        if schema[feature].kind is ColumnKind.CATEGORICAL:
            raise ModelFileError(
                f"A question whether a cell is empty needs a numeric column, but '{schema[feature].name}' is categorical."
            )
        return cls(feature=feature)

    def rename(self, column: Callable[[int], int], code: Callable[[int, int], int]) -> Missing:
        return replace(self, feature=column(self.feature))

    def text(self, schema: Schema, most: int | None = None) -> str:
        return f"is {label(schema[self.feature].name)} empty"

    def value_text(self, schema: Schema, row: FloatArray) -> str:
        value = float(row[self.feature])
        return "empty" if np.isnan(value) else schema_number(schema[self.feature], value)

    def conditions(self, schema: Schema, left: bool) -> tuple[Condition, ...]:
        name = schema[self.feature].name
        return (Condition(column=name, op="is missing" if left else "is not missing", value=None, missing=left),)

    def expression(self, dialect: Dialect) -> str:
        return dialect.is_empty(self.feature)

    def onnx(self, graph: OnnxGraph, node: int) -> None:
        graph.test_empty(node, self.feature)

    def pmml(self, model: PmmlModel, node: int) -> ET.Element:
        return model.simple(model.name(self.feature), "isMissing")

    def plane(self) -> tuple[tuple[Term, ...], float, bool] | None:
        # the indicator is 1 for an empty cell and 0 otherwise, so 1/2 separates them
        return ((self.feature, EMPTY, 1.0),), 0.5, True

    def wish(self, schema: Schema) -> str:
        return f"{schema[self.feature].name} is empty"
