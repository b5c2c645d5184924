"""Prune a tree by minimal cost complexity, in exact fractions.

The method is that of Breiman, Friedman, Olshen & Stone. g(v) = (R(v) - R(T_v)) / (leaves of T_v - 1) is the cost of a
leaf instead of the branch v for each leaf saved. The weakest link goes first, which changes g only above it. R is the
error rate: the weight of the misclassified rows, divided by the weight of all rows.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from trainer.dtypes import CodeArray, CountArray, FloatArray
from trainer.tree.nodes import Draft, DraftLeaf, Tree, to_draft_branch

Alpha = Fraction | float  # math.inf means never


def collapses(tree: Tree) -> list[Alpha]:
    """Return for each node the smallest alpha that turns it into a leaf.

    It is inf for a leaf, and for a branch below one that collapses first.
    """
    nodes = tree.nodes
    n = max(1, nodes[0].rows)
    error = [node.rows - node.counts[node.label] for node in nodes]
    below = error.copy()
    leaves = [1] * len(nodes)
    parent = [-1] * len(nodes)
    for node in reversed(nodes):
        if node.split is not None:
            parent[node.left] = parent[node.right] = node.id
            below[node.id] = below[node.left] + below[node.right]
            leaves[node.id] = leaves[node.left] + leaves[node.right]

    def link(v: int) -> Fraction:
        return Fraction(error[v] - below[v], n * (leaves[v] - 1))

    branches = {node.id for node in nodes if node.split is not None}
    thresholds: list[Alpha] = [math.inf] * len(nodes)
    # an entry is stale if the branch has shrunk since it was pushed
    heap = [(link(v), v, leaves[v]) for v in branches]
    heapq.heapify(heap)
    alpha = Fraction(0)
    while heap:
        g, v, size = heapq.heappop(heap)
        if v not in branches or leaves[v] != size:
            continue
        alpha = max(alpha, g)
        thresholds[v] = alpha
        _remove_branch(tree, v, branches)
        saved = size - 1
        added = error[v] - below[v]
        below[v] = error[v]
        leaves[v] = 1
        u = parent[v]
        while u >= 0:
            below[u] += added
            leaves[u] -= saved
            heapq.heappush(heap, (link(u), u, leaves[u]))
            u = parent[u]
    return thresholds


def _remove_branch(tree: Tree, v: int, branches: set[int]) -> None:
    """Remove v and all branches below it from `branches`, those that can still be collapsed."""
    stack = [v]
    while stack:
        u = stack.pop()
        if u in branches:
            branches.remove(u)
            stack += (tree.nodes[u].left, tree.nodes[u].right)


def alphas(thresholds: Sequence[Alpha]) -> tuple[Fraction, ...]:
    """Return the alphas at which the tree changes, ascending from 0."""
    return tuple(sorted({Fraction(0), *(a for a in thresholds if isinstance(a, Fraction))}))


def prune(tree: Tree, alpha: Fraction) -> Draft:
    """Return the smallest tree that minimises error rate + alpha x leaves, as a draft with the impurities of its splits."""
    thresholds = collapses(tree)
    drafts: dict[int, Draft] = {}
    for v in reversed(tree.nodes):
        if v.split is None or thresholds[v.id] <= alpha:
            drafts[v.id] = DraftLeaf(label=v.label)
        else:
            drafts[v.id] = replace(to_draft_branch(v), left=drafts[v.left], right=drafts[v.right])
    return drafts[0]


def alphas_between(ends: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Return a value of alpha inside each interval of ascending `ends`, their geometric mean, and the last end itself."""
    return (*(Fraction((float(a) * float(b)) ** 0.5) for a, b in pairwise(ends)), ends[-1])


def pruned_errors(tree: Tree, X: FloatArray, y: CodeArray, w: CountArray, grid: Sequence[Fraction]) -> CountArray:
    """Return the weight of the misclassified rows after pruning with each alpha of an ascending `grid`, int64
    (len(grid),).

    The rows X (n, columns), y (n,), w (n,) are routed once. A node is a leaf from the alpha at which it
    collapses to the one at which an ancestor does.
    """
    thresholds = collapses(tree)
    classes = len(tree.nodes[0].counts)
    flat = tree.apply(X).astype(np.int64) * classes + y
    counts = np.bincount(flat, weights=w, minlength=len(tree.nodes) * classes).astype(np.int64)
    counts = counts.reshape(len(tree.nodes), classes)
    change = np.zeros(len(grid) + 1, np.int64)
    for v in reversed(tree.nodes):
        if v.split is not None:
            counts[v.id] = counts[v.left] + counts[v.right]
    ends: list[Alpha] = [math.inf] * len(tree.nodes)  # for each node, the alpha from which on an ancestor is a leaf
    for v in tree.nodes:
        first: Alpha = Fraction(0) if v.split is None else thresholds[v.id]
        if first < ends[v.id]:
            missed = int(counts[v.id].sum() - counts[v.id, v.label])
            change[0 if v.split is None else bisect_left(grid, first)] += missed
            change[bisect_left(grid, ends[v.id])] -= missed
        if v.split is not None:
            ends[v.left] = ends[v.right] = min(thresholds[v.id], ends[v.id])
    return np.cumsum(change[:-1])
