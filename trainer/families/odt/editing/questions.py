"""All subsets of categories and all cuts between bins as numbered questions, whose splits are made when they are asked for.

A subset and its complement are two questions: which side is called yes matters to the wishes below.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from trainer.data.problem import Problem
from trainer.editing.questions import MadeSplits, Questions, in_short_decimals
from trainer.errors import ParameterError
from trainer.families.odt.groups import Groups
from trainer.tree.nodes import DraftBranch, DraftLeaf
from trainer.tree.splits import Split, Subset, goes_left

LEFT = DraftLeaf(label=0)
RIGHT = DraftLeaf(label=1)
FIRST_SET = -2  # numbers of categories that stay together go down from here; -1 stands for none


class SubsetQuestions(Questions):
    """The questions of group g are `starts[g]`, ...: of k categories 2^k - 2 masks of those that go left, of bins the cuts between them.

    A column with empty cells has two groups of bins; only the first one asks whether the cell is empty. Subsets that `max_card` does not
    allow keep their numbers and are barred everywhere.
    """

    def __init__(self, problem: Problem, groups: Groups) -> None:
        self.problem = problem
        self.groups = groups
        kinds = list(zip(groups.sizes.tolist(), groups.ordered.tolist(), strict=True))
        self.cuts = [self._cuts(g, size) if ordered else () for g, (size, ordered) in enumerate(kinds)]
        own = [
            len(cuts) if ordered else (1 << size) - 2 for cuts, (size, ordered) in zip(self.cuts, kinds, strict=True)
        ]
        self.starts: list[int] = np.cumsum([0, *own]).tolist()
        self.encoded = self.starts[-1]
        self.columns = [column for column, count in zip(groups.columns, own, strict=True) for _ in range(count)]
        self.codes = [() if ordered else self._codes(g, size) for g, (size, ordered) in enumerate(kinds)]
        self.held: list[Split] = []
        self._twins: set[int] = set()
        self.sets: list[tuple[int, int]] = []  # (group, mask) of categories that stay together
        self.splits: Sequence[Split] = MadeSplits(self.encoded, cache(self._split_of), self.held)

    def groups_of(self, column: int) -> list[int]:
        """The groups of a column; two if it has numbers and empty cells."""
        return [g for g, own in enumerate(self.groups.columns) if own == column]

    def _codes(self, g: int, size: int) -> tuple[int, ...]:
        """The codes that the categories of a group have in its column."""
        return tuple(code for a in range(size) for code in self._branch(g, [a]).split.among)

    def _cuts(self, g: int, size: int) -> tuple[Split, ...]:
        """The splits that send the lowest bins of a group left; those that the column's own split sends right are left out."""
        drafts = [self._branch(g, list(range(a + 1))) for a in range(size - 1)]
        return tuple(in_short_decimals(self.problem, [draft.split for draft in drafts if draft.left == LEFT]))

    def _branch(self, g: int, chosen: list[int]) -> DraftBranch:
        draft = self.groups.branch(g, chosen, LEFT, RIGHT)
        assert isinstance(draft, DraftBranch)
        return draft

    # -- numbers -------------------------------------------------------------------------------------------------------

    def locate(self, question: int) -> tuple[int, int]:
        """The group of a question of the encoding, and the mask of the categories that go left."""
        g = int(np.searchsorted(self.starts, question, side="right")) - 1
        place = question - self.starts[g]
        return g, (1 << (place + 1)) - 1 if self.groups.ordered[g] else place + 1

    def number(self, g: int, mask: int) -> int:
        """The question that sends these categories left, of bins the lowest ones."""
        return self.starts[g] + (mask.bit_length() if self.groups.ordered[g] else mask) - 1

    def within_card(self, g: int, mask: int) -> bool:
        """Whether a subset, or what is outside it, is as small as `max_card` asks for."""
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
        """The number of the question; another one is held. A split written otherwise parts the rows as one of the encoding."""
        found, twin = self._known(split)
        if found >= 0:
            return found
        if split not in self.held:
            self.held.append(split)
            self.columns.append(split.used[0])
            if twin:
                self._twins.add(self.encoded + len(self.held) - 1)
        return self.encoded + self.held.index(split)

    def _known(self, split: Split) -> tuple[int, bool]:
        """The question of the encoding with this split or -1, and whether one parts the training rows in the same way."""
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
        own = goes_left(split, self.problem.matrix)
        return same, any(np.array_equal(goes_left(cut, self.problem.matrix), own) for cut in cuts.values())

    def _mask(self, g: int, split: Split) -> int:
        return sum(1 << a for a, code in enumerate(self.codes[g]) if code in split.among)

    def foreign(self, question: int) -> bool:
        return question >= self.encoded and question not in self._twins

    def of_column(self, column: int) -> list[int]:
        return [q for g in self.groups_of(column) for q in range(self.starts[g], self.starts[g + 1])]

    # -- categories that stay together -----------------------------------------------------------------------------------

    def together(self, split: Split) -> int:
        name = self.problem.table.names[split.used[0]]
        g = next(iter(self.groups_of(split.used[0])), None)
        levels = self.problem.table.schema[split.used[0]].categories
        absent = [levels[code] for code in split.among if g is None or code not in self.codes[g]]
        if g is None or absent:
            words = (
                f"'{name}' has no two categories in the training rows."
                if g is None
                else f"'{absent[0][:80]}' of '{name}' does not occur in the training rows."
            )
            raise ParameterError({"wish": f"{words} Only categories that occur can be kept together."})
        if self.groups.card:
            raise ParameterError(
                {
                    "wish": "'together' needs subsets of any size, and 'max_card' limits them; leave 'max_card' at 0 or this wish out."
                }
            )
        found = (g, self._mask(g, split))
        if found not in self.sets:
            self.sets.append(found)
        return FIRST_SET - self.sets.index(found)

    def barred(self, question: int, banned: frozenset[int]) -> bool:
        column = self.columns[question]
        if question < self.encoded and not self.within_card(*self.locate(question)):
            return True
        return column in banned or any(self._parts(question, column, number) for number in banned if number < 0)

    def _parts(self, question: int, column: int, number: int) -> bool:
        """Whether a question sends categories to both sides that stay together."""
        g, mask = self.sets[FIRST_SET - number]
        if column != self.groups.columns[g]:
            return False
        own = self._mask(g, self.splits[question])
        return bool(own & mask) and bool(~own & mask)

    def units(self, g: int, banned: frozenset[int]) -> list[int]:
        """The categories of a group as masks, those in one mask that stay together."""
        found = [1 << a for a in range(int(self.groups.sizes[g]))]
        for number in sorted(banned):
            if number >= 0 or self.sets[FIRST_SET - number][0] != g:
                continue
            mask = self.sets[FIRST_SET - number][1]
            joined = sum(unit for unit in found if unit & mask)
            found = [unit for unit in found if not unit & mask] + [joined]
        return sorted(found)
