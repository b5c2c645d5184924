"""Send a signed POST to a user's webhook within one deadline.

The host is resolved once, and the connection uses an address that was checked. A second DNS answer therefore cannot
lead into this server's network. DNS, connecting, TLS, sending and reading share one deadline. With a limit per
operation, a server that sends single bytes could hold the sender forever.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import json
import queue
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

SECONDS = 5.0  # limit for one message, from the DNS query to the last response header
MAX_HEAD_BYTES = 16_384  # limit on the response headers; a few more bytes may be read
MAX_LOOKUPS = 16  # at most this many threads may wait for DNS at once
RECEIVE_BYTES = 4096
INFORMATIONAL = range(100, 200)
SWITCHING_PROTOCOLS = 101
SIGNATURE = "X-Octweb-Signature"  # signs only the body, for receivers that do not know the headers below
# the Standard Webhooks specification defines these three headers
ID_HEADER = "Webhook-Id"
TIMESTAMP_HEADER = "Webhook-Timestamp"
SIGNATURE_HEADER = "Webhook-Signature"

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")  # the only part of IPv6 that the internet routes (RFC 4291)
NAT64 = ipaddress.ip_network("64:ff9b::/96")  # gateways translate the last 32 bits to IPv4 (RFC 6052)
# Python 3.11 reports `is_global` as true for these networks, or for parts of them
REFUSED = [
    ipaddress.ip_network(network)
    for network in (
        "192.0.0.0/24",  # IETF protocol assignments (RFC 6890)
        "192.88.99.0/24",  # anycast of 6to4 relays, deprecated (RFC 7526)
        "224.0.0.0/4",  # multicast
        "2001::/23",  # IETF protocol assignments, Teredo and ORCHID among them (RFC 2928)
        "3fff::/20",  # documentation (RFC 9637)
    )
]

_lookups = threading.Semaphore(MAX_LOOKUPS)


class Undelivered(Exception):
    """The message did not arrive. The text says why."""


class Deadline:
    """Deadline of one message, shared by all its network operations."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the remaining seconds. Raises TimeoutError if none are left."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """A message with its id. All tries have the same id."""

    id: str
    message: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Post:
    """A body with its headers. `most` is the largest answer to read, in bytes; 0: only its status."""

    body: bytes
    headers: Mapping[str, str]
    most: int = 0


def send(url: str, secret: str, envelope: Envelope) -> None:
    """POST the message as JSON.

    Raises Undelivered for a bad URL, a private host, no response within `SECONDS`, or a status other than 2xx.
    """
    post(url, _signed_post(secret, envelope))


def post(url: str, message: Post) -> bytes:
    """POST a body, and return the content of the answer. Raises Undelivered like `send`, and for a longer answer."""
    parts, port = parse_address(url)
    host = parts.hostname or ""
    deadline = Deadline(SECONDS)
    try:
        connection = _connect(parts.scheme, host, _look_up(host, port, deadline), port, deadline)
        try:
            _send_all(connection, _request(parts, message), deadline)
            status, head, content = _read_head(connection, deadline)
            if message.most and 200 <= status < 300:
                content = _read_content(connection, head, content, message.most, deadline)
        finally:
            connection.close()
    except TimeoutError as error:
        raise Undelivered(f"{host} did not answer within {deadline.seconds:g} seconds.") from error
    except (OSError, ValueError) as error:
        raise Undelivered(f"No answer from {host}: {error}"[:300]) from error
    if not 200 <= status < 300:
        raise Undelivered(f"{host} answered with status {status}; a status from 200 to 299 is needed.")
    return content


def parse_address(url: str) -> tuple[SplitResult, int]:
    """Return the parts and the port of a webhook URL. Raises Undelivered if the URL is not allowed."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        url.encode("ascii")
    except ValueError as error:
        raise Undelivered("This is not an address. Write for example https://example.org/hook, in ASCII.") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Undelivered("The address must begin with https:// or http://.")
    if parts.username or parts.password:
        raise Undelivered(
            "The address contains a password, which is not allowed. Let the receiver check the signature instead."
        )
    if any(not 0x20 < ord(character) < 0x7F for character in url):
        raise Undelivered("The address contains a space or a control character. Write these as in %20.")
    return parts, port


def sign(secret: str, delivery_id: str, timestamp: str, body: bytes) -> str:
    """Return the value of `Webhook-Signature`: HMAC with SHA-256 over id, time and body."""
    signed = f"{delivery_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(secret.encode(), signed, hashlib.sha256)).decode()


def is_public(text: str) -> bool:
    """Return whether an IP address is public: routed on the internet, and not private, reserved or multicast."""
    address = _unwrap_ipv4(ipaddress.ip_address(text.partition("%")[0]))
    if not address.is_global or any(address in network for network in REFUSED):
        return False
    return address.version == 4 or address in GLOBAL_UNICAST


def _unwrap_ipv4(address: Address) -> Address:
    """Return the IPv4 address inside a NAT64, 6to4 or IPv4-mapped address. Other addresses are returned unchanged."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address.sixtofour is not None:
        return address.sixtofour
    return address.ipv4_mapped or address


