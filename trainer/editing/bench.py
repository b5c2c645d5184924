"""Define `Bench`, which finds and prices trees under wishes, with shared caches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from trainer.data.costs import RowCosts
from trainer.data.problem import Problem
from trainer.editing.complete import Completer, Completion, QuestionPrice
from trainer.editing.space import NONE_BANNED, EditingSpace
from trainer.editing.wishes import EditConstraint, parse_all
from trainer.errors import ParameterError
from trainer.methods.base import Settings
from trainer.tree.nodes import Tree
from trainer.tree.shapes import LabelledShape


def cache_bytes(settings: Settings) -> int:
    """Return the bytes that the caches of a workbench may take."""
    return settings["memory_limit"] * 500_000 if settings["memory_limit"] else 1 << 30


class Alternative(NamedTuple):
    """A question that could stand at a node: `price` is the cost of the best tree with it beyond that of the best tree.

    The price is in rows, or in the unit of the costs. If `proved` is False, it is at least `price`.
    """

    question: str
    price: float
    proved: bool


class Bench:
    """A workbench that finds and prices trees under wishes in one space. Not thread-safe.

    `scope`: the questions that a claim covers, if the method knows them only with the rows.
    """

    scope = ""

    def __init__(self, problem: Problem, space: EditingSpace, completer: Completer) -> None:
        self.problem = problem
        self.space = space
        self.completer = completer
        self.prefix = completer.prefix
        self.depth = space.depth

    @property
    def questions(self) -> tuple[str, ...]:
        """The allowed questions of the encoding, in words."""
        questions = self.space.questions
        return tuple(questions.text(q) for q in range(questions.encoded) if not questions.is_barred(q, NONE_BANNED))

    def wishes(self, texts: Sequence[str]) -> tuple[EditConstraint, ...]:
        """Parse constraints and drop duplicates.

        Parameters
        ----------
        texts : sequence of str
            Constraints as text, such as "ask root age <= 50" (docs/argue.md).

        Returns
        -------
        tuple of EditConstraint

        Raises
        ------
        ParameterError
            If a text is not a constraint, or there are too many.
        """
        return parse_all(texts, self.space.questions)

    def complete(
        self,
        wishes: Sequence[str] = (),
        *,
        prices: bool = True,
        time_limit: float | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Completion:
        """Find the best tree that meets the constraints, a proved bound, and the price of each constraint in rows.

        Parameters
        ----------
        wishes : sequence of str
            Constraints as text, such as "ask root age <= 50" (docs/argue.md).
        prices : bool
            Whether to compute prices.
        time_limit : float, optional
            In seconds.
        stop : callable, optional
            Returns True to end the search; called about every 50 ms.

        Returns
        -------
        Completion
            With a `conflict` if no tree meets the constraints.

        Raises
        ------
        InfeasibleError
            No tree is within the limits, even without constraints.
        """
        read = self.wishes(wishes)
        self.space.begin(time_limit, stop)
        return self.completer.complete(read, prices=prices)

    def price_list(
        self,
        place: str,
        wishes: Sequence[str] = (),
        *,
        tree: LabelledShape = None,
        time_limit: float | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Iterator[QuestionPrice]:
        """Return the price of each split at a place of a tree; the prices are computed as the caller iterates.

        Parameters
        ----------
        place : str
            "root", or the letters of the path from the root, such as "y" or "yn".
        wishes : sequence of str
            Constraints as text, such as "ask root age <= 50" (docs/argue.md).
        tree : LabelledShape, optional
            The tree, by default the best one within the constraints.
        time_limit : float, optional
            In seconds.
        stop : callable, optional
            Returns True to end the search.

        Returns
        -------
        iterator of QuestionPrice
            In rows. If the search is stopped, the remaining prices are lower bounds.

        Raises
        ------
        ParameterError
            If a constraint is invalid, or the tree does not have the place.
        InfeasibleError
            If no tree is within the limits, even without constraints.
        """
        read = self.wishes(wishes)
        self.space.begin(time_limit, stop)
        if tree is None:
            tree = self.completer.complete(read, prices=False).tree
        word = "" if place == "root" else place
        try:
            self.completer.spot(read, tree, word)
        except KeyError:
            raise ParameterError(
                {
                    "place": f"the tree has no place '{place[:40]}'. Write 'root', or the answers from the root as in 'yn'."
                }
            ) from None
        return self.completer.price_list(read, tree, word)

    def alternatives(self, tree: Tree, node: int = 0, *, time_limit: float | None = None) -> list[Alternative]:
        """Return each possible split of a node with its price, the cheapest first. The splits above the node stay.

        Parameters
        ----------
        tree : Tree
            A tree whose splits are in the search space, such as a fitted one.
        node : int
            The id of a node.
        time_limit : float, optional
            In seconds. Prices that are not proved by then are lower bounds.

        Returns
        -------
        list of Alternative

        Raises
        ------
        ParameterError
            If a split of the tree is not in the search space.
        InfeasibleError
            If no tree is within the limits.
        """
        way = tree.path_to(node)
        place = "".join("y" if tree.nodes[a].left == b else "n" for a, b in pairwise(way)) or "root"
        prices = self.price_list(place, tree=self.shape(tree), time_limit=time_limit)
        listed = [Alternative(self.space.questions.text(p.question), self.price(p.price), p.proved) for p in prices]
        return sorted(listed, key=lambda alternative: alternative.price)

    def shape(self, tree: Tree, node: int = 0) -> LabelledShape:
        """Return a tree as nested tuples (question, yes, no), the inverse of `tree`.

        Parameters
        ----------
        tree : Tree
        node : int
            The root of the subtree, by default of all.

        Returns
        -------
        LabelledShape
        """
        at = tree.nodes[node]
        if at.split is None:
            return at.label
        return self.space.questions.find(at.split), self.shape(tree, at.left), self.shape(tree, at.right)

    def tree(self, shape: LabelledShape) -> Tree:
        """Convert a shape to a tree in the units of the columns, with counts of the training rows.

        Parameters
        ----------
        shape : LabelledShape
            Nested tuples (question, yes, no); a leaf is a class, or None for the majority.

        Returns
        -------
        Tree
        """
        rows = self.problem.source or self.problem
        return rows.settle(rows.tree(self.space.questions.draft(shape)))

    def cost(self, cost: Fraction | int) -> float:
        """Convert the cost or bound of a completion to the unit of the costs, leaves included; in rows without costs."""
        costs = self._costs
        return float(cost) if costs is None else costs.in_unit(costs.cost_of(1 - Fraction(cost) / self.problem.n))

    def price(self, price: Fraction | int) -> float:
        """Convert the price of a constraint or split to the unit of the costs; in rows without costs."""
        costs = self._costs
        return float(price) if costs is None else costs.in_unit(costs.price_of(Fraction(price) / self.problem.n))

    @property
    def rows_beyond(self) -> Fraction:
        """Return the cost of a tree without wrong copies, in weight of copies: 0 without costs; it may be negative."""
        costs = self._costs
        return (
            Fraction(0) if costs is None else costs.cost_of(Fraction(1)) / costs.price_of(Fraction(1)) * self.problem.n
        )

    @property
    def _costs(self) -> RowCosts | None:
        return None if self.problem.source is None else self.problem.source.costs
