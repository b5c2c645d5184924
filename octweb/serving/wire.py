"""Handle chunked, compressed, long, truncated and unread HTTP bodies.

If a response is sent before the body was read, the rest of the body stays on the connection, and the server would read
it as the next call. So the rest is read and dropped. Beyond a limit the connection is closed instead, and the response
announces it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import IO, Any

import orjson
from django.conf import settings
from django.core.exceptions import BadRequest

from octweb.core.headers import security_headers
from octweb.core.known_heads import SHARED
from octweb.core.problems import CONTENT_TYPE, Busy, document
from octweb.core.unavailable import RETRY_SECONDS, reason_of
from octweb.serving.body_budget import BODY_BUDGET
from octweb.serving.coding import (
    CODINGS,
    MIN_COMPRESSED_BYTES,
    DamagedBody,
    TooLong,
    UnknownCoding,
    compress_body,
    spool_decoded,
)

# bytes of an unread body that are read and dropped, because a client that still sends would miss the response
DROPPED = 64_000_000
READ_TIMEOUT_SECONDS = 5.0  # longest wait for the next byte of a body that is dropped
FORM_OVERHEAD_BYTES = 1_000_000  # bytes that a form may have besides its uploaded file
FORM_WEIGHT = 3
LONG_BODY_BYTES = (
    1_000_000  # bytes; a longer body goes to a file before it takes budget, so that slow callers hold no budget
)
PACKED_PATHS = ("/api/v1/", "/v2", "/invocations")  # programs get these responses; the proxy compresses pages

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class CutOff(BadRequest):
    """The connection ended before the body was complete."""


class Body:
    """`wsgi.input` of known length. It counts the unread bytes and raises CutOff if the body ends too early."""

    def __init__(self, stream: Any, length: int) -> None:
        self.stream = stream
        self.unread = length

    def read(self, size: int | None = -1) -> bytes:
        length = self.unread if size is None or size < 0 else min(size, self.unread)
        return self._count_read(self.stream.read(length), length) if length else b""

    def readline(self, size: int | None = -1) -> bytes:
        length = self.unread if size is None or size < 0 else min(size, self.unread)
        if not length:
            return b""
        line = self.stream.readline(length)
        return self._count_read(line, 1 if line else length)

    def __iter__(self) -> Any:
        return iter(self.readline, b"")

    def drop(self) -> bool:
        """Read and drop the rest of the body. Return False if it is too long or does not arrive."""
        if self.unread > DROPPED:
            return False
        try:
            while self.unread:
                self.read(1 << 16)
        except (OSError, CutOff):
            return False
        return True

    def _count_read(self, content: bytes, length: int) -> bytes:
        self.unread -= len(content)
        if len(content) < length:
            raise CutOff(
                f"The body is shorter than its Content-Length: {self.unread:,} bytes did not come. Send it again."
            )
        return content


class Wire:
    """WSGI wrapper for an application that can only read uncompressed bodies of known length."""

    def __init__(self, application: Application) -> None:
        self.application = application

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ.get("SERVER_PROTOCOL") == "HTTP/1.1" and not environ.get("HTTP_HOST"):
            no_host = BodyRefused(
                400, "The header Host is missing. Every call of HTTP/1.1 needs it (RFC 9112, section 3.2)."
            )
            return _refuse(environ, start_response, no_host, closing=True)
        chunked = "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
        length = environ.get("CONTENT_LENGTH") or "0"
        if length.isdigit() and not chunked:
            environ["wsgi.input"] = Body(environ["wsgi.input"], int(length))
        size = int(length) if length.isdigit() else 0
        # without a body, the header means nothing
        codings = environ.get("HTTP_CONTENT_ENCODING", "") if chunked or size else ""
        if chunked or codings or size > (_body_limit(environ) if _is_form(environ) else LONG_BODY_BYTES):
            return self._collected(environ, start_response, codings, chunked=chunked)
        return self._with_room(environ, start_response, environ, size)

    def _collected(
        self, environ: dict[str, Any], start_response: Callable[..., Any], codings: str, *, chunked: bool
    ) -> Iterable[bytes]:
        """Read the body to its end, then return the response of the application to it."""
        try:
            body, size = _read_body(environ, codings)
        except BodyRefused as error:
            return _refuse(environ, start_response, error, closing=chunked)
        try:
            inner = environ | {"wsgi.input": body, "CONTENT_LENGTH": str(size)}
            # SHARED belongs to the head, which states the length of the body as it was sent
            for name in ("HTTP_TRANSFER_ENCODING", "HTTP_CONTENT_ENCODING", SHARED):
                inner.pop(name, None)
            return self._with_room(environ, start_response, inner, size)
        finally:
            body.close()

    def _with_room(
        self, environ: dict[str, Any], start_response: Callable[..., Any], inner: dict[str, Any], size: int
    ) -> Iterable[bytes]:
        try:
            with BODY_BUDGET.reserve(size * _weight(environ)):
                return _send(environ, start_response, *_call_application(self.application, inner))
        except Busy as error:
            full = BodyRefused(error.status_code, str(error.detail), ("Retry-After", str(error.wait)))
            return _refuse(environ, start_response, full)


def _kind(environ: dict[str, Any]) -> str:
    return str(environ.get("CONTENT_TYPE") or "").partition(";")[0].strip().lower()


def _is_form(environ: dict[str, Any]) -> bool:
    """Return whether the body is a form with files, which Django streams into files."""
    return _kind(environ) == "multipart/form-data"


def _weight(environ: dict[str, Any]) -> int:
    """Return the budget for a byte of the body.

    A page's form takes more than JSON, and a form with files takes none.
    """
    return {"multipart/form-data": 0, "application/x-www-form-urlencoded": FORM_WEIGHT}.get(_kind(environ), 1)


def _body_limit(environ: dict[str, Any]) -> int:
    """Return the size limit of this kind of body, in bytes."""
    return settings.MAX_UPLOAD_BYTES + FORM_OVERHEAD_BYTES if _is_form(environ) else settings.MAX_PREDICT_BYTES


class BodyRefused(Exception):
    """The body cannot be read. The error has the status, the reason and further headers of the response."""

    def __init__(self, status: int, detail: str, *headers: tuple[str, str]) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers


def _read_body(environ: dict[str, Any], codings: str) -> tuple[IO[bytes], int]:
    """Return the decompressed body as a file, and its length. Raises BodyRefused."""
    limit = _body_limit(environ)
    try:
        if int(environ.get("CONTENT_LENGTH") or 0) > limit:
            raise TooLong
        return spool_decoded(environ["wsgi.input"], codings, limit)
    except TooLong as error:
        raise BodyRefused(
            413, f"The body is larger than {limit // 10**6} MB. Send the rows in several calls."
        ) from error
    except UnknownCoding as error:
        codings_words = ", ".join(CODINGS)
        text = f"Content-Encoding '{str(error)[:40]}' is not known. Send one of {codings_words}, or none."
        raise BodyRefused(415, text, ("Accept-Encoding", codings_words)) from error
    except CutOff as error:
        raise BodyRefused(400, str(error)) from error
    except DamagedBody as error:
        raise BodyRefused(400, f"The body is not what its Content-Encoding '{codings[:40]}' says: {error}.") from error
    except Exception as error:  # gunicorn has several errors for a damaged chunk
        if reason := reason_of(error):
            raise BodyRefused(503, reason, ("Retry-After", str(RETRY_SECONDS))) from error
        raise BodyRefused(400, f"The chunked body is damaged ({type(error).__name__}). Send it again.") from error


def _refuse(
    environ: dict[str, Any], start_response: Callable[..., Any], error: BodyRefused, *, closing: bool = False
) -> Iterable[bytes]:
    """Return the response to a refused call, which the application does not see."""
    return _send(environ, start_response, *_refusal(error), closing=closing)


def _refusal(error: BodyRefused) -> tuple[str, list[tuple[str, str]], Iterable[bytes]]:
    body = orjson.dumps(document(error.status, error.detail))
    headers = [("Content-Type", CONTENT_TYPE), ("Content-Length", str(len(body))), *security_headers().items()]
    return f"{error.status} {HTTPStatus(error.status).phrase}", [*headers, *error.headers], [body]


def _call_application(
    application: Application, environ: dict[str, Any]
) -> tuple[str, list[tuple[str, str]], Iterable[bytes]]:
    response: list[Any] = []
    result = application(environ, lambda status, headers, *rest: response.extend((status, headers)))
    return response[0], response[1], result


def _send(
    environ: dict[str, Any],
    start_response: Callable[..., Any],
    status: str,
    headers: list[tuple[str, str]],
    result: Iterable[bytes],
    *,
    closing: bool = False,
) -> Iterable[bytes]:
    """Start the response and return its body.

    The rest of the request body is discarded first. If this is not possible, the connection is closed after the
    response.
    """
    body = environ["wsgi.input"]
    if closing or (isinstance(body, Body) and not _drop_body(environ, body)):
        close_after(start_response)
    if environ.get("HTTP_ACCEPT_ENCODING") and environ.get("PATH_INFO", "").startswith(PACKED_PATHS):
        headers, result = _compress_response(environ, headers, result)
    start_response(status, headers)
    return result


def _drop_body(environ: dict[str, Any], body: Body) -> bool:
    line = environ.get("gunicorn.socket")
    if not body.unread or line is None:
        return body.drop()
    before = line.gettimeout()
    line.settimeout(READ_TIMEOUT_SECONDS)
    try:
        return body.drop()
    finally:
        line.settimeout(before)


def close_after(start_response: Callable[..., Any]) -> None:
    """Let gunicorn close the connection after the response, and announce this in the response.

    A header alone would not close it.
    """
    force = getattr(getattr(start_response, "__self__", None), "force_close", None)
    if force is not None:
        force()


def _compress_response(
    environ: dict[str, Any], headers: list[tuple[str, str]], result: Iterable[bytes]
) -> tuple[list[tuple[str, str]], Iterable[bytes]]:
    """Compress the response in a coding that the caller accepts.

    Streams, short or already encoded responses, and responses to HEAD stay unchanged.
    """
    header_values = {name.lower(): value for name, value in headers}
    short = int(header_values.get("content-length", "0")) < MIN_COMPRESSED_BYTES
    looked = "accept-encoding" in header_values.get("vary", "").lower()
    if short or looked or "content-encoding" in header_values or environ["REQUEST_METHOD"] == "HEAD":
        return headers, result
    try:
        body, coding = compress_body(b"".join(result), environ["HTTP_ACCEPT_ENCODING"])
    finally:
        if hasattr(result, "close"):
            result.close()
    changed = coding_headers(coding, len(body), header_values.get("vary", ""))
    if coding and header_values.get("etag", "").startswith('"'):
        changed.append(("ETag", f"W/{header_values['etag']}"))
    replaced = {name.lower() for name, _ in changed}
    return [(n, v) for n, v in headers if n.lower() not in replaced] + changed, [body]


def coding_headers(coding: str, length: int, vary: str = "") -> list[tuple[str, str]]:
    """Return the headers of a response that may be compressed. `coding` is "" if it is not."""
    coded_headers = [
        ("Content-Length", str(length)),
        ("Vary", f"{vary}, Accept-Encoding" if vary else "Accept-Encoding"),
    ]
    return [*coded_headers, ("Content-Encoding", coding)] if coding else coded_headers
