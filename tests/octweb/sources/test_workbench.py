"""Workbenches on counts of a source: pages, prices, good trees, and saved versions with a proof."""

from __future__ import annotations

import json

import pytest
from rest_framework.exceptions import ValidationError

from octweb.checking import actions as checking
from octweb.checking.actions import proof_of
from octweb.checking.tasks import check_model
from octweb.core.problems import Unprocessable
from octweb.dossier import actions as dossiers
from octweb.dossier.tasks import make_dossier
from octweb.jobs.models import RunStatus
from octweb.runs import actions as runs
from octweb.workbench import actions
from octweb.workbench.models import StepKind, StepState
from tests.octweb.workbench.conftest import serve  # noqa: F401
from trainer.errors import ParameterError

PARAMETERS = {"depth": 2, "leaf_penalty": 0.01}


@pytest.fixture
def model(counted, work):
    """Provide a model that was trained from counts."""
    run = runs.enqueue(owner=counted.owner, dataset=counted.dataset, method="exact", parameters=PARAMETERS)
    assert work(run).status == RunStatus.SUCCEEDED, (run.error, run.log)
    return run.model


def _open_pages(client, bench, **context: str) -> str:
    """Open all pages of a workbench, and return their text."""
    text = ""
    for path in ("", "?at=y", "live/", "good-trees/"):
        answer = client.get(f"/workbenches/{bench.pk}/{path}", follow=True)
        assert answer.status_code == 200, path
        text += " ".join(answer.content.decode().split())
    return text


@pytest.mark.slow
def test_a_model_from_counts_is_edited_priced_and_saved(model, counted, client, serve):  # noqa: F811
    client.force_login(counted.owner)
    assert "Edit a copy" in client.get(f"/models/{model.pk}/").content.decode()
    assert client.post("/workbenches/new/", {"model": str(model.pk)}).status_code == 302
    bench = counted.dataset.workbenches.get()
    serve(bench)
    first = actions.current(bench)
    assert first.state == StepState.DONE, (first.error, bench.status, bench.error, bench.log)
    assert first.result["correct"] == json.loads(model.document)["certificate"]["correct"]
    assert first.result["spreads"], "a slider moves along the counted thresholds"
    root = json.loads(model.document)["nodes"][0]["split"]
    column = "income" if root["feature"] == "colour" else "colour"
    assert (
        client.post(f"/workbenches/{bench.pk}/edit/", {"at": "root", "verb": "column", "column": column}).status_code
        == 302
    )
    assert client.post(f"/workbenches/{bench.pk}/prices/", {"at": "root"}).status_code == 302
    actions.ask_good_trees(bench, {"slack_rows": "10", "listed": 5})
    serve(bench)
    bench.refresh_from_db()
    step = actions.current(bench)
    assert step.state == StepState.DONE, step.error
    price = pytest.approx(step.result["price_rows"] / counted.dataset.rows)
    assert step.result["wishes"] == [{"wish": f"ask root {column}", "price": price}]
    prices = bench.steps.get(kind=StepKind.PRICES)
    assert prices.result["complete"]
    assert prices.result["unit"] == "rows"
    good = bench.steps.get(kind=StepKind.GOOD)
    assert good.result["count"] >= 1
    text = _open_pages(client, bench)
    assert "Counts do not show which rows get another answer" in text
    assert "They do not show the answers for single rows" in text
    saved = actions.save_version(bench)
    serve(bench)
    assert proof_of(saved) is not None
    check = checking.start(owner=counted.owner, model=saved)
    check_model.func(str(check.pk))
    check.refresh_from_db()
    assert (check.status, check.verdict) == (RunStatus.SUCCEEDED, "proved"), check.error


@pytest.mark.slow
def test_a_model_from_counts_has_a_dossier(model, counted, client):
    client.force_login(counted.owner)
    panel = f"/models/{model.pk}/dossier/panel/"
    assert "Make the dossier" in client.get(panel).content.decode()
    with pytest.raises(ValidationError, match="groups"):
        dossiers.start(by=counted.owner, model=model, groups=["colour"])
    job = dossiers.start(by=counted.owner, model=model)
    make_dossier.func(str(job.pk))
    job.refresh_from_db()
    assert job.status == RunStatus.SUCCEEDED, (job.error, job.log)
    record = json.loads(dossiers.content(job, "json", by=counted.owner))
    assert record["check"]["verdict"] == "proved"
    assert record["data"]["sha256"] == counted.dataset.origin["sha256"]
    html = " ".join(dossiers.content(job, "html", by=counted.owner).decode().split())
    assert "What counts cannot say" in html
    assert "not known from counts" in html
    assert "a query of bank" in html


def test_settings_that_counts_do_not_know_open_no_workbench(counted):
    for parameters in ({"depth": 3}, {"bins": 7}, {"costs": "no>yes=2*income"}):
        with pytest.raises(ParameterError):
            actions.open_for(owner=counted.owner, dataset=counted.dataset, parameters=parameters)
    with pytest.raises(Unprocessable):
        actions.open_for(owner=counted.owner, dataset=counted.dataset, method="odt")
    assert not counted.dataset.workbenches.exists()
    bench = actions.open_for(owner=counted.owner, dataset=counted.dataset, parameters={"depth": 2})
    actions.check_wishes(bench, "add", ["ask root colour in red"])
    with pytest.raises(ParameterError, match="no column"):
        actions.check_wishes(bench, "add", ["ask root zzz"])
    priced = {"depth": 2, "costs": "no>yes=5"}
    bench = actions.open_for(owner=counted.owner, dataset=counted.dataset, parameters=priced)
    with pytest.raises(Unprocessable, match="from counts"):
        actions.ask_good_trees(bench, {"slack": "0.1"})
