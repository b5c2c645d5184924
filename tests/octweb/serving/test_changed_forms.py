"""All interfaces report values in a changed form, with the number of answers that another reading changes."""

from __future__ import annotations

import io
import json
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from octweb.registry.lifecycle import actions
from octweb.registry.prediction.request_bodies import ARROW_STREAM
from trainer import ExactTreeClassifier
from trainer.data.column_statistics import describe_columns
from trainer.explain.words import words_of
from trainer.prediction.mlflow_flavour import TreePredictor
from trainer.prediction.predict_file import predict_file
from trainer.table import ColumnKind, ColumnSchema
from trainer.tree.export.code import to_python
from trainer.tree.file import ModelFile
from trainer.tree.nodes import DraftBranch, DraftLeaf, grow
from trainer.tree.splits import Subset, Threshold

pytestmark = pytest.mark.django_db
SCHEMA = (
    ColumnSchema(name="weight", kind=ColumnKind.NUMERIC),
    ColumnSchema(name="sex", kind=ColumnKind.CATEGORICAL, categories=("Female", "Male")),
)
ROWS = 40
WORDS = {"F": "Female", "M": "Male"}


@pytest.fixture(scope="module")
def file():
    draft = DraftBranch(
        split=Threshold(feature=0, threshold=80.0),
        left=DraftBranch(split=Subset(feature=1, codes=(0,)), left=DraftLeaf(label=1), right=DraftLeaf(label=0)),
        right=DraftLeaf(label=1),
    )
    rows = np.column_stack([np.linspace(50, 120, 40), np.arange(40) % 2])
    labels = (np.arange(40) % 2).astype(np.int32)
    tree = describe_columns(grow(draft, rows, labels, schema=SCHEMA, classes=("no", "yes")), rows)
    return ModelFile(tree=tree, target="class", name="Weights")


@pytest.fixture
def served(register, owner, staff, file):
    model = register(document=file.to_json(), title="Weights", name="weights")
    actions.ask_for_approval(model, by=owner)
    return actions.approve(model, by=staff, reason="Tested.")


def strange_rows(rows=ROWS):
    rng = np.random.default_rng(4)
    return [
        {"weight": float(w), "sex": str(s)}
        for w, s in zip(
            rng.uniform(55, 115, rows).round(1) * 1000, rng.choice(["F", "M", " female"], rows), strict=True
        )
    ]


@pytest.fixture
def expected(file):
    """Provide the sentences, with the changed answers counted one row at a time."""

    def label(weight, sex):
        row = np.array([[weight, {"Female": 0.0, "Male": 1.0}.get(sex, -1.0)]])
        return int(file.tree.predict(row)[0])

    rows = [
        (
            strange_row["weight"],
            strange_row["sex"].strip().capitalize() if "fem" in strange_row["sex"] else strange_row["sex"],
        )
        for strange_row in strange_rows()
    ]
    before = [label(*row) for row in rows]
    grams = sum(label(w / 1000, s) != b for (w, s), b in zip(rows, before, strict=True))
    words = sum(label(w, WORDS.get(s, s)) != b for (w, s), b in zip(rows, before, strict=True))
    unknown = sum(s in WORDS for _, s in rows)
    return (
        f"Column 'weight': 40 of 40 numbers lie outside of the training range, such as {rows[0][0]:.10g}; divided by 1000 they would "
        f"fit. Then {grams} of 40 answers would be others.",
        f"Column 'sex': {unknown} of 40 cells have a value that training did not have; perhaps ",
        f"Then {words} of 40 answers would be others.",
        f"Column 'sex': {40 - unknown} cells have another spelling of a category and count as it.",
    )


def call_json(client, model, rows):
    return client.post(f"/api/v1/models/{model.pk}/predict/", {"rows": rows}, format="json").json()["notes"]


def call_columns(client, model, rows):
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return client.post(f"/api/v1/models/{model.pk}/predict/", {"columns": columns}, format="json").json()["notes"]


def call_csv(client, model, rows):
    text = pd.DataFrame(rows).to_csv(index=False)
    answer = client.post(f"/api/v1/models/{model.pk}/predict/", text, content_type="text/csv")
    return json.loads(answer["Octweb-Notes"])


def call_arrow(client, model, rows):
    table = pa.Table.from_pylist(rows)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    answer = client.post(f"/api/v1/models/{model.pk}/predict/", sink.getvalue(), content_type=ARROW_STREAM)
    return json.loads(answer["Octweb-Notes"])


def call_v2(client, model, rows):
    inputs = [
        {"name": "weight", "datatype": "FP64", "shape": [len(rows)], "data": [row["weight"] for row in rows]},
        {"name": "sex", "datatype": "BYTES", "shape": [len(rows)], "data": [row["sex"] for row in rows]},
    ]
    answer = client.post("/v2/models/weights/infer", {"inputs": inputs}, format="json").json()
    return answer["parameters"].get("notes", "").split("\n")


def call_invocations(client, model, rows):
    answer = client.post("/invocations?model=weights", {"dataframe_records": rows}, format="json")
    return json.loads(answer["Octweb-Notes"])


