"""The trees over counted questions, as a space for the search with wishes (`trainer.editing`).

A path names the rows of a place: int32 literals, 2 q for no to the counted question q and 2 q + 1 for yes, ascending.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from trainer.counts.folder import Counts
from trainer.counts.objective import CountedObjective
from trainer.counts.search import Counted, TreeSearch
from trainer.counts.search import Shape as CountedShape
from trainer.counts.train import mirrored_questions, oriented
from trainer.data.problem import Problem
from trainer.editing.questions import Questions
from trainer.editing.space import INFINITE_COST, DemandedQuestion, EditingSpace
from trainer.errors import ParameterError
from trainer.methods.base import Settings
from trainer.solver_common.problem_setup import pose
from trainer.table import Column, Labels, Table
from trainer.tree.describe import split_text
from trainer.tree.shapes import LabelledShape, Shape
from trainer.tree.splits import Split

MOST_COST = 1 << 61
COSTS = ("costs", "cost_unit")  # settings that need the classes of all rows
MOST_NAMED = 8  # counted questions that an error names


class CountedQuestionNames(Questions):
    """The counted questions, and the mirrored ones after them; `base` and `one_left` are those of `oriented`."""

    def __init__(self, counts: Counts, problem: Problem) -> None:
        self.problem = problem
        self.encoded = len(counts.questions)
        mirrored = mirrored_questions(counts)
        both = [oriented(counts, question) for question in range(self.encoded + len(mirrored))]
        self.base = [one.base for one in both]
        self.one_left = [one.one_left for one in both]
        self.held = []
        self.splits = [one.split for one in both]
        self.columns = [split.used[0] for split in self.splits]
        self.mirrors = {question: self.encoded + place for place, question in enumerate(mirrored)}

    def find(self, split: Split) -> int:
        """Return the number of a question; raise ParameterError for one that was not counted."""
        if split in self.splits:
            return self.splits.index(split)
        schema = self.problem.table.schema
        known = [self.wish(q) for q, other in enumerate(self.splits) if other.used == split.used]
        named = "; ".join(known[:MOST_NAMED]) or "none"
        words = f"the question '{split_text(split, schema)}' was not counted. Counted about this column: {named}."
        raise ParameterError({"wish": words})


class _Known(NamedTuple):
    """The least cost of a subproblem, which is always exact."""

    lower: int
    exact: bool = True


class CountedSpace(EditingSpace):
    """The trees over the counted questions."""

    questions: CountedQuestionNames

    def __init__(self, counts: Counts, settings: Settings, search: TreeSearch, objective: CountedObjective) -> None:
        super().__init__()
        self.counted_search = search
        self.problem = problem_of(counts, settings)
        self.questions = CountedQuestionNames(counts, self.problem)
        self.depth = search.depth
        self.min_leaf = search.min_leaf
        self.banned = _banned(counts, search)
        self.n_classes = len(counts.questions.classes)
        self.maximised = objective
        price = objective.price
        scale = (1 << self.depth) + 1
        if scale * (price.denominator * objective.total + (price.numerator << self.depth)) >= MOST_COST:
            words = "it has too many digits for exact integer costs. Round it to six digits."
            raise ParameterError({"leaf_penalty": words})
        self.scale = scale
        self.unit = scale * price.denominator
        self.leaf = scale * price.numerator + 1  # ties are broken by fewer leaves
        self.leaf_rows = price
        self._nodes: dict[bytes, Counted] = {}
        self._costs: dict[tuple[bytes, int, frozenset[int]], _Known] = {}

    @property
    def all_rows(self) -> np.ndarray:
        """The empty path."""
        return np.zeros(0, np.int32)

    def node(self, rows: np.ndarray) -> Counted:
        """Return the counts at a path."""
        key = rows.tobytes()
        if key not in self._nodes:
            node = self.counted_search.root
            for place, literal in enumerate(rows.tolist()):
                node = self.counted_search.sides(node, literal // 2, self.depth - place)[literal % 2]
            self._nodes[key] = node
        return self._nodes[key]

    def counts(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows of each class, or with costs the savings of each answer, whose sum replaces the number of rows."""
        return self.maximised.gain_of(self.node(rows).own.total).copy()

    def weight(self, rows: np.ndarray) -> int:
        return int(self.node(rows).own.total.sum())

    def separates(self, rows: np.ndarray, question: int) -> bool:
        allowed = self.node(rows).allowed[self.questions.base[question]]
        return bool(allowed) and super().separates(rows, question)

    def split(self, rows: np.ndarray, question: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the paths of the rows that go left, which answer yes, and of those that go right."""
        base = 2 * self.questions.base[question]
        one_left = int(self.questions.one_left[question])
        left, right = (np.sort(np.append(rows, np.int32(base + side))) for side in (one_left, 1 - one_left))
        return left, right

    def candidates(
        self, rows: np.ndarray, banned: frozenset[int], asks: list[DemandedQuestion], *, alike: bool
    ) -> list[int]:
        node = self.without(rows, banned)
        sizes = node.own.one.sum(axis=0)
        enough = np.minimum(sizes, int(node.own.total.sum()) - sizes) >= self.min_leaf
        columns = self.questions.columns
        found = np.flatnonzero(node.allowed & enough).tolist()
        return [q for q in found if all(ask.admits(columns[q], q) for ask in asks)]

    def without(self, rows: np.ndarray, banned: frozenset[int]) -> Counted:
        """Return the counts at a path, for trees without the banned columns."""
        node = self.node(rows)
        if not banned:
            return node
        columns = np.array(self.questions.columns[: self.questions.encoded], np.int64)
        return replace(node, allowed=node.allowed & ~np.isin(columns, sorted(banned)))

    def solve(
        self,
        rows: np.ndarray,
        path: tuple[int, ...] | None,
        height: int,
        banned: frozenset[int],
        ub: int = INFINITE_COST,
    ) -> _Known:
        key = (rows.tobytes(), height, banned)
        if key not in self._costs:
            node = self.without(rows, banned)
            self._costs[key] = _Known(min(self.cost_by_leaves(node, height, self.counted_search)))
        return self._costs[key]

    def cost_by_leaves(self, node: Counted, height: int, search: TreeSearch) -> list[int]:
        """Return the least costs of trees with at most 1, 2, … leaves; INFINITE_COST where a leaf would be too small."""
        most = int(self.maximised.gain_of(node.own.total).sum())
        correct = search.best_of(node, height).correct
        return [
            self.unit * (most - won) + self.leaf * size if won >= 0 else INFINITE_COST
            for size, won in enumerate(correct, 1)
        ]

    def tree(
        self, rows: np.ndarray, path: tuple[int, ...] | None, height: int, banned: frozenset[int], cost: int
    ) -> Shape:
        node = self.without(rows, banned)
        leaves = self.cost_by_leaves(node, height, self.counted_search).index(cost) + 1
        shape = self.as_questions(self.counted_search.shape_of(node, height, leaves))
        return shape if isinstance(shape, tuple) else None

    def as_questions(self, shape: CountedShape) -> LabelledShape:
        """Convert (question, no side, yes side) to (question, left, right)."""
        if not isinstance(shape, tuple):
            return None if shape < 0 else shape
        zero, one = (self.as_questions(part) for part in shape[1:])
        return (shape[0], one, zero) if self.questions.one_left[shape[0]] else (shape[0], zero, one)

    def as_counted(self, tree: LabelledShape) -> CountedShape:
        """Convert (question, left, right) to (question, no side, yes side)."""
        if not isinstance(tree, tuple):
            return -1 if tree is None else tree
        left, right = (self.as_counted(part) for part in tree[1:])
        return (tree[0], right, left) if self.questions.one_left[tree[0]] else (tree[0], left, right)

    @property
    def nodes(self) -> int:
        return len(self._costs)

    def exact_cost(self, cost: int) -> Fraction:
        return Fraction(cost // self.scale, self.leaf_rows.denominator)


def problem_of(counts: Counts, settings: Settings) -> Problem:
    """Return one row with the weight of all: it names columns and classes, and where cells may be empty."""
    encoding = counts.questions.encoding
    empty = {feature.column for feature in encoding.features if feature.empty is not None or feature.test == "empty"}
    columns = tuple(
        Column(schema=own, cells=np.array([np.nan if j in empty else 0.0])) for j, own in enumerate(encoding.schema)
    )
    labels = Labels(name=counts.questions.target, classes=counts.questions.classes, codes=np.zeros(1, np.int32))
    table = Table(columns=columns, row_numbers=np.ones(1, np.int64))
    plain = Settings({name: value for name, value in settings.items() if name not in COSTS} | dict.fromkeys(COSTS, ""))
    return pose(table, labels, plain, weights=np.array([counts.rows], np.int64))


def _banned(counts: Counts, search: TreeSearch) -> frozenset[int]:
    """Return the forbidden columns that have questions."""
    features = counts.questions.encoding.features
    return frozenset(f.column for f, allowed in zip(features, search.allowed.tolist(), strict=True) if not allowed)
