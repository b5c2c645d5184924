"""Command options that control how a table is read."""

from __future__ import annotations

import argparse

import pytest

from trainer.cli.reading_flags import add_reading_flags, given_of, policies_of, policy_of
from trainer.errors import ParameterError


def options(*arguments: str) -> dict:
    parser = argparse.ArgumentParser()
    add_reading_flags(parser)
    return vars(parser.parse_args(arguments))


def test_options_for_the_table_and_for_one_column():
    asked = options(
        "--decimal",
        "comma",
        "--decimal",
        "size=.",
        "--thousands",
        "price=space",
        "--kind",
        "when=date:dd/mm/yyyy",
        "--missing",
        "refuse",
        "--missing",
        "unknown",
        "--missing",
        "price=-",
        "--missing=n.d.",
        "--delimiter",
        "tab",
        "--encoding",
        "cp1252",
        "--skip-top",
        "2",
    )
    given = given_of(asked)
    assert given.decimal == {"": ",", "size": "."}
    assert given.thousands == {"price": " "}
    assert given.kinds == {"when": "date:dd/mm/yyyy"}
    assert given.missing == {"": ("unknown", "n.d."), "price": ("-",)}
    assert given.structure == {
        "delimiter": "\t",
        "encoding": "cp1252",
        "skip_top": 2,
        "skip_bottom": None,
        "header": None,
        "sheet": None,
    }
    assert policy_of(asked) == "refuse"
    assert policy_of(options("--missing", "unknown")) == "learn"
    assert policies_of(options("--missing", "drop", "--missing", "size=refuse")) == {"size": "refuse"}
    assert given_of(options()).to_json() == {}


@pytest.mark.parametrize(
    "wrong", [("--decimal", "x"), ("--kind", "when"), ("--kind", "when=soon"), ("--thousands", "price=dots")]
)
def test_unknown_claims_are_reported(wrong):
    with pytest.raises(ParameterError):
        given_of(options(*wrong))
