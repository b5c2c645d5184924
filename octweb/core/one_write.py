"""Send a small response with one write to its socket.

gunicorn's worker writes head and body separately, checks the same headers for every response, and evaluates each
setting at every use. For a prediction of one row, this took more than a third of the call's processor time.
"""

from __future__ import annotations

import time
from datetime import datetime
from functools import lru_cache
from typing import Any

from gunicorn.http.wsgi import Response, create
from gunicorn.util import close_graceful, http_date

Headers = tuple[tuple[str, str], ...]


class FixedConfig:
    """Worker configuration that evaluates each setting only once, because settings never change."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.source, name)
        setattr(self, name, value)
        return value


class OneWrite(Response):
    """Response that writes its head together with a body of one piece."""

    headers_sent: bool

    def process_headers(self, headers: Any) -> None:
        """Check and sort headers like gunicorn, with a cache for equal headers."""
        checked = _process_headers(tuple(headers))
        self.headers = list(checked.headers)
        self.response_length = checked.response_length
        self.upgrade = checked.upgrade

    def write(self, arg: bytes) -> None:
        """Send head and `arg` in one write if `arg` is the whole body of a successful POST.

        Otherwise do as gunicorn does.
        """
        is_whole_response = self.status == "200 OK" and self.req.method == "POST" and len(arg) == self.response_length
        if self.headers_sent or not is_whole_response or self.upgrade or not isinstance(arg, bytes):
            super().write(arg)
            return
        connection = "close" if self.should_close() else "keep-alive"
        now = int(time.time())
        self.sock.sendall(_head(self.req.version, self.version, connection, tuple(self.headers), now) + arg)
        self.headers_sent = True
        self.sent = len(arg)


@lru_cache(maxsize=256)
def _process_headers(headers: Headers) -> Response:
    response = Response(None, None, None)
    response.process_headers(headers)
    return response


@lru_cache(maxsize=256)
def _head(version: tuple[int, int], server: str, connection: str, headers: Headers, now: int) -> bytes:
    lines_of_server = (("Server", server), ("Date", http_date(now)), ("Connection", connection))
    lines = [f"{name}: {value}\r\n" for name, value in (*lines_of_server, *headers)]
    return f"HTTP/{version[0]}.{version[1]} 200 OK\r\n{''.join(lines)}\r\n".encode("latin-1")


def answer_in_one_write(worker: Any, request: Any, conn: Any) -> bool:
    """Handle a request like `ThreadWorker.handle_request`, but respond in one write.

    Return whether the connection stays open.
    """
    environ: dict[str, Any] = {}
    response = None
    try:
        worker.cfg.pre_request(worker, request)
        start = datetime.now()
        response, environ = create(request, conn.sock, conn.client, conn.server, worker.cfg, response_class=OneWrite)
        environ["wsgi.multithread"] = True
        _count(worker, response)
        _send(worker, response, environ, request, start)
        return not response.should_close()
    except OSError:
        raise
    except (Exception, SystemExit):
        if response is None or not response.headers_sent:
            raise
        worker.log.exception("Error handling request")
        close_graceful(conn.sock)
        raise StopIteration from None
    finally:
        try:
            worker.cfg.post_request(worker, request, environ, response)
        except Exception:  # the response is already sent, so an error in the operator's hook must not change it
            worker.log.exception("Exception in post_request hook")


def _count(worker: Any, response: Response) -> None:
    """Count the call. Mark the connection to close if the worker is ending or has too many idle ones."""
    worker.nr += 1
    if worker.nr >= worker.max_requests and worker.alive:
        worker.log.info("Autorestarting worker after current request.")
        worker.alive = False
    if not worker.alive or not worker.cfg.keepalive or len(worker.keepalived_conns) >= worker.max_keepalived:
        response.force_close()


def _send(worker: Any, response: Response, environ: dict[str, Any], request: Any, start: datetime) -> None:
    pieces = worker.wsgi(environ, response.start_response)
    try:
        if isinstance(pieces, environ["wsgi.file_wrapper"]):
            response.write_file(pieces)
        else:
            for piece in pieces:
                response.write(piece)
        response.close()
    finally:
        worker.log.access(response, request, environ, datetime.now() - start)
        if hasattr(pieces, "close"):
            pieces.close()
