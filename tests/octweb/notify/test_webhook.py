"""Webhook delivery: refused addresses, the signature, and one deadline for everything a receiver may delay."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time

import pytest

from octweb.notify import webhook
from octweb.notify.webhook import Envelope, Undelivered, is_public, send
from tests.conftest import ROOT

ENVELOPE = Envelope(id="11111111-2222-3333-4444-555555555555", message={"event": "test"})
SECONDS = 0.5  # deadline for one message in these tests
PATIENCE = 60.0  # seconds after which a test fails; the machine may be busy
OK = b"HTTP/1.1 204 No Content\r\n\r\n"


class Server:
    """Server on this machine that responds as `answer` defines. `received` is what it received."""

    def __init__(self, answer, *, reads: bool = True) -> None:
        self.answer = answer
        self.reads = reads
        self.over = threading.Event()
        self.received = b""
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            connection, _ = self.socket.accept()
            with connection:
                while self.reads and b"{" not in self.received:
                    self.received += connection.recv(4096)
                self.answer(connection, self.over)

    def close(self) -> None:
        self.over.set()
        self.socket.close()
        self.thread.join(PATIENCE)


@pytest.fixture
def serve(settings, monkeypatch):
    settings.WEBHOOK_HOSTS = ["127.0.0.1"]
    monkeypatch.setattr(webhook, "SECONDS", SECONDS)
    servers = []

    def start(answer, **how):
        servers.append(Server(answer, **how))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def drip(content: bytes):
    """Send the content byte by byte, each well within the deadline, for as long as the test lasts."""

    def answer(connection, over):
        while not over.is_set():
            for byte in content:
                connection.sendall(bytes([byte]))
                if over.wait(0.02):
                    return

    return answer


def repeat(content: bytes):
    def answer(connection, over):
        while not over.is_set():
            connection.sendall(content)

    return answer


def silent(connection, over):
    over.wait(PATIENCE)


def once(content: bytes):
    def answer(connection, over):
        connection.sendall(content)

    return answer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "answer", "reads", "words"),
    [
        ("http", silent, True, "did not answer within 0.5 seconds"),
        ("http", silent, False, "did not answer within 0.5 seconds"),
        ("http", drip(b"HTTP/1.1 200 OK\r\n" + b"X-Slow: 1\r\n" * 1000), True, "did not answer within 0.5 seconds"),
        ("http", drip(b"HTTP/1.1 100 Continue\r\n\r\n"), True, "did not answer within|more than one informational"),
        ("https", silent, False, "did not answer within 0.5 seconds"),
        ("https", drip(b"\x16\x03\x03\x40\x00\x02" + b"\x00" * 4000), False, "did not answer within|No answer"),
        ("http", repeat(b"HTTP/1.1 100 Continue\r\n\r\n"), True, "more than one informational"),
        ("http", repeat(b"X" * 4096), True, "longer than 16,384 bytes"),
        ("http", once(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 2 + OK), True, "more than one informational"),
        ("http", once(b"HTTP/1.1 101 Switching Protocols\r\n\r\n"), True, "status 101"),
        ("http", once(b"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n"), True, "status 302"),
        ("http", once(b"SSH-2.0-OpenSSH\r\n\r\n"), True, "not HTTP/1.1"),
        ("http", once(b"HTTP/1.1 2"), True, "closed the connection"),
    ],
)  # fmt: skip
def test_bad_server_ends_within_the_deadline(serve, scheme, answer, reads, words):
    """Without a deadline, a call would last as long as the server sends single bytes."""
    server = serve(answer, reads=reads)
    outcome = []

    def post():
        try:
            send(f"{scheme}://127.0.0.1:{server.port}/", "secret", ENVELOPE)
        except Undelivered as error:
            outcome.append(str(error))

    sender = threading.Thread(target=post)
    sender.start()
    sender.join(PATIENCE)
    assert not sender.is_alive()
    assert re.search(words, outcome[0])


def test_one_informational_response_is_skipped(serve):
    """A message that is not delivered raises Undelivered."""
    server = serve(once(b"HTTP/1.1 100 Continue\r\n\r\n" + OK))
    send(f"http://127.0.0.1:{server.port}/", "secret", ENVELOPE)


def test_receiver_that_does_not_read_ends_at_the_deadline(serve):
    """The message is larger than all buffers on the way."""
    server = serve(silent, reads=False)
    large = Envelope(id="1", message={"name": "x" * 30_000_000})
    with pytest.raises(Undelivered, match=r"within 0\.5 seconds"):
        send(f"http://127.0.0.1:{server.port}/", "secret", large)


def test_slow_name_server_ends_at_the_deadline(serve, monkeypatch):
    answers = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answers.wait(PATIENCE) and [])
    before = threading.active_count()
    for _ in range(3):
        with pytest.raises(Undelivered, match=r"within 0\.5 seconds"):
            send("http://slow.example/", "secret", ENVELOPE)
    monkeypatch.setattr(webhook, "_lookups", threading.Semaphore(0))
    with pytest.raises(Undelivered, match="already looks up too many hosts"):
        send("http://slow.example/", "secret", ENVELOPE)
    answers.set()
    until = time.monotonic() + PATIENCE
    while threading.active_count() > before and time.monotonic() < until:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_connection_uses_the_checked_address(serve, settings, monkeypatch):
    """DNS first returns a public address and then this machine. Only the first answer may count."""
    settings.WEBHOOK_HOSTS = []
    public = ("2606:4700::1111", 80, 0, 0)
    private = ("127.0.0.1", 80)
    answers = iter([[(0, 0, 0, "", public)], [(0, 0, 0, "", private)]])
    connected = []

    def connect(address, timeout):
        connected.append(address)
        raise ConnectionRefusedError("refused")

    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: next(answers))
    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(Undelivered, match="refused"):
        send("http://rebinding.example/", "secret", ENVELOPE)
    assert connected == [("2606:4700::1111", 80)]
    with pytest.raises(Undelivered, match="private network"):
        send("http://rebinding.example/", "secret", ENVELOPE)
    assert len(connected) == 1


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/x",
        "http://",
        "http://user:word@example.org/",
        "http://127.0.0.1:9/",
        "http://localhost/",
        "http://[::1]/",
        "http://169.254.169.254/latest/",
        "http://10.0.0.1/",
        "http://0.0.0.0/",
        "http://[::ffff:127.0.0.1]/",
        "http://x:99999/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://[fec0::1]/",
        "http://[::127.0.0.1]/",
        "http://example.org/a b",
        "http://example.org/\u00fc",
        "http://[fe80::1%25eth0]/",
    ],
)
def test_private_and_broken_addresses_are_refused(url):
    with pytest.raises(Undelivered):
        send(url, "secret", ENVELOPE)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        # IPv4 addresses
        ("8.8.8.8", True), ("1.1.1.1", True), ("0.0.0.0", False), ("0.1.2.3", False), ("10.0.0.1", False), ("100.64.0.1", False),
        ("127.0.0.1", False), ("169.254.169.254", False), ("172.16.0.1", False), ("192.168.1.1", False),
        ("192.0.0.1", False), ("192.0.0.9", False), ("192.0.0.171", False), ("192.88.99.1", False),
        ("192.0.2.1", False), ("198.18.0.1", False), ("198.51.100.1", False), ("203.0.113.1", False),
        ("224.0.0.1", False), ("239.255.255.250", False), ("240.0.0.1", False), ("255.255.255.255", False),
        # IPv6 addresses
        ("2606:4700::1111", True), ("2a00:1450:4001::1", True), ("::", False), ("::1", False), ("fe80::1%eth0", False), ("fc00::1", False),
        ("fd12:3456::1", False), ("fec0::1", False), ("feff::1", False), ("ff02::1", False), ("ff0e::1", False),
        ("100::1", False), ("1000::1", False), ("4000::1", False), ("5f00::1", False), ("2001:db8::1", False), ("3fff::1", False),
        ("2001:1::1", False), ("2001:10::1", False), ("2001:20::1", False),
        # IPv6 addresses that embed IPv4: compatible, mapped, translated, NAT64, 6to4, Teredo
        ("::127.0.0.1", False), ("::8.8.8.8", False), ("::ffff:10.0.0.1", False), ("::ffff:192.0.0.9", False), ("::ffff:8.8.8.8", True),
        ("::ffff:0:7f00:1", False), ("::ffff:0:808:808", False),
        ("64:ff9b::7f00:1", False), ("64:ff9b::a9fe:a9fe", False), ("64:ff9b::c000:9", False), ("64:ff9b::808:808", True),
        ("64:ff9b:1::808:808", False), ("64:ff9b:1:ffff::a00:1", False),
        ("2002:7f00:1::1", False), ("2002:a00:1::1", False), ("2002:c000:9::1", False), ("2002:808:808::1", True),
        ("2001:0:7f00:1::", False), ("2001:0:808:808::f5ff:fffe", False),
    ],
)  # fmt: skip
def test_which_addresses_are_public(address, public):
    assert is_public(address) is public


def documented_check():
    """Return the function that docs/security.md gives to receivers."""
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?def is_genuine.*?)^```", page, re.MULTILINE | re.DOTALL)
    names: dict = {}
    exec(compile(code, "security.md", "exec"), names)
    return names["is_genuine"]


def test_documented_check_accepts_only_what_was_sent(serve):
    server = serve(once(OK))
    send(f"http://127.0.0.1:{server.port}/hook?a=1", "the secret", ENVELOPE)
    head, _, body = server.received.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    is_genuine = documented_check()
    now = time.time()
    assert first == "POST /hook?a=1 HTTP/1.1"
    assert headers["Webhook-Id"] == ENVELOPE.id
    assert is_genuine("the secret", headers, body, now=now)
    assert not is_genuine("another secret", headers, body, now=now)
    assert not is_genuine("the secret", headers, body + b" ", now=now)
    assert not is_genuine("the secret", headers | {"Webhook-Id": "2"}, body, now=now)
    # a message that is replayed five minutes later must be refused
    assert not is_genuine("the secret", headers, body, now=now + 301)
    later = headers | {"Webhook-Timestamp": str(int(now) + 600)}
    assert not is_genuine("the secret", later, body, now=now + 600)
