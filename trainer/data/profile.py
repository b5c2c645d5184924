"""What a table looks like: columns, their distributions by class, the best single cuts, and the error no tree can avoid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trainer.data.build import duplicate_columns
from trainer.dtypes import BoolArray, FloatArray
from trainer.table import Column, ColumnKind, Labels, Table
from trainer.tree.numbers import shortest_between

BINS = 20
TOP_CATEGORIES = 12
OTHER = "(other)"


@dataclass(frozen=True, kw_only=True)
class ColumnProfile:
    """One column: counts, range (categorical: None), its histogram, and the best tree with one split on it alone.

    `edges` are the ends of the bins (one more than bins; binary and categorical columns have `bars`, a name a bin, instead);
    `histogram`, int64 of shape (bins, classes), counts the rows. `cut_accuracy` is the share of all rows that one cut at
    `cut` (x ≤ cut goes left) classifies correctly; for categorical columns one category (`cut_category`) is set against the others.
    `cut_empty` is the side of rows without a value, "left" or "right", or "only" where the best question is whether the cell is empty.
    """

    name: str
    kind: ColumnKind
    missing: int
    distinct: int
    zeros: int
    minimum: float | None
    median: float | None
    maximum: float | None
    edges: tuple[float, ...]
    bars: tuple[str, ...]
    histogram: np.ndarray
    cut_accuracy: float
    cut: float | None
    cut_category: str | None
    cut_empty: str
    constant: bool


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A table: its columns, class counts, and what can and cannot be gained.

    `duplicate_rows` are those that equal an earlier row in every column and in class. `baseline` is the accuracy of always saying the largest class. `error_floor` is the share of rows that any tree gets
    wrong, since rows equal in every column differ in class; `conflicting_rows` are the rows in such groups.
    """

    rows: int
    columns: tuple[ColumnProfile, ...]
    class_counts: Mapping[str, int]
    baseline: float
    duplicate_rows: int
    conflicting_rows: int
    error_floor: float
    constant_columns: tuple[str, ...]
    duplicate_columns: tuple[tuple[str, str], ...]

    @property
    def floor_sentence(self) -> str:
        """The error floor in words."""
        if not self.conflicting_rows:
            return "No two identical rows have different outcomes, so nothing in the data rules out a perfect tree."
        return (
            f"{self.conflicting_rows} rows have an identical row with a different outcome: "
            f"no tree on these columns can beat {100 * (1 - self.error_floor):.4g} %."
        )


def profile(table: Table, labels: Labels) -> Profile:
    """The profile of `table` (missing cells allowed) with classes `labels`; at least one row."""
    n = len(table)
    k = len(labels.classes)
    counts = labels.counts()
    columns = tuple(_column(column, labels.codes, k) for column in table.columns)
    group = row_groups(table)
    # rows of every distinct row and class
    joint = np.bincount(group * k + labels.codes, minlength=(int(group.max()) + 1) * k).reshape(-1, k)
    sizes = joint.sum(1)
    best = joint.max(1)
    return Profile(
        rows=n,
        columns=columns,
        class_counts={name: int(c) for name, c in zip(labels.classes, counts, strict=True)},
        baseline=float(counts.max() / n),
        duplicate_rows=n - int((joint > 0).sum()),
        conflicting_rows=int(sizes[best < sizes].sum()),
        error_floor=float((sizes - best).sum() / n),
        constant_columns=tuple(c.name for c in columns if c.constant),
        duplicate_columns=duplicate_columns(table.columns),
    )


def row_groups(table: Table) -> np.ndarray:
    """A number for each row, int64 (n,), equal exactly for rows that are equal in all columns (missing equals missing)."""
    group = np.zeros(len(table), np.int64)
    for column in table.columns:
        values = np.where(column.missing, np.inf, column.values + 0.0)
        codes = np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)
        # both factors are at most n, so that the product fits
        group = np.unique(group * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1].reshape(-1)
    return group.astype(np.int64)


