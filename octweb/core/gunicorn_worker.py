"""Gunicorn worker with threads, optimised for many small calls.

One thread at a time holds the turn: it serves the predictions of all connections. It keeps the turn during small calls.
For a long call, or a call of another kind, it passes the turn to another thread (docs/decisions.md).
"""

from __future__ import annotations

import contextlib
import select
import selectors
import threading
import time
from collections import deque
from concurrent.futures import Future
from functools import partial
from types import SimpleNamespace
from typing import Any

import gunicorn.util
from gunicorn.workers.gthread import TConn, ThreadWorker

from octweb.core.client_sockets import Clients, ClientSocket
from octweb.core.one_write import FixedConfig, answer_in_one_write

VERSION = (27, 0)  # tested version of gunicorn; other versions get the plain gthread worker
POLL_MS = 1  # the turn ends if no call arrives within this time
TURN_SECONDS = 0.02  # a call that takes longer loses the turn
ROUND_SECONDS = 0.5  # after this time, the turn returns its connections to the main thread
BRIEF = ("/infer", "/predict/", "/invocations")  # paths of prediction calls end like this
STARVED_SECONDS = 0.5  # if a turn waits longer than this for a thread, slow clients lose theirs
FULL_SHARE = 0.8  # above this share of `worker_connections`, idle connections are closed


class TurnWorker(ThreadWorker):
    """Worker class that keeps the predictions of all connections in one thread.

    Use it with `--worker-class octweb.core.gunicorn_worker.Worker`.
    """

    cfg: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._clients = Clients()
        self.cfg = FixedConfig(self.cfg)
        self._lock = threading.Lock()  # guards the attributes below
        # thread that holds the turn, start of its call (`since`), and end of its round (`until`)
        self._turn: SimpleNamespace | None = None
        self._arrived: deque[TConn] = deque()  # connections with a call, queued by the main thread
        self._ready: deque[TConn] = deque()  # connections with a call, which the turn answers next
        self._at_hand: dict[int, TConn] = {}  # descriptor → idle connection that the turn polls

    def run(self) -> None:
        threading.Thread(target=self._watch, name="turns", daemon=True).start()
        super().run()

    def accept(self, listener: Any) -> None:
        """Accept a connection in the main thread. It occupies no thread until its first call arrives."""
        try:
            sock, address = listener.accept()
        except OSError:  # another process accepted the connection, or no descriptor is free
            return
        self.nr_conns += 1
        if not self.cfg.is_ssl:
            sock = ClientSocket(sock)
        conn = TConn(self.cfg, sock, address, listener.getsockname())
        conn.set_timeout()
        self.pending_conns.append(conn)
        self.poller.register(sock, selectors.EVENT_READ, partial(self.on_pending_socket_readable, conn))
        if self.nr_conns > FULL_SHARE * self.worker_connections:
            quiet = [conns[0] for conns in (self.keepalived_conns, self.pending_conns) if conns]
            # an expired connection is the next one that the main loop closes
            min(quiet, key=lambda conn: conn.timeout).timeout = 0.0

    def enqueue_req(self, conn: TConn) -> None:
        """Queue a connection with a call, in the main thread. Begin a turn if there is none."""
        if self.cfg.is_ssl:  # polling cannot see bytes that TLS has already buffered
            return super().enqueue_req(conn)
        with self._lock:
            self._arrived.append(conn)
            return None if self._turn else self._begin()

    def _begin(self) -> None:
        """End the current turn. Begin another if connections wait."""
        self._turn = None
        if self._arrived or self._ready or self._at_hand:
            now = time.monotonic()
            turn = SimpleNamespace(thread=0, since=None, begun=now, until=now + ROUND_SECONDS)
            with contextlib.suppress(RuntimeError):  # the pool has shut down because the process is about to end
                self.tpool.submit(self._serve, turn)
                self._turn = turn

    def _watch(self) -> None:
        """Loop until the process ends: pass on the turn of a long call, and cut off slow clients."""
        while True:
            time.sleep(TURN_SECONDS)
            turn = self._turn
            now = time.monotonic()
            full = turn is not None and not turn.thread and now - turn.begun > STARVED_SECONDS
            self._clients.cut_off_slow(now, full=full)
            if turn and turn.since is not None and time.monotonic() - turn.since > TURN_SECONDS:
                with self._lock:
                    if self._turn is turn and turn.since is not None:
                        self._begin()

    def handle_request(self, req: Any, conn: TConn) -> bool:
        """Handle a request. Calls other than predictions may block, so they give up the turn first."""
        if req.path.endswith(BRIEF):
            return answer_in_one_write(self, req, conn)
        with self._lock:
            if self._turn and self._turn.thread == threading.get_ident():
                self._begin()
        return super().handle_request(req, conn)

    def _serve(self, turn: SimpleNamespace) -> None:
        """Handle requests until the thread loses the turn or no connection is ready."""
        turn.thread = threading.get_ident()
        listening = select.poll()
        with self._lock:
            for number in self._at_hand:
                listening.register(number, select.POLLIN)
        while (conn := self._next(turn, listening)) is not None:
            try:
                with self._clients.call(conn.sock):
                    keepalive = self.handle(conn)
            except BaseException:  # SystemExit in the application must end only its own call
                self.log.exception("A call has failed; its connection is closed.")
                keepalive = False
            with self._lock:
                turn.since = None
                if keepalive and self._turn is turn and not conn.parser.unreader.buf.getvalue():
                    self._at_hand[conn.sock.fileno()] = conn
                    listening.register(conn.sock.fileno(), select.POLLIN)
                else:
                    self._return(conn, keepalive)

    def _next(self, turn: SimpleNamespace, listening: select.poll) -> TConn | None:
        """Return a connection with a request, or None if the turn has ended."""
        while self._turn is turn:
            with self._lock:
                if self._ready and self._turn is turn:
                    turn.since = time.monotonic()
                    return self._ready.popleft()
            called = listening.poll(0 if self._arrived else POLL_MS)
            with self._lock:
                for number, _ in called:
                    listening.unregister(number)
                    self._ready.append(self._at_hand.pop(number))
                self._ready += self._arrived
                self._arrived.clear()
                if not self._ready or not self.alive or time.monotonic() > turn.until:
                    turn.until = time.monotonic() + ROUND_SECONDS
                    for number in list(self._at_hand):
                        listening.unregister(number)
                        self._return(self._at_hand.pop(number), True)
                self._turn = turn if self._ready else None
        return None

    def _return(self, conn: TConn, keepalive: Any) -> None:
        """Return a connection to the main thread, which polls it, or counts it as closed.

        Closing takes up to two seconds, so it runs in a thread of its own.
        """
        future: Future[Any] = Future()
        back = partial(self.method_queue.defer, self.finish_request, conn, future)
        if keepalive:
            future.set_result(keepalive)
            return back()
        future.set_exception(ConnectionAbortedError())
        return threading.Thread(target=lambda: (gunicorn.util.close_graceful(conn.sock), back()), daemon=True).start()


Worker = TurnWorker if gunicorn.version_info[:2] == VERSION else ThreadWorker
