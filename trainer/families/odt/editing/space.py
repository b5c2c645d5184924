"""Find optimal subtrees over subsets for the workbench of `odt`."""

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
from trainer.families.odt.levels import LevelLimitReached
from trainer.families.odt.search import SubsetSearch
from trainer.families.odt.topology import Shape, canonical, complete
from trainer.tree.nodes import Draft, DraftLeaf
from trainer.tree.shapes import Shape as TreeShape
from trainer.tree.splits import Split

MAX_QUESTIONS = 140_000  # limit on the questions of a table; one column of 17 categories has 131,070
MAX_SEARCHES = 12  # limit on the cached searches, one per set of banned columns


@dataclass(frozen=True)
class MemoBound:
    """A lower bound on the errors of a subproblem, and whether it is exact."""

    lower: int
    exact: bool


@dataclass(frozen=True)
class Allowed:
    """Allowed groups, their categories as masks (one for joined categories), and the search over them, if any."""

    groups: tuple[int, ...]
    units: dict[int, list[int]]
    search: SubsetSearch | None


class SubsetSpace(editing.EditingSpace):
    """Trees of a topology, up to exchanged children. Leaves cost nothing: a cost is the weight of the misclassified rows.

    Raises DataError for columns with too many subsets.
    """

    questions: SubsetQuestions

    def __init__(self, problem: Problem, groups: Groups, *, shape: Shape | None) -> None:
        super().__init__()
        self.origin = np.flatnonzero(groups.w > 0)
        if not len(self.origin):
            raise DataError("The weights of all rows are zero. Give at least one row a positive weight.")
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
        demanded = sorted({q for a in asks for q in a.questions})
        if demanded:
            return [q for q in demanded if self.fits(q, banned, asks) and self.separates(rows, q)]
        return [q for g in self.usable(banned, asks) for q in self.of_group(g, rows, banned, alike=alike)]

    def usable(self, banned: frozenset[int], asks: list[DemandedQuestion]) -> list[int]:
        """Return the allowed groups that all `asks` admit."""
        groups = self.allowed(banned).groups
        return [g for g in groups if all(a.column == self.groups.columns[g] for a in asks)]

    def of_group(self, g: int, rows: np.ndarray, banned: frozenset[int], *, alike: bool) -> list[int]:
        """Return the questions of a group that split the rows, one per partition; `alike`: complements of subsets, too."""
        present = self.present(g, rows)
        if self.groups.ordered[g]:
            cuts = [a for a in range(int(self.groups.sizes[g])) if present >> a & 1][:-1]
            return [self.questions.number(g, (1 << (a + 1)) - 1) for a in cuts if a < len(self.questions.cuts[g])]
        units = [unit for unit in self.allowed(banned).units[g] if unit & present]
        masks = [0]
        for unit in units[:-1] if not alike else units:
            masks += [mask | unit for mask in masks]
        questions = (self.subset(g, mask, present, banned) for mask in masks[1 : len(masks) - alike])
        return [q for q in questions if q is not None]

    def present(self, g: int, rows: np.ndarray) -> int:
        """Return the categories of a group that occur among rows, as a mask."""
        return sum(1 << int(a) for a in np.unique(self.groups.cat[rows, g]))

    def subset(self, g: int, mask: int, present: int, banned: frozenset[int]) -> int | None:
        """Return the encoded question that splits the `present` categories like the mask; None if none is allowed.

        Absent categories go right, unless they are joined with one that goes left, or the size limit requires left.
        """
        sent = sum(unit for unit in self.allowed(banned).units[g] if unit & mask & present)
        if not self.questions.within_card(g, sent):
            sent |= ((1 << int(self.groups.sizes[g])) - 1) & ~present
        return self.questions.number(g, sent) if self.questions.within_card(g, sent) else None

    # -- optimal subtrees ----------------------------------------------------------------------------------------------

    def allowed(self, banned: frozenset[int]) -> Allowed:
        """Return the allowed groups under `banned`, with their cached search."""
        entry = self._allowed.pop(banned, None)
        if entry is None:
            entry = self._make(banned)
            while len(self._allowed) >= MAX_SEARCHES:
                self._searched += _nodes(self._allowed.pop(next(iter(self._allowed))))
        self._allowed[banned] = entry  # insert last, so that the least recently used entry is evicted first
        return entry

    def _make(self, banned: frozenset[int]) -> Allowed:
        every = range(len(self.groups.sizes))
        units = {g: self.questions.units(g, banned) for g in every if self.groups.columns[g] not in banned}
        usable = tuple(g for g in units if len(units[g]) > 1)
        if not usable or self.shape is None:
            return Allowed(usable, units, None)
        joined = _merge_categories(self.groups, usable, units)
        return Allowed(
            usable, units, SubsetSearch(groups=joined, root=self.shape, stopped=self.stopped, flag=self.flag)
        )

    def solve(
        self,
        rows: np.ndarray,
        path: tuple[int, ...] | None,
        height: int,
        banned: frozenset[int],
        ub: int = INFINITE_COST,
        room: Shape | None = None,
    ) -> MemoBound:
        """Return the least errors on the rows if they are below `ub`, else a lower bound.

        `room` is the topology; None: all trees of the height.
        """
        counts = self.counts(rows)
        leaf = self.leaf_cost(counts)
        floor = self.floor(counts, height)
        search = self.allowed(banned).search
        if height <= 0 or search is None or floor >= leaf:
            return MemoBound(leaf, True)
        if floor >= ub:
            return MemoBound(floor, False)
        total = int(counts.sum())
        least = max(-1, total - ub)  # only more correct rows than this are useful
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
        """Return a draft as (question, yes, no), without splits that separate no rows."""
        if isinstance(draft, DraftLeaf):
            return None
        g, categories = self.groups.question(draft.split)
        mask = sum(1 << a for a in categories)
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
        return self._searched + sum(_nodes(entry) for entry in self._allowed.values())


