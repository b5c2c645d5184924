"""Batch prediction equals the tree for every input and output format, and errors leave no files."""

from __future__ import annotations

import csv
import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from tests.octweb.small_models import small_table, trained
from trainer.data.formats.file_bytes import ReadLimits
from trainer.data.reader import load
from trainer.data.rows import parse_rows
from trainer.data.training_set import read_training_set
from trainer.errors import DataError
from trainer.prediction import predict_file as module
from trainer.prediction.predict_file import predict_file
from trainer.training.run import TrainRequest, train
from trainer.tree.file import from_json
from trainer.tree.nodes import Tree
from trainer.tree.numbers import count_words

MODEL = from_json(trained("cart", depth=3))
TREE: Tree = MODEL.tree


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    monkeypatch.setattr(module, "PIECE", 17)


def arrow(**changes: pa.Array) -> pa.Table:
    """Return the small table as typed columns, with some of them replaced."""
    table, labels = small_table()
    columns = {}
    for column in table.columns:
        own = column.schema
        values = column.values
        columns[own.name] = pa.array([own.categories[int(v)] for v in values] if own.categories else values)
    columns["flag"] = pa.array(table.columns[2].values.astype(bool))
    columns["kind"] = pa.array([labels.classes[k] for k in labels.codes])
    columns["something else"] = pa.array([[1]] * len(table))
    return pa.table(columns | changes)


@pytest.fixture
def write(tmp_path):
    def make(name: str, table: pa.Table):
        path = tmp_path / name
        if name.endswith(".parquet"):
            pq.write_table(table, path, row_group_size=50)
            return path
        flat = table.drop_columns(["something else"])
        pacsv.write_csv(flat, path)
        if name.endswith(".gz"):
            path.write_bytes(gzip.compress(path.read_bytes()))
        return path

    return make


def answers(path) -> list[dict[str, str]]:
    if path.suffix == ".parquet":
        return [{k: "" if v is None else str(v) for k, v in row.items()} for row in pq.read_table(path).to_pylist()]
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("source", ["in.csv", "in.csv.gz", "in.parquet"])
@pytest.mark.parametrize("result", ["out.csv", "out.parquet"])
def test_every_row_gets_what_the_tree_says(write, tmp_path, source, result):
    reports = []
    path = write(source, arrow())
    summary = predict_file(MODEL, path, tmp_path / result, report=lambda *n: reports.append(n))
    rows, (table, labels) = answers(tmp_path / result), small_table()
    X = table.matrix()
    assert [r["label"] for r in rows] == [TREE.classes[k] for k in TREE.predict(X)]
    assert [int(r["leaf"]) for r in rows] == TREE.apply(X).tolist()
    assert [float(r["probability b"]) for r in rows] == TREE.predict_proba(X)[:, 1].tolist()
    assert [int(r["row"]) for r in rows] == list(range(1, len(X) + 1))
    assert (summary.rows, summary.predicted, summary.known) == (len(X),) * 3
    assert summary.correct == int((TREE.predict(X) == labels.codes).sum())
    assert summary.labels == {c: int((TREE.predict(X) == k).sum()) for k, c in enumerate(TREE.classes)}
    assert reports[0] == ("reading", 0, 0)
    assert [n[1] for n in reports[1:]] == [*range(17, len(X), 17), len(X)]


@pytest.mark.parametrize("source", ["in.csv", "in.csv.gz", "in.parquet"])
@pytest.mark.parametrize("result", ["out.csv", "out.parquet"])
def test_the_columns_of_the_file_can_stand_before_the_answers(write, tmp_path, source, result):
    table = arrow()
    notes = ["=1+1" if i == 5 else None if i == 6 else f"note {i}" for i in range(table.num_rows)]
    table = table.append_column("label", pa.array(notes))  # a column of the answers has the same name
    path = write(source, table)
    plain = tmp_path / f"plain-{result}"
    out = tmp_path / result
    predict_file(MODEL, path, plain)
    summary = predict_file(MODEL, path, out, keep_columns=True, for_spreadsheets=True)
    rows = answers(out)
    alone = answers(plain)
    names = [
        n for n in table.column_names if n != "something else" or source.endswith("parquet")
    ]  # the column holds lists, which CSV cannot
    assert list(rows[0]) == [*names, "row", "predicted label", *list(alone[0])[2:]]
    assert summary.rows == len(rows) == table.num_rows
    for i, (row, answer) in enumerate(zip(rows, alone, strict=True)):
        assert row["predicted label"] == answer["label"]
        assert {k: v for k, v in answer.items() if k != "label"}.items() <= row.items()
        assert float(row["width"]) == table["width"][i].as_py()
        assert row["colour"] == table["colour"][i].as_py()
    assert [rows[i]["label"] for i in (4, 6)] == ["note 4", ""]
    assert rows[5]["label"] == ("'=1+1" if result == "out.csv" else "=1+1")


