"""Build `ExactInstance`: binary rows, classes and integer weights for the kernels.

Weighted rows become one row for each bit of their weight, in segments of one class and one power of two. If that makes
too
many rows, the rows keep their weights, in one segment for each class. Equal rows may first be merged into one weighted
row.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from trainer.dtypes import CodeArray, CountArray
from trainer.errors import DataError, ParameterError
from trainer.families.exact.kernels.equal_rows import group_rows
from trainer.families.exact.kernels.node import DataRows
from trainer.kernels.bits import pack_bits
from trainer.solver_common.binary_problem import BinaryProblem

# limit on the total weight: counts must fit int32 and stay below the mark of leaves that are too small
MOST_WEIGHT = 1 << 28
MOST_COST = 1 << 61
MOST_BITS = 3  # if weights have more bits set on average, adding weights is faster than one row per bit


@dataclass(frozen=True, kw_only=True)
class ExactInstance:
    """Rows in segment order, and the integer costs `unit` of an error and `leaf` of a leaf.

    cost = unit * errors + leaf * leaves with unit = scale * Q and leaf = scale * P + 1. P/Q is the leaf penalty in rows.
    Ties are broken by fewer leaves.
    """

    rows: np.ndarray  # uint64 (n, words)
    classes: CodeArray  # shape (n,)
    weights: CountArray  # shape (n,)
    weighted: bool  # whether weights are listed by row; otherwise they are the powers of two of the segments
    segment_of: CodeArray
    segments: np.ndarray  # int32 (s, 2): class, and exponent of the weight
    equal: np.ndarray  # uint8: 1 if an equal row has a more frequent class, so that every tree misclassifies this one
    features: int
    n_classes: int
    total: int
    unit: int
    leaf: int
    scale: int
    P: int
    Q: int

    @property
    def literals(self) -> int:
        return 2 * self.features

    @property
    def data(self) -> DataRows:
        """The rows as a tuple for kernels."""
        return DataRows(self.rows, self.segment_of, self.segments, self.equal, self.listed_weights, int(self.n_classes))

    @property
    def listed_weights(self) -> np.ndarray:
        """The weights by row if `weighted`, else an empty array; int32."""
        return self.weights[: len(self.rows) if self.weighted else 0].astype(np.int32)

    def true_cost(self, cost: int) -> Fraction:
        """Return a lower bound, in rows, on errors + P/Q * leaves of trees whose integer cost is at least `cost`."""
        return Fraction(cost // self.scale, self.Q)


def build_instance(problem: BinaryProblem, *, any_depth: bool = False) -> ExactInstance:
    """Return the instance of a problem; with `any_depth` its costs do not depend on the depth limit.

    Raises DataError or ParameterError if it is too large.
    """
    return build_packed(
        pack_bits(problem.X),
        problem.y,
        features=problem.X.shape[1],
        n_classes=problem.n_classes,
        weights=problem.weights,
        leaf_cost=problem.leaf_cost,
        depth=None if any_depth else problem.depth,
    )


def build_packed(
    bits: np.ndarray,
    y: CodeArray,
    *,
    features: int,
    n_classes: int,
    weights: CountArray | None,
    leaf_cost: Fraction,
    depth: int | None,
) -> ExactInstance:
    """Return the instance of packed rows (`pack_bits`), or of any words that are equal for equal rows."""
    weights = np.ones(len(y), np.int64) if weights is None else np.asarray(weights, np.int64)
    if len(y) == 0 or int(weights.sum()) <= 0:
        raise DataError("No row has a positive weight. Give at least one row a weight above 0.")
    if weights.min() < 0:
        raise DataError(f"The weight {weights.min()} is negative. Give weights of at least 0.")
    total = int(weights.sum())
    if total > MOST_WEIGHT:
        raise DataError(
            f"The weights add up to {total:,}, but the exact search takes at most {MOST_WEIGHT:,}. Scale the weights down."
        )
    used = weights > 0
    bits = bits[used]
    y = np.asarray(y[used], np.int32)
    weights = weights[used]
    bits, y, weights, equal = _merge(bits, y, weights)
    weighted = _bit_rows(weights) > MOST_BITS * len(weights)
    if weighted:
        rows = np.arange(len(weights))
        shifts = np.zeros(len(weights), np.int64)
    else:
        rows, shifts = _by_bit(weights)
    order = _stable_order(y[rows].astype(np.int64) << 6 | shifts)
    rows = rows[order]
    shifts = shifts[order]
    classes = y[rows]
    codes, segment_of = np.unique(classes.astype(np.int64) << 6 | shifts, return_inverse=True)
    segments = np.column_stack((codes >> 6, codes & 63))
    unit, leaf, scale = _costs(leaf_cost, total, depth)
    return ExactInstance(
        rows=np.ascontiguousarray(bits[rows]),
        classes=classes,
        weights=weights[rows] if weighted else np.int64(1) << shifts.astype(np.int64),
        weighted=weighted,
        segment_of=segment_of.reshape(-1).astype(np.int32),
        segments=segments.astype(np.int32),
        equal=equal[rows],
        features=features,
        n_classes=n_classes,
        total=total,
        unit=unit,
        leaf=leaf,
        scale=scale,
        P=leaf_cost.numerator,
        Q=leaf_cost.denominator,
    )


def _costs(leaf_cost: Fraction, total: int, depth: int | None) -> tuple[int, int, int]:
    P = leaf_cost.numerator
    Q = leaf_cost.denominator
    most = total if depth is None else 1 << depth  # most leaves of a tree, since no leaf is empty
    scale = most + 1
    if scale * (Q * total + P * most) + most < MOST_COST:
        return scale * Q, scale * P + 1, scale
    if P and Q * total + P * most < MOST_COST:
        return Q, P, 1
    raise ParameterError({"leaf_penalty": "it has too many digits for exact integer costs. Round it to six digits."})


def _merge(bits: np.ndarray, y: CodeArray, weights: CountArray) -> tuple[np.ndarray, CodeArray, CountArray, np.ndarray]:
    """Merge equal rows if that saves work, and mark unavoidable errors.

    A merged row is a pair of a group of equal rows and a class, in the order of the words and of the classes.
    """
    first, group = group_rows(bits, False)
    n_classes = int(y.max()) + 1
    pairs, pair_of = np.unique(group * n_classes + y, return_inverse=True)
    merged = np.bincount(pair_of, weights).astype(np.int64)
    # the most frequent class of each group; the smaller class wins ties
    heaviest = np.maximum.reduceat(merged, np.searchsorted(pairs, np.arange(len(first)) * n_classes))
    top = np.flatnonzero(merged == heaviest[pairs // n_classes])
    top = top[np.diff(pairs[top] // n_classes, prepend=-1) > 0]
    equal = np.ones(len(pairs), np.uint8)
    equal[top] = 0
    if _effort(merged) >= 0.7 * _effort(weights):
        return bits, y, weights, equal[pair_of]
    order = np.lexsort(bits[first].T)
    place = np.empty(len(first), np.int64)
    place[order] = np.arange(len(first))
    # pairs ascend by class within a group
    sorted_pairs = np.argsort(place[pairs // n_classes], kind="stable")
    pairs = pairs[sorted_pairs]
    return (
        bits[first[pairs // n_classes]],
        (pairs % n_classes).astype(np.int32),
        merged[sorted_pairs],
        equal[sorted_pairs],
    )


def _stable_order(keys: np.ndarray) -> np.ndarray:
    """Return the stable ascending order of keys from 0; a radix sort if they have 16 bits."""
    return np.argsort(keys.astype(np.uint16) if keys.max() < 1 << 16 else keys, kind="stable")


def _effort(weights: CountArray) -> int:
    """Return the smaller effort of both representations, in rows."""
    return min(_bit_rows(weights), MOST_BITS * len(weights))


def _bit_rows(weights: CountArray) -> int:
    return sum(int(((weights >> s) & 1).sum()) for s in range(int(weights.max()).bit_length()))


def _by_bit(weights: CountArray) -> tuple[np.ndarray, np.ndarray]:
    """Return row and exponent of each bit of each weight."""
    rows = []
    shifts = []
    for s in range(int(weights.max()).bit_length()):
        with_bit = np.flatnonzero((weights >> s) & 1)
        rows.append(with_bit)
        shifts.append(np.full(len(with_bit), s))
    return np.concatenate(rows), np.concatenate(shifts)
