"""The MLflow flavour logs, loads and serves models with the tree's answers."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.conftest import ROOT
from trainer.errors import DataError, RowError
from trainer.prediction.mlflow_flavour import TreePredictor, save_model
from trainer.sklearn_api.estimators import make_classifier
from trainer.tree.file import ModelFile, read_model

PYTHON = Path(os.environ.get("OCTWEB_CLIENTS_PYTHON", ROOT / ".venv" / "clients" / "bin" / "python"))
SCRIPT = """
import json, sys
import mlflow, pandas as pd
from fastapi.testclient import TestClient
from mlflow.pyfunc import scoring_server
from trainer.prediction import mlflow_flavour

asked = json.load(sys.stdin)
frame = pd.DataFrame(asked["rows"])
mlflow.set_tracking_uri(asked["store"])
with mlflow.start_run():
    logged = mlflow_flavour.log_model(asked["model"], name="tree")
loaded = mlflow.pyfunc.load_model(logged.model_uri)
mlflow_flavour.save_model(asked["model"], asked["folder"])
saved = mlflow.pyfunc.load_model(asked["folder"])
client = TestClient(scoring_server.init(saved))
body = {"dataframe_split": frame.to_dict("split")}
served = client.post("/invocations", json=body)
broken = client.post("/invocations", json={"dataframe_split": frame.drop(columns="width").to_dict("split")})
print(json.dumps({
    "logged": loaded.predict(frame).tolist(),
    "saved": saved.predict(frame).tolist(),
    "served": [served.status_code, served.json()["predictions"]],
    "broken": [broken.status_code, broken.text],
    "loader": loaded.metadata.flavors["python_function"]["loader_module"],
    "pickle": [str(p) for p in __import__("pathlib").Path(asked["folder"]).rglob("*.pkl")],
}))
"""


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"width": rng.normal(size=40), "count": rng.integers(0, 5, 40), "odor": rng.choice(["foul", "none"], 40)}
    )


@pytest.fixture(scope="module")
def classifier(frame):
    y = np.where((frame["width"] > 0) & (frame["odor"] == "none"), "yes", "no")
    return make_classifier("exact-numeric", depth=2, unseen_missing="refuse").fit(frame, y)


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason="the clients' environment is not there: make .venv/clients/.ready")
def test_a_tree_is_logged_loaded_and_served(frame, classifier, tmp_path):
    classifier.tree_.save(str(tmp_path / "tree.json"))
    question = {
        "rows": frame.to_dict("list"), "model": str(tmp_path / "tree.json"), "folder": str(tmp_path / "saved"),
        "store": f"file:{tmp_path / 'runs'}",
    }  # fmt: skip
    environment = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    process = subprocess.run(
        [PYTHON, "-W", "ignore", "-c", SCRIPT],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(ROOT), "MLFLOW_ALLOW_FILE_STORE": "true"},
    )
    assert process.returncode == 0, process.stderr[-3000:]
    document = json.loads(process.stdout.splitlines()[-1])
    expected = classifier.predict(frame).tolist()
    assert set(expected) == {"no", "yes"}
    assert document["logged"] == document["saved"] == expected
    assert document["served"] == [200, expected]
    assert document["broken"][0] == 400
    assert "width" in document["broken"][1]
    assert document["loader"] == "trainer.prediction.mlflow_flavour"
    assert document["pickle"] == []
    assert read_model(next((tmp_path / "saved").rglob("*.json"))).tree.to_json() == classifier.tree_.to_json()


def test_the_predictor_answers_frames_and_records(frame, classifier):
    predictor = TreePredictor(ModelFile.of_tree(classifier.tree_))
    assert predictor.predict(frame).tolist() == classifier.predict(frame).tolist()
    assert predictor.predict(frame.to_dict("records")).tolist() == classifier.predict(frame).tolist()
    shares = predictor.predict(frame, {"output": "probabilities"})
    assert [[row["no"], row["yes"]] for row in shares] == classifier.predict_proba(frame).tolist()
    with pytest.raises(RowError, match="width"):
        predictor.predict(frame.assign(width=np.nan))
    learned = make_classifier("exact-numeric", depth=2).fit(frame, classifier.predict(frame))
    answers = TreePredictor(ModelFile.of_tree(learned.tree_)).predict(frame.assign(width=np.nan))
    assert answers.tolist() == learned.predict(frame.assign(width=np.nan)).tolist()
    with pytest.raises(DataError, match="names of their columns"):
        predictor.predict(frame.to_numpy())
    with pytest.raises(DataError, match="not an output"):
        predictor.predict(frame, {"output": "leaf"})


def test_object_without_tree_is_refused_before_mlflow_is_loaded(tmp_path):
    with pytest.raises(DataError, match="neither a fitted classifier"):
        save_model(make_classifier("cart"), tmp_path / "model")
