"""Read a long body of known length from the socket without copies.

gunicorn collects a body in buffers that it copies several times. For a body of 800 kB that took longer than parsing its
numbers. The members of gunicorn that are used here have public names but are not documented. With other versions than
the tested one, the body is read through WSGI.
"""

from __future__ import annotations

from typing import Any

import gunicorn
from gunicorn.http.body import LengthReader

from octweb.core.gunicorn_worker import VERSION

LONG_BODY_BYTES = 20_000  # bytes; a shorter body gains nothing here


def whole_body(stream: Any, length: int) -> bytes | bytearray:
    """Read `length` bytes of `wsgi.input`, from which nothing was read before.

    Return fewer if the connection ends early.
    """
    reader: Any = getattr(stream, "reader", None)
    if length < LONG_BODY_BYTES or gunicorn.version_info[:2] != VERSION or type(reader) is not LengthReader:
        return bytes(stream.read(length))
    if reader.length != length or stream.buf.tell() or not hasattr(reader.unreader, "sock"):
        return bytes(stream.read(length))
    try:
        body = _receive_body(reader.unreader, length)
    except BaseException:
        stream.failed = True  # nobody knows where the next call begins, so the connection must close
        raise
    reader.length -= len(body)
    return body


def _receive_body(unreader: Any, length: int) -> bytearray:
    buffered = unreader.take_buffered()
    unreader.unread(buffered[length:])  # these bytes belong to the next call
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