def _look_up(host: str, port: int, deadline: Deadline) -> list[str]:
    """Resolve a host to its addresses.

    Raises Undelivered if an address is not public, unless WEBHOOK_HOSTS names the host.
    """
    if not _lookups.acquire(blocking=False):
        raise Undelivered("This server already looks up too many hosts. It will try the message again later.")
    answer: queue.SimpleQueue[list[Any] | OSError] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answer.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            answer.put(OSError(str(error)))
        finally:
            _lookups.release()

    # getaddrinfo cannot be interrupted, so the thread may outlive this call
    threading.Thread(target=ask, name="look-up", daemon=True).start()
    try:
        entries = answer.get(timeout=deadline.left())
    except queue.Empty as error:
        raise TimeoutError from error
    if isinstance(entries, OSError):
        raise Undelivered(f"The host {host} has no known address. Check its spelling.") from entries
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
    if host not in settings.WEBHOOK_HOSTS and not all(is_public(address) for address in addresses):
        raise Undelivered(f"{host} is in a private network. An administrator can allow it with OCTWEB_WEBHOOK_HOSTS.")
    return addresses


def _connect(scheme: str, host: str, addresses: list[str], port: int, deadline: Deadline) -> socket.socket:
    """Connect to the first address that accepts, and start TLS unless the scheme is http."""
    refusal = OSError("it has no address")
    for address in addresses:
        try:
            connection = socket.create_connection((address, port), timeout=deadline.left())
        except TimeoutError:
            raise
        except OSError as error:
            refusal = error
            continue
        if scheme == "http":
            return connection
        try:
            connection.settimeout(deadline.left())  # the whole handshake must end within this time
            return ssl.create_default_context().wrap_socket(connection, server_hostname=host)
        except BaseException:
            connection.close()
            raise
    raise refusal


def _signed_post(secret: str, envelope: Envelope) -> Post:
    timestamp = str(int(time.time()))
    body = json.dumps(envelope.message, allow_nan=False).encode()
    headers = {
        "Content-Type": "application/json",
        ID_HEADER: envelope.id,
        TIMESTAMP_HEADER: timestamp,
        SIGNATURE_HEADER: sign(secret, envelope.id, timestamp, body),
        SIGNATURE: "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest(),
    }
    return Post(body=body, headers=headers)


def _request(parts: SplitResult, message: Post) -> bytes:
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = {
        "Host": parts.netloc,
        "Connection": "close",
        "Content-Length": str(len(message.body)),
        "User-Agent": "octweb",
        **message.headers,
    }
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + message.body


def _send_all(connection: socket.socket, content: bytes, deadline: Deadline) -> None:
    left = memoryview(content)
    while left:
        connection.settimeout(deadline.left())
        left = left[connection.send(left) :]


def _read_head(connection: socket.socket, deadline: Deadline) -> tuple[int, bytes, bytes]:
    """Return status and head of the final response, and the content received so far.

    Raises ValueError if more than one informational response precedes it.
    """
    content = b""
    informational = 0
    while True:
        head, end, rest = content.partition(b"\r\n\r\n")
        if not end:
            if len(content) > MAX_HEAD_BYTES:
                raise ValueError(f"the head of its answer is longer than {MAX_HEAD_BYTES:,} bytes")
            connection.settimeout(deadline.left())
            received = connection.recv(RECEIVE_BYTES)
            if not received:
                raise ValueError("it closed the connection before its answer ended")
            content += received
            continue
        status = _status_of(head)
        if status not in INFORMATIONAL or status == SWITCHING_PROTOCOLS:
            return status, head, rest
        informational += 1
        if informational > 1:
            raise ValueError(f"it sent more than one informational answer (status {status})")
        content = rest


def _read_content(connection: socket.socket, head: bytes, content: bytes, most: int, deadline: Deadline) -> bytes:
    """Return the content of a response. Raises ValueError if it is longer than `most` bytes or cut."""
    names = [line.partition(b":") for line in head.lower().split(b"\r\n")[1:]]
    headers = {name.strip(): value.strip() for name, _, value in names}
    length = int(headers[b"content-length"]) if headers.get(b"content-length", b"").isdigit() else None
    while length is None or len(content) < length:
        connection.settimeout(deadline.left())
        received = connection.recv(RECEIVE_BYTES)
        if not received:
            break
        content += received
        if len(content) > 2 * most:  # the sizes of chunks need some bytes, too
            break
    if headers.get(b"transfer-encoding") == b"chunked":
        content = _join_chunks(content)
    elif length is not None and len(content) < length:
        raise ValueError("it closed the connection before its answer ended")
    if len(content) > most:
        raise ValueError(f"its answer is longer than {most:,} bytes")
    return content


def _join_chunks(content: bytes) -> bytes:
    """Return the content of a chunked response. Raises ValueError if it is cut."""
    joined = b""
    while True:
        size, end, content = content.partition(b"\r\n")
        count = int(size.partition(b";")[0], 16)
        if not end or len(content) < count + 2:
            raise ValueError("its answer is cut")
        if count == 0:
            return joined
        joined += content[:count]
        content = content[count + 2 :]


def _status_of(head: bytes) -> int:
    """Return the status code from the status line. Raises ValueError if it is not HTTP/1."""
    version, _, rest = head.split(b"\r\n", 1)[0].partition(b" ")
    code = rest[:3]
    if not version.startswith(b"HTTP/1.") or len(code) != 3 or not code.isdigit():
        raise ValueError("its answer is not HTTP/1.1")
    return int(code)
