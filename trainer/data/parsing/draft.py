"""Hold a column's distinct words and its reading while it is guessed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from trainer.data.parsing.column import ColumnReading
from trainer.data.parsing.numbers import NumberParts, Way

SAMPLE = 200  # this many distinct words decide whether a column is examined further
MAX_SLIP_SHARE = 0.1  # up to this share, cells that do not fit the form count as slips


@dataclass(frozen=True)
class Words:
    """The distinct words of a column that do not mark empty cells, each with its rows and first line."""

    name: str
    words: tuple[str, ...]
    counts: np.ndarray
    lines: np.ndarray
    plain: np.ndarray
    place: str

    def rows(self, chosen: Sequence[str]) -> int:
        """Return the number of rows with one of the chosen words."""
        word_set = set(chosen)
        return int(sum(n for word, n in zip(self.words, self.counts.tolist(), strict=True) if word in word_set))

    def where(self, word: str) -> str:
        """Return the first place of a word, such as 'Line 7'."""
        return f"{self.place} {self.lines[self.words.index(word)]}"

    def first(self, chosen: Sequence[str]) -> str:
        """Return the chosen word that comes first in the file."""
        word_set = set(chosen)
        at = [i for i, word in enumerate(self.words) if word in word_set]
        return self.words[min(at, key=lambda i: int(self.lines[i]))]


@dataclass
class Draft:
    """A column whose format is being guessed: its reading, and the number formats `ways` that are still
    possible.

    `ways` is empty once the format is decided.
    """

    reading: ColumnReading
    words: Words | None = None
    ways: frozenset[Way] = frozenset()
    parts: dict[str, NumberParts] = field(default_factory=dict)
    missing: tuple[str, ...] = ()


def gaps_reason(words: Words, gaps: Sequence[str]) -> str:
    if not gaps:
        return ""
    rows = words.rows(gaps)
    word = words.first(gaps)
    return f"; {quote_words(gaps)} in {rows} {'cell means' if rows == 1 else 'cells mean'} missing (first on {words.where(word).lower()})"


def how_many(words: Words, odd: Sequence[str]) -> str:
    rows = words.rows(odd)
    return "" if rows == 1 else f" ({rows} such cells)"


def quote_words(some: Sequence[str], most: int = 5) -> str:
    return ", ".join(f"'{word}'" for word in some[:most]) + (
        f" and {len(some) - most} more" if len(some) > most else ""
    )
