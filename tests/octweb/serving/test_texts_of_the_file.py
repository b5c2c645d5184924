"""Texts of a messy file get the same answers from all interfaces, or an error that says what to send."""

from __future__ import annotations

import orjson
import pytest

from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions
from trainer.data.reader import load
from trainer.prediction.predict_file import predict_file
from trainer.table import MissingPolicy
from trainer.training.run import TrainRequest, train

ROWS = 40


def cells(i: int) -> dict[str, str]:
    """Return row i of the file. More than 2,000 euros of debt are bad, unless paid in March."""
    debt = 100.5 * i - 2500
    size = f"{abs(debt):,.2f}".translate(str.maketrans(",.", ".,"))
    label = "bad" if debt < 0 and i % 12 != 2 and i % 3 else "good"
    return {
        "debt": f"({size}) €" if debt < 0 else f"{size} €", "when": f"{28 - i % 20}.{1 + i % 12:02d}.2023",
        "kind": ["", "old", "new"][i % 3], "class": label,
    }  # fmt: skip


def plain(i: int) -> dict[str, object]:
    """Return the same row as numbers, with the names of the tree's columns."""
    import datetime

    day = datetime.date(2023, 1 + i % 12, 28 - i % 20)
    return {
        "debt": round(100.5 * i - 2500, 2), "when year": day.year, "when month": day.month, "when weekday": f"{day:%A}",
        "when days since 2023-01-01": (day - datetime.date(2023, 1, 1)).days, "kind": cells(i)["kind"],
    }  # fmt: skip


@pytest.fixture
def messy_file(tmp_path):
    path = tmp_path / "t.csv"
    rows = [";".join(cells(i).values()) for i in range(ROWS)]
    path.write_text(";".join(cells(0)) + "\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture
def messy(messy_file, owner, staff, db):
    """Provide a model that refuses empty numbers and dates."""
    table, labels, _ = load(
        messy_file, target="class", missing={"kind": "category"}, default_missing=MissingPolicy.DROP
    )
    return approved(table, labels, owner, staff)


@pytest.fixture
def learned(messy_file, owner, staff, db):
    """Provide the same model with splits that send empty cells to a side."""
    table, labels, _ = load(messy_file, target="class", missing={"kind": "category"})
    return approved(table, labels, owner, staff)


def approved(table, labels, owner, staff):
    assert table.reading is not None
    request = TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 6}, name="messy")
    document = train(request).model.to_json()
    model = actions.register(owner=owner, document=document, dataset=None, title="Messy")
    actions.ask_for_approval(model, by=owner)
    return actions.approve(model, by=staff)


def v1(client, model, rows):
    body = orjson.dumps({"rows": rows})
    return client.post(f"/api/v1/models/{model.pk}/predict/", body, content_type="application/json")


def v2(client, model, columns, kinds):
    inputs = [
        {"name": name, "datatype": kinds.get(name, "FP64"), "shape": [len(data)], "data": data}
        for name, data in columns.items()
    ]
    body = orjson.dumps({"inputs": inputs})
    return client.post("/v2/models/messy/infer", body, content_type="application/json")


TEXTS = {"kind": "BYTES", "when weekday": "BYTES"}


def test_every_interface_gives_the_same_answer(messy, client_of, owner):
    client = client_of(owner)
    texts = [{name: cell for name, cell in cells(i).items() if name != "class"} for i in range(ROWS)]
    numbers = [plain(i) for i in range(ROWS)]
    found = v1(client, messy, texts)
    assert found.status_code == 200, found.content
    leaves = [p["leaf"] for p in found.json()["predictions"]]
    labels = [p["label"] for p in found.json()["predictions"]]
    assert labels == [cells(i)["class"] for i in range(ROWS)]
    assert [p["leaf"] for p in v1(client, messy, numbers).json()["predictions"]] == leaves
    csv = ";".join(cells(0)) + "\n" + "\n".join(";".join(cells(i).values()) for i in range(ROWS)) + "\n"
    answer = client.post(f"/api/v1/models/{messy.pk}/predict/", csv, content_type="text/csv")
    assert answer.status_code == 200, answer.content
    assert [int(line.split(",")[-1]) for line in answer.content.decode().splitlines()[1:]] == leaves
    columns = {name: [row[name] for row in numbers] for name in numbers[0]}
    answer = v2(client, messy, columns, TEXTS)
    assert answer.status_code == 200, answer.content
    assert next(o["data"] for o in answer.json()["outputs"] if o["name"] == "leaf") == leaves


