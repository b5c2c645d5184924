"""Sentences about the result of an experiment."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from octweb.experiments import wording


@pytest.mark.parametrize(
    ("weighted", "words"),
    [(False, "(394 of 496; 95\u202f% interval 70.0 to 80.0)"), (True, "(by weight; 95\u202f% interval 70.0 to 80.0)")],
)
def test_weights_are_not_counted_as_rows(weighted, words):
    assert wording.counts_words(394, 496, (0.7, 0.8), weighted=weighted) == words
    assert wording.counts_words(3, 4, None, weighted=False) == "(3 of 4)"


def test_held_out_rows_of_a_weighted_experiment_are_counted(monkeypatch):
    record = {"n": 496, "correct": 394, "accuracy": 0.75, "rows": 40}
    monkeypatch.setattr(wording, "held_out", lambda experiment: record)
    monkeypatch.setattr(wording, "interval_of", lambda test: None)
    board = SimpleNamespace(
        experiment=SimpleNamespace(nested=False, chosen_id=1, weight="w"), measure=SimpleNamespace(by_cost=False)
    )
    assert "of the weight of 40 rows that took no part in any of this" in wording.honest_words(board)
    assert "496" not in wording.honest_words(board)