def _nodes(allowed: Allowed) -> int:
    return 0 if allowed.search is None else allowed.search.nodes


def _check_size(problem: Problem, groups: Groups) -> None:
    """Raise DataError if there are too many questions to enumerate."""
    counts = dict.fromkeys(groups.columns, 0)
    for column, size, ordered in zip(groups.columns, groups.sizes.tolist(), groups.ordered.tolist(), strict=True):
        counts[column] += size - 1 if ordered else (1 << size) - 2
    if sum(counts.values()) > MAX_QUESTIONS:
        worst = max(counts, key=lambda column: counts[column])
        raise DataError(
            f"The columns have {sum(counts.values()):,} subsets of categories, '{problem.table.names[worst]}' alone {counts[worst]:,}. "
            f"The limit for wishes is {MAX_QUESTIONS:,}. Merge rare categories or leave the column out."
        )


def _merge_categories(groups: Groups, used: tuple[int, ...], units: dict[int, list[int]]) -> Groups:
    """Return the `used` groups with units of joined categories in place of categories."""
    members = {g: [[a for a in range(unit.bit_length()) if unit >> a & 1] for unit in units[g]] for g in used}
    place = {g: {a: u for u, unit_members in enumerate(members[g]) for a in unit_members} for g in used}
    cat = np.zeros((len(groups.y), len(used)), np.int32)
    for j, g in enumerate(used):
        cat[:, j] = np.array([place[g][a] for a in range(len(place[g]))], np.int32)[groups.cat[:, g]]

    def branch(j: int, chosen: list[int], left: Draft, right: Draft) -> Draft:
        categories = [a for u in chosen for a in members[used[j]][u]]
        return groups.branch(used[j], sorted(categories), left, right)

    def question(split: Split) -> tuple[int, list[int]]:
        g, chosen = groups.question(split)
        return used.index(g), sorted({place[g][a] for a in chosen})

    return replace(
        groups,
        cat=np.ascontiguousarray(cat),
        sizes=np.array([len(units[g]) for g in used], np.int64),
        ordered=groups.ordered[list(used)],
        columns=tuple(groups.columns[g] for g in used),
        branch=branch,
        question=question,
    )
