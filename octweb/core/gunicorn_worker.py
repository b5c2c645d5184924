"""gunicorn's threaded worker, staying a moment with a connection: the next call of a busy client needs no other thread.

Between two calls `gthread` hands a connection to its main thread, which waits for it with all others and hands it to a free thread
again. Under Python's lock these two changes of threads take longer than a small prediction. Here the thread that answered waits for
a millisecond itself, as long as no more connections are at work than there are threads, so that nobody waits for it.
"""

from __future__ import annotations

import select
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker

PATIENCE_MS = 1
CALLS = 1000  # then the main thread sees the connection, and whether the worker has to end


class Worker(ThreadWorker):
    """`--worker-class octweb.core.gunicorn_worker.Worker`"""

    def handle(self, conn: TConn) -> Any:
        """Answer the call that waits on `conn`, and those that follow at once; what `ThreadWorker.handle` returns for the last."""
        kept = super().handle(conn)
        if kept is not True or conn.is_http2 or self.cfg.is_ssl:
            return kept  # under TLS the next call may have been read already
        waiting = select.poll()
        waiting.register(conn.sock, select.POLLIN)
        for _ in range(CALLS):
            if not (self.alive and self._room()) or conn.parser.unreader.buf.getvalue():
                break  # bytes of the next call that were read already are for the main thread to see
            if not waiting.poll(PATIENCE_MS):
                break
            kept = super().handle(conn)
            if kept is not True or conn.is_http2:
                break
        return kept

    def _room(self) -> bool:
        """Whether every connection at work has a thread."""
        return self.nr_conns - len(self.keepalived_conns) - len(self.pending_conns) <= self.cfg.threads
