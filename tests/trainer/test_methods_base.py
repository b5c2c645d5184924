"""Declared parameters and methods: parsing, refusals and messages."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from trainer import make_classifier
from trainer.data.problem import SettingNames
from trainer.errors import ParameterError
from trainer.methods.base import (
    BINARISE,
    DEPTH,
    LEAF_PENALTY,
    MEMORY_LIMIT,
    SEED,
    TIME_LIMIT,
    Parameter,
    exact_fraction,
    having,
)
from trainer.registry import METHODS, get

SWITCH = Parameter(name="switch", type="boolean", default=False, label="Switch", help="On or off.")
NOTE = Parameter(name="note", type="text", default="", label="Note", help="Any text.")


@pytest.mark.parametrize(
    ("parameter", "raw", "value"),
    [
        (DEPTH, "4", 4), (DEPTH, 4.0, 4), (DEPTH, " 0 ", 0), (DEPTH, 20, 20), (LEAF_PENALTY, "0.01", 0.01),
        (LEAF_PENALTY, 0, 0.0), (TIME_LIMIT, "1e3", 1000.0), (MEMORY_LIMIT, "", None), (MEMORY_LIMIT, None, None),
        (BINARISE, "none", "none"), (SWITCH, "on", True), (SWITCH, "0", False), (SWITCH, True, True), (SWITCH, "No", False),
        (NOTE, "", ""), (NOTE, "some text", "some text"),
    ],
)  # fmt: skip
def test_values_are_read_from_text_and_json(parameter, raw, value):
    found = parameter.parse(raw)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("parameter", "raw", "words"),
    [
        (DEPTH, "-1", "from 0 to 20"), (DEPTH, 21, "out of range"), (DEPTH, "2.5", "whole number"),
        (DEPTH, "two", "not a number"), (DEPTH, "", "a value is needed"), (DEPTH, None, "a value is needed"),
        (DEPTH, True, "not a number"), (DEPTH, [3], "not a number"), (DEPTH, {}, "not a number"),
        (DEPTH, "nan", "finite"), (DEPTH, "inf", "finite"), (DEPTH, 10**400, "not a number"),
        (LEAF_PENALTY, "1", "from 0 to 0.999"), (LEAF_PENALTY, "-0.1", "out of range"), (TIME_LIMIT, -1, "out of range"),
        (MEMORY_LIMIT, 1, "out of range"), (SEED, 2**31, "out of range"), (BINARISE, "buckets", "not one of"),
        (SWITCH, "perhaps", "neither true nor false"), (SWITCH, 2, "neither true nor false"),
    ],
)  # fmt: skip
def test_wrong_values_are_refused_with_what_is_allowed(parameter, raw, words):
    with pytest.raises(ValueError, match=words):
        parameter.parse(raw)


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.id)
def test_defaults_satisfy_their_own_declaration(method):
    settings = method.settings({})
    assert set(settings) == {p.name for p in method.parameters}
    for parameter in method.parameters:
        assert settings[parameter.name] == parameter.default
        if parameter.default is not None:
            assert parameter.parse(str(parameter.default)) == parameter.default
        assert parameter.help.endswith(".")
        assert parameter.label
        assert parameter.name.isidentifier()
    assert json.loads(json.dumps(method.to_json()))["id"] == method.id
    assert {"time_limit", "memory_limit", "threads", "seed"} <= set(settings)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("forbidden", ["age", "sex"], "age; sex"),
        ("forbidden", (), ""),
        ("forbidden_pairs", [("age", "sex"), "age + income"], "age + sex; age + income"),
        ("recall", {"yes": 0.9, True: 1}, "yes: 0.9; True: 1"),
        ("recall", ["yes: 0.9"], "yes: 0.9"),
    ],
)
def test_python_values_of_restrictions_become_their_texts(name, value, text):
    assert get("exact").settings({name: value})[name] == text


@pytest.mark.parametrize(
    ("value", "text"), [({"age": 1, "price": -1, "sex": 0}, "age up; price down"), (["age up"], "age up")]
)
def test_python_values_of_directions_become_their_text(value, text):
    assert get("bendoct").settings({"monotone": value})["monotone"] == text


@pytest.mark.parametrize("text", ["1e10000000", "1e-10000000", "9" * 10_000_000, "1/0", "1e", "0.1.2", "", "one"])
def test_nan_or_infinite_number_is_refused_at_once(text):
    with pytest.raises(ValueError, match=r"digits|zero|literal"):
        exact_fraction(text)


def test_endless_numbers_and_texts_do_not_hold_up_a_check():
    names = SettingNames(columns=("a",), classes=("no", "yes"))
    exact = get("exact")
    odt = get("odt")
    # the message must not speak of a range, because the value is not even computed
    with pytest.raises(ParameterError, match="is not a share"):
        exact.check(exact.settings({"recall": "yes: 1e10000000"}), names)
    for text in ("1e10000000", "1/0"):
        with pytest.raises(ParameterError, match="is neither a number nor"):
            odt.check(odt.settings({"negative_weight": text}), names)
    with pytest.raises(ParameterError, match="the text has 10,001 characters, but at most 10,000 are possible"):
        get("exact").settings({"forbidden": "x" * 10_001})


def test_a_frontier_proves_every_size_whatever_gap_is_asked_for():
    cut_h = get("cut-h")
    settings = cut_h.settings({"pareto": True, "then_fewest": True, "mip_gap": 0.1})
    cut_h.check(settings, SettingNames(columns=("a",), classes=("no", "yes")))


def test_long_list_of_names_is_shortened():
    names = SettingNames(columns=tuple(f"c{j}" for j in range(1500)), classes=("no", "yes"))
    with pytest.raises(ParameterError, match=r"'taste' is not a column. Columns: c0, .*c19 and 1,480 more\."):
        names.column("taste", "forbidden")
    with pytest.raises(ParameterError, match=r"'Yse' is not a class. Did you mean 'yes'\? Classes: no, yes\."):
        names.label("Yse", "recall")


def test_every_bad_parameter_is_named_at_once():
    with pytest.raises(ParameterError) as error:
        get("cart").settings({"depth": "deep", "time_limit": -1, "colour": "red"})
    assert set(error.value.errors) == {"depth", "time_limit", "colour"}
    assert "It takes: depth" in error.value.errors["colour"]


# Settings within their own range, with the error that the data or another setting causes.
BESIDE = {
    "class": ("bendoct", {"recall": "maybe: 0.5"}, {"recall": "'maybe' is not a class. Classes: no, yes."}),
    "share": ("exact", {"recall": "yes: 1.5"}, {"recall": "1.5 is not between 0 and 1. Write a share such as 0.9."}),
    "no share": ("exact", {"recall": "yes"}, {"recall": "'yes' has no minimum recall. Write 'class: share', for example 'yes: 0.9; no: 0.8'."}),
    "pair": ("flowoct", {"forbidden_pairs": "a"}, {"forbidden_pairs": "'a' is not a pair of columns. Write two columns with a + between them, as in 'age + income'."}),
    "column of a pair": ("exact", {"forbidden_pairs": "a + c"}, {"forbidden_pairs": "'c' is not a column. Columns: a, b."}),
    "groups": ("oct", {"fairness": "parity"}, {"fairness_column": "'' is not a column. Columns: a, b."}),
    "favoured class": (
        "binoct", {"fairness": "opportunity", "fairness_column": "a", "fairness_class": "x"},
        {"fairness_class": "'x' is not a class. Classes: no, yes."},
    ),
    "direction": ("bendoct", {"monotone": "a"}, {"monotone": "'a' has no direction. Write 'column up' or 'column down'."}),
    "monotone and deep": (
        "bendoct-accelerated", {"monotone": "a up", "depth": 5}, {"monotone": "Monotone columns are possible up to depth 4, but 'depth' is 5. Set a lower depth, or leave 'monotone' empty."},
    ),
    "two at once": (
        "bendoct", {"monotone": "z up", "recall": "x: 1"},
        {"monotone": "'z' is not a column. Columns: a, b.", "recall": "'x' is not a class. Classes: no, yes."},
    ),
    "not asked": ("exact", {"forbidden": "a; z"}, {"forbidden": "'z' is not a column. Columns: a, b."}),
    "thresholds inside": (
        "oct", {"thresholds": "variables", "max_leaves": 3},
        {"thresholds": "must be 'questions' with constraints, which need one variable per question. Change it, or leave the constraints out."},
    ),
    "rows of questions": (
        "oct", {"thresholds": "variables", "single_features": True},
        {"single_features": "must be off when 'thresholds' is 'variables', which has no questions to write rows for."},
    ),
    "pruning by zero": ("oc1", {"pruning": "1/0"}, {"pruning": "'1/0' is neither 'cross-validation' nor a number from 0 to 1."}),
    "pruning": ("cart", {"pruning": "much"}, {"pruning": "'much' is neither 'cross-validation' nor a number from 0 to 1."}),
    "balanced": (
        "cut-h", {"balanced": True, "pareto": True, "min_leaf": 2},
        {
            "pareto": "has no use with 'balanced', since balanced trees of one depth all have the same size. Leave one of the two out.",
            "min_leaf": "must be 1 with 'balanced', since balanced trees may have leaves without rows. Leave one of the two out.",
        },
    ),
    "full proof": (
        "cutw-h", {"then_fewest": True, "mip_gap": 0.1}, {"then_fewest": "needs a full proof. Set mip_gap to 0, or leave then_fewest out."},
    ),
    "positive": ("odt", {"positive": "x"}, {"positive": "'x' is not a class. Classes: no, yes."}),
    "weight": ("odt", {"negative_weight": "much"}, {"negative_weight": "'much' is neither a number nor 'balanced'. Write a number from 0 to 1000, or 'balanced'."}),
    "weight and share": (
        "odt", {"negative_weight": "2", "sensitivity": 0.5},
        {"negative_weight": "has no effect if one share is required and the other is maximised. Leave it at 1."},
    ),
    "topology": (
        "odt", {"topology": "[[.]"},
        {"topology": "'[[.]' is not a topology. Use depth-1, depth-2, depth-2.5, depth-3, imbalanced, auto, or brackets such as [[..][..]] for depth 2."},
    ),
    "topology and share": (
        "odt", {"topology": "auto", "sensitivity": 0.0},
        {"topology": "'auto' compares accuracies, but a share is required here. Choose a topology."},
    ),
    "frontier": (
        "odt", {"frontier": True, "solver": "highs"}, {"frontier": "Only solver=search finds the whole frontier. Choose it, or leave the frontier out."},
    ),
    "technique": ("odt", {"without": "magic"}, {"without": "'magic' is not a technique. Choose among anchor, relax and strengthen."}),
}  # fmt: skip


@pytest.mark.parametrize("case", BESIDE)
def test_settings_are_checked_together_and_against_data_names(case):
    method, parameters, errors = BESIDE[case]
    declared = get(method)
    with pytest.raises(ParameterError) as error:
        declared.check(declared.settings(parameters), SettingNames(columns=("a", "b"), classes=("no", "yes")))
    assert error.value.errors == errors


@pytest.mark.parametrize("parameters", [{"sensitivity": 0.5}, {"frontier": True}, {"negative_weight": "2"}])
def test_settings_for_two_classes_are_refused_with_three(parameters):
    odt = get("odt")
    with pytest.raises(ParameterError) as error:
        odt.check(odt.settings(parameters), SettingNames(columns=("a",), classes=("x", "y", "z")))
    assert error.value.errors == dict.fromkeys(
        parameters, "needs two classes, but the target has 3. Leave it out, or choose another target."
    )


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.id)
def test_defaults_pass_every_check(method):
    for classes in (("x",), ("x", "y"), ("x", "y", "z")):
        method.check(method.settings({}), SettingNames(columns=("a",), classes=classes))


def test_an_unknown_method_is_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match=r"Known: .*cart"):
        get("magic")
    assert len({m.id for m in METHODS}) == len(METHODS)


def test_having_changes_only_requested_fields():
    changed = having(DEPTH, default=7)
    assert (changed.default, changed.name, changed.maximum, DEPTH.default) == (7, "depth", 20, 3)


@pytest.mark.parametrize(
    ("value", "fraction"),
    [(0.01, Fraction(1, 100)), ("0.1", Fraction(1, 10)), (0, Fraction(0)), (1e-5, Fraction(1, 100_000))],
)
def test_decimal_numbers_are_taken_exactly(value, fraction):
    assert exact_fraction(value) == fraction


@pytest.mark.slow
@pytest.mark.parametrize("method", [m for m in METHODS if m.parameter("leaf_penalty")], ids=lambda m: m.id)
def test_leaf_penalty_help_says_whether_tree_depends_on_it(method):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, (60, 3)).astype(float)
    y = (X[:, 0] != X[:, 1]).astype(int)
    y[:6] = 1 - y[:6]
    settings = {"depth": 2} | ({"time_limit": 30} if method.parameter("time_limit") else {})
    if method.id == "odt":
        X = pd.DataFrame(X.astype(int).astype(str), columns=list("abc"))
    free, priced = (make_classifier(method.id, **settings, leaf_penalty=price).fit(X, y) for price in (0.0, 0.45))
    same = free.tree_.to_json() == priced.tree_.to_json()
    assert free.tree_.n_leaves > 1
    assert same == ("The tree does not depend on it" in method.parameter("leaf_penalty").help)
    if not same:
        assert priced.tree_.n_leaves == 1


@pytest.mark.parametrize("one", [1, np.int64(1), np.float64(1)])
def test_mapping_may_have_numpy_names_and_values(one):
    """Labels of `np.unique` and entries of arrays are numpy scalars."""
    costs = get("exact").settings({"costs": {np.int64(0): {one: np.int64(5)}}})["costs"]
    assert json.loads(costs) == {"0": {str(one): 5}}


def test_mapping_with_pairs_as_names_is_refused():
    with pytest.raises(ParameterError, match="costs: the mapping cannot be written as JSON"):
        get("exact").settings({"costs": {("a", "b"): 5}})
