"""`Bench`: wishes with prices and proofs on one problem; what was searched stays for what comes next."""

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
    """Wishes on the trees of one space. Not for several threads at once.

    `scope`: of which questions a claim speaks, where the method knows it only with the rows.
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
        """The questions of the encoding in words."""
        questions = self.space.questions
        return tuple(questions.text(q) for q in range(questions.encoded) if not questions.barred(q, NONE_BANNED))

    def wishes(self, texts: Sequence[str]) -> tuple[EditConstraint, ...]:
        """The wishes that texts express (`trainer.editing.wishes.GRAMMAR`). Raises ParameterError."""
        return parse_all(texts, self.space.questions)

    def complete(
        self,
        wishes: Sequence[str] = (),
        *,
        prices: bool = True,
        time_limit: float | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Completion:
        """The best tree that keeps the wishes, with a proved bound and the price of each wish, costs in rows.

        time_limit in seconds; `stop()` is asked about every 50 ms. Wishes that no tree keeps come back with a `conflict`. Raises
        InfeasibleError if no tree is within the limits, whatever the wishes.
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
        """What each question would cost at a place ('root', 'y', ...) of `tree`, by default the best tree with the wishes.

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
            raise ParameterError({"place": f"the tree has no place '{place}'."}) from None
        return self.completer.price_list(read, tree, word)

    def tree(self, shape: LabelledShape) -> Tree:
        """The tree of a shape (question, yes, no) in the columns' own units, counted over the training rows."""
        return self.problem.settle(self.problem.tree(self.space.questions.draft(shape)))
