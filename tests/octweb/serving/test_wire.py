"""Chunked, compressed, truncated and unread bodies under gunicorn with each kind of worker."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.client
import io
import json
import os
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator

import pyarrow as pa
import pytest

from octweb.core.management.commands.serve import WORKER, web_command
from octweb.serving.coding import DamagedBody, TooLong, UnknownCoding, compress_body, spool_decoded
from octweb.serving.wire import DROPPED
from tests.conftest import ROOT

APPLICATION = """
import os, hashlib, django
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "octweb.settings")
django.setup()
from octweb.serving.wire import CutOff, Wire

def inner(environ, start):
    path = environ["PATH_INFO"]
    if path.endswith("/refuse"):
        status, body = "401 Unauthorized", b"no"
    else:
        try:
            read = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            status, body = "200 OK", hashlib.sha256(read).hexdigest().encode() * (100 if path.startswith("/api/v1/") else 1)
        except CutOff as error:
            status, body = "400 Bad Request", str(error).encode()
    start(status, [("Content-Length", str(len(body))), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("ETag", '"x"')])
    return [body]

application = Wire(inner)
"""


def zstd(data: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(data))


def raw_deflate(data: bytes) -> bytes:
    return zlib.compress(data)[2:-4]


NAMES = """
def application(environ, start):
    body = f"{environ['SCRIPT_NAME']}|{environ['PATH_INFO']}".encode()
    start("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""
PACKED = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstd}
DATA = os.urandom(1000) * 300


@pytest.fixture(scope="module", params=[WORKER, "gthread"])
def port(request, tmp_path_factory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("wire")
    (folder / "echo.py").write_text(APPLICATION)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number = probe.getsockname()[1]
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "OCTWEB_DATA_DIR": str(folder),
        "OCTWEB_MAX_PREDICT_MB": "1",
        "OCTWEB_MAX_UPLOAD_MB": "3",
    }
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "gunicorn",
            "echo:application",
            "--bind",
            f"127.0.0.1:{number}",
            "--worker-class",
            request.param,
            "--threads",
            "4",
            "--keep-alive",
            "30",
            "--no-control-socket",
            "--pythonpath",
            str(folder),
        ],
        cwd=ROOT,
        env=environment,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 300
    while True:
        with contextlib.suppress(OSError, http.client.HTTPException):
            ask(http.client.HTTPConnection("127.0.0.1", number, timeout=100), b"", "/")
            break
        assert time.monotonic() < until
        time.sleep(0.1)
    yield number
    process.terminate()
    process.wait(300)


@pytest.fixture
def line(port) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    yield connection
    connection.close()


