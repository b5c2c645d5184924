"""Convert problems to scaled points, and hyperplane trees to drafts and back."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from trainer.data.encoding import Encoding
from trainer.data.problem import Problem
from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.errors import DataError, SolverError
from trainer.families.oblique.instance import BRANCH, LEAF, ObliqueInstance, ObliqueTree
from trainer.table import EmptySide
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf
from trainer.tree.numbers import middle
from trainer.tree.splits import Linear, Split, goes_left, linear
from trainer.tree.splits.base import EMPTY


@dataclass(frozen=True, kw_only=True, eq=False)
class Units:
    """Scaling of features: feature = (value - low) / span; `rows` (P,) is a row of each point.

    `charged`: coefficients have a price, so a split must have as many coefficients as its plane.
    """

    encoding: Encoding
    matrix: FloatArray
    low: FloatArray
    span: FloatArray
    rows: CountArray
    charged: bool = False

    def plane(self, a: FloatArray) -> Linear:
        """Return the plane with normal `a` in the columns' units, with threshold 0."""
        support = np.flatnonzero(a)
        terms = [self.encoding.features[h].term for h in support]
        fills = self.encoding.fills(support.tolist())
        return Linear(
            features=tuple(column for column, _ in terms),
            coefficients=tuple(float(a[h] / self.span[h]) for h in support),
            threshold=0.0,
            levels=tuple(level for _, level in terms),
            fills=fills,
            missing=EmptySide.FILL if fills else EmptySide.REFUSE,
        )

    def split(self, a: FloatArray, points: CountArray, left: BoolArray) -> tuple[Split, bool] | None:
        """Return the split that sends exactly `left` of `points` left, and whether its sides are exchanged.

        Returns None if rounding makes that impossible.
        """
        with np.errstate(over="ignore"):
            plane = self.plane(a)
        finite = all(map(math.isfinite, plane.coefficients))  # coefficients overflow if the range of a column is tiny
        if not plane.terms or not finite or left.all() or not left.any():
            return None
        matrix = self.matrix[self.rows[points]]
        score = plane.sums(matrix)
        low = float(score[left].max())
        high = float(score[~left].min())
        if not low < high:
            return None
        plain = replace(plane, threshold=middle(low, high))
        schema = self.encoding.schema
        split, exchanged = linear(
            plain.features, plain.coefficients, plain.threshold, plain.levels, schema=schema, fills=plain.fills
        )
        cheaper = self.charged and len(plain.terms) > 1 and split.cut is not None
        if not cheaper and np.array_equal(goes_left(split, matrix) != exchanged, left):
            return split, exchanged
        return (plain, False) if np.array_equal(goes_left(plain, matrix), left) else None


USUAL_QUARTILE_RANGES = 4.0  # a column has outliers if its range exceeds this many interquartile ranges
MAX_ROBUST_RANGE = 1000.0  # limit on a range in robust units, since it determines the big-M constants


def robust_spans(X: FloatArray, width: FloatArray) -> FloatArray:
    """Return the unit of each column, float64 (p,): its range, or less if it has outliers.

    Quartiles are those of the distinct values, so that they differ, and repeated rows and weights change nothing.
    """
    span = width.copy()
    low = X.min(axis=0)
    high = X.max(axis=0)
    # columns with two values, such as indicators, keep their range as the unit
    for j in np.flatnonzero(((low < X) & (high > X)).any(axis=0)).tolist():
        values = np.unique(X[:, j])
        first = np.quantile(values, 0.25, method="lower")
        third = np.quantile(values, 0.75, method="higher")
        with np.errstate(over="ignore"):
            span[j] = max(min(width[j], USUAL_QUARTILE_RANGES * (third - first)), width[j] / MAX_ROBUST_RANGE)
    return span


def distinct_rows(X: FloatArray) -> tuple[FloatArray, CountArray, CountArray]:
    """Return the distinct rows of X (n, p) in ascending order, their first positions, and the index of each row, int64 (n,).

    Equals `np.unique(X, axis=0)`, which is much slower for thousands of columns.
    """
    order = np.lexsort(X.T[::-1]) if X.shape[1] else np.arange(len(X))
    ordered = X[order]
    new = np.r_[True, (ordered[1:] != ordered[:-1]).any(axis=1)]
    member = np.empty(len(X), np.int64)
    member[order] = np.cumsum(new) - 1
    return ordered[new], order[new].astype(np.int64), member


def make_instance(
    problem: Problem, depth: int, *, complete: bool = False, robust: bool = False
) -> tuple[ObliqueInstance, Units]:
    """Make the instance of distinct points, with empty cells filled and columns scaled to [0, 1].

    With `robust`, outliers are scaled beyond 1. Only classes that occur are included.
    """
    encoding = problem.filled
    X = encoding.matrix(problem.table)
    distinct, first, group = distinct_rows(X)
    # row copies leave out rows whose predictions all cost the same, but the range of a column covers all rows
    all_rows = distinct if problem.source is None else encoding.matrix(problem.source.table)
    low, high = (all_rows.min(axis=0), all_rows.max(axis=0)) if X.shape[1] else (np.zeros(0), np.zeros(0))
    with np.errstate(over="ignore"):
        width = high - low
    if not np.isfinite(width).all():
        name = problem.table.names[encoding.features[int(np.argmin(np.isfinite(width)))].column]
        raise DataError(f"The values of '{name}' are too far apart for a floating-point number. Scale the column.")
    span = np.where(high > low, robust_spans(all_rows, width) if robust else width, 1.0)
    classes, y = np.unique(problem.y, return_inverse=True)
    counts = np.zeros((len(distinct), len(classes)), np.int64)
    np.add.at(counts, (group, y), problem.row_weights)
    instance = ObliqueInstance(
        Z=np.ascontiguousarray((distinct - low) / span),
        counts=counts,
        classes=classes.astype(np.int32),
        group=group,
        depth=depth,
        kappa=problem.kappa,
        charge=problem.coefficient_penalty * problem.n,
        complete=complete,
    )
    units = Units(encoding=encoding, matrix=problem.matrix, low=low, span=span, rows=first, charged=instance.charge > 0)
    return instance, units


