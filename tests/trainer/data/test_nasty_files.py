"""Odd notations of exported files: read correctly, kept as text with a note, or refused with the line."""

from __future__ import annotations

import pytest

from trainer.check.recount import verdict, verify
from trainer.data.formats.csv_file import read_csv
from trainer.data.parsing import reading_of
from trainer.data.reader import load
from trainer.errors import DataError
from trainer.prediction.predict_file import predict_file
from trainer.training.run import TrainRequest, save, train
from trainer.tree.file import read_model

MANY = range(1, 31)


def file_of(cells, head="", names="id;x;class") -> bytes:
    rows = [f"r{i};{cell};{'ab'[i % 2]}" for i, cell in enumerate(cells)]
    return (head + names + "\n" + "\n".join(rows) + "\n").encode()


def column(content: bytes):
    """Return the parsing of column x, and its plain cells."""
    raw = read_csv(content)
    reading = reading_of(raw).for_target("class")
    reading.ask(raw.names)
    plain = reading.apply(raw, target="class")
    return reading.columns.get("x"), plain.column("x").to_pylist() if "x" in plain.names else []


RIGHT = {
    "brackets, thousands": (["(1,234.50)", "12.00", "(7.25)"], ["-1234.50", "12.00", "-7.25"]),
    "brackets, decimal comma": (["(1.234,50)", "12,00"], ["-1234.50", "12.00"]),
    "brackets and a currency inside": (["($1,250.00)", "$3.10"], ["-1250.00", "3.10"]),
    "brackets and a currency outside": (["$(1,250.00)", "$3.10"], ["-1250.00", "3.10"]),
    "minus behind": (["1765.50-", "12.25"], ["-1765.50", "12.25"]),
    "minus behind, decimal comma": (["1.765,50-", "12,25"], ["-1765.50", "12.25"]),
    "minus behind, before a currency": (["5,00- €", "12,25 €"], ["-5.00", "12.25"]),
    "a minus sign of print beside plain numbers": (["\u22125.5", "12.25"], ["-5.5", "12.25"]),
    "a mark without width": (["12.5\u200b", "\u200e13.5", "14.5"], ["12.5", "13.5", "14.5"]),
    "apostrophes of print": (["1\u2019234.50", "12.00"], ["1234.50", "12.00"]),
    "no-break spaces between thousands": (["1\u00a0234,50", "12,00"], ["1234.50", "12.00"]),
    "percent behind a no-break space": (["12.5\u00a0%", "3 %"], ["12.5", "3"]),
    "powers of ten": (["1e5", "2.5E-3", "7"], ["1e5", "2.5E-3", "7"]),
    "powers of ten, decimal comma": (["1,5e5", "3E-4"], ["1.5e5", "3E-4"]),
    "a currency before the sign": (["-$1,765.50", "$3.00"], ["-1765.50", "3.00"]),
    "a dash for nothing": (["1,311.75", " - ", "3.00"], ["1311.75", "", "3.00"]),
    "a broken formula": ([*(f"{i}.5" for i in MANY), "#DIV/0!"], [*(f"{i}.5" for i in MANY), ""]),
}


@pytest.mark.parametrize("case", RIGHT)
def test_messy_number_is_parsed(case):
    cells, plain = RIGHT[case]
    assert column(file_of(cells))[1] == plain


KEPT = {
    "all in brackets": ["(1.5)", "(2.5)", "(3.5)"],
    "grades": ["1", "2-", "2", "3-", "3"],
    "more than 24 hours": [f"{i + 10}:{i:02d}" for i in MANY],
    "midnight as 24:00": [*(f"{i % 24}:{i:02d}" for i in MANY), "24:00"],
    "letters for thousands": [f"{i}K" for i in MANY],
    "Indian groups": [f"{i},10,000" for i in MANY],
    "blood pressure": [f"{100 + i}/80" for i in MANY],
    "addresses of computers": [f"10.0.0.{i}" for i in MANY],
    "months": [f"{1 + i % 12:02d}/{2000 + i}" for i in MANY],
    "digits of another alphabet": ["".join(chr(0x660 + int(d)) for d in str(i)) for i in MANY],
    "below a limit": [*map(str, MANY), "<5"],
    "telephone numbers": [f"555 123 {400 + i}" for i in MANY],
    "a second line of names": ["kg", *map(str, MANY)],
}


@pytest.mark.parametrize("case", KEPT)
def test_ambiguous_column_stays_text_with_note(case):
    own, found = column(file_of(KEPT[case]))
    assert found == KEPT[case]
    assert own.taken_for == "text"
    assert own.reason


