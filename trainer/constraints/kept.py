"""What the exact search takes of the side constraints, over its own questions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from trainer.dtypes import BitArray, CountArray


@dataclass(frozen=True, kw_only=True)
class Constraints:
    """What a tree must satisfy besides its depth.

    `recalls` (class, share): so much of the weight of the class is classified correctly.  `conflict` uint8 (F, F), symmetric:
    1 for features that no path holds both (on the diagonal: that no path asks twice, which it never does).  `columns` int (F,):
    the column of each feature, for `max_columns`.
    """

    recalls: tuple[tuple[int, Fraction], ...] = ()
    conflict: BitArray | None = None
    max_leaves: int | None = None
    max_columns: int | None = None
    columns: CountArray | None = None
