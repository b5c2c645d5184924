"""Parameters and methods as declarations: what is parsed, what is refused, and with which words."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from trainer.errors import ParameterError
from trainer.methods import METHODS, get
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


def test_every_bad_parameter_is_named_at_once():
    with pytest.raises(ParameterError) as found:
        get("cart").settings({"depth": "deep", "time_limit": -1, "colour": "red"})
    assert set(found.value.errors) == {"depth", "time_limit", "colour"}
    assert "It takes: depth" in found.value.errors["colour"]


def test_an_unknown_method_is_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match=r"Known: .*cart"):
        get("magic")
    assert len({m.id for m in METHODS}) == len(METHODS)


def test_having_changes_only_what_is_asked():
    changed = having(DEPTH, default=7)
    assert (changed.default, changed.name, changed.maximum, DEPTH.default) == (7, "depth", 20, 3)


@pytest.mark.parametrize(
    ("value", "fraction"),
    [(0.01, Fraction(1, 100)), ("0.1", Fraction(1, 10)), (0, Fraction(0)), (1e-5, Fraction(1, 100_000))],
)
def test_decimal_numbers_are_taken_exactly(value, fraction):
    assert exact_fraction(value) == fraction
