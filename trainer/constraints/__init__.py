"""Side constraints as people write them: columns and classes by name. Each one is declared in a file of its own.

A declaration is a Parameter: its name and its words in forms; what can be said against it before a run is queued (`check`), its words
in the scope of a claim (`restricts`), its sentence in the summary of a new run (`sentences`), and whether a tree of one leaf always
keeps it (`one_leaf`). A parameter without `restricts` says how the one before it is meant.
"""

from __future__ import annotations

from trainer.constraints.columns import COLUMNS
from trainer.constraints.fairness import FAIRNESS, MAX_GROUPS, favoured, groups
from trainer.constraints.kept import Constraints
from trainer.constraints.leaves import LEAVES
from trainer.constraints.monotone import MONOTONE, directions
from trainer.constraints.pairs import PAIRS, forbidden_pairs
from trainer.constraints.recall import RECALL, recalls
from trainer.methods.base import Settings

CONSTRAINTS = (
    LEAVES,
    COLUMNS,
    RECALL,
    *FAIRNESS,
    PAIRS,
    MONOTONE,
)
NAMES = tuple(p.name for p in CONSTRAINTS if p.restricts is not None)


def active_constraints(settings: Settings) -> set[str]:
    """The names of the side constraints that the settings ask for; those that the method does not take are not asked for."""
    return {p.name for p in CONSTRAINTS if p.name in settings and p.restricts is not None and p.restricts(settings)}


def leaf_fits(settings: Settings) -> bool:
    """Whether a tree of one leaf keeps all side constraints that the settings ask for, whatever the rows are."""
    return all(p.one_leaf for p in CONSTRAINTS if p.name in active_constraints(settings))


__all__ = [
    "CONSTRAINTS",
    "MAX_GROUPS",
    "NAMES",
    "Constraints",
    "asked",
    "directions",
    "favoured",
    "forbidden_pairs",
    "groups",
    "leaf_fits",
    "recalls",
]
