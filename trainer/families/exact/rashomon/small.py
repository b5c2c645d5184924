"""The parts of trees of height two at most, all at once: which rows each of their leaves holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trainer.families.exact.kernels import count as kc
from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.rashomon.count import CountedTrees, Counter


@dataclass(frozen=True)
class Sums:
    """Weights by kind of everything, of what answers yes to a question, and to two: int64 (K,), (K, m) and (K, m, m), f < g.

    `active`, bool (m + 1,): whether the question at a position separates what is counted here; none at position m.
    """

    totals: np.ndarray
    ones: np.ndarray
    pairs: np.ndarray
    active: np.ndarray

    def leaves(self, f: np.ndarray, s: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Weights in the leaves below side s of question f that answer no and yes to g, int64 (K, parts, 2)."""
        if not len(self.active) - 1:
            return np.repeat(self.totals[:, None, None], len(f), axis=1).repeat(2, axis=2)
        inner = np.minimum(g, len(self.active) - 2)
        outside = self.active[f]
        inside = self.active[g]
        side = np.where(
            outside, np.where(s, self.ones[:, f], self.totals[:, None] - self.ones[:, f]), self.totals[:, None]
        )
        both = self.pairs[:, np.minimum(f, inner), np.maximum(f, inner)]
        one = np.where(outside, np.where(s, both, self.ones[:, inner] - both), self.ones[:, inner])
        one = np.where(inside, one, side)
        return np.stack((np.where(inside, side - one, side), one), axis=2)


@dataclass(frozen=True)
class SideTrees:
    """What may hang at both sides of each question of a subproblem: positions of the question, its side, the question below (m:
    a leaf), and the key; `names` are the questions. `labels` (parts, 2): the answers of the leaves for no and yes, `errors` their sum.
    """

    f: np.ndarray
    s: np.ndarray
    g: np.ndarray
    keys: np.ndarray
    names: np.ndarray
    labels: np.ndarray
    errors: np.ndarray

    @property
    def leaf(self) -> np.ndarray:
        """Whether a part is a single leaf."""
        return self.g == len(self.names)

    def by_question(self, values: np.ndarray) -> Iterator[tuple[int, kc.Shares, kc.Shares]]:
        """(question, no, yes): with the keys of each side the least and the largest of the values of its parts."""
        order = np.lexsort((self.keys, self.s, self.f))
        f = self.f[order]
        s = self.s[order]
        keys = self.keys[order]
        values = values[order]
        new = np.ones(len(f), bool)
        new[1:] = (f[1:] != f[:-1]) | (s[1:] != s[:-1]) | (keys[1:] != keys[:-1])
        starts = np.flatnonzero(new)
        lo = np.minimum.reduceat(values, starts)
        hi = np.maximum.reduceat(values, starts)
        f = f[starts]
        s = s[starts]
        keys = keys[starts]
        for position in np.unique(f).tolist():
            sides = [np.flatnonzero((f == position) & (s == side)) for side in (0, 1)]
            no, yes = (
                kc.Shares(keys[own].copy(), lo[own].reshape(-1, 1).copy(), hi[own].reshape(-1, 1).copy())
                for own in sides
            )
            yield int(self.names[position]), no, yes


def sums_of(counter: Counter, node: dp_node.NodeView, places: np.ndarray, active: np.ndarray) -> Sums:
    """The weights by class at a node; `places`: where the questions are among those of the node, for active ones."""
    P = counter.pairs(node).astype(np.int64)
    places = np.minimum(places, max(0, len(node.features) - 1))
    ones = node.ones.astype(np.int64)[:, places]
    return Sums(node.totals.astype(np.int64), ones, P[:, places][:, :, places], active)


def parts_of(counter: Counter, entry: CountedTrees, rows: np.ndarray) -> SideTrees | None:
    """The parts of the trees of an entry of height two at most, with the answers and errors of their leaves; None if there are none."""
    if not entry.height:
        return None
    kinds = counter.detailed(rows)
    space = counter.space
    found = kc.options_depth2(
        kinds, counter.pairs(kinds), entry.height, space.min_leaf, counter.keys.layout, entry.budget
    )
    if not len(found):
        return None
    node = counter.node(rows)
    m = len(kinds.features)
    f = found[:, 0]
    s = found[:, 1]
    g = found[:, 2]
    held = sums_of(counter, node, np.arange(m), np.arange(m + 1) < m).leaves(f, s, g)
    wrong = held.sum(axis=0) - held.max(axis=0)
    errors = np.where(g == m, wrong[:, 0], wrong.sum(axis=1))
    return SideTrees(f, s, g, found[:, 3], kinds.features, held.argmax(axis=0), errors)