@pytest.mark.parametrize("source", ["in.csv", "in.parquet"])
def test_gaps_and_unknown_categories_stay_in_their_place(write, tmp_path, source):
    table = arrow()
    width = table["width"].to_pylist()
    width[40] = None
    colour = ["purple" if i == 3 else c for i, c in enumerate(table["colour"].to_pylist())]
    path = write(source, arrow(width=pa.array(width), colour=pa.array(colour)))
    summary = predict_file(MODEL, path, tmp_path / "out.csv")
    rows = answers(tmp_path / "out.csv")
    assert [r["row"] for r in rows if not r["label"]] == ["41"]
    assert set(rows[40].values()) == {"41", ""}
    assert summary.predicted == summary.rows - 1
    assert any("'colour': 1 cell has" in note for note in summary.notes)


@pytest.mark.parametrize(
    ("source", "column", "values", "place", "words"),
    [
        ("in.csv", "width", ["wide" if i in (2, 100) else "1" for i in range(120)], ("Line 4", "Line 102"), "'width'"),
        ("in.parquet", "width", ["wide" if i in (2, 100) else "1" for i in range(120)], ("Row 3", "Row 101"), "'wide'"),
        ("in.parquet", "height", [np.inf if i == 77 else 1.0 for i in range(120)], ("Row 78",), "'height'"),
        ("in.parquet", "width", [2**53 + 1 if i == 5 else 1 for i in range(120)], ("Row 6",), "rounded beyond"),
    ],
)
def test_errors_name_row_and_column_and_leave_nothing(write, tmp_path, source, column, values, place, words):
    path = write(source, arrow(**{column: pa.array(values)}))
    (tmp_path / "out.csv").write_text("what was there before")
    with pytest.raises(DataError, match=words) as caught:
        predict_file(MODEL, path, tmp_path / "out.csv")
    assert [p.split(":")[0] for p in caught.value.problems] == list(place)
    assert (tmp_path / "out.csv").read_text() == "what was there before"
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["out.csv", source])


@pytest.mark.parametrize("source", ["in.csv", "in.parquet"])
def test_missing_column_is_named(write, tmp_path, source):
    with pytest.raises(DataError, match=r"1 of the .* columns that the tree needs: width"):
        predict_file(MODEL, write(source, arrow().rename_columns({"width": "wdth"})), tmp_path / "o")


@pytest.mark.parametrize("source", ["in.csv", "in.parquet"])
@pytest.mark.parametrize("limits", [ReadLimits(rows=119), ReadLimits(columns=2), ReadLimits(bytes=100)])
def test_limits(write, tmp_path, source, limits):
    with pytest.raises(DataError, match=r"at most|more than|larger than"):
        predict_file(MODEL, write(source, arrow()), tmp_path / "out.csv", limits=limits)
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"PAR1" + b"\x00" * 40, b"PAR1abcPAR1", b"\x1f\x8bxx", b"\x00\x01\x02"]
)
def test_damaged_files_are_refused(tmp_path, content):
    (tmp_path / "in").write_bytes(content)
    with pytest.raises(DataError):
        predict_file(MODEL, tmp_path / "in", tmp_path / "out.csv")


def test_a_tree_without_questions_answers_every_row(write, tmp_path):
    leaf = from_json(trained("cart", depth=0))
    summary = predict_file(leaf, write("in.parquet", arrow().drop_columns(["kind"])), tmp_path / "out.csv")
    assert (summary.rows, summary.predicted, summary.known) == (120, 120, 0)
    assert len(answers(tmp_path / "out.csv")) == 120


def test_typed_columns_and_text_mean_the_same(write, tmp_path):
    table = arrow()
    texts = {name: pa.array([str(v).lower() for v in table[name].to_pylist()]) for name in ("width", "height", "flag")}
    for name, source in (
        ("typed", arrow()),
        ("text", arrow(**texts)),
        ("float32", arrow(width=table["width"].cast("float"))),
    ):
        predict_file(MODEL, write(f"{name}.parquet", source), tmp_path / f"{name}.csv")
    assert (tmp_path / "typed.csv").read_text() == (tmp_path / "text.csv").read_text()
    assert (tmp_path / "typed.csv").read_text() == (tmp_path / "float32.csv").read_text()


