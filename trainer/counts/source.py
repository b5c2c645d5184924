"""Define what a source of rows offers to a count."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from trainer.data.formats.raw import RawTable

PIECE_ROWS = 1 << 18  # rows per piece


@dataclass(frozen=True, kw_only=True)
class SourcePiece:
    """Some rows of a part of a source: the index of the part, the index of their first row in it, and the cells."""

    part: int
    start: int
    rows: RawTable


class Source(AbstractContextManager["Source"], ABC):
    """Rows in one or more parts, which `names` lists. `label` and `names` contain no path of a machine and no password.

    `resumable` states whether two runs of a program see the same rows in the same order, so that a stopped count can resume.
    `origin` has the members that describe the source in `counts.json`.
    """

    label: str
    names: tuple[str, ...]
    origin: Mapping[str, str]
    resumable: bool

    @abstractmethod
    def digest(self, part: int) -> str:
        """Return a SHA-256 that identifies the rows of a part."""

    @abstractmethod
    def changed(self, part: int) -> bool:
        """Return whether a part changed since the source was opened."""

    @abstractmethod
    def pieces(
        self, column_names: Collection[str] | None = None, *, first: int = 0, start: int = 0
    ) -> Iterator[SourcePiece]:
        """Yield the rows from row `start` of part `first` on, with the columns `column_names` (None: all); raise DataError or OSError."""
