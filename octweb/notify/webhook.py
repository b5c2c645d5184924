"""A message to an address that a user named: short, signed, only to public hosts, and redirects are not followed.

The host is looked up once and the connection goes to the address that was checked, so that a second answer of the name server
cannot lead it into the network of this server.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ipaddress
import json
import socket
import ssl
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

SECONDS = 5.0
READ = 1024  # bytes of an answer
SIGNATURE = "X-Octweb-Signature"
# prefixes of IPv6 that gateways translate to IPv4: the last 32 bits (RFC 6052), and within a network as it likes (RFC 8215)
NAT64, LOCAL_NAT64 = ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48")


class Undelivered(Exception):
    """The message did not arrive; the text says why."""


def send(url: str, secret: str, message: dict[str, Any]) -> None:
    """POST the message as JSON; raises Undelivered for a bad address, a private host, no answer, or one that is not a success."""
    parts, port = checked(url)
    address = _address(parts.hostname or "", port)
    body = json.dumps(message, allow_nan=False).encode()
    headers = {
        "Content-Type": "application/json",
        "Host": parts.netloc.rpartition("@")[2],
        "User-Agent": "octweb",
        SIGNATURE: "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest(),
    }
    connection = _connection(parts.scheme, parts.hostname or "", address, port)
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", path, body=body, headers=headers)
        answer = connection.getresponse()
        answer.read(READ)
    except (OSError, http.client.HTTPException) as error:
        raise Undelivered(f"No answer from {parts.hostname}: {error}"[:300]) from error
    finally:
        connection.close()
    if not 200 <= answer.status < 300:
        raise Undelivered(f"{parts.hostname} answered with status {answer.status}.")


def checked(url: str) -> tuple[Any, int]:
    """The parts and the port of an address that messages may go to; raises Undelivered."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise Undelivered("This is not an address.") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Undelivered("The address must begin with https:// or http://.")
    if parts.username or parts.password:
        raise Undelivered("The address must not contain a password; use the signature.")
    return parts, port


def _address(host: str, port: int) -> str:
    """The first address of the host; every one must be public, unless the server's settings name the host."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Undelivered(f"There is no host {host}.") from error
    addresses = [str(entry[4][0]) for entry in found]
    if host not in settings.WEBHOOK_HOSTS and not all(_public(a) for a in addresses):
        raise Undelivered(f"{host} is in a private network. An administrator can allow it with OCTWEB_WEBHOOK_HOSTS.")
    return addresses[0]


def _public(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    reached = _within(address) or address
    return address not in LOCAL_NAT64 and reached.is_global and not reached.is_multicast


def _within(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The address of IPv4 that one of IPv6 stands for: a gateway on the way would translate it."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def _connection(scheme: str, host: str, address: str, port: int) -> http.client.HTTPConnection:
    """A connection to the checked address that speaks to the host by its name."""
    try:
        sock = socket.create_connection((address, port), timeout=SECONDS)
        if scheme == "https":
            sock = ssl.create_default_context().wrap_socket(sock, server_hostname=host)
    except OSError as error:
        raise Undelivered(f"No connection to {host}: {error}"[:300]) from error
    connection = http.client.HTTPConnection(host, port, timeout=SECONDS)
    connection.sock = sock
    return connection
