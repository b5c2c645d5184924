"""Model files and proofs from before the policy 'learn' give the same answers as then.

`earlier_files/` contains a table, rows to predict, and for each method the model file, its proof and the answers of
that version.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainer.check.recount import verdict, verify
from trainer.prediction.predict_file import predict_file
from trainer.table import EmptySide, MissingPolicy
from trainer.tree.file import from_json, read_model

FOLDER = Path(__file__).parent / "earlier_files"
VERDICTS = json.loads((FOLDER / "verdicts.json").read_text())


@pytest.mark.parametrize("method", VERDICTS)
def test_earlier_model_gives_the_same_answers(method, tmp_path):
    """This includes rows without an answer, because a cell that the tree needs is empty."""
    answers = tmp_path / "answers.csv"
    predict_file(read_model(FOLDER / f"{method}.json"), FOLDER / "new.csv", answers)
    expected = (FOLDER / f"{method}.answers.csv").read_text()
    assert answers.read_text() == expected
    assert ",,,," in expected


@pytest.mark.parametrize("method", VERDICTS)
def test_earlier_proof_has_the_same_verdict(method):
    proof = FOLDER / f"{method}.proof.jsonl.gz"
    findings = verify(FOLDER / f"{method}.json", FOLDER / "rows.csv", proof if proof.exists() else None)
    assert verdict(findings) == VERDICTS[method], findings


@pytest.mark.parametrize("method", VERDICTS)
def test_earlier_model_with_other_counts_is_refuted(method, tmp_path):
    document = json.loads((FOLDER / f"{method}.json").read_text())
    branch = next(node for node in document["nodes"] if "split" in node)
    branch["counts"][0] += 1
    changed = tmp_path / "model.json"
    changed.write_text(json.dumps(document))
    assert verdict(verify(changed, FOLDER / "rows.csv", None)) == "refuted"


@pytest.mark.parametrize("method", VERDICTS)
def test_earlier_model_refuses_empty_cells_and_is_written_alike(method):
    document = json.loads((FOLDER / f"{method}.json").read_text())
    model = from_json(document)
    assert not any(column.missing is MissingPolicy.LEARN for column in model.tree.schema)
    assert all(node.split.missing is EmptySide.REFUSE for node in model.tree.branches)
    written = model.to_json()
    assert written.pop("contract")["target"] == {"type": "text"}  # the contract is derived from the classes
    assert written == document
