"""Frontiers and good trees with weights: a row of weight 3 counts like three rows."""

from __future__ import annotations

import json
from fractions import Fraction
from io import StringIO

import numpy as np
import pytest
from django.core.management import call_command

COMMANDS = {
    "frontier": ["--method=exact", "--depth=2"],
    "pareto": ["--depth=1", "--set=first_trees=cart", "--set=search_seconds=1"],
    "good-trees": ["--depth=2", "--slack-rows=2", "--list=0"],
}


def run(command, *arguments):
    out = StringIO()
    call_command(command, *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def table_of(seed, weights):
    """Return rows of two columns and two classes, each repeated according to its weight."""
    rng = np.random.default_rng(seed)
    rows = [f"{rng.integers(0, 4)},{rng.integers(0, 3)},{rng.choice(['yes', 'no'])}" for _ in weights]
    weighted = "\n".join(["a,b,y,w", *(f"{row},{w}" for row, w in zip(rows, weights, strict=True))])
    repeated = "\n".join(["a,b,y", *(row for row, w in zip(rows, weights, strict=True) for _ in range(int(w)))])
    return weighted + "\n", repeated + "\n"


def counts(command, record):
    """Return the members of a record that count rows or weight."""
    if command == "good-trees":
        return record["count"], record["limit"], record["optimum"], record["rows"]["of"], record["first_questions"]
    points = record["points"] if command == "frontier" else record["branchings"]
    return record["n"], [(p.get("leaves"), p["correct"], p["bound"]) for p in points]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_weights_count_like_repeated_rows(command, tmp_path, count):
    for seed in range(1 if command == "pareto" else 2 * count):
        weights = np.random.default_rng(seed).integers(1, 4, 14)
        weighted, repeated = table_of(seed, weights)
        (tmp_path / "w.csv").write_text(weighted)
        (tmp_path / "r.csv").write_text(repeated)
        asked = ["--target=y", "--json", *COMMANDS[command]]
        document = json.loads(run(command, str(tmp_path / "w.csv"), "--weight=w", *asked).splitlines()[-1])
        many = json.loads(run(command, str(tmp_path / "r.csv"), *asked).splitlines()[-1])
        assert counts(command, document) == counts(command, many), seed
        assert document["weight"] == {"column": "w", "step": "1", "rows": 14}
        assert "weight" not in many


def test_halves_are_shown_as_weights_beside_rows(tmp_path):
    weighted, _ = table_of(1, [0.5, 1.5, 2] * 5)
    (tmp_path / "w.csv").write_text(weighted)
    asked = [str(tmp_path / "w.csv"), "--weight=w", "--target=y", "--method=exact", "--depth=2"]
    record = json.loads(run("frontier", *asked, "--json").splitlines()[-1])
    step = Fraction(record["weight"]["step"])
    assert step * record["n"] == 20
    lines = run("frontier", *asked).splitlines()
    assert lines[0].split() == ["leaves", "correct", "rows", "accuracy", "proved"]
    for point, line in zip(record["points"], lines[1:], strict=False):
        assert float(line.split()[1]) == float(step * point["correct"])
        assert int(line.split()[2]) == point["correct_rows"]


def test_slack_of_good_trees_is_a_weight(tmp_path):
    """A tree that costs 0.5 of weight more than the best one is within a tolerance of 0.5, but not of 0.4."""
    weighted, _ = table_of(4, [1.0, 0.5] * 6)
    doubled, _ = table_of(4, [2, 1] * 6)
    (tmp_path / "w.csv").write_text(weighted)
    (tmp_path / "d.csv").write_text(doubled)
    asked = ["--weight=w", "--target=y", "--depth=1", "--json", "--list=0"]
    for slack in (0, 0.5, 1, 1.5):
        document = json.loads(
            run("good-trees", str(tmp_path / "w.csv"), f"--slack-rows={slack}", *asked).splitlines()[-1]
        )
        twice = run("good-trees", str(tmp_path / "d.csv"), f"--slack-rows={2 * slack}", *asked)
        assert document["count"] == json.loads(twice.splitlines()[-1])["count"]


def test_frontier_of_costs_is_printed_in_the_unit(tmp_path):
    _, repeated = table_of(2, [1] * 14)
    (tmp_path / "r.csv").write_text(repeated)
    asked = [
        str(tmp_path / "r.csv"),
        "--target=y",
        "--method=exact",
        "--depth=2",
        "--cost=yes>no=2.5",
        "--cost-unit=EUR",
    ]
    record = json.loads(run("frontier", *asked, "--json").splitlines()[-1])
    assert record["unit"] == "EUR"
    assert [p["cost"] for p in record["points"]] == sorted({p["cost"] for p in record["points"]}, reverse=True)
    lines = run("frontier", *asked).splitlines()
    assert "EUR" in lines[0]
    assert [float(line.split()[1]) for line in lines[1:]] == [p["cost"] for p in record["points"]]
    assert run("frontier", *asked, "--markdown").startswith("| leaves |")
