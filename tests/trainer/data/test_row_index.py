"""Indexes and row names of pandas and R are left out with a note, wherever a table is read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from trainer.check.recount.table.tables import candidate_readings
from trainer.data.formats.read_file import read_table
from trainer.data.inspect_table import inspect
from trainer.data.reader import load, load_for_model
from trainer.errors import DataError

N = 40
RNG = np.random.default_rng(5)
FRAME = pd.DataFrame(
    {"size": RNG.normal(size=N).round(2), "kind": RNG.choice(["a", "b"], N), "y": RNG.choice(["p", "q"], N)}
)
SHUFFLED = FRAME.set_axis(RNG.integers(0, 15, N))  # the index has duplicates and no order


def r_table(names, quote='"', sep=",") -> str:
    header = sep.join(f"{quote}{name}{quote}" for name in FRAME.columns)
    cells = zip(names, FRAME.to_numpy(), strict=True)
    rows = (
        sep.join([f"{quote}{name}{quote}", f"{a}", f"{quote}{b}{quote}", f"{quote}{c}{quote}"])
        for name, (a, b, c) in cells
    )
    return "\n".join([header, *rows]) + "\n"


TEXTS = {
    "pandas": (FRAME.to_csv(), "Unnamed: 0"),
    "pandas with repeats": (SHUFFLED.to_csv(), "Unnamed: 0"),
    "pandas read and written again": (SHUFFLED.to_csv().replace(",", "Unnamed: 0,", 1), "Unnamed: 0"),
    "R": (r_table([f"car {i * 7 % 41}" for i in range(N)]), "row names"),
    "R without quotes": (r_table(range(1, N + 1), quote=""), "row names"),
    "R by default": (r_table([f"car {i * 7 % 41}" for i in range(N)], sep=" "), "row names"),
    "R by default, counted": (r_table(range(1, N + 1), sep=" ").replace("\n", "\r\n"), "row names"),
}


@pytest.mark.parametrize("form", TEXTS)
def test_index_of_a_text_is_left_out_with_a_note(tmp_path, form):
    text, name = TEXTS[form]
    path = tmp_path / "t.csv"
    path.write_text(text)
    raw = read_table(path)
    assert raw.names == (name, "size", "kind", "y")
    assert raw.detected.index == name
    table, labels, report = load(path, target="y")
    assert [column.name for column in table.columns] == ["size", "kind"]
    assert any(name in note and "left out" in note for note in report.notes)
    found = next(finding for finding in inspect(path, target="y") if finding.kind == "identifier")
    assert (found.column, found.mend["role"]) == (name, "feature")
    plain = tmp_path / "plain.csv"
    plain.write_text(FRAME.to_csv(index=False))
    for rows in (path, plain):
        read = load_for_model(rows, table.schema, target="y", classes=labels.classes)
        assert read.table.columns[0].values.tolist() == FRAME["size"].tolist()


@pytest.mark.parametrize("form", ["pandas", "R", "R by default"])
def test_checker_reads_the_same_columns(tmp_path, form):
    text, name = TEXTS[form]
    path = tmp_path / "t.csv"
    path.write_text(text)
    pieces, _ = next(candidate_readings(path, ["kind", "y", name]))
    found = [column for piece in pieces for column in piece]
    assert found[0] == FRAME["kind"].tolist()
    assert found[2][:2] == (["0", "1"] if form == "pandas" else ["car 0", "car 7"])


@pytest.mark.parametrize("frame", [SHUFFLED, FRAME.set_index(pd.Index(RNG.integers(0, 9, N), name="customer"))])
def test_index_of_parquet_is_left_out_with_a_note(tmp_path, frame):
    frame.to_parquet(tmp_path / "t.parquet")
    table, _, report = load(tmp_path / "t.parquet", target="y")
    assert [column.name for column in table.columns] == ["size", "kind"]
    name = frame.index.name or "__index_level_0__"
    assert any(name in note and "left out" in note for note in report.notes)


def test_index_column_can_be_used_on_request(tmp_path):
    (tmp_path / "t.csv").write_text(SHUFFLED.to_csv())
    table, _, _ = load(tmp_path / "t.csv", target="y", kinds={"Unnamed: 0": "numeric"})
    assert "Unnamed: 0" in [column.name for column in table.columns]


def test_short_header_over_names_without_quotes_is_explained(tmp_path):
    (tmp_path / "t.csv").write_text(r_table([f"car {i}" for i in range(N)], quote=""))
    with pytest.raises(DataError, match=r"row name, give that column a name"):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize(
    "text",
    [
        "price,y\n1,5,p\n2,5,q\n4,5,p\n3,5,q\n2,5,p\n",  # decimal commas without quotes
        "name,city\nAnn,x,y\nBob,z,w\nCid,u,v\nDan,u,v\nEva,u,v\n",
        ",,y\n1,2,p\n3,4,q\n",
        '"a","b"\n"x",1,2\n"x",1,2\n"x",1,2\n"z",1,2\n"w",1,2\n',
    ],
)
def test_other_short_headers_are_refused(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match=r"Line [12]"):
        read_table(tmp_path / "t.csv")
