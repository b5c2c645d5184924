"""Report empty cells by column and pattern, and their dependence on the class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.dtypes import BoolArray, CountArray
from trainer.table import Column, Labels, Table

MOST_PATTERNS = 12
TELLING_LEVEL = 0.001  # significance level for all columns together (Bonferroni)
TELLING_POINTS = 0.1  # smaller differences between the shares of a class are not reported


@dataclass(frozen=True, kw_only=True)
class EmptyColumn:
    """A column with empty cells."""

    name: str
    empty: int  # number of empty cells
    classes_empty: tuple[int, ...]  # number of rows of each class with an empty cell
    classes_present: tuple[int, ...]  # number of rows of each class with a value
    telling: bool  # whether the class shares of both groups differ significantly


@dataclass(frozen=True, kw_only=True)
class EmptyReport:
    """Empty cells in the rows that have a class."""

    rows: int
    rows_with_empty: int
    columns: tuple[EmptyColumn, ...]  # most empty cells first
    # indices into `columns` that are empty together, and the number of such rows
    patterns: tuple[tuple[tuple[int, ...], int], ...]
    other_rows: int  # number of rows whose pattern is not among the most frequent ones


def empty_report(table: Table, labels: Labels) -> EmptyReport:
    """Report the empty cells of a table from which no row was dropped for an empty cell.

    Parameters
    ----------
    table : Table
        Numeric columns with NaN, categorical ones with the category "(missing)" where a cell is empty.
    labels : Labels

    Returns
    -------
    EmptyReport
        A column is telling if its emptiness and the class are dependent at the level 0.001 divided by the number of columns
        with empty cells, and the share of some class differs by ten points or more.
    """
    masks = [(column.name, is_empty(column)) for column in table.columns]
    masks = sorted(((name, mask) for name, mask in masks if mask.any()), key=lambda pair: -int(pair[1].sum()))
    if not masks:
        return EmptyReport(rows=len(table), rows_with_empty=0, columns=(), patterns=(), other_rows=0)
    matrix = np.column_stack([mask for _, mask in masks])
    level = TELLING_LEVEL / len(masks)
    columns = tuple(_column(name, mask, labels, level) for name, mask in masks)
    kinds, sizes = np.unique(matrix, axis=0, return_counts=True)
    has_empty = kinds.any(axis=1)
    kinds = kinds[has_empty]
    sizes = sizes[has_empty]
    order = np.argsort(-sizes, kind="stable")
    patterns = tuple((tuple(np.flatnonzero(kinds[i]).tolist()), int(sizes[i])) for i in order[:MOST_PATTERNS])
    return EmptyReport(
        rows=len(table),
        rows_with_empty=int(matrix.any(axis=1).sum()),
        columns=columns,
        patterns=patterns,
        other_rows=int(sizes[order[MOST_PATTERNS:]].sum()),
    )


def is_empty(column: Column) -> BoolArray:
    """Return the mask of empty cells, bool (n,), also if they are a category."""
    code = column.schema.missing_code
    return column.missing if code is None else column.values == code


def _column(name: str, mask: BoolArray, labels: Labels, level: float) -> EmptyColumn:
    k = len(labels.classes)
    empty = np.bincount(labels.codes[mask], minlength=k)
    present = np.bincount(labels.codes[~mask], minlength=k)
    return EmptyColumn(
        name=name,
        empty=int(mask.sum()),
        classes_empty=tuple(empty.tolist()),
        classes_present=tuple(present.tolist()),
        telling=bool(present.any()) and _far_apart(empty, present) and _dependence(empty, present) < level,
    )


def _far_apart(empty: CountArray, present: CountArray) -> bool:
    return bool(np.abs(empty / empty.sum() - present / present.sum()).max() >= TELLING_POINTS)


def _dependence(empty: CountArray, present: CountArray) -> float:
    """Return the p-value for independence of emptiness and class: Fisher's exact test for two classes, else chi-square."""
    from scipy.stats import (  # SciPy's statistics are slow to import, and only tables with empty cells need them
        chi2_contingency,
        fisher_exact,
    )

    counts = np.vstack([empty, present])
    counts = counts[:, counts.sum(axis=0) > 0]
    if counts.shape[1] == 1:
        return 1.0
    if counts.shape[1] == 2:
        return float(fisher_exact(counts).pvalue)
    return float(chi2_contingency(counts, correction=False).pvalue)
