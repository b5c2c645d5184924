"""PMML documents in jpmml-evaluator give the tree's node ids, labels and probabilities."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.oracles.pmml_text import PmmlTree
from tests.trainer.random_trees import cells, naive_leaf, random_tree
from trainer.errors import DataError
from trainer.table import MISSING_CATEGORY, ColumnKind, ColumnSchema, MissingPolicy
from trainer.tree.export.pmml import NAMESPACE, to_pmml
from trainer.tree.nodes import DraftBranch, DraftLeaf, Tree, grow
from trainer.tree.splits import Linear, Subset, Threshold

TREES = 80
SPACE = f"{{{NAMESPACE}}}"


@pytest.mark.slow
def test_jpmml_reaches_same_node_with_same_label_and_shares(tmp_path):
    if shutil.which("java") is None or importlib.util.find_spec("jpmml_evaluator") is None:
        pytest.skip("needs Java and the package jpmml-evaluator")
    cases = {}
    for seed in range(TREES):
        tree, matrix = random_tree(seed, rows=15)
        matrix = matrix[~np.isinf(matrix).any(axis=1)]  # PMML has no infinity
        cases[write(tmp_path, f"{seed:03}", tree, matrix)] = (tree, matrix)
    tree = missing_tree()
    cases[write(tmp_path, "missing", tree, np.array([[0.0], [np.nan], [1.0], [5.0]]))] = (
        tree,
        np.array([[0.0], [1.0], [1.0], [5.0]]),
    )
    reader = Path(__file__).parents[1] / "oracles" / "pmml_reader.py"
    process = subprocess.run([sys.executable, str(reader), str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert process.returncode == 0, process.stderr[-2000:]
    rows = 0
    for name, (tree, matrix) in cases.items():
        outputs = json.loads((tmp_path / f"{name}.out.json").read_text())
        for row, out in zip(matrix, outputs, strict=True):
            expected = naive_leaf(tree, row)
            values = list(out.values())[-len(tree.classes) - 2 :]
            assert values[-1] == str(expected), name
            assert values[0] == tree.classes[tree.nodes[expected].label]
            assert values[1:-1] == pytest.approx(tree.probabilities[expected].tolist(), abs=1e-12)
            rows += 1
    assert rows > 1000


@seeds(60)
def test_small_reader_reaches_same_leaf(seed):
    """The tests of frames ask this reader, so it must read all kinds of splits as jpmml does."""
    tree, matrix = random_tree(seed, rows=15)
    reader = PmmlTree(to_pmml(tree))
    for row in matrix[~np.isinf(matrix).any(axis=1)]:
        assert reader.leaf(cells(tree, row)) == naive_leaf(tree, row)


def write(folder: Path, name: str, tree: Tree, matrix: np.ndarray) -> str:
    (folder / f"{name}.pmml").write_text(to_pmml(tree), encoding="utf-8")
    (folder / f"{name}.rows.json").write_text(json.dumps([cells(tree, row) for row in matrix]))
    return name


def missing_tree() -> Tree:
    column = ColumnSchema(
        name="odor",
        kind=ColumnKind.CATEGORICAL,
        categories=("almond", MISSING_CATEGORY),
        missing=MissingPolicy.CATEGORY,
    )
    draft = DraftBranch(split=Subset(feature=0, codes=(1,)), left=DraftLeaf(label=1), right=DraftLeaf(label=0))
    return grow(draft, np.zeros((1, 1)), np.zeros(1, np.int32), schema=[column], classes=("no", "yes"))


@seeds(60)
def test_names_and_numbers_survive_xml(seed):
    tree, _ = random_tree(seed)
    root = ET.fromstring(to_pmml(tree, target="leaf", name='a<b&"c"'))
    assert root.get("version") == "4.4"
    fields = {f.get("name"): f for f in root.iter(f"{SPACE}DataField")}
    for j in tree.used_columns:
        column = tree.schema[j]
        assert [v.get("value") for v in fields[column.name].iter(f"{SPACE}Value")] == list(column.categories)
    nodes = {int(v.get("id")): v for v in root.iter(f"{SPACE}Node")}
    assert sorted(nodes) == list(range(len(tree.nodes)))
    for v in tree.nodes:
        assert nodes[v.id].get("score") == tree.classes[v.label]
        assert [int(child.get("id")) for child in nodes[v.id].findall(f"{SPACE}Node")] == (
            [] if v.is_leaf else [v.left, v.right]
        )
    for v in tree.branches:
        if isinstance(v.split, Threshold | Linear):
            test = nodes[v.left].find(f"{SPACE}SimplePredicate")
            assert float(test.get("value")) == v.split.threshold
    names = [
        f.get("name") for kind in ("DataField", "DerivedField", "OutputField") for f in root.iter(f"{SPACE}{kind}")
    ]
    assert len(set(names)) == len(names)


def test_control_characters_are_refused():
    schema = [ColumnSchema(name="a\x01", kind=ColumnKind.NUMERIC)]
    tree = grow(DraftLeaf(), np.zeros((1, 1)), np.zeros(1, np.int32), schema=schema, classes="a")
    with pytest.raises(DataError, match="control character"):
        to_pmml(tree)
