"""Columns as groups of categories for subset branching, and the trees over them in the columns' own units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trainer.data.problem import Problem
from trainer.errors import DataError
from trainer.families.odt.groups import Groups
from trainer.families.odt.topology import Shape
from trainer.methods.base import Settings
from trainer.table import ColumnKind
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf
from trainer.tree.splits import Split, Subset, Threshold, goes_left

MAX_CATEGORIES = 62  # a subset is a mask of 64 bits


def make_groups(problem: Problem, bins: int, card: int) -> Groups:
    """Columns as groups: categories that occur, or bins between quantiles for numeric columns; constant ones are left out.

    Raises DataError for a column with more than 62 categories.
    """
    columns: list[int] = []
    codes: list[np.ndarray] = []
    sizes: list[int] = []
    ordered: list[int] = []
    meaning: list[np.ndarray] = []
    for j, column in enumerate(problem.table.columns):
        nominal = column.kind is ColumnKind.CATEGORICAL
        values = np.unique(column.values) if nominal else _edges(column.values, bins)
        size = len(values) if nominal else len(values) + 1
        if size < 2:
            continue
        if size > MAX_CATEGORIES:
            raise DataError(
                f"Column '{column.name}' has {size} categories; odt takes at most {MAX_CATEGORIES}. Leave it out or merge rare ones."
            )
        columns.append(j)
        codes.append(np.searchsorted(values, column.values, side="left").astype(np.int32))
        sizes.append(size)
        ordered.append(0 if nominal else 1)
        meaning.append(values)

    def branch(g: int, chosen: list[int], left: Draft, right: Draft) -> Draft:
        if not ordered[g]:
            return DraftBranch(
                split=Subset(feature=columns[g], codes=tuple(int(meaning[g][a]) for a in chosen)),
                left=left,
                right=right,
            )
        if 0 in chosen:
            cut = float(meaning[g][max(chosen)])
            return DraftBranch(split=Threshold(feature=columns[g], threshold=cut), left=left, right=right)
        cut = float(meaning[g][min(chosen) - 1])
        return DraftBranch(split=Threshold(feature=columns[g], threshold=cut), left=right, right=left)

    def question(split: Split) -> tuple[int, list[int]]:
        g = columns.index(split.used[0])
        row = np.zeros((sizes[g], len(problem.table.columns)))
        row[:, columns[g]] = meaning[g] if not ordered[g] else np.append(meaning[g], np.inf)  # the last bin has no end
        return g, np.flatnonzero(goes_left(split, row)).tolist()

    return Groups(
        cat=np.ascontiguousarray(np.column_stack(codes)) if codes else np.zeros((len(problem.y), 0), np.int32),
        y=problem.y.astype(np.int32),
        w=problem.row_weights,
        sizes=np.asarray(sizes, np.int64),
        ordered=np.asarray(ordered, np.int64),
        n_classes=problem.n_classes,
        card=card or 0,
        branch=branch,
        question=question,
        columns=tuple(columns),
    )


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
        names = [problem.table.names[j] for j in groups.columns]
        limit = f", no other columns than ({', '.join(names)})"
    return (
        f"this topology ({shape.nodes} questions, at most {shape.depth} per row), subsets of {len(groups.sizes)} columns, "
        f"numeric ones in at most {settings['bins']} bins{limit}"
    )
