"""Estimators that predict values in another form than those of the training."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import trainer

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
    with pytest.warns(UserWarning, match="Column 'c': 3 of 9 cells .* such as 'z', 'zz'") as found:
        classifier.predict(pd.DataFrame({"c": cells}))
    assert len(found) == 1
    classifier.set_params(unknown="raise")
    with pytest.raises(ValueError, match="unknown='warn'"):
        classifier.predict(pd.DataFrame({"c": cells}))
    with pytest.raises(ValueError, match="'ask' is not warn or raise"):
        trainer.make_classifier("cart", unknown="ask").fit(pd.DataFrame({"c": cells}), [0, 1, 0] * 3)
