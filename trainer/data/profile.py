"""Profile a table: distributions, best single splits, and unavoidable errors."""

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
    """One column: counts, range, histogram, and the best tree with one split on it."""

    name: str
    kind: ColumnKind
    missing: int
    distinct: int
    zeros: int
    minimum: float | None  # None for a categorical column, as are the next two
    median: float | None
    maximum: float | None
    # edges of the bins, one more than there are bins; empty for binary and categorical columns
    edges: tuple[float, ...]
    bars: tuple[str, ...]  # name of each bin of a binary or categorical column
    histogram: np.ndarray  # int64 (bins, classes), number of rows
    cut_accuracy: float  # share of all rows that the best split classifies correctly
    cut: float | None  # threshold of the best split; x ≤ cut goes left
    cut_category: str | None  # category of the best split, which separates it from all others
    cut_empty: str  # side of empty cells, "left" or "right"; "only" if the best split tests for empty cells
    constant: bool


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A table: its columns and class counts, and the limits of any tree on it."""

    rows: int
    columns: tuple[ColumnProfile, ...]
    class_counts: Mapping[str, int]
    baseline: float  # accuracy of a tree that always predicts the largest class
    duplicate_rows: int  # rows that equal an earlier row in every column and in class
    conflicting_rows: int  # rows that equal a row of another class in every column, and the rows of that class
    error_floor: float  # share of rows that every tree misclassifies because of conflicting rows
    constant_columns: tuple[str, ...]
    duplicate_columns: tuple[tuple[str, str], ...]

    @property
    def floor_sentence(self) -> str:
        """The error floor as a sentence."""
        if not self.conflicting_rows:
            return "No two identical rows have different outcomes, so nothing in the data rules out a perfect tree."
        return (
            f"{self.conflicting_rows} rows have an identical row with a different outcome: "
            f"no tree on these columns can beat {100 * (1 - self.error_floor):.4g} %."
        )


def profile(table: Table, labels: Labels) -> Profile:
    """Profile a table with at least one row; cells may be empty."""
    n = len(table)
    k = len(labels.classes)
    counts = labels.counts()
    columns = tuple(_column(column, labels.codes, k) for column in table.columns)
    group = row_groups(table)
    # number of rows for each distinct row and class
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
    """Return a group number for each row, int64 (n,); rows share one if all columns are equal (missing equals missing)."""
    group = np.zeros(len(table), np.int64)
    for column in table.columns:
        values = np.where(column.missing, np.inf, column.values + 0.0)
        codes = np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)
        # both factors are at most n, so that their product fits in int64
        group = np.unique(group * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1].reshape(-1)
        if int(group.max(initial=-1)) == len(table) - 1:
            break  # all rows differ already
    return group.astype(np.int64)


def _column(column: Column, y: np.ndarray, k: int) -> ColumnProfile:
    present = ~column.missing
    values = column.values[present]
    classes = y[present]
    empty_counts = np.bincount(y[~present], minlength=k)
    levels, codes = np.unique(values, return_inverse=True)
    joint = np.bincount(codes.reshape(-1) * k + classes, minlength=len(levels) * k).reshape(-1, k)
    categorical = column.kind is ColumnKind.CATEGORICAL
    cut_level, correct, side = (
        (*_best_category(joint, empty_counts), "") if categorical else _best_cut(joint, empty_counts)
    )
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
        median=_median(levels, joint.sum(1)) if numeric else None,
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


def _median(levels: FloatArray, rows: np.ndarray) -> float:
    """Return the median of values in ascending order, each in as many rows."""
    until = np.cumsum(rows)
    places = np.searchsorted(until, [(until[-1] - 1) // 2, until[-1] // 2], side="right")
    return float(np.mean(levels[places]))


def _shortest_cut(low: float, high: float) -> float:
    """Return the threshold between two neighbouring values with the fewest digits, as trees store it."""
    return shortest_between(low, high) if np.isfinite(low) and np.isfinite(high) else low


def _best_cut(joint: np.ndarray, empty_counts: np.ndarray) -> tuple[int | None, int, str]:
    """Find the best threshold of a numeric column.

    `joint` counts rows by level and class, `empty_counts` rows with an empty cell by class. Return the last level on the
    left (None: no threshold), the correct rows, and the side of empty cells: "left", "right", or "only" if the best split
    tests for empty cells.
    """
    total = joint.sum(0)
    left = np.cumsum(joint, axis=0)[:-1]
    candidates: list[tuple[int, int | None, str]] = []
    has_empty = bool(empty_counts.any())
    sides = [("right", left, total - left + empty_counts)]
    if has_empty:
        sides.append(("left", left + empty_counts, total - left))
    for side, low, high in sides:
        if len(left):
            correct = low.max(1) + high.max(1)
            level = int(correct.argmax())
            candidates.append((int(correct[level]), level, side if has_empty else ""))
    if has_empty and len(joint):
        candidates.append((int(total.max() + empty_counts.max()), None, "only"))
    if not candidates:
        return None, int((total + empty_counts).max(initial=0)), ""
    # `max` takes the first of equal candidates
    correct_rows, at_level, empty_side = max(candidates, key=lambda one: one[0])
    return at_level, correct_rows, empty_side


def _best_category(joint: np.ndarray, empty_counts: np.ndarray) -> tuple[int | None, int]:
    """Find the best split "one category against all others"; return its level (None: no split) and the correct rows."""
    total = joint.sum(0) + empty_counts
    if len(joint) < (1 if empty_counts.any() else 2):
        return None, int(total.max(initial=0))
    correct = joint.max(1) + (total - joint).max(1)
    best = int(correct.argmax())
    return best, int(correct[best])


def _histogram(
    column: Column, values: FloatArray, levels: FloatArray, joint: np.ndarray, classes: np.ndarray, k: int
) -> tuple[tuple[float, ...], tuple[str, ...], np.ndarray]:
    """Return edges (numeric) or names of bars (categorical, binary), and the rows by bin and class."""
    if column.kind is ColumnKind.CATEGORICAL:
        return (), *_bars(column, levels, joint)
    if column.kind is ColumnKind.BINARY or not len(levels):
        return (), tuple(f"{v:g}" for v in levels), joint
    low = float(levels[0])
    high = float(levels[-1])
    bins = min(BINS, len(levels))
    width = high / bins - low / bins  # dividing before subtracting avoids an overflow
    edges = low + width * np.arange(bins + 1)
    edges[-1] = high
    if not (np.diff(edges) > 0).all():  # there is only one value, or the values are too close for bins between them
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
    shown_levels: BoolArray = np.zeros(len(names), bool)
    shown_levels[top] = True
    return (*(names[i] for i in top), OTHER), np.vstack([joint[top], joint[~shown_levels].sum(0)])
