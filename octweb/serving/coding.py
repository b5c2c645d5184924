"""Decompress requests and compress responses: gzip, deflate and zstd.

Requests are decompressed piece by piece, never beyond a limit.
"""

from __future__ import annotations

import gzip
import tempfile
import zlib
from collections.abc import Iterator
from itertools import chain
from typing import IO, Any

import pyarrow as pa

PIECE = 1 << 16
MAX_MEMORY_BYTES = 2_500_000  # bytes; a larger body goes to a temporary file
CODINGS = ("gzip", "deflate", "zstd")  # content codings of requests and responses, by their names in `Accept-Encoding`
MIN_COMPRESSED_BYTES = 1_000  # bytes; compressing a smaller response costs more than it saves


class TooLong(ValueError):
    """The body is longer than the limit."""


class DamagedBody(ValueError):
    """The body is not encoded as its header says."""


class UnknownCoding(ValueError):
    """This server does not support the coding."""


def spool_decoded(stream: Any, codings: str, limit: int) -> tuple[IO[bytes], int]:
    """Return a file with the decompressed bytes of `stream`, and their number.

    `codings` is the value of `Content-Encoding`. Raises TooLong if the body exceeds `limit` bytes, compressed or not.
    Raises DamagedBody and UnknownCoding.
    """
    pieces = _check_size(_pieces(stream), limit)
    # the client applied the last coding last, so it is removed first
    for coding in reversed([c.strip().lower() for c in codings.split(",")]):
        if coding not in ("", "identity"):
            pieces = _check_size(_decompress(pieces, coding), limit)
    out = tempfile.SpooledTemporaryFile(max_size=MAX_MEMORY_BYTES)  # noqa: SIM115  (it outlives this call)
    try:
        for piece in pieces:
            out.write(piece)
    except BaseException:
        out.close()
        raise
    size = out.tell()
    out.seek(0)
    return out, size


def compress_body(body: bytes, accepted: str) -> tuple[bytes, str]:
    """Return `body` in the coding that the caller prefers, and the coding's name.

    Short bodies stay unchanged, with the name "".
    """
    coding = _best(accepted) if len(body) >= MIN_COMPRESSED_BYTES else ""
    if coding == "gzip":
        return gzip.compress(body, compresslevel=1, mtime=0), coding
    if coding == "deflate":
        return zlib.compress(body, 1), coding
    if coding == "zstd":
        return bytes(pa.Codec("zstd", compression_level=1).compress(body)), coding
    return body, ""


def _best(accepted: str) -> str:
    """Return the coding with the highest weight in `Accept-Encoding`. Ties are broken by the order of CODINGS.

    Return "" if no coding is accepted, or if `identity` has more weight.
    """
    weights: dict[str, float] = {}
    for part in accepted.lower().split(","):
        name, _, parameter = part.partition(";")
        try:
            weights[name.strip()] = float(parameter.strip().removeprefix("q=") or 1)
        except ValueError:
            continue
    coding = max(CODINGS, key=lambda c: weights.get(c, 0.0))
    return coding if weights.get(coding, 0.0) > 0 and weights[coding] >= weights.get("identity", 0.0) else ""


def _pieces(stream: Any) -> Iterator[bytes]:
    while piece := stream.read(PIECE):
        yield piece


def _check_size(pieces: Iterator[bytes], limit: int) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > limit:
            raise TooLong
        yield piece


def _decompress(pieces: Iterator[bytes], coding: str) -> Iterator[bytes]:
    if coding in ("gzip", "x-gzip"):
        return _inflate(pieces, 16 + zlib.MAX_WBITS)
    if coding == "deflate":
        return _inflate(pieces, zlib.MAX_WBITS)
    if coding == "zstd":
        return _zstd(pieces)
    raise UnknownCoding(coding)


def _inflate(pieces: Iterator[bytes], window: int) -> Iterator[bytes]:
    """Decompress gzip, possibly with several members, or deflate, which some clients send without the zlib header."""
    engine = zlib.decompressobj(window)
    begun = False
    for piece in pieces:
        unread = piece
        while unread:
            if engine.eof:
                if window == zlib.MAX_WBITS:
                    raise DamagedBody("bytes are left over after its end")
                engine = zlib.decompressobj(window)
            try:
                out = engine.decompress(unread, PIECE)
            except zlib.error as error:
                if begun or window != zlib.MAX_WBITS:
                    raise DamagedBody(str(error)) from error
                window = -zlib.MAX_WBITS
                engine = zlib.decompressobj(window)
                begun = True
                continue
            begun = True
            unread = engine.unconsumed_tail or engine.unused_data
            if out:
                yield out
    if not engine.eof:
        raise DamagedBody("it ends too early")


class _File:
    """Adapter from pieces of bytes to a file that pyarrow reads."""

    closed = False

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._rest) < size:
            piece = next(self._pieces, b"")
            if not piece:
                break
            self._rest += piece
        out, self._rest = (self._rest, b"") if size < 0 else (self._rest[:size], self._rest[size:])
        return out

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


def _zstd(pieces: Iterator[bytes]) -> Iterator[bytes]:
    first = next(pieces, b"")
    if not first:
        raise DamagedBody("it is empty")
    try:
        with pa.CompressedInputStream(pa.PythonFile(_File(chain([first], pieces)), mode="r"), "zstd") as stream:
            while piece := stream.read(PIECE):
                yield piece
    except (OSError, pa.ArrowException) as error:
        raise DamagedBody(str(error)[:200]) from error
