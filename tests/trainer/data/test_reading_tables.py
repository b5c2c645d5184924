"""Messy tables: how columns are parsed, and which cases become a question to the user."""

from __future__ import annotations

import datetime
import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import trainer
from trainer.check.recount.table.reading import column_sources
from trainer.data.formats.csv_file import read_csv
from trainer.data.parsing import ColumnParsing, ColumnReading, ParsingChoices, reading_of
from trainer.data.parsing.numbers import NumberForm
from trainer.data.reader import load
from trainer.errors import DataError
from trainer.prediction.mlflow_flavour import TreePredictor
from trainer.training.run import TrainRequest, train
from trainer.tree.file import write


def read(text: str, target: str | None = None, **said):
    """Return the reading of a text, and its plain columns by name."""
    structure = ParsingChoices(**said).structure
    del structure["sheet"]
    raw = read_csv(text.encode() if isinstance(text, str) else text, **structure)
    reading = reading_of(raw, ParsingChoices(**said))
    plain = reading.apply(raw, target=target)
    return reading, {name: cells.to_pylist() for name, cells in zip(plain.names, plain.columns, strict=True)}


def column(*cells: str, other: str = "", **said):
    """Return the parsing of column `x` and its plain cells.

    `other` are the cells of another column, separated by blanks.
    """
    beside = (other.split() * len(cells))[: len(cells)] if other else ["a"] * len(cells)
    reading, columns = read("x\ty\n" + "".join(f"{c}\t{b}\n" for c, b in zip(cells, beside, strict=True)), **said)
    return reading.columns.get("x"), columns.get("x")


@pytest.mark.parametrize(
    ("cells", "plain"),
    [
        (("12,5", "7", "1,25"), ["12.5", "7", "1.25"]),
        (("1.234,5", "12"), ["1234.5", "12"]),
        (("1,234.5", "12"), ["1234.5", "12"]),
        (("1 234,5", "0,5"), ["1234.5", "0.5"]),
        (("1\u202f234,5", "\u22120,5"), ["1234.5", "-0.5"]),
        (("1'234.5", "1’000"), ["1234.5", "1000"]),
        (("3 927,89", "19 404,53"), ["3927.89", "19404.53"]),
        (("1 119 404.5", "2 119 404.0"), ["1119404.5", "2119404.0"]),
        (("1.119.404,5", "2.119.404,0"), ["1119404.5", "2119404.0"]),
        (("1,234,567", "12", "1,000"), ["1234567", "12", "1000"]),
        (("0,125", "1,250"), ["0.125", "1.250"]),
        (("1234,567", "1,250"), ["1234.567", "1.250"]),
        (("12 kg", "3,5 kg", "1 KG"), ["12", "3.5", "1"]),
        (("€ 5.00", "€1,250.50", "-€ 3.10"), ["5.00", "1250.50", "-3.10"]),
        (("5 %", "12.5%"), ["5", "12.5"]),
        (("1,5e3", "2e-2"), ["1.5e3", "2e-2"]),
    ],
)
def test_numbers_in_many_forms(cells, plain):
    own, found = column(*cells)
    assert found == plain
    assert own.taken_for == "number"
    assert "2 values" in own.reason or "3 values" in own.reason


@pytest.mark.parametrize(
    ("cells", "plain"),
    [
        (("12,5", "3,25", "37.6"), ["12.5", "3.25", "37.6"]),
        (("12.5", "3.25", "37,6", "4"), ["12.5", "3.25", "37.6", "4"]),
        (("12,5 kg", "3,25 kg", "-0.125 kg"), ["12.5", "3.25", "-0.125"]),
        (("12,5", "3,25", "1234.567"), ["12.5", "3.25", "1234.567"]),
    ],
)
def test_both_decimal_signs_are_offered_and_read(cells, plain, tmp_path):
    """The independent checker reads the cells in the same way."""
    usual = "," if "," in cells[0] else "."
    switch = f"number:{usual}/{'.' if usual == ',' else ','}"
    with pytest.raises(DataError, match="Line .*x=" + switch):
        reading_of(read_csv("".join(f"{c}\tb\n" for c in ("x", *cells)).encode())).ask(["x"])
    own, found = column(*cells, kinds={"x": switch})
    assert found == plain
    assert (own.switch, own.words.split(" or ")[0]) == (
        switch,
        "numbers, decimal " + ("comma," if usual == "," else "point,"),
    )
    assert ColumnReading.from_json("x", own.to_json()).texts(cells[0]) == (plain[0],)
    source = column_sources({"reading": {"columns": {"x": own.to_json()}}}, ["x"])[0]
    assert [source.texts(cell)[0] for cell in cells] == plain