DOORS = (call_json, call_columns, call_csv, call_arrow, call_v2, call_invocations)


@pytest.mark.parametrize("call", DOORS, ids=lambda own: own.__name__.removeprefix("call_"))
def test_every_interface_reports_changed_forms(client_of, owner, served, expected, call):
    said = call(client_of(owner), served, strange_rows())
    weight, begin, end, respelled = expected
    assert said[0] == weight
    assert said[1].startswith(begin)
    assert said[1].endswith(end)
    assert said[2] == respelled


@pytest.mark.parametrize("call", DOORS, ids=lambda own: own.__name__.removeprefix("call_"))
def test_few_rows_are_not_judged(client_of, owner, served, call):
    said = call(client_of(owner), served, strange_rows(19))
    assert said
    assert not [note for note in said if "would" in note or "another spelling" in note]


def test_answer_lists_the_proposals(client_of, owner, served):
    url = f"/api/v1/models/{served.pk}/predict/"
    answer = client_of(owner).post(url, {"rows": strange_rows()}, format="json").json()
    assert [proposal["column"] for proposal in answer["proposals"]] == ["weight", "sex"]
    assert answer["proposals"][0]["factor"] == 0.001
    assert answer["proposals"][1]["words"] == WORDS
    usual = [{"weight": 60.0, "sex": "Male"}] * 30
    assert "proposals" not in client_of(owner).post(url, {"rows": usual}, format="json").json()


def test_file_and_python_say_the_same(file, expected, tmp_path):
    path = tmp_path / "rows.csv"
    pd.DataFrame(strange_rows()).to_csv(path, index=False)
    notes = predict_file(file, path, tmp_path / "out.csv").notes
    assert expected[0] in notes
    assert expected[3] in notes
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        TreePredictor(file).predict(strange_rows())
    said = [str(own.message) for own in seen]
    assert said[0] == expected[0]
    assert said[1].endswith(expected[2])
    assert len(said) == 2


def test_header_holds_whole_notes(client_of, owner, served):
    rows = [{"weight": 60.0, "sex": f"word {i}"} for i in range(60)]
    said = call_invocations(client_of(owner), served, rows)
    assert said[-1] == f"and {60 - (len(said) - 1)} more."


@pytest.fixture
def flagged(register, owner, staff):
    """Provide a served model that splits on a column of 0 and 1, and its file."""
    rows = np.column_stack([np.arange(40) % 2, np.linspace(0, 9, 40)]).astype(float)
    schema = (ColumnSchema(name="flag", kind=ColumnKind.BINARY), ColumnSchema(name="size", kind=ColumnKind.NUMERIC))
    draft = DraftBranch(split=Threshold(feature=0, threshold=0.5), left=DraftLeaf(label=0), right=DraftLeaf(label=1))
    labels = (np.arange(40) % 2).astype(np.int32)
    tree = describe_columns(grow(draft, rows, labels, schema=schema, classes=("no", "yes")), rows)
    file = ModelFile(tree=tree, target="class", name="Flags")
    model = register(document=file.to_json(), title="Flags", name="flags")
    actions.ask_for_approval(model, by=owner)
    return actions.approve(model, by=staff, reason="Tested."), file


def test_other_number_in_a_binary_column_is_one_answer(client_of, owner, flagged, tmp_path):
    """Each interface compares a 2 as a number and marks it, with the answer of the tree itself."""
    model, file = flagged
    client = client_of(owner)
    rows = [{"flag": 2, "size": 1.0}, {"flag": -1, "size": 1.0}, {"flag": 1, "size": 1.0}, {"flag": "2", "size": 1.0}]
    labels = ["yes", "no", "yes", "yes"]
    url = f"/api/v1/models/{model.pk}/predict/"
    answer = client.post(url, {"rows": rows}, format="json").json()["predictions"]
    assert [own["label"] for own in answer] == labels
    assert [own.get("out_of_range") for own in answer] == [["flag"], ["flag"], None, ["flag"]]
    text = pd.DataFrame(rows).to_csv(index=False)
    answer = client.post(url, text, content_type="text/csv")
    assert pd.read_csv(io.BytesIO(answer.content))["label"].tolist() == labels
    assert "Column 'flag': 3 values lie outside the training range, 0 to 1." in json.loads(answer["Octweb-Notes"])
    inputs = [
        {"name": "flag", "datatype": "FP64", "shape": [4], "data": [2, -1, 1, 2]},
        {"name": "size", "datatype": "FP64", "shape": [4], "data": [1, 1, 1, 1]},
    ]
    answer = client.post("/v2/models/flags/infer", {"inputs": inputs}, format="json").json()
    assert answer["outputs"][0]["data"] == labels
    assert "Column 'flag': 3 values lie outside" in answer["parameters"]["notes"]
    answer = client.post("/invocations?model=flags", {"dataframe_records": rows}, format="json")
    assert answer.json()["predictions"] == labels
    assert "3 values lie outside" in answer["Octweb-Notes"]
    answer = client.post(f"/api/v1/models/{model.pk}/explain/", {"rows": rows[:1]}, format="json")
    assert answer.json()["explanations"][0]["label"] == "yes"
    (tmp_path / "rows.csv").write_text(text, encoding="utf-8")
    summary = predict_file(file, tmp_path / "rows.csv", tmp_path / "out.csv")
    assert summary.out_of_range == {"flag": 3}
    assert pd.read_csv(tmp_path / "out.csv")["label"].tolist() == labels
    with pytest.warns(
        UserWarning, match="Column 'flag': 3 of 4 values are neither 0 nor 1, such as 2; they are compared"
    ):
        assert TreePredictor(file).predict(rows).tolist() == labels
    frame = pd.DataFrame({"flag": [0, 1] * 20, "size": np.linspace(0, 9, 40)})
    classifier = ExactTreeClassifier(depth=1).fit(frame, ["no", "yes"] * 20)
    with pytest.warns(UserWarning, match="neither 0 nor 1"):
        said = classifier.predict(pd.DataFrame(rows).assign(flag=[2, -1, 1, 2]))
    assert said.tolist() == labels
    names: dict = {}
    exec(to_python(file.tree), names)
    assert [names["predict"]({**row, "flag": float(row["flag"])}) for row in rows] == labels


