"""Depth-two optima of both sides of a split equal plain counts, for two and for more classes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.exact.sides_cases import node_of
from trainer.families.exact.kernels.bounds import apply_similarity
from trainer.families.exact.kernels.child_bounds import solve_children
from trainer.families.exact.kernels.depth2_signed import class_differences
from trainer.families.exact.kernels.packed_bits import pack_child
from trainer.kernels.bits import drawn_together, moves_of


@seeds(60)
def test_differences_give_what_counts_of_each_class_give(seed):
    _, _, node, P = node_of(seed, rows=[90, 700, 5000][seed % 3])
    D = class_differences(node, P, 1)
    none = class_differences(node, P, 2)
    assert len(D.pairs)
    assert not len(none.pairs)
    for p in range(len(node.features)):
        found = np.empty((2, 4), np.int64)
        counted = np.empty((2, 4), np.int64)
        solve_children(node, P, D, p, 1, found[0], found[1])
        solve_children(node, P, none, p, 1, counted[0], counted[1])
        assert (found == np.minimum.accumulate(counted, axis=1)).all()


@pytest.mark.parametrize("seed", [2, 4])
@pytest.mark.parametrize("questions", [40, 300])
def test_many_questions_are_the_same_problem(questions, seed):
    """Above 256 questions only half of the pair counts are stored.

    The bounds of similar sides and the optima still read them.
    """
    g, some, node, P = node_of(seed, rows=200, questions=questions)
    assert g.weighted == (seed == 4)
    m = len(node.features)
    bits = (g.rows[some][:, node.features >> 6] >> (node.features & 63).astype(np.uint64)) & np.uint64(1)
    weights = g.weights[some]
    signs = np.where(g.classes[some] == 0, weights, -weights)
    D = class_differences(node, P, 1).pairs
    assert ((bits.T.astype(np.int64) * signs) @ bits.astype(np.int64) == D[:, :m]).all()
    assert not D[:, m:].any()
    lower = np.zeros((2, m), np.int64)
    apply_similarity(node, P, m // 2, 0, 1000, 1, lower)
    side = bits[:, m // 2] == 0
    ones = weights[side] @ bits[side].astype(np.int64)
    assert (lower == np.maximum(0, 1000 - np.array([ones, weights[side].sum() - ones]))).all()


def weight_of(words, segment, weights):
    """Return the weight of the rows of some words, which are listed or given by their segments."""
    if len(weights):
        bits = (words[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
        return int((bits.reshape(-1) * weights).sum())
    return sum(int(word).bit_count() << int(shift) for word, (_, shift) in zip(words, segment, strict=True))


@seeds(40)
@pytest.mark.parametrize("mixed", [False, True])
def test_rows_that_are_drawn_together_are_the_rows_of_the_side(seed, mixed):
    _, _, node, _ = node_of(seed, rows=[90, 700][seed % 3 == 0])
    for s in (0, 1):
        packed = pack_child(node, node.columns, 0, s, mixed)
        assert len(packed.columns) <= len(node.columns)
        masks = node.columns[:, 0] if s else node.valid & ~node.columns[:, 0]
        for f in range(len(node.features)):
            found = weight_of(packed.columns[:, f], packed.segment, abs(packed.weights))
            assert found == weight_of(node.columns[:, f] & masks, node.segment, node.weights)


@seeds(20)
def test_bits_are_drawn_together_in_their_order(seed):
    rng = np.random.default_rng(seed)
    word, mask = rng.integers(0, 1 << 63, 2, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    moves = np.empty(6, np.uint64)
    out = np.empty(1, np.uint64)
    moves_of(mask, moves)
    drawn_together(np.array([word]), mask, moves, out)
    held = [int(word) >> k & 1 for k in range(64) if int(mask) >> k & 1]
    assert int(out[0]) == sum(bit << k for k, bit in enumerate(held))
