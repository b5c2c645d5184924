"""The facts of a dossier equal counts by hand from model file and CSV, for every kind of split."""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter

import numpy as np
import pytest
from django.template.loader import render_to_string

from tests.trainer.check.recount.files import csv_text, many_classes, trained
from trainer.check.recount import verdict, verify
from trainer.data.reader import load
from trainer.dossier import DossierLimits, dossier
from trainer.dossier.bootstraps import OWN_LIMIT, bootstraps
from trainer.dossier.rows import rows_of
from trainer.errors import DataError, ModelFileError
from trainer.evaluate.intervals import wilson
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table
from trainer.training.run import TrainRequest, train
from trainer.tree.file import read_model

CASES = {
    "threshold": ("cart", {}),
    "interval": ("exact", {"binarise": "quantile-buckets", "bins": 5}),
    "subset": ("odt", {}),
    "linear": ("bivariate", {}),
    "linear, many": ("cut-h", {}),
}


def left(split, row):
    """Return whether a row of texts goes left, from the JSON of the split alone."""
    if split["kind"] == "threshold":
        return float(row[split["feature"]]) <= split["threshold"]
    if split["kind"] == "interval":
        low, high = (split[name] for name in ("low", "high"))
        x = float(row[split["feature"]])
        return (low is None or x > low) and (high is None or x <= high)
    if split["kind"] == "subset":
        return row[split["feature"]] in split["categories"]
    levels = split.get("categories") or [None] * len(split["features"])
    terms = zip(split["features"], split["coefficients"], levels, strict=True)
    return sum(a * (float(row[f]) if level is None else row[f] == level) for f, a, level in terms) <= split["threshold"]


def counted(document, data):
    """Return each row of the file as (texts, whether it was held out, answer, leaf)."""
    rows = list(csv.DictReader(data.read_text().splitlines()))
    held = document["rows"]["held_out"] or "0" * len(rows)
    found = []
    for row, sign in zip(rows, held, strict=True):
        v = document["nodes"][0]
        while "split" in v:
            v = document["nodes"][v["left" if left(v["split"], row) else "right"]]
        found.append((row, sign == "1", v["class"], v["id"]))
    return found


