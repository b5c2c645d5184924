"""Routing, growing and simplifying trees equal a router in plain Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.random_trees import naive_leaf, naive_left, random_draft, random_matrix, random_schema, random_tree
from trainer.table import ColumnKind, ColumnSchema, Table, numeric_table
from trainer.tree.nodes import DraftBranch, DraftLeaf, Tree, grow, simplify, to_draft, training_counts
from trainer.tree.splits import Linear, Subset, Threshold, goes_left, linear, split_from_json, split_to_json

NUMBERS = (ColumnSchema(name="a", kind=ColumnKind.NUMERIC), ColumnSchema(name="b", kind=ColumnKind.NUMERIC))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_kernel_twin_and_plain_python_agree_on_every_row(block):
    for seed in range(40 * block, 40 * (block + 1)):
        tree, matrix = random_tree(seed)
        expected = [naive_leaf(tree, row) for row in matrix]
        assert tree.apply(matrix).tolist() == expected
        for node, rows in enumerate(tree.reach(matrix)):
            if tree.nodes[node].is_leaf:
                assert [i for i, leaf in enumerate(expected) if leaf == node] == rows.tolist()
        for v in tree.branches:
            assert goes_left(v.split, matrix).tolist() == [naive_left(v.split, row) for row in matrix]


@seeds(60)
def test_leaves_do_not_depend_on_order_and_type_of_the_matrix(seed):
    tree, matrix = random_tree(seed)
    expected = [naive_leaf(tree, row) for row in matrix]
    assert tree.apply(np.asfortranarray(matrix)).tolist() == expected
    assert tree.apply(np.repeat(matrix, 2, axis=1)[:, ::2]).tolist() == expected
    small = np.nan_to_num(matrix, nan=0.0, posinf=1.0, neginf=-1.0).round() % 100
    assert tree.apply(small.astype(np.uint8)).tolist() == tree.apply(small).tolist()


@pytest.mark.parametrize("unit", [1.0, 0.5])
def test_the_matrix_of_a_table_is_no_second_copy(unit):
    rows = np.arange(12.0).reshape(4, 3) * unit
    table = numeric_table(rows)
    for part, expected in ((table, rows), (table.take(np.array([3, 1])), rows[[3, 1]])):
        assert np.array_equal(part.matrix(), expected)
        assert part.matrix().dtype == np.float64
        assert np.array_equal(part.stored_matrix(), expected)
        assert np.shares_memory(part.stored_matrix(), part.columns[0].cells)
        assert part.columns[0].cells.dtype == (np.uint8 if unit == 1.0 else np.float64)
    mixed = Table(columns=(table.columns[2], table.columns[0]))
    assert np.array_equal(mixed.matrix(), rows[:, [2, 0]])


def test_the_random_trees_have_every_kind_of_split_and_hole():
    kinds = set()
    missing = 0
    unknown = 0
    indicators = 0
    sides = Counter()
    for seed in range(400):
        tree, matrix = random_tree(seed)
        kinds |= {v.split.kind for v in tree.branches}
        indicators += sum(
            any(level >= 0 for level in v.split.levels) for v in tree.branches if v.split.kind == "linear"
        )
        missing += int(np.isnan(matrix).sum())
        for j, column in enumerate(tree.schema):
            unknown += int((matrix[:, j] >= len(column.categories)).sum()) if column.categories else 0
        sides += Counter((v.split.kind, str(v.split.missing)) for v in tree.branches)
    assert kinds == {"threshold", "interval", "subset", "linear", "missing"}
    assert min(missing, unknown, indicators) > 100
    numeric = {(kind, side) for kind in ("threshold", "interval", "linear") for side in ("left", "right", "refuse")}
    assert all(sides[pair] > 20 for pair in numeric | {("linear", "fill")})


@seeds(60)
def test_nodes_are_numbered_breadth_first_and_counts_add_up(seed):
    tree, matrix = random_tree(seed)
    children = [c for v in tree.nodes if not v.is_leaf for c in (v.left, v.right)]
    assert children == list(range(1, len(tree.nodes)))
    for v in tree.branches:
        pair = zip(tree.nodes[v.left].counts, tree.nodes[v.right].counts, strict=True)
        assert tuple(a + b for a, b in pair) == v.counts
    assert tree.nodes[0].rows == len(matrix)
    assert tree.n_leaves == len(tree.branches) + 1
    assert tree.depth == max(len(tree.path_to(leaf.id)) - 1 for leaf in tree.leaves)


@seeds(60)
def test_draft_and_json_round_trips_give_the_same_tree(seed):
    tree, matrix = random_tree(seed)
    codes = tree.predict(matrix)
    again = grow(to_draft(tree), matrix, codes, schema=tree.schema, classes=tree.classes)
    assert [(v.split, v.left, v.right) for v in again.nodes] == [(v.split, v.left, v.right) for v in tree.nodes]
    for v in tree.branches:
        assert split_from_json(split_to_json(v.split, tree.schema), tree.schema) == v.split


@seeds(100)
def test_simplify_keeps_every_prediction_and_never_adds_a_leaf(seed):
    rng = np.random.default_rng(seed)
    schema = random_schema(rng, 5)
    matrix = random_matrix(rng, schema, 25, holes=False)
    codes = rng.integers(0, 2, 25).astype(np.int32)
    tree = grow(random_draft(rng, schema, matrix, 5, 2), matrix, codes, schema=schema, classes=("a", "b"))
    simple = grow(simplify(tree), matrix, codes, schema=schema, classes=("a", "b"))
    assert simple.predict(matrix).tolist() == tree.predict(matrix).tolist()
    assert simple.n_leaves <= tree.n_leaves
    for v in simple.branches:
        left = simple.nodes[v.left]
        right = simple.nodes[v.right]
        assert left.rows > 0
        assert right.rows > 0
        assert not (left.is_leaf and right.is_leaf and left.label == right.label)


def test_empty_leaf_has_the_majority_above_with_share_one():
    draft = DraftBranch(split=Threshold(feature=0, threshold=9.0), left=DraftLeaf(), right=DraftLeaf())
    tree = grow(
        draft, np.array([[1.0, 0], [2.0, 0], [3.0, 0]]), np.array([1, 1, 0], np.int32), schema=NUMBERS, classes="ab"
    )
    assert tree.nodes[2].rows == 0
    assert tree.predict(np.array([[10.0, 0.0]])).tolist() == [1]
    assert tree.predict_proba(np.array([[10.0, 0.0]])).tolist() == [[0.0, 1.0]]


@seeds(50)
def test_a_row_of_weight_w_counts_as_w_rows(seed):
    rng = np.random.default_rng(seed)
    schema = random_schema(rng, 4)
    matrix = random_matrix(rng, schema, 20, holes=False)
    codes = rng.integers(0, 3, 20).astype(np.int32)
    weights = rng.integers(0, 5, 20)
    draft = random_draft(rng, schema, matrix, 3, 3)
    weighted = grow(draft, matrix, codes, schema=schema, classes="abc", weights=weights)
    repeated = grow(draft, np.repeat(matrix, weights, axis=0), np.repeat(codes, weights), schema=schema, classes="abc")
    assert weighted == repeated


def test_paths_lead_from_the_root_to_the_leaf_and_are_padded():
    tree, matrix = random_tree(7)
    leaves = tree.apply(matrix)
    for leaf, path in zip(leaves, tree.decision_path(matrix), strict=True):
        nodes = [v for v in path.tolist() if v >= 0]
        assert nodes == tree.path_to(int(leaf))
        assert path[len(nodes) :].tolist() == [-1] * (tree.depth + 1 - len(nodes))


def test_confusion_counts_actual_by_predicted():
    tree = Tree(
        schema=NUMBERS,
        classes=("a", "b"),
        nodes=grow(DraftLeaf(label=1), np.zeros((0, 2)), np.zeros(0, np.int32), schema=NUMBERS, classes="ab").nodes,
    )
    correct, confusion = training_counts(tree, np.zeros((3, 2)), np.array([0, 1, 1], np.int32))
    assert (correct, confusion.tolist()) == (2, [[0, 1], [0, 2]])


@seeds(200)
def test_the_simplest_linear_split_makes_the_same_test(seed):
    rng = np.random.default_rng(seed)
    schema = random_schema(rng, 3)
    matrix = random_matrix(rng, schema, 40, holes=False)
    j = int(rng.integers(3))
    size = len(schema[j].categories)
    terms = int(rng.integers(1, size + 1)) if size else 1
    levels = rng.choice(size, terms, replace=False).tolist() if size else [-1]
    coefficients = rng.choice([-2.0, -0.5, 0.25, 1.0, 4.0], terms).tolist()
    threshold = float(rng.choice([-0.375, 0.125, 0.3]))
    split, swapped = linear([j] * terms, coefficients, threshold, levels, schema=schema)
    plain = Linear(features=(j,) * terms, coefficients=tuple(coefficients), threshold=threshold, levels=tuple(levels))
    assert isinstance(split, Subset if size else Threshold)
    expected = goes_left(plain, matrix)
    assert (goes_left(split, matrix) != swapped).tolist() == expected.tolist()
