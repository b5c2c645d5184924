"""The structure of a CSV file from its bytes: records, their lines and numbers of fields, unclosed quotes, the delimiter.

All whole-file work is done by numpy on byte positions; a file without quotes never takes the slower way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

LINE_FEED, QUOTE = 10, 34
DELIMITERS = (",", ";", "\t", "|")
SAMPLE_BYTES, SAMPLE_LINES = 1 << 16, 200
QUOTED = re.compile(r'"(?:[^"]|"")*"')


@dataclass(frozen=True, kw_only=True)
class Scan:
    """Records of a file: int64 arrays of byte `starts` and `ends`, first `lines` (from 1) and numbers of `fields`.

    `unclosed` is the line of a quote that is never closed, `after_quote` are lines where text follows a closing quote, `blank`
    tells of lines left out because they hold nothing but spaces, `quoted_breaks` of line breaks within values.
    """

    starts: np.ndarray
    ends: np.ndarray
    lines: np.ndarray
    fields: np.ndarray
    unclosed: int | None
    after_quote: tuple[int, ...]
    blank: bool
    quoted_breaks: bool


@dataclass(frozen=True, kw_only=True)
class Sniffed:
    """A delimiter, how sure it is (share of the first lines that it cuts into as many fields as the header), and why."""

    delimiter: str
    sure: float
    reason: str


def scan(body: bytes, delimiter: bytes) -> Scan:
    """The records of `body` (line breaks are single line feeds), empty lines left out."""
    data = np.frombuffer(body, np.uint8)
    breaks = np.flatnonzero(data == LINE_FEED)
    cuts = np.flatnonzero(data == delimiter[0])
    quotes, after = _structural_quotes(data, delimiter[0])
    unclosed = None
    record_breaks = breaks
    if len(quotes):
        if len(quotes) % 2:
            unclosed = int(np.searchsorted(breaks, quotes[-1])) + 1
        cuts = cuts[np.searchsorted(quotes, cuts) % 2 == 0]
        record_breaks = breaks[np.searchsorted(quotes, breaks) % 2 == 0]
    starts = np.concatenate([[0], record_breaks + 1]).astype(np.int64)
    ends = np.concatenate([record_breaks, [len(data)]]).astype(np.int64)
    fields = np.diff(np.searchsorted(cuts, np.concatenate([[0], ends]))) + 1
    lines = np.searchsorted(breaks, starts) + 1
    full = ends > starts
    blank = np.zeros(len(starts), bool)
    for i in np.flatnonzero(full & (fields == 1)) if fields.max() > 1 else ():
        blank[i] = not body[starts[i] : ends[i]].strip()
    keep = full & ~blank
    return Scan(
        starts=starts[keep],
        ends=ends[keep],
        lines=lines[keep].astype(np.int64),
        fields=fields[keep],
        unclosed=unclosed,
        after_quote=tuple(int(line) for line in np.searchsorted(breaks, after) + 1),
        blank=bool(blank.any()),
        quoted_breaks=len(record_breaks) < len(breaks),
    )


def _structural_quotes(data: np.ndarray, delimiter: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the quotes that open and close values, in turn, and positions where text follows a closing quote."""
    quotes = np.flatnonzero(data == QUOTE)
    none = np.zeros(0, np.int64)
    if not len(quotes):
        return quotes, none
    before = np.where(quotes > 0, data[quotes - 1], LINE_FEED)
    after = np.where(quotes + 1 < len(data), data[np.minimum(quotes + 1, len(data) - 1)], LINE_FEED)
    opens, closes = np.arange(len(quotes)) % 2 == 0, np.arange(len(quotes)) % 2 == 1
    border = np.array([delimiter, LINE_FEED, QUOTE], np.uint8)
    if np.isin(before[opens], border).all() and np.isin(after[closes], border).all() and len(quotes) % 2 == 0:
        return quotes, none  # a doubled quote closes and opens again at once, which changes nothing between
    return _quotes_one_by_one(quotes, before, after, delimiter)


def _quotes_one_by_one(
    quotes: np.ndarray, before: np.ndarray, after: np.ndarray, delimiter: int
) -> tuple[np.ndarray, np.ndarray]:
    """The same for files with quotes inside unquoted values, which are ordinary characters there."""
    structural: list[int] = []
    wrong: list[int] = []
    is_open, skip = False, -1
    for position, left, right in zip(quotes.tolist(), before.tolist(), after.tolist(), strict=True):
        if position == skip:
            continue
        if not is_open:
            if left in (delimiter, LINE_FEED):
                structural.append(position)
                is_open = True
        elif right == QUOTE:
            skip = position + 1
        else:
            structural.append(position)
            is_open = False
            if right not in (delimiter, LINE_FEED):
                wrong.append(position)
    return np.array(structural, np.int64), np.array(wrong, np.int64)


def sniff(body: bytes) -> Sniffed:
    """The delimiter of `body`: the one that cuts the most of the first lines into as many fields as the header."""
    text = body[:SAMPLE_BYTES].decode("utf-8", errors="ignore")
    if len(body) > SAMPLE_BYTES:
        text = text[: text.rfind("\n") + 1] or text
    lines = [line for line in QUOTED.sub("", text).split("\n") if line.strip()][:SAMPLE_LINES]
    best: tuple[float, int, str] | None = None
    for delimiter in DELIMITERS:
        wanted = lines[0].count(delimiter) if lines else 0
        if not wanted:
            continue
        share = sum(line.count(delimiter) == wanted for line in lines) / len(lines)
        if best is None or (share, wanted) > best[:2]:
            best = (share, wanted, delimiter)
    if best is None:
        return Sniffed(
            delimiter=",", sure=0.0, reason="The first line has no comma, semicolon, tab or bar: one column."
        )
    share, wanted, delimiter = best
    word = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}[delimiter]
    same = round(share * len(lines))
    return Sniffed(
        delimiter=delimiter,
        sure=round(share, 2),
        reason=f"With the {word}, {same} of the first {len(lines)} lines have {wanted + 1} values, as the header.",
    )