def made(document, data, folder, **options):
    path = folder / "model.json"
    path.write_text(json.dumps(document))
    return dossier(path, data, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("dossier")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_numbers_equal_manual_counts(case, folder):
    method, parameters = CASES[case]
    document, data = trained(folder, method, test_share=0.4, **parameters)
    assert any(v["split"]["kind"] == case.split(",")[0] for v in document["nodes"] if "split" in v)
    found = made(document, data, folder, groups=["flag"])
    rows = counted(document, data)
    unseen, training = ([r for r in rows if r[1] == held] for held in (True, False))
    classes = document["classes"]
    for name, part in (("unseen", unseen), ("training", training)):
        said = found["performance"][name]
        right = sum(row["class"] == answer for row, _, answer, _ in part)
        assert said["accuracy"] == {
            "right": right,
            "rows": len(part),
            "share": right / len(part),
            "interval": list(wilson(right, len(part))),
        }
        pairs = Counter((row["class"], answer) for row, _, answer, _ in part)
        assert said["confusion"] == [[pairs[a, b] for b in classes] for a in classes]
        for k, label in enumerate(classes):
            assert said["found"][k]["right"] == said["precision"][k]["right"] == pairs[label, label]
            assert said["found"][k]["rows"] == sum(row["class"] == label for row, *_ in part)
            assert said["precision"][k]["rows"] == sum(answer == label for _, _, answer, _ in part)
        usual = max(classes, key=lambda c: sum(row["class"] == c for row, *_ in training))
        assert said["baseline"]["class"] == usual
        assert said["baseline"]["right"] == sum(row["class"] == usual for row, *_ in part)
    assert (found["data"]["training_rows"], found["data"]["unseen_rows"]) == (len(training), len(unseen))
    assert found["data"]["sha256"] == hashlib.sha256(data.read_bytes()).hexdigest()
    assert found["data"]["sha256_is_of"] == "the file"
    for leaf in found["calibration"]:
        here = [row["class"] for row, _, _, at in unseen if at == leaf["leaf"]]
        assert (leaf["unseen"]["rows"], leaf["unseen"]["right"]) == (len(here), here.count(leaf["class"]))
        own = [row["class"] for row, _, _, at in training if at == leaf["leaf"]]
        assert leaf["training_rows"] == len(own)
        assert leaf["promised"] == pytest.approx(own.count(leaf["class"]) / len(own))
    for column in found["data"]["columns"]:
        if column["kind"] != "categorical":
            values = [float(row[column["name"]]) for row, *_ in training]
            assert (float(column["smallest"]), float(column["largest"])) == (min(values), max(values))
    assert found["check"]["verdict"] == verdict(verify(folder / "model.json", data))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    for rule in found["tree"]["rules"]:
        assert rule["rows"] == sum(at == rule["leaf"] for *_, at in training)


def test_groups_are_counted_on_the_rows_that_were_not_trained(tmp_path):
    data = tmp_path / "rows.csv"
    data.write_text(csv_text(rows=400))
    rows, labels, _ = load(data, target="class", ignore=["flag"])
    result = train(TrainRequest(table=rows, labels=labels, method="cart", parameters={"depth": 2}, test_share=0.4))
    document = json.loads(json.dumps(result.model.to_json()))
    found = made(document, data, tmp_path, groups=["flag", "colour"])
    unseen = [r for r in counted(document, data) if r[1]]
    shown = {one["column"]: {g["group"]: g for g in one["groups"]} for one in found["subgroups"]["columns"]}
    assert list(shown)[:2] == ["flag", "colour"]  # one of the columns is not in the model
    for column in ("flag", "colour"):
        for value, group in shown[column].items():
            here = [(row["class"], answer) for row, _, answer, _ in unseen if row[column] == value]
            assert group["accuracy"]["rows"] == len(here) >= 30
            assert group["accuracy"]["right"] == sum(a == b for a, b in here)
            for k, label in enumerate(document["classes"]):
                assert group["found"][k]["rows"] == sum(a == label for a, _ in here)
                assert group["answered"][k]["right"] == sum(b == label for _, b in here)
    with pytest.raises(DataError, match="no column 'nothing'"):
        made(document, data, tmp_path, groups=["nothing"])
    with pytest.raises(DataError, match="by the target"):
        made(document, data, tmp_path, groups=["class"])


def test_values_outside_the_training_are_counted(tmp_path):
    document, data = trained(tmp_path, "cart", test_share=0.4)
    found = made(document, data, tmp_path)
    rows = counted(document, data)
    said = found["limits_of_use"]["outside_training"]
    trained_rows = [row for row, held, *_ in rows if not held]
    beyond = set()
    for name, number in said["by_column"].items():
        values = [float(row[name]) for row in trained_rows]
        out = [
            i for i, (row, held, *_) in enumerate(rows) if held and not min(values) <= float(row[name]) <= max(values)
        ]
        assert number == len(out)
        beyond |= set(out)
    assert said["rows_outside"] == len(beyond)


def test_without_held_out_rows_nothing_stands_in_their_place(tmp_path):
    document, data = trained(tmp_path, "cart")
    found = made(document, data, tmp_path)
    assert found["performance"]["unseen"] is found["performance"]["cross_validation"] is found["stability"] is None
    assert found["subgroups"]["rows"] == "training"
    assert {leaf["kept"] for leaf in found["calibration"]} == {None}


def test_warnings_about_identifiers_are_in_the_dossier(tmp_path):
    data = tmp_path / "t.csv"
    data.write_text("Id,size,y\n" + "".join(f"{i},{i * i % 7},{'ab'[i > 30]}\n" for i in range(60)))
    table, labels, _ = load(data, target="y", kinds={"Id": "numeric"})
    document = train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 1})).model.to_json()
    assert made(document, data, tmp_path)["warnings"][0].startswith("The tree asks Id. Its values name or count")


def test_fold_trees_show_stability_of_tree(tmp_path):
    document, data = trained(tmp_path, "cart", folds=4)
    found = made(document, data, tmp_path)
    rows = counted(document, data)
    assert found["performance"]["cross_validation"]["right"] == document["metrics"]["cross_validation"]["correct"]
    for k, (nodes, one) in enumerate(zip(document["rows"]["fold_trees"], found["stability"]["agreement"], strict=True)):
        at = [i for i, sign in enumerate(document["rows"]["folds"]) if int(sign) == k]
        other = counted(document | {"nodes": nodes}, data)
        assert (one["rows"], one["right"]) == (len(at), sum(other[i][2] == rows[i][2] for i in at))


def test_constraints_are_listed_with_what_was_counted(tmp_path):
    document, data = trained(tmp_path, "exact", max_leaves=3, min_leaf=4)
    lines = {c["claim"]: c["verdict"] for c in made(document, data, tmp_path)["constraints"]}
    assert lines == {"max_leaves": "recounted", "min_leaf": "recounted"}


