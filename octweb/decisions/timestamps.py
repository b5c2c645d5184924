"""Write requests to a time stamp server, and read its answers (RFC 3161, DER)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

BOOLEAN = 0x01
INTEGER = 0x02
OCTET_STRING = 0x04
OID = 0x06
TIME = 0x18
SEQUENCE = 0x30
SHA256 = bytes.fromhex("0609608648016503040201")  # object identifier 2.16.840.1.101.3.4.2.1, with its tag
TST_INFO = bytes.fromhex("2a864886f70d0109100104")  # 1.2.840.113549.1.9.16.1.4, content type of a time stamp
GRANTED = (0, 1)  # PKIStatus: granted, and granted with modifications


class BadTimestamp(ValueError):
    """An answer is not a time stamp of the hash."""


class Timestamp(NamedTuple):
    """What a time stamp says: the hash (hexadecimal), the time, and the number of the request."""

    sha256: str
    at: datetime
    nonce: int | None


def timestamp_request(sha256: str, nonce: int) -> bytes:
    """Return a request for a time stamp of a hash, with the certificate of the server in its answer."""
    algorithm = _encode(SEQUENCE, SHA256 + b"\x05\x00")
    imprint = _encode(SEQUENCE, algorithm + _encode(OCTET_STRING, bytes.fromhex(sha256)))
    number = _encode(INTEGER, nonce.to_bytes(nonce.bit_length() // 8 + 1, "big"))
    return _encode(SEQUENCE, _encode(INTEGER, b"\x01") + imprint + number + _encode(BOOLEAN, b"\xff"))


def read_timestamp(answer: bytes) -> Timestamp:
    """Return what the time stamp in an answer says. Raises BadTimestamp.

    The signature is not verified: `openssl ts -verify` does, with the certificate that you trust.
    """
    try:
        status, *token = _items(_one(answer, SEQUENCE))
        code = int.from_bytes(_items(status[1])[0][1], "big")
        if code not in GRANTED or not token:
            raise BadTimestamp(f"the server refused the time stamp (status {code})")
        (_, signed) = _items(token[0][1])
        content = _items(_one(signed[1], SEQUENCE))[2]
        kind, wrapped = _items(content[1])
        if kind != (OID, TST_INFO):
            raise BadTimestamp("the answer has no time stamp")
        members = _items(_one(_one(wrapped[1], OCTET_STRING), SEQUENCE))
        algorithm, digest = _items(members[2][1])
        if not algorithm[1].startswith(SHA256):
            raise BadTimestamp("the time stamp has another kind of hash")
        times = [value for tag, value in members if tag == TIME]
        numbers = [value for tag, value in members[5:] if tag == INTEGER]
        at = datetime.strptime(times[0][:14].decode(), "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        return Timestamp(digest[1].hex(), at, int.from_bytes(numbers[0], "big") if numbers else None)
    except BadTimestamp:
        raise
    except (IndexError, ValueError) as error:
        raise BadTimestamp("the answer cannot be read as a time stamp") from error


def _encode(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 128:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 128 + len(length)]) + length + content


def _one(content: bytes, tag: int) -> bytes:
    """Return the value of the only element. Raises ValueError if it has another tag."""
    ((found, value),) = _items(content)
    if found != tag:
        raise ValueError(f"tag {found} instead of {tag}")
    return value


def _items(content: bytes) -> list[tuple[int, bytes]]:
    """Return tag and value of the elements in the content of another one. Raises ValueError if one is cut."""
    items = []
    place = 0
    while place < len(content):
        tag = content[place]
        size = content[place + 1]
        place += 2
        if size >= 128:
            digits = size - 128
            size = int.from_bytes(content[place : place + digits], "big")
            place += digits
        if place + size > len(content):
            raise ValueError("an element is cut")
        items.append((tag, content[place : place + size]))
        place += size
    return items