SILENT = {
    "postal codes": ["01067", "10115", "00012", "1e5"],
    "accounts": ["DE89 3704 0044 0532 0130 00", "DE12 5001 0517 0648 4898 90"],
    "telephone numbers with a plus": ["+49 30 1234567", "+49 40 7654321"],
    "numbers of cards": ["4111 1111 1111 1111", "5500 0000 0000 0004"],
    "addresses of houses": [f"{i} Main Street" for i in MANY],
    "codes": [f"A-{i}" for i in MANY],
    "marks for missing": ["1.5", "NULL", "#N/A", "2.5", "nan"],
}


@pytest.mark.parametrize("case", SILENT)
def test_unusual_text_is_unchanged(case):
    own, found = column(file_of(SILENT[case]))
    assert found == SILENT[case]
    assert own is None


REFUSED = {
    "two orders of dates": (file_of(["13/05/2023", "05/14/2023"] * 4), "Line 3"),
    "two forms of dates": (file_of(["2023-05-13", "14.05.2023"] * 4), "Line 3"),
    "a month that is none": (file_of([*(f"2023-01-{i:02d}" for i in MANY), "2023-13-02"]), "Line 32"),
    "two ways of being negative": (file_of(["(5.5)", "4.5-", "3.5"]), "Line 2"),
    "brackets and a sign": (file_of([*(f"{i},5" for i in MANY), "(-3,5)"]), "Line 32"),
    "two headers alike": (file_of(["1"], names="x;x;class"), "Line 1"),
    "a header without a name": (file_of(["1"], names="id;;class"), "Line 1"),
    "titles of two cells": (file_of(["1", "2", "3"], head="Report;2023;\nBranch;North;\n"), "Line 1"),
    "commas that nothing quotes": (b"a,b\n1,5,x\n2,5,y\n", "Line 2"),
    "a delimiter too many": (b"a;b\n1;x;\n2;y;\n", "Line 2"),
    "a table of bars": (b"| a | b |\n|---|---|\n| 1 | x |\n| 2 | y |\n", "Line 1"),
    "units that differ": (file_of(["12 kg", "300 g"] * 4), "Line 3"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_malformed_file_is_refused_with_line_number(case):
    content, line = REFUSED[case]
    with pytest.raises(DataError, match=rf"^{line}\b"):
        column(content)


@pytest.mark.parametrize("head", ["", "\ufeff", "\ufeffsep=;\n", "Report 2023\nBranch North\n", "Report;;\nBranch;;\n"])
def test_lines_above_the_table_are_skipped(head):
    own, found = column(file_of(["1,5", "2,5", "3,5"], head=head))
    assert found == ["1.5", "2.5", "3.5"]
    assert own.special


def test_a_delimiter_at_the_end_of_every_line_makes_no_column():
    raw = read_csv(b"a;b;\n1;x;\n2;y; \n")
    assert raw.names == read_csv(b"Report;;\na;b;\n1;x;\n2;y;\n3;z;\nTotal;;\n").names == ("a", "b")
    assert "Column 3 has no name and no value" in raw.detected.header_reason
    with pytest.raises(DataError, match="Line 1: the header of column 3 is empty"):
        read_csv(b"a;b;\n1;x;\n2;y;z\n")


def test_negative_numbers_of_all_kinds_reach_model_and_checker(tmp_path):
    rows = [(-1234.5 + 100 * i) for i in range(40)]
    lines = ["booked;rest;seen;class;"]
    for v in rows:
        size = f"{abs(v):,.2f}"
        seen = f"{v:.1f}\u200b".replace("-", "\u2212")
        lines.append(f"{f'({size})' if v < 0 else size};{abs(v):.2f}{'-' if v < 0 else ''};{seen};{'ab'[v > 0]};")
    path = tmp_path / "t.csv"
    model = tmp_path / "m.json"
    out = tmp_path / "out.csv"
    path.write_text("\n".join(lines) + "\n")
    table, labels, _ = load(path, target="class")
    assert [column.values.tolist() for column in table.columns] == [rows] * 3
    result = train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 2}))
    save(result.model, model)
    assert verdict(verify(model, path)) == "recounted"
    assert predict_file(read_model(model), path, out).correct == len(rows)
    changed = model.read_text().replace('"negative": "-"', '"negative": "()"')
    model.write_text(changed)
    with pytest.raises(DataError, match="numbers in another form"):
        verify(model, path)