@pytest.mark.parametrize("seed", range(6))
def test_training_rows_in_a_file_are_counted(seed, tmp_path):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(90, 3)), 3)
    y = (X[:, 0] + X[:, 1] > 0).astype(int)

    def save(name, rows):
        path = tmp_path / name
        lines = [f"{a},{b},{c},{'yes' if k else 'no'}" for (a, b, c), k in zip(X[rows], y[rows], strict=True)]
        path.write_text("a,b,c,y\n" + "\n".join(lines) + "\n")
        return path

    table, labels, _ = load(save("train.csv", np.arange(60)), target="y")
    model = train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 3})).model
    again = from_json(json.loads(json.dumps(model.to_json())))
    for rows, old in ((np.arange(60), 60), (np.arange(30, 90), 30), (np.arange(60, 90), 0)):
        training = read_training_set(again, tmp_path / "train.csv")
        summary = predict_file(again, save("new.csv", rows), tmp_path / "out.csv", training=training)
        # A new row may equal a training row in the columns that the tree tests.
        used = list(again.tree.used_columns)
        equal = sum(any((X[i][used] == X[k][used]).all() and y[i] == y[k] for k in range(60)) for i in rows if i >= 60)
        assert summary.trained == old + equal
        assert any("equal rows of the training" in note for note in summary.notes) is (summary.trained > 0)


def test_prediction_without_the_training_rows_says_so(write, tmp_path):
    """A count of right answers never stands alone."""
    summary = predict_file(MODEL, write("rows.parquet", arrow()), tmp_path / "out.csv")
    assert summary.known > 0
    assert summary.trained is None
    assert any("The model file does not show which rows these are" in note for note in summary.notes)


def test_rows_of_other_file_are_no_training_rows(write):
    rows = arrow().drop_columns(["something else"])
    assert read_training_set(MODEL, write("rows.parquet", rows)) is not None
    assert read_training_set(MODEL, write("fewer.parquet", rows.slice(1))) is None
    assert read_training_set(MODEL, write("other.parquet", rows.drop_columns(["kind"]))) is None


def test_answers_on_empty_cells_are_counted(tmp_path):
    rng = np.random.default_rng(2)
    a = rng.normal(size=60)
    b = rng.normal(size=60)
    labels = np.where((a > 0) ^ (b > 0.5), "p", "q")
    lines = ["a,b,y", *(f"{'' if i % 5 == 0 else a[i]},{b[i]},{labels[i]}" for i in range(60))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    table, target, _ = load(tmp_path / "t.csv", target="y")
    model = train(TrainRequest(table=table, labels=target, method="cart", parameters={"depth": 3})).model
    (tmp_path / "n.csv").write_text("a,b\n,1\n1,\n1,1\n,\n")
    summary = predict_file(model, tmp_path / "n.csv", tmp_path / "o.csv")
    tree = model.tree
    X = np.array([[np.nan, 1], [1, np.nan], [1, 1], [np.nan, np.nan]])
    empty = int(tree.empty_cells(X).any(axis=1).sum())
    unseen = int(tree.unseen_empty(X).any(axis=1).sum())
    assert summary.predicted == 4
    assert 0 < unseen < empty
    text = " ".join(summary.notes)
    assert f"{count_words(empty, 'answer')} rest on an empty cell." in text
    assert f"{count_words(unseen, 'answer')} used a side for empty cells that training never saw: b." in text


@pytest.mark.parametrize("word", ["-", "NaT", "\\N", "unknown", "–"])
def test_missing_words_in_clean_column_are_empty_everywhere(tmp_path, word):
    days = [f"2021-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(60)]
    lines = ["a,when,y", *(f"{i % 7},{days[i]},{'pq'[(i % 7 > 3) ^ (i % 12 > 6)]}" for i in range(60))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    table, target, _ = load(tmp_path / "t.csv", target="y")
    model = train(TrainRequest(table=table, labels=target, method="cart", parameters={"depth": 4})).model
    tree = model.tree
    (tmp_path / "n.csv").write_text(f"a,when\n{word},2021-03-05\n3,{word}\n")
    summary = predict_file(model, tmp_path / "n.csv", tmp_path / "o.csv")
    assert summary.predicted == 2
    assert f"Words among the numbers of 'a' are read as empty cells: '{word}' (1)." in summary.notes
    (tmp_path / "e.csv").write_text("a,when\n,2021-03-05\n3,\n")
    predict_file(model, tmp_path / "e.csv", tmp_path / "p.csv")
    assert answers(tmp_path / "o.csv") == answers(tmp_path / "p.csv")
    schema = [column for column in tree.schema if column.name == "a"]
    assert np.isnan(parse_rows(schema, [0], [{"a": word}]).matrix).all()