def ask(
    line: http.client.HTTPConnection, body, path: str = "/", **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    line.request("POST", path, body, {k.replace("_", "-"): v for k, v in headers.items()})
    answer = line.getresponse()
    return answer, answer.read()


def digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


@pytest.mark.slow
@pytest.mark.parametrize("size", [100, 300_000, 700_000, 2_000_000])
def test_next_call_works_after_an_unread_body(line, size):
    for _ in range(3):
        answer, _ = ask(line, bytes(size), "/refuse")
        # a body beyond the limit is refused before the application receives it
        assert (answer.status, answer.headers["Connection"]) == (401 if size <= 1_000_000 else 413, "keep-alive")
        sock = line.sock
        answer, found = ask(line, DATA)
        assert (answer.status, found) == (200, digest(DATA))
        assert line.sock is sock


def test_long_unread_body_closes_connection_with_header(port):
    with socket.create_connection(("127.0.0.1", port), 30) as sock:
        sock.sendall(b"POST /refuse HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (DROPPED + 1) + b"x" * 1000)
        head = sock.recv(10_000)
        assert head.startswith(b"HTTP/1.1 413")
        assert b"Connection: close" in head


def test_chunked_bodies_work(line):
    for pieces in ([DATA], [DATA[:1], DATA[1:70_000], DATA[70_000:]], []):
        answer, found = ask(line, iter(pieces))
        assert (answer.status, found) == (200, digest(b"".join(pieces)))


def test_damaged_and_too_long_chunks_are_refused(port, line):
    with socket.create_connection(("127.0.0.1", port), 30) as sock:
        sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n")
        assert sock.recv(10_000).startswith(b"HTTP/1.1 400")
    answer, body = ask(line, iter([bytes(100_000)] * 11))
    assert answer.status == 413
    assert "1 MB" in json.loads(body)["error"]


@pytest.mark.parametrize("coding", PACKED)
def test_compressed_bodies_work(line, coding):
    for body in (PACKED[coding](DATA), iter([PACKED[coding](DATA)])):
        answer, found = ask(line, body, Content_Encoding=coding)
        assert (answer.status, found) == (200, digest(DATA))
    answer, body = ask(line, PACKED[coding](DATA)[:-9], Content_Encoding=coding)
    assert answer.status == 400
    assert coding in json.loads(body)["detail"]
    answer, _ = ask(line, PACKED[coding](bytes(1_000_001)), Content_Encoding=coding)
    assert answer.status == 413
    answer, found = ask(line, DATA)
    assert found == digest(DATA)


def test_call_without_body_may_name_an_encoding(line):
    line.request("GET", "/", headers={"Content-Encoding": "gzip"})
    answer = line.getresponse()
    assert (answer.status, answer.read()) == (200, digest(b""))


def test_a_form_may_be_as_long_as_an_upload(line):
    body = gzip.compress(bytes(2_500_000))
    answer, found = ask(line, body, Content_Encoding="gzip", Content_Type="multipart/form-data; boundary=x")
    assert (answer.status, found) == (200, digest(bytes(2_500_000)))
    assert ask(line, body, Content_Encoding="gzip")[0].status == 413


def test_plain_form_is_limited_and_not_buffered(line):
    """Django writes the files of a form to the disk. A stranger must not fill it with a form for the sign-in page."""
    form = {"Content_Type": "multipart/form-data; boundary=x"}
    answer, found = ask(line, bytes(2_500_000), **form)
    assert (answer.status, found) == (200, digest(bytes(2_500_000)))
    assert ask(line, bytes(4_100_000), **form)[0].status == 413


def test_an_unknown_coding_is_415_and_names_the_known_ones(line):
    answer, body = ask(line, b"x", Content_Encoding="br")
    assert (answer.status, answer.headers["Accept-Encoding"]) == (415, "gzip, deflate, zstd")
    assert "'br'" in json.loads(body)["detail"]


@pytest.mark.parametrize("sent", [0, 1, 999])
def test_truncated_body_is_400(port, sent):
    with socket.create_connection(("127.0.0.1", port), 30) as sock:
        sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" + b"x" * sent)
        sock.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: sock.recv(10_000), b""))
        assert answer.startswith(b"HTTP/1.1 400")
        assert f"{1000 - sent:,} bytes did not come".encode() in answer


@pytest.mark.parametrize(
    ("accepted", "coding", "unpack"),
    [
        ("gzip, deflate", "gzip", gzip.decompress),
        ("deflate", "deflate", zlib.decompress),
        ("zstd;q=1.0, gzip;q=0.5", "zstd", lambda b: pa.CompressedInputStream(io.BytesIO(b), "zstd").read()),
        ("br", None, bytes),
        ("gzip;q=0", None, bytes),
    ],
)
def test_answers_to_programs_are_compressed_where_asked(line, accepted, coding, unpack):
    answer, body = ask(line, DATA, "/api/v1/x", Accept_Encoding=accepted)
    assert unpack(body) == digest(DATA) * 100
    assert (answer.headers["Content-Encoding"], answer.headers["Vary"]) == (coding, "Accept-Encoding")
    assert answer.headers.get_all("Set-Cookie") == ["a=1", "b=2"]
    assert answer.headers["ETag"] == ('W/"x"' if coding else '"x"')
    plain, _ = ask(line, DATA, "/page", Accept_Encoding=accepted)
    assert plain.headers["Content-Encoding"] is None


