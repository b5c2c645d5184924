"""Define the workbench over subsets of categories and cuts between bins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from trainer.data.problem import Problem
from trainer.editing.bench import Bench
from trainer.editing.complete import ColumnCompleter, QuestionPrice
from trainer.editing.prefix import PrefixBound
from trainer.editing.questions import path_to
from trainer.editing.space import INFINITE_COST
from trainer.editing.wishes import EditConstraint, Item, held_questions
from trainer.errors import ParameterError
from trainer.families.odt.choice import AUTO
from trainer.families.odt.editing.prefix import SubsetPrefix
from trainer.families.odt.editing.space import SubsetSpace
from trainer.families.odt.grouping import make_groups, scope
from trainer.families.odt.groups import Groups
from trainer.families.odt.topology import Shape, complete, parse
from trainer.methods.base import Settings
from trainer.tree.shapes import LabelledShape

SEARCHES = ("auto", "search")
ACCURACY = "is not possible with wishes, which maximise the number of correct rows. Leave '{}' out."


class TopologyCompleter(ColumnCompleter):
    """A completer for topologies that are not complete, where the sides of a split share its parts."""

    def price_list(self, wishes: Sequence[EditConstraint], tree: LabelledShape, place: str) -> Iterator[QuestionPrice]:
        """Yield a price for each column: its cheapest split at `place` in the best tree with the splits above it."""
        stay = held_questions(wishes, self.space.questions)
        items_kept = frozenset(w.item for w in wishes if w.place != place or w.item.verb not in ("ask", "leaf")) | stay
        path = path_to(tree, place)
        columns = self.space.questions.columns
        items_kept |= {Item("ask", place[:k], q, columns[q]) for k, q in enumerate(path)}
        least = self._least(items_kept, INFINITE_COST)
        base = self.space.exact_cost(least.lower if least.exact else min(least.upper, INFINITE_COST - 1))
        for column in range(len(self.space.problem.table.names)):
            items = items_kept | {Item("ask", place, -1, column)}
            solution = self._least(items, INFINITE_COST)
            if solution.exact and solution.upper < INFINITE_COST:
                yield self._make_price(self._tree(self.prefix.top(items), solution), place, solution, base, least.exact)
            elif solution.lower < INFINITE_COST and (example := self._first_question(column)) is not None:
                price = max(Fraction(0), self.space.exact_cost(solution.lower) - base)
                yield QuestionPrice(question=example, price=price, proved=False)

    def _make_price(
        self, tree: LabelledShape, place: str, solution: PrefixBound, base: Fraction, proved: bool
    ) -> QuestionPrice:
        part = tree
        rows = self.space.all_rows
        for letter in place:
            assert isinstance(part, tuple)
            yes, no = self.space.split(rows, part[0])
            part, rows = (part[1], yes) if letter == "y" else (part[2], no)
        assert isinstance(part, tuple)
        errors, leaves = self.space.cost_of(part, rows)
        price = max(Fraction(0), self.space.exact_cost(solution.upper) - base)
        return QuestionPrice(question=part[0], price=price, proved=proved, errors=errors, leaves=leaves, tree=part)

    def _first_question(self, column: int) -> int | None:
        return next((q for q in range(self.space.questions.encoded) if self.space.questions.columns[q] == column), None)


class SubsetWorkbench(Bench):
    """Workbench over trees of depth ≤ `depth`, or of the topology `shape`, with subset and threshold splits.

    The children of a node may be exchanged. Numeric columns have at most `bins` bins. A subset, or its complement, has at most `card`
    categories (0: any number). Raises DataError for columns with too many categories.
    """

    def __init__(
        self, problem: Problem, *, depth: int = 2, shape: Shape | None = None, bins: int = 10, card: int = 0
    ) -> None:
        self.groups: Groups = make_groups(problem, bins, card)
        shape = complete(depth) if shape is None else shape
        space = SubsetSpace(problem, self.groups, shape=shape)
        is_complete = shape is None or shape == complete(shape.depth)
        prefix = SubsetPrefix(space)
        super().__init__(problem, space, ColumnCompleter(prefix) if is_complete else TopologyCompleter(prefix))
        self.space: SubsetSpace = space


def subset_bench(problem: Problem, settings: Settings) -> SubsetWorkbench:
    """Make a workbench for the settings of the method. Raises ParameterError if they do not support editing."""
    check_wishes(settings)
    shape = _shape(settings)
    bench = SubsetWorkbench(
        problem, depth=settings["depth"], shape=shape, bins=settings["bins"], card=settings["max_card"]
    )
    bench.scope = scope(problem, shape or complete(settings["depth"]), bench.groups, settings)
    return bench


def check_wishes(settings: Settings) -> None:
    """Raise ParameterError if the settings do not support editing."""
    if settings["solver"] not in SEARCHES:
        message = f"'{settings['solver']}' does not support wishes. Choose 'auto' or 'search'."
        raise ParameterError({"solver": message})
    for name in ("sensitivity", "specificity", "frontier"):
        if settings[name] is not None and settings[name] is not False:
            raise ParameterError({name: ACCURACY.format(name)})
    if settings["negative_weight"].strip() not in ("", "1"):
        raise ParameterError({"negative_weight": ACCURACY.format("negative_weight")})
    if settings["select"] != "none":
        message = "must be 'none' with wishes, which are about all columns. Leave a column out by the wish 'forbid root COLUMN'."
        raise ParameterError({"select": message})
    _shape(settings)


def _shape(settings: Settings) -> Shape | None:
    """Return the topology of the settings; None: all trees of the depth. Raises ParameterError for `auto`."""
    text = settings["topology"].strip()
    if text == AUTO:
        message = "'auto' does not support wishes. Name a topology, or leave it empty and choose a depth."
        raise ParameterError({"topology": message})
    return parse(text) if text else None
