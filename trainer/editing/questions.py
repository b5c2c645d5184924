"""Number the questions of trees, oriented as in the model file.

The answer yes goes left. Questions of the encoding come first, then held questions: those that a wish names and the
encoding lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import overload

import numpy as np

from trainer.data.encoding import EncodedFeature, Test
from trainer.data.problem import Problem
from trainer.dtypes import BIT, BitArray, FloatArray
from trainer.errors import ParameterError
from trainer.table import ColumnKind
from trainer.tree.describe import split_text
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf
from trainer.tree.shapes import LabelledShape
from trainer.tree.splits import Split, Subset, goes_left

ONE_CATEGORY = (
    "'together' needs questions about sets of categories, as the method 'odt' has them. Here a question names one "
    "category of '{name}'. Forbid the column instead."
)


class Questions:
    """Splits by number, their columns, and the answers of the training rows."""

    mirrors: Mapping[int, int] = MappingProxyType({})  # see `mirrored`

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        exact = [_left_is_yes(f) for f in problem.binary.features]
        self.encoded = len(exact)
        self.held: list[Split] = []
        short = cache(lambda question: in_short_decimals(problem, [exact[question]])[0])
        self.splits: Sequence[Split] = LazySplits(self.encoded, short, self.held)
        self.columns: list[int] = [split.used[0] for split in exact]
        self._answers: list[np.ndarray] = [goes_left(split, problem.matrix) for split in exact]
        self.mirrors = self.add_mirrors([q for q, f in enumerate(problem.binary.features) if f.test is Test.LEVEL])

    @property
    def bits(self) -> BitArray:
        """Answers to the questions of the encoding, uint8 (rows, questions); 1 is yes."""
        if not self.encoded:
            return np.zeros((len(self.problem.table), 0), BIT)
        return np.column_stack(self._answers[: self.encoded]).view(BIT)

    def answers(self, question: int) -> np.ndarray:
        """Return the rows with the answer yes, bool (rows,)."""
        return self._answers[question]

    def find(self, split: Split) -> int:
        """Return the number of a question; add a new split as a held question."""
        for number, known in enumerate(self.splits):
            if known == split:
                return number
        self.held.append(split)
        self.columns.append(split.used[0])
        self._answers.append(goes_left(split, self.problem.matrix))
        return len(self.splits) - 1

    def add_mirrors(self, levels: Sequence[int]) -> dict[int, int]:
        """Add for each column of two categories the question about the other one; return it by question of the encoding.

        Both separate the rows alike. Wishes name places by the answers on the path, so it matters which answer is yes.
        levels: the questions of the encoding about one category.
        """
        mirrors = {}
        for question in levels:
            column = self.columns[question]
            if len(self.of_column(column)) == 1:
                present = np.unique(self.problem.table.columns[column].values).astype(int).tolist()
                others = tuple(code for code in present if code not in self.splits[question].among)
                mirrors[question] = self.find(Subset(feature=column, codes=others))
        return mirrors

    def is_foreign(self, question: int) -> bool:
        """Return whether a question is held and not known to separate rows like a question of the encoding."""
        return question >= self.encoded and question not in self.mirrors.values()

    def category_group(self, split: Split) -> int:
        """Return the negative number of a group of categories that stay together, for `is_barred`.

        Raises ParameterError if questions are not about sets of categories, or if a category never occurs.
        """
        name = self.problem.table.names[split.used[0]]
        raise ParameterError({"wish": ONE_CATEGORY.format(name=name)})

    def is_barred(self, question: int, banned: frozenset[int]) -> bool:
        """Return whether `banned` excludes a question: by its column, or because it separates a group of categories."""
        return self.columns[question] in banned

    def of_column(self, column: int) -> list[int]:
        """Return the questions of the encoding about a column."""
        return [q for q in range(self.encoded) if self.columns[q] == column]

    def column_name(self, question: int) -> str:
        """Return the name of a question's column."""
        return self.problem.table.names[self.columns[question]]

    def text(self, question: int) -> str:
        """Return the question in words."""
        return split_text(self.splits[question], self.problem.table.schema)

    def wish(self, question: int) -> str:
        """Return the question in the grammar of wishes, exactly."""
        return self.splits[question].wish(self.problem.table.schema)

    def draft(self, tree: LabelledShape) -> Draft:
        """Convert a tree (question, yes, no) to a draft in the units of the columns."""
        if not isinstance(tree, tuple):
            return DraftLeaf(label=tree)
        return DraftBranch(split=self.splits[tree[0]], left=self.draft(tree[1]), right=self.draft(tree[2]))


def _left_is_yes(feature: EncodedFeature) -> Split:
    assert feature.test is not Test.VALUE
    return feature.split()[0]


def in_short_decimals(problem: Problem, splits: Sequence[Split]) -> list[Split]:
    """Shorten thresholds as training does for stored trees, so that a question has one name in both."""

    @cache
    def values(feature: int) -> FloatArray:
        column = problem.table.columns[feature]
        present = ~column.missing
        if column.kind is ColumnKind.BINARY:  # a binary column has at most two values, so that no sorting is needed
            return np.unique([column.values[present].min(), column.values[present].max()])
        return np.unique(column.values[present])

    shortened = []
    for split in splits:
        short, _ = split.shorten(values, problem.matrix, np.arange(len(problem.matrix)))
        same = short == split or np.array_equal(goes_left(short, problem.matrix), goes_left(split, problem.matrix))
        shortened.append(short if same else split)
    return shortened


class LazySplits(Sequence[Split]):
    """Splits by number, created at access; held questions follow those of the encoding."""

    def __init__(self, encoded: int, make_split: Callable[[int], Split], held: Sequence[Split]) -> None:
        self.encoded = encoded
        self.made = make_split
        self.held = held

    @overload
    def __getitem__(self, question: int) -> Split: ...

    @overload
    def __getitem__(self, question: slice) -> Sequence[Split]: ...

    def __getitem__(self, question: int | slice) -> Split | Sequence[Split]:
        if isinstance(question, slice):
            return [self[q] for q in range(*question.indices(len(self)))]
        return self.made(question) if question < self.encoded else self.held[question - self.encoded]

    def __len__(self) -> int:
        return self.encoded + len(self.held)

    def __iter__(self) -> Iterator[Split]:
        return (self[q] for q in range(len(self)))


def leaves_of(tree: LabelledShape) -> int:
    """Return the number of leaves of a tree."""
    return leaves_of(tree[1]) + leaves_of(tree[2]) if isinstance(tree, tuple) else 1


def asked_questions(tree: LabelledShape) -> list[int]:
    """Return the questions of a tree in preorder."""
    return [tree[0], *asked_questions(tree[1]), *asked_questions(tree[2])] if isinstance(tree, tuple) else []


def subtree(tree: LabelledShape, place: str) -> LabelledShape:
    """Return the subtree at a place; raise KeyError if the tree does not have it."""
    for letter in place:
        if not isinstance(tree, tuple):
            raise KeyError(place)
        tree = tree[1] if letter == "y" else tree[2]
    return tree


def path_to(tree: LabelledShape, place: str) -> Sequence[int]:
    """Return the questions of the ancestors of a place."""
    path = []
    for letter in place:
        if not isinstance(tree, tuple):
            raise KeyError(place)
        path.append(tree[0])
        tree = tree[1] if letter == "y" else tree[2]
    return path
