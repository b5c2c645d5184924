"""Declare side constraints as users write them, one module each.

Constraints name columns and classes. A declaration is a Parameter: name and label; `check` before a run is
queued; `restricts` for the scope of a claim; `sentences` for the summary of a new run; `one_leaf` if a tree
of one leaf always satisfies it. A parameter without `restricts` belongs to the one before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from trainer.constraints.columns import COLUMNS
from trainer.constraints.fairness import FAIRNESS, MAX_GROUPS, group_codes, read_fairness
from trainer.constraints.leaves import LEAVES
from trainer.constraints.monotone import MONOTONE, directions
from trainer.constraints.pairs import PAIRS, column_pairs, forbidden_pairs
from trainer.constraints.recall import RECALL, recalls, required_recalls
from trainer.dtypes import BitArray, CountArray
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


@dataclass(frozen=True, kw_only=True)
class Constraints:
    """Side constraints of the exact search.

    `recalls` (class, share): minimum share of correct weight of the class. `conflict` uint8 (F, F), symmetric: 1 for features that no path
    uses together. `columns` int (F,): the column of each feature, for `max_columns`.
    """

    recalls: tuple[tuple[int, Fraction], ...] = ()
    conflict: BitArray | None = None
    max_leaves: int | None = None
    max_columns: int | None = None
    columns: CountArray | None = None


def active_constraints(settings: Settings) -> set[str]:
    """Return the names of the side constraints in the settings that are active."""
    return {p.name for p in CONSTRAINTS if p.name in settings and p.restricts is not None and p.restricts(settings)}


def leaf_fits(settings: Settings) -> bool:
    """Return whether a tree of one leaf satisfies all active side constraints, for any rows."""
    return all(p.one_leaf for p in CONSTRAINTS if p.name in active_constraints(settings))


__all__ = [
    "CONSTRAINTS",
    "MAX_GROUPS",
    "NAMES",
    "Constraints",
    "active_constraints",
    "column_pairs",
    "directions",
    "forbidden_pairs",
    "group_codes",
    "leaf_fits",
    "read_fairness",
    "recalls",
    "required_recalls",
]
