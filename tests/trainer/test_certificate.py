"""Certificates: gaps, what counts as proved, and the record of the model file."""

import json
import math
from dataclasses import FrozenInstanceError

import pytest

from trainer.certificate import OPTIMAL_GAP, Certificate, Guarantee, Limits, Progress, Status, proves, relative_gap

TREE = Certificate(method="exact", guarantee=Guarantee.TREE, status=Status.OPTIMAL, objective=0.8)


@pytest.mark.parametrize(
    ("objective", "bound", "gap"),
    [
        (0.8, 0.9, 0.125),
        (0.8, 0.7, 0.125),
        (0.8, 0.8, 0.0),
        (-0.5, -0.25, 0.5),
        (0.0, 1e-10, 1.0),
        (2e-10, 3e-10, 0.5),
    ],
)
def test_gap_is_relative_to_the_objective(objective, bound, gap):
    assert relative_gap(objective, bound) == pytest.approx(gap)


@pytest.mark.parametrize("unknown", [None, math.inf, -math.inf, math.nan])
def test_gap_is_none_if_a_value_is_unknown(unknown):
    assert relative_gap(unknown, 0.5) is None
    assert relative_gap(0.5, unknown) is None


def test_only_closed_gap_of_finished_search_proves():
    assert proves("optimal", 0.0)
    assert proves("optimal", OPTIMAL_GAP)
    assert not proves("optimal", 1.001 * OPTIMAL_GAP)
    assert not proves("optimal", None)
    assert not proves("time_limit", 0.0)
    assert Certificate(**vars(TREE) | {"gap": 0.0}).proved_optimal
    assert not TREE.proved_optimal


def test_record_omits_unused_members():
    record = TREE.to_json()
    omitted = {"weight_error", "note", "costs", "column_prices", "weights", "class_weights", "counts"}
    assert not (omitted | {"subtrees_proved", "subtrees"}) & set(record)
    assert record["bound"] is record["gap"] is record["goal"] is record["splits_proved"] is None
    assert (record["mip_gap"], record["correct"], record["nodes"], record["seconds"]) == (0.0, 0, 0, 0.0)
    assert (record["n"], record["leaves"], record["depth"]) == (0, 0, 0)
    assert (record["leaf_penalty"], record["solver"], record["unproved"], record["cuts"]) == ("0", "", "", {})


def test_record_keeps_members_that_are_set():
    members = {
        "weight_error": 0.25, "note": "Rounded.", "costs": {"unit": "EUR"}, "column_prices": {"unit": ""},
        "weights": {"column": "w"}, "class_weights": {"a": "2"}, "counts": "0" * 64, "subtrees_proved": 0, "subtrees": 3,
    }  # fmt: skip
    record = Certificate(**vars(TREE) | members | {"evidence": ({"kind": "mip"},)}).to_json()
    assert {name: record[name] for name in members} == members
    assert record["evidence"] == [{"kind": "mip"}]
    assert type(record["guarantee"]) is type(record["status"]) is str
    assert (record["guarantee"], record["status"]) == ("tree", "optimal")


def test_records_have_no_number_that_json_lacks():
    assert Certificate(**vars(TREE) | {"bound": math.inf}).to_json()["bound"] is None
    record = Progress(t=1.5, phase="search", incumbent=math.nan, bound=0.5, gap=math.inf).to_json()
    assert json.loads(json.dumps(record, allow_nan=False)) == {
        "t": 1.5,
        "phase": "search",
        "incumbent": None,
        "bound": 0.5,
        "gap": None,
        "nodes": 0,
        "leaves": None,
        "compile_seconds": 0.0,
    }


def test_run_without_limits_has_one_thread():
    assert (Limits().time, Limits().memory, Limits().threads) == (None, None, 1)


@pytest.mark.parametrize("record", [TREE, Progress(t=0.0, phase="search"), Limits()], ids=lambda r: type(r).__name__)
def test_records_cannot_be_changed(record):
    with pytest.raises(FrozenInstanceError):
        setattr(record, next(iter(vars(record))), None)
