"""Count sources as jobs, train from the counts, and look at every page of the model."""

from __future__ import annotations

import io
import json
import re
import zipfile

import pytest

from octweb.checking import actions as checking
from octweb.checking.tasks import check_model
from octweb.core.problems import Unprocessable
from octweb.jobs.models import RunStatus
from octweb.runs import actions as runs
from tests.octweb.sources.conftest import PASSWORD
from trainer.errors import ParameterError

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def test_count_trains_a_model_whose_pages_work(counted, work, client, loans):
    assert counted.status == RunStatus.SUCCEEDED, counted.log
    dataset = counted.dataset
    client.force_login(counted.owner)
    rows = [row for row in loans.to_pylist() if row["income"] < 90]
    assert dataset.rows == len(rows)
    assert dataset.profile["class_counts"] == [sum(r["paid"] == name for r in rows) for name in ("no", "yes")]
    run = runs.enqueue(owner=counted.owner, dataset=dataset, method="exact", parameters={"leaf_penalty": 0.01})
    assert work(run).status == RunStatus.SUCCEEDED, (run.error, run.log)
    certificate = json.loads(run.model.document)["certificate"]
    assert certificate["counts"] == dataset.origin["sha256"]
    assert certificate["status"] == "optimal"
    assert run.model.unseen_accuracy > 0.5
    assert checking.proof_of(run.model) is not None
    with zipfile.ZipFile(io.BytesIO(checking.bundle(run.model))) as packed:
        assert "the folder 'counts' with counts.json" in packed.read("HOW-TO-CHECK.txt").decode()
    _read_pages(client, f"/models/{run.model.pk}/")
    page = client.get(f"/models/{run.model.pk}/?mode=proof").content.decode()
    assert f"counts of {len(rows)} rows of a query of bank" in " ".join(page.split())
    assert dataset.origin["sha256"] in page
    check = checking.start(owner=counted.owner, model=run.model)
    check_model.func(str(check.pk))
    check.refresh_from_db()
    assert (check.status, check.verdict) == (RunStatus.SUCCEEDED, "proved")
    assert client.get(f"/runs/{run.pk}/").status_code == 200
    _refuse_what_needs_rows(client, dataset)
    with pytest.raises(Unprocessable, match="counts and no rows"):
        runs.enqueue(owner=counted.owner, dataset=dataset, method="cart")
    with pytest.raises(Unprocessable, match="Leave test share"):
        runs.enqueue(owner=counted.owner, dataset=dataset, method="exact", test_share=0.2)
    with pytest.raises(ParameterError, match="at most 2"):
        runs.enqueue(owner=counted.owner, dataset=dataset, method="exact", parameters={"depth": 3})


def test_tree_of_least_cost_from_counts_has_working_pages(counted, work, client):
    dataset = counted.dataset
    client.force_login(counted.owner)
    parameters = {"costs": "no>yes=5", "cost_unit": "EUR", "leaf_penalty": 0.01}
    run = runs.enqueue(owner=counted.owner, dataset=dataset, method="exact", parameters=parameters)
    assert work(run).status == RunStatus.SUCCEEDED, (run.error, run.log)
    certificate = json.loads(run.model.document)["certificate"]
    assert certificate["costs"]["costs"]["no"]["yes"] == "5"
    assert certificate["status"] == "optimal"
    _read_pages(client, f"/models/{run.model.pk}/")
    assert client.get(f"/runs/{run.pk}/").status_code == 200
    check = checking.start(owner=counted.owner, model=run.model)
    check_model.func(str(check.pk))
    check.refresh_from_db()
    assert (check.status, check.verdict) == (RunStatus.SUCCEEDED, "proved")
    for costs in ("no>maybe=5", "no>yes=2*income"):
        with pytest.raises(ParameterError, match="costs"):
            runs.enqueue(owner=counted.owner, dataset=dataset, method="exact", parameters={"costs": costs})


def test_form_of_counts_takes_costs_recalls_and_pairs(counted, work, client):
    dataset = counted.dataset
    client.force_login(counted.owner)
    form = {"dataset": str(dataset.pk), "depth": 2, "leaf_penalty": "0.01"}
    page = client.post("/runs/new/", form | {"recall": "maybe: 0.9", "costs": ""}).content.decode()
    assert "maybe" in page
    assert not dataset.runs.filter(parameters__recall="maybe: 0.9").exists()
    assert (
        "together with costs"
        in client.post("/runs/new/", form | {"recall": "no: 0.9", "costs": "no>yes=5"}).content.decode()
    )
    for values in (
        {"recall": "no: 0.9", "forbidden_pairs": "income + colour"},
        {"costs": "no>yes=5", "cost_unit": "EUR"},
    ):
        assert client.post("/runs/new/", form | values).status_code == 302, values
        run = dataset.runs.latest("created")
        assert work(run).status == RunStatus.SUCCEEDED, (run.error, run.log)
        assert run.model.document


