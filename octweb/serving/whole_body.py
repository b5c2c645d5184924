"""A long body of known length straight from the socket to its place.

gunicorn collects a body in buffers that are copied several times over. For a body of 800 kB that took longer than reading its numbers.
What is used of gunicorn here is public by name but not documented: another version than the one that this was tried with is asked
for the body as WSGI has it.
"""

from __future__ import annotations

from typing import Any

import gunicorn
from gunicorn.http.body import LengthReader

from octweb.core.gunicorn_worker import VERSION

LONG = 20_000  # bytes below which there is nothing to gain


def whole_body(stream: Any, length: int) -> bytes | bytearray:
    """`length` bytes of `wsgi.input`, which was not read before; fewer if the connection ends early."""
    reader: Any = getattr(stream, "reader", None)
    if length < LONG or gunicorn.version_info[:2] != VERSION or type(reader) is not LengthReader:
        return bytes(stream.read(length))
    if reader.length != length or stream.buf.tell() or not hasattr(reader.unreader, "sock"):
        return bytes(stream.read(length))
    try:
        body = _receive_body(reader.unreader, length)
    except BaseException:
        stream.failed = True  # it is not known where the next call begins
        raise
    reader.length -= len(body)
    return body


def _receive_body(unreader: Any, length: int) -> bytearray:
    buffered = unreader.take_buffered()
    unreader.unread(buffered[length:])  # of the next call
    content = bytearray(length)
    at = min(length, len(buffered))
    content[:at] = buffered[:at]
    view = memoryview(content)
    while at < length:
        size = unreader.sock.recv_into(view[at:])
        if not size:
            return content[:at]
        at += size
    return content
