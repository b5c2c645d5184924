"""`manage.py verify`."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from tests.octweb.small_models import csv_of_small_table


@pytest.fixture
def files(tmp_path, cart_document):
    (tmp_path / "model.json").write_text(json.dumps(cart_document))
    (tmp_path / "data.csv").write_text(csv_of_small_table())
    return tmp_path


def test_true_claims_pass_and_the_last_line_is_json(files, capsys):
    call_command("verify", str(files / "model.json"), str(files / "data.csv"), json=True)
    record = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert record["verdict"] == "recounted"
    assert {"structure", "data", "counts", "objective"} <= {f["claim"] for f in record["claims"]}


def test_a_false_claim_ends_with_status_1(files, cart_document, capsys):
    changed = json.loads(json.dumps(cart_document))  # a copy, because other tests read the same document
    changed["certificate"]["correct"] += 1
    (files / "model.json").write_text(json.dumps(changed))
    with pytest.raises(SystemExit) as error:
        call_command("verify", str(files / "model.json"), str(files / "data.csv"))
    assert error.value.code == 1
    assert "refuted" in capsys.readouterr().out


def test_a_file_that_is_no_model_is_refused_in_one_line(files):
    (files / "model.json").write_text("[1, 2")
    with pytest.raises(CommandError, match="model file"):
        call_command("verify", str(files / "model.json"), str(files / "data.csv"))


def test_unjudgeable_file_has_json_output_too(files, capsys):
    with pytest.raises(CommandError):
        call_command("verify", str(files / "model.json"), str(files / "gone.csv"), json=True)
    record = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert record["verdict"] == "cannot be judged"
    (claim,) = record["claims"]
    assert (claim["claim"], claim["verdict"]) == ("files", "cannot be judged")
    assert "gone.csv" in claim["detail"]


def test_verify_exits_0_unless_a_verdict_is_required(files):
    """The verdict on `cart` is *recounted*, because it claims nothing that needs a proof."""
    names = (str(files / "model.json"), str(files / "data.csv"))
    report = files / "report.json"
    call_command("verify", *names, report=str(report))
    report.unlink()
    with pytest.raises(SystemExit) as error:
        call_command("verify", *names, report=str(report), require="proved")
    assert error.value.code == 1
    assert json.loads(report.read_text())["verdict"] == "recounted"
