"""gunicorn's threaded worker with a way for many small calls: one thread at a time answers predictions on all connections.

`gthread` hands each call from its main thread to a free thread and back, and under Python's lock these changes of threads take longer
than a small prediction. Here one thread has the turn: it answers the connections in the order in which their calls are there, and
listens to those that it answered. A call that is no prediction gives the turn to another thread before it is answered, since it may
wait for the database or for files; a prediction that takes long loses it. A connection without a call for a moment goes back to the
main thread.
"""

from __future__ import annotations

import contextlib
import select
import threading
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from gunicorn.config import Config
from gunicorn.http.message import Request
from gunicorn.http.parser import RequestParser
from gunicorn.workers.gthread import _DEFER, TConn, ThreadWorker

PATIENCE_MS = 1  # without a call on any connection the thread is free again
TURN_SECONDS = 0.02
BRIEF = ("/infer", "/predict/")  # ends of the paths of predictions
CLOSING = 4  # threads that wait for clients to close
QUIET_SECONDS = 0.05  # without a call of its own, beside busy ones, a connection goes back to the main thread


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


class Turn:
    """One thread's turn; whether it still has it is for `Worker` to say."""

    def __init__(self) -> None:
        self.since: float | None = None  # begin of the call that is under way


class Worker(ThreadWorker):
    """`--worker-class octweb.core.gunicorn_worker.Worker`"""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lock = threading.Lock()  # of what follows
        self._turn: Turn | None = None
        self._arrived: deque[TConn] = deque()  # from the main thread
        self._ready: deque[TConn] = deque()  # a call is there
        self._ahead: deque[TConn] = deque()  # a call has been read already, behind the one that was answered
        self._at_hand: dict[int, tuple[TConn, float]] = {}  # by descriptor: listened to, since when
        self._looked = 0.0  # when quiet connections were last looked for
        self._at_work = threading.Event()
        self._own = threading.local()  # `turn` of a thread

    def init_process(self) -> None:
        """The configuration of a worker does not change: a reload starts new workers."""
        self.cfg: Any = Settled(self.cfg)
        self._closing = ThreadPoolExecutor(CLOSING, thread_name_prefix="closing")
        threading.Thread(target=self._watch, name="turns", daemon=True).start()
        super().init_process()

    def enqueue_req(self, conn: TConn) -> None:
        """Take a connection from the main thread: a new one, or one with a call."""
        if self.cfg.is_ssl:  # listening does not see what TLS has read ahead
            super().enqueue_req(conn)
            return
        with self._lock:
            self._arrived.append(conn)
            if self._turn is None:
                self._begin()

    def _begin(self) -> None:
        turn = Turn()
        self.tpool.submit(self._serve, turn)
        self._turn = turn
        self._at_work.set()

    def _watch(self) -> None:
        """Take the turn from a call that takes long; runs beside the others until the process ends."""
        while True:
            self._at_work.wait()
            time.sleep(TURN_SECONDS)
            with self._lock:
                turn = self._turn
                if turn is None:
                    self._at_work.clear()
                elif turn.since is not None and time.monotonic() - turn.since > TURN_SECONDS:
                    self._pass_on()

    def _pass_on(self) -> None:
        """The present turn ends; another begins if there is anything to do."""
        self._turn = None
        if self._arrived or self._ready or self._ahead or self._at_hand:
            with contextlib.suppress(RuntimeError):  # the pool has ended, and the process is about to
                self._begin()

    def handle_request(self, req: Request, conn: TConn) -> bool:
        """Answer a call; one that may wait for something does not have the turn meanwhile."""
        turn = getattr(self._own, "turn", None)
        if turn is not None and not req.path.endswith(BRIEF):
            with self._lock:
                if self._turn is turn:
                    self._pass_on()
        return super().handle_request(req, conn)

    def finish_request(self, conn: TConn, fs: Future[Any]) -> None:
        """In the main thread: what becomes of a connection; the client may take two seconds to see that it is closed."""
        if not fs.cancelled() and fs.exception() is None and fs.result() is False:
            gone = self._closing.submit(conn.close, graceful=True)
            gone.add_done_callback(lambda _: self.method_queue.defer(self._closed))
            return
        super().finish_request(conn, fs)

    def _closed(self) -> None:
        self.nr_conns -= 1

    def _serve(self, turn: Turn) -> None:
        """Answer calls until the turn is lost or nobody calls."""
        self._own.turn = turn
        listening = select.poll()
        with self._lock:
            for number in self._at_hand:
                listening.register(number, select.POLLIN)
        while (conn := self._next(turn, listening)) is not None:
            try:
                kept = self.handle(conn)
            except BaseException:  # SystemExit of an application ends its call and nothing else
                self.log.exception("A call has failed; its connection is closed.")
                kept = False
            if not self._keep(turn, listening, conn, kept):
                return

    def _next(self, turn: Turn, listening: select.poll) -> TConn | None:
        """A connection with a call; None where the turn has ended."""
        while True:
            with self._lock:
                if self._turn is not turn:
                    return None
                while self._arrived:
                    self._listen(self._arrived.popleft(), listening)
                if self._ready:
                    turn.since = time.monotonic()
                    return self._ready.popleft()
            called = listening.poll(0 if self._ahead else PATIENCE_MS)
            with self._lock:
                for number, _ in called:
                    listening.unregister(number)
                    conn = self._at_hand.pop(number)[0]
                    conn.data_ready = True
                    self._ready.append(conn)
                while self._ahead:  # after the others, so that one client cannot keep the turn
                    self._ready.append(self._ahead.popleft())
                if not self._ready and not self._arrived:
                    self._turn = None
                    self._release(list(self._at_hand))
                    return None
                self._release_quiet(listening)

    def _listen(self, conn: TConn, listening: select.poll) -> None:
        """Wait for the next call of a connection, unless it has been read already."""
        if conn.parser is not None and conn.parser.unreader.buf.getvalue():
            self._ahead.append(conn)
            return
        number = conn.sock.fileno()
        self._at_hand[number] = conn, time.monotonic()
        listening.register(number, select.POLLIN)

    def _keep(self, turn: Turn, listening: select.poll, conn: TConn, kept: Any) -> bool:
        """Put a connection where it belongs after a call; whether the thread still has the turn."""
        with self._lock:
            turn.since = None
            mine = self._turn is turn
            if type(conn.parser) is RequestParser and self.cfg.proxy_protocol == "off":
                conn.parser.mesg_class = FurtherCall
            if kept is True and mine and self.alive and not conn.is_http2:
                self._listen(conn, listening)
            else:
                self._return(conn, kept)
            return mine

    def _release_quiet(self, listening: select.poll) -> None:
        now = time.monotonic()
        if now - self._looked > QUIET_SECONDS:
            self._looked = now
            quiet = [n for n, (_, since) in self._at_hand.items() if now - since > QUIET_SECONDS]
            for number in quiet:
                listening.unregister(number)
            self._release(quiet)

    def _release(self, numbers: list[int]) -> None:
        for number in numbers:
            conn = self._at_hand.pop(number)[0]
            self._return(conn, True if conn.initialized else _DEFER)

    def _return(self, conn: TConn, kept: Any) -> None:
        """To the main thread, which listens to it or closes it."""
        done: Future[Any] = Future()
        done.set_result(kept)
        self.method_queue.defer(self.finish_request, conn, done)
