"""The unchanged clients of MLflow and KServe, and a client that a public generator writes, work with a live server."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from octweb.core.parameters import schema_document
from octweb.registry.document.model_files import model_file
from octweb.registry.models import TreeModel
from octweb.serving.actions import create_token
from tests.conftest import ROOT
from tests.octweb.runs.test_worker import worker  # noqa: F401
from tests.octweb.small_models import csv_of_small_table, small_table

PYTHON = Path(os.environ.get("OCTWEB_CLIENTS_PYTHON", ROOT / ".venv" / "clients" / "bin" / "python"))

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not PYTHON.exists(), reason="the clients' environment is not there: make .venv/clients/.ready"),
]

MLFLOW = """
import json, sys
import pandas as pd
from mlflow.pyfunc.scoring_server.client import ScoringServerClient

asked = json.load(sys.stdin)
client = ScoringServerClient("127.0.0.1", asked["port"])
client.ping()
client.wait_server_ready(timeout=200)
frame = pd.DataFrame(asked["rows"])
found = {
    "version": client.get_version(),
    "frame": client.invoke(frame).get_predictions()[0].tolist(),
    "list": client.invoke(frame.values.tolist())["predictions"],
    "records": client.invoke(frame, params={"output": "records"}).get_predictions().to_dict("records"),
}
frame.loc[1, "width"] = float("nan")
try:
    client.invoke(frame)
except Exception as error:
    found["error"] = str(error)
print(json.dumps(found))
"""

KSERVE = """
import asyncio, json, sys
import numpy as np
from kserve import InferInput, InferRequest, InferenceRESTClient, RESTConfig

asked = json.load(sys.stdin)
TYPES = {"FP64": np.float64, "INT64": np.int64, "BYTES": np.object_}

def inputs(binary):
    for r in asked["tensors"]:
        tensor = InferInput(r["name"], r["shape"], r["datatype"])
        tensor.set_data_from_numpy(np.array(r["data"], TYPES[r["datatype"]]), binary_data=binary)
        yield tensor

async def main():
    found = {}
    async with InferenceRESTClient(RESTConfig(protocol="v2")) as client:
        base, headers = asked["url"], {"Authorization": f"Token {asked['token']}"}
        found["live"] = await client.is_server_live(base)
        found["ready"] = await client.is_server_ready(base)
        found["model"] = await client.is_model_ready(base, asked["model"], headers=headers)
        try:
            found["other"] = await client.is_model_ready(base, "other", headers=headers)
        except Exception as error:
            found["other"] = type(error).__name__
        for binary in (False, True):
            request = InferRequest(model_name=asked["model"], infer_inputs=list(inputs(binary)), request_id="k1")
            answer = await client.infer(base, request, headers=dict(headers), model_name=asked["model"])
            outputs = {o.name: o.as_numpy().ravel().tolist() for o in answer.outputs}
            found["binary" if binary else "json"] = [answer.id, [getattr(v, "decode", lambda: v)() for v in outputs["label"]]]
    print(json.dumps(found))

asyncio.run(main())
"""

# `octweb_api` is written from the OpenAPI document by openapi-python-client
GENERATED = """
import io, json, sys, time
from octweb_api import AuthenticatedClient
from octweb_api.api.datasets import datasets_create
from octweb_api.api.models import models_predict, models_retrieve, models_review_create
from octweb_api.api.runs import runs_create, runs_retrieve
from octweb_api.models import ActionEnum, NewDatasetRequest, NewRunRequest, NewRunRequestParameters, ReviewRequest
from octweb_api.models import RowsRequest, RowsRequestRowsItem
from octweb_api.types import File

asked = json.load(sys.stdin)
client = AuthenticatedClient(asked["url"], asked["token"], raise_on_unexpected_status=True)
table = File(io.BytesIO(asked["csv"].encode()), "small.csv", "text/csv")
dataset = datasets_create.sync(client=client, body=NewDatasetRequest(file=table, target="kind"))
parameters = NewRunRequestParameters.from_dict({"depth": 2, "leaf_penalty": 0.01})
run = runs_create.sync(client=client, body=NewRunRequest(dataset=dataset.id, method="exact", parameters=parameters))
while str(run.status) in ("queued", "running"):
    time.sleep(0.1)
    run = runs_retrieve.sync(run.id, client=client)
