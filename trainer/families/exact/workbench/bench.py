"""`Workbench`: wishes with prices and proofs, and all good trees, on one problem; what was searched stays for what comes next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

from trainer.data.problem import Problem
from trainer.errors import ParameterError
from trainer.families.exact.workbench.complete import Completer, Completion, QuestionPrice
from trainer.families.exact.workbench.count import Stopped
from trainer.families.exact.workbench.fronts import Limits
from trainer.families.exact.workbench.good import Filters, GoodTrees, first_trees, limit_of
from trainer.families.exact.workbench.limited import LimitedCompleter
from trainer.families.exact.workbench.prefix import Prefix
from trainer.families.exact.workbench.space import NONE_BANNED, Space
from trainer.families.exact.workbench.wishes import Wish, parse_all
from trainer.method import exact_fraction
from trainer.tree.nodes import Tree
from trainer.tree.shapes import LabelledShape, Shape

__all__ = ["GoodTrees", "Stopped", "Workbench"]

MOST_DEPTH = 20
GOOD_TREES_WORDS = (
    "good trees lie around the best tree of all, and are not counted within limits on leaves, recalls, pairs or numbers of columns. "
    "Leave the limits out and choose by filters."
)


class Workbench:
    """Trees of depth ≤ `depth` over the yes/no questions of the problem's encoding.

    `min_leaf`: the smallest weight of rows in a leaf; `without`: columns that are never asked; `limits`: on leaves, recalls and columns
    of the whole tree, which bind completions and prices. `memory`: bytes that caches may take. Raises ParameterError or DataError for
    what the exact search cannot take. Not for several threads at once.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        depth: int = 3,
        min_leaf: int = 1,
        without: Sequence[str] = (),
        limits: Limits | None = None,
        memory: int = 1 << 30,
    ) -> None:
        if not 0 <= depth <= MOST_DEPTH:
            raise ParameterError({"depth": f"it must lie between 0 and {MOST_DEPTH}; it is {depth}."})
        banned = frozenset(problem.names.columns.index(problem.names.column(name, "without")) for name in without)
        self.problem, self.depth = problem, depth
        self.space = Space(problem, depth=depth, min_leaf=min_leaf, banned=banned, memory=memory)
        self.prefix = Prefix(self.space)
        self.limits = limits
        self.completer = Completer(self.prefix) if limits is None else LimitedCompleter(self.prefix, limits)

    @property
    def questions(self) -> tuple[str, ...]:
        """The questions of the encoding in words."""
        return tuple(self.space.questions.text(q) for q in range(self.space.questions.encoded))

    def wishes(self, texts: Sequence[str]) -> tuple[Wish, ...]:
        """The wishes that texts express (`trainer.families.exact.workbench.wishes.GRAMMAR`). Raises ParameterError."""
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
        InfeasibleError where no tree is within the limits, whatever the wishes.
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

        Raises ParameterError where the tree does not have the place.
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

    def good_trees(
        self,
        *,
        slack: Fraction | str | None = None,
        slack_rows: Fraction | str | int | None = None,
        must: Sequence[str] = (),
        without: Sequence[str] = (),
        max_leaves: int | None = None,
        recalls: Mapping[str, Fraction | str] | None = None,
        time_limit: float | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> GoodTrees:
        """All trees whose cost is within a share `slack` of the least cost, or within `slack_rows` rows of it.

        Decimals are taken as written (texts or fractions, no floats). `must`, `without`: columns to ask and not to ask; `recalls`:
        least share of right rows by class. Raises ParameterError, and Stopped where the time is over.
        """
        if (slack is None) == (slack_rows is None):
            raise ParameterError({"slack": "give either a share of the least cost or a number of rows."})
        names = self.problem.names
        filters = Filters(
            must=tuple(dict.fromkeys(names.columns.index(names.column(name, "must")) for name in must)),
            without=frozenset(names.columns.index(names.column(name, "without")) for name in without),
            max_leaves=max_leaves,
            recalls=tuple(
                (names.classes.index(names.label(name, "recalls")), _amount(share, "recalls"))
                for name, share in (recalls or {}).items()
            ),
        )
        self.space.begin(time_limit, stop)
        least = self._least()
        limit = limit_of(
            least,
            self.space.instance.Q,
            slack=None if slack is None else _amount(slack, "slack"),
            slack_rows=None if slack_rows is None else _amount(slack_rows, "slack_rows"),
        )
        return GoodTrees(self.space, least=least, limit=limit, filters=filters)

    def best_trees(
        self, most: int, *, time_limit: float | None = None, stop: Callable[[], bool] | None = None
    ) -> list[tuple[Fraction, Shape]]:
        """The `most` best trees with their costs in rows, in order of cost. Raises Stopped."""
        self.space.begin(time_limit, stop)
        Q = self.space.instance.Q
        found = first_trees(self.space, least=self._least(), most=most, limit=None)
        return [(Fraction(cost, Q), tree) for cost, tree in found]

    def _least(self) -> int:
        """The least cost of all trees, in 1/Q rows. Raises ParameterError where limits bind the whole tree."""
        if self.limits is not None:
            raise ParameterError({"limits": GOOD_TREES_WORDS})
        known = self.space.solve(self.space.all_rows, (), self.space.depth, NONE_BANNED)
        if not known.exact:
            raise Stopped
        return known.lower // self.space.instance.scale

    def tree(self, shape: LabelledShape) -> Tree:
        """The tree of a shape (question, yes, no) in the columns' own units, counted over the training rows."""
        return self.problem.tree(self.space.questions.draft(shape))


def _amount(value: Fraction | str | int, name: str) -> Fraction:
    """The number as written, not negative."""
    try:
        amount = value if isinstance(value, Fraction) else exact_fraction(str(value))
    except ValueError:
        raise ParameterError({name: f"'{str(value)[:60]}' is not a number."}) from None
    if amount < 0:
        raise ParameterError({name: f"it must not be negative; it is {value}."})
    return amount
