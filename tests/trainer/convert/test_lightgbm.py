"""LightGBM trees from text and JSON predict the same class as LightGBM for each row."""

from __future__ import annotations

import json

import lightgbm
import numpy as np
import pandas as pd
import pytest

from trainer.convert import from_lightgbm
from trainer.errors import ConversionError
from trainer.table import MISSING_CATEGORY, ColumnKind
from trainer.tree.nodes import Tree
from trainer.tree.splits import Subset

TREES = 50
ROWS = 1000
LEVELS = ["u", "v 2", "wä", "x", "y"]
SMALL = {
    "n_estimators": 1,
    "min_child_samples": 2,
    "min_data_per_group": 1,
    "cat_smooth": 1.0,
    "verbose": -1,
    "n_jobs": 1,
}


def frame(rng: np.random.Generator, rows: int, *, gaps: bool) -> pd.DataFrame:
    """Return numbers, integers, and categories of text and of numbers. With `gaps`, two columns have missing values."""
    found = pd.DataFrame(
        {
            "a": rng.normal(size=rows),
            "b": rng.integers(-3, 4, rows).astype(float),
            "c": pd.Categorical(rng.choice(LEVELS, rows), categories=LEVELS),
            "d": pd.Categorical(rng.integers(5, 45, rows), categories=range(5, 45)),
        }
    )
    if gaps:
        found.loc[rng.random(rows) < 0.2, "a"] = np.nan
        found.loc[rng.random(rows) < 0.2, "c"] = np.nan
    return found


def matrix_of(tree: Tree, rows: pd.DataFrame) -> np.ndarray:
    """Return the rows as the tree reads them. A missing value of categories is a separate category."""
    out = np.full((len(rows), len(tree.schema)), np.nan)
    for j, column in enumerate(tree.schema):
        cells = rows.iloc[:, j]
        if column.kind is ColumnKind.NUMERIC:
            out[:, j] = cells.astype(float)
        else:
            place = {word: code for code, word in enumerate(column.categories)}
            out[:, j] = [place[MISSING_CATEGORY if pd.isna(cell) else str(cell)] for cell in cells]
    return out


@pytest.mark.slow
def test_every_row_has_the_class_of_lightgbm():
    kinds = set()
    sides = set()
    for seed in range(TREES):
        rng = np.random.default_rng(seed)
        X = frame(rng, 200, gaps=seed % 2 == 0)
        y = (
            (X["a"].fillna(1.0) > 0) ^ X["c"].isin(["u", "x"]) ^ (X["d"].cat.codes % 3 == 0) ^ (rng.random(200) < 0.2)
        ).astype(int)
        # The high learning rate gives the model leaves of both classes, although the start is shifted.
        model = lightgbm.LGBMClassifier(num_leaves=int(rng.integers(2, 12)), learning_rate=1.0, **SMALL).fit(X, y)
        rows = frame(rng, ROWS, gaps=True)
        for text in (model.booster_.model_to_string(), json.dumps(model.booster_.dump_model())):
            tree = from_lightgbm(text)
            own = matrix_of(tree, rows)
            assert [tree.classes[k] for k in tree.predict(own)] == [str(k) for k in model.predict(rows)], seed
            theirs = model.predict(rows, pred_leaf=True)[:, 0]
            pairs = set(zip(tree.apply(own), theirs, strict=True))
            assert len(pairs) == len(set(theirs)) == len({a for a, _ in pairs})
        kinds |= {v.split.kind for v in tree.branches}
        sides |= {v.split.empty_goes_left for v in tree.branches if v.split.kind == "threshold"}
    assert kinds == {"threshold", "subset"}
    assert sides == {True, False}


def test_categories_are_named_as_in_pandas_and_others_go_right():
    rng = np.random.default_rng(3)
    X = frame(rng, 300, gaps=False)[["c"]]
    model = lightgbm.LGBMClassifier(num_leaves=2, learning_rate=1.0, **SMALL).fit(
        X, X["c"].isin(["u", "wä"]).astype(int)
    )
    tree = from_lightgbm(model.booster_.model_to_string(), ["no", "yes"])
    assert tree.schema[0].categories == (*LEVELS, MISSING_CATEGORY)
    split = tree.nodes[0].split
    assert isinstance(split, Subset)
    assert {tree.schema[0].categories[c] for c in split.codes} in ({"u", "wä"}, {"v 2", "x", "y"})
    left = dict.fromkeys(split.codes, tree.classes[tree.nodes[tree.nodes[0].left].label])
    assert set(left.values()) == {"yes" if 0 in split.codes else "no"}


