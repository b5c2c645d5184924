"""Close client sockets that keep a thread waiting too long.

Time counts while a thread waits to receive a request or to send a response. Python's timeouts restart with every byte.
A client that sends one byte per second could therefore hold its thread for days.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable
from typing import Any

from octweb.environment import integer

# a client may keep a thread waiting this long; nginx has the same limit
BASE_SECONDS = integer("OCTWEB_CLIENT_SECONDS", 60)
BYTES_PER_SECOND = 1_000  # a client gains one second for each of these bytes that it transfers
FULL_BASE_SECONDS = 2.0  # limits while other requests wait because all threads are busy
FULL_BYTES_PER_SECOND = 100_000
ANSWER_SECONDS = 1.0  # time to send the response to a client whose request was cut off
PIECE_BYTES = 1 << 14  # a response is sent in pieces of this size, so that its progress counts


class ClientSocket(socket.socket):
    """A client connection that measures how long the client keeps a thread waiting during a request."""

    def __init__(self, accepted: socket.socket) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self.is_cut_off = False
        self.sending = False
        self.begin_call()

    def begin_call(self) -> None:
        self.late = 0.0  # seconds that the client kept us waiting, minus seconds gained by transferred bytes
        self.late_if_full = 0.0
        self.since: float | None = None  # time at which the current wait began

    def recv(self, size: int, flags: int = 0) -> bytes:
        if self.is_cut_off:
            return b""
        return self._count(len, False, super().recv, size, flags)

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        if self.is_cut_off:
            return 0
        return self._count(int, False, super().recv_into, buffer, nbytes, flags)

    def sendall(self, data: Any, flags: int = 0) -> None:
        view = memoryview(data).cast("B")
        at = 0
        while at < len(view):
            at += self._count(int, True, super().send, view[at : at + PIECE_BYTES], flags)

    def sendfile(self, file: Any, offset: int = 0, count: int | None = None) -> int:
        size = os.fstat(file.fileno()).st_size - offset if count is None else count
        sent = 0
        while sent < size:
            length = min(size - sent, PIECE_BYTES)
            moved = self._count(int, True, os.sendfile, self.fileno(), file.fileno(), offset + sent, length)
            if not moved:
                break
            sent += moved
        return sent

    def cut_off_if_slow(self, now: float, *, full: bool) -> None:
        """End the current wait if the client took too long. `full` means that other requests wait for a thread."""
        since = self.since
        if since is None:
            return
        waits = now - since
        if self.late + waits <= BASE_SECONDS and not (full and self.late_if_full + waits > FULL_BASE_SECONDS):
            return
        with contextlib.suppress(OSError):  # the client may have closed the connection meanwhile
            if not self.sending:
                self.is_cut_off = True
                self.shutdown(socket.SHUT_RD)  # only reading ends, so that the response can still state the reason
            elif not self.is_cut_off or waits > ANSWER_SECONDS:
                self.is_cut_off = True
                self.shutdown(socket.SHUT_RDWR)

    def _count(self, size_of: Callable[[Any], int], sending: bool, move: Callable[..., Any], *arguments: Any) -> Any:
        """Transfer bytes with `move`, and account for the time and the bytes."""
        since = time.monotonic()
        self.sending = sending
        self.since = since
        size = 0
        try:
            result = move(*arguments)
            size = size_of(result)
            return result
        finally:
            self.since = None
            waited = time.monotonic() - since
            self.late = max(0.0, self.late + waited - size / BYTES_PER_SECOND)
            self.late_if_full = max(0.0, self.late_if_full + waited - size / FULL_BYTES_PER_SECOND)


class Clients:
    """Connections whose requests occupy a thread. The worker cuts off the slow ones."""

    def __init__(self) -> None:
        self._sockets: set[ClientSocket] = set()

    @contextlib.contextmanager
    def call(self, sock: socket.socket) -> Any:
        """Monitor the client during one request."""
        if not isinstance(sock, ClientSocket):  # TLS connections are sockets of another class
            yield
            return
        sock.begin_call()
        self._sockets.add(sock)
        try:
            yield
        finally:
            self._sockets.discard(sock)

    def cut_off_slow(self, now: float, *, full: bool) -> None:
        """Cut off slow clients. With `full`, requests wait for a thread, and the stricter limits apply."""
        for sock in list(self._sockets):
            sock.cut_off_if_slow(now, full=full)
