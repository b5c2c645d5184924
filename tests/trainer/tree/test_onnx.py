"""ONNX models in onnxruntime send each row to the same leaf as the tree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.trainer.random_trees import cells, random_tree
from trainer.table import MISSING_CATEGORY, ColumnKind, ColumnSchema, MissingPolicy
from trainer.tree.export.onnx import input_names, to_onnx
from trainer.tree.nodes import DraftBranch, DraftLeaf, Tree, grow
from trainer.tree.splits import Linear, Subset, Threshold

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime runs the exported model")


def session(tree: Tree, inputs: str, options: object = None) -> object:
    return onnxruntime.InferenceSession(to_onnx(tree, inputs), options, providers=["CPUExecutionProvider"])


def alone() -> object:
    """Return options of a session without its own threads, which cost more than these few rows."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return options


def feed(tree: Tree, matrix: np.ndarray) -> dict[str, np.ndarray]:
    """Return one array for each column that the tree reads.

    Missing text is empty, which may be a category of the random schemas.
    """
    out = {}
    for j, name in input_names(tree).items():
        if tree.schema[j].kind is ColumnKind.CATEGORICAL:
            texts = [cells(tree, row)[tree.schema[j].name] for row in matrix]
            out[name] = np.array(["never" if t is None else t for t in texts], dtype=object).reshape(-1, 1)
        else:
            out[name] = matrix[:, [j]]
    return out


def check(tree: Tree, matrix: np.ndarray, outputs: list[np.ndarray]) -> None:
    label, shares, leaf = outputs
    expected = tree.apply(matrix)
    assert leaf.tolist() == expected.tolist()
    assert label.tolist() == [tree.classes[tree.nodes[v].label] for v in expected]
    assert np.array_equal(shares, tree.probabilities[expected])


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_every_row_reaches_its_leaf_from_one_tensor(block):
    for seed in range(20 * block, 20 * (block + 1)):
        tree, matrix = random_tree(seed)
        check(tree, matrix, session(tree, "tensor", alone()).run(["label", "probabilities", "leaf"], {"X": matrix}))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_every_row_reaches_its_leaf_from_columns(block):
    for seed in range(20 * block, 20 * (block + 1)):
        tree, matrix = random_tree(seed)
        check(
            tree, matrix, session(tree, "columns", alone()).run(["label", "probabilities", "leaf"], feed(tree, matrix))
        )


def test_one_row_and_no_rows():
    for seed in range(20):
        tree, matrix = random_tree(seed)
        model = session(tree, "tensor")
        for part in (matrix[:1], matrix[:0]):
            check(tree, part, model.run(["label", "probabilities", "leaf"], {"X": part}))


def test_thresholds_keep_double_precision():
    near = np.nextafter(0.1, 1)
    schema = [ColumnSchema(name="a", kind=ColumnKind.NUMERIC)]
    draft = DraftBranch(split=Threshold(feature=0, threshold=0.1), left=DraftLeaf(label=0), right=DraftLeaf(label=1))
    matrix = np.array([[0.1], [near]])
    tree = grow(draft, matrix, np.array([0, 1], np.int32), schema=schema, classes="ab")
    assert session(tree, "auto").run(["label"], {"X": matrix})[0].tolist() == ["a", "b"]


def test_text_columns_are_own_inputs_and_empty_text_is_a_value():
    column = ColumnSchema(
        name="label",
        kind=ColumnKind.CATEGORICAL,
        categories=("almond", MISSING_CATEGORY),
        missing=MissingPolicy.CATEGORY,
    )
    draft = DraftBranch(split=Subset(feature=0, codes=(1,)), left=DraftLeaf(label=1), right=DraftLeaf(label=0))
    tree = grow(draft, np.zeros((1, 1)), np.zeros(1, np.int32), schema=[column], classes=("no", "yes"))
    model = session(tree, "auto")
    name = input_names(tree)[0]
    assert [i.name for i in model.get_inputs()] == [name] != ["label"]
    texts = np.array([[MISSING_CATEGORY], [""], ["almond"], ["unknown"]], dtype=object)
    assert model.run(["label"], {name: texts})[0].tolist() == ["yes", "no", "no", "no"]


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_sums_over_wide_ranges_reach_their_leaf(block):
    for seed in range(50 * block, 50 * (block + 1)):
        rng = np.random.default_rng(seed)
        width = int(rng.integers(1, 5))
        scales = 10.0 ** rng.integers(-12, 13, width)
        matrix = rng.normal(size=(80, width)) * scales
        near_one = [1 - 1e-8, 1 + 1e-9, -1 + 1e-10, 1.0, 1e-50]  # float32 rounds these to 1, -1 or 0
        factors = [float(rng.choice(near_one) if rng.random() < 0.6 else rng.normal() / s) for s in scales]
        split = Linear(features=tuple(range(width)), coefficients=tuple(factors), threshold=0.0, levels=(-1,) * width)
        row = int(rng.integers(80))
        split = replace(split, threshold=float(split.sums(matrix)[row]))  # the threshold equals the sum of a row
        schema = [ColumnSchema(name=f"x{j}", kind=ColumnKind.NUMERIC) for j in range(width)]
        below = DraftBranch(
            split=Threshold(feature=0, threshold=float(matrix[3, 0])), left=DraftLeaf(), right=DraftLeaf()
        )
        tree = grow(
            DraftBranch(split=split, left=DraftLeaf(), right=below),
            matrix,
            np.zeros(80, np.int32),
            schema=schema,
            classes=("a", "b"),
        )
        close = np.vstack([matrix, np.nextafter(matrix[row], np.inf), np.nextafter(matrix[row], -np.inf)])
        for inputs in ("tensor", "columns"):
            rows = {"X": close} if inputs == "tensor" else feed(tree, close)
            check(tree, close, session(tree, inputs).run(["label", "probabilities", "leaf"], rows))