def _read_pages(client, start: str) -> None:
    """Open all links of the model's page that stay on it, and all parts that its pages load."""
    page = client.get(start).content.decode()
    links = {*re.findall(r'href="(\?[^"#]+)', page), "?mode=performance", "?mode=proof", "?mode=use", "?mode=history"}
    for link in sorted(links):
        answer = client.get(start + link.replace("&amp;", "&"))
        assert answer.status_code == 200, link
        for part in re.findall(r'(?:hx-get|data-figure-url)="([^"]+)"', answer.content.decode()):
            assert client.get(part.replace("&amp;", "&")).status_code in (200, 204), part


def _refuse_what_needs_rows(client, dataset) -> None:
    page = client.get(f"/datasets/{dataset.pk}/").content.decode()
    assert "No row is stored here." in page
    with zipfile.ZipFile(io.BytesIO(b"".join(client.get(f"/datasets/{dataset.pk}/counts/")))) as packed:
        record = json.loads(packed.read("counts.json"))
    assert record["sha256"] == dataset.origin["sha256"]
    assert {record["source"], *(part["name"] for part in record["parts"])} == {"a query of bank"}
    for path in ("edit", "version"):
        assert client.get(f"/datasets/{dataset.pk}/{path}/").status_code < 500, path
    for path in ("/privacy/", "/experiments/new/", "/runs/new/", "/workbenches/new/", "/datasets/", "/sources/"):
        assert client.get(f"{path}?dataset={dataset.pk}").status_code < 500, path
    for path in ("rows", "inspection", "contract", "download", "versions"):
        answer = client.get(f"/api/v1/datasets/{dataset.pk}/{path}/")
        assert answer.status_code < 500, path
        if path in ("rows", "contract", "download"):
            assert answer.status_code == 422, path
            assert "counts of a source" in answer.json()["detail"]
    assert client.get(f"/api/v1/datasets/{dataset.pk}/").json()["origin"]["source"] == "bank"


def test_failed_count_shows_no_password(sources, counter, work, client, media):
    from octweb.sources.models import SourceCount

    job = SourceCount.objects.create(
        owner=counter,
        source="secret",
        table="loans",
        name="Loans",
        target="paid",
        scheme="quantile-thresholds",
        options={},
    )
    assert work(job).status == RunStatus.FAILED
    client.force_login(counter)
    for text in (job.error, job.log, client.get(f"/sources/counts/{job.pk}/").content.decode()):
        assert PASSWORD not in text
        assert "reader:" not in text
    assert job.error


def test_source_that_was_withdrawn_is_not_counted(sources, counter, work, settings):
    from octweb.sources.models import SourceCount

    job = SourceCount.objects.create(owner=counter, source="bank", table="loans", name="Loans", target="paid")
    settings.SECRET_SOURCES = {}
    assert work(job).status == RunStatus.FAILED
    assert "no longer offered" in job.error


def test_later_attempt_resumes_at_the_last_checkpoint(sampled, counter, work, monkeypatch):
    from octweb.datasets.choice import ColumnChoice, ReadOptions
    from octweb.sources.actions import CountSettings, start_from_preview
    from octweb.sources.work import CHECKPOINT, REQUEST, CountChild
    from trainer.cli.count import read_request
    from trainer.counts import collect, files

    monkeypatch.setattr(files, "PIECE_ROWS", 50)
    monkeypatch.setattr(collect, "SECONDS", 0.0)
    settings = CountSettings(depth=2, bins=4)
    choice = ColumnChoice(target="paid")
    whole = work(
        start_from_preview(sampled(source="folder"), name="", reading=ReadOptions(), choice=choice, settings=settings)
    )
    job = start_from_preview(sampled(source="folder"), name="", reading=ReadOptions(), choice=choice, settings=settings)
    starts = []
    for attempt in (1, 2, 3):
        job.attempt = attempt
        child = CountChild.prepare(job)

        def stop(phase, rows, reached=[]):  # noqa: B006 - each attempt has its own list
            if phase == "counting":
                reached.append(rows)
                if len(reached) % 2 == 0:
                    starts.append(reached[-2])
                    raise InterruptedError

        with pytest.raises(InterruptedError):
            collect.count(read_request(str(child.folder / REQUEST)), child.counts, stop)
        if attempt != 2:  # the worker of the second attempt is killed, so it cleans nothing
            child.clean()
            assert (child.folder.parent / CHECKPOINT / "unfinished.json").exists()
    assert starts == sorted(set(starts))
    job.attempt = 0
    job.save()
    folder = child.folder.parent
    assert work(job).status == RunStatus.SUCCEEDED, (job.error, job.log)
    assert job.dataset.origin["sha256"] == whole.dataset.origin["sha256"]
    assert not folder.exists()


def test_more_rows_than_the_limit_are_refused(sampled, counter, work, settings):
    from octweb.datasets.choice import ColumnChoice, ReadOptions
    from octweb.sources.actions import CountSettings, start_from_preview

    upload = sampled(source="folder")
    settings.MAX_SOURCE_ROWS = 399
    job = start_from_preview(
        upload, name="", reading=ReadOptions(), choice=ColumnChoice(target="paid"), settings=CountSettings()
    )
    assert work(job).status == RunStatus.FAILED
    assert "more than 399 rows" in job.error
