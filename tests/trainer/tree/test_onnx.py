"""ONNX models run by onnxruntime: every row lands in the same leaf as in the tree."""

from __future__ import annotations

import numpy as np
import pytest

from tests.trainer.random_trees import cells, random_tree
from trainer.table import MISSING_CATEGORY, ColumnSchema, Kind, MissingPolicy
from trainer.tree.nodes import DraftBranch, DraftLeaf, Tree, grow
from trainer.tree.onnx import input_names, to_onnx
from trainer.tree.splits import Subset, Threshold

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime runs the exported model")


def session(tree: Tree, inputs: str) -> object:
    return onnxruntime.InferenceSession(to_onnx(tree, inputs), providers=["CPUExecutionProvider"])


def feed(tree: Tree, matrix: np.ndarray) -> dict[str, np.ndarray]:
    """One array a column that the tree reads; missing text is empty, which the random schemas may know as a category."""
    out = {}
    for j, name in input_names(tree).items():
        if tree.schema[j].kind is Kind.CATEGORICAL:
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


@pytest.mark.parametrize("block", range(10))
def test_every_row_reaches_its_leaf_from_one_tensor(block):
    for seed in range(20 * block, 20 * (block + 1)):
        tree, matrix = random_tree(seed)
        check(tree, matrix, session(tree, "tensor").run(["label", "probabilities", "leaf"], {"X": matrix}))


@pytest.mark.parametrize("block", range(10))
def test_every_row_reaches_its_leaf_from_columns(block):
    for seed in range(20 * block, 20 * (block + 1)):
        tree, matrix = random_tree(seed)
        check(tree, matrix, session(tree, "columns").run(["label", "probabilities", "leaf"], feed(tree, matrix)))


def test_one_row_and_no_rows():
    for seed in range(20):
        tree, matrix = random_tree(seed)
        model = session(tree, "tensor")
        for part in (matrix[:1], matrix[:0]):
            check(tree, part, model.run(["label", "probabilities", "leaf"], {"X": part}))


def test_thresholds_keep_double_precision():
    near = np.nextafter(0.1, 1)
    schema = [ColumnSchema(name="a", kind=Kind.NUMERIC)]
    draft = DraftBranch(split=Threshold(feature=0, threshold=0.1), left=DraftLeaf(label=0), right=DraftLeaf(label=1))
    matrix = np.array([[0.1], [near]])
    tree = grow(draft, matrix, np.array([0, 1], np.int32), schema=schema, classes="ab")
    assert session(tree, "auto").run(["label"], {"X": matrix})[0].tolist() == ["a", "b"]


def test_text_columns_become_inputs_of_their_own_and_empty_text_is_the_missing_category():
    column = ColumnSchema(
        name="label", kind=Kind.CATEGORICAL, categories=("almond", MISSING_CATEGORY), missing=MissingPolicy.CATEGORY
    )
    draft = DraftBranch(split=Subset(feature=0, codes=(1,)), left=DraftLeaf(label=1), right=DraftLeaf(label=0))
    tree = grow(draft, np.zeros((1, 1)), np.zeros(1, np.int32), schema=[column], classes=("no", "yes"))
    model = session(tree, "auto")
    name = input_names(tree)[0]
    assert [i.name for i in model.get_inputs()] == [name] != ["label"]
    texts = np.array([[""], ["almond"], ["unknown"]], dtype=object)
    assert model.run(["label"], {name: texts})[0].tolist() == ["yes", "no", "no"]
