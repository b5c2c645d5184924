"""Lists show automatic names in two parts: the name and its settings."""

from __future__ import annotations

import pytest

from octweb.core.names import split_name
from octweb.runs.words import run_name
from trainer.registry import METHODS


@pytest.mark.parametrize(
    ("name", "method", "parts"),
    [
        ("school, Exact search, depth 3", "Exact search", ("school", "Exact search, depth 3")),
        ("school, Exact search", "Exact search", ("school", "Exact search")),
        ("a, b, CART, depth 3", "CART", ("a, b", "CART, depth 3")),
        ("My tree", "CART", ("My tree", "")),
        ("rules, CARTesian", "CART", ("rules, CARTesian", "")),
        (", CART", "CART", (", CART", "")),
        ("a, b", "", ("a, b", "")),
    ],
)
def test_names_are_split_before_the_method(name, method, parts):
    assert split_name(name, method) == parts


def test_automatic_names_of_all_methods_leave_the_data_set():
    for method in METHODS:
        assert split_name(run_name("school", method, method.settings({}).to_json()), method.title)[0] == "school"
