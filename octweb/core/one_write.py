"""Send a small response with one write to its socket.

gunicorn's worker writes head and body separately, checks the same headers for every response, and evaluates each
setting at every use. For a prediction of one row, this took more than a third of the call's processor time.
"""

from __future__ import annotations

import time
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from gunicorn.http.errors import InvalidResponseHeaderName
from gunicorn.http.parser import RequestParser
from gunicorn.http.wsgi import Response, create
from gunicorn.util import close_graceful, http_date

from octweb.core.known_heads import KnownHeadParser

LENGTH = "content-length"


class FixedConfig:
    """Worker configuration that evaluates each setting only once, because settings never change."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.source, name)
        setattr(self, name, value)
        return value


class HeaderLines(NamedTuple):
    """Headers of a response as text, and the length of its body."""

    text: str
    length: int


class OneWrite(Response):
    """Response that writes its head together with a body of one piece."""

    status: str | None
    headers_sent: bool
    lines: HeaderLines | None = None

    def start_response(self, status: str, headers: Any, exc_info: Any = None) -> Any:
        """Start the response to a successful call with ordinary headers. Let gunicorn start any other."""
        if status == "200 OK" and exc_info is None and self.status is None and self.req.method == "POST":
            self.lines = _header_lines(headers)
        if self.lines is None:
            return super().start_response(status, headers, exc_info)
        self.status = status
        self.status_code = 200
        self.headers = headers
        self.response_length = self.lines.length
        return self.write

    def write(self, arg: bytes) -> None:
        """Send head and `arg` in one write if `arg` is the whole body. Otherwise do as gunicorn does."""
        if self.lines is None or self.headers_sent or len(arg) != self.lines.length or not isinstance(arg, bytes):
            super().write(arg)
            return
        connection = "close" if self.should_close() else "keep-alive"
        begin = _begin_of_head(self.req.version, self.version, connection, int(time.time()))
        self.sock.sendall(b"".join((begin, self.lines.text.encode("ascii"), b"\r\n", arg)))
        self.headers_sent = True
        self.sent = len(arg)


def _header_lines(headers: Any) -> HeaderLines | None:
    """Return the lines of headers that gunicorn sends unchanged, with one length. Return None for all others.

    Values differ from call to call, so only the form of the lines is cached, by their names.
    """
    if not headers:
        return None
    names, values = zip(*headers, strict=True)
    form = _form_of_lines(names)
    if form is None:
        return None
    text = form.text % values
    length = values[form.length]
    # without a printed control character, each line ends where it should
    printed = "".join(values)
    if not (printed.isascii() and printed.isprintable() and length.isdigit()):
        return None
    return HeaderLines(text, int(length))


@lru_cache(maxsize=256)
def _form_of_lines(names: tuple[Any, ...]) -> HeaderLines | None:
    """Return a format for header lines of these names, with the position of Content-Length among the values."""
    response = Response(None, None, None)
    try:
        response.process_headers([(name, "1") for name in names])
    except (TypeError, InvalidResponseHeaderName):
        return None
    lower = [name.lower() for name in names]
    is_unchanged = [name for name, _ in response.headers] == list(names)
    if not is_unchanged or lower.count(LENGTH) != 1 or "%" in "".join(names):
        return None
    return HeaderLines("".join([f"{name}: %s\r\n" for name in names]), lower.index(LENGTH))


@lru_cache(maxsize=256)
def _begin_of_head(version: tuple[int, int], server: str, connection: str, now: int) -> bytes:
    lines = f"Server: {server}\r\nDate: {http_date(now)}\r\nConnection: {connection}\r\n"
    return f"HTTP/{version[0]}.{version[1]} 200 OK\r\n{lines}".encode("latin-1")


def answer_in_one_write(worker: Any, request: Any, conn: Any) -> bool:
    """Handle a request like `ThreadWorker.handle_request`, but respond in one write.

    Return whether the connection stays open.
    """
    environ: dict[str, Any] = {}
    response = None
    try:
        worker.cfg.pre_request(worker, request)
        start = datetime.now()
        response, environ = _create(worker, request, conn)
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


def _create(worker: Any, request: Any, conn: Any) -> tuple[OneWrite, dict[str, Any]]:
    """Return the response and the environment of a call."""
    head = getattr(request, "head", None)
    if head is not None and head.environ is not None:
        environ = head.environ.copy()
        environ["wsgi.input"] = request.body
        return OneWrite(request, conn.sock, worker.cfg), environ
    response, environ = create(request, conn.sock, conn.client, conn.server, worker.cfg, response_class=OneWrite)
    environ["wsgi.multithread"] = True
    if head is not None:
        head.keep(environ)
    elif type(conn.parser) is RequestParser:
        conn.parser = KnownHeadParser(conn.parser)
    return response, environ


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