@pytest.fixture
def scored(register, owner, staff):
    """Provide a served model that splits on a score from -9 to 94, where -99 is a code, and its file."""
    rows = np.append(np.linspace(-9, 94, 40), -99.0)[:, None]
    schema = (ColumnSchema(name="score", kind=ColumnKind.NUMERIC, special=(-99.0, -98.0)),)
    draft = DraftBranch(split=Threshold(feature=0, threshold=50.0), left=DraftLeaf(label=0), right=DraftLeaf(label=1))
    labels = (rows[:, 0] > 50).astype(np.int32)
    tree = describe_columns(grow(draft, rows, labels, schema=schema, classes=("no", "yes")), rows)
    file = ModelFile(tree=tree, target="class", name="Scores")
    model = register(document=file.to_json(), title="Scores", name="scores")
    actions.ask_for_approval(model, by=owner)
    return actions.approve(model, by=staff, reason="Tested."), file


OUTSIDE = "Column 'score': 3 values lie outside the training range, −10 to 94"


def test_out_of_range_number_is_noted_in_every_interface(client, client_of, owner, scored, tmp_path):
    """This includes the explanation and page of a row. Codes, even new ones, are never out of range."""
    model, file = scored
    api = client_of(owner)
    client.force_login(owner)
    values = [140.0, -55.0, 1e9, 20.0, -99.0, -98.0, -9.0, 94.0]
    rows = [{"score": value} for value in values]
    marked = [["score"]] * 3 + [None] * 5
    answer = api.post(f"/api/v1/models/{model.pk}/predict/", {"rows": rows}, format="json").json()["predictions"]
    assert [own.get("out_of_range") for own in answer] == marked
    text = pd.DataFrame(rows).to_csv(index=False)
    assert f"{OUTSIDE}." in json.loads(
        api.post(f"/api/v1/models/{model.pk}/predict/", text, content_type="text/csv")["Octweb-Notes"]
    )
    inputs = [{"name": "score", "datatype": "FP64", "shape": [len(values)], "data": values}]
    assert (
        OUTSIDE in api.post("/v2/models/scores/infer", {"inputs": inputs}, format="json").json()["parameters"]["notes"]
    )
    answer = api.post("/invocations?model=scores", {"dataframe_records": rows}, format="json")
    assert f"{OUTSIDE}." in json.loads(answer["Octweb-Notes"])
    answer = api.post(f"/api/v1/models/{model.pk}/explain/", {"rows": rows}, format="json").json()
    assert [own.get("out_of_range") for own in answer["explanations"]] == marked
    assert "  outside the training range: score" in words_of(answer["explanations"][0])
    one = "Column 'score': 1 value lies outside the training range, −10 to 94."
    page = client.post(f"/models/{model.pk}/decision/", {"typed": "1", "try-0": "140", "format": "json"})
    assert one in page.json()["notes"]
    (tmp_path / "rows.csv").write_text(text, encoding="utf-8")
    assert predict_file(file, tmp_path / "rows.csv", tmp_path / "out.csv").out_of_range == {"score": 3}
    with pytest.warns(UserWarning, match=f"{OUTSIDE}; the farthest is 1,000,000,000."):
        TreePredictor(file).predict(rows)


@pytest.mark.parametrize(("value", "warned"), [(119.0, False), (121.0, True), (-35.0, False), (-37.0, True)])
def test_estimator_warns_of_numbers_far_outside_only(value, warned):
    """The range, −10 to 94, is 104 wide, and more than a quarter of that beyond it is far.

    The tree reports all cells outside.
    """
    X = np.linspace(-9, 94, 40)[:, None]
    classifier = ExactTreeClassifier(depth=1).fit(X, X[:, 0] > 50)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        classifier.predict([[value], [20.0]])
    assert ["the farthest is" in str(own.message) for own in caught] == [True] * warned
    assert classifier.tree_.outside(np.array([[value], [20.0]])).tolist() == [[True], [False]]
