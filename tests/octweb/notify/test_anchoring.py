"""The last signed block of decisions is shown to somebody outside, and a forged anchor is refused."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command
from django.template.loader import render_to_string

from octweb.audit.models import Record
from octweb.decisions import collecting
from octweb.decisions.audited import audit_decisions
from octweb.decisions.models import Block, DecisionHead
from octweb.decisions.timestamps import (
    INTEGER,
    OCTET_STRING,
    OID,
    SEQUENCE,
    SHA256,
    TIME,
    TST_INFO,
    BadTimestamp,
    _encode,
    read_timestamp,
    timestamp_request,
)
from octweb.dossier import actions as dossier
from octweb.dossier.models import ModelDossier
from octweb.notify import anchoring, webhook
from octweb.notify.webhook import Undelivered
from octweb.registry.lifecycle import actions
from octweb.registry.models import Recording
from tests.octweb.decisions.conftest import spool  # noqa: F401  (a fixture)
from tests.octweb.decisions.erasing_cases import check_decisions, exported
from tests.octweb.decisions.rows import record_rows
from tests.octweb.notify.test_webhook import serve  # noqa: F401  (a fixture)

pytestmark = pytest.mark.django_db
ANCHORED = Record.objects.filter(what="decisions anchored")


@pytest.fixture
def sealed(model, staff, spool):  # noqa: F811
    """Provide the record of a signed block."""
    actions.ask_for_approval(model, by=model.owner)
    record_rows(actions.approve(model, by=staff, recording=Recording.FULL), 2)
    collecting.collect_due(datetime.now(UTC) + timedelta(seconds=70))
    collecting.collect_due(datetime.now(UTC) + timedelta(days=1))
    return Record.objects.get(what="decisions sealed")


@pytest.fixture
def address(serve, settings):  # noqa: F811
    """Provide a function that starts a server and sets its address."""

    def start(answer, kind="webhook"):
        server = serve(answer if kind == "webhook" else after_request(answer), reads=kind == "webhook")
        settings.ANCHOR_URL = f"http://127.0.0.1:{server.port}/anchor"
        settings.ANCHOR_KIND = kind
        return server

    return start


def after_request(answer):
    """Answer after the whole request: closing a connection with unread bytes resets it."""

    def take(connection, over):
        received = b""
        while b"\r\n\r\n" not in received:
            received += connection.recv(4096)
        head, _, body = received.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        while len(body) < length:
            body += connection.recv(4096)
        answer(connection, over)

    return take


def respond(content, kind="application/timestamp-reply", status=200):
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n\r\n"

    def answer(connection, over):
        connection.sendall(head.encode() + content)

    return answer


def token(sha256, nonce, *, at=None, status=0, kind=TST_INFO, algorithm=SHA256):
    """Return the answer of a time stamp server, without a signature."""
    at = at or datetime.now(UTC)
    imprint = _encode(SEQUENCE, _encode(SEQUENCE, algorithm) + _encode(OCTET_STRING, bytes.fromhex(sha256)))
    parts = [_encode(INTEGER, b"\x01"), _encode(OID, b"\x2a"), imprint, _encode(INTEGER, b"\x05")]
    parts += [_encode(TIME, at.strftime("%Y%m%d%H%M%SZ").encode()), _encode(INTEGER, nonce.to_bytes(9, "big"))]
    info = _encode(SEQUENCE, b"".join(parts))
    content = _encode(SEQUENCE, _encode(OID, kind) + _encode(0xA0, _encode(OCTET_STRING, info)))
    signed = _encode(SEQUENCE, _encode(INTEGER, b"\x03") + _encode(0x31, b"") + content)
    answer = _encode(SEQUENCE, _encode(INTEGER, bytes([status])))
    return _encode(SEQUENCE, answer + _encode(SEQUENCE, _encode(OID, b"\x2a") + _encode(0xA0, signed)))


def make_due():
    DecisionHead.objects.update(anchor_due=None)


def test_webhook_receives_the_signed_hash_once(sealed, address):
    server = address(respond(b"", status=204))
    assert anchoring.anchor_due()
    assert not anchoring.anchor_due()
    head, _, body = server.received.partition(b"\r\n\r\n")
    message = json.loads(body)
    block = Block.objects.get(number=message["block"])
    assert (message["event"], message["sha256"], message["record_sha256"]) == (
        "decisions.sealed",
        block.digest,
        sealed.digest,
    )
    assert message["signature"] == sealed.details["signature"]
    assert b"Webhook-Id: " in head
    (record,) = ANCHORED.all()
    assert (record.details["host"], record.details["sha256"]) == ("127.0.0.1", block.digest)
    found = audit_decisions()
    assert (found.problems, found.anchored) == ([], f"block {block.number:,} at 127.0.0.1")


def test_nothing_leaves_without_an_address(sealed, settings, monkeypatch):
    monkeypatch.setattr(anchoring, "post", None)
    settings.ANCHOR_URL = ""
    assert not anchoring.anchor_due()
    assert not ANCHORED.exists()


def test_private_address_gets_nothing(sealed, address, settings):
    server = address(respond(b"", status=204))
    settings.WEBHOOK_HOSTS = []
    assert not anchoring.anchor_due()
    assert server.received == b""
    assert "private network" in DecisionHead.objects.get().anchor_error


def test_slow_server_is_left_after_one_deadline(sealed, address):
    def drip(connection, over):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n")
        while not over.wait(0.02):
            connection.sendall(b"x")

    address(drip, kind="timestamp")
    assert not anchoring.anchor_due()
    assert "within 0.5 seconds" in DecisionHead.objects.get().anchor_error


def test_failed_try_is_repeated_later_and_by_one_worker(sealed, address):
    address(respond(b"", status=500))
    assert not anchoring.anchor_due()
    head = DecisionHead.objects.get()
    assert (head.anchor_tries, "status 500" in head.anchor_error) == (1, True)
    server = address(respond(b"", status=204))
    assert not anchoring.anchor_due()  # it is not due yet
    assert server.received == b""
    make_due()
    assert anchoring._claim()
    assert not anchoring.anchor_due()  # another worker has claimed it
    make_due()
    assert anchoring.anchor_due()
    head.refresh_from_db()
    assert (head.anchor_tries, head.anchor_error, head.anchor_due) == (0, "", None)


@pytest.fixture
def stamped(sealed, address, monkeypatch):
    """Provide a function that anchors at a server which answers with this token, and returns the error."""
    monkeypatch.setattr(anchoring.secrets, "randbits", lambda bits: 77)

    def anchor(**how):
        values = {"sha256": sealed.details["sha256"], "nonce": 77} | how
        address(respond(values.pop("content", None) or token(**values)), kind="timestamp")
        make_due()
        return "" if anchoring.anchor_due() else DecisionHead.objects.get().anchor_error

    return anchor


def test_time_stamp_of_the_hash_is_kept_as_receipt(sealed, stamped):
    assert stamped() == ""
    receipt = base64.b64decode(ANCHORED.get().details["receipt"])
    assert read_timestamp(receipt).sha256 == sealed.details["sha256"]
    assert audit_decisions().problems == []


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"sha256": "00" * 32}, "another hash"),
        ({"nonce": 78}, "another request"),
        ({"at": datetime(2020, 1, 1, tzinfo=UTC)}, "2020-01-01"),
        ({"status": 2}, "refused"),
        ({"kind": b"\x2a\x03"}, "no time stamp"),
        ({"algorithm": b"\x06\x01\x2a"}, "another kind of hash"),
        ({"content": b"<html>"}, "cannot be read"),
        ({"content": b"x" * 40_000}, "longer than"),
    ],
)
def test_forged_or_foreign_time_stamp_is_refused(stamped, how, words):
    assert words in stamped(**how)
    assert not ANCHORED.exists()


def test_cut_time_stamp_is_refused_at_any_byte(count):
    content = token("ab" * 32, 5)
    assert read_timestamp(content).nonce == 5
    for cut in range(len(content)):
        with pytest.raises(BadTimestamp):
            read_timestamp(content[:cut])


def test_chain_that_was_rewritten_does_not_fit_its_anchor(sealed, stamped, capsys):
    assert stamped() == ""
    record = ANCHORED.get()
    old = record.details["sha256"]
    Block.objects.filter(digest=old).update(digest="12" * 32)
    assert any("has seen" in problem for problem in audit_decisions().problems)
    # whoever rewrites the record of the anchor, too, has no time stamp of the new hash
    record.details |= {"sha256": "12" * 32}
    record.save()
    assert any("one of another hash" in problem for problem in audit_decisions().problems)
    with pytest.raises(SystemExit):
        call_command("audit", "--decisions", "--holds", old)
    assert f"No block has the hash {old}" in capsys.readouterr().err


def test_dossier_carries_the_hash_of_the_last_signed_block(sealed, model, owner, media):
    about = dossier.about(ModelDossier.objects.create(owner=owner, model=model))
    expected = {name: sealed.details[name] for name in ("day", "block", "sha256")}
    assert about["decisions"] == expected
    assert sealed.details["sha256"] in render_to_string("dossier/document/_review.html", {"about": about})
    Record.objects.filter(pk=sealed.pk).delete()
    assert dossier.about(ModelDossier.objects.create(owner=owner, model=model))["decisions"] is None


def test_standalone_checker_asks_for_the_block_of_an_anchor(sealed):
    lines = [json.dumps(line) for line in exported()]
    assert check_decisions.check(lines, holds=sealed.details["sha256"].upper()) == []
    assert "no block has the hash" in check_decisions.check(lines, holds="12" * 32)[0]


def test_chunked_answers_are_joined_and_cut_ones_refused(serve):  # noqa: F811
    content = b"7\r\nMozilla\r\n9;x=1\r\nDeveloper\r\n0\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    def send(text):
        server = serve(after_request(lambda connection, over: connection.sendall(text)), reads=False)
        message = webhook.Post(body=b"{}", headers={}, most=100)
        return webhook.post(f"http://127.0.0.1:{server.port}/", message)

    assert send(head + content) == b"MozillaDeveloper"
    for cut in (3, 12, 20, len(content) - 8):
        with pytest.raises(Undelivered):
            send(head + content[:cut])


TSA = """
[tsa]
default_tsa = own
[own]
serial = {folder}/serial
crypto_device = builtin
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256
accuracy = secs:1
ordering = yes
tsa_name = yes
ess_cert_id_chain = no
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_openssl_answers_the_request_and_verifies_the_receipt(tmp_path):
    def openssl(*words):
        return subprocess.run(["openssl", *words], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60)

    subject = ["-subj", "/CN=a time stamp server", "-addext", "extendedKeyUsage=critical,timeStamping"]
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "tsa.pem", *subject)
    (tmp_path / "tsa.cnf").write_text(TSA.format(folder=tmp_path))
    (tmp_path / "serial").write_text("01\n")
    sha256 = "3f" * 32
    (tmp_path / "query.tsq").write_bytes(timestamp_request(sha256, 2**62 + 5))
    keys = ["-signer", "tsa.pem", "-inkey", "key.pem"]
    openssl("ts", "-reply", "-config", "tsa.cnf", "-queryfile", "query.tsq", *keys, "-out", "answer.tsr")
    stamp = read_timestamp((tmp_path / "answer.tsr").read_bytes())
    assert (stamp.sha256, stamp.nonce) == (sha256, 2**62 + 5)
    assert abs(stamp.at - datetime.now(UTC)) < timedelta(minutes=2)
    checked = openssl("ts", "-verify", "-digest", sha256, "-in", "answer.tsr", "-CAfile", "tsa.pem")
    assert "OK" in checked.stdout + checked.stderr
