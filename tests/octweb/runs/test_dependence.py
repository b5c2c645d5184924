"""Groups and times on the command line."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from trainer.check.recount import verify


@pytest.fixture
def visits(tmp_path):
    """Visits of 20 patients, German dates, the class by patient."""
    path = tmp_path / "visits.csv"
    rows = [
        f"P{i // 4};{1 + i // 4}.{1 + i % 4:02}.2024;{i % 5};{'yes' if (i // 4) % 3 == 0 else 'no'}" for i in range(80)
    ]
    path.write_text("patient;day;x;class\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return str(path)


def run(capsys, command: str, *arguments: str) -> dict:
    call_command(command, *arguments, "--target=class", "--method=exact", "--depth=1", "--json")
    return json.loads(capsys.readouterr().out.strip().splitlines()[-1])


def test_train_with_groups_writes_a_model_that_verifies(capsys, visits, tmp_path):
    model = str(tmp_path / "model.json")
    found = run(capsys, "train", visits, "--group=patient", "--folds=4", "--test-share=0.25", f"--output={model}")
    assert found["group"] == {"column": "patient"}
    assert found["unseen_accuracy"]["groups"] == 20
    assert [fold["groups"] for fold in found["by_fold"]] == [5] * 4
    verdicts = {f.claim: f.verdict for f in verify(model, visits)}
    assert verdicts["folds"] == verdicts["rows held out"] == "recounted"
    assert "refuted" not in verdicts.values()


def test_train_by_time_holds_the_last_rows_out(capsys, visits, tmp_path):
    model = tmp_path / "model.json"
    found = run(
        capsys, "train", visits, "--time=day", "--ignore=day", "--folds=3", "--test-share=0.25", f"--output={model}"
    )
    assert found["time"] == {"column": "day"}
    held_out = [i for i, sign in enumerate(json.loads(model.read_text())["rows"]["held_out"]) if sign == "1"]
    assert held_out == [i for i in range(80) if i % 4 == 3]  # April
    assert "refuted" not in {f.verdict for f in verify(model, visits)}


def test_evaluate_by_groups_has_wider_intervals(capsys, visits, tmp_path):
    plain = run(capsys, "evaluate", visits, "--folds=4")
    state = tmp_path / "state.jsonl"
    model = tmp_path / "model.json"
    grouped = run(capsys, "evaluate", visits, "--folds=4", "--group=patient", f"--state={state}", f"--model={model}")
    assert grouped["interval"][1] - grouped["interval"][0] > plain["interval"][1] - plain["interval"][0]
    assert all(json.loads(line)["group"] == "patient" for line in state.read_text().splitlines())
    assert "refuted" not in {f.verdict for f in verify(model, visits)}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--group=patent"], "no group column 'patent' in the file"),
        (["--group=patient", "--folds=30"], "20 groups, too few for 30 folds"),
        (["--time=patient"], "cannot order the rows"),
        (["--group=day", "--time=day"], "cannot be the group column and the time column"),
    ],
)
def test_bad_columns_end_with_a_sentence(visits, arguments, words):
    with pytest.raises(CommandError, match=words):
        call_command("train", visits, "--target=class", "--method=cart", *arguments)
