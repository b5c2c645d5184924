"""Count answers in memory until a thread writes them to the database."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from trainer.errors import Refusal, RowError

ROWS = "rows"  # kind of the counts of answered rows by leaf
REFUSED = "refused_"  # prefix of the kinds of refused rows, before the reason; their names are columns
DRY_RUNS = "dry_run"  # kind of the count of dry runs, whose only name is ""
SECONDS_OF_DAY = 86_400

Counts = Mapping[str, Mapping[str, int]]  # kind → leaf or column → count


class Key(NamedTuple):
    """Key of a count. `day` is the number of the UTC day since 1970, `name` a leaf or a column."""

    model: str
    api: str
    day: int
    kind: str
    name: str


class SilentRows(Protocol):
    """Queue of rows that a challenger answers later. `matrix` has the rows, `leaves` the leaf of each."""

    def put(self, matrix: Any, leaves: Any) -> None: ...


class ModelTally(NamedTuple):
    """Access to the counts of one model for the calls of one API.

    `silent` receives the rows if the model has a challenger.
    """

    model: str
    api: str
    silent: SilentRows | None = None

    def add_row(self, leaf: str) -> None:
        """Count a row without unusual cells that was answered at a leaf."""
        # a plain tuple, because creating a Key takes twice as long as the rest of this method
        key = (self.model, self.api, int(time.time()) // SECONDS_OF_DAY, ROWS, leaf)
        with _lock:
            _counts[key] = _counts.get(key, 0) + 1
            starts = not _state.started
        if starts:
            start_writer()

    def add(self, counts: Counts) -> None:
        """Add the counts of a call."""
        day = int(time.time()) // SECONDS_OF_DAY
        give_back(
            {
                Key(self.model, self.api, day, kind, name): number
                for kind, numbers in counts.items()
                for name, number in numbers.items()
                if number
            }
        )

    def compare(self, matrix: Any, leaves: Any) -> None:
        """Pass the rows of a call to the challenger, if there is one.

        Call this after counting them, which starts the writer thread that answers them.
        """
        if self.silent is not None:
            self.silent.put(matrix, leaves)

    def refuse(self, error: RowError) -> None:
        """Count a refused row. Column names that the model does not know are not stored."""
        column = "" if error.reason is Refusal.COLUMN else error.column or ""
        self.add({REFUSED + error.reason: {column: 1}})


class _State:
    """State of this process's writer thread."""

    def __init__(self) -> None:
        self.started = False
        self.listener: Callable[[], None] | None = None


_state = _State()
_lock = threading.Lock()
_counts: dict[tuple[str, str, int, str, str], int] = {}  # keyed by the fields of Key
_sources: list[Callable[[], Mapping[Key, int]]] = []


def begin_with(listener: Callable[[], None]) -> None:
    """Set the function that starts the writer. It is called at the first count, or call, of each process."""
    _state.listener = listener


def add_source(source: Callable[[], Mapping[Key, int]]) -> None:
    """Register a function that returns additional counts.

    The writer thread calls it before each write, so it adds nothing to the response time.
    """
    _sources.append(source)


def start_writer() -> None:
    """Start the writer thread of this process, unless it runs."""
    with _lock:
        starts = not _state.started
        _state.started = True
    if starts and _state.listener is not None:
        _state.listener()


def drain() -> dict[Key, int]:
    """Return all counts, including those of the registered functions, and reset them."""
    for source in _sources:
        give_back(source())
    with _lock:
        counts = {Key(*key): number for key, number in _counts.items()}
        _counts.clear()
    return counts


def give_back(counts: Mapping[Key, int]) -> None:
    """Add counts to those in memory."""
    with _lock:
        for key, number in counts.items():
            _counts[key] = _counts.get(key, 0) + number
        starts = bool(counts) and not _state.started
    if starts:
        start_writer()


def _forget() -> None:
    """Reset the counts in a forked process. The copied counts belong to its parent."""
    global _lock
    _lock = threading.Lock()
    _counts.clear()
    _state.started = False


os.register_at_fork(after_in_child=_forget)
