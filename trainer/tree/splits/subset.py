"""Split at whether a category is one of a set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from trainer.dtypes import BoolArray, FloatArray
from trainer.errors import ModelFileError
from trainer.table import MISSING_CATEGORY, ColumnKind, ColumnSchema
from trainer.tree.literals import missing_category
from trainer.tree.numbers import category_text, in_list, label
from trainer.tree.splits.base import (
    AMONG,
    Condition,
    Dialect,
    Flat,
    OnnxGraph,
    PmmlModel,
    Schema,
    Split,
    Term,
    category_code,
    column_index,
)


@dataclass(frozen=True, kw_only=True)
class Subset(Split):
    """A split that sends a row left if the category code of column `feature` is one of `codes` (sorted)."""

    feature: int
    codes: tuple[int, ...]

    kind = "subset"

    @property
    def used(self) -> tuple[int, ...]:
        return (self.feature,)

    @property
    def among(self) -> tuple[int, ...]:
        return self.codes

    def size(self, schema: Schema) -> int:
        """Return the size of the set or of its complement, whichever is smaller, at least one."""
        return max(1, min(len(self.codes), len(schema[self.feature].categories) - len(self.codes)))

    def limit_categories(self, most: int, sizes: Sequence[int], matrix: FloatArray) -> Subset:
        """Move categories without rows to the other side if the limit requires it."""
        every = set(range(sizes[self.feature]))
        if min(len(self.codes), len(every) - len(self.codes)) <= most:
            return self
        left = self.goes_left(matrix)
        column = matrix[:, self.feature]
        sent, others = ({int(a) for a in np.unique(column[side])} for side in (left, ~left))
        return replace(self, codes=tuple(sorted(sent if len(sent) <= most else every - others)))

    def goes_left(self, matrix: FloatArray) -> BoolArray:
        return np.isin(matrix[:, self.feature], np.asarray(self.codes, dtype=np.float64))

    def flat(self, schema: Schema) -> Flat:
        size = max(1, len(schema[self.feature].categories))
        return Flat(test=AMONG, feature=self.feature, member=tuple(int(c in self.codes) for c in range(size)))

    def to_json(self, schema: Schema) -> dict[str, Any]:
        return {"kind": self.kind, "feature": schema[self.feature].name, "categories": self.names(schema)}

    @classmethod
    def from_json(cls, record: Mapping[str, Any], schema: Schema) -> Subset:
        feature = column_index(record["feature"], schema)
        if schema[feature].kind is not ColumnKind.CATEGORICAL:
            raise ModelFileError(f"A subset split needs a categorical column, but '{schema[feature].name}' is not one.")
        codes = (category_code(feature, name, schema) for name in record["categories"])
        return cls(feature=feature, codes=tuple(sorted(codes)))

    def rename(self, column: Callable[[int], int], code: Callable[[int, int], int]) -> Subset:
        codes = {code(self.feature, c) for c in self.codes} - {-1}
        return replace(self, feature=column(self.feature), codes=tuple(sorted(codes)))

    def text(self, schema: Schema, most: int | None = None) -> str:
        names = [in_list(name) if len(self.codes) > 1 else label(name) for name in self.names(schema)]
        column = label(schema[self.feature].name)
        if not names:
            return f"{column} is none of its categories"
        if len(names) == 1:
            return f"{column} is {names[0]}"
        if most is not None and len(names) > most:
            return f"{column} is one of {', '.join(names[:most])} + {len(names) - most} more"
        return f"{column} is one of {', '.join(names)}"

    def value_text(self, schema: Schema, row: FloatArray) -> str:
        return category_text(schema[self.feature], float(row[self.feature]))

    def conditions(self, schema: Schema, left: bool) -> tuple[Condition, ...]:
        column = schema[self.feature]
        if left and self.names(schema) == [MISSING_CATEGORY] and missing_category(column):
            return (Condition(column=column.name, op="is missing", value=None),)
        return (Condition(column=column.name, op="in" if left else "not in", value=tuple(self.names(schema))),)

    def expression(self, dialect: Dialect) -> str:
        return dialect.category_in(self.feature, self.codes)

    def onnx(self, graph: OnnxGraph, node: int) -> None:
        graph.test_category(node, self.feature, self.codes)

    def pmml(self, model: PmmlModel, node: int) -> ET.Element:
        return model.category_in(self.feature, self.codes)

    def wish(self, schema: Schema) -> str:
        return f"{schema[self.feature].name} in {'|'.join(self.names(schema))}"

    def plane(self) -> tuple[tuple[Term, ...], float, bool] | None:
        # the sum of the indicators is 1 for these categories and 0 for others, so 1/2 separates them
        return tuple((self.feature, c, 1.0) for c in self.codes), 0.5, True

    def names(self, schema: Schema) -> list[str]:
        """Return the categories that go left."""
        column: ColumnSchema = schema[self.feature]
        return [column.categories[code] for code in self.codes]
