"""`Bench`: wishes with prices and proofs on one problem, with shared caches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

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


class Bench:
    """Wishes on the trees of one space. Not thread-safe.

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
        """Questions of the encoding in words."""
        questions = self.space.questions
        return tuple(questions.text(q) for q in range(questions.encoded) if not questions.is_barred(q, NONE_BANNED))

    def wishes(self, texts: Sequence[str]) -> tuple[EditConstraint, ...]:
        """Parse wishes (`trainer.editing.wishes.GRAMMAR`). Raises ParameterError."""
        return parse_all(texts, self.space.questions)

    def complete(
        self,
        wishes: Sequence[str] = (),
        *,
        prices: bool = True,
        time_limit: float | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Completion:
        """Find the best tree that satisfies the wishes, a proved bound, and the price of each wish in rows.

        Parameters
        ----------
        wishes : sequence of str
            Wishes in the grammar of `trainer.editing.wishes.GRAMMAR`.
        prices : bool
            Whether to compute prices.
        time_limit : float, optional
            In seconds.
        stop : callable, optional
            Returns True to end the search; called about every 50 ms.

        Returns
        -------
        Completion
            With a `conflict` if no tree satisfies the wishes.

        Raises
        ------
        InfeasibleError
            No tree is within the limits, even without wishes.
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
        """Return the price of each question at a place ('root', 'y', ...) of `tree`, by default the best tree with the wishes.

        Raises ParameterError if the tree does not have the place.
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

    def tree(self, shape: LabelledShape) -> Tree:
        """Convert a shape (question, yes, no) to a tree in the units of the columns, with counts of the training rows."""
        return self.problem.settle(self.problem.tree(self.space.questions.draft(shape)))
