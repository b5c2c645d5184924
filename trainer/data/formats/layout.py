"""Find the table between the titles, totals and notes of a file.

Lines are cut only with evidence. A `sep=` line above sets the delimiter. A line above is a title if it has one value or
a blank line follows, and the next line looks like a header. A line below is a footer if it has such a word ("Total",
"Source: ...") or follows a blank line. A row that is only too short is an error.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from trainer.data.formats.csv_scan import DELIMITERS, SAMPLE_BYTES, Scan, scan, sniff
from trainer.errors import DataError

MOST_TITLES = 30
MOST_FOOTERS = 30
FEWEST_ROWS = 2
NEARLY_ALL = 0.9
LOOKED_AT = 5  # records that are examined to find out whether columns without a name are empty
SEP = re.compile(rb'"?sep=(.|\t)"?[ \t]*(\n|$)', re.IGNORECASE)
TOTALS = re.compile(
    r"(grand |sub-?)?totals?|sum|sums|average|mean|median|min(imum)?|max(imum)?|count|summe|gesamt(summe)?|mittelwert|durchschnitt"
    r"|total g[ée]n[ée]ral|moyenne|suma|totale",
    re.IGNORECASE,
)
TOTAL_WITH_FIGURE = re.compile(rf"({TOTALS.pattern})\s*([:=]|[0-9])", re.IGNORECASE)
NOTES = re.compile(
    r"[*#©†‡(\[]|--|==|__|(source|sources|notes?|generated|exported|created|printed|report|date|page|copyright|remarks?|footnote|"
    r"legend|end of|last updated|updated|quelle|stand|anmerkung(en)?|hinweis|erstellt|seite|ende|\d+ (rows?|records?|lines?))\b",
    re.IGNORECASE,
)
NUMBER_LIKE = re.compile(r"[-+]?[0-9][0-9.,' %€$]*")

Line = tuple[int, str]  # line number from 1, and text


@dataclass(frozen=True, kw_only=True)
class TableLayout:
    """The byte range `start` to `end` of the table in a file, the lines around it, and its delimiter."""

    start: int
    end: int
    delimiter: str | None = None
    top: tuple[Line, ...] = ()
    bottom: tuple[Line, ...] = ()


def sep_line(body: bytes) -> TableLayout | None:
    """Return the layout after a first line such as `sep=;`; None without such a line."""
    match = SEP.match(body)
    if match is None or match[1] == b'"':
        return None
    delimiter = match[1].decode("latin-1")
    return TableLayout(start=match.end(), end=len(body), delimiter=delimiter, top=((1, f"sep={delimiter}"),))


def find_inside(body: bytes, outer: TableLayout, delimiter: str | None) -> TableLayout | None:
    """Find the layout below a `sep=` line, with line numbers of the whole file; return None without evidence."""
    inner = find(body[outer.start :], delimiter or outer.delimiter)
    if inner is None:
        return None
    before = body.count(b"\n", 0, outer.start)
    moved = [tuple((line + before, text) for line, text in lines) for lines in (inner.top, inner.bottom)]
    return TableLayout(
        start=outer.start + inner.start,
        end=outer.start + inner.end,
        delimiter=inner.delimiter,
        top=(*outer.top, *moved[0]),
        bottom=moved[1],
    )


def skip_lines(body: bytes, top: int, bottom: int) -> TableLayout:
    """Return the layout without the first `top` lines and the last `bottom` non-blank lines; raise DataError if none is left."""
    lines = body.split(b"\n")
    start = sum(len(line) + 1 for line in lines[:top])
    full = [i for i, line in enumerate(lines) if line.strip() and i >= top]
    if len(full) <= bottom:
        counts = " and ".join(f"{n} at the {end}" for n, end in ((top, "top"), (bottom, "bottom")) if n)
        count = body.rstrip().count(b"\n") + 1
        raise DataError(
            f"No line is left: the file has {count} line{'s'[: count != 1]}, and {counts} are to be left out. Leave fewer lines out."
        )
    cut = full[len(full) - bottom] if bottom else len(lines)
    end = sum(len(line) + 1 for line in lines[:cut]) if cut < len(lines) else len(body)
    return TableLayout(
        start=min(start, len(body)),
        end=max(min(start, len(body)), end),
        top=tuple((i + 1, _text(line)) for i, line in enumerate(lines[:top]) if line.strip()),
        bottom=tuple((i + 1, _text(lines[i])) for i in range(cut, len(lines)) if lines[i].strip()),
    )


def find(body: bytes, delimiter: str | None) -> TableLayout | None:
    """Find the layout of a file with other lines around the table; return None without evidence of such lines."""
    best: tuple[float, int, TableLayout] | None = None
    for one in DELIMITERS if delimiter is None else (delimiter,):
        layout = _with(body, one)
        if layout is not None and (best is None or layout[:2] > best[:2]):
            best = layout
    if delimiter is None and best is not None and (plain := _other_delimiter(body, best[1], best[2])) is not None:
        best = _with(body, plain)
    return None if best is None else best[2]


def _other_delimiter(body: bytes, width: int, best: TableLayout) -> str | None:
    """Return another delimiter that cuts nearly all lines, the first included, into more values than `best`; else None.

    The supposed title is then the header, as in "a;b;c" above "1,5;2,5;x".
    """
    guess = sniff(body)
    if not best.top or guess.delimiter == best.delimiter or guess.sure < NEARLY_ALL:
        return None
    values = body.split(b"\n", 1)[0].count(guess.delimiter.encode()) + 1
    return guess.delimiter if values > width else None


def footers(names: Sequence[str], columns: Sequence[pa.Array], lines: np.ndarray, quoted: bool) -> int:
    """Count the rows at the end of a table that are totals or notes."""
    n = len(lines)
    count = 0
    width = len(columns)
    for i in range(n - 1, max(n - 1 - MOST_FOOTERS, FEWEST_ROWS - 1), -1):
        cells = [str(column[i].as_py() or "").strip() for column in columns]
        full = [j for j, cell in enumerate(cells) if cell]
        gap = not quoted and bool(lines[i] - lines[i - 1] > 1)
        # a complete row may belong to the table, unless a blank line precedes it and it begins like a total
        is_complete = len(full) == width and not (gap and TOTALS.fullmatch(cells[0].rstrip(": ")))
        if not full or not _is_footer([cells[j] for j in full], width, gap) or is_complete:
            filler = not full and count  # an empty row between the table and its footers is left out, too
            if not filler:
                break
        elif _stands_elsewhere(columns[full[0]], cells[full[0]], i):
            break
        count = n - i
    return count


def _is_footer(full: Sequence[str], width: int, gap: bool) -> bool:
    """Return whether a row with these filled cells is a total or a note."""
    first = full[0].rstrip(": ")
    if TOTALS.fullmatch(first):
        return True
    if len(full) > 1 or NUMBER_LIKE.fullmatch(first) or width < 2:
        return False
    return bool(NOTES.match(full[0]) or TOTAL_WITH_FIGURE.match(full[0])) or gap


def _stands_elsewhere(column: pa.Array, cell: str, before: int) -> bool:
    import pyarrow.compute as pc

    head = pc.utf8_trim_whitespace(column.slice(0, before))
    return bool(pc.any(pc.equal(head, cell)).as_py())


def _with(body: bytes, delimiter: str) -> tuple[float, int, TableLayout] | None:
    """Return share of fitting lines, number of columns and layout from the first and last bytes; None without evidence.

    The rows between are checked when the table is cut.
    """
    head = body[:SAMPLE_BYTES]
    if len(body) > SAMPLE_BYTES:
        head = head[: head.rfind(b"\n") + 1]
    if not head.strip():
        return None
    scan_result = scan(head, delimiter.encode())
    width = _usual_width(scan_result)
    first = None if width is None else _header(head, scan_result, delimiter, width)
    if width is None or first is None:
        return None
    share = float((scan_result.fields[first:] == width).mean())
    top = _lines(head, scan_result, range(first), 0)
    end, bottom = _end(body, delimiter, width, None if len(body) > SAMPLE_BYTES else first)
    if not top and not bottom:
        return None
    start = int(scan_result.starts[first])
    return share, width, TableLayout(start=start, end=end, delimiter=delimiter, top=top, bottom=bottom)


def _usual_width(scan_result: Scan) -> int | None:
    """Return the number of fields of at least half of the records; None if it is one, or there is none."""
    if scan_result.after_quote or len(scan_result.fields) < FEWEST_ROWS + 1:
        return None
    widths = np.bincount(scan_result.fields)
    width = int(widths.argmax())
    enough = 2 * widths[width] >= len(scan_result.fields) and widths[width] > FEWEST_ROWS
    return width if width > 1 and enough else None


def _end(body: bytes, delimiter: str, width: int, head: int | None) -> tuple[int, tuple[Line, ...]]:
    """Return the end of the last row, and the footers below it; `head` is the header record if the sample is the whole file."""
    start = 0
    if head is None:
        start = body.find(b"\n", len(body) - SAMPLE_BYTES) + 1
        # a quoted value may begin before this part, so its line breaks cannot be trusted
        if not start or not body[start:].strip() or b'"' in body[start:]:
            return len(body), ()
    tail = body[start:]
    scan_result = scan(tail, delimiter.encode())
    last = _last_row(tail, scan_result, delimiter, width, head or 0)
    if last == len(scan_result.fields) - 1:
        return len(body), ()
    before = body.count(b"\n", 0, start)
    return start + int(scan_result.ends[last]), _lines(
        tail, scan_result, range(last + 1, len(scan_result.fields)), before
    )


def _header(body: bytes, scan_result: Scan, delimiter: str, width: int) -> int | None:
    """Return the index of the header record; None without one.

    Its names are distinct; below a title, none is a number. Only titles stand above it.
    """
    for i in range(min(MOST_TITLES, len(scan_result.fields) - FEWEST_ROWS)):
        cells = _cells(body, scan_result, i, delimiter)
        names = [cell for cell in cells if cell]
        numbers = any(NUMBER_LIKE.fullmatch(name) for name in names)
        distinct = len(cells) == width and len(names) == len(set(names)) and not (numbers and i)
        if any("\t" in name for name in names):  # a tab means that the cell holds several names
            return None
        if distinct and (len(names) == width or _hollow_end(body, scan_result, delimiter, i, len(names))):
            return i
        gap = not scan_result.quoted_breaks and bool(scan_result.lines[i + 1] - scan_result.lines[i] > 1)
        behind_gap = gap or _gap_above_header(body, scan_result, delimiter, width, i)
        if len(names) > 1 and not behind_gap and not cells[0].startswith("#"):
            return None
    return None


def _hollow_end(body: bytes, scan_result: Scan, delimiter: str, i: int, n_named: int) -> bool:
    """Return whether the columns after the first `n_named` have neither a name in record `i` nor a value below it."""
    below = [_cells(body, scan_result, j, delimiter) for j in range(i, min(i + LOOKED_AT, len(scan_result.fields)))]
    return n_named > 1 and len(below) > 1 and not any(any(cells[n_named:]) for cells in below)


def _gap_above_header(body: bytes, scan_result: Scan, delimiter: str, width: int, i: int) -> bool:
    """Return whether a blank line separates the lines from `i` on from the table."""
    if scan_result.quoted_breaks:
        return False
    for j in range(i, min(MOST_TITLES, len(scan_result.fields) - 1)):
        if scan_result.fields[j] == width and len(set(_cells(body, scan_result, j, delimiter)) - {""}) == width:
            return False
        if scan_result.lines[j + 1] - scan_result.lines[j] > 1:
            return True
    return False


def _last_row(body: bytes, scan_result: Scan, delimiter: str, width: int, head: int) -> int:
    """Return the index of the last record that is a row; the records below it are shorter footers."""
    last = len(scan_result.fields) - 1
    for i in range(last, max(head + FEWEST_ROWS, last - MOST_FOOTERS), -1):
        cells = [cell for cell in _cells(body, scan_result, i, delimiter) if cell]
        gap = not scan_result.quoted_breaks and bool(scan_result.lines[i] - scan_result.lines[i - 1] > 1)
        below_gap = gap or _gap_between(scan_result, i, head, width)
        if scan_result.fields[i] == width or not cells or not _is_footer(cells, width, below_gap):
            return i
        last = i - 1
    return last


def _gap_between(scan_result: Scan, i: int, head: int, width: int) -> bool:
    """Return whether a blank line separates record `i` from the last row that is as long as the header."""
    if scan_result.quoted_breaks:
        return False
    j = i
    while j > head and scan_result.fields[j] != width:
        if scan_result.lines[j] - scan_result.lines[j - 1] > 1:
            return True
        j -= 1
    return False


def _cells(body: bytes, scan_result: Scan, record: int, delimiter: str) -> list[str]:
    # keep tabs, because a tab at the end can be a delimiter
    text = body[scan_result.starts[record] : scan_result.ends[record]].decode("utf-8", "replace").strip("\r\n")
    return [cell.strip() for cell in next(csv.reader([text], delimiter=delimiter), [])]


def _lines(body: bytes, scan_result: Scan, records: range, before: int) -> tuple[Line, ...]:
    return tuple(
        (int(scan_result.lines[i]) + before, _text(body[scan_result.starts[i] : scan_result.ends[i]])) for i in records
    )


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").strip()[:200]