@pytest.mark.parametrize(
    "cells", [("12,5", "13,5", "37.6", "1.234"), ("1.234,5", "37.6"), ("12.5", "1,234,567"), ("12,5", "1.2.3", "4.5")]
)
def test_both_decimal_signs_are_not_offered_if_thousands_may_be_meant(cells):
    own, _ = column(*cells)
    assert own is None or not any("/" in choice for choice in own.choices)


@pytest.mark.parametrize("word", ["1.234", "-12.345", "1,234.5", "1.2.3", "1.234e5"])
def test_word_with_doubtful_sign_is_refused(word):
    form = NumberForm(decimal=",", either=True)
    assert form.plain(word) is None
    record = {"taken_for": "number", "decimal": ",", "thousands": "", "either": True}
    with pytest.raises(DataError, match="numbers in another form"):
        column_sources({"reading": {"columns": {"x": record}}}, ["x"])[0].texts(word)


@pytest.mark.parametrize(
    "cells",
    [
        ("A-12", "B-7"), ("01234", "12345"), ("30-39", "40-49"), ("V1", "V2"), ("1A", "2A"), ("5more", "2"), ("3 Series", "5 Series"),
        ("192.168.100.200", "192.168.100.201"), ("555 123 456", "555 123 457"), ("1.2.3", "1.2.4"), ("1st", "2nd"), ("12", "3"), ("1.234", "5.678"),
        ("1/2", "3/4"), ("2024-03", "2024-04"), ("10 A", "12 B"), ("1,00,000", "2,00,000"), ("(5)", "(7)"), ("10k", "12k"), ("٣", "٤"),
    ],
)  # fmt: skip
def test_other_columns_stay_as_they_are(cells):
    own, found = column(*cells)
    assert found == list(cells)
    assert own is None or own.taken_for == "text" or not own.special
    assert own is None or not own.special


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (("1,234", "2,500"), "Line 2: column 'x' has '1,234': its comma can be a decimal sign"),
        (("5 kg", "300 g", "2 kg"), "Line 3: column 'x' has '300 g', but 2 other values have 'kg'"),
        (("5 kg", "3", "2 kg"), "Line 3: column 'x' has '3', but 2 other values have 'kg'"),
        (("€ 5", "$ 6", "€ 7"), "Line 3: column 'x' has '$ 6'"),
        (("1.234,5", "2.000,5", "1,234.5"), "Line 4: column 'x' has '1,234.5', which does not fit"),
        (("01/02/2024", "03/02/2024"), "Line 2: column 'x' has '01/02/2024', which can be dd/mm/yyyy or mm/dd/yyyy"),
        (("01.02.2024", "03.02.2024"), "Line 2: column 'x' has '01.02.2024', which can be"),
        (("13/02/2024", "02/14/2024"), "column 'x' has"),
        (("2024-01-05 10:30+01:00", "2024-01-05 10:30+02:00"), "column 'x' has"),
        ((*[f"{i},5" for i in range(30)], "12,5x"), "Line 32: column 'x' has '12,5x' among 30 numbers"),
        ((*[f"{i:02d}.01.2024" for i in range(1, 30)], "31.o2.2024"), "Line 31: column 'x' has '31.o2.2024' among dates"),
    ],
)  # fmt: skip
def test_ambiguous_cell_is_a_question_with_its_line(cells, words, tmp_path):
    own, found = column(*cells)
    assert own.taken_for == "ask"
    assert words in own.question
    assert found == list(cells)
    path = tmp_path / "t.csv"
    path.write_text("x\ty\n" + "".join(f"{c}\t{'ab'[i % 2]}\n" for i, c in enumerate(cells)))
    with pytest.raises(DataError, match=r"Say --(missing|kind) 'x="):
        load(path, target="y")
    table, _, _ = load(path, target="y", given=ParsingChoices(kinds={"x": "text"}))
    assert table.columns[0].schema.kind == "categorical"


