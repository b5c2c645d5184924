"""`SubsetWorkbench`: wishes with prices and proofs on one problem, over subsets of categories and cuts between bins."""

from __future__ import annotations

from trainer.data.problem import Problem
from trainer.editing.bench import Bench
from trainer.editing.complete import ColumnCompleter
from trainer.errors import ParameterError
from trainer.families.odt.choice import AUTO
from trainer.families.odt.grouping import make_groups
from trainer.families.odt.groups import Groups
from trainer.families.odt.method import scope
from trainer.families.odt.topology import complete, parse
from trainer.families.odt.workbench.prefix import SubsetPrefix
from trainer.families.odt.workbench.space import SubsetSpace
from trainer.method import Settings

SEARCHES = ("auto", "search")
ACCURACY = "wishes are about the number of right rows; leave '{}' out."


class SubsetWorkbench(Bench):
    """Complete trees of depth ≤ `depth` whose questions are subsets of categories, or cuts between at most `bins` bins of numbers.

    `card`: the most categories that a subset, or what is outside it, may have (0: any number). Raises DataError for columns with too
    many categories.
    """

    def __init__(self, problem: Problem, *, depth: int = 2, bins: int = 10, card: int = 0) -> None:
        self.groups: Groups = make_groups(problem, bins, card)
        space = SubsetSpace(problem, self.groups, depth=depth)
        super().__init__(problem, space, ColumnCompleter(SubsetPrefix(space)))


def subset_bench(problem: Problem, settings: Settings) -> SubsetWorkbench:
    """A workbench with the settings of the method. Raises ParameterError for those that wishes do not go with."""
    check_wishes(settings)
    bench = SubsetWorkbench(problem, depth=_depth(settings), bins=settings["bins"], card=settings["max_card"])
    bench.scope = scope(problem, complete(_depth(settings)), bench.groups, settings)
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
    _depth(settings)


def _depth(settings: Settings) -> int:
    """The depth of the topology. Raises ParameterError unless it is complete."""
    text = settings["topology"].strip()
    if not text:
        return int(settings["depth"])
    shape = None if text == AUTO else parse(text)
    if shape is None or shape != complete(shape.depth):
        words = "wishes name places by answers, so every place needs the same room; leave the topology empty and choose a depth."
        raise ParameterError({"topology": words})
    return shape.depth