def _column(column: Column, y: np.ndarray, k: int) -> ColumnProfile:
    present = ~column.missing
    values = column.values[present]
    classes = y[present]
    gone = np.bincount(y[~present], minlength=k)
    levels, codes = np.unique(values, return_inverse=True)
    joint = np.bincount(codes.reshape(-1) * k + classes, minlength=len(levels) * k).reshape(-1, k)
    categorical = column.kind is ColumnKind.CATEGORICAL
    cut_level, correct, side = (*_best_category(joint, gone), "") if categorical else _best_cut(joint, gone)
    numeric = len(values) > 0 and not categorical
    cut = category = None
    if cut_level is not None and categorical:
        category = column.schema.categories[int(levels[cut_level])]
    elif cut_level is not None:
        cut = _shortest_cut(float(levels[cut_level]), float(levels[cut_level + 1]))
    edges, bars, histogram = _histogram(column, values, levels, joint, classes, k)
    return ColumnProfile(
        name=column.name,
        kind=column.kind,
        missing=int((~present).sum()),
        distinct=len(levels),
        zeros=0 if categorical else int((values == 0).sum()),
        minimum=float(levels[0]) if numeric else None,
        median=float(np.median(values)) if numeric else None,
        maximum=float(levels[-1]) if numeric else None,
        edges=edges,
        bars=bars,
        histogram=histogram,
        cut_accuracy=correct / len(y),
        cut=cut,
        cut_empty=side,
        cut_category=category,
        constant=len(levels) < 2 and (len(levels) == 0 or bool(present.all())),
    )


def _shortest_cut(low: float, high: float) -> float:
    """The cut between two neighbouring values with the fewest digits, as a tree stores it."""
    return shortest_between(low, high) if np.isfinite(low) and np.isfinite(high) else low


def _best_cut(joint: np.ndarray, gone: np.ndarray) -> tuple[int | None, int, str]:
    """The last level on the left of the best cut (None: no cut), the rows it classifies correctly, and where the empty cells go.

    `joint` are the rows by level and class, `gone` those with an empty cell by class. The side is "left" or "right"; "only" if the best
    question is whether the cell is empty.
    """
    total = joint.sum(0)
    left = np.cumsum(joint, axis=0)[:-1]
    found: list[tuple[int, int | None, str]] = []
    for side, low, high in (("right", left, total - left + gone), ("left", left + gone, total - left)):
        if len(left):
            correct = low.max(1) + high.max(1)
            at = int(correct.argmax())
            found.append((int(correct[at]), at, side if gone.any() else ""))
    if gone.any() and len(joint):
        found.append((int(total.max() + gone.max()), None, "only"))
    if not found:
        return None, int((total + gone).max(initial=0)), ""
    correct_rows, at_level, empty_side = max(found, key=lambda one: one[0])  # the first of those that are equally good
    return at_level, correct_rows, empty_side


def _best_category(joint: np.ndarray, gone: np.ndarray) -> tuple[int | None, int]:
    """The level that is best set against all other rows (None: there are none) and the rows it classifies correctly."""
    total = joint.sum(0) + gone
    if len(joint) < (1 if gone.any() else 2):
        return None, int(total.max(initial=0))
    correct = joint.max(1) + (total - joint).max(1)
    best = int(correct.argmax())
    return best, int(correct[best])


def _histogram(
    column: Column, values: FloatArray, levels: FloatArray, joint: np.ndarray, classes: np.ndarray, k: int
) -> tuple[tuple[float, ...], tuple[str, ...], np.ndarray]:
    """Edges (numeric) or names of bars (categorical, binary), and rows by bin and class."""
    if column.kind is ColumnKind.CATEGORICAL:
        return (), *_bars(column, levels, joint)
    if column.kind is ColumnKind.BINARY or not len(levels):
        return (), tuple(f"{v:g}" for v in levels), joint
    low = float(levels[0])
    high = float(levels[-1])
    bins = min(BINS, len(levels))
    width = high / bins - low / bins  # in this order it cannot overflow
    edges = low + width * np.arange(bins + 1)
    edges[-1] = high
    if not (np.diff(edges) > 0).all():  # one value, or values too close for bins between them
        return (low, high), (), joint.sum(0, keepdims=True)
    place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, bins - 1)
    histogram = np.bincount(place * k + classes, minlength=bins * k).reshape(bins, k)
    return tuple(edges.tolist()), (), histogram


def _bars(column: Column, levels: FloatArray, joint: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    names = [column.schema.categories[int(v)] for v in levels]
    if len(names) <= TOP_CATEGORIES + 1:
        return tuple(names), joint
    order = np.argsort(-joint.sum(1), kind="stable")
    top = order[:TOP_CATEGORIES]
    kept: BoolArray = np.zeros(len(names), bool)
    kept[top] = True
    return (*(names[i] for i in top), OTHER), np.vstack([joint[top], joint[~kept].sum(0)])
