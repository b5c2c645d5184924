"""Room for the bodies of calls: how many bytes of them one web process parses at the same time.

As Python objects a body takes up to some twenty times its length, and every thread of the process may have one at hand. So bodies
share a room that is as large as the largest single one. A call that finds no room waits a moment, and then it is refused with the
time after which it may come again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from django.conf import settings

from octweb.core.problems import Busy

MIN_COUNTED_BYTES = 100_000  # bytes; shorter bodies take no room, so that small calls wait for nobody
RESERVE_TIMEOUT_SECONDS = 5.0  # seconds that a call waits for room
WAITING = 4  # calls that wait at the same time: the other threads stay free for small calls and pages


class BudgetExceeded(Busy):
    """Large calls of others are under way."""

    wait = 2


class BodyBudget:
    """So many bytes as `settings.MAX_PREDICT_BYTES`, shared by the threads of a process."""

    def __init__(self) -> None:
        self._taken = self._waiting = 0
        self._changed = threading.Condition()

    def reserve(self, size: int, *, timeout: float = RESERVE_TIMEOUT_SECONDS) -> AbstractContextManager[None]:
        """`size` bytes for the length of a `with` block; raises BudgetExceeded if they are not free after so many seconds."""
        return _NOTHING_HELD if size < MIN_COUNTED_BYTES else self._reserve(size, timeout)

    @contextmanager
    def _reserve(self, size: int, timeout: float) -> Iterator[None]:
        size = min(size, settings.MAX_PREDICT_BYTES)  # a longer one is refused by its reader, and is not parsed
        self._take(size, timeout)
        try:
            yield
        finally:
            with self._changed:
                self._taken -= size
                self._changed.notify_all()

    def _take(self, size: int, timeout: float) -> None:
        until = time.monotonic() + timeout
        with self._changed:
            while self._taken + size > settings.MAX_PREDICT_BYTES:
                left = until - time.monotonic()
                if left <= 0 or self._waiting >= WAITING:
                    raise BudgetExceeded("The server is already handling as many large calls as it can. Send it again.")
                self._waiting += 1
                self._changed.wait(left)
                self._waiting -= 1
            self._taken += size


_NOTHING_HELD = nullcontext()  # short bodies share it, since it has no state
BODY_BUDGET = BodyBudget()
