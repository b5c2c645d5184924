"""`manage.py frontier`: pairs as text and JSON, and refusals."""

from __future__ import annotations

import json
from collections import Counter
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from trainer.certificate import Status
from trainer.methods.monitor import Monitor


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.csv"
    lines = [f"{'abc'[i % 3]},{'xy'[i % 2]},{'yes' if (i % 3 == 0) != (i % 7 == 0) else 'no'}" for i in range(60)]
    path.write_text("colour,shape,answer\n" + "\n".join(lines) + "\n")
    return path


def run(*arguments):
    out = StringIO()
    call_command("frontier", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def test_pairs_fall_in_specificity_and_are_proved(rows):
    record = json.loads(run(str(rows), "--target=answer", "--depth=2", "--json").splitlines()[-1])
    points = record["points"]
    assert record["positive"] == "yes"
    assert len(points) > 1
    assert all(p["proved"] for p in points)
    assert (record["status"], record["finished"], record["bounds"]) == ("optimal", True, [])
    assert [p["specificity"] for p in points] == sorted((p["specificity"] for p in points), reverse=True)
    assert points[-1]["sensitivity"] == 1


def test_the_text_has_a_line_for_each_pair(rows):
    assert run(str(rows), "--target=answer", "--depth=1").count("yes\n") >= 2


def test_a_stopped_frontier_is_not_called_optimal(rows, monkeypatch):
    """This holds whatever is proved about the single tree in the model."""
    questions = Counter()

    def stopped(monitor):
        questions[monitor] += 1
        if questions[monitor] > 12:
            monitor.stop(Status.TIME_LIMIT)
        return questions[monitor] > 12

    monkeypatch.setattr(Monitor, "stopped", stopped)
    record = json.loads(run(str(rows), "--target=answer", "--depth=3", "--json").splitlines()[-1])
    assert (record["finished"], record["status"]) == (False, "time_limit")
    assert record["bounds"][-1]["sensitivity"] == 1
    assert "stopped (time_limit)" in run(str(rows), "--target=answer", "--depth=3").splitlines()[-1]


def test_a_bad_class_is_refused(rows):
    with pytest.raises(CommandError, match="not a class"):
        run(str(rows), "--target=answer", "--set=positive=maybe")


def test_exact_gives_the_best_tree_for_each_number_of_leaves(rows):
    arguments = (str(rows), "--target=answer", "--method=exact", "--depth=3")
    record = json.loads(run(*arguments, "--json").splitlines()[-1])
    points = record["points"]
    assert record["status"] == "optimal"
    assert [p["leaves"] for p in points][:2] == [1, 2]
    assert [p["correct"] for p in points] == sorted({p["correct"] for p in points})
    assert all(p["proved"] for p in points)
    table = run(*arguments, "--markdown").splitlines()
    assert len(table) == len(points) + 2
    assert all(line.startswith("|") and line.endswith("|") for line in table)


@pytest.mark.parametrize(
    "asked", ["recall=yes: 0.5", "max_columns=1", "forbidden_pairs=colour + shape", "optimal_trees=2"]
)
@pytest.mark.parametrize("costs", [[], ["--cost=yes>no=5"]])
def test_settings_that_the_frontier_does_not_support_are_named(rows, asked, costs):
    name = asked.partition("=")[0]
    with pytest.raises(CommandError, match=f"{name}: "):
        run(str(rows), "--target=answer", "--method=exact", "--depth=2", f"--set={asked}", *costs)
