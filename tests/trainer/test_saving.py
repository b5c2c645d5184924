"""The checkers accept model files of fitted estimators."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from trainer import make_classifier
from trainer.check.bundle import bundle
from trainer.check.recount import verdict, verify
from trainer.dossier import dossier
from trainer.sklearn_api.saving import ModelFileWarning
from trainer.tree.file import read_model

ROOT = Path(__file__).parents[2]


@pytest.fixture
def array():
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.normal(size=(60, 2)).round(3), rng.integers(0, 2, 60)])
    return X, (X[:, 0] > 0).astype(int) + (X[:, 1] > 1)


@pytest.fixture
def frame():
    rng = np.random.default_rng(6)
    X = pd.DataFrame(
        {
            "size": rng.normal(size=60),
            "colour": rng.choice(["red", None, "blue"], 60),
            "member": rng.integers(0, 2, 60).astype(bool),
            "class": rng.integers(0, 9, 60),
        }
    )
    return X, pd.Series(np.where(X["size"] > 0, "yes", "no"), name="answer")


def written(path, X, y, target="class"):
    """Write the table as docs/checking.md describes, and return its path."""
    columns = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    columns.assign(**{target: np.asarray(y)}).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("method", ["exact", "exact-numeric", "bivariate", "odt"])
def test_saved_file_of_array_is_proved(method, array, tmp_path):
    X, y = array
    make_classifier(method, depth=2).fit(X, y).save(tmp_path / "model.json")
    findings = verify(tmp_path / "model.json", written(tmp_path / "rows.csv", X, y))
    assert verdict(findings) == "proved"


def test_saved_file_of_frame_is_proved_under_its_own_names(frame, tmp_path):
    X, y = frame
    make_classifier("exact", depth=2).fit(X, y).save(tmp_path / "model.json")
    assert read_model(tmp_path / "model.json").target == "answer"
    assert verdict(verify(tmp_path / "model.json", written(tmp_path / "rows.csv", X, y, "answer"))) == "proved"
    make_classifier("exact", depth=2).fit(X, y.to_numpy()).save(tmp_path / "unnamed.json")
    assert verdict(verify(tmp_path / "unnamed.json", written(tmp_path / "rows.csv", X, y, "class_"))) == "proved"


@pytest.mark.parametrize("weights", ["whole", "real", "balanced"])
def test_saved_file_of_weighted_rows_is_proved(weights, array, tmp_path):
    X, y = array
    rng = np.random.default_rng(7)
    given = {"whole": rng.integers(0, 4, len(y)), "real": rng.random(len(y)), "balanced": None}[weights]
    options = {"class_weight": "balanced"} if weights == "balanced" else {}
    make_classifier("exact", depth=2, **options).fit(X, y, sample_weight=given).save(tmp_path / "model.json")
    kept = np.ones(len(y), bool) if given is None else given > 0
    assert verdict(verify(tmp_path / "model.json", written(tmp_path / "rows.csv", X[kept], y[kept]))) == "proved"


def test_proof_beside_the_file_is_checked_step_by_step(array, tmp_path):
    X, y = array
    make_classifier("exact", depth=3).fit(X, y).save(tmp_path / "model.json", proof=True)
    proof = tmp_path / "model.proof.jsonl.gz"
    findings = verify(tmp_path / "model.json", written(tmp_path / "rows.csv", X, y), proof)
    assert verdict(findings) == "proved"
    assert any("hold" in f.detail and f.claim == "bound" for f in findings)
    (tmp_path / "model.proof.jsonl.gz").write_bytes(b"")
    assert verdict(verify(tmp_path / "model.json", tmp_path / "rows.csv", proof)) == "refuted"


def test_heuristic_is_saved_without_a_proof_and_recounted(array, tmp_path):
    X, y = array
    with pytest.warns(ModelFileWarning, match="No proof was written"):
        make_classifier("cart", depth=2).fit(X, y).save(tmp_path / "model.json", proof=True)
    assert not (tmp_path / "model.proof.jsonl.gz").exists()
    assert verdict(verify(tmp_path / "model.json", written(tmp_path / "rows.csv", X, y))) == "recounted"


def test_pickled_estimator_saves_its_file_but_no_proof(array, tmp_path):
    X, y = array
    model = pickle.loads(pickle.dumps(make_classifier("exact", depth=2).fit(X, y)))
    model.save(tmp_path / "model.json")
    assert verdict(verify(tmp_path / "model.json", written(tmp_path / "rows.csv", X, y))) == "proved"
    with pytest.raises(ValueError, match="Fit it again"):
        model.save(tmp_path / "other.json", proof=True)
    assert not (tmp_path / "other.json").exists()


def test_category_that_a_table_cannot_hold_is_named(frame, tmp_path):
    X, y = frame
    with pytest.warns(ModelFileWarning, match="'NA' of colour"):
        make_classifier("cart").fit(X.assign(colour=X["colour"].fillna("NA")), y).save(tmp_path / "model.json")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_classifier("cart").fit(X, y).save(tmp_path / "model.json")


@pytest.fixture
def claimless(array, tmp_path):
    """Provide the paths of a file that contains only a tree, and of the table of its training."""
    X, y = array
    make_classifier("exact", depth=2).fit(X, y).tree_.save(tmp_path / "tree.json")
    return tmp_path / "tree.json", written(tmp_path / "rows.csv", X, y)


def test_file_without_claims_claims_nothing_and_is_not_refuted(claimless, array, tmp_path):
    path, rows = claimless
    for table in (rows, written(tmp_path / "fewer.csv", array[0][:30], array[1][:30])):
        findings = verify(path, table)
        assert verdict(findings) == "recounted"
        assert "The file claims nothing" in next(f for f in findings if f.claim == "claims").detail
    assert dossier(path, rows)["claim"]["words"] == "No claim"


@pytest.mark.slow
def test_single_file_says_that_a_file_claims_nothing(claimless, tmp_path):
    path, rows = claimless
    checker = tmp_path / "check_octweb.py"
    checker.write_text(bundle(), encoding="utf-8")
    process = subprocess.run([sys.executable, checker, path, "-", rows], capture_output=True, text=True, timeout=120)
    assert "The file claims nothing" in process.stdout
    assert "Verdict: recounted" in process.stdout
    assert process.returncode == 3


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="the page of the checker needs node here")
def test_page_says_that_a_file_claims_nothing(claimless, array, tmp_path):
    path, rows = claimless
    make_classifier("exact", depth=2).fit(*array).save(tmp_path / "model.json", proof=True)
    command = ["node", ROOT / "checker" / "check_octweb.mjs", path, tmp_path / "model.proof.jsonl.gz", rows]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "not judged: The model file claims nothing" in process.stdout
