"""Number subsets of categories and cuts between bins as questions.

Splits are made on demand. A subset and its complement are two questions, since constraints further down name the side.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from trainer.data.problem import Problem
from trainer.editing.questions import LazySplits, Questions, in_short_decimals
from trainer.errors import ParameterError
from trainer.families.odt.groups import Groups
from trainer.tree.nodes import DraftBranch, DraftLeaf
from trainer.tree.splits import Split, Subset, goes_left

LEFT = DraftLeaf(label=0)
RIGHT = DraftLeaf(label=1)
FIRST_SET = -2  # sets of joined categories are numbered downwards from here; -1 means no set


class SubsetQuestions(Questions):
    """Numbered questions of all groups; those of group g start at `starts[g]`.

    A group of k categories has 2^k - 2 questions, the masks of categories that go left. A group of bins has a question for each cut. A
    column with empty cells has two groups of bins, and only the first tests for empty cells. Subsets above `max_card` keep their numbers
    but are barred.
    """

    def __init__(self, problem: Problem, groups: Groups) -> None:
        self.problem = problem
        self.groups = groups
        kinds = list(zip(groups.sizes.tolist(), groups.ordered.tolist(), strict=True))
        self.cuts = [self._cuts(g, size) if ordered else () for g, (size, ordered) in enumerate(kinds)]
        counts = [
            len(cuts) if ordered else (1 << size) - 2 for cuts, (size, ordered) in zip(self.cuts, kinds, strict=True)
        ]
        self.starts: list[int] = np.cumsum([0, *counts]).tolist()
        self.encoded = self.starts[-1]
        self.columns = [column for column, count in zip(groups.columns, counts, strict=True) for _ in range(count)]
        self.codes = [() if ordered else self._codes(g, size) for g, (size, ordered) in enumerate(kinds)]
        self.held: list[Split] = []
        self._twins: set[int] = set()
        self.sets: list[tuple[int, int]] = []  # (group, mask) of categories that must stay together
        self.splits: Sequence[Split] = LazySplits(self.encoded, cache(self._split_of), self.held)

    def groups_of(self, column: int) -> list[int]:
        """Return the groups of a column: two if it has numbers and empty cells."""
        return [g for g, group_column in enumerate(self.groups.columns) if group_column == column]

    def _codes(self, g: int, size: int) -> tuple[int, ...]:
        """Return the codes of a group's categories in its column."""
        return tuple(code for a in range(size) for code in self._branch(g, [a]).split.among)

    def _cuts(self, g: int, size: int) -> tuple[Split, ...]:
        """Return the splits that send the lowest bins of a group left, if the column has such a split."""
        drafts = [self._branch(g, list(range(a + 1))) for a in range(size - 1)]
        return tuple(in_short_decimals(self.problem, [draft.split for draft in drafts if draft.left == LEFT]))

    def _branch(self, g: int, chosen: list[int]) -> DraftBranch:
        draft = self.groups.branch(g, chosen, LEFT, RIGHT)
        assert isinstance(draft, DraftBranch)
        return draft

    # -- numbers -------------------------------------------------------------------------------------------------------

    def locate(self, question: int) -> tuple[int, int]:
        """Return the group of an encoded question and the mask of the categories that go left."""
        g = int(np.searchsorted(self.starts, question, side="right")) - 1
        place = question - self.starts[g]
        return g, (1 << (place + 1)) - 1 if self.groups.ordered[g] else place + 1

    def number(self, g: int, mask: int) -> int:
        """Return the index of the split that sends these categories, or the lowest bins, left."""
        return self.starts[g] + (mask.bit_length() if self.groups.ordered[g] else mask) - 1

    def within_card(self, g: int, mask: int) -> bool:
        """Return whether a subset or its complement respects `max_card`."""
        size = int(self.groups.sizes[g])
        inside = mask.bit_count()
        card = self.groups.card
        return bool(self.groups.ordered[g]) or not card or min(inside, size - inside) <= card

    def _split_of(self, question: int) -> Split:
        g, mask = self.locate(question)
        if self.groups.ordered[g]:
            return self.cuts[g][mask.bit_length() - 1]
        codes = tuple(sorted(code for a, code in enumerate(self.codes[g]) if mask >> a & 1))
        return Subset(feature=self.groups.columns[g], codes=codes)

    def answers(self, question: int) -> np.ndarray:
        return goes_left(self.splits[question], self.problem.matrix)

    def find(self, split: Split) -> int:
        """Return the number of a split. A split that is not encoded gets a new number."""
        question, twin = self._find_encoded(split)
        if question >= 0:
            return question
        if split not in self.held:
            self.held.append(split)
            self.columns.append(split.used[0])
            if twin:
                self._twins.add(self.encoded + len(self.held) - 1)
        return self.encoded + self.held.index(split)

    def _find_encoded(self, split: Split) -> tuple[int, bool]:
        """Return the encoded question with this split, or -1, and whether one splits the training rows equally."""
        own_groups = self.groups_of(split.used[0])
        if not own_groups:
            return -1, False
        if split.among:
            g = own_groups[0]
            mask = self._mask(g, split)
            if not 0 < mask < (1 << int(self.groups.sizes[g])) - 1 or not self.within_card(g, mask):
                return -1, False
            return (self.number(g, mask) if mask.bit_count() == len(split.among) else -1), True
        cuts = {self.starts[g] + c: cut for g in own_groups for c, cut in enumerate(self.cuts[g])}
        same = next((number for number, cut in cuts.items() if cut == split), -1)
        goes = goes_left(split, self.problem.matrix)
        return same, any(np.array_equal(goes_left(cut, self.problem.matrix), goes) for cut in cuts.values())

    def _mask(self, g: int, split: Split) -> int:
        return sum(1 << a for a, code in enumerate(self.codes[g]) if code in split.among)

    def is_foreign(self, question: int) -> bool:
        return question >= self.encoded and question not in self._twins

    def of_column(self, column: int) -> list[int]:
        return [q for g in self.groups_of(column) for q in range(self.starts[g], self.starts[g + 1])]

    # -- joined categories ------------------------------------------------------------------------------------------------

    def category_group(self, split: Split) -> int:
        name = self.problem.table.names[split.used[0]]
        g = next(iter(self.groups_of(split.used[0])), None)
        levels = self.problem.table.schema[split.used[0]].categories
        absent = [levels[code] for code in split.among if g is None or code not in self.codes[g]]
        if g is None or absent:
            message = (
                f"'{name}' has no two categories in the training rows."
                if g is None
                else f"'{absent[0][:80]}' of '{name}' does not occur in the training rows."
            )
            raise ParameterError({"wish": f"{message} Only categories that occur can be kept together."})
        if self.groups.card:
            raise ParameterError(
                {
                    "wish": "'together' needs subsets of any size, but 'max_card' limits them. Set 'max_card' to 0, or leave this wish out."
                }
            )
        group_set = (g, self._mask(g, split))
        if group_set not in self.sets:
            self.sets.append(group_set)
        return FIRST_SET - self.sets.index(group_set)

    def is_barred(self, question: int, banned: frozenset[int]) -> bool:
        column = self.columns[question]
        if question < self.encoded and not self.within_card(*self.locate(question)):
            return True
        return column in banned or any(self._parts(question, column, number) for number in banned if number < 0)

    def _parts(self, question: int, column: int, number: int) -> bool:
        """Return whether a question separates joined categories."""
        g, mask = self.sets[FIRST_SET - number]
        if column != self.groups.columns[g]:
            return False
        sent_left = self._mask(g, self.splits[question])
        return bool(sent_left & mask) and bool(~sent_left & mask)

    def units(self, g: int, banned: frozenset[int]) -> list[int]:
        """Return the categories of a group as masks; joined categories share a mask."""
        units = [1 << a for a in range(int(self.groups.sizes[g]))]
        for number in sorted(banned):
            if number >= 0 or self.sets[FIRST_SET - number][0] != g:
                continue
            mask = self.sets[FIRST_SET - number][1]
            joined = sum(unit for unit in units if unit & mask)
            units = [unit for unit in units if not unit & mask] + [joined]
        return sorted(units)
