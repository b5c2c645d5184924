"""`SubsetWorkbench`: wishes with prices and proofs on one problem, over subsets of categories and cuts between bins."""

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
ACCURACY = "wishes are about the number of right rows; leave '{}' out."


class TopologyCompleter(ColumnCompleter):
    """Answers about wishes where the sides of a question share out a topology: what one of them takes, the other has not."""

    def price_list(self, wishes: Sequence[EditConstraint], tree: LabelledShape, place: str) -> Iterator[QuestionPrice]:
        """One line for each column: its cheapest question at the place in the best whole tree with the questions above it."""
        stay = held_questions(wishes, self.space.questions)
        kept = frozenset(w.item for w in wishes if w.place != place or w.item.verb not in ("ask", "leaf")) | stay
        path = path_to(tree, place)
        columns = self.space.questions.columns
        kept |= {Item("ask", place[:k], q, columns[q]) for k, q in enumerate(path)}
        least = self._least(kept, INFINITE_COST)
        base = self.space.exact_cost(least.lower if least.exact else min(least.upper, INFINITE_COST - 1))
        for column in range(len(self.space.problem.table.names)):
            items = kept | {Item("ask", place, -1, column)}
            found = self._least(items, INFINITE_COST)
            if found.exact and found.upper < INFINITE_COST:
                yield self._line(self._tree(self.prefix.top(items), found), place, found, base, least.exact)
            elif found.lower < INFINITE_COST and (some := self._some(column)) is not None:
                price = max(Fraction(0), self.space.exact_cost(found.lower) - base)
                yield QuestionPrice(question=some, price=price, proved=False)

    def _line(self, tree: LabelledShape, place: str, found: PrefixBound, base: Fraction, proved: bool) -> QuestionPrice:
        part = tree
        rows = self.space.all_rows
        for letter in place:
            assert isinstance(part, tuple)
            yes, no = self.space.split(rows, part[0])
            part, rows = (part[1], yes) if letter == "y" else (part[2], no)
        assert isinstance(part, tuple)
        errors, leaves = self.space.cost_of(part, rows)
        price = max(Fraction(0), self.space.exact_cost(found.upper) - base)
        return QuestionPrice(question=part[0], price=price, proved=proved, errors=errors, leaves=leaves, tree=part)

    def _some(self, column: int) -> int | None:
        """Some question about a column."""
        return next((q for q in range(self.space.questions.encoded) if self.space.questions.columns[q] == column), None)


class SubsetWorkbench(Bench):
    """Trees of depth ≤ `depth`, or of the topology `shape`, either way round at each node, whose questions are subsets of categories, or cuts between at most `bins` bins of numbers.

    `card`: the most categories that a subset, or what is outside it, may have (0: any number). Raises DataError for columns with too
    many categories.
    """

    def __init__(
        self, problem: Problem, *, depth: int = 2, shape: Shape | None = None, bins: int = 10, card: int = 0
    ) -> None:
        self.groups: Groups = make_groups(problem, bins, card)
        shape = complete(depth) if shape is None else shape
        space = SubsetSpace(problem, self.groups, shape=shape)
        whole = shape is None or shape == complete(shape.depth)
        prefix = SubsetPrefix(space)
        super().__init__(problem, space, ColumnCompleter(prefix) if whole else TopologyCompleter(prefix))
        self.space: SubsetSpace = space


def subset_bench(problem: Problem, settings: Settings) -> SubsetWorkbench:
    """A workbench with the settings of the method. Raises ParameterError for those that wishes do not go with."""
    check_wishes(settings)
    shape = _shape(settings)
    bench = SubsetWorkbench(
        problem, depth=settings["depth"], shape=shape, bins=settings["bins"], card=settings["max_card"]
    )
    bench.scope = scope(problem, shape or complete(settings["depth"]), bench.groups, settings)
    return bench


def check_wishes(settings: Settings) -> None:
    """Raise ParameterError where the trees of these settings cannot be argued with."""
    if settings["solver"] not in SEARCHES:
        words = (
            f"wishes are searched by the method's own search, not by {settings['solver']}; choose 'auto' or 'search'."
        )
        raise ParameterError({"solver": words})
    for name in ("sensitivity", "specificity", "frontier"):
        if settings[name] is not None and settings[name] is not False:
            raise ParameterError({name: ACCURACY.format(name)})
    if settings["negative_weight"].strip() not in ("", "1"):
        raise ParameterError({"negative_weight": ACCURACY.format("negative_weight")})
    if settings["select"] != "none":
        words = "wishes are about all columns; choose 'none', and forbid columns by wishes as 'forbid root COLUMN'."
        raise ParameterError({"select": words})
    _shape(settings)


def _shape(settings: Settings) -> Shape | None:
    """The topology that was asked for; None: all trees of the depth. Raises ParameterError where it is to be chosen from the data."""
    text = settings["topology"].strip()
    if text == AUTO:
        words = "wishes are about one topology, and this one is chosen from the data; name it, or leave it empty and choose a depth."
        raise ParameterError({"topology": words})
    return parse(text) if text else None
