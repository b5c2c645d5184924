"""Turn columns into groups of categories for subset branching, and back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from trainer.data.encoding import EncodedFeature, Encoding, Test
from trainer.data.problem import Problem
from trainer.dtypes import BoolArray, CodeArray, FloatArray
from trainer.errors import DataError
from trainer.families.odt.groups import Groups
from trainer.families.odt.topology import Shape
from trainer.methods.base import Settings
from trainer.table import Column, ColumnKind, EmptySide
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf
from trainer.tree.splits import Missing, Split, Subset, Threshold, goes_left

MAX_CATEGORIES = 62  # a subset is a mask of 64 bits


@dataclass(frozen=True, kw_only=True)
class ColumnGroup:
    """One column as categories 0 to `size` - 1, `codes` int32 (n,) of the rows.

    `values` are the codes of a categorical column, or the upper ends of all bins but the last. `empty` is the position of the category
    of empty cells among the bins; None if the column has none.
    """

    column: int
    codes: CodeArray
    values: FloatArray
    ordered: bool = True
    empty: EmptyCategory | None = None

    @property
    def size(self) -> int:
        """Number of categories."""
        return len(self.values) + int(self.ordered) + int(self.empty is not None)

    def prefix(self, last: int) -> tuple[Split, bool]:
        """Return the split that sends the bins up to `last` left, and whether its sides are exchanged."""
        bins = last + 1 - (self.empty is EmptyCategory.FIRST)
        if bins == 0 or bins > len(self.values):
            return Missing(feature=self.column), bins > 0
        side = EmptySide.REFUSE if self.empty is None else SIDES[self.empty]
        return Threshold(feature=self.column, threshold=float(self.values[bins - 1]), missing=side), False

    def examples(self) -> FloatArray:
        """Return one value of each category, float64 (size,); infinity for the last bin."""
        if not self.ordered:
            return self.values
        bins = np.append(self.values, np.inf)
        if self.empty is None:
            return bins
        return np.append(np.nan, bins) if self.empty is EmptyCategory.FIRST else np.append(bins, np.nan)


class EmptyCategory(Enum):
    """Position of the category of empty cells among the bins of a column."""

    FIRST = "first"
    LAST = "last"


SIDES = {EmptyCategory.FIRST: EmptySide.LEFT, EmptyCategory.LAST: EmptySide.RIGHT}


def make_groups(problem: Problem, bins: int, card: int) -> Groups:
    """Turn columns into groups: categories that occur, or bins between quantiles. Constant columns are left out.

    A numeric column with empty cells becomes two groups, one with the empty cells before all bins and one after. Raises DataError
    for a column with more than 62 categories or bins.
    """
    # row copies leave out rows whose predictions all cost the same, but bins and categories come from all rows
    table = (problem.source or problem).table
    pairs = zip(problem.table.columns, table.columns, strict=True)
    column_groups = [
        group for j, (column, full_column) in enumerate(pairs) for group in _groups_of(j, column, full_column, bins)
    ]

    def branch(g: int, chosen: list[int], left: Draft, right: Draft) -> Draft:
        group = column_groups[g]
        if not group.ordered:
            codes = tuple(int(group.values[a]) for a in chosen)
            return DraftBranch(split=Subset(feature=group.column, codes=codes), left=left, right=right)
        split, exchanged = group.prefix(max(chosen) if 0 in chosen else min(chosen) - 1)
        if exchanged == (0 in chosen):
            return DraftBranch(split=split, left=right, right=left)
        return DraftBranch(split=split, left=left, right=right)

    def question(split: Split) -> tuple[int, list[int]]:
        numbers = [g for g, group in enumerate(column_groups) if group.column == split.used[0]]
        answers = [_categories(column_groups[g], split, len(problem.table.columns)) for g in numbers]
        for g, left in zip(numbers, answers, strict=True):
            if not column_groups[g].ordered or np.count_nonzero(left[1:] != left[:-1]) < 2:
                return g, np.flatnonzero(left).tolist()
        return numbers[0], np.flatnonzero(answers[0]).tolist()

    return Groups(
        cat=np.ascontiguousarray(np.column_stack([group.codes for group in column_groups]))
        if column_groups
        else np.zeros((len(problem.y), 0), np.int32),
        y=problem.y.astype(np.int32),
        w=problem.row_weights,
        sizes=np.asarray([group.size for group in column_groups], np.int64),
        ordered=np.asarray([int(group.ordered) for group in column_groups], np.int64),
        n_classes=problem.n_classes,
        card=card or 0,
        branch=branch,
        question=question,
        columns=tuple(group.column for group in column_groups),
    )


def single_tests(problem: Problem, settings: Settings) -> Encoding | None:
    """Return tests of one category or bin edge each; None unless the topology is complete and all columns may be used."""
    if settings["topology"].strip() or settings["select"] != "none" or problem.has_empty:
        return None
    table = (problem.source or problem).table
    features: list[EncodedFeature] = []
    for j, column in enumerate(table.columns):
        for group in _groups_of(j, column, column, settings["bins"]):
            values = group.values.tolist()
            if group.ordered:
                features += [EncodedFeature(name=column.name, column=j, test=Test.ABOVE, low=edge) for edge in values]
            else:
                features += [
                    EncodedFeature(name=column.name, column=j, test=Test.LEVEL, level=int(code)) for code in values
                ]
    return Encoding(features=tuple(features), schema=table.schema)


def _groups_of(j: int, column: Column, full_column: Column, bins: int) -> list[ColumnGroup]:
    """Return the groups of a column, with categories or bins from `full_column`; none if that is constant."""
    nominal = column.kind is ColumnKind.CATEGORICAL
    missing = column.missing
    present = full_column.values[~full_column.missing]
    if not len(present):
        return []
    values = np.unique(present) if nominal else _bin_edges(present, bins)
    codes = np.searchsorted(values, column.values, side="left").astype(np.int32)
    plain = ColumnGroup(column=j, codes=codes, values=values, ordered=not nominal)
    if plain.size > MAX_CATEGORIES:
        raise DataError(
            f"Column '{column.name}' has {plain.size} categories, but odt takes at most {MAX_CATEGORIES}. Merge rare categories, or leave the column out."
        )
    if not full_column.has_missing:
        return [plain] if plain.size > 1 else []
    low = np.where(missing, 0, codes + 1).astype(np.int32)
    high = np.where(missing, plain.size, codes).astype(np.int32)
    first = replace(plain, codes=low, empty=EmptyCategory.FIRST)
    return [first, replace(plain, codes=high, empty=EmptyCategory.LAST)] if len(values) else [first]


def _categories(group: ColumnGroup, split: Split, columns: int) -> BoolArray:
    """Return which categories of a group a split sends left, bool (size,)."""
    rows = np.zeros((group.size, columns))
    rows[:, group.column] = group.examples()
    return goes_left(split, rows)


def _bin_edges(values: np.ndarray, bins: int) -> np.ndarray:
    """Return the upper ends of all bins but the last: distinct quantiles. Bins are closed on the right."""
    quantiles = np.unique(np.quantile(values, np.arange(1, bins) / bins, method="inverted_cdf"))
    return quantiles[quantiles < values.max()] if len(values) else quantiles


def predict_labels(draft: Draft, matrix: np.ndarray) -> np.ndarray:
    """Predict the rows of `matrix` by a draft with labelled leaves, int64 (n,)."""
    if isinstance(draft, DraftLeaf):
        return np.full(len(matrix), draft.label or 0, np.int64)
    left = goes_left(draft.split, matrix)
    out = np.empty(len(matrix), np.int64)
    out[left] = predict_labels(draft.left, matrix[left])
    out[~left] = predict_labels(draft.right, matrix[~left])
    return out


def relabel(draft: Draft, labels: tuple[int, ...]) -> Draft:
    """Replace leaf label k by labels[k]."""
    if isinstance(draft, DraftLeaf):
        return DraftLeaf(label=None if draft.label is None else labels[draft.label])
    return replace(draft, left=relabel(draft.left, labels), right=relabel(draft.right, labels))


def limit_subsets(draft: Draft, matrix: np.ndarray, sizes: tuple[int, ...], card: int) -> Draft:
    """Limit every subset, or its complement, to `card` of the sizes[j] categories of its column.

    The search counts only categories that occur at a node. Categories without a row at a node change sides if the limit requires it.
    """
    if isinstance(draft, DraftLeaf):
        return draft
    left = goes_left(draft.split, matrix)
    return replace(
        draft,
        split=draft.split.limit_categories(card, sizes, matrix),
        left=limit_subsets(draft.left, matrix[left], sizes, card),
        right=limit_subsets(draft.right, matrix[~left], sizes, card),
    )


def scope(problem: Problem, shape: Shape | None, groups: Groups, settings: Settings) -> str:
    """Return the description of the search space that the claim covers."""
    if shape is None:
        return "no question"
    limit = ""
    if settings["select"] == "cart":
        names = [problem.table.names[j] for j in dict.fromkeys(groups.columns)]
        limit = f", no other columns than ({', '.join(names)})"
    columns = set(groups.columns)
    sides = " with empty cells on either side" if any(problem.table.columns[j].has_missing for j in columns) else ""
    return (
        f"this topology ({shape.nodes} questions, at most {shape.depth} per row), subsets of {len(columns)} columns, "
        f"numeric ones in at most {settings['bins']} bins{sides}{limit}"
    )