def test_an_empty_text_is_missing_and_never_a_category(messy, client_of, owner):
    client = client_of(owner)
    row = plain(0)
    answers = [
        v1(client, messy, [row | {"kind": kind}]).json()["predictions"] for kind in ("", None, "(missing)", " NA ")
    ]
    assert all(found == answers[0] for found in answers)
    columns = {name: [value] * 3 for name, value in row.items()} | {"kind": ["", "(missing)", "NA"]}
    answer = v2(client, messy, columns, TEXTS)
    leaves = next(o["data"] for o in answer.json()["outputs"] if o["name"] == "leaf")
    assert leaves == [answers[0][0]["leaf"]] * 3
    refused = v1(client, messy, [row | {"debt": ""}])
    assert (refused.status_code, "debt" in refused.json()["detail"]) == (422, True)
    columns = {name: [value] for name, value in row.items()} | {"debt": [""]}
    refused = v2(client, messy, columns, TEXTS | {"debt": "BYTES"})
    assert (refused.status_code, "debt" in refused.json()["error"]) == (400, True)


def test_empty_cell_is_answered_and_marked_in_every_interface(learned, client_of, owner):
    client = client_of(owner)
    row = plain(1)
    found = v1(
        client, learned, [row | {"debt": cell} for cell in ("", None)] + [{k: v for k, v in row.items() if k != "debt"}]
    )
    answers = found.json()["predictions"]
    assert all(a == answers[0] for a in answers)
    assert answers[0]["missing"] == answers[0]["unseen_missing"] == ["debt"]  # no training row had an empty one
    columns = {name: [value] for name, value in row.items()}
    for cell, kind in (("", "BYTES"), (None, "FP64")):
        answer = v2(client, learned, columns | {"debt": [cell]}, TEXTS | {"debt": kind})
        assert next(o["data"] for o in answer.json()["outputs"] if o["name"] == "leaf") == [answers[0]["leaf"]]
        assert "training never saw: debt" in answer.json()["parameters"]["notes"]
    by_column = {"columns": {name: [value] for name, value in row.items()} | {"debt": [None]}}
    body = client.post(
        f"/api/v1/models/{learned.pk}/predict/", orjson.dumps(by_column), content_type="application/json"
    ).json()
    assert body["columns"]["missing"] == body["columns"]["unseen_missing"] == [["debt"]]
    content = {"dataframe_records": [row | {"debt": None}], "params": {"output": "records"}}
    answer = client.post(
        f"/invocations?model={learned.family.name}", orjson.dumps(content), content_type="application/json"
    ).json()
    assert answer["predictions"][0]["missing"] == ["debt"]
    before = v1(client, learned, [row]).json()["predictions"][0]
    assert not {"missing", "unseen_missing"} & before.keys()


@pytest.mark.parametrize("cell", ["1.5", "12,5 $", "12.5.2023", "-(5,00) €", "5,00- €"])
def test_misformatted_text_is_refused_with_row_and_column(messy, client_of, owner, cell):
    good = {name: value for name, value in cells(1).items() if name != "class"}
    answer = v1(client_of(owner), messy, [good, good | {"debt": cell}])
    assert answer.status_code == 422
    assert "rows[1]: column 'debt' is read as numbers, decimal comma" in answer.json()["detail"]


def test_the_protocol_takes_plain_numbers_and_says_so(messy, client_of, owner):
    columns = {name: [value] for name, value in plain(1).items()} | {"debt": ["1.234,5 €"]}
    answer = v2(client_of(owner), messy, columns, TEXTS | {"debt": "BYTES"})
    assert answer.status_code == 400
    assert "column 'debt' must be a plain number such as 1234.5; it is '1.234,5 €'" in answer.json()["error"]


