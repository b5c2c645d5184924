"""Read one sheet of an .xlsx workbook as a RawTable.

python-calamine reads the cells. It gets a copy of the parts that it needs, after their unpacked size and number of
cells were checked. Cells become lines of CSV, so titles, footers and faults are found as in CSV files; numbers stay
numbers.
"""

from __future__ import annotations

import csv
import datetime
import io
import posixpath
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, NamedTuple
from xml.parsers import expat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trainer.data.formats.csv_file import read_csv
from trainer.data.formats.file_bytes import CHUNK, ZIP_MAGIC, ReadLimits
from trainer.data.formats.raw import RawTable
from trainer.errors import DataError, closest, list_names
from trainer.tree.numbers import count_words

WORKBOOK = "xl/workbook.xml"
RELATIONS = "xl/_rels/workbook.xml.rels"
COMMON_PARTS = ("[Content_Types].xml", "_rels/.rels", WORKBOOK, RELATIONS, "xl/styles.xml", "xl/sharedStrings.xml")
EMPTY, NUMBER, TRUTH, TIME, TEXT = range(5)
BREAK = "\ue00a"  # a private-use character that replaces a line break in a cell, so that each row is one line
MAX_LINES_AROUND = 1_000  # limit on rows above and below the table
DATE_LENGTH = len("2024-12-31")
CELL = re.compile(r"([A-Z]{1,3})([1-9][0-9]{0,6})")


class SheetPart(NamedTuple):
    """A worksheet: its name, where it is in the archive, and whether a spreadsheet program shows it."""

    name: str
    part: str
    visible: bool


@dataclass
class SheetScan:
    """Counts of a worksheet: last row and column from 1, cells without a usable value, hidden rows, merged ranges."""

    rows: int = 0
    columns: int = 0
    unstored: int = 0  # formulas without a stored value
    first_unstored: str = ""
    errors: int = 0
    hidden_rows: int = 0
    merged: list[tuple[int, int, int]] = field(default_factory=list)  # first row, last row and column, counted from 0


def is_workbook(path: Path) -> bool:
    """Return whether the file is an .xlsx workbook; raise DataError if it cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(len(ZIP_MAGIC)) == ZIP_MAGIC and holds_workbook(stream)
    except OSError as error:
        raise DataError(f"The file '{path.name}' cannot be read: {error.strerror or error}.") from error


def holds_workbook(stream: IO[bytes]) -> bool:
    """Return whether an archive has the parts of an .xlsx workbook."""
    try:
        with zipfile.ZipFile(stream) as archive:
            return WORKBOOK in archive.namelist()
    except (zipfile.BadZipFile, ValueError):
        return False


def sheet_names(path: Path) -> tuple[str, ...]:
    """Return the names of the worksheets of a workbook; raise DataError if it is damaged."""
    with _damaged_workbook(), zipfile.ZipFile(path) as archive:
        return tuple(sheet.name for sheet in _sheets(archive))


def read_workbook(
    path: Path,
    limits: ReadLimits,
    *,
    sheet: str | None = None,
    header: bool | None = None,
    skip_top: int | None = None,
    skip_bottom: int | None = None,
) -> RawTable:
    """Read a worksheet.

    Parameters
    ----------
    path : Path
        An .xlsx file.
    limits : ReadLimits
        Limits of the file and of its unpacked content.
    sheet : str, optional
        The name of the worksheet; None: the first visible one.
    header : bool, optional
        False: the first row is data.
    skip_top, skip_bottom : int, optional
        Rows above and below the table; None: they are found.

    Returns
    -------
    RawTable
        Dates and times are texts in ISO form. Line numbers are those of the sheet's rows.

    Raises
    ------
    DataError
        If the file is damaged or too large, or has no such sheet.
    """
    if path.stat().st_size > limits.bytes:
        raise DataError(f"The file is larger than {limits.bytes:,} bytes. Leave rows or columns out.")
    with _damaged_workbook(), zipfile.ZipFile(path) as archive, tempfile.NamedTemporaryFile(suffix=".xlsx") as copy:
        sheets = _sheets(archive)
        sheet_part = _chosen_sheet(sheets, sheet)
        scan = _copy_parts(archive, sheet_part.part, copy, limits)
        _check_size(scan, limits)
        body, kinds = _lines_of(copy.name, sheet_part.name, scan)
    try:
        raw = read_csv(
            body,
            delimiter=",",
            encoding="utf-8",
            header=header,
            limits=limits,
            skip_top=skip_top,
            skip_bottom=skip_bottom,
        )
    except DataError as error:
        words = re.sub(r" Read with the delimiter.*", "", str(error))
        raise DataError(_in_rows(words), problems=tuple(map(_in_rows, error.problems))) from error
    detected = replace(
        raw.detected,
        format="xlsx",
        encoding="utf-8",
        encoding_reason="A workbook keeps its text in Unicode.",
        delimiter="",
        delimiter_reason="A workbook has no delimiter.",
        header_reason=raw.detected.header_reason.replace("line", "row"),
        sheet=sheet_part.name,
        sheets=tuple(part.name for part in sheets),
        remarks=tuple(_remarks(sheet_part, sheets, sheet, scan)),
    )
    columns = tuple(_typed_column(column, kinds[raw.line_numbers - 1, j]) for j, column in enumerate(raw.columns))
    return replace(raw, columns=columns, detected=detected)


@contextmanager
def _damaged_workbook() -> Iterator[None]:
    try:
        yield
    except (
        zipfile.BadZipFile,
        expat.ExpatError,
        KeyError,
        EOFError,
        NotImplementedError,
        RuntimeError,
        ValueError,
    ) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"The workbook is damaged: {error}. Save it again as .xlsx or .csv.") from error


def _parser(start: Callable[[str, dict[str, str]], None]) -> expat.XMLParserType:
    """Return an XML parser that refuses document types, which a workbook never has."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.StartDoctypeDeclHandler = _refuse_doctype
    return parser


