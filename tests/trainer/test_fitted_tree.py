"""The attributes of a fitted classifier agree with its tree."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from trainer import ExactTreeClassifier
from trainer.errors import ParameterError
from trainer.tree.describe import rules_text
from trainer.tree.export.forms import EXPORTS

RNG = np.random.default_rng(8)
FRAME = pd.DataFrame({"age": RNG.integers(18, 80, 90), "town": RNG.choice(["north", "south", "west"], 90)})
LABELS = np.where((FRAME["age"] > 50) & (FRAME["town"] != "west"), 1, 0)


@pytest.fixture(scope="module")
def fitted():
    return ExactTreeClassifier(depth=2).fit(FRAME, LABELS)


def test_rules_and_picture_are_those_of_the_tree(fitted):
    assert fitted.rules() == rules_text(fitted.tree_)
    assert fitted.plot().to_json() == fitted.tree_.plot().to_json()


def test_change_that_is_explained_gives_the_other_answer(fitted):
    rows = FRAME.head(20)
    explanation = fitted.explain(rows)
    assert [own["label"] for own in explanation] == [str(label) for label in fitted.predict(rows)]
    for i, own in enumerate(explanation):
        changed = rows.iloc[[i]].copy()
        for column, step in own["flip"]["changes"].items():
            changed[column] = step[1]
        assert str(fitted.predict(changed)[0]) == own["flip"]["label"] != own["label"]


def test_change_keeps_fixed_columns_and_reaches_wanted_class(fitted):
    rows = FRAME.head(20)
    for own in fitted.explain(rows, wanted=1, change={"age": "never"}):
        assert own["flip"] is None or (set(own["flip"]["changes"]) == {"town"} and own["flip"]["label"] == "1")
    with pytest.raises(ValueError, match=r"wanted: 2 is not a class. The classes are: 0, 1\."):
        fitted.explain(rows, wanted=2)
    with pytest.raises(ParameterError, match="no such column"):
        fitted.explain(rows, change={"aeg": "up"})


@pytest.mark.parametrize("form", EXPORTS)
def test_every_form_is_returned_and_written(fitted, form, tmp_path):
    content = fitted.export(form, tmp_path / "tree")
    assert content
    assert (tmp_path / "tree").read_bytes() == (content.encode() if isinstance(content, str) else content)


def test_exported_python_answers_like_the_tree(fitted):
    made: dict = {}
    exec(fitted.export("python"), made)
    rows = FRAME.head(30)
    assert [made["predict"](row) for row in rows.to_dict("records")] == [str(label) for label in fitted.predict(rows)]


def test_unknown_form_is_refused_with_those_there_are(fitted):
    with pytest.raises(ParameterError, match=r"'sq' is not one of rules, .*sql"):
        fitted.export("sq")