def test_a_missing_date_is_named_as_in_the_file(messy, client_of, owner):
    """A client that sends rows of the file knows "when", but not the columns that are derived from it."""
    client = client_of(owner)
    row = {name: cell for name, cell in cells(1).items() if name not in ("class", "when")}
    assert any(messy_column.startswith("when ") for messy_column in _used(messy))
    for door in ("predict", "explain"):
        body = orjson.dumps({"rows": [row]})
        answer = client.post(f"/api/v1/models/{messy.pk}/{door}/", body, content_type="application/json")
        assert answer.status_code == 422
        assert "It is made from 'when': send that column." in answer.json()["detail"]
    debtless = {name: cell for name, cell in cells(1).items() if name not in ("class", "debt")}
    assert "It is made from" not in v1(client, messy, [debtless]).json()["detail"]


def _used(model) -> list[str]:
    tree = model_file(model).tree
    return [tree.schema[j].name for j in tree.used_columns]


def test_out_of_range_value_is_marked_in_every_interface(approved_numbers, client_of, owner):
    client = client_of(owner)
    inside = {"size": 3.0, "shade": 5.0}
    far = {"size": 1e9, "shade": -55.0}
    found = v1(client, approved_numbers, [inside, far]).json()["predictions"]
    assert "out_of_range" not in found[0]
    assert found[1]["out_of_range"] == ["size"]  # the tree does not ask the shade
    columns = {name: [inside[name], far[name]] for name in inside}
    body = orjson.dumps({"columns": columns})
    answer = client.post(f"/api/v1/models/{approved_numbers.pk}/predict/", body, content_type="application/json")
    assert answer.json()["columns"]["out_of_range"] == [[], ["size"]]
    words = "Column 'size': 1 value lies outside the training range, 0 to 40."
    sent = {"instances": [inside, far]}
    assert words in client.post("/invocations", sent, format="json")["Octweb-Notes"]
    lines = "size,shade\n3,5\n1e9,-55\n"
    assert words in client.post("/invocations", lines, content_type="text/csv")["Octweb-Notes"]
    inputs = [{"name": n, "datatype": "FP64", "shape": [2], "data": data} for n, data in columns.items()]
    asked = {"inputs": inputs, "outputs": [{"name": "out_of_range"}]}
    answer = client.post("/v2/models/messy/infer", asked, format="json").json()
    assert answer["outputs"][0]["data"] == ["", "size"]
    table = {"inputs": [{"name": "all", "datatype": "FP64", "shape": [1, 2], "data": [1e9, 5.0]}]}
    answer = client.post("/v2/models/messy/infer", table, format="json").json()
    assert words in answer["parameters"]["notes"]
    assert (
        "notes"
        not in client.post(
            "/v2/models/messy/infer", {"inputs": [table["inputs"][0] | {"data": [3.0, 5.0]}]}, format="json"
        ).json()["parameters"]
    )


def test_predicted_file_counts_values_that_training_did_not_have(approved_numbers, tmp_path):
    (tmp_path / "new.csv").write_text("size,shade\n3,5\n1e9,-55\n-7,1\n")
    summary = predict_file(model_file(approved_numbers), tmp_path / "new.csv", tmp_path / "out.csv")
    assert (summary.out_of_range, summary.unknown) == ({"size": 2}, {})
    assert summary.to_json()["out_of_range"] == {"size": 2}
    assert "Column 'size': 2 values lie outside the training range, 0 to 40." in summary.notes


@pytest.fixture
def approved_numbers(tmp_path, owner, staff, db):
    path = tmp_path / "numbers.csv"
    path.write_text("size,shade,class\n" + "".join(f"{i},{i * 7 % 11},{'ab'[i > 20]}\n" for i in (*range(41), 0, 0)))
    table, labels, _ = load(path, target="class")
    document = train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 1})).model.to_json()
    model = actions.register(owner=owner, document=document, dataset=None, title="Messy")
    actions.ask_for_approval(model, by=owner)
    return actions.approve(model, by=staff)