model = models_retrieve.sync(run.model, client=client)
review = models_review_create.sync(model.id, client=client, body=ReviewRequest(action=ActionEnum.ASK, reason="for a test"))
rows = RowsRequest(rows=[RowsRequestRowsItem.from_dict(row) for row in asked["rows"]])
answer = models_predict.sync(model.id, client=client, body=rows, explain=True)
print(json.dumps({
    "status": str(run.status),
    "claim": [str(model.certificate.status), model.certificate.gap],
    "state": str(review.state),
    "labels": [prediction.label for prediction in answer.predictions],
    "path": answer.predictions[0].path,
    "model": str(model.id),
}))
"""


def ask(script: str, question: dict, **environment: str) -> dict:
    """Return what a script prints in the environment of the clients."""
    kept = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    process = subprocess.run(
        [PYTHON, "-W", "ignore", "-c", script],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        timeout=300,
        env=kept | {"NO_PROXY": "*"} | environment,
    )
    assert process.returncode == 0, process.stderr[-3000:]
    return json.loads(process.stdout.splitlines()[-1])


def rows(n: int = 5) -> list[dict]:
    table, _ = small_table()
    colours = table.columns[3].schema.categories
    cells = table.matrix()[:n].tolist()
    return [{"width": a, "height": b, "flag": int(c), "colour": colours[int(d)]} for a, b, c, d in cells]


def labels(model, n: int = 5) -> list[str]:
    table, _ = small_table()
    tree = model_file(model).tree
    return [tree.classes[k] for k in tree.predict(table.matrix()[:n])]


@pytest.mark.slow
def test_mlflows_client_unchanged(live_server, approved, owner, tmp_path):
    _, secret = create_token(owner=owner, scope="predict")
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine 127.0.0.1 login {approved.family.name} password {secret}\n")
    netrc.chmod(0o600)
    port = live_server.url.rpartition(":")[2]
    found = ask(MLFLOW, {"port": port, "rows": rows()}, NETRC=str(netrc))
    assert found["frame"] == found["list"] == labels(approved)
    assert [r["label"] for r in found["records"]] == labels(approved)
    assert "rows[1]: column 'width' has no value" in found["error"]
    assert found["version"]


@pytest.mark.slow
def test_kserves_client_unchanged(live_server, approved, owner):
    _, secret = create_token(owner=owner, scope="predict")
    cells = rows()
    types = {"width": "FP64", "height": "FP64", "flag": "INT64", "colour": "BYTES"}
    tensors = [{"name": n, "datatype": t, "shape": [5], "data": [r[n] for r in cells]} for n, t in types.items()]
    question = {"url": live_server.url, "token": secret, "model": approved.family.name, "tensors": tensors}
    found = ask(KSERVE, question)
    assert [found["live"], found["ready"], found["model"]] == [True, True, True]
    assert found["other"] is not True
    assert found["json"] == found["binary"] == ["k1", labels(approved)]


@pytest.mark.slow
def test_a_generated_client_uploads_trains_and_predicts(worker, live_server, owner, media, tmp_path):  # noqa: F811
    """openapi-python-client understands every schema of the document; what it writes does the main job."""
    document = tmp_path / "openapi.json"
    document.write_text(json.dumps(schema_document()), encoding="utf-8")
    command = [PYTHON.with_name("openapi-python-client"), "generate", "--meta", "none", "--path", document]
    path = f"{PYTHON.parent}{os.pathsep}{os.environ['PATH']}"  # it calls ruff
    done = subprocess.run(
        [*command, "--output-path", tmp_path / "octweb_api"],
        env=os.environ | {"PATH": path, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "Unable to process" not in said
    assert "will not be generated" not in said
    worker()
    _, secret = create_token(owner=owner)
    question = {"url": live_server.url, "token": secret, "csv": csv_of_small_table(), "rows": rows()}
    found = ask(GENERATED, question, PYTHONPATH=str(tmp_path))
    assert found["status"] == "succeeded"
    assert found["claim"] == ["optimal", 0.0]
    assert found["state"] == "in_review"
    assert found["labels"] == labels(TreeModel.objects.get(pk=found["model"]))
    assert found["path"]