def test_a_model_without_a_question_is_a_leaf():
    model = lightgbm.train(
        {"objective": "binary", "verbose": -1}, lightgbm.Dataset(np.zeros((50, 1)), np.arange(50) % 3 == 0), 1
    )
    for text in (model.model_to_string(), json.dumps(model.dump_model())):
        tree = from_lightgbm(text)
        assert [v.is_leaf for v in tree.nodes] == [True]
        assert tree.nodes[0].label == 0


def trained(objective: str = "binary", rounds: int = 1, **more) -> lightgbm.Booster:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0) * (objective == "multiclass")
    classes = {"num_class": 3} if objective == "multiclass" else {}
    return lightgbm.train({"objective": objective, "verbose": -1, **classes, **more}, lightgbm.Dataset(X, y), rounds)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda: trained(rounds=3), "3 trees"),
        (lambda: trained("multiclass"), "each of 3 classes"),
        (lambda: trained("regression"), "objective .* is 'regression'"),
        (lambda: trained(linear_tree=True), "linear models"),
    ],
)
def test_other_than_one_binary_tree_is_refused(model, words):
    with pytest.raises(ConversionError, match=words):
        from_lightgbm(model().model_to_string())


def test_zero_as_missing_is_read_if_it_follows_the_comparison():
    rng = np.random.default_rng(1)
    X = np.where(rng.random((400, 1)) < 0.4, 0.0, rng.normal(size=(400, 1)) + 2.0)
    model = lightgbm.train(
        {"objective": "binary", "zero_as_missing": True, "verbose": -1, "num_leaves": 2},
        lightgbm.Dataset(X, (X[:, 0] > 2).astype(int)),
        1,
    )
    text = model.model_to_string()
    threshold = float(text.split("threshold=")[1].split()[0])
    assert threshold > 1
    left = text.replace("decision_type=4", "decision_type=6")
    right = text.replace("decision_type=6", "decision_type=4")
    assert left != right
    rows = np.array([[0.0], [1e-36], [1.5], [2.5], [-1.0], [threshold]])
    own = lightgbm.Booster(model_str=left).predict(rows, pred_leaf=True)[:, 0]
    assert (from_lightgbm(left).apply(rows) == own + 1).all()
    with pytest.raises(ConversionError, match="treats 0 in column"):
        from_lightgbm(right)


@pytest.mark.parametrize("cut", [0.1, 0.35, 0.6, 0.9])
def test_a_damaged_file_is_an_error_in_words(cut):
    text = trained().model_to_string()
    head = text.split("end of trees")[0]
    whole = json.dumps(trained().dump_model())
    with pytest.raises(ConversionError):
        from_lightgbm(head[: int(len(head) * cut)])
    with pytest.raises(ConversionError):
        from_lightgbm(whole[: int(len(whole) * cut)])


@pytest.mark.parametrize("text", ["", "{}", "{", "[]", "tree\n", "tree\nend of trees", '{"tree_info": []}', "\x00"])
def test_other_texts_are_refused(text):
    with pytest.raises(ConversionError):
        from_lightgbm(text)


def test_children_that_turn_in_a_circle_are_refused():
    text = trained(num_leaves=3).model_to_string()
    lines = [
        line if not line.startswith("left_child=") else "left_child=" + " ".join("0" for _ in line.split())
        for line in text.splitlines()
    ]
    with pytest.raises(ConversionError, match="two parents"):
        from_lightgbm("\n".join(lines))


def test_names_of_classes_must_be_two_and_differ():
    text = trained().model_to_string()
    assert from_lightgbm(text, ["no", "yes"]).classes == ("no", "yes")
    with pytest.raises(ConversionError, match="two classes"):
        from_lightgbm(text, ["no"])
    with pytest.raises(ConversionError, match="differ"):
        from_lightgbm(text, ["no", "no"])
