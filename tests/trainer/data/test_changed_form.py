"""Values in a changed form: the proposed readings, and how many answers each would change."""

from __future__ import annotations

import csv
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from trainer import ExactTreeClassifier
from trainer.data.changed_form import propose_factor, propose_words
from trainer.data.column_statistics import describe_columns
from trainer.prediction.form_report import FormWatch, report_forms
from trainer.prediction.predict_file import predict_file
from trainer.table import ColumnKind, ColumnSchema
from trainer.tree.file import ModelFile, read_model
from trainer.tree.nodes import DraftBranch, DraftLeaf, grow
from trainer.tree.splits import Subset, Threshold

SCHEMA = (
    ColumnSchema(name="weight", kind=ColumnKind.NUMERIC),
    ColumnSchema(name="sex", kind=ColumnKind.CATEGORICAL, categories=("Female", "Male")),
)


@pytest.mark.parametrize(
    ("factor", "unit"),
    [
        (1000, ""),
        (1 / 1000, ""),
        (100, ""),
        (10, ""),
        (2.2046226218, "pounds to kilograms"),
        (1 / 2.54, "inches to centimetres"),
        (1 / 88.42, "mg/dl to µmol/l"),
    ],
)
def test_factor_of_a_unit_is_found(factor, unit):
    rng = np.random.default_rng(3)
    values = rng.uniform(52, 118, 200) * factor
    proposal = propose_factor("weight", values, 50.0, 120.0)
    assert proposal is not None
    assert proposal.factor == pytest.approx(1 / factor)
    assert proposal.unit == unit
    assert proposal.strange == ((values < 50) | (values > 120)).sum()


@pytest.mark.parametrize(
    "values",
    [
        np.linspace(50, 120, 50),  # the same values as in training
        np.r_[np.linspace(50, 120, 50), [9999.0] * 20],  # the large value is a code
        np.full(50, 9999.0),  # no spread
        np.full(5, 60000.0),  # too few values
        np.full(50, np.nan),
        np.linspace(-4000, 9000, 50),  # no factor makes the values fit
    ],
)
def test_no_factor_is_proposed_without_a_reason(values):
    assert propose_factor("weight", values, 50.0, 120.0) is None


@pytest.mark.parametrize(
    ("unknown", "categories", "words"),
    [
        ({"F": 4, "M": 5}, ("Female", "Male"), {"F": "Female", "M": "Male"}),
        ({"w": 4, "m": 5}, ("female", "male"), {"w": "female", "m": "male"}),
        ({"Frau": 4, "Mann": 5}, ("Female", "Male"), {"Frau": "Female", "Mann": "Male"}),
        ({"ja": 4, "nein": 5}, ("no", "yes"), {"ja": "yes", "nein": "no"}),
        ({"north-west": 9}, ("north", "south"), {"north-west": "north"}),
        ({"F": 4, "x": 5}, ("Female", "Male"), None),  # half of the cells would still be unknown
        ({"M": 9}, ("Male", "Married"), None),  # M may mean either category
        ({"no": 4, "nor": 4}, ("north", "south"), None),  # both words would mean the same category
        ({"F": 1}, ("Female", "Male"), None),  # too few cells
    ],
)
def test_words_for_categories(unknown, categories, words):
    found = propose_words("sex", unknown, 10, categories)
    assert (None if found is None else dict(found.words)) == words


@pytest.fixture
def model():
    draft = DraftBranch(
        split=Threshold(feature=0, threshold=80.0),
        left=DraftBranch(split=Subset(feature=1, codes=(0,)), left=DraftLeaf(label=1), right=DraftLeaf(label=0)),
        right=DraftLeaf(label=1),
    )
    rows = np.column_stack([np.linspace(50, 120, 40), np.arange(40) % 2])
    labels = (np.arange(40) % 2).astype(np.int32)
    tree = describe_columns(grow(draft, rows, labels, schema=SCHEMA, classes=("no", "yes")), rows)
    return ModelFile(tree=tree, target="class", name="m")