def _refuse_doctype(*_: Any) -> None:
    raise DataError(
        "The workbook contains an XML document type definition, which octweb refuses. "
        "Open it in a spreadsheet program and save it as .xlsx."
    )


def _content(archive: zipfile.ZipFile, part: str) -> bytes:
    """Return a small part of the archive."""
    with archive.open(part) as stream:
        return stream.read(16 * CHUNK)


def _sheets(archive: zipfile.ZipFile) -> list[SheetPart]:
    """Return the worksheets in their order."""
    targets: dict[str, str] = {}
    parts: list[SheetPart] = []

    def add_target(name: str, attributes: dict[str, str]) -> None:
        if name.endswith("Relationship") and attributes.get("Type", "").endswith("/worksheet"):
            target = attributes["Target"]
            targets[attributes["Id"]] = posixpath.normpath(posixpath.join("/xl", target)).lstrip("/")

    def add_sheet(name: str, attributes: dict[str, str]) -> None:
        if name.rpartition(":")[2] != "sheet":
            return
        relation = next((value for key, value in attributes.items() if key.rpartition(":")[2] == "id"), "")
        if relation in targets:
            visible = attributes.get("state", "visible") == "visible"
            parts.append(SheetPart(attributes["name"], targets[relation], visible))

    _parser(add_target).Parse(_content(archive, RELATIONS), True)
    _parser(add_sheet).Parse(_content(archive, WORKBOOK), True)
    if not parts:
        raise DataError("The workbook has no worksheet. Save the table as a sheet, or as .csv.")
    return parts


def _chosen_sheet(sheets: Sequence[SheetPart], name: str | None) -> SheetPart:
    names = [part.name for part in sheets]
    if name is None:
        return next((own for own in sheets if own.visible), sheets[0])
    if name not in names:
        raise DataError(
            f"There is no sheet '{name[:60]}'.{closest(name, names)} The sheets are: {list_names(names, 12)}."
        )
    return sheets[names.index(name)]


def _copy_parts(archive: zipfile.ZipFile, sheet: str, target: Any, limits: ReadLimits) -> SheetScan:
    """Write the parts that one sheet needs into a new archive, and scan the sheet; raise DataError beyond the limits."""
    scanner = _Scanner()
    names = set(archive.namelist())
    left = limits.unpacked_bytes
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as copy:
        for part in (*COMMON_PARTS, sheet):
            if part not in names and part != sheet:
                continue
            with archive.open(part) as source, copy.open(part, "w", force_zip64=True) as sink:
                while piece := source.read(CHUNK):
                    left -= len(piece)
                    if left < 0:
                        raise DataError(
                            f"The file unpacks to more than {limits.unpacked_bytes:,} bytes, the limit. Take a sample of the rows."
                        )
                    sink.write(piece)
                    if part == sheet:
                        scanner.parser.Parse(piece)
    scanner.parser.Parse(b"", True)
    target.flush()
    return scanner.found


