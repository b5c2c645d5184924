"""Worksheets: values, dates, formulas, merged cells, surrounding rows, and refusals."""

from __future__ import annotations

import datetime
import io
import zipfile

import pyarrow as pa
import pytest

from tests.workbooks import MAIN, Fault, Formula, workbook
from trainer.data.formats.file_bytes import ReadLimits
from trainer.data.formats.read_file import read_table
from trainer.data.reader import load
from trainer.errors import DataError

HEADER = ["size", "colour", "class"]
ROWS = [[1.5, "red", "p"], [2, "green", "q"], [3, "red", "p"]]


@pytest.fixture
def write(tmp_path):
    def written(content: bytes, name: str = "t.xlsx"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return written


def read(write, rows, *, sheet=None, header=None, **parts):
    return read_table(write(workbook({"Data": rows}, **parts)), sheet=sheet, header=header)


def cells(raw):
    return [column.to_pylist() for column in raw.columns]


def test_cells_have_the_types_of_the_sheet(write):
    day = datetime.date(2024, 2, 29)
    moment = datetime.datetime(2024, 3, 1, 10, 30)
    rows = [["whole", "part", "true", "day", "moment", "text", "code"], [1, 0.5, True, day, day, "a\nb", "007"]]
    raw = read(write, [*rows, [2, None, False, day, moment, "c", "8"]])
    assert raw.columns[0].type == pa.float64()
    assert raw.columns[2].type == pa.bool_()
    assert cells(raw) == [
        [1.0, 2.0],
        [0.5, None],
        [True, False],
        ["2024-02-29", "2024-02-29"],
        ["2024-02-29 00:00:00", "2024-03-01 10:30:00"],
        ["a\nb", "c"],
        ["007", "8"],
    ]
    assert raw.line_numbers.tolist() == [2, 3]
    assert (raw.place, raw.detected.format, raw.detected.sheet) == ("Row", "xlsx", "Data")


def test_numbers_are_not_read_as_thousands(write):
    raw = read(write, [["a", "b"], [1.234, "1,5"], [2.345, "2,5"]])
    assert cells(raw)[0] == [1.234, 2.345]
    path = write(workbook({"s": [["a", "b", "y"]] + [[1.234 + i, f"{i},5", "pq"[i % 2]] for i in range(20)]}))
    table, _, _ = load(path, target="y")
    assert table.columns[0].values[0] == 1.234
    assert table.columns[1].values[3] == 3.5


def test_rows_around_the_table_and_empty_columns_are_left_out(write):
    around = [[None, None, None], [None, "Report of May"], [], *([None, *row] for row in [HEADER, *ROWS]), []]
    raw = read(write, [*around, [None, "Total", None, 6]])
    assert raw.names == tuple(HEADER)
    assert cells(raw)[0] == [1.5, 2.0, 3.0]
    assert raw.detected.top[0] == (2, "Report of May,,")
    assert raw.line_numbers.tolist() == [5, 6, 7]


def test_formulas_have_their_stored_values(write):
    rows = [HEADER, [Formula("1+0.5", 1.5), "red", "p"], [Formula("B2+1"), "red", "q"], [Fault(), "red", "p"]]
    raw = read(write, rows)
    assert cells(raw)[0] == [1.5, None, None]
    assert "1 cell has a formula without a stored value" in raw.detected.notes[0]
    assert "the first is A3" in raw.detected.notes[0]
    assert "error" in raw.detected.notes[1]


def test_merged_cells_have_their_value_in_each_row(write):
    raw = read(write, [HEADER, *ROWS], merged=["B2:B3", "A1:C1"])
    assert cells(raw)[1] == ["red", "red", "red"]
    assert "merged" in raw.detected.notes[0]


def test_sheet_is_the_first_visible_one_or_the_named_one(write):
    path = write(
        workbook({"Old": [["x"]], "New": [HEADER, *ROWS], "More": [["a", "b"], [1, 2]]}, hidden_sheets=["Old"])
    )
    raw = read_table(path)
    assert raw.detected.sheet == "New"
    assert raw.detected.sheets == ("Old", "New", "More")
    assert raw.detected.notes == ("The sheet 'New' is read. The workbook also has Old, More.",)
    assert read_table(path, sheet="More").names == ("a", "b")
    with pytest.raises(DataError, match="no sheet 'Mor'"):
        read_table(path, sheet="Mor")
    with pytest.raises(DataError, match="has sheets"):
        read_table(write(b"a,b\n1,2\n", "t.csv"), sheet="More")


def test_sheet_without_header_has_numbered_columns(write):
    raw = read(write, ROWS, header=False)
    assert raw.names == ("column 1", "column 2", "column 3")
    assert cells(raw)[0] == [1.5, 2.0, 3.0]


def test_hidden_rows_are_read_with_a_note(write):
    raw = read(write, [HEADER, *ROWS], hidden_rows=[3])
    assert len(raw) == 3
    assert "hidden row" in raw.detected.notes[0]


def test_faults_name_rows_of_the_sheet(write):
    with pytest.raises(DataError, match="Row 1: the header 'size' appears 2 times"):
        read(write, [["size", "size"], [1, 2]])
    with pytest.raises(DataError, match="sheet is empty"):
        read(write, [])


def entities() -> bytes:
    text = f'<!DOCTYPE w [<!ENTITY a "x">]><worksheet xmlns="{MAIN}"><sheetData/></worksheet>'
    return workbook({"s": ROWS}, parts={"xl/worksheets/sheet1.xml": text.encode()})


def far_cell() -> bytes:
    text = f'<worksheet xmlns="{MAIN}"><sheetData><row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData></worksheet>'
    return workbook({"s": ROWS}, parts={"xl/worksheets/sheet1.xml": text.encode()})


def other_archive(name: str, text: str = "x") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, text)
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (entities(), "document type"),
        (far_cell(), "1,048,576 rows and 16,384 columns"),
        (workbook({"s": ROWS}, parts={"xl/worksheets/sheet1.xml": b"<worksheet><row>"}), "damaged"),
        (workbook({"s": ROWS}, parts={"xl/_rels/workbook.xml.rels": b"<a/>"}), "no worksheet"),
        (workbook({"s": ROWS})[:-40], "zip archive or a damaged"),
        (other_archive("mimetype", "application/vnd.oasis.opendocument.spreadsheet"), r"OpenDocument .* save it as .xlsx or .csv"),
        (other_archive("xl/workbook.bin"), "binary Excel"),
        (other_archive("a.txt"), "zip archive"),
        (b"\xd0\xcf\x11\xe0" + b"\0" * 600, r"old Excel workbook \(.xls\): save it as .xlsx or .csv"),
        (b"\xd0\xcf\x11\xe0" + "EncryptedPackage".encode("utf-16-le"), "encrypted workbook: remove its password"),
    ],
)  # fmt: skip
def test_non_workbook_is_refused(write, content, words):
    with pytest.raises(DataError, match=words):
        read_table(write(content))


def test_unpacked_size_is_limited(write):
    path = write(workbook({"s": [["a"]] + [["0" * 5000]] * 2000}))
    assert path.stat().st_size < 200_000
    with pytest.raises(DataError, match="unpacks to more than 1,000,000 bytes"):
        read_table(path, limits=ReadLimits(unpacked_bytes=10**6))
    with pytest.raises(DataError, match="rows"):
        read_table(path, limits=ReadLimits(rows=100))
    with pytest.raises(DataError, match="larger than 10 bytes"):
        read_table(path, limits=ReadLimits(bytes=10))