def test_concurrent_calls_do_not_mix(port):
    wrong = []

    def client(i: int) -> None:
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        for k in range(20):
            data = b"%d-%d" % (i, k) * 1000
            if k % 4 == 3:
                wrong.extend([] if ask(line, data, "/refuse")[0].status == 401 else [k])
            body, headers = ((data, {}), (iter([data]), {}), (gzip.compress(data), {"Content_Encoding": "gzip"}))[k % 3]
            wrong.extend([] if ask(line, body, **headers)[1] == digest(data) else [k])
        line.close()

    team = [threading.Thread(target=client, args=(i,)) for i in range(6)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize(
    ("codings", "pack"),
    [
        ("deflate", raw_deflate),
        ("gzip", lambda b: gzip.compress(b[:5]) + gzip.compress(b[5:])),
        ("gzip, zstd", lambda b: zstd(gzip.compress(b))),
        ("identity", bytes),
        ("GZIP", gzip.compress),
    ],
)
def test_every_way_to_write_a_coding_is_read(codings, pack):
    stream, size = spool_decoded(io.BytesIO(pack(DATA)), codings, len(DATA))
    with stream:
        assert (stream.read(), size) == (DATA, len(DATA))
    with pytest.raises(TooLong):
        spool_decoded(io.BytesIO(pack(DATA)), codings, len(DATA) - 1)


@pytest.mark.parametrize("coding", PACKED)
def test_a_bomb_is_stopped_early(coding):
    bomb = io.BytesIO(PACKED[coding](bytes(100_000_000)))
    with pytest.raises(TooLong):
        spool_decoded(bomb, coding, 1_000_000)
    for damaged in (b"", b"x", PACKED[coding](DATA) + b"xyz", PACKED[coding](DATA)[: len(DATA) // 2000]):
        with pytest.raises(DamagedBody):
            spool_decoded(io.BytesIO(damaged), coding, 10**6)
    with pytest.raises(UnknownCoding):
        spool_decoded(io.BytesIO(b""), "snappy", 10)


def test_short_answers_stay_as_they_are():
    assert compress_body(b"x" * 999, "gzip") == (b"x" * 999, "")
    assert compress_body(b"x" * 1000, "gzip")[1] == "gzip"


def test_call_without_host_is_refused(port):
    """RFC 9112, section 3.2: a call of HTTP/1.1 without Host gets 400. A call of HTTP/1.0 needs none."""
    for version, status in ((b"1.1", b"400"), (b"1.0", b"200")):
        with socket.create_connection(("127.0.0.1", port), 30) as sock:
            sock.sendall(b"GET / HTTP/%s\r\n\r\n" % version)
            assert sock.recv(10_000).split(b" ")[1] == status


@pytest.mark.parametrize("way", ["serve", "deploy"])
def test_headers_of_a_call_do_not_set_the_script_name(way, tmp_path):
    """With gunicorn's default, a header SCRIPT_NAME from this host caused a 500, and PATH_INFO named another URL."""
    (tmp_path / "names.py").write_text(NAMES)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = {
        "serve": web_command("names:application", host="127.0.0.1", port=port, threads=2),
        "deploy": [
            sys.executable,
            "-m",
            "gunicorn",
            "names:application",
            "-c",
            str(ROOT / "deploy" / "gunicorn.conf.py"),
        ],
    }[way]
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}",
        "OCTWEB_BIND": f"127.0.0.1:{port}",
        "OCTWEB_WEB_PROCESSES": "1",
    }
    environment.pop("SCRIPT_NAME", None)
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
    try:
        answer = b""
        until = time.monotonic() + 300
        while not answer:
            assert time.monotonic() < until
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 100) as sock:
                forged = b"SCRIPT_NAME: /evil\r\nSCRIPT-NAME: /evil\r\nPATH_INFO: /evil\r\nPATH-INFO: /evil\r\n"
                sock.sendall(b"GET /models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + forged + b"\r\n")
                while part := sock.recv(10_000):
                    answer += part
            time.sleep(0.1)
    finally:
        process.terminate()
        process.wait(300)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"\r\n\r\n|/models")
