"""Reuse the parsed head of a request if its connection sends the same head again.

Clients that keep their connection send the same head with every prediction. To parse it again and to rebuild its
environment took a third of the call's processor time.
"""

from __future__ import annotations

import io
from typing import Any

from gunicorn.http.body import LengthReader
from gunicorn.http.message import Request
from gunicorn.http.parser import RequestParser

MAX_HEADS = 4  # of a connection; bodies of different lengths have different heads
MAX_HEAD_BYTES = 2_000
END = b"\r\n\r\n"
NOT_SHARED = ("wsgi.input", "wsgi.early_hints")  # belong to one call
# key of a dictionary in the environment of calls with a known head, for what the application reads from the head
SHARED = "octweb.head"


class KnownHead:
    """Head of a call as gunicorn parsed it, the length of its body, and its environment once it is known."""

    def __init__(self, request: Any) -> None:
        self.parsed: dict[str, Any] = request.__dict__.copy()
        self.length: int = request.body.reader.length
        self.environ: dict[str, Any] | None = None

    def keep(self, environ: dict[str, Any]) -> None:
        """Keep the environment of the first call, before the application changes it."""
        self.environ = {name: value for name, value in environ.items() if name not in NOT_SHARED}
        self.environ[SHARED] = {}


class KnownRequest(Request):
    """Request with a known head, whose whole body has arrived."""

    def __init__(self, head: KnownHead, body: bytes) -> None:
        self.__dict__.update(head.parsed)
        self.head = head
        self.body = io.BytesIO(body)

    def should_close(self) -> bool:
        return bool(self.must_close)  # only heads that keep the connection open become known


class KnownHeadParser(RequestParser):
    """Parser of a connection that has received a call already."""

    mesg: Any
    unreader: Any

    def __init__(self, parser: RequestParser) -> None:
        self.__dict__.update(parser.__dict__)
        self.mesg_class = self._next_message
        self._heads: dict[bytes, KnownHead] = {}

    def finish_body(self, deadline: float | None = None, max_bytes: int | None = None) -> bool:
        return type(self.mesg) is KnownRequest or super().finish_body(deadline, max_bytes)

    def _next_message(self, cfg: Any, unreader: Any, address: Any, number: int) -> Any:
        """Return the next request. Let gunicorn parse it unless its head is known and its body has arrived."""
        data = unreader.read()
        end = data.find(END) + len(END)
        head = self._heads.get(data[:end])
        if head is not None and len(data) >= end + head.length:
            if len(data) > end + head.length:
                unreader.unread(data[end + head.length :])
            return KnownRequest(head, data[end : end + head.length])
        unreader.unread(data)
        request = Request(cfg, unreader, address, number)
        if data.startswith(b"POST ") and len(END) <= end <= MAX_HEAD_BYTES:
            self._remember(data[:end], request)
        return request

    def _remember(self, content: bytes, request: Any) -> None:
        # with `Expect: 100-continue`, gunicorn sends an interim response while it makes the environment
        expects = any(name == "EXPECT" for name, _ in request.headers)
        if expects or request.should_close() or type(request.body.reader) is not LengthReader:
            return
        if len(self._heads) >= MAX_HEADS:
            self._heads.clear()
        request.head = self._heads[content] = KnownHead(request)
