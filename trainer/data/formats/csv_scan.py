"""Find records, line numbers, fields, quotes and the delimiter of CSV bytes.

numpy scans byte positions in pieces. A file without quotes never takes the slow path.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

LINE_FEED = 10
QUOTE = 34
DELIMITERS = (",", ";", "\t", "|")
# a header as R writes it by default: quoted names, separated by spaces
SPACED = re.compile(r'"[^"\n]*"(?: "[^"\n]*")+\n')
SAMPLE_BYTES = 1 << 16
SAMPLE_LINES = 200
SPACES = np.array([9, 11, 12, 13, 32], np.uint8)
PIECE_BYTES = 1 << 18  # bytes per scanning step
MOST_PLACES = 1000  # limit on the reported places where text follows a closing quote
QUOTED = re.compile(r'"(?:[^"]|"")*"')


@dataclass(frozen=True, kw_only=True)
class Excess:
    """Reason for an early stop of the scan: too many records, or an overlong record that begins at `line`."""

    records: int = 0
    line: int = 0
    quoted: bool = False  # whether the long record has an unclosed quote


@dataclass(frozen=True, kw_only=True)
class Scan:
    """Records of a file: int64 arrays of byte `starts` and `ends`, first `lines` (from 1) and numbers of `fields`.

    `unclosed` is the line of a quote that is never closed; `after_quote` are lines where text follows a closing quote.
    `blank` tells whether lines of spaces were left out, `quoted_breaks` whether values contain line breaks, and
    `excess` why the scan stopped early.
    """

    starts: np.ndarray
    ends: np.ndarray
    lines: np.ndarray
    fields: np.ndarray
    unclosed: int | None
    after_quote: tuple[int, ...]
    blank: bool
    quoted_breaks: bool
    excess: Excess | None = None


@dataclass(frozen=True, kw_only=True)
class DelimiterGuess:
    """A delimiter, its certainty (share of the first lines with the same number of fields as the header), and
    the reason.
    """

    delimiter: str
    sure: float
    reason: str


def scan(body: bytes, delimiter: bytes, *, most_records: int | None = None, most_bytes: int | None = None) -> Scan:
    """Scan `body`, whose line breaks are single line feeds, for records; leave out empty lines.

    The scan works in pieces and stores a few bytes per record, so it needs little memory besides the file. It
    stops beyond `most_records`, or at a record of more than `most_bytes`; `excess` then gives the reason.
    """
    walk = _Walk(body, delimiter[0])
    excess = None
    for start in range(0, len(body), PIECE_BYTES):
        walk.piece(start, min(start + PIECE_BYTES, len(body)))
        if most_records is not None and walk.kept > most_records:
            excess = Excess(records=walk.kept)
        elif most_bytes is not None and (line := walk.longer_than(most_bytes)):
            excess = Excess(line=line, quoted=walk.state.open)
        if excess:
            break
    return walk.result(excess)


@dataclass(frozen=True, kw_only=True)
class _State:
    """State between two pieces: whether a quoted value is open, and the position of a quote that is the second of a pair."""

    open: bool = False
    skip: int = -1
    opened: int = -1  # position of the opening quote of the open value


class _Walk:
    """Scanner of a file, with the records found so far."""

    def __init__(self, body: bytes, delimiter: int) -> None:
        self.body = body
        self.delimiter = delimiter
        self.data = np.frombuffer(body, np.uint8)
        self.state = _State()
        # position and counts of the current, unfinished record
        self.start = 0
        self.line = 1
        self.cuts = 0  # delimiters in the current record
        self.breaks = 0  # line feeds before the current piece
        self.opened_line = 1
        self.kept = self.seen = 0
        self.several = False  # whether any record has more than one field
        self.blank = self.quoted_breaks = False
        self.after: list[int] = []
        self.found: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
        self.long = 0  # line number of the longest record
        self.longest = 0

    def piece(self, first: int, last: int) -> None:
        """Scan the bytes from `first` to `last`."""
        data = self.data[first:last]
        breaks = np.flatnonzero(data == LINE_FEED) + first
        cuts = np.flatnonzero(data == self.delimiter) + first
        quotes = np.flatnonzero(data == QUOTE) + first
        ends = breaks
        if len(quotes) or self.state.open:
            structural, begins_open, wrong = self._quotes(quotes)
            cuts = cuts[(np.searchsorted(structural, cuts) + begins_open) % 2 == 0]
            ends = breaks[(np.searchsorted(structural, breaks) + begins_open) % 2 == 0]
            self.quoted_breaks = self.quoted_breaks or len(ends) < len(breaks)
            if len(self.after) < MOST_PLACES and wrong:
                self.after += (np.searchsorted(breaks, wrong) + self.breaks + 1).tolist()
            if self.state.opened >= first:
                self.opened_line = int(np.searchsorted(breaks, self.state.opened)) + self.breaks + 1
        self._records(ends, cuts, breaks)
        self.breaks = self.breaks + len(breaks)
        self.seen = last

    def _records(self, ends: np.ndarray, cuts: np.ndarray, breaks: np.ndarray) -> None:
        """Store the records that end in this piece, except empty lines."""
        if not len(ends):
            self.cuts += len(cuts)
            return
        starts = np.concatenate([[self.start], ends[:-1] + 1])
        below = np.searchsorted(cuts, ends)
        fields = np.diff(below, prepend=0) + 1
        fields[0] += self.cuts
        lines = np.searchsorted(breaks, starts) + self.breaks + 1
        lines[0] = self.line
        self._keep(starts, ends, lines, fields)
        self.start = int(ends[-1]) + 1
        self.cuts = len(cuts) - int(below[-1])
        self.line = int(np.searchsorted(breaks, self.start)) + self.breaks + 1

    def _keep(self, starts: np.ndarray, ends: np.ndarray, lines: np.ndarray, fields: np.ndarray) -> None:
        self.several = self.several or bool(fields.max() > 1)
        full = ends > starts
        # a line of spaces is blank in a file of several columns, but may be a value in a file of one column
        blank = full & (fields == 1) & np.isin(self.data[np.minimum(starts, len(self.data) - 1)], SPACES)
        if blank.any():
            first = int(starts[0])
            other = np.cumsum(~np.isin(self.data[first : ends[-1]], SPACES)) if ends[-1] > first else np.zeros(1, int)
            other = np.concatenate([[0], other])
            blank &= other[ends - first] == other[starts - first]
        keep = full & ~blank if self.several else full
        self.blank = self.blank or bool(blank.any())
        self.found.append((starts[keep], ends[keep], lines[keep], fields[keep], blank[keep]))
        self.kept += int(keep.sum())
        lengths = ends - starts
        longest = int(lengths.argmax())
        if lengths[longest] > self.longest:
            self.longest = int(lengths[longest])
            self.long = int(lines[longest])

    def longer_than(self, most: int) -> int:
        """Return the line of a record of more than `most` bytes, finished or not; 0 if there is none."""
        if self.longest > most:
            return self.long
        return self.line if self.seen - self.start > most else 0

    def result(self, excess: Excess | None) -> Scan:
        """Finish and return the scan; the last line needs no line feed."""
        none = np.zeros(0, np.int64)
        if excess is None:
            self._keep_last()
        columns = [np.concatenate([none, *(part[j] for part in self.found)]).astype(np.int64) for j in range(5)]
        starts, ends, lines, fields, blank = columns
        if self.several and blank.any():
            keep = blank == 0
            starts = starts[keep]
            ends = ends[keep]
            lines = lines[keep]
            fields = fields[keep]
        return Scan(
            starts=starts,
            ends=ends,
            lines=lines,
            fields=fields,
            unclosed=self.opened_line if self.state.open and self.state.skip < 0 else None,
            after_quote=tuple(int(line) for line in self.after),
            blank=self.blank and self.several,
            quoted_breaks=self.quoted_breaks,
            excess=excess,
        )

    def _keep_last(self) -> None:
        if self.start == len(self.data):  # no record is open at the end of the file, or all its lines were skipped
            return
        end = np.array([len(self.data)])
        self._keep(np.array([self.start]), end, np.array([self.line]), np.array([self.cuts + 1]))

    def _quotes(self, quotes: np.ndarray) -> tuple[np.ndarray, bool, list[int]]:
        """Return the structural quotes, whether a value is open before the first one, and places where text follows a closing quote.

        Structural quotes open and close values in turn. Quotes and places are byte positions.
        """
        state = self.state
        data = self.data
        if not len(quotes):
            return quotes, state.open, []
        before = np.where(quotes > 0, data[quotes - 1], LINE_FEED)
        after = np.where(quotes + 1 < len(data), data[np.minimum(quotes + 1, len(data) - 1)], LINE_FEED)
        paired = state.skip == quotes[0]
        begins_open = state.open and not paired
        opens = (np.arange(len(quotes)) + begins_open) % 2 == 0
        border = np.array([self.delimiter, LINE_FEED, QUOTE], np.uint8)
        odd = opens[0] and not paired and before[0] == QUOTE
        if not odd and np.isin(before[opens], border).all() and np.isin(after[~opens], border).all():
            # a doubled quote closes the value and opens it again at once, so the text between is unaffected
            first = quotes[opens & (before != QUOTE)]
            opened = int(first[-1]) if len(first) else state.opened
            again = not opens[-1] and after[-1] == QUOTE
            self.state = _State(open=bool(opens[-1]) or again, skip=int(quotes[-1]) + 1 if again else -1, opened=opened)
            return quotes, begins_open, []
        return self._one_by_one(quotes, before, after)

    def _one_by_one(
        self, quotes: np.ndarray, before: np.ndarray, after: np.ndarray
    ) -> tuple[np.ndarray, bool, list[int]]:
        """Return the same as `_quotes` for pieces with quotes inside unquoted values.

        Such quotes are ordinary characters.
        """
        structural: list[int] = []
        wrong: list[int] = []
        is_open = self.state.open
        skip = self.state.skip
        opened = self.state.opened
        begins_open = is_open
        for position, left, right in zip(quotes.tolist(), before.tolist(), after.tolist(), strict=True):
            if position == skip:
                continue
            if not is_open:
                if left in (self.delimiter, LINE_FEED):
                    structural.append(position)
                    is_open = True
                    opened = position
            elif right == QUOTE:
                skip = position + 1
            else:
                structural.append(position)
                is_open = False
                if right not in (self.delimiter, LINE_FEED):
                    wrong.append(position)
        last = int(quotes[-1])
        self.state = _State(open=is_open, skip=skip if skip > last else -1, opened=opened)
        return np.array(structural, np.int64), begins_open, wrong


def _separated_words(word: str, same: int, lines: int, columns: int) -> str:
    """Describe what separates the columns, and how many of the first lines do not fit."""
    separated = f"Columns are separated by {'bars' if word == 'bar' else word + 's'}"
    if same == lines:
        return f"{separated}."
    return f"{separated}: {same} of the first {lines} lines have {columns} values, as the first line has."


def sniff(body: bytes) -> DelimiterGuess:
    """Return the delimiter that cuts the most of the first lines into as many fields as the header."""
    text = body[:SAMPLE_BYTES].decode("utf-8", errors="ignore")
    if len(body) > SAMPLE_BYTES:
        text = text[: text.rfind("\n") + 1] or text
    lines = [line for line in QUOTED.sub("", text).split("\n") if line.strip()][:SAMPLE_LINES]
    best: tuple[float, int, str] | None = None
    for delimiter in DELIMITERS:
        delimiter_count = lines[0].count(delimiter) if lines else 0
        if not delimiter_count:
            continue
        share = sum(line.count(delimiter) == delimiter_count for line in lines) / len(lines)
        if best is None or (share, delimiter_count) > best[:2]:
            best = (share, delimiter_count, delimiter)
    if best is None and SPACED.match(text):
        return DelimiterGuess(delimiter=" ", sure=1.0, reason="Spaces part the quoted names of the first line.")
    if best is None:
        return DelimiterGuess(
            delimiter=",", sure=0.0, reason="The first line has no comma, semicolon, tab or bar: one column."
        )
    share, delimiter_count, delimiter = best
    word = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}[delimiter]
    same = round(share * len(lines))
    return DelimiterGuess(
        delimiter=delimiter,
        sure=round(share, 2),
        reason=_separated_words(word, same, len(lines), delimiter_count + 1),
    )