def rows_file(path, weights, sexes):
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["weight", "sex"])
        writer.writerows(zip(weights, sexes, strict=True))
    return path


def labels_of(model, path):
    out = path.with_suffix(".out.csv")
    predict_file(model, path, out)
    with out.open(encoding="utf-8") as stream:
        return [row["label"] for row in csv.DictReader(stream)]


@pytest.mark.parametrize("seed", range(5))
def test_changed_answers_are_those_of_the_corrected_file(model, tmp_path, seed):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(50, 120, 60).round(1)
    sexes = rng.choice(["F", "M", "Female"], 60, p=[0.5, 0.4, 0.1])
    strange = rows_file(tmp_path / "strange.csv", weights * 1000, sexes)
    summary = predict_file(model, strange, tmp_path / "out.csv")
    assert [own.column for own in summary.proposals] == ["weight", "sex"]
    before = labels_of(model, strange)
    for own, path in zip(
        summary.proposals,
        (
            rows_file(tmp_path / "a.csv", weights, sexes),
            rows_file(tmp_path / "b.csv", weights * 1000, [{"F": "Female", "M": "Male"}.get(s, s) for s in sexes]),
        ),
        strict=True,
    ):
        after = labels_of(model, path)
        assert (own.changed, own.rows) == (sum(a != b for a, b in zip(before, after, strict=True)), 60)
        assert own.sentence in summary.notes
        assert f"Then {own.changed:,} of 60 answers would be others." in own.sentence
    assert summary.to_json()["proposals"][0]["factor"] == pytest.approx(0.001)


def test_estimator_warns_of_another_unit():
    X = np.linspace(50, 120, 40).reshape(-1, 1)
    classifier = ExactTreeClassifier(depth=1).fit(X, X[:, 0] > 80)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier.predict(X)
    with pytest.warns(UserWarning, match="5 values lie outside"):
        classifier.predict(X[:5] * 1000)  # too few values to detect the unit
    with pytest.warns(UserWarning, match="divided by 1000 they would fit"):
        classifier.predict(X * 1000)


def test_other_spellings_are_counted(model, tmp_path):
    path = rows_file(tmp_path / "rows.csv", [60, 70, 80], ["female", "Male", " FEMALE "])
    summary = predict_file(model, path, tmp_path / "out.csv")
    assert (summary.respelled, summary.unknown, summary.proposals) == ({"sex": 2}, {}, ())
    assert "Column 'sex': 2 cells have another spelling of a category and count as it." in summary.notes


@pytest.mark.parametrize(
    ("low", "high", "change", "unit"),
    [
        (-10.0, 40.0, lambda c: c * 1.8 + 32, "°F to °C"),
        (35.0, 42.0, lambda c: c * 1.8 + 32, "°F to °C"),
        (50.0, 105.0, lambda f: (f - 32) / 1.8, "°C to °F"),
        (-10.0, 40.0, lambda c: c + 273.15, "K to °C"),
        (263.0, 313.0, lambda k: k - 273.15, "°C to K"),
    ],
)
def test_shifted_units_are_found(low, high, change, unit):
    values = np.random.default_rng(5).uniform(low, high, 200)
    proposal = propose_factor("temperature", change(values), low, high)
    assert proposal is not None
    assert proposal.unit == unit
    assert proposal.reread(change(values)) == pytest.approx(values)
    assert f"turned from {unit} they would fit" in proposal.sentence


@pytest.mark.parametrize(("every", "factor"), [(2, 10), (4, 1000), (3, 0.01)])
def test_part_of_the_numbers_in_another_unit_is_found(every, factor):
    values = np.random.default_rng(3).uniform(52, 118, 200)
    strange = np.arange(200) % every == 0
    mixed = np.where(strange, values * factor, values)
    proposal = propose_factor("weight", mixed, 50.0, 120.0)
    assert proposal is not None
    assert proposal.strange == strange.sum()
    assert proposal.reread(mixed) == pytest.approx(values)
    assert "these would fit like the other numbers" in proposal.sentence


