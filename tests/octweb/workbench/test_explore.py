"""The page of good trees: one card for equal answers, and tolerances in rows."""

from __future__ import annotations

import pytest
from django.http import QueryDict

from octweb.figures.good_trees import tolerance_figure
from octweb.workbench import explore


def test_trees_with_equal_answers_share_a_card():
    listed = [{"number": k} for k in (1, 2, 3, 4)]
    differ = [[0, 2, 0, 1], [2, 0, 2, 1], [0, 2, 0, 1], [1, 1, 1, 0]]
    cards = explore._cards(listed, differ)
    assert [(c["number"], [t["number"] for t in c["alike"]]) for c in cards] == [(1, [3]), (2, []), (4, [])]


def test_trees_that_were_not_compared_have_a_card_each():
    cards = explore._cards([{"number": 1}, {"number": 2}], [])
    assert [(c["number"], c["alike"]) for c in cards] == [(1, []), (2, [])]


@pytest.mark.parametrize(
    ("form", "tolerance"),
    [
        ("", {"slack_rows": "3"}),
        ("slack_rows=2.5", {"slack_rows": "2.5"}),
        ("slack=0.1", {"slack": "0.1"}),
        ("slack_cost=9", {"slack_cost": "9"}),
    ],
)
def test_an_empty_tolerance_is_the_default(form, tolerance):
    request = explore.request_of(QueryDict(form), {"slack_rows": "3"})
    assert {name: value for name, value in request.items() if name.startswith("slack")} == tolerance


@pytest.mark.parametrize(("rows", "words"), [(1.0, "1 row"), (2.5, "2.5 rows"), (1200, "1,200 rows"), (1.04, "1 row")])
def test_rows_are_counted_with_one_decimal(rows, words):
    assert explore.rows_text(rows) == words


def test_wrong_rows_are_those_of_other_classes_than_the_answer():
    nodes = [{"split": {}, "counts": [5, 7]}, {"class": "a", "counts": [2, 3]}, {"class": "b", "counts": [3, 4]}]
    assert explore._wrong_rows({"nodes": nodes}, ("a", "b")) == 6


def test_curve_is_in_rows_of_the_best_tree():
    figure = tolerance_figure([[0.0, 1], [0.5, 4]], best_rows=20.0)
    assert figure["data"][0]["x"] == [0.0, 10.0]
    assert "rows" in figure["data"][0]["hovertemplate"]
    assert tolerance_figure([[0.0, 1], [0.5, 4]])["data"][0]["x"] == [0.0, 50.0]


@pytest.mark.parametrize(("weighed", "words"), [(False, "5 rows"), (True, "5 of weight")])
def test_tolerance_of_weights_is_no_number_of_rows(weighed, words):
    assert explore._tolerance_words({"slack_rows": "5"}, None, weighed=weighed) == words
