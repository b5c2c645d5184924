"""The model file: round trip, JSON Schema, damaged files, atomic writing, and the documented example."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.random_trees import random_tree
from trainer.errors import ModelFileError
from trainer.tree import file as model_file
from trainer.tree.describe import rules_text
from trainer.tree.file import ModelFile, from_json, read_model, write
from trainer.tree.nodes import Tree

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
@seeds(60)
def test_a_written_tree_reads_back_equal_and_predicts_the_same(seed, tmp_path):
    tree, matrix = random_tree(seed)
    path = tmp_path / "model.json"
    write(ModelFile(tree=tree, target="größe", method="cart", parameters={"depth": 3}, metrics={"a": 0.1}), path)
    again = read_model(path)
    assert again.tree == tree
    assert (again.target, again.method, again.parameters, again.metrics) == ("größe", "cart", {"depth": 3}, {"a": 0.1})
    assert again.tree.apply(matrix).tolist() == tree.apply(matrix).tolist()
    write(again, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


def test_tree_save_and_load(tmp_path):
    tree, _ = random_tree(3)
    tree.save(str(tmp_path / "tree.json"))
    assert Tree.load(str(tmp_path / "tree.json")) == tree


def document() -> dict:
    """Return a document with a tree that has more than one branch and every kind of split that the damage needs."""
    seeds = (random_tree(seed)[0] for seed in range(1000))
    wanted = {"threshold", "interval", "subset", "linear"}
    tree = next(t for t in seeds if {v.split.kind for v in t.branches} - {"missing"} == wanted and len(t.classes) > 1)
    return json.loads(json.dumps(ModelFile(tree=tree, method="cart").to_json()))


BASE = document()
BRANCH = next(v["id"] for v in BASE["nodes"] if "split" in v and v["id"] > 0)
LEAF = next(v["id"] for v in BASE["nodes"] if "class" in v)


def of_kind(kind: str) -> int:
    return next(v["id"] for v in BASE["nodes"] if v.get("split", {}).get("kind") == kind)


def put(*path, value):
    def damage(doc):
        for key in path[:-1]:
            doc = doc[key]
        doc[path[-1]] = value

    return damage


def drop(*path):
    def damage(doc):
        for key in path[:-1]:
            doc = doc[key]
        del doc[path[-1]]

    return damage


WRONG_VALUES = (None, -1, 1.5, "x", [], {}, True)
DAMAGES = [
    *(drop(key) for key in ("format", "format_version", "target", "classes", "columns", "nodes")),
    *(put("format_version", value=v) for v in (0, 2, "1", None)),
    put("format", value="pickle"),
    *(put(key, value=v) for key in ("classes", "columns", "nodes") for v in (None, {}, "x", 3, [None], [[]])),
    *(put(key, value=3) for key in ("target", "method", "parameters", "metrics", "certificate", "fingerprint")),
    put("classes", value=[]),
    put("classes", value=["a", "a"]),
    put("classes", value=["other"]),
    put("nodes", value=[]),
    *(put("nodes", BRANCH, key, value=v) for key in ("left", "right", "split") for v in WRONG_VALUES),
    *(put("nodes", 0, "left", value=v) for v in (0, 10**9, 2)),
    *(put("nodes", LEAF, "class", value=v) for v in ("unheard of", None, 3)),
    *(put("nodes", LEAF, "counts", value=v) for v in ([], [1] * 99, [-1], ["1"], [0.5], None, [10**400, 1])),
    drop("nodes", LEAF, "class"),
    drop("nodes", LEAF, "counts"),
    drop("nodes", BRANCH, "left"),
    put("nodes", LEAF, "left", value=0),
    *(put("nodes", LEAF, "id", value=v) for v in (LEAF + 1, "x", None)),
    put("nodes", of_kind("threshold"), "split", "feature", value="no such column"),
    put("nodes", of_kind("threshold"), "split", "threshold", value=None),
    put("nodes", of_kind("threshold"), "split", "threshold", value="1"),
    put("nodes", of_kind("threshold"), "split", "threshold", value=math.inf),
    put("nodes", of_kind("threshold"), "split", "threshold", value=math.nan),
    put("nodes", of_kind("threshold"), "split", "threshold", value=10**400),
    put("nodes", of_kind("threshold"), "split", "kind", value="magic"),
    put("nodes", of_kind("threshold"), "split", "more", value=1),
    put("nodes", of_kind("interval"), "split", "low", value="x"),
    drop("nodes", of_kind("interval"), "split", "high"),
    put("nodes", of_kind("subset"), "split", "categories", value=["never seen"]),
    put("nodes", of_kind("subset"), "split", "feature", value=BASE["columns"][0]["name"]),
    put("nodes", of_kind("linear"), "split", "coefficients", value=[1.0] * 9),
    put("nodes", of_kind("linear"), "split", "coefficients", value=[]),
    put("nodes", of_kind("linear"), "split", "features", value=[]),
    put("nodes", of_kind("linear"), "split", "categories", value=["never seen"] * 4),
    *(put("columns", 0, "kind", value=v) for v in ("text", None, "categorical ")),
    put("columns", 0, "missing", value="category"),
    put("columns", 0, "missing", value="guess"),
    put("columns", 0, "more", value=1),
    drop("columns", 0, "name"),
    put("columns", value=[]),
    lambda doc: doc["columns"].append(dict(doc["columns"][0])),
    lambda doc: doc["nodes"].pop(),
    lambda doc: doc["nodes"].append(dict(doc["nodes"][LEAF], id=len(doc["nodes"]))),
    lambda doc: doc["nodes"].reverse(),
    lambda doc: doc["nodes"][BRANCH].update(left=doc["nodes"][0]["left"], right=doc["nodes"][0]["right"]),
]


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES, ids=range(len(DAMAGES)))
def test_a_damaged_document_is_refused_with_a_sentence(damage, tmp_path):
    doc = copy.deepcopy(BASE)
    from_json(doc)
    damage(doc)
    path = tmp_path / "damaged.json"
    path.write_text(json.dumps(doc))
    with pytest.raises(ModelFileError, match=r"\w+ \w+"):
        read_model(path)


def test_at_least_hundred_faults_are_tried():
    assert len(DAMAGES) >= 100


@pytest.mark.parametrize(
    "content", [b"", b"{", b"null", b"[]", b"3", b"\xff\xfe{}", b'{"format": "octweb-tree"}', b"[" * 100_000]
)
def test_invalid_document_is_refused(content, tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(content)
    with pytest.raises(ModelFileError):
        read_model(path)


@seeds(40)
def test_cut_off_and_flipped_bytes_never_raise_anything_else(seed, tmp_path):
    rng = np.random.default_rng(seed)
    content = bytearray(json.dumps(BASE).encode())
    path = tmp_path / "model.json"
    path.write_bytes(content[: int(rng.integers(len(content)))])
    with pytest.raises(ModelFileError):
        read_model(path)
    content[int(rng.integers(len(content)))] = int(rng.integers(256))
    path.write_bytes(content)
    with contextlib.suppress(ModelFileError):
        read_model(path)  # a changed digit may still be a valid tree, but no other error may occur


def nodes_of(*children: tuple[int, int] | None) -> list[dict]:
    split = {"kind": "threshold", "feature": "a", "threshold": 0.0}
    return [
        {"id": i, "counts": [1]}
        | ({"class": "x"} if pair is None else {"split": split, "left": pair[0], "right": pair[1]})
        for i, pair in enumerate(children)
    ]


@pytest.mark.parametrize(
    "children",
    [
        [(1, 1), None],  # both children are the same node
        [(1, 2), (0, 2), None],  # a child is the root
        [(1, 2), (1, 2), None],  # a node is its own child
        [(1, 2), None, None, None],  # a node has no parent
        [(1, 2), None, None, (4, 5), None, None],  # there is a second tree
        [(1, 2), (3, 4), (3, 4), None, None],  # a node has two parents
        [None, None],
    ],
)
def test_nodes_that_are_no_tree_are_refused(children):
    doc = {
        "format": "octweb-tree", "format_version": 1, "target": "t", "classes": ["x"],
        "columns": [{"name": "a", "kind": "numeric"}], "nodes": nodes_of(*children),
    }  # fmt: skip
    with pytest.raises(ModelFileError, match=r"tree|children|nodes\["):
        from_json(doc)


def test_the_old_file_stays_when_writing_fails(tmp_path, monkeypatch):
    path = tmp_path / "model.json"
    tree, _ = random_tree(1)
    write(ModelFile(tree=tree, name="old"), path)

    def full_disk(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        write(ModelFile(tree=tree, name="new"), path)
    assert read_model(path).name == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["model.json"]


def test_model_that_violates_its_schema_is_not_written(tmp_path):
    tree, _ = random_tree(1)
    with pytest.raises(ModelFileError):
        write(ModelFile(tree=tree, target=3), tmp_path / "model.json")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="JSON"):
        write(ModelFile(tree=tree, metrics={"a": math.nan}), tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []


def test_the_documented_example_is_a_valid_model():
    tree = read_model(ROOT / "docs" / "example-model.json").tree
    kinds = {v.split.kind for v in tree.branches}
    assert kinds == {"threshold", "interval", "subset", "linear"}
    for v in tree.branches:
        pair = zip(tree.nodes[v.left].counts, tree.nodes[v.right].counts, strict=True)
        assert tuple(a + b for a, b in pair) == v.counts


def test_every_property_of_the_schema_is_documented():
    text = (ROOT / "docs" / "model-file.md").read_text(encoding="utf-8")
    schema = model_file.json_schema()
    names = set(schema["properties"])
    names |= set(schema["properties"]["columns"]["items"]["properties"])
    names |= set(schema["properties"]["nodes"]["items"]["properties"])
    for split in schema["$defs"]["split"]["oneOf"]:
        names |= set(split["properties"]) | {split["properties"]["kind"]["const"]}
    assert sorted(name for name in names if f"`{name}`" not in text) == []


def test_file_of_the_first_version_reads_predicts_and_exports(tmp_path):
    numbers = [{"name": name, "kind": "numeric", "missing": "drop"} for name in ("a", "b")]
    plane = {"kind": "linear", "features": ["a", "b"], "coefficients": [-0.30000000000000004, 2.5], "threshold": 1e-08}
    old = {
        "format": "octweb-tree", "format_version": 1, "target": "y", "classes": ["no", "yes"], "columns": numbers,
        "nodes": [
            {"id": 0, "counts": [2, 2], "split": plane, "left": 1, "right": 2},
            {"id": 1, "counts": [2, 0], "class": "no"},
            {"id": 2, "counts": [0, 2], "split": {"kind": "threshold", "feature": "b", "threshold": 3.350001}, "left": 3, "right": 4},
            {"id": 3, "counts": [0, 1], "class": "yes"},
            {"id": 4, "counts": [0, 1], "class": "no"},
        ],
    }  # fmt: skip
    path = tmp_path / "old.json"
    path.write_text(json.dumps(old))
    tree = read_model(path).tree
    X = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 3.350001], [0.0, 3.3500011], [25 / 3, 1.0]])
    sums = [-0.30000000000000004 * a + 2.5 * b for a, b in X.tolist()]
    expected = [1 if s <= 1e-8 else 3 if b <= 3.350001 else 4 for s, (_, b) in zip(sums, X.tolist(), strict=True)]
    assert tree.apply(X).tolist() == expected
    text = rules_text(tree)
    assert "−0.30000000000000004 × a + 2.5 × b ≤ 0.00000001?" in text
    assert "b ≤ 3.350001?" in text