def test_drifting_values_are_no_unit():
    assert propose_factor("size", np.linspace(175, 205, 50), 50.0, 120.0) is None


def test_codes_are_neither_judged_nor_scaled(model, tmp_path):
    schema = (replace(model.tree.schema[0], special=(60000.0,)), model.tree.schema[1])
    coded = replace(model, tree=replace(model.tree, schema=schema))
    weights = [*np.linspace(51, 119, 30) * 1000, *[60000.0] * 10]
    path = rows_file(tmp_path / "rows.csv", weights, ["Male"] * 40)
    (found,) = predict_file(coded, path, tmp_path / "out.csv").proposals
    assert (found.strange, found.cells, found.factor) == (30, 30, 0.001)
    read = np.array(weights) / 1000
    read[30:] = 60000.0  # a code must not be divided
    other = labels_of(coded, rows_file(tmp_path / "read.csv", read, ["Male"] * 40))
    assert found.changed == sum(a != b for a, b in zip(labels_of(coded, path), other, strict=True))
    scaled = labels_of(coded, rows_file(tmp_path / "scaled.csv", np.array(weights) / 1000, ["Male"] * 40))
    assert scaled != other  # otherwise the count above could not tell the two apart


def test_estimator_warns_once_of_other_words():
    frame = pd.DataFrame({"sex": ["Female", "Male"] * 20})
    classifier = ExactTreeClassifier(depth=1).fit(frame, [0, 1] * 20)
    with pytest.warns(UserWarning, match="40 of 40 cells .* such as 'F', 'M'") as seen:
        classifier.predict(pd.DataFrame({"sex": ["F", "M"] * 20}))
    assert len(seen) == 1
    assert "Perhaps 'F' for 'Female', 'M' for 'Male'. Then 20 of 40 answers would be others." in str(seen[0].message)


def test_sampling_misses_no_factor(count, tmp_path):
    """If most numbers of a call are inside the training range, it is not examined in full, because nothing would be proposed."""
    rng = np.random.default_rng(11)
    X = rng.uniform(0, 100, (60, 3))
    model = ExactTreeClassifier(depth=2, leaf_penalty=0).fit(X, (X[:, 0] > 40) ^ (X[:, 1] > 60))
    model.save(tmp_path / "model.json")
    tree = read_model(tmp_path / "model.json").tree
    proposed = 0
    for _ in range(20 * count):
        share = rng.choice([0, 0.3, 0.5, 0.7, 1])
        Z = rng.uniform(0, 100, (int(rng.integers(20, 60)), 3))
        for j in rng.permutation(3)[: rng.integers(1, 4)]:
            Z[rng.permutation(len(Z))[: round(share * len(Z))], j] *= rng.choice([10, 0.001, 2.54, 1000])
        Z[rng.random(Z.shape) < rng.choice([0, 0.4])] = np.nan
        watch = FormWatch(tree)
        watch.add(Z, {})
        proposals = watch.proposals()
        proposed += bool(proposals)
        assert {proposal.column for proposal in report_forms(tree, Z, {}).proposals} == {
            proposal.column for proposal in proposals
        }
    assert proposed > 0


@pytest.mark.parametrize("small", [np.uint8, np.int16, np.float16, np.float32])
def test_changed_answers_do_not_depend_on_the_type_of_the_array(small):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.1, 9.9, (200, 1))
    tree = ExactTreeClassifier(depth=2).fit(X, (X[:, 0] > 5.5) & (X[:, 0] < 7.3))
    rows = np.round(10 * X)
    texts = []
    for array in (rows, rows.astype(small)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tree.predict(array)
        texts.append([str(warning.message) for warning in caught])
    assert "answers would be others" in texts[0][0]
    assert texts[0] == texts[1]
