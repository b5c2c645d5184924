"""The space of `odt`: rows in groups of categories, and the best subtrees over subsets; a search for each set of what is banned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from trainer.data.problem import Problem
from trainer.editing import space as editing
from trainer.editing.space import INFINITE_COST, NONE_BANNED, DemandedQuestion
from trainer.errors import DataError
from trainer.families.odt.editing.questions import SubsetQuestions
from trainer.families.odt.groups import Groups
from trainer.families.odt.groups import split as parted
from trainer.families.odt.search import LevelLimitReached, SubsetSearch
from trainer.families.odt.topology import Shape, canonical, complete
from trainer.tree.nodes import Draft, DraftLeaf
from trainer.tree.shapes import Shape as TreeShape
from trainer.tree.splits import Split

MOST_QUESTIONS = 140_000  # one column of 17 categories has 131,070
MOST_SEARCHES = 12  # sets of what is banned for which searches are kept


@dataclass(frozen=True)
class MemoBound:
    """What is known of a subproblem: a lower bound of its errors, and whether it is exact."""

    lower: int
    exact: bool


@dataclass(frozen=True)
class Allowed:
    """What may be asked: the groups, their categories as masks (one for all that stay together), and the search over them."""

    groups: tuple[int, ...]
    units: dict[int, list[int]]
    search: SubsetSearch | None


class SubsetSpace(editing.EditingSpace):
    """Trees of a topology, either way round at each node. Leaves cost nothing, so that a cost is the weight of the wrong rows.

    Raises DataError for columns that have too many subsets to argue about.
    """

    questions: SubsetQuestions

    def __init__(self, problem: Problem, groups: Groups, *, shape: Shape | None) -> None:
        super().__init__()
        self.origin = np.flatnonzero(groups.w > 0)
        if not len(self.origin):
            raise DataError("The weights of all rows are zero.")
        _check_size(problem, groups)
        self.problem = problem
        self.questions = SubsetQuestions(problem, groups)
        self.groups = replace(groups, cat=groups.cat[self.origin], y=groups.y[self.origin], w=groups.w[self.origin])
        self.shape = canonical(shape)
        self.depth = shape.depth if shape is not None else 0
        self.min_leaf = 1
        self.banned = NONE_BANNED
        self.weights = self.groups.w
        self.classes = self.groups.y
        self.n_classes = problem.n_classes
        self.unit = 1
        self.leaf = 0
        self.leaf_rows = Fraction(0)
        self._allowed: dict[frozenset[int], Allowed] = {}
        self._searched = 0

    @property
    def all_rows(self) -> np.ndarray:
        return np.arange(len(self.weights))

    # -- questions -----------------------------------------------------------------------------------------------------

    def split(self, rows: np.ndarray, question: int) -> tuple[np.ndarray, np.ndarray]:
        if question < self.questions.encoded:
            return parted(self.groups, rows, *self.questions.locate(question))
        yes = self.questions.answers(question)[self.origin[rows]]
        return rows[yes], rows[~yes]

    def candidates(
        self, rows: np.ndarray, banned: frozenset[int], asks: list[DemandedQuestion], *, alike: bool
    ) -> list[int]:
        named = sorted({q for a in asks for q in a.named})
        if named:
            return [q for q in named if self.fits(q, banned, asks) and self.parts(rows, q)]
        return [q for g in self.usable(banned, asks) for q in self.of_group(g, rows, banned, alike=alike)]

    def usable(self, banned: frozenset[int], asks: list[DemandedQuestion]) -> list[int]:
        """The groups that may be asked and that every one of `asks` admits."""
        found = self.allowed(banned).groups
        return [g for g in found if all(a.column == self.groups.columns[g] for a in asks)]

    def of_group(self, g: int, rows: np.ndarray, banned: frozenset[int], *, alike: bool) -> list[int]:
        """The questions about a group that part the rows, each partition once; `alike`: a subset and its complement."""
        present = self.present(g, rows)
        if self.groups.ordered[g]:
            cuts = [a for a in range(int(self.groups.sizes[g])) if present >> a & 1][:-1]
            return [self.questions.number(g, (1 << (a + 1)) - 1) for a in cuts if a < len(self.questions.cuts[g])]
        units = [unit for unit in self.allowed(banned).units[g] if unit & present]
        masks = [0]
        for unit in units[:-1] if not alike else units:
            masks += [mask | unit for mask in masks]
        found = (self.subset(g, mask, present, banned) for mask in masks[1 : len(masks) - alike])
        return [q for q in found if q is not None]

    def present(self, g: int, rows: np.ndarray) -> int:
        """The categories of a group that occur among rows, as a mask."""
        return sum(1 << int(a) for a in np.unique(self.groups.cat[rows, g]))

    def subset(self, g: int, mask: int, present: int, banned: frozenset[int]) -> int | None:
        """The question of the encoding that parts rows with the `present` categories as the mask does; None if none is allowed.

        Categories that are not present go right, unless they stay with one that goes left or the limit of sizes asks for left.
        """
        sent = sum(unit for unit in self.allowed(banned).units[g] if unit & mask & present)
        if not self.questions.within_card(g, sent):
            sent |= ((1 << int(self.groups.sizes[g])) - 1) & ~present
        return self.questions.number(g, sent) if self.questions.within_card(g, sent) else None

    # -- optimal subtrees ----------------------------------------------------------------------------------------------

    def allowed(self, banned: frozenset[int]) -> Allowed:
        """What may be asked beside what is banned, with the search that keeps what it finds."""
        found = self._allowed.pop(banned, None)
        if found is None:
            found = self._make(banned)
            while len(self._allowed) >= MOST_SEARCHES:
                self._searched += _nodes(self._allowed.pop(next(iter(self._allowed))))
        self._allowed[banned] = found  # the last used is the last
        return found

    def _make(self, banned: frozenset[int]) -> Allowed:
        every = range(len(self.groups.sizes))
        units = {g: self.questions.units(g, banned) for g in every if self.groups.columns[g] not in banned}
        used = tuple(g for g in units if len(units[g]) > 1)
        if not used or self.shape is None:
            return Allowed(used, units, None)
        joined = _merge_categories(self.groups, used, units)
        return Allowed(used, units, SubsetSearch(groups=joined, root=self.shape, stopped=self.stopped, flag=self.flag))

    def solve(
        self,
        rows: np.ndarray,
        path: tuple[int, ...] | None,
        height: int,
        banned: frozenset[int],
        ub: int = INFINITE_COST,
        room: Shape | None = None,
    ) -> MemoBound:
        """As in every space; `room`: the topology, where it is not that of all trees of the height."""
        counts = self.counts(rows)
        leaf = self.leaf_cost(counts)
        floor = self.floor(counts, height)
        search = self.allowed(banned).search
        if height <= 0 or search is None or floor >= leaf:
            return MemoBound(leaf, True)
        if floor >= ub:
            return MemoBound(floor, False)
        total = int(counts.sum())
        least = max(-1, total - ub)  # right rows that are not enough
        try:
            right = search.value(room or complete(height), rows, least)
        except LevelLimitReached:
            return MemoBound(max(floor, total - search.ceiling(rows)), False)
        return MemoBound(total - right, True) if right > least else MemoBound(max(floor, ub), False)

    def tree(
        self,
        rows: np.ndarray,
        path: tuple[int, ...] | None,
        height: int,
        banned: frozenset[int],
        cost: int,
        room: Shape | None = None,
    ) -> TreeShape:
        search = self.allowed(banned).search
        if height <= 0 or search is None or self.leaf_cost(self.counts(rows)) <= cost:
            return None
        _, draft = search.solve(room or complete(height), rows)
        assert draft is not None
        return self._shape(draft, rows, banned)

    def _shape(self, draft: Draft, rows: np.ndarray, banned: frozenset[int]) -> TreeShape:
        """A draft of the search as (question, yes, no); what its questions do not part is left out."""
        if isinstance(draft, DraftLeaf):
            return None
        g, chosen = self.groups.question(draft.split)
        mask = sum(1 << a for a in chosen)
        present = self.present(g, rows)
        yes, no = parted(self.groups, rows, g, mask)
        if not len(yes) or not len(no):
            return self._shape(draft.left if len(yes) else draft.right, rows, banned)
        question = self.questions.number(g, mask) if self.groups.ordered[g] else self.subset(g, mask, present, banned)
        assert question is not None
        return question, self._shape(draft.left, yes, banned), self._shape(draft.right, no, banned)

    def exact_cost(self, cost: int) -> Fraction:
        return Fraction(cost)

    @property
    def nodes(self) -> int:
        return self._searched + sum(_nodes(found) for found in self._allowed.values())


def _nodes(allowed: Allowed) -> int:
    return 0 if allowed.search is None else allowed.search.nodes


def _check_size(problem: Problem, groups: Groups) -> None:
    """Raise DataError if there are more questions than can be gone through one by one."""
    counts = dict.fromkeys(groups.columns, 0)
    for column, size, ordered in zip(groups.columns, groups.sizes.tolist(), groups.ordered.tolist(), strict=True):
        counts[column] += size - 1 if ordered else (1 << size) - 2
    if sum(counts.values()) > MOST_QUESTIONS:
        worst = max(counts, key=lambda column: counts[column])
        raise DataError(
            f"The columns have {sum(counts.values()):,} subsets of categories, '{problem.table.names[worst]}' alone {counts[worst]:,}; "
            f"wishes are searched among at most {MOST_QUESTIONS:,}. Merge rare categories or leave the column out."
        )


def _merge_categories(groups: Groups, used: tuple[int, ...], units: dict[int, list[int]]) -> Groups:
    """Some of the groups, with units of categories in place of categories."""
    members = {g: [[a for a in range(unit.bit_length()) if unit >> a & 1] for unit in units[g]] for g in used}
    place = {g: {a: u for u, own in enumerate(members[g]) for a in own} for g in used}
    cat = np.zeros((len(groups.y), len(used)), np.int32)
    for j, g in enumerate(used):
        cat[:, j] = np.array([place[g][a] for a in range(len(place[g]))], np.int32)[groups.cat[:, g]]

    def branch(j: int, chosen: list[int], left: Draft, right: Draft) -> Draft:
        own = [a for u in chosen for a in members[used[j]][u]]
        return groups.branch(used[j], sorted(own), left, right)

    def question(split: Split) -> tuple[int, list[int]]:
        g, chosen = groups.question(split)
        return used.index(g), sorted({place[g][a] for a in chosen})

    return replace(
        groups, cat=np.ascontiguousarray(cat), sizes=np.array([len(units[g]) for g in used], np.int64),
        ordered=groups.ordered[list(used)], columns=tuple(groups.columns[g] for g in used), branch=branch, question=question,
    )  # fmt: skip