def test_advice_does_not_repeat_notes(tmp_path):
    """The advice does not repeat a form that the user stated and that does not fit.

    It names the word that prevents it.
    """
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "".join(f"{d:02d}.01.2024,{'ab'[d % 2]}\n" for d in range(1, 29)) + "31.o2.2024,a\n")
    with pytest.raises(DataError) as refused:
        load(path, target="y", given=ParsingChoices(kinds={"x": "date:dd.mm.yyyy"}))
    assert "Say --missing 'x=31.o2.2024' if this means that the cell is empty, or --kind 'x=text'" in str(refused.value)
    assert "--kind 'x=date" not in str(refused.value)
    table, _, _ = load(path, target="y", given=ParsingChoices(missing={"x": ("31.o2.2024",)}))
    assert table.columns[0].name.startswith("x ")
    path.write_text("x,y\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(28)) + "foo,a\n")
    with pytest.raises(DataError, match="--missing 'x=foo' if this means that the cell is empty"):
        load(path, target="y", given=ParsingChoices(kinds={"x": "number"}))


def test_other_columns_settle_a_sign_that_a_column_leaves_open():
    own, found = column("1,234", "2,500", other="1.5 2.25")
    assert found == ["1234", "2500"]
    assert "is taken from column 'y'" in own.reason
    own, found = column("1,234", "2,500", other="1,5 2,25")
    assert found == ["1.234", "2.500"]
    own, found = column("1.234", "2.500", other="1,5 2,25")
    assert found == ["1234", "2500"]
    assert "column 'y' has decimal commas" in own.reason
    assert column("1.234", "2.5", other="1,5 2,25")[1] == ["1.234", "2.5"]


def test_user_decides_open_questions():
    assert column("1,234", "2,500", decimal={"": ","})[1] == ["1.234", "2.500"]
    assert column("1,234", "2,500", thousands={"x": ","})[1] == ["1234", "2500"]
    assert column("1,234", "2,500", kinds={"x": "number:.,"})[1] == ["1234", "2500"]
    assert column("01/02/2024", "03/02/2024", kinds={"x": "date:dd/mm/yyyy"})[0].date.form == "dd/mm/yyyy"
    assert column("01.02.24", "03.02.68", kinds={"x": "dd.mm.yy"})[0].date.origin == "2024-01-01"
    own, _ = column("1", "12", kinds={"x": "date"})
    assert own.taken_for == "ask"
    with pytest.raises(DataError, match="not a kind"):
        ParsingChoices(kinds={"x": "numbre"})
    with pytest.raises(DataError, match="Did you mean 'x'"):
        column("1", "2", kinds={"xx": "text"})


def test_a_word_for_missing_among_numbers():
    own, found = column(*map(str, range(500)), "unknown")
    assert own.missing == ("unknown",)
    assert found[-1] == ""
    assert "Line 502" not in own.reason
    assert "line 502" in own.reason
    codes, kept = column(*(["1", "2", "3", "4"] * 20), "unknown")
    assert codes.taken_for == "text"
    assert kept[-1] == "unknown"
    assert "as codes are" in codes.reason
    slip, kept = column(*map(str, range(500)), "ohne Angabe")
    assert slip.taken_for == "text"
    assert "line 502 has 'ohne Angabe'" in slip.reason
    said, found = column(*map(str, range(500)), "ohne Angabe", missing={"x": ("ohne Angabe",)})
    assert found[-1] == ""
    assert said.special


def test_dates_become_columns_in_words():
    reading, columns = read("when,class\n31/12/2023,a\n01/02/2024,b\nunknown,b\n")
    assert columns == {
        "when year": ["2023", "2024", ""],
        "when month": ["12", "2", ""],
        "when weekday": ["Sunday", "Thursday", ""],
        "when days since 2023-01-01": ["364", "396", ""],
        "class": ["a", "b", "b"],
    }
    assert "not mm/dd/yyyy, since line 2 has '31/12/2023'" in reading.columns["when"].reason
    _, columns = read("at,class\n9:15 PM,a\n10:30 am,b\n")
    assert columns == {"at hour": ["21", "10"], "at minutes since 00:00": ["1275", "630"], "class": ["a", "b"]}
    _, columns = read("t,class\n2024-02-29T23:59:59.5Z,a\n2024-03-01 00:00Z,b\n")
    assert (columns["t hour"], columns["t days since 2024-01-01"]) == (["23", "0"], ["59", "60"])
    with pytest.raises(DataError, match="in the file already"):
        read("when,when year,class\n2023-12-31,1,a\n2024-02-01,2,b\n")


@pytest.mark.parametrize(
    ("text", "top", "bottom"),
    [
        ("sep=;\na;b\n1;x\n2;y\n", [1], []),
        ("Report\n\na,b,c\n1,2,x\n3,4,y\n", [1], []),
        ("Report, all of it\n\na,b,c\n1,2,x\n3,4,y\n", [1], []),
        ("Report;;\na;b;c\n1;2;x\n3;4;y\n", [1], []),
        ("# made by hand\na,b,c\n1,2,x\n3,4,y\n", [1], []),
        ("a,b,c\n1,2,x\n3,4,y\n\nSource: me\nand others\n", [], [5, 6]),
        ("a,b,c\n1,2,x\n3,4,y\nTotal,6,\n", [], [4]),
        ("a,b,c\n1,2,x\n3,4,y\n,,\nTotal,6,\nNote: none,,\n", [], [4, 5, 6]),
        ("a,b\n1,x\n3,y\n\nTotal:,4\n", [], [5]),
    ],
)
def test_lines_around_the_table(text, top, bottom):
    raw = read_csv(text.encode())
    assert [line for line, _ in raw.detected.top] == top
    assert [line for line, _ in raw.detected.bottom] == bottom
    assert len(raw) == 2
    first = 2 + text[: text.index("\n1")].count("\n")
    assert raw.line_numbers.tolist() == [first, first + 1]


@pytest.mark.parametrize(
    "text",
    [
        "a,b,c\n1,2,x\n3,4,y\n5,6\n",  # the file was cut off
        "a,b,c\n1,2,x\n3,4,y\nMü\n",
        "name,city\nAnn,x,y\nBob,z,w\nCid,u,v\n",  # the header is too short
        "a,b\n1,2\n3,4,5\n6,7\n",
        "a,b,c\n1,2,x\n\n5\n",
    ],
)
def test_row_of_wrong_length_is_refused_with_its_line(text):
    with pytest.raises(DataError, match="Line "):
        read_csv(text.encode())


def test_footers_that_are_values_elsewhere_stay():
    raw = read_csv(b"a,b,c\ntotal,1,x\npart,2,y\ntotal,3,\n")
    assert len(raw) == 3


def test_user_names_lines_that_are_no_rows():
    raw = read_csv(b"x,y,z\n1,2,3\na,b,c\n1,2,p\n3,4,q\nx,9,9\n", skip_top=2, skip_bottom=1)
    assert raw.names == ("a", "b", "c")
    assert raw.line_numbers.tolist() == [4, 5]
    assert read_csv(b"a,b,c\n1,2,p\nTotal,4,\n", skip_bottom=0).line_numbers.tolist() == [2, 3]


@pytest.mark.parametrize(("top", "bottom"), [(116, 0), (2, 0), (1, 1), (0, 2), (0, 116), (116, 116)])
@pytest.mark.parametrize("header", [True, False])
def test_leaving_every_line_out_is_refused(top, bottom, header):
    with pytest.raises(DataError, match=r"No line is left: the file has 2 lines, and .* are to be left out"):
        read_csv(b"a,b\n1,2\n\n", skip_top=top, skip_bottom=bottom, header=header)


def test_target_stays_unchanged_and_parsing_survives_json(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("w;y\n" + "".join(f"{i},5 kg;{i % 2},5 kg\n" for i in range(20)))
    table, labels, report = load(path, target="y")
    assert labels.classes == ("0,5 kg", "1,5 kg")
    assert table.columns[0].schema.unit == "kg"
    assert table.columns[0].values.tolist() == [i + 0.5 for i in range(20)]
    assert list(table.reading["columns"]) == ["w"]
    assert any("Column 'w' is read as numbers, decimal comma, the unit kg" in note for note in report.notes)
    model = ColumnParsing.from_json(json.loads(json.dumps(table.reading)))
    again, _, _ = load(path, target="y", reading=model)
    assert again.columns[0].values.tolist() == table.columns[0].values.tolist()
    path.write_text("w;y\n1.5 kg;1,5 kg\n2,5 kg;0,5 kg\n")
    with pytest.raises(
        DataError, match="Line 2: column 'w' is read as numbers, decimal comma, the unit kg, but has '1\\.5 kg'"
    ):
        load(path, target="y", reading=model)


@pytest.mark.parametrize("cells", [("1.234", "2.500"), ("1.234", "850", "12.000"), ("-1.250", "3.400")])
def test_possible_thousands_points_are_decimals_with_a_note(cells):
    own, found = column(*cells)
    assert found == list(cells)
    assert "could also separate thousands" in own.reason
    reading, _ = read("x\ty\n" + "".join(f"{c}\ta\n" for c in cells))
    assert not reading.special
    assert any("--kind 'x=number:,.'" in note for note in reading.notes)
    assert column(*cells, kinds={"x": "number:,."})[1] == [c.replace(".", "") for c in cells]
    for said in ({"kinds": {"x": "number:."}}, {"decimal": {"x": "."}}, {"thousands": {"x": ""}}):
        settled, plain = column(*cells, **said)
        assert plain == list(cells)
        assert settled is None or "could also" not in settled.reason


@pytest.mark.parametrize(
    ("cells", "other"),
    [(("1.234", "2.5"), ""), (("0.125", "2.500"), ""), (("1.234", "1500"), ""), (("1.234", "2.500"), "0.5 2"), (("12", "850"), "")],
)  # fmt: skip
def test_unambiguous_decimal_points_have_no_note(cells, other):
    assert column(*cells, other=other) == (None, list(cells))


@pytest.fixture(scope="module", params=["%Y-%m-%d", "%d/%m/%Y"])
def dated(request, tmp_path_factory):
    """Provide a model of a file with dates and prices, the rows of the file, and the days and prices themselves."""
    folder = tmp_path_factory.mktemp("dated")
    days = [datetime.date(2021, 1, 1) + datetime.timedelta(days=i * 37 % 700) for i in range(60)]
    prices = [1000.5 + i * 1009 % 8000 for i in range(60)]
    frame = pd.DataFrame(
        {
            "when": [day.strftime(request.param) for day in days],
            "price": [f"{int(price) // 1000}.{int(price) % 1000:03d},50 €" for price in prices],
            "class": [
                "late" if day.year > 2021 else "dear" if price > 5000 else "cheap"
                for day, price in zip(days, prices, strict=True)
            ],
        }
    )
    frame.to_csv(folder / "t.csv", index=False)
    table, labels, _ = load(folder / "t.csv", target="class")
    model = train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 3})).model
    write(model, folder / "m.json")
    return trainer.load(folder / "m.json"), frame, days, prices, table


