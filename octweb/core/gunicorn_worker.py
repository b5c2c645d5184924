"""gunicorn's threaded worker for many small calls: no change of threads between the calls of a connection, and turns within the worker.

Between two calls `gthread` hands a connection to its main thread, which waits for it with all others and hands it to a free thread
again. Under Python's lock these two changes of threads take longer than a small prediction. Here the thread that answered waits for
a millisecond itself, as long as no more connections are at work than there are threads, so that nobody waits for it.

Python's lock goes to any of the threads that want it, so that of eight busy ones some call is always the unlucky one. Here few work at
once and the others wait in a line. A call that takes long, or waits for something else, loses its place to the next.
"""

from __future__ import annotations

import select
import threading
import time
from collections import deque
from typing import Any

from gunicorn.config import Config
from gunicorn.http.message import Request
from gunicorn.http.parser import RequestParser
from gunicorn.workers.gthread import TConn, ThreadWorker

PATIENCE_MS = 1
CALLS = 1000  # then the main thread sees the connection, and whether the worker has to end
AT_ONCE = 1
PLACE_SECONDS = 0.02


class Turns:
    """At most `size` are inside, first come first served; who is inside for longer than `seconds` no longer counts."""

    def __init__(self, size: int, seconds: float) -> None:
        self.size, self.seconds = size, seconds
        self._lock = threading.Lock()
        self._inside: dict[object, float] = {}  # since when; the oldest first
        self._waiting: deque[tuple[object, threading.Lock]] = deque()

    def enter(self) -> object:
        """Wait for a place; returns what `leave` takes."""
        place = object()
        with self._lock:
            if len(self._inside) < self.size and not self._waiting:
                self._inside[place] = time.monotonic()
                return place
            gate = threading.Lock()
            gate.acquire()
            self._waiting.append((place, gate))
        while not gate.acquire(timeout=self.seconds):
            with self._lock:
                old = time.monotonic() - self.seconds
                for other in [p for p, since in self._inside.items() if since <= old]:
                    del self._inside[other]
                self._admit()
        return place

    def leave(self, place: object) -> None:
        """Give the place to the next, if it was not lost before."""
        with self._lock:
            self._inside.pop(place, None)
            self._admit()

    def _admit(self) -> None:
        while self._waiting and len(self._inside) < self.size:
            place, gate = self._waiting.popleft()
            self._inside[place] = time.monotonic()
            gate.release()


class Settled:
    """gunicorn's configuration with every value kept at its first use; it works each out anew, some forty times a call."""

    def __init__(self, cfg: Config) -> None:
        self._cfg = cfg

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._cfg, name)
        setattr(self, name, value)
        return value


class FurtherCall(Request):
    """A call on a connection that had one before: whether its peer is a proxy of ours is known, and costs a tenth of a small call."""

    def _peer_is_trusted_proxy(self) -> bool:
        known = getattr(self.unreader, "of_trusted_proxy", None)
        if known is None:
            known = self.unreader.of_trusted_proxy = super()._peer_is_trusted_proxy()
        return known


class Worker(ThreadWorker):
    """`--worker-class octweb.core.gunicorn_worker.Worker`"""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.turns = Turns(AT_ONCE, PLACE_SECONDS)

    def init_process(self) -> None:
        """The configuration of a worker does not change: a reload starts new workers."""
        self.cfg: Any = Settled(self.cfg)
        super().init_process()

    def handle(self, conn: TConn) -> Any:
        """Answer the call that waits on `conn`, and those that follow at once; what `ThreadWorker.handle` returns for the last."""
        kept = self._handle(conn)
        if kept is not True or conn.is_http2 or self.cfg.is_ssl:
            return kept  # under TLS the next call may have been read already
        if type(conn.parser) is RequestParser and self.cfg.proxy_protocol == "off":
            conn.parser.mesg_class = FurtherCall
        waiting = select.poll()
        waiting.register(conn.sock, select.POLLIN)
        for _ in range(CALLS):
            if not (self.alive and self._room()) or conn.parser.unreader.buf.getvalue():
                break  # bytes of the next call that were read already are for the main thread to see
            if not waiting.poll(PATIENCE_MS):
                break
            kept = self._handle(conn)
            if kept is not True or conn.is_http2:
                break
        return kept

    def _handle(self, conn: TConn) -> Any:
        place = self.turns.enter()
        try:
            return super().handle(conn)
        finally:
            self.turns.leave(place)

    def _room(self) -> bool:
        """Whether every connection at work has a thread."""
        return self.nr_conns - len(self.keepalived_conns) - len(self.pending_conns) <= self.cfg.threads
