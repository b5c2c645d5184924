"""Columns as groups of categories for subset branching, and the trees over them in the columns' own units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

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

    `values` are the codes of a categorical column, or the upper ends of all bins but the last. `empty` is where the category of empty cells
    lies among the bins; None if there is none.
    """

    column: int
    codes: CodeArray
    values: FloatArray
    ordered: bool = True
    empty: EmptyPlace | None = None

    @property
    def size(self) -> int:
        """How many categories there are."""
        return len(self.values) + int(self.ordered) + int(self.empty is not None)

    def prefix(self, last: int) -> tuple[Split, bool]:
        """The split that sends the categories up to `last` left, and whether its sides are exchanged; of bins only."""
        bins = last + 1 - (self.empty is EmptyPlace.FIRST)
        if bins == 0 or bins > len(self.values):
            return Missing(feature=self.column), bins > 0
        side = EmptySide.REFUSE if self.empty is None else SIDES[self.empty]
        return Threshold(feature=self.column, threshold=float(self.values[bins - 1]), missing=side), False

    def examples(self) -> FloatArray:
        """A value of each category, float64 (size,); the last bin has no end."""
        if not self.ordered:
            return self.values
        bins = np.append(self.values, np.inf)
        if self.empty is None:
            return bins
        return np.append(np.nan, bins) if self.empty is EmptyPlace.FIRST else np.append(bins, np.nan)


class EmptyPlace(Enum):
    """Where the category of empty cells lies among the bins of a column."""

    FIRST = "first"
    LAST = "last"


SIDES = {EmptyPlace.FIRST: EmptySide.LEFT, EmptyPlace.LAST: EmptySide.RIGHT}


def make_groups(problem: Problem, bins: int, card: int) -> Groups:
    """Columns as groups: categories that occur, or bins between quantiles for numeric columns; constant ones are left out.

    A numeric column with empty cells is two groups, with the empty cells before and after all bins (missing.md, section 3). Raises
    DataError for a column with more than 62 categories.
    """
    # copies of rows leave rows out whose answers all cost the same; bins and categories are those of all rows
    table = (problem.source or problem).table
    pairs = zip(problem.table.columns, table.columns, strict=True)
    found = [group for j, (own, whole) in enumerate(pairs) for group in _groups_of(j, own, whole, bins)]

    def branch(g: int, chosen: list[int], left: Draft, right: Draft) -> Draft:
        group = found[g]
        if not group.ordered:
            codes = tuple(int(group.values[a]) for a in chosen)
            return DraftBranch(split=Subset(feature=group.column, codes=codes), left=left, right=right)
        split, exchanged = group.prefix(max(chosen) if 0 in chosen else min(chosen) - 1)
        if exchanged == (0 in chosen):
            return DraftBranch(split=split, left=right, right=left)
        return DraftBranch(split=split, left=left, right=right)

    def question(split: Split) -> tuple[int, list[int]]:
        own = [g for g, group in enumerate(found) if group.column == split.used[0]]
        answers = [_categories(found[g], split, len(problem.table.columns)) for g in own]
        for g, left in zip(own, answers, strict=True):
            if not found[g].ordered or np.count_nonzero(left[1:] != left[:-1]) < 2:
                return g, np.flatnonzero(left).tolist()
        return own[0], np.flatnonzero(answers[0]).tolist()

    return Groups(
        cat=np.ascontiguousarray(np.column_stack([group.codes for group in found]))
        if found
        else np.zeros((len(problem.y), 0), np.int32),
        y=problem.y.astype(np.int32),
        w=problem.row_weights,
        sizes=np.asarray([group.size for group in found], np.int64),
        ordered=np.asarray([int(group.ordered) for group in found], np.int64),
        n_classes=problem.n_classes,
        card=card or 0,
        branch=branch,
        question=question,
        columns=tuple(group.column for group in found),
    )


