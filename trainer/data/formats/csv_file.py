"""Parse a CSV file into a RawTable, without titles and footers.

Quotes, records, ragged rows and line numbers are checked here, because pyarrow's parser does not report unclosed quotes
and repeated names. The parser then splits the cells; every column is text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from trainer.data.formats import layout as layouts
from trainer.data.formats.csv_scan import DelimiterGuess, Excess, Scan, scan, sniff
from trainer.data.formats.file_bytes import ReadLimits, decode, refuse_other_formats
from trainer.data.formats.header import HeaderGuess, is_number, judge_header
from trainer.data.formats.raw import DetectedFormat, RawTable, first_of, flat, too_long
from trainer.errors import DataError

DELIMITER_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
LISTED = 20
PANDAS_INDEX = "Unnamed: 0"  # pandas writes this name for an index without a name
R_ROW_NAMES = "row names"
FEWEST_NAMED_ROWS = 4  # with fewer rows, a column may look like row names by chance
NO_HEADER = " If the file has no header line, read its first line as data (--no-header)."
FIRST_LINE = "The first line of the file says so."
BY_TABLE = "It cuts the lines of the table into as many values as the header."
NO_THREAD = "launch worker thread"
SOMETHING = re.compile(rb"\S")
BLOCK_BYTES = 1 << 21  # bytes per block of the parser, which reserves as much for every column


def read_csv(
    content: bytes,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    limits: ReadLimits | None = None,
    skip_top: int | None = None,
    skip_bottom: int | None = None,
) -> RawTable:
    """Read the bytes of an uncompressed CSV file; detect what is not given.

    Parameters
    ----------
    content : bytes
        The file.
    delimiter : str, optional
        One ASCII character.
    encoding : str, optional
        A name that Python knows.
    header : bool, optional
        False if the first line is a row; its columns are then called `column 1`, `column 2` and so on.
    limits : ReadLimits, optional
        The largest file and table.
    skip_top, skip_bottom : int, optional
        Numbers of lines above and below the table. If both are None, titles and footers are detected.

    Returns
    -------
    RawTable
        Every column is text.

    Raises
    ------
    DataError
        If the bytes are not a table, or exceed a limit; `problems` lists at most 20 places of a kind.
    """
    limits = limits or ReadLimits()
    refuse_other_formats(content)
    body, name, why, sure = decode(content, encoding)
    del content
    body = _plain_breaks(body)
    if not SOMETHING.search(body):
        raise DataError("The file is empty. Choose a file with a header line and rows.")
    cut = _Cut(body, delimiter, encoding=(name, why, sure), header=header is not False, limits=limits)
    del body
    if skip_top is not None or skip_bottom is not None:
        return cut.table(layouts.skip_lines(cut.body, skip_top or 0, skip_bottom or 0), look=skip_bottom is None)
    stated_layout = layouts.sep_line(cut.body)
    refusal = None
    try:
        found = cut.table(stated_layout)
    except DataError as error:
        # drop the traceback, so that the memory of the first attempt is freed before the second
        refusal = error.with_traceback(None)
    if refusal is not None:
        around = _table_layout(cut, stated_layout)
        if around is None:
            raise refusal
        return cut.table(around)
    if stated_layout is not None:
        return found
    if cut.header and len(found.names) == 1 and (around := layouts.find(cut.body, delimiter)) is not None:
        return cut.table(around)
    return found


def _table_layout(cut: _Cut, stated_layout: layouts.TableLayout | None) -> layouts.TableLayout | None:
    """Find the table in a file that also has other lines."""
    if not cut.header:
        return None
    return (
        layouts.find(cut.body, cut.delimiter)
        if stated_layout is None
        else layouts.find_inside(cut.body, stated_layout, cut.delimiter)
    )


@dataclass(frozen=True)
class _Cut:
    """The decoded bytes of a file, with the options that cut them into a table."""

    body: bytes
    delimiter: str | None
    encoding: tuple[str, str, float]
    header: bool
    limits: ReadLimits

    def table(self, around: layouts.TableLayout | None, *, look: bool = True) -> RawTable:
        """Return the table of the whole file, or of the part in a layout; if `look`, cut off footers in the shape of rows."""
        body = self.body
        header = self.header
        limits = self.limits
        before = 0
        if around is not None:
            before = body.count(b"\n", 0, around.start)
            body = body[around.start : around.end]
        guess = _delimiter(body, self.delimiter or (around.delimiter if around is not None else None))
        if around is not None and around.delimiter and self.delimiter is None:
            states_delimiter = around.top[:1] and around.top[0][1].startswith("sep=")
            guess = replace(guess, reason=FIRST_LINE if states_delimiter else BY_TABLE)
        found = scan(
            body, guess.delimiter.encode(), most_records=limits.rows + int(header), most_bytes=limits.line_bytes
        )
        found = _shift_lines(found, before)
        row_names = header and _has_row_names(body, found, guess.delimiter)
        names = _check(body, found, guess, header, limits, row_names=row_names)
        index = next((marker for marker in (R_ROW_NAMES, PANDAS_INDEX) if header and names[0] == marker), "")
        columns = _cells(body, found, guess.delimiter, len(names), header)
        hollow = [j for j, name in enumerate(names, 1) if not name]
        columns = tuple(column for name, column in zip(names, columns, strict=True) if name)
        names = tuple(name for name in names if name)
        lines = found.lines[1:] if header else found.lines
        top = around.top if around is not None else ()
        bottom = around.bottom if around is not None else ()
        if look and header and (more := layouts.footers(names, columns, lines, found.quoted_breaks)):
            n_rows = len(lines) - more
            cells = [[str(c[i].as_py()) for c in columns] for i in range(n_rows, len(lines))]
            own = tuple((int(n), guess.delimiter.join(row)[:200]) for n, row in zip(lines[n_rows:], cells, strict=True))
            columns = tuple(c.slice(0, n_rows) for c in columns)
            lines = lines[:n_rows]
            bottom = (*own, *bottom)
        sure, reason = _header_guess(body, found, guess.delimiter, header, columns)
        if hollow:
            reason += f" {_hollow_words(hollow)} no name and no value, so that nothing is read from {'it' if len(hollow) == 1 else 'them'}."
        detected = DetectedFormat(
            format="csv",
            encoding=self.encoding[0],
            encoding_reason=self.encoding[1],
            encoding_sure=self.encoding[2],
            delimiter=guess.delimiter,
            delimiter_sure=guess.sure,
            delimiter_reason=guess.reason,
            header=header,
            header_sure=sure,
            header_reason=reason,
            index=index,
            top=top,
            bottom=bottom,
        )
        return RawTable(names=names, columns=columns, line_numbers=lines, detected=detected)


def _shift_lines(scan_result: Scan, before: int) -> Scan:
    """Return a scan of a part of a file with `before` added to its line numbers."""
    if not before:
        return scan_result
    excess = scan_result.excess
    if excess is not None and excess.line:
        excess = replace(excess, line=excess.line + before)
    return replace(
        scan_result,
        lines=scan_result.lines + before,
        unclosed=None if scan_result.unclosed is None else scan_result.unclosed + before,
        after_quote=tuple(line + before for line in scan_result.after_quote),
        excess=excess,
    )


def _plain_breaks(body: bytes) -> bytes:
    """Convert all line breaks to line feeds; the parser treats a lone carriage return as a line break, too."""
    if b"\r\n" in body:
        body = body.replace(b"\r\n", b"\n")
    return body.replace(b"\r", b"\n") if b"\r" in body else body


def _delimiter(body: bytes, delimiter: str | None) -> DelimiterGuess:
    if delimiter is None:
        return sniff(body)
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\n\r':
        raise DataError(
            f"The delimiter {delimiter!r} cannot be used: give one ASCII character, such as ',', ';' or a tab."
        )
    return DelimiterGuess(delimiter=delimiter, sure=1.0, reason="The delimiter was given.")


def _check(
    body: bytes, scan_result: Scan, guess: DelimiterGuess, header: bool, limits: ReadLimits, *, row_names: bool
) -> tuple[str, ...]:
    """Return the column names, "" for a column without name and value; raise DataError if the file is not a table."""
    name = DELIMITER_NAMES.get(guess.delimiter, guess.delimiter)
    if scan_result.excess is not None:
        raise _excess(scan_result.excess, limits)
    if scan_result.unclosed is not None:
        raise DataError(
            f"Line {scan_result.unclosed}: the quote that opens here is never closed. Close it, or double it if it belongs to the value.",
            problems=(f"Line {scan_result.unclosed}: a quote is opened and never closed.",),
        )
    if scan_result.after_quote:
        places = [f"Line {line}: text follows a closing quote." for line in scan_result.after_quote]
        raise DataError(
            first_of(places) + " Write a quote inside a quoted value twice, or remove the quotes.",
            problems=_first_problems(places),
        )
    if not len(scan_result.starts):
        raise DataError("The file is empty. Choose a file with a header line and rows.")
    width = int(scan_result.fields[0]) + int(row_names)
    rows = len(scan_result.starts) - int(header)
    _check_size(rows, width, limits)
    problems: list[str] = []
    names = _header_names(body, scan_result, guess.delimiter, problems, row_names) if header else _numbered_names(width)
    if "" in names:
        problems += _nameless(body, scan_result, guess.delimiter, names)
    if header and rows == 0:
        problems.append(f"Line {scan_result.lines[0]} is the only line: there is a header but no row.")
    first = f"the header has {width}" if header else f"line {scan_result.lines[0]} has {width}"
    ragged = np.flatnonzero(scan_result.fields[int(header) :] != width) + int(header)
    places = [
        f"Line {scan_result.lines[i]} has {scan_result.fields[i]} {_values(scan_result.fields[i])}; {first}."
        for i in ragged[:LISTED]
    ]
    if len(ragged) > LISTED:
        places.append(f"... and {len(ragged) - LISTED} more rows of another length.")
    problems += places
    if problems:
        advice = (
            f" Read with the delimiter '{name}'; quote values that contain it, or choose another delimiter."
            if places
            else ""
        )
        if header and rows and len(ragged) == rows and (scan_result.fields[1:] == width + 1).all():
            advice += " If each line begins with a row name, give that column a name in the header."
        if header and len(problems) > len(places) and rows:
            advice += NO_HEADER
        more = f" ({len(ragged) or len(problems)} places in all.)" if len(problems) > 1 else ""
        raise DataError(problems[0] + more + advice, problems=tuple(problems))
    return names


def _check_size(rows: int, width: int, limits: ReadLimits) -> None:
    """Raise DataError for a table beyond the limits."""
    if width > limits.columns:
        raise DataError(f"The file has {width:,} columns, but at most {limits.columns:,} are read. Leave columns out.")
    if rows > limits.rows:
        raise DataError(f"The file has {rows:,} rows, but at most {limits.rows:,} are read. Take a sample of the rows.")
    if rows * width > limits.cells:
        raise DataError(
            f"The file has {rows * width:,} cells, but at most {limits.cells:,} are read. Leave rows or columns out."
        )


def _excess(excess: Excess, limits: ReadLimits) -> DataError:
    if excess.records:
        return DataError(f"The file has more than {limits.rows:,} rows, the limit. Take a sample of the rows.")
    why = (
        "a quote opens in it and is not closed. Close it"
        if excess.quoted
        else "it may not be a table of rows. Write one row in each line"
    )
    return DataError(
        f"Line {excess.line} is longer than {limits.line_bytes:,} bytes, the limit: {why}.",
        problems=(f"Line {excess.line}: longer than {limits.line_bytes:,} bytes.",),
    )


def _header_names(
    body: bytes, scan_result: Scan, delimiter: str, problems: list[str], row_names: bool
) -> tuple[str, ...]:
    names = tuple(name.strip() for name in _record(body, scan_result, 0, delimiter))
    names = _with_row_index(names, row_names)
    line = scan_result.lines[0]
    if long := too_long(names):
        problems += [f"Line {line}: {words}" for words in long]
        return names
    for name, times in Counter(names).items():
        if name and times > 1:
            places = ", ".join(str(j) for j, other in enumerate(names, 1) if other == name)
            problems.append(
                f"Line {line}: the header '{name}' appears {times} times (columns {places}). Rename all but one."
            )
    return names


def _with_row_index(names: tuple[str, ...], row_names: bool) -> tuple[str, ...]:
    """Name the first column where R or pandas left its name out: no field at all, or an empty one."""
    if row_names:
        return (R_ROW_NAMES, *names)
    other_names = names[1:]
    if not names[0] and other_names and all(other_names) and PANDAS_INDEX not in other_names:
        return (PANDAS_INDEX, *other_names)
    return names


def _has_row_names(body: bytes, scan_result: Scan, delimiter: str) -> bool:
    """Return whether the header has one field less than each row, as R writes a table with row names.

    Row names must be distinct and quoted, like the header, or count the rows from 1.
    """
    fields = scan_result.fields
    if (
        len(fields) <= FEWEST_NAMED_ROWS
        or not (fields[1:] == fields[0] + 1).all()
        or scan_result.after_quote
        or scan_result.unclosed
    ):
        return False
    quoted = bool((np.frombuffer(body, np.uint8)[scan_result.starts] == ord('"')).all())
    first = _cells(body, scan_result, delimiter, int(fields[1]), header=True)[0].to_pylist()
    counts = first == [str(i) for i in range(1, len(first) + 1)]
    return counts or (quoted and len(set(first)) == len(first))


def _nameless(body: bytes, scan_result: Scan, delimiter: str, names: Sequence[str]) -> list[str]:
    """Return a problem for each column without a name.

    Columns without name and value at the end come from a delimiter that ends every line; they are not a problem.
    """
    places = [j for j, name in enumerate(names) if not name]
    width = len(names)
    if any(names) and not names[-1] and len(scan_result.starts) > 1 and (scan_result.fields == width).all():
        columns = _cells(body, scan_result, delimiter, width, header=True)
        filled = [bool(name) or not _blank(column) for name, column in zip(names, columns, strict=True)]
        end = max(j for j in range(width) if filled[j])
        places = [j for j in places if j < end or filled[j]]
    return [
        f"Line {scan_result.lines[0]}: the header of column {j + 1} is empty. Give the column a name." for j in places
    ]


def _blank(column: pa.Array) -> bool:
    return bool(pc.all(pc.equal(pc.utf8_trim_whitespace(column), "")).as_py())


def _hollow_words(places: Sequence[int]) -> str:
    listed_places = ", ".join(map(str, places[:LISTED]))
    return f"Column {listed_places} has" if len(places) == 1 else f"Columns {listed_places} have"


def _numbered_names(width: int) -> tuple[str, ...]:
    return tuple(f"column {j}" for j in range(1, width + 1))


def _record(body: bytes, scan_result: Scan, record: int, delimiter: str) -> list[str]:
    """Return the cells of one record, such as the header."""
    line = body[scan_result.starts[record] : scan_result.ends[record]]
    columns = _parse(line + b"\n", delimiter, int(scan_result.fields[record]), newlines=True)
    return [column[0].as_py() for column in columns]


def _cells(body: bytes, scan_result: Scan, delimiter: str, width: int, header: bool) -> tuple[pa.Array, ...]:
    first = int(header)
    rows = len(scan_result.starts) - first
    if scan_result.blank:
        # join the records without blank lines, because the parser would read a line of spaces as a row
        view = memoryview(body)
        pieces = [view[scan_result.starts[i] : scan_result.ends[i]] for i in range(first, len(scan_result.starts))]
        part: bytes | memoryview = b"\n".join(pieces) + b"\n"
    else:
        part = memoryview(body)[scan_result.starts[first] :]  # a memoryview does not copy the bytes
    longest = int((scan_result.ends - scan_result.starts).max())
    columns = _parse(part, delimiter, width, newlines=scan_result.quoted_breaks, block=max(BLOCK_BYTES, 2 * longest))
    if len(columns[0]) != rows:
        raise DataError(
            f"The parser found {len(columns[0])} rows where {rows} were counted; check the quotes of the file."
        )
    return columns


def _parse(
    part: bytes | memoryview, delimiter: str, width: int, *, newlines: bool, block: int = 1 << 25
) -> tuple[pa.Array, ...]:
    names = [str(j) for j in range(width)]
    try:
        table = pacsv.read_csv(
            pa.BufferReader(pa.py_buffer(part)),
            # a record must fit into a block. Threads are off: they gain nothing here, and can abort a process that
            # exits right afterwards
            read_options=pacsv.ReadOptions(column_names=names, use_threads=False, block_size=min(len(part) + 1, block)),
            parse_options=pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=newlines),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, null_values=[]
            ),
        )
    except MemoryError:
        raise
    except pa.ArrowException as error:
        if NO_THREAD in str(error):  # the reading thread could not start, since there is no memory for its stack
            raise MemoryError(str(error)) from error
        raise DataError(f"The file cannot be cut into cells: {error}. Check its quotes and its delimiter.") from error
    pieces = table.columns[::-1]
    columns = []
    del table
    while pieces:  # convert one column at a time, so that its chunks are freed before the next one
        columns.append(flat(pieces.pop()))
    return tuple(columns)


def _header_guess(
    body: bytes, scan_result: Scan, delimiter: str, header: bool, columns: tuple[pa.Array, ...]
) -> HeaderGuess:
    """Judge whether the first line has names, by the cells below it."""
    first = _record(body, scan_result, 0, delimiter)
    if header:
        # skip the column of R's row names, which has no field in the header, and trailing columns without name and
        # values
        named_columns = columns[len(columns) - len(first) :] if len(first) < len(columns) else columns
        names = [cell.strip() for cell in first][: len(named_columns)]
        return judge_header(names, named_columns[: len(names)])
    if any(is_number(cell) for cell in first):
        return HeaderGuess(0.9, "The first line has numbers.")
    if any(is_number(c[1].as_py()) for c in columns if len(c) > 1):
        words = "The first line has no number, but the lines below have numbers: it looks like a header."
        return HeaderGuess(0.1, words)
    return HeaderGuess(0.5, "The lines do not show whether the first one is a header.")


def _values(count: int) -> str:
    return "value" if count == 1 else "values"


def _first_problems(problems: list[str]) -> tuple[str, ...]:
    if len(problems) <= LISTED:
        return tuple(problems)
    return (*problems[:LISTED], f"... and {len(problems) - LISTED} more.")