def test_a_refuted_file_and_other_rows_have_no_dossier(tmp_path):
    document, data = trained(tmp_path, "cart", test_share=0.4)
    other = tmp_path / "other.csv"
    other.write_text(csv_text(seed=6))
    with pytest.raises(ModelFileError, match="so no dossier is written"):
        made(document, other, tmp_path)
    document["metrics"]["test"]["correct"] += 1
    with pytest.raises(ModelFileError, match="metrics test"):
        made(document, data, tmp_path)


def test_twenty_classes_and_many_leaves(tmp_path):
    found = made(*many_classes(tmp_path), tmp_path)
    assert found["tree"]["leaves"] > 30
    assert sum(map(sum, found["performance"]["unseen"]["confusion"])) == found["data"]["unseen_rows"]
    assert found["performance"]["unseen"]["scores"] is None


def test_bootstraps_are_trained_by_the_method_and_counted(tmp_path):
    document, data = trained(tmp_path, "cart", test_share=0.3)
    found = made(document, data, tmp_path, limits=DossierLimits(bootstrap_seconds=60.0))["bootstraps"]
    assert found == made(document, data, tmp_path, limits=DossierLimits(bootstrap_seconds=60.0))["bootstraps"]
    assert (found["trees"], found["ended"], found["reason"]) == (20, 20, "")
    assert found["rows"] == document["rows"]["held_out"].count("1")
    assert 0 <= found["same_root"] <= found["same_root_columns"] <= 20
    assert found["agreement"]["lowest"] <= found["agreement"]["mean"] <= found["agreement"]["highest"] <= 1
    assert max(found["asked"].values()) <= 20 == len(found["leaves"])


def test_bootstraps_of_rows_that_decide_alone_give_the_same_tree(tmp_path):
    """Any sample of these rows leads to the same split, so all trees agree."""
    width = Column(schema=ColumnSchema(name="width", kind=ColumnKind.NUMERIC), cells=np.repeat([0.0, 1.0], 60))
    labels = Labels(name="y", classes=("a", "b"), codes=np.repeat([0, 1], 60).astype(np.int32))
    table = Table(columns=(width,), row_numbers=np.arange(1, 121))
    document = train(TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": 1})).model.to_json()
    data = tmp_path / "data.csv"
    data.write_text("width,y\n" + "".join(f"{int(x)},{'ab'[int(x)]}\n" for x in width.values))
    found = made(document, data, tmp_path, limits=DossierLimits(bootstrap_seconds=60.0))["bootstraps"]
    assert (found["ended"], found["same_root"], found["same_columns"]) == (20, 20, 20)
    assert found["agreement"] == {"mean": 1.0, "lowest": 1.0, "highest": 1.0}
    assert found["rows_are"] == "all"


def test_timed_out_bootstraps_are_reported(tmp_path):
    document, data = trained(tmp_path, "cart")
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    rows = rows_of(read_model(path), data)
    times = iter(range(0, 1000, 4))
    found = bootstraps(rows, 10.0, clock=lambda: float(next(times)))
    assert (found["trees"], found["ended"]) == (20, 2)
    assert bootstraps(rows, 0.0) is None
    moments = iter((0.0, 11.0))
    none = bootstraps(rows, 10.0, clock=lambda: next(moments))
    assert (none["ended"], none["agreement"], none["reason"]) == (0, None, "")


def test_bootstraps_without_a_tree_name_the_reason(tmp_path, monkeypatch):
    """A limit of the model file and an impossible sample are no lack of time."""
    document, data = trained(tmp_path, "cart")
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    rows = rows_of(read_model(path), data)
    tree = rows.model.tree

    def train_trees(*trees):
        results = iter(trees)
        monkeypatch.setattr("trainer.dossier.bootstraps._Retraining.tree", lambda *_: next(results))
        return bootstraps(rows, 10.0, clock=lambda: 0.0)

    assert train_trees(*[tree] * 20)["reason"] == ""
    found = train_trees(tree, None)
    assert (found["ended"], found["reason"]) == (1, OWN_LIMIT)
    text = render_to_string("dossier/document/_stability.html", {"record": {"bootstraps": found}, "about": {}})
    assert "did not end within" not in text
    assert OWN_LIMIT in text


def test_error_floor_counts_equal_rows_of_other_classes(tmp_path):
    document, data = trained(tmp_path, "cart")
    found = made(document, data, tmp_path)["error_floor"]
    rows = [tuple(row[c["name"]] for c in document["columns"]) for row in csv.DictReader(data.open())]
    classes = [row[document["target"]] for row in csv.DictReader(data.open())]
    joint = Counter(zip(rows, classes, strict=True))
    best = {cells: max(n for (other, _), n in joint.items() if other == cells) for cells in rows}
    assert found["errors"] == len(rows) - sum(best.values())
    assert found["rows"] == len(rows)
