"""All interfaces answer, and note the same words, if a cell does not fit or names no day."""

from __future__ import annotations

import io
import json
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import trainer
from octweb.registry.lifecycle import actions
from octweb.registry.prediction.request_bodies import ARROW_STREAM
from trainer.data.parsing import ParsingChoices
from trainer.data.reader import load
from trainer.explain.rows import rows_to_explain
from trainer.prediction.mlflow_flavour import TreePredictor
from trainer.prediction.predict_file import predict_file
from trainer.table import UnknownPolicy
from trainer.training.run import TrainRequest, save, train
from trainer.tree.file import read_model

pytestmark = pytest.mark.django_db
ROW = {"size": 3.0, "other": 4.25, "day": "2024-05-06", "kind": "x", "grade": "low", "price": "5,50 €"}
NO_DAY = "2 cells name no real day, such as '2025-02-30', '9999-12-31'; they are read as empty cells."
BLANK = "Words among the numbers of 'size' are read as empty cells: '-' (1)."


def training_frame(asked: str) -> pd.DataFrame:
    """Return a table in which only the column `asked` tells the classes apart."""
    i = np.arange(60)
    shuffled = (i * 7) % 60
    size, year = (i, shuffled) if asked == "size" else (shuffled, i)
    return pd.DataFrame(
        {
            "size": size / 2,
            "other": shuffled / 2 + 0.25,
            "day": [f"{2020 + k // 20}-{1 + k % 12:02d}-{1 + k % 28:02d}" for k in year],
            "kind": [["x", "y", "z"][k % 3] for k in i],
            "grade": [["low", "mid", "high"][k % 3] for k in i],
            "price": [f"{(k * 11) % 60},50 €" for k in i],
            "y": np.where(i < 20, "no", "yes"),
        }
    )


class NotedDoors:
    """All interfaces to a model whose tree asks one column. Each returns the labels and the notes."""

    def __init__(self, asked, owner, staff, client, folder):
        self.asked = asked
        self.client = client
        self.folder = folder
        training_frame(asked).to_csv(folder / "t.csv", index=False)
        table, labels, _ = load(
            folder / "t.csv",
            target="y",
            given=ParsingChoices(kinds={"grade": "ranks:low<mid<high"}),
            unknown={"kind": UnknownPolicy.REFUSE},
        )
        request = TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 1}, name="doors")
        save(train(request).model, folder / "model.json")
        self.file = read_model(folder / "model.json")
        assert all(name.startswith(asked) for name in self.file.tree.used_names)
        model = actions.register(owner=owner, document=self.file.to_json(), dataset=None, title="Doors")
        actions.ask_for_approval(model, by=owner)
        self.model = actions.approve(model, by=staff, reason="Tested.")

    def answers(self, rows):
        self.rows = rows
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        texts = {name: str for name, cells in columns.items() if any(isinstance(cell, str) for cell in cells)}
        self.frame = pd.DataFrame(rows).astype(texts)
        self.url = f"/api/v1/models/{self.model.pk}/predict/"
        names = ("json", "columns", "csv", "arrow", "invocations", "invocations_csv", "explain", "files", "python")
        is_called = self.asked != "day" and len({row["day"] for row in rows}) == 1
        return {name: getattr(self, name)() for name in names} | ({"v2": self.v2()} if is_called else {})

    def post(self, url, body, **options):
        answer = self.client.post(url, body, **options)
        assert answer.status_code == 200, answer.content
        return answer

    def json(self):
        answer = self.post(self.url, {"rows": self.rows}, format="json").json()
        return [own["label"] for own in answer["predictions"]], answer["notes"]

    def columns(self):
        columns = {name: [row[name] for row in self.rows] for name in self.rows[0]}
        answer = self.post(self.url, {"columns": columns}, format="json").json()
        return answer["columns"]["label"], answer["notes"]

    def csv(self):
        return self.table(self.post(self.url, self.frame.to_csv(index=False), content_type="text/csv"))

    def arrow(self):
        sink = io.BytesIO()
        table = pa.Table.from_pandas(self.frame)
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        accept = {"Accept": "text/csv"}
        return self.table(self.post(self.url, sink.getvalue(), content_type=ARROW_STREAM, headers=accept))

    def table(self, answer):
        return pd.read_csv(io.BytesIO(answer.content))["label"].tolist(), self.header(answer)

    def header(self, answer):
        return json.loads(answer.headers.get("Octweb-Notes", "[]"))

    def invocations(self):
        answer = self.post("/invocations?model=doors", {"dataframe_records": self.rows}, format="json")
        return answer.json()["predictions"], self.header(answer)

    def invocations_csv(self):
        answer = self.post("/invocations?model=doors", self.frame.to_csv(index=False), content_type="text/csv")
        return answer.json()["predictions"], self.header(answer)

    def explain(self):
        answer = self.post(f"/api/v1/models/{self.model.pk}/explain/", {"rows": self.rows}, format="json").json()
        return [own["label"] for own in answer["explanations"]], answer["notes"]

    def v2(self):
        """Call the protocol, which takes no dates and no formatted prices."""
        inputs = []
        frame = self.frame.drop(columns="day").replace({"price": {ROW["price"]: "5.5"}})
        for name in frame:
            cells = frame[name].tolist()
            kind = "BYTES" if isinstance(cells[0], str) else "FP64"
            inputs.append({"name": name, "datatype": kind, "shape": [len(cells)], "data": cells})
        answer = self.post("/v2/models/doors/infer", {"inputs": inputs}, format="json").json()
        return answer["outputs"][0]["data"], answer["parameters"].get("notes", "").split("\n")

    def files(self):
        self.frame.to_csv(self.folder / "n.csv", index=False)
        self.frame.to_parquet(self.folder / "n.parquet")
        found = []
        for name in ("n.csv", "n.parquet"):
            summary = predict_file(self.file, self.folder / name, self.folder / "out.csv")
            labels = pd.read_csv(self.folder / "out.csv")["label"].tolist()
            explained = rows_to_explain(self.file, self.folder / name)
            assert set(explained.notes) <= set(summary.notes)
            found.append((labels, list(summary.notes)))
        assert found[0] == found[1]
        return found[0]

    def python(self):
        found = []
        for predict in (
            lambda: trainer.load(self.folder / "model.json").predict(self.frame),
            lambda: TreePredictor(self.file).predict(self.rows),
            lambda: TreePredictor(self.file).predict(self.frame),
        ):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                labels = list(predict())
            found.append((labels, [str(own.message) for own in caught]))
        assert found[0] == found[1] == found[2]
        return found[0]


