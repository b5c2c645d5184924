"""Values in other forms: spellings of a category, and numbers as a data frame stores them."""

from __future__ import annotations

import datetime
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import trainer
from trainer.data.reader import load_for_model
from trainer.data.rows import parse_rows
from trainer.errors import DataError, RowError
from trainer.prediction import mlflow_flavour
from trainer.table import UnknownPolicy
from trainer.tree.file import read_model, write
from trainer.tree.nodes import Tree

CODES = np.arange(120) % 6
LABELS = np.isin(CODES, (1, 4, 5)).astype(int)
TRUTHS = CODES % 2 == 1


def fitted(column):
    return trainer.make_classifier("cart", depth=3).fit(pd.DataFrame({"c": column}), LABELS)


@pytest.mark.parametrize(
    ("trained", "predicted"),
    [
        (pd.Series(CODES).astype("category"), pd.Series(CODES.astype(float)).astype("category")),
        (pd.Series(CODES.astype(str)), pd.Series(CODES.astype(float)).astype(str)),
        (pd.Series([f" {c} " for c in "abcdef"]).take(CODES), pd.Series(list("ABCDEF")).take(CODES)),
        (pd.Series(["caf\u00e9", *"bcdef"]).take(CODES), pd.Series(["cafe\u0301", *"bcdef"]).take(CODES)),
    ],
    ids=["ints to floats", "texts to decimals", "case and blanks", "composition"],
)
def test_another_form_of_a_category_is_known(trained, predicted):
    classifier = fitted(trained.reset_index(drop=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answers = classifier.predict(pd.DataFrame({"c": predicted.reset_index(drop=True)}))
    assert (answers == LABELS).all()


def test_truth_as_text_is_known():
    labels = TRUTHS.astype(int)
    frame = pd.DataFrame({"c": np.where(TRUTHS, "true", "false")})
    classifier = trainer.make_classifier("cart", depth=1).fit(frame, labels)
    for other in (np.where(TRUTHS, "True", "False"), np.where(TRUTHS, "1", "0")):
        assert (classifier.predict(pd.DataFrame({"c": other})) == labels).all()


def test_unknown_categories_are_one_warning():
    classifier = fitted(pd.Series(list("abcdef")).take(CODES).reset_index(drop=True))
    cells = ["z", "zz", "z", *"abcdef"]
    with pytest.warns(UserWarning, match="Column 'c': 3 of 9 cells .* such as 'z', 'zz'") as caught:
        classifier.predict(pd.DataFrame({"c": cells}))
    assert len(caught) == 1
    classifier.set_params(unknown="raise")
    with pytest.raises(ValueError, match="unknown='warn'"):
        classifier.predict(pd.DataFrame({"c": cells}))
    with pytest.raises(ValueError, match="'ask' is not one of branch, warn, refuse or raise"):
        trainer.make_classifier("cart", unknown="ask").fit(pd.DataFrame({"c": cells}), [0, 1, 0] * 3)


def test_choice_for_unknown_categories_is_kept_in_the_file(tmp_path):
    frame = pd.DataFrame({"c": pd.Series(list("abcdef")).take(CODES).reset_index(drop=True)})
    classifier = trainer.make_classifier("cart", depth=3, unknown="refuse").fit(frame, LABELS)
    classifier.save(tmp_path / "model.json")
    tree = Tree.load(str(tmp_path / "model.json"))
    assert tree.schema[0].unknown == "refuse"
    with pytest.raises(RowError, match=r"rows\[1\]: column 'c' has 'z', a category that training did not have"):
        parse_rows(tree.schema, tree.used_columns, [{"c": "a"}, {"c": "z"}])
    (tmp_path / "new.csv").write_text("c\na\nz\n")
    with pytest.raises(DataError, match="Line 3: column 'c' has 'z', a category that training did not have"):
        load_for_model(tmp_path / "new.csv", tree.schema)
    quiet = trainer.make_classifier("cart", depth=3, unknown="branch").fit(frame, LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quiet.predict(pd.DataFrame({"c": ["z"]}))


def test_loaded_classifier_keeps_the_policy_of_each_column(tmp_path):
    cells = pd.Series(list("abcdef")).take(CODES).reset_index(drop=True)
    frame = pd.DataFrame({"c": cells, "d": cells[::-1].to_numpy()})
    trainer.make_classifier("cart", depth=3, unknown="refuse").fit(frame, LABELS).save(tmp_path / "model.json")
    loaded = trainer.load(tmp_path / "model.json")
    assert loaded.get_params()["unknown"] == "refuse"
    with pytest.raises(ValueError, match="unknown='warn'"):
        loaded.predict(frame.assign(c="z"))
    with pytest.warns(UserWarning, match="'z'"):
        loaded.set_params(unknown="warn").predict(frame.assign(c="z"))
    model = read_model(tmp_path / "model.json")
    schema = (replace(model.tree.schema[0], unknown=UnknownPolicy.WARN), model.tree.schema[1])
    write(replace(model, tree=replace(model.tree, schema=schema)), tmp_path / "mixed.json")
    mixed = trainer.load(tmp_path / "mixed.json")
    with pytest.warns(UserWarning, match="Column 'c': .*such as 'z'. Every question"):
        mixed.predict(frame.assign(c="z"))
    assert model.tree.used_names == {"c"}
    with pytest.warns(UserWarning, match="Column 'd': 120 cells do not fit .* The tree does not ask this column"):
        mixed.predict(frame.assign(d="z"))


NUMBERS = np.where(np.arange(120) % 3, 0.0, np.arange(120) / 7)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.arrays.SparseArray(NUMBERS, fill_value=0.0)),
        pd.Series(pd.arrays.SparseArray(NUMBERS.astype(np.longdouble), fill_value=0)),
        pd.Series(NUMBERS.astype(np.longdouble)),
    ],
    ids=["sparse", "sparse long doubles", "long doubles"],
)
def test_numbers_in_another_form_are_numbers(column):
    labels = (NUMBERS > 9).astype(int)
    plain = pd.DataFrame({"c": NUMBERS})
    classifier = trainer.make_classifier("cart", depth=1).fit(pd.DataFrame({"c": column}), labels)
    assert classifier.tree_.schema[0].kind == "numeric"
    assert (classifier.predict(pd.DataFrame({"c": column})) == labels).all()
    assert (classifier.predict(plain) == labels).all()