def _groups_of(j: int, column: Column, whole: Column, bins: int) -> list[ColumnGroup]:
    """The groups of a column, whose values are those of `whole`; none if it is constant."""
    nominal = column.kind is ColumnKind.CATEGORICAL
    missing = column.missing
    present = whole.values[~whole.missing]
    if not len(present):
        return []
    values = np.unique(present) if nominal else _edges(present, bins)
    codes = np.searchsorted(values, column.values, side="left").astype(np.int32)
    plain = ColumnGroup(column=j, codes=codes, values=values, ordered=not nominal)
    if plain.size > MAX_CATEGORIES:
        raise DataError(
            f"Column '{column.name}' has {plain.size} categories; odt takes at most {MAX_CATEGORIES}. Leave it out or merge rare ones."
        )
    if not whole.missing.any():
        return [plain] if plain.size > 1 else []
    low = np.where(missing, 0, codes + 1).astype(np.int32)
    high = np.where(missing, plain.size, codes).astype(np.int32)
    first = replace(plain, codes=low, empty=EmptyPlace.FIRST)
    return [first, replace(plain, codes=high, empty=EmptyPlace.LAST)] if len(values) else [first]


def _categories(group: ColumnGroup, split: Split, columns: int) -> BoolArray:
    """Which categories of a group a split sends left, bool (size,)."""
    rows = np.zeros((group.size, columns))
    rows[:, group.column] = group.examples()
    return goes_left(split, rows)


def _edges(values: np.ndarray, bins: int) -> np.ndarray:
    """Upper ends of all bins but the last: quantiles, merged where equal; bins are closed on the right."""
    quantiles = np.unique(np.quantile(values, np.arange(1, bins) / bins, method="inverted_cdf"))
    return quantiles[quantiles < values.max()] if len(values) else quantiles


def labels_of(draft: Draft, matrix: np.ndarray) -> np.ndarray:
    """The labels that a draft with labelled leaves gives the rows of `matrix`, int64 (n,)."""
    if isinstance(draft, DraftLeaf):
        return np.full(len(matrix), draft.label or 0, np.int64)
    left = goes_left(draft.split, matrix)
    out = np.empty(len(matrix), np.int64)
    out[left], out[~left] = labels_of(draft.left, matrix[left]), labels_of(draft.right, matrix[~left])
    return out


def relabelled(draft: Draft, labels: tuple[int, ...]) -> Draft:
    """The draft with leaf label k replaced by labels[k]."""
    if isinstance(draft, DraftLeaf):
        return DraftLeaf(label=None if draft.label is None else labels[draft.label])
    return replace(draft, left=relabelled(draft.left, labels), right=relabelled(draft.right, labels))


def within_limit(draft: Draft, matrix: np.ndarray, sizes: tuple[int, ...], card: int) -> Draft:
    """The draft with every subset, or its complement, of at most `card` of the sizes[j] categories of its column.

    The search counts the categories of the rows at a node; those that no row of `matrix` has there change sides where they must.
    """
    if isinstance(draft, DraftLeaf):
        return draft
    left = goes_left(draft.split, matrix)
    return replace(
        draft, split=draft.split.limited(card, sizes, matrix), left=within_limit(draft.left, matrix[left], sizes, card),
        right=within_limit(draft.right, matrix[~left], sizes, card),
    )  # fmt: skip


def scope(problem: Problem, shape: Shape | None, groups: Groups, settings: Settings) -> str:
    """Return the questions that the claim is about."""
    if shape is None:
        return "no question"
    limit = ""
    if settings["select"] == "cart":
        names = [problem.table.names[j] for j in dict.fromkeys(groups.columns)]
        limit = f", no other columns than ({', '.join(names)})"
    columns = set(groups.columns)
    sides = " with empty cells on either side" if any(problem.table.columns[j].missing.any() for j in columns) else ""
    return (
        f"this topology ({shape.nodes} questions, at most {shape.depth} per row), subsets of {len(columns)} columns, "
        f"numeric ones in at most {settings['bins']} bins{sides}{limit}"
    )