@pytest.fixture
def noted_doors(owner, staff, client_of, tmp_path):
    """Provide a function that trains a tree that asks this column, and returns the interfaces of its model."""
    return lambda asked: NotedDoors(asked, owner, staff, client_of(owner), tmp_path)


def assert_noted(doors, rows, labels, note):
    for name, (found, notes) in doors.answers(rows).items():
        assert found == labels, name
        assert note in notes, (name, notes)


@pytest.mark.parametrize(
    ("column", "word"),
    [("other", "oops"), ("other", "1e400"), ("day", "soon"), ("grade", "medium"), ("price", "5 USD"), ("kind", "w")],
)
def test_word_in_a_column_not_asked_gets_answer_and_note(column, word, noted_doors):
    doors = noted_doors("size")
    rows = [ROW, ROW | {column: word}, ROW | {"size": 29.0}]
    note = f"Column '{column}': 1 cell does not fit the column, such as '{word}'. The tree does not ask this column, so the answers stay the same."
    assert_noted(doors, rows, ["no", "no", "yes"], note)


@pytest.mark.parametrize(
    ("column", "cell"),
    [("other", 1e9), ("other", "-"), ("other", ""), ("kind", "X"), ("grade", "NA"), ("day", "2025-02-30")],
)
def test_unusual_cell_of_a_column_not_asked_has_no_note(column, cell, noted_doors):
    doors = noted_doors("size")
    for name, (found, notes) in doors.answers([ROW, ROW | {column: cell}]).items():
        assert found == ["no", "no"], name
        assert [note for note in notes if note] == [], name


def test_impossible_date_is_noted_in_every_interface(noted_doors):
    doors = noted_doors("day")
    days = ["2020-03-04", "2025-02-30", "2022-03-04", "9999-12-31"]
    rows = [ROW | {"day": day} for day in days]
    empty = [ROW | {"day": None} for _ in days]
    labels = doors.answers(empty)["json"][0]
    assert_noted(doors, rows, ["no", labels[1], "yes", labels[3]], f"Column 'day': {NO_DAY}")


def test_missing_word_is_noted_in_every_interface(noted_doors):
    doors = noted_doors("size")
    labels = doors.answers([ROW | {"size": None}] * 2)["json"][0]
    assert_noted(doors, [ROW, ROW | {"size": "-"}], ["no", labels[1]], BLANK)


def test_tensor_with_all_columns_notes_words_not_asked(owner, staff, client_of, register):
    frame = pd.DataFrame({"a": np.arange(40) / 2, "b": 0.5})
    classifier = trainer.make_classifier("cart", depth=1).fit(frame, np.where(frame["a"] < 9, "no", "yes"))
    model = register(document=classifier._fitted.to_json(), title="Pair", name="pair")
    actions.ask_for_approval(model, by=owner)
    actions.approve(model, by=staff, reason="Tested.")
    client = client_of(owner)

    def call(kind, data):
        tensor = {"name": "all", "datatype": kind, "shape": [2, 2], "data": data}
        answer = client.post("/v2/models/pair/infer", {"inputs": [tensor]}, format="json").json()
        return answer["outputs"][0]["data"], answer["parameters"].get("notes", "")

    labels, notes = call("BYTES", ["1", "oops", "15", "2"])
    assert labels == ["no", "yes"]
    assert notes.startswith("Column 'b': 1 cell does not fit the column, such as 'oops'.")
    assert call("FP64", [1.0, 7.0, 15.0, 2.0]) == (["no", "yes"], "")