def test_loaded_model_reads_data_frames_like_its_file(dated):
    classifier, frame, days, prices, table = dated
    moments = [datetime.datetime.combine(day, datetime.time()) for day in days]
    derived = {column.name: column.values for column in table.columns if not column.schema.categories}
    for rows in (
        frame,
        pl.from_pandas(frame),
        pd.DataFrame({"price": prices, "when": days}),
        pd.DataFrame({"when": moments, "price": prices}),
        pl.DataFrame({"when": days, "price": prices}),
        pa.table({"when": moments, "price": prices}),
        pd.DataFrame(derived),
    ):
        assert classifier.predict(rows).tolist() == frame["class"].tolist()
    for rows in (
        frame[["when", "price"]],
        pd.DataFrame({"price": prices, "when": days}),
        pd.DataFrame({"when": moments, "price": prices}),
    ):
        assert TreePredictor(classifier._fitted).predict(rows).tolist() == frame["class"].tolist()


def test_loaded_model_refuses_cells_impossible_in_its_file(dated):
    classifier, frame, *_ = dated
    for rows, words in ((frame.assign(when="soon"), "is read as dates"), (frame[["price"]], "'?when year'?")):
        with pytest.raises(ValueError, match=words):
            classifier.predict(rows)


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d/%m/%Y", "%d.%m.%Y", "%d-%b-%Y"])
def test_iso_dates_are_read_in_every_form(form):
    own, _ = column(*[datetime.date(2021, 1 + i % 12, 13 + i).strftime(form) for i in range(15)])
    expected = own.texts(datetime.date(2021, 3, 14).strftime(form))
    assert own.texts("2021-03-14") == own.texts("2021-03-14 00:00:00.000000000") == expected
    assert own.texts("2021-03-14 10:00") is None
