"""Generated messy files are read correctly or refused with the line."""

from __future__ import annotations

import re

import pytest

from tests.trainer.data.messy_files import Messy, messy_file
from trainer.check.recount import verdict, verify
from trainer.data.formats.csv_file import read_csv
from trainer.data.parsing import reading_of
from trainer.data.parsing.cells import MARKS
from trainer.data.reader import ParsingChoices, load
from trainer.errors import DataError
from trainer.prediction.predict_file import predict_file
from trainer.training.run import TrainRequest, save, train
from trainer.tree.file import read_model

FILES = 300
TRAINED = (0, 1, 2, 5, 8, 9)


def judge(messy: Messy) -> str:
    """Return 'read', 'refused', 'read as empty' or 'kept as text', as the truth requires. Fail otherwise."""
    outcome = ""
    try:
        raw = read_csv(messy.content, encoding=messy.encoding)
        reading = reading_of(raw, ParsingChoices(encoding=messy.encoding)).for_target("class")
        reading.ask(raw.names)
        plain = reading.apply(raw, target="class")
    except DataError as error:
        outcome = str(error)
    if outcome:
        assert names_one_of(messy.bad, outcome), (messy.bad, outcome)
        return "refused"
    assert raw.line_numbers.tolist() == messy.lines
    if messy.bad:  # one cell is not a day, and read as empty; or it is not a number, so the column stays text
        emptied = [column for column in reading.columns.values() if column.date is not None and column.missing]
        own = emptied[0] if emptied else reading.columns["price"]
        assert own.taken_for == ("date" if emptied else "text")
        assert names_one_of(messy.bad, own.reason)
        return "read as empty" if emptied else "kept as text"
    pairs = zip(plain.names, plain.columns, strict=True)
    # A clean column of numbers is not changed, so its marks for missing cells stay.
    found = {name: ["" if cell in MARKS else cell for cell in cells.to_pylist()] for name, cells in pairs}
    assert found == messy.truth
    return "read"


def names_one_of(lines: list[int], text: str) -> bool:
    """Return whether a text names one of the lines."""
    return not {int(line) for line in re.findall(r"[Ll]ine (\d+)", text)}.isdisjoint(lines)


@pytest.mark.slow
@pytest.mark.parametrize("begin", range(0, FILES, 50))
def test_messy_files_are_read_right_or_refused_with_the_line(begin):
    outcomes = [judge(messy_file(seed)) for seed in range(begin, begin + 50)]
    assert outcomes.count("read") >= 12
    assert outcomes.count("refused") >= 10


@pytest.mark.parametrize("seed", TRAINED)
def test_models_of_messy_files_predict_and_are_verified(tmp_path, seed):
    messy = next(own for own in map(messy_file, range(seed * 10, seed * 10 + 10)) if not own.bad)
    path = tmp_path / "t.csv"
    out = tmp_path / "out.csv"
    path.write_bytes(messy.content)
    table, labels, _ = load(path, target="class", encoding=messy.encoding)
    request = TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 3})
    model = train(request).model
    save(model, tmp_path / "m.json")
    findings = verify(tmp_path / "m.json", path)
    assert verdict(findings) == "recounted", [f for f in findings if f.verdict == "refuted"]
    summary = predict_file(read_model(tmp_path / "m.json"), path, out)
    assert summary.rows == len(messy.lines)
    assert labels.codes.size == len(messy.lines), "rows with an empty cell train as well"
    right = int((model.tree.predict(table.matrix()) == labels.codes).sum())
    assert summary.correct == right


@pytest.mark.parametrize("trailing", [False, True], ids=["", "a delimiter at the end"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_a_title_above_a_long_header_is_found(delimiter, trailing, tmp_path):
    """The header has more than two hundred characters, and lines end with a tab."""
    names = [*(f"measurement number {j}" for j in range(20)), "class"]
    rows = [names, *([str(i * j % 7) for j in range(20)] + ["ab"[i % 2]] for i in range(30))]
    lines = [delimiter.join(row) + delimiter * trailing for row in rows]
    path = tmp_path / "report.csv"
    path.write_text("Report of the year\n\n" + "\n".join(lines) + "\n\nTotal" + delimiter * (20 + trailing) + "\n")
    table, _, _ = load(path, target="class")
    assert list(table.names) == names[:-1]
    assert table.row_numbers.tolist() == list(range(4, 34))


def test_line_with_a_missing_value_is_named_for_any_cells(tmp_path):
    """Decimal commas make a tab-separated file look like one with commas and with tabs in its names."""
    rows = [["when", "price", "class"], *([f"{d}.06.2016", f"{d} 047,{d} kg", "ab"[d % 2]] for d in range(10, 30))]
    rows[15].pop()
    path = tmp_path / "prices.csv"
    path.write_text("\n".join("\t".join(row) for row in rows) + "\n")
    with pytest.raises(DataError, match="Line 16 has 2 values; the header has 3"):
        load(path, target="class")


def test_broken_line_is_named_by_the_delimiter_of_the_header(tmp_path):
    """Two decimal commas in every row do not turn a header with semicolons into the title of a table with commas."""
    head = "customer;income;debt ratio;age;outcome"
    lines = [f"C{i};{2000 + i},50 €;{i % 40},5 %;{20 + i};{'ab'[i % 2]}" for i in range(60)]
    lines[30] = "C99;12,5 €;3"
    path = tmp_path / "bank.csv"
    path.write_text("\n".join([head, *lines, "Total;1,5 €;;;", "Printed on 3 March;;;;"]) + "\n")
    with pytest.raises(DataError, match="Line 32 has 3 values; the header has 5") as refused:
        load(path, target="outcome")
    assert "comma" not in str(refused.value)