def test_sparse_truths_are_binary():
    column = pd.Series(pd.arrays.SparseArray(TRUTHS, fill_value=False))
    classifier = trainer.make_classifier("cart", depth=1).fit(pd.DataFrame({"c": column}), TRUTHS.astype(int))
    assert classifier.tree_.schema[0].kind == "binary"


def test_long_doubles_beyond_double_precision_are_refused():
    column = np.array([1, 1 + np.finfo(np.longdouble).eps, 2, 3], np.longdouble)
    if len(np.unique(column.astype(float))) == len(np.unique(column)):
        pytest.skip("a long double is a double here, as with MSVC; it is longer on Linux on x86-64, where CI runs")
    with pytest.raises(ValueError, match="'c' has decimals that differ in more digits than a double has"):
        trainer.make_classifier("cart").fit(pd.DataFrame({"c": column}), [0, 1, 0, 1])


@pytest.mark.parametrize(
    "cells",
    [
        [datetime.date(2024, 1, day) for day in (1, 2, 3, 4)],
        [pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-02", tz="UTC")] * 2,
        [datetime.timedelta(days=1), datetime.time(3), np.datetime64("2024"), None],
        pd.period_range("2024-01", periods=4, freq="M"),
        pd.interval_range(0, 4),
    ],
    ids=["dates", "times with zones", "durations", "periods", "intervals"],
)
def test_objects_that_are_no_text_are_refused(cells):
    frame = pd.DataFrame({"c": pd.Series(cells) if not isinstance(cells, list) else pd.Series(cells, dtype=object)})
    with pytest.raises(ValueError, match=r"Column 'c' holds .* number or a text before training"):
        trainer.make_classifier("cart").fit(frame, [0, 1, 0, 1])


def test_intervals_of_a_declared_category_are_categories():
    bins = pd.cut(NUMBERS, [-1, 2, 9, 20])
    classifier = trainer.make_classifier("cart", depth=2).fit(pd.DataFrame({"c": bins}), (NUMBERS > 9).astype(int))
    assert classifier.score(pd.DataFrame({"c": bins}), (NUMBERS > 9).astype(int)) == 1.0


@pytest.mark.parametrize(
    ("text", "number"), [("True", 1.0), ("false", 0.0), (" 9.5 ", 9.5), ("1e1", 10.0), ("NA", None), ("", None)]
)
def test_text_in_a_column_of_numbers_means_a_number(text, number):
    classifier = trainer.make_classifier("cart", depth=2).fit(pd.DataFrame({"c": NUMBERS}), (NUMBERS > 9).astype(int))
    expected = classifier.apply(pd.DataFrame({"c": [np.nan if number is None else number]}))
    assert (classifier.apply(pd.DataFrame({"c": [text]})) == expected).all()
    assert (classifier.apply(pd.DataFrame({"c": pd.Series([text, 1], dtype=object)}))[:1] == expected).all()


@pytest.mark.parametrize("text", ["1_0", "٣", "inf", "x", "9007199254740993"])
def test_text_that_is_no_number_of_a_file_is_refused(text):
    classifier = trainer.make_classifier("cart", depth=2).fit(pd.DataFrame({"c": NUMBERS}), (NUMBERS > 9).astype(int))
    with pytest.raises(ValueError, match=r"'c' was numeric in training and now contains something else|infinity"):
        classifier.predict(pd.DataFrame({"c": [text]}))


MIXED = [i * 7 % 23 for i in range(59)]


@pytest.mark.parametrize(
    "column",
    [pd.Series([*MIXED, "broken"], dtype=object), pd.Series([*map(str, MIXED), "broken"])],
    ids=["numbers and a word", "texts and a word"],
)
def test_words_among_numbers_are_one_warning(column):
    with pytest.warns(
        UserWarning, match="Column 'c': 59 of 60 values are numbers, but others such as 'broken'"
    ) as seen:
        trainer.make_classifier("cart", depth=1).fit(pd.DataFrame({"c": column}), np.arange(60) % 2)
    assert len(seen) == 1


@pytest.mark.parametrize(
    "column",
    [pd.Series([*MIXED, "broken"]).astype("category"), pd.Series(list("ab1") * 20)],
    ids=["declared categories", "mostly words"],
)
def test_other_texts_are_no_warning(column):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trainer.make_classifier("cart", depth=1).fit(pd.DataFrame({"c": column}), np.arange(60) % 2)


def test_mark_among_numbers_is_an_empty_cell():
    frame = pd.DataFrame({"c": pd.Series([*MIXED[:58], "NA", " "], dtype=object)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier = trainer.make_classifier("cart", depth=1).fit(frame, [v > 11 for v in [*MIXED[:58], 0, 0]])
        assert classifier.predict(frame)[:58].tolist() == [v > 11 for v in MIXED[:58]]
    assert classifier.tree_.schema[0].kind == "numeric"


TRUE_FALSE = [True, False, False] * 8
ONE_ZERO = [int(value) for value in TRUE_FALSE]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("y", "plain"),
    [
        (pd.Series(TRUE_FALSE, dtype="boolean"), True),
        (pd.Series(TRUE_FALSE, dtype="bool[pyarrow]"), True),
        (pd.Series(TRUE_FALSE, dtype=object), True),
        (np.array(TRUE_FALSE, dtype=object), True),
        (pd.Series(TRUE_FALSE).astype("category"), True),
        (pd.DataFrame({"y": pd.Series(TRUE_FALSE, dtype="boolean")}), True),
        (pd.Series(ONE_ZERO, dtype="Int64"), 1),
        (pd.Series(ONE_ZERO, dtype="UInt8"), 1),
        (pd.Series(ONE_ZERO, dtype=object), 1),
        (pd.Series(ONE_ZERO, dtype="int64[pyarrow]"), 1),
    ],
)
@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_answers_have_the_type_of_the_labels(y, plain, tmp_path):
    frame = pd.DataFrame({"c": np.array(ONE_ZERO, float)})
    classifier = trainer.make_classifier("cart", depth=1).fit(frame, y)
    assert type(classifier.predict(frame)[0].item()) is type(plain)
    assert classifier.predict(frame).tolist() == np.asarray(y).ravel().tolist()
    assert classifier.score(frame, y) == 1
    classifier.save(tmp_path / "saved.json")
    with mlflow_flavour._file_of(classifier) as file:
        for path in (file, tmp_path / "saved.json"):
            answer = mlflow_flavour.TreePredictor(read_model(path)).predict([{"c": 1.0}])
            assert (type(answer[0].item()), answer[0]) == (type(plain), plain)


def test_labels_of_two_types_are_refused():
    with pytest.raises(ValueError, match="partly true and false and partly numbers"):
        trainer.make_classifier("cart", depth=1).fit(
            pd.DataFrame({"c": [1.0, 2.0]}), pd.Series([True, 0], dtype=object)
        )


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([b"a", b"b"] * 60),
        pd.Series([b"a", b"b"] * 60, dtype=pd.ArrowDtype(pa.binary())),
        pd.Series([b"a", b"b"] * 60, dtype=object),
    ],
    ids=["polars", "arrow", "objects"],
)
def test_column_of_bytes_is_refused(column):
    frame = pl.DataFrame({"c": column}) if isinstance(column, pl.Series) else pd.DataFrame({"c": column})
    with pytest.raises(ValueError, match=r"Column 'c' holds bytes. Turn it into a number or a text"):
        trainer.make_classifier("cart", depth=1).fit(frame, LABELS)