class _Scanner:
    """A parser that counts the rows, columns and unusual cells of a sheet."""

    def __init__(self) -> None:
        self.found = SheetScan()
        self.parser = _parser(self._start)
        self.parser.EndElementHandler = self._end
        self.row = 0
        self.column = 0
        self.is_text = False
        self.has_formula = False
        self.in_value = False
        self.has_value = False

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        if name == "c":
            self._start_cell(attributes)
        elif name == "row":
            self.row = int(attributes.get("r", self.row + 1))
            self.column = 0
            self.found.hidden_rows += attributes.get("hidden") in ("1", "true")
        elif name == "f":
            self.has_formula = True
            self.parser.CharacterDataHandler = self._text
        elif name == "v":
            self.in_value = True
        elif name == "mergeCell":
            self._add_merged(attributes["ref"])

    def _start_cell(self, attributes: dict[str, str]) -> None:
        reference = CELL.fullmatch(attributes.get("r", ""))
        self.column = _column_number(reference[1]) if reference else self.column + 1
        self.row = int(reference[2]) if reference else self.row
        self.found.rows = max(self.found.rows, self.row)
        self.found.columns = max(self.found.columns, self.column)
        kind = attributes.get("t", "")
        self.found.errors += kind == "e"
        self.is_text = kind == "str"  # a formula may result in an empty text, which still is a value
        self.has_formula = self.has_value = False

    def _text(self, text: str) -> None:
        self.has_value = self.has_value or (self.in_value and bool(text.strip()))

    def _end(self, name: str) -> None:
        name = name.rpartition(":")[2]
        if name == "v":
            self.in_value = False
        elif name == "c" and self.has_formula:
            self.parser.CharacterDataHandler = None
            self.has_formula = False
            if not self.has_value and not self.is_text:
                self.found.unstored += 1
                self.found.first_unstored = self.found.first_unstored or f"{_column_letters(self.column)}{self.row}"

    def _add_merged(self, reference: str) -> None:
        first, _, last = reference.partition(":")
        start = CELL.fullmatch(first)
        end = CELL.fullmatch(last or first)
        if start is None or end is None:
            raise DataError(
                f"The workbook is damaged: '{reference[:40]}' is not a range of cells. Save it again as .xlsx or .csv."
            )
        if int(end[2]) > int(start[2]):
            self.found.merged.append((int(start[2]) - 1, int(end[2]) - 1, _column_number(start[1]) - 1))


def _column_number(letters: str) -> int:
    """Return the number of a column, from 1."""
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number


def _column_letters(number: int) -> str:
    """Return the letters of a column, the inverse of `_column_number`."""
    letters = ""
    while number:
        number, remainder = divmod(number - 1, 26)
        letters = chr(ord("A") + remainder) + letters
    return letters


def _check_size(scan: SheetScan, limits: ReadLimits) -> None:
    """Raise DataError for a sheet that is empty or beyond the limits; the rows around the table count as well."""
    if not scan.columns:
        raise DataError("The sheet is empty. Choose another sheet, or a file with a header row and rows.")
    most_rows = limits.rows + MAX_LINES_AROUND
    if scan.rows > most_rows or scan.columns > limits.columns or scan.rows * scan.columns > limits.cells:
        raise DataError(
            f"The sheet has {scan.rows:,} rows and {scan.columns:,} columns up to its last cell, but at most {limits.rows:,} rows, "
            f"{limits.columns:,} columns and {limits.cells:,} cells are read. Delete empty rows and columns, or leave some out."
        )


