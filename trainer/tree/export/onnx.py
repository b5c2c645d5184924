"""Export a tree as an ONNX model with the kernel's leaves.

The graph computes one feature for each numeric column and for each linear, interval or subset split. A
TreeEnsembleRegressor returns the number of the leaf, by which label and class shares are looked up. Sums are added term
by term with Mul and Add in the order of the split. A matrix product may add in another order, or fuse, so that a row on
a threshold could change its side. Features of interval and subset splits are 0 for left and 1 for right, so that all
nodes test x <= t, which is false for NaN. Thresholds that empty cells pass have `nodes_missing_value_tracks_true`.
Other splits with empty cells on the left replace their feature by minus infinity.

Outputs: `label` string (n,), `probabilities` double (n, classes), `leaf` int64 (n,).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from trainer.errors import DataError
from trainer.table import ColumnKind
from trainer.tree.export.nested import refuse_refusing
from trainer.tree.nodes import Tree
from trainer.tree.splits.base import EMPTY
from trainer.version import VERSION

Inputs = Literal["auto", "tensor", "columns"]
OPSET = 17
ML_OPSET = 3
IR_VERSION = 8
LABEL = "label"
SHARES = "probabilities"
LEAF = "leaf"
TENSOR = "X"
OUTPUTS = (LABEL, SHARES, LEAF)


def to_onnx(tree: Tree, inputs: Inputs = "auto", notes: Sequence[str] = ()) -> bytes:
    """Return the serialised ONNX model of `tree`; raise DataError if it cannot be written, or the contract refuses values.

    With `inputs="tensor"` the input is `X`, double (n, columns), with categories as codes (their positions in the
    schema). With "columns" there is an input (n, 1) for each column of the schema, called like the column (see
    `input_names`): double for numeric and binary columns, string for categorical ones. "auto" uses columns if one is
    text. The inputs do not depend on the used columns, so a retrained model has the same ones. ONNX has no missing
    text: an empty text is a text like others. A missing cell is given as "(missing)" if that is a category of its
    column. The notes are the document string of the model.
    """
    try:
        import onnx
    except ImportError as error:
        raise DataError(
            "The ONNX export needs the package 'onnx'. Install it with pip install 'octweb[onnx]'."
        ) from error
    refuse_refusing(tree, "ONNX")
    builder = _Builder(tree=tree, by_column=_by_column(tree, inputs))
    builder.build()
    model = onnx.helper.make_model(
        builder.graph(),
        producer_name="octweb",
        producer_version=VERSION,
        opset_imports=[onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid("ai.onnx.ml", ML_OPSET)],
        ir_version=IR_VERSION,
        doc_string="\n".join(notes),
    )
    columns = [c.to_json() | {"input": builder.names.get(j)} for j, c in enumerate(tree.schema)]
    onnx.helper.set_model_props(
        model, {"columns": json.dumps(columns), "classes": json.dumps(list(tree.classes)), "format": "octweb-tree"}
    )
    onnx.checker.check_model(model)
    return model.SerializeToString()


def input_names(tree: Tree) -> dict[int, str]:
    """Return the input name of each column, for models with one input per column.

    It is the column's name, unless that is empty or taken.
    """
    names: dict[int, str] = {}
    for j, column in enumerate(tree.schema):
        name = column.name
        names[j] = name if name and name not in OUTPUTS and not name.startswith("octweb:") else f"column:{j}:{name}"
    return names


def _by_column(tree: Tree, inputs: Inputs) -> bool:
    if not tree.schema or inputs == "tensor":
        return False
    text = any(column.kind is ColumnKind.CATEGORICAL for column in tree.schema)
    return inputs == "columns" or text


@dataclass(kw_only=True)
class _Builder:
    """Builder of the graph; `features` are the double (n, 1) or (n, k) values that the tree tests."""

    tree: Tree
    by_column: bool
    operators: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    features: list[str] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    # for each node of the tree, the index of the feature that it tests
    position: dict[int, int] = field(default_factory=dict)
    threshold: dict[int, float] = field(default_factory=dict)
    empty_left: set[int] = field(default_factory=set)  # nodes that send NaN left
    _numbers: dict[int, str] = field(default_factory=dict)
    _codes: dict[int, str] = field(default_factory=dict)
    _columns: dict[int, int] = field(default_factory=dict)
    _sets: dict[int, list[tuple[int, Sequence[int]]]] = field(default_factory=dict)
    _used: int = 0

    def build(self) -> None:
        """Build all operators and constants from the tree."""
        self.names = input_names(self.tree) if self.by_column else {}
        for v in self.tree.branches:
            if v.split is not None:
                v.split.onnx(self, v.id)
        for column, sets in self._sets.items():
            self._members(column, sets)
        self._leaf()

    def test_column(self, node: int, column: int, threshold: float, *, empty_left: bool) -> None:
        """Make a node test whether a column is at most the threshold, or empty if `empty_left`."""
        if column not in self._columns:
            self._columns[column] = self._feature(self.number(column))
        self._tests(node, self._columns[column], threshold)
        if empty_left:
            self.empty_left.add(node)

    def test_value(self, node: int, value: str, threshold: float, *, empty_left: Sequence[int]) -> None:
        """Make a node test whether a computed value is at most the threshold, or a column of `empty_left` is empty.

        A sum of infinities is NaN as well and goes right, so the columns themselves are tested for empty cells.
        """
        if empty_left:
            empty = self._is_nan(empty_left[0])
            for column in empty_left[1:]:
                empty = self._add("Or", [empty, self._is_nan(column)])
            value = self._add("Where", [empty, self._constant(np.full((1, 1), -np.inf)), value])
        self._tests(node, self._feature(value), threshold)

    def test_empty(self, node: int, column: int) -> None:
        """Make a node test whether a cell is empty."""
        present = self._add("Cast", [self._add("Not", [self._is_nan(column)])], to=11)  # ONNX type 11 is double
        self._tests(node, self._feature(present), 0.5)

    def test_category(self, node: int, column: int, codes: Sequence[int]) -> None:
        """Make a node test whether the category of a column is one of `codes`."""
        self._sets.setdefault(column, []).append((node, codes))

    def graph(self) -> Any:
        """Return the graph with inputs and outputs."""
        from onnx import TensorProto, helper

        if self.by_column:
            kinds = {
                j: TensorProto.STRING if self.tree.schema[j].kind is ColumnKind.CATEGORICAL else TensorProto.DOUBLE
                for j in self.names
            }
            inputs = [helper.make_tensor_value_info(name, kinds[j], ["n", 1]) for j, name in self.names.items()]
        else:
            inputs = [helper.make_tensor_value_info(TENSOR, TensorProto.DOUBLE, ["n", len(self.tree.schema)])]
        outputs = [
            helper.make_tensor_value_info(LABEL, TensorProto.STRING, ["n"]),
            helper.make_tensor_value_info(SHARES, TensorProto.DOUBLE, ["n", len(self.tree.classes)]),
            helper.make_tensor_value_info(LEAF, TensorProto.INT64, ["n"]),
        ]
        return helper.make_graph(self.operators, "tree", inputs, outputs, initializer=self.constants)

    def _tests(self, node: int, position: int, threshold: float) -> None:
        self.position[node] = position
        self.threshold[node] = threshold

    def _feature(self, name: str) -> int:
        self.features.append(name)
        return len(self.features) - 1

    def _add(self, operator: str, inputs: list[str], *, out: str = "", domain: str = "", **attributes: Any) -> str:
        from onnx import helper

        self._used += 1
        out = out or f"octweb:{self._used}"
        self.operators.append(helper.make_node(operator, inputs, [out], domain=domain, **attributes))
        return out

    def _constant(self, array: np.ndarray) -> str:
        from onnx import helper, numpy_helper
        from onnx.onnx_pb import TensorProto

        self._used += 1
        name = f"octweb:{self._used}"
        if array.dtype == object:
            texts = [str(text).encode() for text in array]
            self.constants.append(helper.make_tensor(name, TensorProto.STRING, array.shape, texts))
        else:
            self.constants.append(numpy_helper.from_array(array, name))
        return name

    def number(self, column: int) -> str:
        """Return the column as double (n, 1)."""
        if column not in self._numbers:
            index = self._constant(np.array([column], np.int64)) if not self.by_column else ""
            self._numbers[column] = (
                self.names[column] if self.by_column else self._add("Gather", [TENSOR, index], axis=1)
            )
        return self._numbers[column]

    def _is_nan(self, column: int) -> str:
        """Return whether a cell of a column is empty, as bool (n, 1)."""
        return self._add("IsNaN", [self.number(column)])

    def filled(self, column: int, fill: float) -> str:
        """Return the column as double (n, 1) with `fill` in its empty cells; a fill of NaN leaves them empty."""
        value = self.number(column)
        if np.isnan(fill):
            return value
        return self._add("Where", [self._is_nan(column), self._constant(np.full((1, 1), fill)), value])

    def _code(self, column: int) -> str:
        """Return the category code as int64 (n, 1); a missing or unknown category has the number of categories as code."""
        if column in self._codes:
            return self._codes[column]
        schema = self.tree.schema[column]
        size = len(schema.categories)
        if self.by_column:
            keys = list(schema.categories)
            encoder: dict[str, Any] = {"keys_strings": keys, "values_int64s": list(range(size)), "default_int64": size}
            out = self._add("LabelEncoder", [self.names[column]], domain="ai.onnx.ml", **encoder)
        else:
            value = self.number(column)
            low = self._add("GreaterOrEqual", [value, self._constant(np.zeros(1))])
            high = self._add("Less", [value, self._constant(np.full(1, float(size)))])
            in_range = self._add("And", [low, high])
            code_or_size = self._add("Where", [in_range, value, self._constant(np.full(1, float(size)))])
            out = self._add("Cast", [code_or_size], to=7)  # ONNX type 7 is int64
        self._codes[column] = out
        return out

    def between(self, value: str, low: float, high: float) -> str:
        """Return 0 where low < value ≤ high, else 1, as double (n, 1)."""
        above = self._add("Greater", [value, self._constant(np.full(1, low))])
        below = self._add("LessOrEqual", [value, self._constant(np.full(1, high))])
        outside = self._add("Not", [self._add("And", [above, below])])
        return self._add("Cast", [outside], to=11)  # ONNX type 11 is double

    def weighted_sum(self, values: Sequence[str], coefficients: Sequence[float]) -> str:
        """Return the sum of double (n, 1) `values` times coefficients, added in their order.

        One operator multiplies by a row of coefficients. A runtime drops a product with a single number that is 1 when
        rounded to float32.
        """
        if not values:
            raise DataError("A linear split has no terms.")
        both = [values[0], values[0]] if len(values) == 1 else list(values)
        row = np.array([[*coefficients, *coefficients[:1]] if len(values) == 1 else list(coefficients)])
        products = self._add("Mul", [self._add("Concat", both, axis=1), self._constant(row)])
        total = ""
        for h in range(len(values)):
            term = self._add("Gather", [products, self._constant(np.array([h], np.int64))], axis=1)
            total = self._add("Add", [total, term]) if total else term
        return total

    def indicator(self, column: int, level: int) -> str:
        """Return 1 where the column has the category, or is empty for the level EMPTY, else 0, as double (n, 1)."""
        if level == EMPTY:
            return self._add("Cast", [self._is_nan(column)], to=11)
        same = self._add("Equal", [self._code(column), self._constant(np.full(1, level, np.int64))])
        return self._add("Cast", [same], to=11)

    def _members(self, column: int, sets: Sequence[tuple[int, Sequence[int]]]) -> None:
        """Add one lookup table for all category tests of a column: shape (categories + 1, tests); 0 sends the row left."""
        table = np.ones((len(self.tree.schema[column].categories) + 1, len(sets)))
        for h, (_, codes) in enumerate(sets):
            table[list(codes), h] = 0.0
        flat = self._add("Reshape", [self._code(column), self._constant(np.array([-1], np.int64))])
        rows = self._add("Gather", [self._constant(table), flat], axis=0)
        for h, (node, _) in enumerate(sets):
            one = rows
            if len(sets) > 1:
                one = self._add("Gather", [rows, self._constant(np.array([h], np.int64))], axis=1)
            self._tests(node, self._feature(one), 0.5)

    def _leaf(self) -> None:
        """Add the leaf of each row, and the lookups of its label and class shares."""
        flat = self._constant(np.array([-1], np.int64))
        if self.features:
            matrix = self.features[0] if len(self.features) == 1 else self._add("Concat", self.features, axis=1)
            number = self._add("TreeEnsembleRegressor", [matrix], domain="ai.onnx.ml", **self._ensemble())
            integer = self._add("Cast", [number], to=7)
            self._add("Reshape", [integer, flat], out=LEAF)
        else:
            source = next(iter(self.names.values()), TENSOR)
            rows = self._add("Gather", [self._add("Shape", [source]), self._constant(np.zeros(1, np.int64))], axis=0)
            self._add("ConstantOfShape", [rows], out=LEAF)  # the root is the only leaf, so every row gets 0
            matrix_type = self.operators[-1].attribute.add()
            matrix_type.CopyFrom(_zero_value())
        labels = np.array([self.tree.classes[v.label] for v in self.tree.nodes], dtype=object)
        self._add("Gather", [self._constant(labels), LEAF], axis=0, out=LABEL)
        self._add("Gather", [self._constant(self.tree.probabilities), LEAF], axis=0, out=SHARES)

    def _ensemble(self) -> dict[str, Any]:
        from onnx import helper
        from onnx.onnx_pb import TensorProto

        nodes = self.tree.nodes
        values = [self.threshold.get(v.id, 0.0) for v in nodes]
        leaves = [v.id for v in nodes if v.is_leaf]
        numbers = [float(v) for v in leaves]
        return {
            "n_targets": 1,
            "nodes_treeids": [0] * len(nodes),
            "nodes_nodeids": [v.id for v in nodes],
            "nodes_featureids": [self.position.get(v.id, 0) for v in nodes],
            "nodes_modes": ["LEAF" if v.is_leaf else "BRANCH_LEQ" for v in nodes],
            "nodes_values_as_tensor": helper.make_tensor("values", TensorProto.DOUBLE, [len(nodes)], values),
            "nodes_truenodeids": [max(0, v.left) for v in nodes],
            "nodes_falsenodeids": [max(0, v.right) for v in nodes],
            "nodes_missing_value_tracks_true": [int(v.id in self.empty_left) for v in nodes],
            "target_treeids": [0] * len(leaves),
            "target_nodeids": leaves,
            "target_ids": [0] * len(leaves),
            "target_weights_as_tensor": helper.make_tensor("weights", TensorProto.DOUBLE, [len(leaves)], numbers),
        }


def _zero_value() -> Any:
    from onnx import helper
    from onnx.onnx_pb import TensorProto

    return helper.make_attribute("value", helper.make_tensor("zero", TensorProto.INT64, [1], [0]))
