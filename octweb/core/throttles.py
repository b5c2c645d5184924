"""Limit the rate of API calls by token, user or address, with Retry-After and RateLimit headers.

Each process counts calls in two windows per caller, so the cost of a call does not depend on earlier ones. Every second
a thread adds its counts to those of all processes and hosts, and takes over the sums (`octweb.core.rate_counts`).
Changes of the system clock have no effect on a running process.
"""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from functools import lru_cache
from ipaddress import ip_address
from itertools import islice
from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpRequest
from rest_framework.throttling import BaseThrottle, SimpleRateThrottle

from octweb.core import tally

MAX_CALLERS = 100_000
MAX_REFRESHED = 1_000  # callers whose sums are read although they did not call in the last second
# windows begin at the same time in all processes
CLOCK_OFFSET_SECONDS = time.time() - time.monotonic()
RATE = "octweb.rate"  # key of the rate headers in a request's environment


def client_address(request: HttpRequest) -> str | None:
    """Return the client's address: of the connection or, with OCTWEB_PROXIES, as our outermost proxy sees it.

    None if there is none (a Unix socket, a sign-in without a request), or if the header is invalid.
    """
    address = BaseThrottle().get_ident(request)
    try:
        return str(ip_address(address or ""))
    except ValueError:
        return None


def clock() -> float:
    """Return the seconds since 1970, as the system clock had them when the process began."""
    return time.monotonic() + CLOCK_OFFSET_SECONDS


class WindowKey(NamedTuple):
    """A caller's window: its number since 1970, and its length in seconds."""

    caller: str
    seconds: int
    number: int


