"""Depth-two trees on both sides of a split, from the parent's counts, equal counts of each side's rows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.exact.sides_cases import node_of
from trainer.families.exact.kernels.child_counts import count_child, split_node
from trainer.families.exact.kernels.count import KeyLayout
from trainer.families.exact.kernels.count_node import count_rows
from trainer.families.exact.kernels.depth2_signed import class_differences
from trainer.families.exact.kernels.equal_rows import group_rows, members_by_answer
from trainer.families.exact.kernels.node import split_rows
from trainer.kernels.members import members


def layout_of(rng, questions, *, unit, leaf):
    """Return a layout of keys that contain the leaves and the errors of each class. Some questions are marked."""
    low = (1 << 50) - 1
    return KeyLayout(
        unit=unit, leaf=leaf, ends=np.array([1, 2]), row_keys=np.array([[0, 1 << 30], [1 << 10, 0]]), barred=np.zeros((2, 2), np.uint8),
        leaf_key=1, low=low, bits=(rng.random(questions) < 0.3).astype(np.int64) << 50, idle=True,
    )  # fmt: skip


def sorted_trees(found):
    """Return keys, costs and counts in one order."""
    order = np.lexsort((found[0], found[1]))
    return [part[order].tolist() for part in found]


def least_of(g, rows, features, layout):
    """Return the least cost of a tree of depth two, computed from the rows by NumPy. 32 bits are exact here."""
    bits = ((g.rows[rows][:, features >> 6] >> (features & 63).astype(np.uint64)) & np.uint64(1)).astype(np.float32)
    weights = np.stack([g.weights[rows] * (g.classes[rows] == k) for k in (0, 1)]).astype(np.float32)
    both = np.stack([(bits.T * w) @ bits for w in weights])  # axes: class, first feature, second feature
    of_side = []
    for totals, yes in ((weights @ bits, both), (weights @ (1 - bits), (weights @ bits)[:, None, :] - both)):
        leaf = totals.min(0) * layout.unit + layout.leaf
        split = (yes.min(0) + (totals[:, :, None] - yes).min(0)) * layout.unit + 2 * layout.leaf
        of_side.append(np.minimum(leaf, split.min(1)))
    return int(min(weights.sum(1).min() * layout.unit + layout.leaf, sum(of_side).min()))


@pytest.mark.slow
@seeds(60)
def test_child_counts_equal_counts_of_their_rows(seed):
    rng = np.random.default_rng(seed)
    questions = [9, 9, 40, 150][seed % 4]
    g, some, node, P = node_of(seed, rows=[90, 700, 3000][seed % 3], questions=questions)
    layout = layout_of(rng, questions, unit=3, leaf=int(rng.integers(1, 40)))
    allowed = np.ones(questions, np.uint8)
    differ = class_differences(node, P, 1)
    counted = 0
    for p in rng.permutation(len(node.features))[:6].tolist():
        zero, one, split = split_node(node, P, differ, p)
        for half, rows in zip((zero, one), split_rows(g.rows, some, np.int64(node.features[p])), strict=True):
            least = least_of(g, rows, node.features, layout)
            for more in (-1, int(rng.integers(0, 60))):
                own = count_child(half, split, layout, least + more)
                there = count_rows((g.data, rows, node_mask(node, allowed), 1, False), 2, layout, least + more)
                assert sorted_trees(own) == sorted_trees(there)
                assert (own[2].sum() > 0) == (more >= 0)
                counted += int(own[2].sum())
    assert counted


def node_mask(node, allowed):
    """Return 1 for the questions that the node keeps."""
    mask = np.zeros_like(allowed)
    mask[node.features] = 1
    return mask


@seeds(20)
def test_equal_rows_are_found_whatever_their_order(seed):
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 3, (int(rng.integers(1, 400)), int(rng.integers(1, 4)))).astype(np.uint64)
    first, group = group_rows(words, False)
    assert (words == words[first[group]]).all()
    assert len(first) == len(np.unique(words, axis=0))
    assert (np.diff(first) > 0).all()
    assert (first == [np.flatnonzero(group == k)[0] for k in range(len(first))]).all()


def test_a_zero_with_a_sign_is_a_zero_among_numbers_only():
    numbers = np.array([[0.0, 1.0], [-0.0, 1.0], [np.nan, 1.0], [np.nan, 1.0], [-1.0, 1.0]])
    assert group_rows(numbers.view(np.uint64), True)[1].tolist() == [0, 0, 1, 1, 2]
    assert group_rows(numbers.view(np.uint64), False)[1].tolist() == [0, 1, 2, 2, 3]


def test_the_rows_of_each_answer_have_the_names_of_their_sets():
    g, _, _, _ = node_of(3, rows=300, questions=70)
    questions = np.array([0, 5, 69], np.int32)
    names = members_by_answer(g.rows, questions)
    every = np.arange(len(g.rows), dtype=np.int32)
    for q, question in enumerate(questions.tolist()):
        for answer, rows in enumerate(split_rows(g.rows, every, question)):
            assert names[q, answer].tolist() == members(rows, len(g.rows)).tolist()