def test_sum_below_an_empty_text_reaches_its_leaf():
    text = ColumnSchema(name="kind", kind=ColumnKind.CATEGORICAL, categories=("almond", ""))
    schema = [text, *(ColumnSchema(name=name, kind=ColumnKind.NUMERIC) for name in "uv")]
    matrix = np.array([[k, u, v] for k in (0, 1) for u in (1e12, 1e12 + 1) for v in (1e-12, 2e-12, 1e3)])
    split = Linear(features=(1, 2), coefficients=(1 - 1e-8, 1e12), threshold=0.0, levels=(-1, -1))
    split = replace(split, threshold=float(split.sums(matrix)[1]))  # the threshold equals the sum of a row
    below = DraftBranch(split=split, left=DraftLeaf(label=0), right=DraftLeaf(label=1))
    draft = DraftBranch(split=Subset(feature=0, codes=(1,)), left=below, right=DraftLeaf(label=1))
    tree = grow(draft, matrix, np.zeros(len(matrix), np.int32), schema=schema, classes=("no", "yes"))
    assert len(set(tree.apply(matrix).tolist())) == 3
    check(tree, matrix, session(tree, "columns").run(["label", "probabilities", "leaf"], feed(tree, matrix)))


def test_coefficient_that_rounds_to_one_is_unchanged():
    schema = [ColumnSchema(name=name, kind=ColumnKind.NUMERIC) for name in "uv"]
    split = Linear(features=(0, 1), coefficients=(0.99999999, 0.001), threshold=1e8 - 0.5, levels=(-1, -1))
    draft = DraftBranch(split=split, left=DraftLeaf(label=0), right=DraftLeaf(label=1))
    matrix = np.array([[1e8, 1.0], [1e8, 600.0], [1e8 + 2, 0.0]])
    tree = grow(draft, matrix, np.array([0, 1, 1], np.int32), schema=schema, classes="ab")
    assert tree.apply(matrix).tolist() == [1, 2, 2]
    for inputs in ("tensor", "columns"):
        rows = {"X": matrix} if inputs == "tensor" else {"u": matrix[:, :1], "v": matrix[:, 1:]}
        assert session(tree, inputs).run(["leaf"], rows)[0].tolist() == [1, 2, 2]


@pytest.mark.parametrize("asked", [(), (0,), (2,), (0, 2)])
def test_inputs_do_not_depend_on_the_columns_that_are_asked(asked):
    schema = (
        ColumnSchema(name="a", kind=ColumnKind.NUMERIC),
        ColumnSchema(name="b", kind=ColumnKind.NUMERIC),
        ColumnSchema(name="c", kind=ColumnKind.CATEGORICAL, categories=("x", "y")),
    )
    draft = DraftLeaf(label=0)
    for j in asked:
        split = Subset(feature=j, codes=(0,)) if j == 2 else Threshold(feature=j, threshold=0.5)
        draft = DraftBranch(split=split, left=draft, right=DraftLeaf(label=1))
    rows = np.array([[0.0, 1, 0], [1, 0, 1]])
    tree = grow(draft, rows, np.array([0, 1], np.int32), schema=schema, classes=("no", "yes"))
    model = session(tree, "auto")
    assert [get_input.name for get_input in model.get_inputs()] == ["a", "b", "c"]
    leaves = model.run(["leaf"], feed(tree, rows))[0]
    assert leaves.tolist() == tree.apply(rows).tolist()
