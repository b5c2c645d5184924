"""Malicious JSON bodies are answered or refused within limits of memory and time."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from octweb.core import strict_json
from tests.octweb.serving.json_bombs_cases import BOMBS, _names

INSTANCES = min(27, int(os.environ.get("INSTANCES", 6)))
LARGE = min(27, 2 * INSTANCES)  # each takes half a second of the processor
PEAK = Path("/proc/self/clear_refs")


def megabytes(field: str) -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{field}:")[1].split()[0]) / 1e3


def grown(work: Callable[[], None]) -> float:
    """Return by how many MB the peak of the process exceeds its earlier memory."""
    PEAK.write_text("5")  # the peak begins anew
    before = megabytes("VmRSS")
    work()
    return megabytes("VmHWM") - before


@pytest.fixture
def send(client_of, owner, approved, settings):
    settings.RATES = {}
    client = client_of(owner)
    addresses = (f"/api/v1/models/{approved.pk}/predict/", f"/v2/models/{approved.family.name}/infer", "/invocations")

    def one(content: bytes) -> list[int]:
        return [client.post(a, content, content_type="application/json").status_code for a in addresses]

    return one


@pytest.mark.slow
@pytest.mark.parametrize("name", random.Random(2).sample(list(BOMBS), INSTANCES))
def test_a_bomb_of_a_megabyte_is_refused_in_time(send, name):
    start = time.thread_time()
    for status in send(BOMBS[name](1_100_000)):
        assert status in (200, 400, 413, 422)  # columns without a row have an answer
    assert time.thread_time() - start < 3


@pytest.mark.slow
@pytest.mark.skipif(not PEAK.exists(), reason="the peak of memory is read from /proc")
@pytest.mark.parametrize("name", random.Random(3).sample(list(BOMBS), LARGE))
def test_largest_bomb_stays_within_the_memory_bound(send, settings, name):
    content = BOMBS[name](settings.MAX_PREDICT_BYTES - 100)
    found: list[int] = []
    peak = grown(lambda: found.extend(send(content)))
    print(f"{name}: {peak:.0f} MB, {found}")
    assert set(found) <= {200, 400, 413, 422}
    assert peak < 700  # a web process has 250 MB, the bound is 1 GB


def test_exceeded_limits_are_reported():
    with pytest.raises(strict_json.TooManyValues, match="lists and objects"):
        strict_json.loads(b"[" + b"[]," * 400_000 + b"1]")
    with pytest.raises(strict_json.TooManyValues, match="values"):
        strict_json.loads(b"[" + b"1," * 4_000_001 + b"1]")
    with pytest.raises(strict_json.TooManyValues, match="names"):
        strict_json.loads(_names(1_200_000))
    assert len(strict_json.loads(b"[" + b"1.5," * 1_000_000 + b"1]")) == 1_000_001


def _numbered(count: int, form: bytes, every: int = 0) -> bytes:
    """Return names by number, with an empty object after `every` so many."""
    names = [form % i + (b',"o":{}' if every and i % every == 0 else b"") for i in range(count)]
    return b'{"rows":[{' + b",".join(names) + b"}]}"


MANY_NAMES = {
    "one object": lambda: _names(27_500_000),
    "spaces before the colons": lambda: _numbered(1_500_000, b'"%d" \t: 1'),
    "many spaces before the colons": lambda: _numbered(120_000, b'"%d"' + b" " * 250 + b":1"),
    "objects between them": lambda: _numbered(2_000_000, b'"%d":1', every=90_000),
    "other names in each row": lambda: b'{"rows":[' + b",".join(b'{"%d":1,"b%d":1,"c":2}' % (i, i) for i in range(150_000)) + b"]}",
    "names that differ at their start": lambda: _numbered(1_000_000, b'"%dxxxxxxxx":1'),
    "a text full of colons beside them": lambda: _numbered(1_500_000, b'"%d":1')[:-3] + b',"t":"' + b":" * 8_000_000 + b'"}]}',
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("body", MANY_NAMES.values(), ids=MANY_NAMES)
def test_many_names_are_refused_before_parsing(monkeypatch, body):
    """Building 2.5 million names would hold the interpreter's lock for a second."""
    monkeypatch.setattr(strict_json.orjson, "loads", lambda content: pytest.fail("it was parsed"))
    with pytest.raises(strict_json.TooManyValues, match="names"):
        strict_json.loads(body())


def test_many_rows_and_times_are_not_taken_for_many_names():
    rows = b'{"rows":[' + b",".join([b'{"a":1,"b":"12:30:00"}'] * 60_000) + b"]}"
    assert len(strict_json.loads(rows)["rows"]) == 60_000
    wide = b",".join([b"{" + b",".join(b'"c%d":%d' % (i, i) for i in range(2_000)) + b"}"] * 100)
    assert len(strict_json.loads(b'{"rows":[' + wide + b"]}")["rows"]) == 100
    times = b'{"columns":{"a":[' + b",".join([b'"12:30:00"'] * 120_000) + b"]}}"
    assert len(strict_json.loads(times)["columns"]["a"]) == 120_000
