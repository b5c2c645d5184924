"""Grow a first tree without compiled kernels, to show it while they compile.

The tree is greedy: binary splits of least Gini impurity, pruned exactly with the leaf penalty. It uses only splits that
the method may use, and it keeps the limits of the settings. If a limit is beyond this growth, there is no first tree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from trainer.certificate import Guarantee
from trainer.constraints.forbidden import forbidden_columns
from trainer.data.encoding import EncodedFeature, Encoding, Scheme, Test, encode_binary
from trainer.data.problem import Problem
from trainer.dtypes import BitArray, CountArray
from trainer.errors import TrainerError
from trainer.methods.base import AUTO, Method, Settings, Solution
from trainer.methods.monitor import Monitor
from trainer.solver_common.problem_setup import searched_settings
from trainer.table import Table
from trainer.training.supervised_thread import demands_more
from trainer.tree.nodes import Draft, DraftLeaf
from trainer.tree.numbers import middle

# restrictions that the growth keeps; `height` limits the proof of local-search, and a single category keeps any `max_card`
KEPT = frozenset({"depth", "min_leaf", "max_leaves", "forbidden", "height", "max_card"})
DEEPEST = 10  # largest depth of a first tree
QUANTILES = 33  # quantiles per numeric column, for methods that search all thresholds
MOST_CELLS = 5_000_000  # limit on rows × features, so that the growth takes about a second
LEAST_GAP = 1e-6  # distance of two values that a threshold of a hyperplane method separates, as a share of their range
BLOCK = 64  # features that are counted at once
NOTE = "The tree is the first one, grown while kernels compiled: the search was stopped before it found a better one."


class FirstTree(NamedTuple):
    """A tree, its number of leaves, and an upper bound on the objective of all trees of the method."""

    draft: Draft
    leaves: int
    bound: float


class _Part(NamedTuple):
    """A subtree, its number of leaves, and its cost: errors and the price of its leaves, in weights of rows."""

    draft: Draft
    leaves: int
    cost: Fraction


def report_first_tree(method: Method, problem: Problem, settings: Settings, monitor: Monitor) -> None:
    """Grow a first tree and report it, unless the search has reported a better one.

    Only a method that proves whole trees gets it as its incumbent. While a leaf penalty is 'auto', there is no objective
    yet, so the tree is reported without one.
    """
    has_objective = method.guarantee is Guarantee.TREE and settings.get("leaf_penalty") != AUTO
    if monitor.draft is not None and not has_objective:
        return
    try:
        first = grow_first_tree(method, problem, settings)
    except (TrainerError, MemoryError):
        return  # the search meets the same error, and reports it
    if first is None:
        return
    objective = problem.objective(problem.tree(first.draft))
    if has_objective:
        monitor.first_draft = first.draft
    monitor.report(
        incumbent=objective if has_objective else None,
        draft=first.draft,
        leaves=first.leaves,
        # only the search proves a tree, so a bound that the tree meets is left to the search
        bound=first.bound if method.guarantee is Guarantee.TREE and first.bound > objective else None,
    )
    monitor.emit()


def at_least_first_tree(problem: Problem, settings: Settings, solution: Solution, first: Draft | None) -> Solution:
    """Return the solution, with the first tree if that is better than the tree of a search that may end without a proof."""
    if first is None or (solution.finished and not float(settings.get("mip_gap") or 0)):
        return solution
    objective = problem.objective(problem.tree(first))
    if objective <= problem.objective(problem.tree(solution.draft)):
        return solution
    return replace(solution, draft=first, evidence=(), note=NOTE)


def grow_first_tree(method: Method, problem: Problem, settings: Settings) -> FirstTree | None:
    """Grow a greedy tree that the method may return, without compiled kernels.

    Returns
    -------
    FirstTree or None
        None if a limit or the goal of the settings is not known here, or if the table is too large. In a large table, the
        tree uses some of the features only.
    """
    if not _can_grow(method, problem, settings):
        return None
    searched = problem.searched
    encoding = _encoding(method, searched, settings)
    usable = [] if encoding is None else _usable(method, searched, settings, encoding)
    if not usable:
        return None
    assert encoding is not None
    step = math.ceil(len(searched.y) * len(usable) / MOST_CELLS)
    encoding = replace(encoding, features=tuple(usable[::step]))
    bits = encoding.bits(searched.table)
    inseparable = 0  # some of the features do not tell which rows all of them separate
    if step == 1:
        inseparable = _inseparable_weight(searched, np.packbits(bits, axis=1) if method.binary else searched.matrix)
    bound = Fraction(searched.n - inseparable, searched.n) - searched.leaf_penalty
    growth = _Growth(
        encoding=encoding,
        bits=bits,
        classes=np.eye(searched.n_classes)[searched.y] * searched.row_weights[:, None],
        min_leaf=max(1, int(searched_settings(problem, settings).get("min_leaf") or 1)),
        leaf_cost=searched.kappa,
    )
    most = settings.get("max_leaves")
    depth = settings.get("depth")
    part = None
    for levels in range(DEEPEST if depth is None else min(depth, DEEPEST), -1, -1):
        part = growth.grow(np.arange(len(bits)), levels)
        if most is None or part.leaves <= most:
            break
    assert part is not None  # a tree of depth 0 has one leaf
    return FirstTree(part.draft, part.leaves, float(bound))


def _can_grow(method: Method, problem: Problem, settings: Settings) -> bool:
    """Return whether trees that keep `KEPT` are trees of the method, and whether the table is small enough."""
    if method.complete or demands_more(method, settings) or np.unique(problem.y).size < 2:
        return False
    if len(problem.searched.y) * len(problem.table.columns) > MOST_CELLS:
        return False
    restrictive = (p for p in method.parameters if p.restricts is not None and p.restricts(settings))
    return all(p.name in KEPT for p in restrictive)


def _encoding(method: Method, problem: Problem, settings: Settings) -> Encoding | None:
    """Return binary features that are splits of the method."""
    if method.first_features is not None:
        return method.first_features(problem, settings)
    if method.binary:
        return problem.binary
    if problem.has_empty and "linear" in method.splits and method.guarantee is Guarantee.TREE:
        return None  # hyperplanes fill empty cells, which a threshold does not
    rows = (problem.source or problem).table
    encoding = encode_binary(rows, Scheme.QUANTILE_THRESHOLDS, QUANTILES, problem.counting_weights)
    centred = (_centred(feature, rows) for feature in encoding.features)
    return replace(encoding, features=tuple(feature for feature in centred if feature is not None))


def _centred(feature: EncodedFeature, table: Table) -> EncodedFeature | None:
    """Return a threshold feature halfway between two values; None for intervals, and for values that are too near."""
    if feature.test in (Test.LEVEL, Test.EMPTY):
        return feature
    if feature.test is not Test.ABOVE:
        return None
    values = table.columns[feature.column].values
    values = values[~np.isnan(values)]
    is_above = values > feature.low
    if is_above.all() or not is_above.any():
        return None
    below = float(values[~is_above].max())
    above = float(values[is_above].min())
    if above - below < LEAST_GAP * float(np.ptp(values)):
        return None
    return replace(feature, low=middle(below, above))


def _usable(method: Method, problem: Problem, settings: Settings, encoding: Encoding) -> list[EncodedFeature]:
    """Return the features of columns that are not forbidden."""
    if method.parameter("forbidden") is None:
        return list(encoding.features)
    banned = forbidden_columns(settings, problem.names)
    return [f for f in encoding.features if problem.table.names[f.column] not in banned]


def _inseparable_weight(problem: Problem, keys: np.ndarray) -> int:
    """Return the least weight that any tree misclassifies, since rows with equal keys have different classes."""
    contiguous = np.ascontiguousarray(keys).view(np.uint8)
    rows = contiguous.view(f"S{contiguous.shape[1]}").ravel()
    _, group = np.unique(rows, return_inverse=True)
    pairs = group * problem.n_classes + problem.y
    sizes = np.zeros(problem.n_classes * (int(group.max()) + 1), np.int64)
    np.add.at(sizes, pairs, problem.row_weights)
    return problem.n - int(sizes.reshape(-1, problem.n_classes).max(axis=1).sum())


@dataclass(frozen=True, kw_only=True, eq=False)
class _Growth:
    """Data of the growth.

    Parameters
    ----------
    bits : uint8 array of shape (n_rows, n_features)
        The features of `encoding`.
    classes : float64 array of shape (n_rows, n_classes)
        The weight of each row at its class; sums are exact, since all weights are integers below 2^53.
    """

    encoding: Encoding
    bits: BitArray
    classes: np.ndarray
    min_leaf: int
    leaf_cost: Fraction

    def grow(self, rows: CountArray, depth: int) -> _Part:
        """Return the pruned tree of these rows; among equal costs, the one with fewer leaves."""
        counts = self.classes[rows].sum(axis=0)
        leaf = _Part(DraftLeaf(), 1, Fraction(int(counts.sum() - counts.max())) + self.leaf_cost)
        feature = self._best_feature(rows, counts) if depth and np.count_nonzero(counts) > 1 else None
        if feature is None:
            return leaf
        is_one = self.bits[rows, feature] == 1
        zero = self.grow(rows[~is_one], depth - 1)
        one = self.grow(rows[is_one], depth - 1)
        if zero.cost + one.cost >= leaf.cost:
            return leaf
        draft = self.encoding.branch(feature, zero.draft, one.draft)
        return _Part(draft, zero.leaves + one.leaves, zero.cost + one.cost)

    def _best_feature(self, rows: CountArray, counts: np.ndarray) -> int | None:
        """Return the first feature of least Gini impurity with enough weight on both sides, or None."""
        weights = self.classes[rows].T
        bits = self.bits[rows]
        ones = np.hstack([weights @ bits[:, k : k + BLOCK] for k in range(0, bits.shape[1], BLOCK)])
        zeros = counts[:, None] - ones
        n_ones = ones.sum(axis=0)
        n_zeros = zeros.sum(axis=0)
        usable = np.flatnonzero(np.minimum(n_ones, n_zeros) >= self.min_leaf)
        if not len(usable):
            return None
        purity = (ones**2).sum(axis=0)[usable] / n_ones[usable] + (zeros**2).sum(axis=0)[usable] / n_zeros[usable]
        return int(usable[np.argmax(purity)])
