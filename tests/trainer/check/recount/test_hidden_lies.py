"""Lies that only another reader would see: duplicate names and members, unknown words, emptied rows."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

from tests.trainer.check.recount.files import findings, trained
from trainer.check.recount import verdict, verify
from trainer.check.recount.table import rows
from trainer.data.parsing import ParsingChoices
from trainer.data.reader import load
from trainer.errors import ModelFileError
from trainer.training.run import TrainRequest, save, train


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def refuted(document, data, tmp_path):
    return {f.claim for f in findings(document, data, tmp_path) if f.verdict == "refuted"}


@pytest.mark.parametrize("method", ["exact", "bendoct", "odt"])
def test_forbidden_column_under_second_name_is_found(folder, tmp_path, method):
    document, data = trained(folder, method)
    used = {v["split"]["feature"] for v in document["nodes"] if "split" in v}
    other = next(c["name"] for c in document["columns"] if c["name"] not in used)
    for node in document["nodes"]:
        if "split" in node:
            node["split"]["features"] = [other]
    assert refuted(document, data, tmp_path) == {"structure"}


@pytest.mark.parametrize("member", ["class", "left"])
def test_a_node_is_a_leaf_or_a_question(folder, tmp_path, member):
    document, data = trained(folder, "exact")
    node = next(v for v in document["nodes"] if ("split" in v) == (member == "class"))
    node[member] = document["classes"][0] if member == "class" else 1
    assert refuted(document, data, tmp_path) == {"structure"}


def test_a_bound_of_a_split_without_its_impurity(folder, tmp_path):
    document, data = trained(folder, "bivariate")
    node = next(v for v in document["nodes"] if "split" in v)
    del node["impurity"]
    document["certificate"]["splits_proved"] -= 1
    assert refuted(document, data, tmp_path) == {"splits"}


@pytest.mark.parametrize("twice", [("status", "proved by all"), ("bound", 0.5)])
def test_duplicate_member_is_damage(folder, tmp_path, twice):
    document, data = trained(folder, "exact")
    text = json.dumps(document)
    name = f'"{twice[0]}":'
    assert name in text
    (tmp_path / "m.json").write_text(text.replace(name, f"{name} {json.dumps(twice[1])}, {name}", 1))
    with pytest.raises(ModelFileError, match="appears twice"):
        verify(tmp_path / "m.json", data)


def test_file_without_rows_is_not_proved_by_its_scope(folder, tmp_path):
    document, data = trained(folder, "exact")
    assert verdict(findings(document, data, tmp_path)) == "proved"
    document["rows"] = None
    document["certificate"]["scope"] = "every tree of any depth and of any question"
    found = findings(document, data, tmp_path)
    assert verdict(found) == "recounted"
    assert "every tree of any depth" in next(f.detail for f in found if f.claim == "scope")


@pytest.mark.slow
def test_frontier_point_has_one_split_less_than_leaves(folder, tmp_path):
    document, data = trained(folder, "cut-h", pareto=True, depth=1)
    point = next(e for e in document["certificate"]["evidence"] if e["kind"] == "leaf-frontier")["points"][-1]
    assert point["branchings"] == point["leaves"] - 1
    point["branchings"] -= 1
    assert refuted(document, data, tmp_path) == {"leaf-frontier"}


def test_all_folds_are_listed_with_status(folder, tmp_path):
    document, data = trained(folder, "cart", folds=3)
    document["metrics"]["cross_validation"]["ended"] = "all folds are perfect"
    assert refuted(document, data, tmp_path) == {"metrics cross_validation"}


def test_a_frontier_is_not_both_open_and_optimal(folder, tmp_path):
    document, data = trained(folder, "odt", frontier=True, positive="b")
    part = next(e for e in document["certificate"]["evidence"] if e["kind"] == "frontier")
    assert (part["finished"], part["status"]) == (True, "optimal")
    part["finished"] = False
    assert refuted(document, data, tmp_path) == {"frontier"}


def test_a_gap_that_no_training_allows(folder, tmp_path):
    document, data = trained(folder, "bendoct")
    document["parameters"]["mip_gap"] = document["certificate"]["mip_gap"] = 1000
    with pytest.raises(ModelFileError, match="mip_gap"):
        findings(document, data, tmp_path)


ROUNDED = ", some columns with more digits than can be compared exactly: lines that pass the rows by less than 1e-14 of a column's range are not counted"


@pytest.mark.parametrize("digits", [0, 3, 7, 8, 9, 15])
def test_near_lines_count_by_digits_of_columns(tmp_path, digits):
    """A file of short decimals must not omit lines. A bound that only these lines refute would not be refuted."""
    rng = np.random.default_rng(digits)
    path = tmp_path / "t.csv"
    lines = [f"{round(v, digits)!r},{i % 7},0.123456789,{'ab'[int(v * 1e6) % 2]}" for i, v in enumerate(rng.random(30))]
    path.write_text("x,y,same,class\n" + "\n".join(lines) + "\n")
    table, labels, _ = load(path, target="class")
    result = train(TrainRequest(table=table, labels=labels, method="bivariate", parameters={"depth": 1}))
    document = json.loads(json.dumps(result.model.to_json()))
    assert verdict(findings(document, path, tmp_path)) == "proved"
    said = document["certificate"]
    said["scope"] = said["scope"].removesuffix(ROUNDED) if ROUNDED in said["scope"] else said["scope"] + ROUNDED
    assert refuted(document, path, tmp_path) == {"scope"}


def with_fingerprint(document, data):
    """Return the document with a matching fingerprint, as a forger would make it."""
    own = rows.load(data, document).training
    digest = hashlib.sha256()
    for column, values in zip(document["columns"], own.columns, strict=True):
        described = {name: value for name, value in column.items() if name in rows.FINGERPRINTED}
        digest.update(repr(sorted(described.items())).encode())
        digest.update(values.astype("<f8").tobytes())
    digest.update(repr((document["target"], tuple(document["classes"]))).encode())
    digest.update(own.labels.astype("<i4").tobytes())
    return document | {"fingerprint": digest.hexdigest()}


@pytest.mark.parametrize("change", [{"kind": "binary"}, {"missing": "refuse"}, {"promise": "x"}, {}])
def test_a_column_that_is_not_what_the_schema_says(tmp_path, change):
    path = tmp_path / "t.csv"
    path.write_text("x,class\n" + "".join(f"{i % 7 if i % 5 else ''},{'ab'[i % 7 > 3]}\n" for i in range(40)))
    table, labels, _ = load(path, target="class", default_missing="drop")
    result = train(TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": 1}))
    document = json.loads(json.dumps(result.model.to_json()))
    document["columns"][0].update(change)
    said = findings(with_fingerprint(document, path), path, tmp_path)
    assert any(f.detail == "32 of 40 rows have no gaps, as listed." for f in said)
    assert next(f.verdict for f in said if f.claim == "data") == "recounted"
    if "promise" in change:
        assert verdict(said) == "recounted"
    else:
        assert [f.claim for f in said if f.verdict == "refuted"] == (["columns"] if change else [])


def test_rows_of_weight_0_are_named(tmp_path):
    path = tmp_path / "t.csv"
    model = tmp_path / "m.json"
    path.write_text("x,class\n" + "".join(f"{i % 7},{'ab'[i % 7 > 3]}\n" for i in range(40)))
    table, labels, _ = load(path, target="class")
    weights = np.array([i % 4 for i in range(40)])
    save(train(TrainRequest(table=table, labels=labels, method="exact", weights=weights)).model, model)
    assert any(
        f.detail == "Rows count as the file says, 60 in all; 10 rows count nothing." for f in verify(model, path)
    )


def test_rows_of_a_table_without_a_header_are_no_titles(tmp_path):
    path = tmp_path / "t.csv"
    lines = [f"{i % 7},{'ab'[i % 7 > 3]}\n" for i in range(40)]
    path.write_text("".join(lines[5:]))
    table, labels, _ = load(path, target="column 2", header=False)
    result = train(TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": 1}))
    document = json.loads(json.dumps(result.model.to_json()))
    assert verdict(findings(document, path, tmp_path)) == "proved"
    path.write_text("".join(lines))
    document["reading"] = {"top": [[i, "a title"] for i in range(1, 6)], "columns": {}}
    assert verdict(findings(document, path, tmp_path)) == "refuted"


PROMISE = {"promise": "nobody has a better one"}


@pytest.mark.parametrize(
    "place",
    [
        lambda d: d["certificate"]["evidence"][0],
        lambda d: d.setdefault("reading", {"columns": {}}),
        lambda d: d["metrics"]["train"],
        lambda d: d["certificate"].setdefault("wishes", [{"wish": "depth root 2", "price": None}])[0],
    ],
)
def test_unknown_member_gets_a_line_at_any_depth(folder, tmp_path, place):
    document, data = trained(folder, "exact")
    place(document).update(PROMISE)
    found = findings(document, data, tmp_path)
    assert verdict(found) != "proved"
    assert [f.verdict for f in found if f.claim.endswith("promise")] in (["cannot be judged"], [])
    assert any(f.claim.endswith("promise") for f in found) or any(f.verdict == "refuted" for f in found)


@pytest.mark.parametrize(("column", "word"), [("class", "third"), ("w", "q")])
def test_rows_that_a_word_makes_empty_are_named(tmp_path, column, word):
    """All rows of a class or of a category are left out. Nobody may take the rest for the whole table."""
    path = tmp_path / "t.csv"
    model = tmp_path / "m.json"
    lines = [f"{i % 10},{'pqr'[i % 3]},{'third' if i % 5 == 0 else ['no', 'yes'][i % 10 > 4]}" for i in range(60)]
    path.write_text("x,w,class\n" + "\n".join(lines) + "\n")
    table, labels, _ = load(path, target="class", given=ParsingChoices(missing={column: (word,)}))
    request = TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": 2})
    save(train(request).model, model)
    cells = sum(word in row.split(",") for row in lines)
    found = verify(model, path)
    assert verdict(found) == "proved"
    assert any(f"'{word}' of column '{column}' ({cells} cells)" in f.detail for f in found)
    document = json.loads(model.read_text())
    document["reading"]["columns"][column].pop("given")
    model.write_text(json.dumps(document))
    assert verdict(verify(model, path)) == "refuted"