class Windows:
    """Sliding-window counter of calls.

    A call of the previous window counts less the further the current one advances.
    """

    def __init__(self) -> None:
        # caller → number of the current window, calls in the previous window, calls in the current one
        self._counts: dict[str, tuple[int, int, int]] = {}
        # calls that other processes do not know of, keyed by the fields of WindowKey
        self._unsent: dict[tuple[str, int, int], int] = {}
        self._lock = threading.Lock()

    def take(self, caller: str, limit: int, seconds: float, *, now: float | None = None, count: bool = True) -> float:
        """Count a call within the limit and return 0. Beyond it, return the seconds to wait."""
        now = clock() if now is None else now
        window, within = divmod(now, seconds)
        passed = within / seconds
        with self._lock:
            before, current = self._calls(caller, window)
            if before * (1 - passed) + current + 1 > limit:
                return _wait(before, current, limit, passed) * seconds
            if count:
                if len(self._counts) >= MAX_CALLERS:
                    self._counts.clear()
                    self._unsent.clear()
                number = int(window)
                # a plain tuple, because creating a WindowKey takes as long as the rest
                key = (caller, int(seconds), number)
                self._counts[caller] = (number, before, current + 1)
                starts = not self._unsent
                self._unsent[key] = self._unsent.get(key, 0) + 1
        if count and starts:
            tally.start_writer()
        return 0.0

    def drain(self, *, now: float | None = None) -> dict[WindowKey, int]:
        """Return the calls since the last time, and reset them. Other callers of the current windows have 0.

        Calls of windows that no longer count are dropped. There are some after the database was down.
        """
        now = clock() if now is None else now
        with self._lock:
            unsent = self._unsent
            self._unsent = {}
            entries = list(islice(reversed(self._counts.items()), MAX_REFRESHED))
        keys = {WindowKey(*key): number for key, number in unsent.items()}
        calls = {key: number for key, number in keys.items() if key.number >= now // key.seconds - 1}
        for caller, (number, _before, _current) in entries:
            seconds = rate(scope_of(caller))[1]
            if number == int(now // seconds):
                calls.setdefault(WindowKey(caller, seconds, number), 0)
        return calls

    def give_back(self, calls: dict[WindowKey, int]) -> None:
        """Add drained calls again, because the sums could not be written."""
        with self._lock:
            for key, number in calls.items():
                if number:
                    self._unsent[key] = self._unsent.get(key, 0) + number

    def take_over(self, sums: dict[WindowKey, int]) -> None:
        """Replace own counts by the sums over all processes, and add what was counted since `drain`.

        A sum below the own count is ignored: a host whose clock is fast has deleted the row.
        """
        with self._lock:
            for key, total in sums.items():
                number, before, current = self._counts.get(key.caller, (-1, 0, 0))
                total += self._unsent.get(key, 0)
                if key.number == number:
                    self._counts[key.caller] = (number, before, max(total, current))
                elif key.number == number - 1:
                    self._counts[key.caller] = (number, max(total, before), current)

    def left(self, caller: str, limit: int, seconds: float, *, now: float | None = None) -> tuple[int, int]:
        """Return the number of calls left, and the seconds until the current window ends and more are allowed."""
        now = clock() if now is None else now
        window, within = divmod(now, seconds)
        before, current = self._calls(caller, window)
        used = before * (1 - within / seconds) + current
        return max(0, int(limit - used)), math.ceil(seconds - within)

    def _calls(self, caller: str, window: float) -> tuple[int, int]:
        """Return the calls in the window before this one, and in this one."""
        number, before, current = self._counts.get(caller, (window, 0, 0))
        if number == window:
            return before, current
        return (current, 0) if number == window - 1 else (0, 0)

    def forget(self) -> None:
        """Reset all counters."""
        with self._lock:
            self._counts.clear()
            self._unsent.clear()


def _wait(before: int, current: int, limit: int, passed: float) -> float:
    """Return how long to wait for the next allowed call, as a share of a window."""
    if current + 1 <= limit and before:
        return max(0.0, 1 - (limit - current - 1) / before - passed) or 1e-3
    # the current window is full; its calls count less and less during the next one
    return (1 - passed) + max(0.0, 1 - (limit - 1) / current if current else 0.0)


WINDOWS = Windows()


@lru_cache(maxsize=64)
def _parse_rate(text: str) -> tuple[int, int]:
    return SimpleRateThrottle.parse_rate(None, text)


def rate(scope: str) -> tuple[int, int]:
    """Return the rate of `user` or `stranger`: number of calls, and seconds."""
    return _parse_rate(settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"][scope])


def rate_headers(scope: str, caller: str, *, now: float | None = None) -> list[tuple[str, str]]:
    """Return headers with the limit and the calls left (draft-ietf-httpapi-ratelimit-headers)."""
    limit, seconds = rate(scope)
    remaining, reset = WINDOWS.left(caller, limit, seconds, now=now)
    policy = ("RateLimit-Policy", f'"{scope}";q={limit};w={seconds}')
    return [policy, ("RateLimit", f'"{scope}";r={remaining};t={reset}')]


def scope_of(caller: str) -> str:
    """Return the scope of the rate of a caller: `stranger` for addresses, otherwise `user`."""
    return "stranger" if caller.startswith("stranger ") else "user"


def caller_of(user: Any, auth: Any) -> str:
    """Return the key of the caller: the token if there is one, otherwise the signed-in user."""
    digest = getattr(auth, "digest", None)
    return f"token {digest}" if digest else f"user {user.pk}"


class _Throttle(BaseThrottle, ABC):
    scope = ""
    _seconds = 0.0

    @abstractmethod
    def caller(self, request: Any) -> str | None:
        """Return the key of the caller, or None if the call is not counted."""

    def allow_request(self, request: Any, view: Any) -> bool:
        caller = self.caller(request)
        return caller is None or self._take(request, caller)

    def _take(self, request: Any, caller: str) -> bool:
        """Count the call, and store the headers for `RateLimitMiddleware`. Return False beyond the limit."""
        self._seconds = WINDOWS.take(caller, *rate(self.scope))
        request.META[RATE] = rate_headers(self.scope, caller)
        return self._seconds == 0.0

    def wait(self) -> float:
        return self._seconds


class UserThrottle(_Throttle):
    """Throttle of tokens and signed-in users."""

    scope = "user"

    def caller(self, request: Any) -> str | None:
        known = request.user and request.user.is_authenticated
        return caller_of(request.user, request.auth) if known else None


class StrangerThrottle(_Throttle):
    """Throttle of anonymous callers, by address."""

    scope = "stranger"

    def caller(self, request: Any) -> str | None:
        known = request.user and request.user.is_authenticated
        return None if known else f"stranger {self.get_ident(request)}"

    def allow_stranger(self, request: Any) -> bool:
        """Count a call without valid credentials. Return False beyond the limit."""
        return self._take(request, f"stranger {self.get_ident(request)}")