def plane_tree(draft: Draft, instance: ObliqueInstance, units: Units) -> ObliqueTree:
    """Convert a draft to a tree of planes, truncated at the instance's depth. Raises SolverError for splits without a plane."""
    tree = instance.empty()
    index = {feature.term: h for h, feature in enumerate(units.encoding.features)}

    def visit(part: Draft, v: int, points: CountArray) -> None:
        tree.kind[v] = LEAF
        sums = instance.counts[points].sum(axis=0)
        tree.label[v] = int(sums.argmax()) if sums.any() else tree.label[v >> 1]
        if isinstance(part, DraftLeaf) or 2 * v + 1 >= instance.size:
            return
        left = goes_left(part.split, units.matrix[units.rows[points]])
        if left.all() or not left.any():
            visit(part.left if left.all() else part.right, v, points)
            return
        a = _normal(part.split, index, units)
        if not _separates(instance.Z[points] @ a, left):
            a = _with_empty(part.split, a, index, instance.Z)
        scores = instance.Z[points] @ a
        sides = [(a, part.left, part.right, left), (-a, part.right, part.left, ~left)]
        a, one, two, low = sides[0] if scores[left].max() < scores[~left].min() else sides[1]
        scores = instance.Z[points] @ a
        if not scores[low].max() < scores[~low].min():
            return
        tree.kind[v] = BRANCH
        tree.a[v] = a
        tree.c[v] = middle(float(scores[low].max()), float(scores[~low].min()))
        visit(one, 2 * v, points[low])
        visit(two, 2 * v + 1, points[~low])

    visit(draft, 1, np.arange(len(instance.Z)))
    return instance.complete_to_depth(tree) if instance.complete else tree


def _normal(split: Split, index: dict[tuple[int, int], int], units: Units) -> FloatArray:
    """Return the coefficients of a split on scaled features, up to sign and without empty cells that it does not fill."""
    a = np.zeros(len(index))
    plane = split.plane()
    if plane is None:
        raise SolverError("A bucket of a column is not a hyperplane.")
    for column, level, value in plane[0]:
        if (column, level) in index:
            h = index[(column, level)]
            a[h] += value * units.span[h]
            continue
        # the first of two categories has no feature; its indicator is 1 minus that of the second
        for (other, code), h in index.items():
            if other == column and code >= 0:
                a[h] -= value
    size = float(np.abs(a).max(initial=0.0))
    return a / size if size > 0 and math.isfinite(size) else a


def _separates(scores: FloatArray, left: BoolArray) -> bool:
    """Return whether all scores of one side are below those of the other."""
    low = float(scores[left].max()) < float(scores[~left].min())
    return low or float(scores[~left].max()) < float(scores[left].min())


def _with_empty(split: Split, a: FloatArray, index: dict[tuple[int, int], int], Z: FloatArray) -> FloatArray:
    """Add coefficients of the indicators of empty cells to `a`, so that rows with empty cells go to their side."""
    exchanged = bool(plane[2]) if (plane := split.plane()) else False
    scores = Z @ a
    beyond = 1.0 + 2.0 * float(scores.max() - scores.min())
    low = (split.missing is EmptySide.LEFT) != exchanged
    coefficients = a.copy()
    for column in split.used:
        if (column, EMPTY) in index:
            coefficients[index[column, EMPTY]] = -beyond if low else beyond
    return coefficients


def make_draft(tree: ObliqueTree, instance: ObliqueInstance, units: Units) -> Draft | None:
    """Convert a tree to a draft in the columns' units that routes all training rows equally; None if rounding prevents it."""

    def visit(v: int, points: CountArray) -> Draft | None:
        if tree.kind[v] != BRANCH:
            return DraftLeaf(label=int(instance.classes[tree.label[v]]))
        left = instance.Z[points] @ tree.a[v] <= tree.c[v]
        if left.all() or not left.any():
            return visit(2 * v if left.all() else 2 * v + 1, points)
        split_result = units.split(tree.a[v], points, left)
        one = visit(2 * v, points[left])
        two = visit(2 * v + 1, points[~left])
        if split_result is None or one is None or two is None:
            return None
        split, exchanged = split_result
        return DraftBranch(split=split, left=two if exchanged else one, right=one if exchanged else two)

    return visit(1, np.arange(len(instance.Z)))


def lattice_value(instance: ObliqueInstance, value: Fraction) -> float:
    """Convert a value in rows to the objective."""
    return float(value / instance.total)
