"""Side constraints that the exact search supports, over its features."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from trainer.dtypes import BitArray, CountArray


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
