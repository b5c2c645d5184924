"""The piecewise CSV scan equals reading by character for any cut, and stops in time."""

from __future__ import annotations

import random

import numpy as np
import pytest

from trainer.data.formats import csv_scan
from trainer.data.formats.csv_scan import scan


def by_character(body: bytes, delimiter: bytes):
    """Return (records, unclosed, lines with text after a quote). A record is (first byte, last byte, line, fields)."""
    records = []
    wrong = []
    start = 0
    line = 1
    start_line = 1
    fields = 1
    is_open = False
    opened = 0
    i = 0
    while i <= len(body):
        c = body[i : i + 1]
        left = body[i - 1 : i] if i else b"\n"
        right = body[i + 1 : i + 2] or b"\n"
        if c == b'"' and not is_open and left in (delimiter, b"\n"):
            is_open = True
            opened = line
        elif c == b'"' and is_open and right == b'"':
            i += 1
        elif c == b'"' and is_open:
            is_open = False
            if right not in (delimiter, b"\n"):
                wrong.append(line)
        elif c == delimiter and not is_open:
            fields += 1
        elif c == b"" or (c == b"\n" and not is_open):
            records.append((start, i, start_line, fields))
            start = i + 1
            start_line = line + 1
            fields = 1
        line += c == b"\n"
        i += 1
    several = any(r[3] > 1 for r in records)
    kept = [r for r in records if r[1] > r[0] and not (several and r[3] == 1 and not body[r[0] : r[1]].strip())]
    return kept, (opened if is_open else None), wrong


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 64])
def test_against_a_reading_by_character(piece, monkeypatch, count):
    monkeypatch.setattr(csv_scan, "PIECE_BYTES", piece)
    draw = random.Random(piece)
    for _ in range(6 * count):
        body = "".join(draw.choices('",\na \t;', weights=[4, 4, 3, 4, 1, 1, 1], k=draw.randint(1, 40))).encode()
        found = scan(body, b",")
        records, unclosed, wrong = by_character(body, b",")
        got = list(
            zip(found.starts.tolist(), found.ends.tolist(), found.lines.tolist(), found.fields.tolist(), strict=True)
        )
        assert got == records, body
        assert found.unclosed == unclosed, body
        assert list(found.after_quote) == wrong, body


def test_scan_stops_at_the_limit(monkeypatch):
    monkeypatch.setattr(csv_scan, "PIECE_BYTES", 16)
    rows = scan(b"a\n" * 1000, b",", most_records=20)
    assert 20 < rows.excess.records <= 30
    long = scan(b"a,b\n1,2\n" + b"x" * 500 + b"\n1,2\n", b",", most_bytes=100)
    assert (long.excess.line, long.excess.quoted) == (3, False)
    quoted = scan(b'a,b\n1,"' + b"1,2\n" * 500, b",", most_bytes=100)
    assert (quoted.excess.line, quoted.excess.quoted) == (2, True)
    assert scan(b"\n" * 10_000, b",", most_records=5).excess is None
    assert np.array_equal(scan(b"a,b\n1,2", b",", most_records=2, most_bytes=3).fields, [2, 2])
