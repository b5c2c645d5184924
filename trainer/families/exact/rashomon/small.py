"""Compute the row weights in the leaves of small subtrees, all at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trainer.families.exact.kernels import count as kc
from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.rashomon.count import CountedTrees, Counter


@dataclass(frozen=True)
class Sums:
    """Weights by kind of all rows, of rows with yes to a split, and to two splits: int64 (K,), (K, m) and (K, m, m), f < g.

    `active`, bool (m + 1,): whether the split at a position separates the counted rows; False at position m.
    """

    totals: np.ndarray
    ones: np.ndarray
    pairs: np.ndarray
    active: np.ndarray

    def leaves(self, f: np.ndarray, s: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Return weights in the leaves no and yes of split g below child s of split f, int64 (K, parts, 2)."""
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
    """The subtrees for both children of each split of a subproblem, one per array position.

    f, s, g: positions of the split, its child, and the split below (m: a leaf). `names`: the splits by position.
    `labels` (parts, 2):
    predictions of the leaves no and yes. `errors`: their errors together.
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
        """Whether a subtree is a single leaf, bool (parts,)."""
        return self.g == len(self.names)

    def by_question(self, values: np.ndarray) -> Iterator[tuple[int, kc.Shares, kc.Shares]]:
        """Yield each split with the least and largest values of its subtrees by key, for the children no and yes."""
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
                kc.Shares(
                    keys[positions].copy(), lo[positions].reshape(-1, 1).copy(), hi[positions].reshape(-1, 1).copy()
                )
                for positions in sides
            )
            yield int(self.names[position]), no, yes


def sums_of(counter: Counter, node: dp_node.NodeView, places: np.ndarray, active: np.ndarray) -> Sums:
    """Return the weights by class of a node; `places`: positions of the active splits in the node."""
    P = counter.pairs(node).astype(np.int64)
    places = np.minimum(places, max(0, len(node.features) - 1))
    ones = node.ones.astype(np.int64)[:, places]
    return Sums(node.totals.astype(np.int64), ones, P[:, places][:, :, places], active)


def parts_of(counter: Counter, entry: CountedTrees, rows: np.ndarray) -> SideTrees | None:
    """Return the subtrees of an entry of height at most two, with predictions and errors of their leaves; None if there are none."""
    if not entry.height:
        return None
    kinds = counter.kinds_node(rows)
    space = counter.space
    options = kc.options_depth2(
        kinds, counter.pairs(kinds), entry.height, space.min_leaf, counter.keys.layout, entry.budget
    )
    if not len(options):
        return None
    node = counter.node(rows)
    m = len(kinds.features)
    f = options[:, 0]
    s = options[:, 1]
    g = options[:, 2]
    weights = sums_of(counter, node, np.arange(m), np.arange(m + 1) < m).leaves(f, s, g)
    wrong = weights.sum(axis=0) - weights.max(axis=0)
    errors = np.where(g == m, wrong[:, 0], wrong.sum(axis=1))
    return SideTrees(f, s, g, options[:, 3], kinds.features, weights.argmax(axis=0), errors)
