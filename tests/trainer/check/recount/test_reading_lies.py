"""A false statement about how the table was read is refuted, refused, or has no effect."""

from __future__ import annotations

import json

import numpy as np
import pytest

from trainer.check.recount import verdict, verify
from trainer.data.parsing import ParsingChoices
from trainer.data.reader import load, load_for_model
from trainer.errors import DataError, TrainerError
from trainer.training.run import TrainRequest, save, train
from trainer.tree.file import read_model

TABLE = ["Report of the year", "", "price;when;at;debt;zip;class"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Provide a file with a title, a footer and columns of every kind of parsing, and a model document on it."""
    folder = tmp_path_factory.mktemp("reading")
    rng = np.random.default_rng(4)
    lines = list(TABLE)
    for i in range(60):
        whole = rng.integers(1, 9)
        day = rng.integers(1, 28)
        minute = rng.integers(60)
        debt = rng.normal(0, 50)
        price = "unknown" if i == 7 else f"{whole}.{rng.integers(100, 999)},{rng.integers(10, 99)} €"
        red = f"({-debt:.2f})".replace(".", ",") if debt < 0 else f"{debt:.2f}".replace(".", ",")
        label = "a" if whole + day + minute / 20 + debt / 20 > 22 else "b"
        at = f"{rng.integers(24)}:{minute:02d}"
        lines.append(f"{price};{day}.0{rng.integers(1, 9)}.2023;{at};{red};0{rng.integers(1000, 1003)};{label}")
    lines[6] = "1.500,25 €;31.05.2023;7:30;(3,50);01000;a"
    lines.append("Total;;;;;")
    path = folder / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    table, labels, _ = load(path, target="class")
    result = train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 5}))
    save(result.model, folder / "m.json")
    assert verdict(verify(folder / "m.json", path)) == "recounted"
    return path, json.loads((folder / "m.json").read_text())


def change(column, **members):
    return lambda reading: reading["columns"][column].update(members)


LIES = {
    "points are decimal signs": change("price", decimal=".", thousands=","),
    "no sign between thousands": change("price", thousands=""),
    "another unit": change("price", unit="$"),
    "no unit": change("price", unit=""),
    "a price means nothing": change("price", missing=["unknown", "1.500,25 €"]),
    "unknown is a value": change("price", missing=[]),
    "month before day": change("when", form="mm.dd.yyyy"),
    "another first day": change("when", origin="2022-01-01"),
    "dates have a time of day": change("when", clock=True),
    "a zone": change("at", zone="Z"),
    "a day means nothing": change("when", missing=["31.05.2023"]),
    "debts are not negative": change("debt", negative=""),
    "a minus behind": change("debt", negative="-"),
    "debts as they stand": change("debt", taken_for="plain"),
    "no reading of a column": lambda reading: reading["columns"].pop("debt"),
    "no reading of dates": lambda reading: reading["columns"].pop("when"),
    "a code means nothing": lambda reading: reading["columns"].update(
        zip={"taken_for": "plain", "reason": "", "missing": ["01000"]}
    ),
    "a class means nothing": lambda reading: reading["columns"].update(
        {"class": {"taken_for": "plain", "reason": "", "missing": ["a"]}}
    ),
    "a row is a title": lambda reading: reading["top"].append([4, "x"]),
    "a row is a footer": lambda reading: reading["bottom"].append([20, "x"]),
    "the last row is a footer": lambda reading: reading["bottom"].append([63, "x"]),
    "the header is a title": lambda reading: reading["top"].append([3, "x"]),
    "no title": lambda reading: reading.pop("top"),
    "no footer": lambda reading: reading.pop("bottom"),
    "another delimiter": lambda reading: reading.update(delimiter=","),
    "another encoding": lambda reading: reading.update(encoding="utf-16"),
    "somebody asked for a footer": lambda reading: reading.update(
        bottom=[[63, "x"], [64, "Total"]], given={"skip_bottom": 2}
    ),
    "another reason": change("price", reason="because"),
}


@pytest.mark.parametrize("lie", LIES)
def test_false_parsing_record_is_found_or_has_no_effect(trained, tmp_path, lie):
    path, document = trained
    document = json.loads(json.dumps(document))
    LIES[lie](document["reading"])
    changed = tmp_path / "m.json"
    honest = tmp_path / "honest.json"
    changed.write_text(json.dumps(document))
    honest.write_text(json.dumps(trained[1]))
    try:
        found = verdict(verify(changed, path))
    except TrainerError:  # the command prints one line, and judges nothing
        return
    if found != "refuted":
        assert found == "recounted"
        assert answers(changed, path) == answers(honest, path)


def answers(model, path):
    """Return the leaf and the class of every row of the file."""
    file = read_model(model)
    try:
        rows = load_for_model(path, file.tree.schema, target="class", classes=file.tree.classes, reading=file.reading)
    except DataError as error:
        return str(error)
    return file.tree.apply(rows.table.matrix()).tolist(), rows.usable.tolist(), rows.labels.codes.tolist()


def test_value_declared_missing_by_user_is_reported(tmp_path):
    path = tmp_path / "t.csv"
    model = tmp_path / "m.json"
    rows = [
        f"{'999' if i % 9 == 0 else f'{i},5'};{'1.01.1900' if i % 7 == 0 else f'{i % 28 + 1}.05.2023'};{'ab'[i > 20]}"
        for i in range(40)
    ]
    path.write_text("x;d;y\n" + "\n".join(rows) + "\n")
    given = ParsingChoices(missing={"x": ("999",), "d": ("1.01.1900",)})
    table, labels, report = load(path, target="y", given=given)
    assert any(note.startswith("Column 'x'") and "'999' means missing, as you said." in note for note in report.notes)
    save(train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 2})).model, model)
    findings = verify(model, path)
    assert verdict(findings) == "recounted", findings
    words = "'999' of column 'x' (5 cells), '1.01.1900' of column 'd' (6 cells) mean an empty cell"
    assert any(words in f.detail for f in findings)
    document = json.loads(model.read_text())
    for column in document["reading"]["columns"].values():
        del column["given"]
    model.write_text(json.dumps(document))
    assert verdict(verify(model, path)) == "refuted"


def test_removing_the_parsing_record_is_detected(trained, tmp_path):
    path, document = trained
    changed = tmp_path / "m.json"
    changed.write_text(json.dumps({name: own for name, own in document.items() if name != "reading"}))
    with pytest.raises(DataError):
        verify(changed, path)