def _lines_of(path: str, sheet: str, scan: SheetScan) -> tuple[bytes, np.ndarray]:
    """Return the sheet as lines of CSV, one for each row, and the kind of each cell, uint8 (rows, columns)."""
    rows = _cells_of(path, sheet)
    _fill_merged(rows, scan)
    first = min((j for row in rows for j, cell in enumerate(row) if cell != ""), default=0)
    kinds = np.zeros((len(rows), max(map(len, rows)) - first), np.uint8)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for i, row in enumerate(rows):
        texts = []
        for j, cell in enumerate(row[first:]):
            text, kinds[i, j] = _text_of(cell)
            texts.append(text)
        if any(texts):
            writer.writerow(texts)
        else:
            out.write("\n")
    return out.getvalue().encode("utf-8", "replace"), kinds


def _cells_of(path: str, sheet: str) -> list[list[Any]]:
    """Return the values of a sheet from its first row and column on; "" for an empty cell."""
    from python_calamine import CalamineError, CalamineWorkbook  # import here, because only workbooks need this package

    try:
        with CalamineWorkbook.from_path(path) as book:
            return book.get_sheet_by_name(sheet).to_python(skip_empty_area=False)
    except CalamineError as error:
        raise DataError(f"The workbook is damaged: {error}. Save it again as .xlsx or .csv.") from error
    except BaseException as error:
        # the Rust reader reports its own faults by a PanicException, which does not derive from Exception
        if type(error).__name__ != "PanicException":
            raise
        raise DataError("The workbook cannot be read. Save it again as .xlsx or .csv.") from error


def _fill_merged(rows: list[list[Any]], scan: SheetScan) -> None:
    """Give each cell that was merged downwards the value of the first one."""
    for first, last, column in scan.merged:
        if first < len(rows) and column < len(rows[first]):
            for row in rows[first + 1 : last + 1]:
                row[column] = rows[first][column]


def _text_of(cell: Any) -> tuple[str, int]:
    """Return a cell as text, and its kind."""
    if isinstance(cell, str):
        return cell.replace("\r\n", "\n").replace("\n", BREAK), TEXT if cell else EMPTY
    if isinstance(cell, bool):
        return str(cell).lower(), TRUTH
    if isinstance(cell, (int, float)):
        return repr(cell).removesuffix(".0"), NUMBER
    if isinstance(cell, datetime.datetime):
        return cell.isoformat(sep=" "), TIME
    if isinstance(cell, datetime.timedelta):
        minutes, seconds = divmod(round(cell.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}", TIME
    return cell.isoformat(), TIME


def _typed_column(column: pa.Array, kinds: np.ndarray) -> pa.Array:
    """Return a CSV column with the type that all of its cells have in the sheet; dates and times stay text."""
    present = set(np.unique(kinds).tolist()) - {EMPTY}
    if present == {NUMBER} or present == {TRUTH}:
        filled = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
        return filled.cast(pa.float64() if present == {NUMBER} else pa.bool_())
    if present == {TIME} and len(set(pc.unique(pc.utf8_length(column)).to_pylist()) - {0}) > 1:
        short = pc.equal(pc.utf8_length(column), DATE_LENGTH)
        return pc.if_else(short, pc.binary_join_element_wise(column, "00:00:00", " "), column)
    return pc.replace_substring(column, BREAK, "\n") if TEXT in present else column


def _in_rows(sentence: str) -> str:
    """Replace "line" before a number by "row" in a sentence."""
    return re.sub(r"\b([Ll])ine (?=\d)", lambda found: "Row " if found[1] == "L" else "row ", sentence)


def _remarks(chosen: SheetPart, sheets: Sequence[SheetPart], requested: str | None, scan: SheetScan) -> Iterator[str]:
    """Yield sentences about the chosen sheet and about cells without a value of their own."""
    others = [part.name for part in sheets if part is not chosen]
    if others and requested is None:
        yield f"The sheet '{chosen.name}' is read. The workbook also has {list_names(others, 6)}."
    if scan.unstored:
        have = "1 cell has" if scan.unstored == 1 else f"{scan.unstored:,} cells have"
        yield (
            f"{have} a formula without a stored value and count as empty; the first is {scan.first_unstored}. "
            "Open the file in a spreadsheet program and save it."
        )
    if scan.errors:
        yield f"{count_words(scan.errors, 'cell')} with an error such as #N/A or #DIV/0! count as empty."
    if scan.merged:
        yield f"{count_words(len(scan.merged), 'merged range')}: each of its rows has the value of the first one."
    if scan.hidden_rows:
        yield f"{count_words(scan.hidden_rows, 'hidden row')} of the sheet are read like the others."
