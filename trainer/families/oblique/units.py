"""Problems as instances of scaled points, trees of hyperplanes as drafts in the uploaded columns' own units, and back."""

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
    """How scaled features come from columns: feature = (value - low) / span; `rows` (P,) is a row of each point.

    `charged` says whether coefficients have a price, so that no split may have fewer than its plane.
    """

    encoding: Encoding
    matrix: FloatArray
    low: FloatArray
    span: FloatArray
    rows: CountArray
    charged: bool = False

    def plane(self, a: FloatArray) -> Linear:
        """The sum of the features with coefficients other than 0, in the columns' own units, at most 0."""
        used = np.flatnonzero(a)
        terms = [self.encoding.features[h].term for h in used]
        fills = self.encoding.fills(used.tolist())
        return Linear(
            features=tuple(column for column, _ in terms),
            coefficients=tuple(float(a[h] / self.span[h]) for h in used),
            threshold=0.0,
            levels=tuple(level for _, level in terms),
            fills=fills,
            missing=EmptySide.FILL if fills else EmptySide.REFUSE,
        )

    def split(self, a: FloatArray, points: CountArray, left: BoolArray) -> tuple[Split, bool] | None:
        """The split that sends exactly the `left` of `points` left, and whether its sides are exchanged; None if rounding forbids."""
        with np.errstate(over="ignore"):
            plane = self.plane(a)
        finite = all(map(math.isfinite, plane.coefficients))  # not so where a column's range is next to nothing
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
        made, exchanged = linear(
            plain.features, plain.coefficients, plain.threshold, plain.levels, schema=schema, fills=plain.fills
        )
        cheaper = self.charged and len(plain.terms) > 1 and made.cut is not None
        if not cheaper and np.array_equal(goes_left(made, matrix) != exchanged, left):
            return made, exchanged
        return (plain, False) if np.array_equal(goes_left(plain, matrix), left) else None


USUAL = 4.0  # inter-quartile ranges: a column has no far values if all are within this range
FARTHEST = 1000.0  # what a far value may be in a robust unit: rows are tied to planes with constants of this size


def robust_spans(X: FloatArray, width: FloatArray) -> FloatArray:
    """The unit of each column, float64 (p,): its range, or less if a few values lie far from all others.

    Quartiles are taken of the distinct values, so that repeated rows and weights change nothing, and never agree.
    """
    span = width.copy()
    low = X.min(axis=0)
    high = X.max(axis=0)
    # a column of two values, such as whether a row has a category, has nothing between them
    for j in np.flatnonzero(((low < X) & (high > X)).any(axis=0)).tolist():
        values = np.unique(X[:, j])
        first = np.quantile(values, 0.25, method="lower")
        third = np.quantile(values, 0.75, method="higher")
        with np.errstate(over="ignore"):
            span[j] = max(min(width[j], USUAL * (third - first)), width[j] / FARTHEST)
    return span


def distinct_rows(X: FloatArray) -> tuple[FloatArray, CountArray, CountArray]:
    """The different rows of X (n, p) in rising order, where each is first, and which one each row is, int64 (n,).

    As `np.unique(X, axis=0)` finds them, which takes many times as long where thousands of columns agree at first.
    """
    order = np.lexsort(X.T[::-1]) if X.shape[1] else np.arange(len(X))
    ordered = X[order]
    new = np.r_[True, (ordered[1:] != ordered[:-1]).any(axis=1)]
    member = np.empty(len(X), np.int64)
    member[order] = np.cumsum(new) - 1
    return ordered[new], order[new].astype(np.int64), member


def instance_of(
    problem: Problem, depth: int, *, complete: bool = False, robust: bool = False
) -> tuple[ObliqueInstance, Units]:
    """Distinct points of the columns, empty cells filled, scaled to [0, 1] (`robust`: beyond 1 if a value lies far from the others), with
    the weights of the classes that occur.
    """
    encoding = problem.filled
    X = encoding.matrix(problem.table)
    distinct, first, group = distinct_rows(X)
    # copies of rows leave rows out whose answers all cost the same; the range of a column is that of all rows
    whole = distinct if problem.source is None else encoding.matrix(problem.source.table)
    low, high = (whole.min(axis=0), whole.max(axis=0)) if X.shape[1] else (np.zeros(0), np.zeros(0))
    with np.errstate(over="ignore"):
        width = high - low
    if not np.isfinite(width).all():
        name = problem.table.names[encoding.features[int(np.argmin(np.isfinite(width)))].column]
        raise DataError(f"The values of '{name}' are too far apart for a floating-point number. Scale the column.")
    span = np.where(high > low, robust_spans(whole, width) if robust else width, 1.0)
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


def tree_of(draft: Draft, instance: ObliqueInstance, units: Units) -> ObliqueTree:
    """A draft over the columns as a tree of planes, cut off at the instance's depth; raises SolverError for other splits."""
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
    return instance.completed(tree) if instance.complete else tree


def _normal(split: Split, index: dict[tuple[int, int], int], units: Units) -> FloatArray:
    """The coefficients of a split on scaled features, up to sign; empty cells that it does not fill are left aside."""
    a = np.zeros(len(index))
    plane = split.plane()
    if plane is None:
        raise SolverError("A bucket of a column is not a hyperplane.")
    for column, level, value in plane[0]:
        if (column, level) in index:
            h = index[(column, level)]
            a[h] += value * units.span[h]
            continue
        # the first of two categories has no feature of its own: it is 1 less the second
        for (other, code), h in index.items():
            if other == column and code >= 0:
                a[h] -= value
    size = float(np.abs(a).max(initial=0.0))
    return a / size if size > 0 and math.isfinite(size) else a


def _separates(scores: FloatArray, left: BoolArray) -> bool:
    """Whether the scores of one side all lie below those of the other."""
    low = float(scores[left].max()) < float(scores[~left].min())
    return low or float(scores[~left].max()) < float(scores[left].min())


def _with_empty(split: Split, a: FloatArray, index: dict[tuple[int, int], int], Z: FloatArray) -> FloatArray:
    """The coefficients `a` of a split, with indicators of empty cells that put its rows with one beyond all others, on their side."""
    exchanged = bool(plane[2]) if (plane := split.plane()) else False
    scores = Z @ a
    beyond = 1.0 + 2.0 * float(scores.max() - scores.min())
    low = (split.missing is EmptySide.LEFT) != exchanged
    found = a.copy()
    for column in split.used:
        if (column, EMPTY) in index:
            found[index[column, EMPTY]] = -beyond if low else beyond
    return found


def draft_of(tree: ObliqueTree, instance: ObliqueInstance, units: Units) -> Draft | None:
    """The tree in the columns' own units, each split sending the same training rows the same way; None if rounding forbids."""

    def visit(v: int, points: CountArray) -> Draft | None:
        if tree.kind[v] != BRANCH:
            return DraftLeaf(label=int(instance.classes[tree.label[v]]))
        left = instance.Z[points] @ tree.a[v] <= tree.c[v]
        if left.all() or not left.any():
            return visit(2 * v if left.all() else 2 * v + 1, points)
        made = units.split(tree.a[v], points, left)
        one = visit(2 * v, points[left])
        two = visit(2 * v + 1, points[~left])
        if made is None or one is None or two is None:
            return None
        split, exchanged = made
        return DraftBranch(split=split, left=two if exchanged else one, right=one if exchanged else two)

    return visit(1, np.arange(len(instance.Z)))


def lattice_value(instance: ObliqueInstance, value: Fraction) -> float:
    """A value in rows as the objective of the contract."""
    return float(value / instance.total)
