"""Pages, API, files and dossier state the same numbers of training rows and held-out rows."""

from __future__ import annotations

import html
import json
import re

import pytest

from octweb.datasets import stored
from octweb.dossier.models import ModelDossier
from octweb.jobs.models import RunStatus
from octweb.registry.lifecycle import actions
from octweb.runs.models import TrainingRun
from tests.octweb.runs.conftest import csv_file, dataset  # noqa: F401
from trainer.data.rows import Note
from trainer.dossier import dossier as make_dossier
from trainer.training.run import TrainRequest, train
from trainer.workbench.requests import WorkbenchSession

pytestmark = pytest.mark.django_db
TRAINING = 90
UNSEEN = 30


@pytest.fixture(params=["run", "workbench"])
def document(request, dataset):  # noqa: F811
    """Provide the document of a run with folds and a test share, or of a version saved on a workbench."""
    table, labels = stored.load(dataset)
    given = TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": 2}, test_share=0.25, folds=5)
    if request.param == "run":
        return train(given).model.to_json()
    session = WorkbenchSession(given)
    completion = session.complete(["leaf n yes"], session.monitor())
    return session.result(completion, session.monitor()).model.to_json()


@pytest.fixture
def model(owner, dataset, document):  # noqa: F811
    return actions.register(owner=owner, document=document, dataset=dataset, title="Counted")


def visible(answer) -> str:
    text = re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", answer.content.decode(), flags=re.DOTALL)
    return " ".join(html.unescape(text).split())


def test_rows_that_trained_are_counted_alike_everywhere(model, document, client, owner, client_of, csv_file, tmp_path):  # noqa: F811
    client.force_login(owner)
    page = f"/models/{model.pk}/"
    tree, proof = (visible(client.get(f"{page}?mode={mode}")) for mode in ("tree", "proof"))
    assert f"Trained on {TRAINING} rows of" in tree
    assert f"Trained on {TRAINING} rows of Small; {UNSEEN} were held out" in proof
    assert "SHA-256 of the model file" in proof
    assert f"of {TRAINING} rows correct" in proof
    metrics = client_of(owner).get(f"/api/v1/models/{model.pk}/").json()["metrics"]
    assert (metrics["train"]["n"], metrics["test"]["n"]) == (TRAINING, UNSEEN)
    carried = visible(client.get(f"{page}download/html/"))
    assert re.search(rf"Training rows \d+ of {TRAINING} right", carried)
    assert re.search(rf"Unseen rows \d+ of {UNSEEN} right", carried)
    assert f"All trained on rows of Small, which has {TRAINING + UNSEEN}" in visible(client.get("/models/compare/"))
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    record = make_dossier(path, csv_file)
    assert (record["data"]["training_rows"], record["data"]["unseen_rows"]) == (TRAINING, UNSEEN)
    assert (record["stability"] is None) == ("cross_validation" not in document["metrics"])
    assert sum(rule["rows"] for rule in record["tree"]["rules"]) == TRAINING


def test_check_panel_knows_the_check_of_the_dossier(model, client, owner):
    client.force_login(owner)
    panel = f"/models/{model.pk}/check/"
    assert "has not run for this model yet" in visible(client.get(panel))
    made = {"status": RunStatus.SUCCEEDED, "file": "a.zip", "summary": {"verdict": "proved"}}
    ModelDossier.objects.create(owner=owner, model=model, **made)
    assert "The dossier below checked this file, verdict: proved" in visible(client.get(panel))


def test_incumbent_without_a_shown_tree_is_not_denied(owner, dataset, client):  # noqa: F811
    run = TrainingRun.objects.create(
        owner=owner,
        dataset=dataset,
        method="exact",
        parameters={},
        status=RunStatus.RUNNING,
        progress={"t": 1.0, "phase": "search", "incumbent": 0.67},
    )
    client.force_login(owner)
    text = visible(client.get(f"/runs/{run.pk}/"))
    assert "0.67" in text
    assert "There is no tree" not in text
    assert "The search has not shown its tree yet" in text


def test_scope_names_as_many_questions_as_were_searched(dataset, client, owner):  # noqa: F811
    table, labels = stored.load(dataset)
    result = train(TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": 2}, test_share=0.25))
    counts = re.findall(r"(\d+) (?:threshold|special value|categor|yes/no column)", result.summary["scope"])
    assert sum(map(int, counts)) == result.summary["encoded_features"]
    client.force_login(owner)
    form = visible(client.get(f"/runs/new/?dataset={dataset.pk}&method=exact"))
    # the form counts before rows are held out, so its number is approximate
    assert re.search(r"about \d+ yes/no questions in all", form)


def test_unknown_category_is_answered_no():
    note = str(Note(row=0, column="colour", value="pink"))
    assert note.endswith("'pink' is not a known category of 'colour'; every question about it is answered no.")
