"""Limit the total size of request bodies in a web process.

Parsed into Python objects, a body takes up to twenty times its length, and each thread of the process may hold one. All
bodies therefore share a budget as large as the maximum body. A call beyond the budget waits briefly. Then it is
refused, with the time after which to retry.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from django.conf import settings

from octweb.core.problems import Busy

MIN_COUNTED_BYTES = 100_000  # shorter bodies take no budget, so small calls never wait
RESERVE_TIMEOUT_SECONDS = 5.0  # a call waits at most this long for its share of the budget
WAITING = 4  # at most this many calls wait at once; the other threads stay free for small calls and pages


class BudgetExceeded(Busy):
    """Other large calls use the budget."""

    wait = 2


class BodyBudget:
    """A budget of `settings.MAX_PREDICT_BYTES` bytes, shared by the threads of a process."""

    def __init__(self) -> None:
        self._taken = self._waiting = 0
        self._changed = threading.Condition()

    def reserve(self, size: int, *, timeout: float = RESERVE_TIMEOUT_SECONDS) -> AbstractContextManager[None]:
        """Reserve `size` bytes during a `with` block.

        Raises BudgetExceeded if they are not free after `timeout` seconds, or at once if too many calls wait.
        """
        return _NOTHING_HELD if size < MIN_COUNTED_BYTES else self._reserve(size, timeout)

    @contextmanager
    def _reserve(self, size: int, timeout: float) -> Iterator[None]:
        size = min(size, settings.MAX_PREDICT_BYTES)  # the reader of a longer body refuses it before it is parsed
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
                    raise BudgetExceeded(
                        "The server is already handling as many large calls as it can. Send it again in some seconds."
                    )
                self._waiting += 1
                self._changed.wait(left)
                self._waiting -= 1
            self._taken += size


_NOTHING_HELD = nullcontext()  # all short bodies share this context, because it has no state
BODY_BUDGET = BodyBudget()
