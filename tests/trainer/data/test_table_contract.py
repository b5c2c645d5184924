"""The table contract: what a model file states about columns and classes, and what older files imply."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import jsonschema
import numpy as np
import onnx
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trainer
from trainer.check.recount import verdict, verify
from trainer.cli.reading_flags import flags_of
from trainer.data.column_statistics import numeric_statistics
from trainer.data.formats.parquet_file import declared_order
from trainer.data.formats.read_file import read_table as read_file
from trainer.data.formats.staged import write_raw
from trainer.data.inspect_table import inspect
from trainer.data.parsing import ParsingChoices
from trainer.data.reader import load
from trainer.data.table_contract import contract_lines, model_contract, table_contract
from trainer.errors import DataError
from trainer.prediction.mlflow_flavour import TreePredictor
from trainer.prediction.predict_file import predict_file
from trainer.table import ClassType, class_type_of, class_values, ranks_in
from trainer.training.run import TrainRequest, save, train
from trainer.tree.export.forms import COMMENTS, EXPORTS, export
from trainer.tree.file import from_json, json_schema, read_model

ROWS = "".join(
    f"{i / 4 + 0.25},{(-7, 1, 2)[i % 3]},{('north', 'North', 'south')[i % 3]},{1 + i % 28:02d}/{1 + i % 12:02d}/2023,"
    f"{'unknown' if i % 9 == 4 else 3 * i % 31},{i % 3 == 2}\n"
    for i in range(60)
)
TEXT = "size,grade,region,when,level,sold\n" + ROWS


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    path = tmp_path_factory.mktemp("contract") / "t.csv"
    path.write_text(TEXT)
    model = ParsingChoices.from_json({"merge": {"region": {"North": "north"}}, "missing": {"level": ["unknown"]}})
    table, labels, _ = load(path, target="sold", special={"grade": [-7]}, given=model, units={"size": "mm"})
    return train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 2})).model.to_json()


def test_contract_states_kinds_values_and_policies(document):
    contract = model_contract(from_json(document))
    assert contract["target"] == {"name": "sold", "type": "bool", "classes": [False, True]}
    columns = {own["name"]: own for own in contract["columns"]}
    assert columns["size"]["range"] == [0.0, 15.0]  # the values 0.25 to 15 are rounded outwards to the unit of 0.5
    assert (columns["size"]["unit"], columns["size"]["ordered"], columns["size"]["unknown"]) == ("mm", True, "refuse")
    assert columns["grade"]["codes"] == {"-7": "code"}
    assert columns["level"]["codes"] == {"unknown": "empty"}
    assert columns["region"]["categories"] == ["north", "south"]
    assert columns["region"]["spellings"] == {"North": "north"}
    assert columns["region"]["unknown"] == "warn"
    assert columns["when year"]["source"] == "when"
    assert columns["when year"]["read_as"] == "dates, dd/mm/yyyy"
    assert {name for name, own in columns.items() if own["asked"]} == {"grade"}
    assert all(own["empty"] == "learn" for own in columns.values())
    lines = contract_lines(contract)
    assert lines[0] == "target sold (bool): False, True"
    assert (
        "size (not asked by the tree): numeric; in mm; from 0 to 15; empty cells: learn; unknown values: refuse"
        in lines
    )


LEVELS = ["low", "mid", "high"]


def ordered_frames():
    codes = np.array([i * 7 % 11 % 3 for i in range(60)])
    arrow = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(LEVELS), ordered=True)
    numbers = [float(i * 7 % 11) for i in range(60)]
    texts = [LEVELS[code] for code in codes]
    return {
        "pandas": pd.DataFrame({"level": pd.Categorical.from_codes(codes, LEVELS, ordered=True), "n": numbers}),
        "polars": pl.DataFrame({"level": pl.Series(texts, dtype=pl.Enum(LEVELS)), "n": numbers}),
        "arrow": pa.table({"level": arrow, "n": numbers}),
    }, ["a" if code == 2 else "b" for code in codes]


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_order_of_categories_is_kept_by_estimators(library, tmp_path):
    frames, y = ordered_frames()
    classifier = trainer.make_classifier("cart", depth=2).fit(frames[library], y)
    classifier.save(tmp_path / "m.json")
    level = model_contract(read_model(tmp_path / "m.json"))["columns"][0]
    assert (level["ordered"], level["categories"]) == (True, LEVELS)
    assert classifier.predict(frames[library]).tolist() == y
    unordered = pd.DataFrame({"level": frames["pandas"]["level"].astype(str), "n": frames["pandas"]["n"]})
    plain = trainer.make_classifier("cart", depth=2).fit(unordered, y)
    assert plain.tree_.schema[0].ordered is False
    assert plain.predict(unordered).tolist() == y


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_intake_report_says_that_no_question_uses_the_order(library):
    frames, y = ordered_frames()
    [finding] = [own for own in inspect(frames[library], y) if own.kind == "ordered_categories"]
    assert (finding.column, finding.figure) == ("level", "low < mid < high")
    assert flags_of(finding.mend) == "--kind level=ranks"


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_order_of_categories_is_kept_by_files(ending, tmp_path):
    frames, y = ordered_frames()
    path = tmp_path / f"t.{ending}"
    frame = frames["pandas"].assign(y=y)
    (frame.to_parquet if ending == "parquet" else frame.to_feather)(path)
    write_raw(read_file(path), tmp_path / "stored.parquet")
    for source in (path, tmp_path / "stored.parquet"):
        table, labels, _ = load(source, target="y")
        contract = table_contract(table.schema, table.reading, target="y", classes=labels.classes)
        level = contract["columns"][0]
        assert (level["ordered"], level["categories"]) == (True, LEVELS)
        assert any("low, mid, high (in this order)" in line for line in contract_lines(contract))
        jsonschema.validate(contract, json_schema()["$defs"]["table_contract"] | {"$defs": json_schema()["$defs"]})


def ranked_rows():
    """Return levels of an order that the alphabet does not have, and classes that depend on the rank alone."""
    names = ["none", "little", "some", "much", "most"]
    levels = [names[i * 7 % 11 % 5] for i in range(60)]
    return names, levels, ["high" if names.index(level) > 2 else "low" for level in levels]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_ranks_give_questions_along_the_order(ending, tmp_path):
    names, levels, y = ranked_rows()
    path = tmp_path / f"t.{ending}"
    frame = pd.DataFrame({"level": pd.Categorical(levels, names, ordered=True), "n": 0.5, "y": y})
    (frame.to_parquet if ending == "parquet" else frame.to_csv)(path, index=False)
    kind = "ranks" if ending == "parquet" else "ranks:" + "<".join(names)
    table, labels, report = load(path, target="y", given=ParsingChoices(kinds={"level": kind}))
    assert table.columns[0].values.tolist() == [names.index(level) + 1 for level in levels]
    assert any("'most' is read as '5'" in note for note in report.notes)
    request = TrainRequest(
        table=table, labels=labels, method="exact", parameters={"depth": 1, "binarise": "all-thresholds"}
    )
    model = train(request).model
    assert (model.tree.nodes[0].split.threshold, model.tree.n_leaves) == (3.5, 2)
    save(model, tmp_path / "m.json")
    findings = verify(tmp_path / "m.json", path)
    assert verdict(findings) == "proved", [finding for finding in findings if finding.verdict == "refuted"]
    contract = model_contract(model)
    assert contract["columns"][0]["spellings"] == {name: str(rank) for rank, name in enumerate(names, 1)}
    rows = [{"level": level, "n": 0.5} for level in levels]
    assert predict_file(model, path, io.StringIO()).correct == len(y)
    assert TreePredictor(model).predict(rows).tolist() == y
    loaded = trainer.load(tmp_path / "m.json")
    for columns in (frame.drop(columns="y"), pl.DataFrame({"level": levels, "n": 0.5}), pd.DataFrame(rows)):
        assert loaded.predict(columns).tolist() == y
    with pytest.raises(ValueError, match=r"'level'.*'all'"):
        loaded.predict(pd.DataFrame([{"level": "all", "n": 0.5}]))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("ranks", "declares no order"), ("ranks:none<little", "which is not among its ranks"), ("ranks:none<none", "twice"),
        ("ranks:none<", "is not a kind"),
    ],
)  # fmt: skip
def test_ranks_that_do_not_fit_are_refused(kind, words, tmp_path):
    _, levels, y = ranked_rows()
    path = tmp_path / "t.csv"
    pd.DataFrame({"level": levels, "n": 0.5, "y": y}).to_csv(path, index=False)
    with pytest.raises(DataError, match=words):
        load(path, target="y", given=ParsingChoices(kinds={"level": kind}))


def note_in(form, content):
    """Return the note that an exported file has."""
    if form == "onnx":
        return onnx.load_from_string(content).doc_string
    if form == "excel":
        return content.splitlines()[0].partition('y,"')[2].removesuffix('"').replace('""', '"')
    if form in ("pmml", "dmn"):
        names = {"pmml": "{*}Header/{*}Annotation", "dmn": "{*}description"}
        return ET.fromstring(content).findtext(names[form])
    return content.splitlines()[0].removeprefix(COMMENTS[form])


@pytest.fixture(scope="module")
def graded_model(tmp_path_factory):
    """Provide a model with a column of three ranks. The word of one rank contains a line break."""
    path = tmp_path_factory.mktemp("grades") / "t.parquet"
    words = ["low", "mid\nhigh", "top"]
    frame = pd.DataFrame({"grade": [words[i % 3] for i in range(60)], "y": ["no", "yes", "yes"] * 20})
    frame["grade"] = pd.Categorical(frame["grade"], words, ordered=True)
    frame.to_parquet(path, index=False)
    table, labels, _ = load(path, target="y", given=ParsingChoices(kinds={"grade": "ranks"}))
    return train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 1})).model


@pytest.mark.parametrize("form", EXPORTS)
def test_exports_state_the_ranks_that_they_take(form, graded_model):
    """An end of line in a value stays within the comment."""
    content = export(graded_model, form, "grades")
    assert note_in(form, content) == '"grade" holds ranks, not values: 1 for "low", 2 for "mid\\nhigh", 3 for "top".'
    if form in COMMENTS:
        assert content.partition("\n")[2] == export(replace(graded_model, reading=None), form, "grades")


def test_ranks_of_numbers_are_equal_in_every_interface(tmp_path):
    """A number is looked up among the ranks, and never taken for a rank."""
    grades = [[10, 2, 1][i % 3] for i in range(60)]
    frame = pd.DataFrame({"grade": grades, "y": ["yes" if grade == 2 else "no" for grade in grades]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    given = ParsingChoices(kinds={"grade": "ranks:2<10<1"})
    table, labels, _ = load(tmp_path / "t.parquet", target="y", given=given)
    assert table.columns[0].values[:3].tolist() == [2, 1, 3]
    model = train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 1})).model
    save(model, tmp_path / "m.json")
    assert verdict(verify(tmp_path / "m.json", tmp_path / "t.csv")) != "refuted"
    answers = frame["y"].tolist()
    for ending in ("csv", "parquet"):
        assert predict_file(model, tmp_path / f"t.{ending}", io.StringIO()).correct == 60
    predictor = TreePredictor(model)
    loaded = trainer.load(tmp_path / "m.json")
    for cells in (grades, [float(grade) for grade in grades], [str(grade) for grade in grades]):
        assert predictor.predict([{"grade": cell} for cell in cells]).tolist() == answers
        assert loaded.predict(pd.DataFrame({"grade": cells})).tolist() == answers
        assert loaded.predict(pl.DataFrame({"grade": cells})).tolist() == answers
    for unknown in (3, "3"):
        for predict in (
            lambda cell: predictor.predict([{"grade": cell}]),
            lambda cell: loaded.predict(pd.DataFrame({"grade": [cell]})),
        ):
            with pytest.raises(ValueError, match=r"'grade' is read as the ranks of 2<10<1, but has '3'"):
                predict(unknown)


NO_DAYS = ["30.02.2021", "2021-02-30", "31.12.9999", "0000-00-00"]


@pytest.mark.parametrize(
    ("column", "word"),
    [(column, word) for column in ("day", "length") for word in ("NaT", "\\N", "-", "unknown", "NULL", "")]
    + [("day", word) for word in NO_DAYS],
)
def test_missing_words_are_empty_in_every_interface(column, word, tmp_path):
    days = [f"{1 + i % 28:02d}.{1 + i % 12:02d}.2021" for i in range(60)]
    frame = pd.DataFrame(
        {"day": days, "length": [f"{i % 7},5 cm" for i in range(60)], "y": ["ab"[i % 7 > 3] for i in range(60)]}
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    table, labels, _ = load(tmp_path / "t.csv", target="y")
    model = train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 2})).model
    save(model, tmp_path / "m.json")
    row = {"day": days[0], "length": "1,5 cm"} | {column: word}
    pd.DataFrame([row, row | {column: None}]).to_csv(tmp_path / "p.csv", index=False)
    out = io.StringIO()
    predict_file(model, tmp_path / "p.csv", out)
    of_file, of_empty = (line.split(",")[1] for line in out.getvalue().splitlines()[1:])
    assert of_file == of_empty
    assert TreePredictor(model).predict([row]).tolist() == [of_file]
    assert trainer.load(tmp_path / "m.json").predict(pd.DataFrame([row])).tolist() == [of_file]


def ordered_chunk(order):
    return pa.DictionaryArray.from_arrays(pa.array([k % len(order) for k in range(6)]), pa.array(order), ordered=True)


@pytest.mark.parametrize(
    ("orders", "stated"),
    [
        ([LEVELS, LEVELS], LEVELS),
        ([["low", "high"], LEVELS], LEVELS),
        ([["low", "mid"], ["mid", "high"]], []),
        ([["low", "mid"], ["mid", "low"]], []),
    ],
)
def test_chunks_with_other_categories_state_no_wrong_order(orders, stated, tmp_path):
    chunks = [ordered_chunk(order) for order in orders]
    assert declared_order(pa.chunked_array(chunks)) == tuple(stated)
    schema = pa.schema({"level": chunks[0].type})
    with pq.ParquetWriter(tmp_path / "t.parquet", schema) as file:
        for chunk in chunks:
            file.write_table(pa.table({"level": chunk}, schema))
    assert declared_order(read_file(tmp_path / "t.parquet").column("level")) == tuple(stated)


def test_contract_follows_its_json_schema(document):
    schema = json_schema()
    own = {"$ref": "#/$defs/table_contract", "$defs": schema["$defs"]}
    jsonschema.validate(model_contract(from_json(document)), own)
    older = {name: value for name, value in document.items() if name != "contract"}
    jsonschema.validate(model_contract(from_json(older)), own)


def test_file_without_a_contract_has_what_its_members_imply(document):
    older = model_contract(from_json({name: value for name, value in document.items() if name != "contract"}))
    newer = model_contract(from_json(document))
    assert older["target"] == newer["target"]
    assert older["columns"] == [
        {name: value for name, value in column.items() if name != "range"} for column in newer["columns"]
    ]


@pytest.mark.parametrize("seed", range(20))
def test_range_holds_every_training_value(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 10.0 ** rng.integers(-8, 9), 40) + rng.choice([0, 1e9, -1e-9])
    classifier = trainer.make_classifier("cart", depth=1).fit(values[:, None], values > np.median(values))
    column = classifier._fitted.tree.schema[0]
    low, high = column.range
    known = numeric_statistics(values)
    assert low <= known.low <= known.high <= high
    assert known.low - low <= column.change_unit / 5
    assert high - known.high <= column.change_unit / 5


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        (("0", "1"), [0, 1]), (("-3", "12"), [-3, 12]), (("01", "2"), ["01", "2"]), (("0.0", "1.5"), [0.0, 1.5]),
        (("1", "1.5"), ["1", "1.5"]), (("false", "true"), [False, True]), (("False", "True"), [False, True]),
        (("FALSE", "TRUE"), [False, True]), (("True", "true"), ["True", "true"]), (("no", "yes"), ["no", "yes"]),
        (("1", "9" * 20), ["1", "9" * 20]), (("inf", "nan"), ["inf", "nan"]),
    ],
)  # fmt: skip
def test_texts_of_classes_tell_their_type(classes, expected):
    found = class_values(classes, class_type_of(classes)).tolist()
    assert found == expected
    assert [type(value) for value in found] == [type(value) for value in expected]


@pytest.mark.parametrize(
    ("labels", "kind"),
    [([0, 1], ClassType.INT), ([False, True], ClassType.BOOL), ([0.0, 1.0], ClassType.FLOAT), (["0", "1"], ClassType.TEXT)],
)  # fmt: skip
def test_saved_estimator_answers_in_the_type_of_its_labels(tmp_path, labels, kind):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]})
    y = np.array([labels[0], labels[0], labels[1], labels[1]])
    classifier = trainer.make_classifier("cart", depth=1).fit(frame, y)
    classifier.save(tmp_path / "model.json")
    model = read_model(tmp_path / "model.json")
    assert model.class_type == kind
    answers = TreePredictor(model).predict(frame)
    assert answers.tolist() == y.tolist()
    assert [type(value) for value in answers.tolist()] == [type(value) for value in y.tolist()]


@pytest.mark.parametrize("values", [[0, 0, 1, 1], [False, False, True, True], [0.0, 0.0, 1.0, 1.0]])
def test_typed_target_of_parquet_keeps_its_type(tmp_path, values):
    pd.DataFrame({"x": [1.5, 2.0, 3.0, 4.0], "y": values}).to_parquet(tmp_path / "t.parquet")
    table, labels, _ = load(tmp_path / "t.parquet", target="y")
    model = train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 1})).model
    answers = TreePredictor(model).predict([{"x": x} for x in (1.5, 2.0, 3.0, 4.0)]).tolist()
    assert answers == values
    assert [type(value) for value in answers] == [type(value) for value in values]


@pytest.mark.parametrize("order", ["low<mid<high", "0<1<2+"])
def test_model_files_without_list_of_ranks_read_words_alike(order, tmp_path):
    """Files of earlier versions state ranks only as spellings."""
    words = order.split("<")
    rows = "".join(f"{words[i % 3]},{'no' if i % 3 == 0 else 'yes'}\n" for i in range(30))
    (tmp_path / "t.csv").write_text("level,y\n" + rows)
    given = ParsingChoices(kinds={"level": f"ranks:{order}"})
    table, labels, _ = load(tmp_path / "t.csv", target="y", given=given)
    model = train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 1})).model
    save(model, tmp_path / "m.json")
    document = read_model(tmp_path / "m.json").to_json()
    del document["reading"]["columns"]["level"]["ranks"]
    earlier = from_json(document)
    assert earlier.tree.schema[0].ranks == tuple(words)
    predictor = TreePredictor(earlier)
    known = [float(word) if word.isdigit() else word for word in words]
    assert predictor.predict([{"level": cell} for cell in known]).tolist() == ["no", "yes", "yes"]
    for unknown in (3, "3", True if order == "low<mid<high" else 4):
        with pytest.raises(ValueError, match=f"'level' is read as the ranks of {re.escape(order)}"):
            predictor.predict([{"level": unknown}])


@pytest.mark.parametrize(
    "spellings", [{"true": "1"}, {"1.0": "1", "2.0": "2"}, {"Yes": "yes", "YES": "yes"}, {"one": "1", "three": "3"}, {}]
)
def test_merged_spellings_are_no_ranks(spellings):
    assert ranks_in({"spellings": spellings}) == ()
