"""Collect words of rows to predict that a column does not take as they are, with notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

EXAMPLES = 3  # number of words that a note quotes
MAX_EXAMPLE_CHARACTERS = 40  # characters

WordCounts = dict[str, Counter[str]]  # for each column, the number of cells with each word


@dataclass(frozen=True)
class OddWords:
    """Words by column, with the number of their cells.

    `unfit` words do not fit a column that the tree does not ask; in a column that it asks, they are an error. The others are
    read as empty cells of a column that the tree asks: `blank` words such as "-" among numbers, and `no_days`, dates such as
    30 February and 9999-12-31.
    """

    unfit: WordCounts = field(default_factory=dict)
    no_days: WordCounts = field(default_factory=dict)
    blank: WordCounts = field(default_factory=dict)

    def add(self, other: OddWords) -> None:
        """Add the counts of another piece of the rows."""
        for own, more in ((self.unfit, other.unfit), (self.no_days, other.no_days), (self.blank, other.blank)):
            for column, words in more.items():
                add_words(own, column, words)

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for each column and kind."""
        return (
            *(_blank_note(*entry) for entry in self.blank.items()),
            *(_no_day_note(*entry) for entry in self.no_days.items()),
            *(_unfit_note(*entry) for entry in self.unfit.items()),
        )


def add_words(counts: WordCounts, column: str, words: Mapping[str, int]) -> None:
    """Add the cells of `words` to the counts of a column."""
    if words:
        counts.setdefault(column, Counter()).update(words)


def _blank_note(column: str, words: Mapping[str, int]) -> str:
    cells = ", ".join(f"'{word}' ({count:,})" for word, count in words.items())
    return f"Words among the numbers of '{column}' are read as empty cells: {cells}."


def _no_day_note(column: str, words: Mapping[str, int]) -> str:
    cells = sum(words.values())
    have, are = (
        ("1 cell names", "it is read as an empty cell")
        if cells == 1
        else (f"{cells:,} cells name", "they are read as empty cells")
    )
    return f"Column '{column}': {have} no real day, such as {_examples(words)}; {are}."


def _unfit_note(column: str, words: Mapping[str, int]) -> str:
    cells = sum(words.values())
    do = "1 cell does" if cells == 1 else f"{cells:,} cells do"
    return (
        f"Column '{column}': {do} not fit the column, such as {_examples(words)}. "
        "The tree does not ask this column, so the answers stay the same."
    )


def _examples(words: Mapping[str, int]) -> str:
    return ", ".join(repr(word[:MAX_EXAMPLE_CHARACTERS]) for word in list(words)[:EXAMPLES])
