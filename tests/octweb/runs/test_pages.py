"""Pages of runs: form, list, live page and its fragments."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from octweb.jobs.models import RunStatus
from octweb.runs import actions
from octweb.runs.chart import search_seconds
from octweb.runs.models import ProgressRecord, TrainingRun
from trainer.cli.parameters import INFEASIBLE
from trainer.methods.monitor import COMPILING
from trainer.registry import METHODS

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(client, owner, media):
    client.force_login(owner)
    return client


@pytest.fixture
def run(owner, dataset):
    return actions.enqueue(owner=owner, dataset=dataset, method="cart", parameters={"depth": 2})


@pytest.mark.slow
@pytest.mark.one_database
@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.id)
def test_form_shows_only_parameters_of_the_method(browser, dataset, method):
    page = browser.get(reverse("runs:new"), {"dataset": dataset.pk, "method": method.id})
    assert page.status_code == 200
    assert not re.search(r"leaves\s*<span class=\"unit\">leaves", page.content.decode()), "a unit is not said twice"
    shown = {name.removeprefix("p_") for name in page.context["form"].fields if name.startswith("p_")}
    start = {"warm_start"} if method.warm_start else set()
    assert shown == {p.name for p in method.parameters} | start


def test_start_queues_a_run(browser, dataset):
    form = browser.get(reverse("runs:new"), {"dataset": dataset.pk, "method": "cart"}).context["form"]
    data = {f"p_{p.name}": "" if p.default is None else p.default for p in form.method.parameters}
    data |= {"dataset": dataset.pk, "method": "cart", "evaluation": "folds", "folds": 4, "test_percent": 25, "name": ""}
    answer = browser.post(reverse("runs:new"), data)
    run = TrainingRun.objects.get()
    assert answer.url == reverse("runs:detail", args=[run.pk])
    assert (run.folds, run.test_share) == (4, 0.0)


@pytest.mark.one_database
def test_solved_problem_is_described_in_words(browser, owner, dataset):
    run = actions.enqueue(owner=owner, dataset=dataset, method="cut-h", parameters={"balanced": True})
    text = browser.get(reverse("runs:detail", args=[run.pk])).content.decode()
    assert "<dt>Balanced</dt><dd>yes</dd>" in text
    assert "<dt>Accuracy against size</dt><dd>no</dd>" in text
    assert "<dt>Rows per leaf</dt><dd>1 row</dd>" in text
    assert "<dt>Depth</dt><dd>2 questions</dd>" in text
    assert "<dt>Leaf penalty</dt><dd>0</dd>" in text


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, "not evaluated"),
        ({"test_share": 0.25}, "25 % held out"),
        ({"folds": 5}, "5-fold cross-validation"),
        ({"test_share": 0.25, "folds": 5}, "25 % held out; 5-fold cross-validation"),
    ],
)
def test_run_page_names_all_unseen_rows(browser, owner, dataset, asked, words):
    run = actions.enqueue(owner=owner, dataset=dataset, method="cart", **asked)
    text = browser.get(reverse("runs:detail", args=[run.pk])).content.decode().replace("\u202f", " ")
    assert f"<dt>Unseen rows</dt><dd>{words}</dd>" in " ".join(text.split()).replace("<dd> ", "<dd>").replace(
        " </dd>", "</dd>"
    )


def test_invalid_value_is_reported_at_its_field(browser, dataset):
    form = browser.get(reverse("runs:new"), {"dataset": dataset.pk, "method": "cart"}).context["form"]
    data = {f"p_{p.name}": "" if p.default is None else p.default for p in form.method.parameters}
    data |= {"dataset": dataset.pk, "method": "cart", "evaluation": "none", "p_depth": "99"}
    answer = browser.post(reverse("runs:new"), data)
    assert answer.status_code == 200
    assert answer.context["form"].errors["p_depth"]
    assert TrainingRun.objects.count() == 0


@pytest.mark.one_database
def test_the_form_begins_with_a_method_that_proves_and_is_fast(browser, dataset):
    page = browser.get(reverse("runs:new"), {"dataset": dataset.pk})
    assert page.context["method"].id == "exact"
    assert re.findall(r'name="method" value="([^"]+)"\s+id="[^"]+" checked', page.content.decode()) == ["exact"]


@pytest.mark.one_database
def test_unknown_name_is_refused_at_its_field_before_queueing(browser, dataset):
    form = browser.get(reverse("runs:new"), {"dataset": dataset.pk, "method": "bendoct"}).context["form"]
    data = {f"p_{p.name}": "" if p.default is None else p.default for p in form.method.parameters}
    data |= {
        "dataset": dataset.pk,
        "method": "bendoct",
        "evaluation": "none",
        "p_recall": "maybe: 0.5",
        "p_monotone": "x",
    }
    answer = browser.post(reverse("runs:new"), data)
    assert answer.status_code == 200
    assert answer.context["form"].errors["p_recall"] == ["'maybe' is not a class. Classes: no, yes."]
    assert "has no direction" in answer.context["form"].errors["p_monotone"][0]
    assert TrainingRun.objects.count() == 0


def test_unknown_method_starts_no_run(browser, dataset):
    form = browser.get(reverse("runs:new"), {"dataset": dataset.pk}).context["form"]
    data = {f"p_{p.name}": "" if p.default is None else p.default for p in form.method.parameters}
    data |= {"dataset": dataset.pk, "method": "nonsense", "evaluation": "none"}
    answer = browser.post(reverse("runs:new"), data)
    assert answer.status_code == 200
    assert "&#x27;nonsense&#x27; is not a method" in answer.content.decode()
    assert TrainingRun.objects.count() == 0


def test_without_a_data_set_the_form_leads_to_the_upload(browser):
    assert browser.get(reverse("runs:new")).url == reverse("datasets:new")


def test_the_live_part_answers_204_until_something_changes(browser, run):
    url = reverse("runs:live", args=[run.pk])
    seen = browser.get(url).context["seen"]
    assert browser.get(url, {"seen": seen}).status_code == 204
    actions.cancel(run)
    assert browser.get(url, {"seen": seen}).status_code == 200


@pytest.mark.one_database
def test_chart_and_incumbent_tree(browser, run):
    TrainingRun.objects.filter(pk=run.pk).update(status=RunStatus.RUNNING, attempt=1)
    nodes = [
        {
            "id": 0,
            "counts": [60, 60],
            "split": {"kind": "threshold", "feature": "width", "threshold": 3.0},
            "left": 1,
            "right": 2,
        },
        {"id": 1, "counts": [50, 10], "class": "no"},
        {"id": 2, "counts": [10, 50], "class": "yes"},
    ]
    columns = [{"name": "width", "kind": "numeric", "missing": "drop"}]
    record = {
        "t": 0.5,
        "phase": "search",
        "incumbent": 0.8,
        "bound": 0.9,
        "gap": 0.125,
        "nodes": 3,
        "leaves": 2,
        "correct": 100,
    }
    record |= {"tree": nodes, "columns": columns, "classes": ["no", "yes"]}
    ProgressRecord.objects.create(run=run, attempt=1, line=0, record=record)
    page = browser.get(reverse("runs:detail", args=[run.pk]))
    assert "width" in page.content.decode()
    assert browser.get(reverse("runs:chart", args=[run.pk])).json()["data"]
    assert browser.get(reverse("runs:tree", args=[run.pk, 0])).status_code == 200
    assert browser.get(reverse("runs:tree", args=[run.pk, 7])).status_code == 404


@pytest.mark.one_database
def test_tree_without_objective_is_shown_as_best_so_far(browser, run):
    """Greedy methods report trees before an objective, so the page must not say that there is none."""
    record = {"t": 1.0, "phase": "grow", "leaves": 2, "correct": 1100}
    record |= {"tree": [{"label": 0, "counts": [1000, 500]}], "columns": [], "classes": ["no", "yes"]}
    TrainingRun.objects.filter(pk=run.pk).update(
        status=RunStatus.RUNNING, attempt=1, started=timezone.now(), progress={"t": 1.0, "phase": "grow", "leaves": 2}
    )
    assert "no tree yet" in " ".join(browser.get(reverse("runs:detail", args=[run.pk])).content.decode().split())
    ProgressRecord.objects.create(run=run, attempt=1, line=0, record=record)
    facts = browser.get(reverse("runs:detail", args=[run.pk])).content.decode().split("</dl>")[0]
    assert "1,100 <small>training rows right</small>" in " ".join(facts.split())
    assert "2 leaves; the objective follows at the end" in facts
    assert "<small>no" not in facts.split("bound")[0]


@pytest.mark.one_database
def test_chart_of_running_search_extends_to_now(browser, run):
    record = {"t": 5.0, "phase": "search", "incumbent": 0.5, "bound": 1.0}
    received = (timezone.now() - timedelta(seconds=60)).isoformat()
    TrainingRun.objects.filter(pk=run.pk).update(
        status=RunStatus.RUNNING, attempt=1, started=timezone.now(), progress=record | {"received": received}
    )
    ProgressRecord.objects.create(run=run, attempt=1, line=0, record=record)
    url = reverse("runs:chart", args=[run.pk])
    end = {trace["name"]: trace["x"][-1] for trace in browser.get(url).json()["data"]}
    assert 64 < end["bound"] == end["incumbent"] < 100
    TrainingRun.objects.filter(pk=run.pk).update(status=RunStatus.SUCCEEDED, finished=timezone.now())
    assert {trace["x"][-1] for trace in browser.get(url).json()["data"]} == {5.0}


@pytest.mark.one_database
def test_search_clock_stops_while_folds_are_trained(browser, run):
    """Page, chart and certificate state 5 seconds of search, although folds take another minute."""
    record = {"t": 3.0, "phase": "search", "incumbent": 0.5, "bound": 1.0}
    records = [record, record | {"t": 5.0, "phase": "check"}, record | {"t": 65.0, "phase": "fold 2 of 10"}]
    received = (timezone.now() - timedelta(seconds=60)).isoformat()
    TrainingRun.objects.filter(pk=run.pk).update(
        status=RunStatus.RUNNING, attempt=1, started=timezone.now(), progress=records[-1] | {"received": received}
    )
    for line, one in enumerate(records):
        ProgressRecord.objects.create(run=run, attempt=1, line=line, record=one)
    chart = reverse("runs:chart", args=[run.pk])
    page = reverse("runs:detail", args=[run.pk])
    assert {trace["x"][-1] for trace in browser.get(chart).json()["data"] if trace["name"] == "bound"} == {5.0}
    answer = browser.get(page)
    assert answer.context["clock"] == 5.0
    assert "data-clock" not in answer.content.decode()
    TrainingRun.objects.filter(pk=run.pk).update(
        status=RunStatus.SUCCEEDED, finished=timezone.now(), summary={"seconds": 5.0}
    )
    assert {trace["x"][-1] for trace in browser.get(chart).json()["data"] if trace["name"] == "bound"} == {5.0}


def test_clock_stands_still_while_kernels_compile(browser, run):
    received = (timezone.now() - timedelta(seconds=60)).isoformat()
    record = {"t": 0.2, "phase": COMPILING, "compile_seconds": 7.4, "nodes": 0}
    TrainingRun.objects.filter(pk=run.pk).update(
        status=RunStatus.RUNNING, attempt=1, started=timezone.now(), progress=record | {"received": received}
    )
    page = browser.get(f"/runs/{run.pk}/").content.decode()
    assert "Getting ready has taken 7.4" in page
    assert "quick first tree" not in page
    assert "data-clock" not in page
    run.refresh_from_db()
    assert search_seconds(run) == 0.2


def test_first_tree_is_shown_while_kernels_compile(browser, run):
    nodes = [{"id": 0, "label": 0, "counts": [1000, 500]}]
    record = {"t": 0.1, "phase": COMPILING, "compile_seconds": 1.2, "nodes": 0, "correct": 1000, "leaves": 1}
    record |= {"tree": nodes, "columns": [], "classes": ["no", "yes"], "incumbent": None, "bound": 0.9}
    TrainingRun.objects.filter(pk=run.pk).update(
        status=RunStatus.RUNNING, attempt=1, started=timezone.now(), progress=record | {"received": str(timezone.now())}
    )
    ProgressRecord.objects.create(run=run, attempt=1, line=0, record=record)
    page = browser.get(reverse("runs:detail", args=[run.pk])).content.decode()
    assert "Right for 1,000 of 1,500 training rows with one leaf." in page
    assert "This is a quick first tree." in page
    TrainingRun.objects.filter(pk=run.pk).update(progress=record | {"phase": "search", "received": str(timezone.now())})
    assert "quick first tree" not in browser.get(reverse("runs:detail", args=[run.pk])).content.decode()


def test_a_failed_run_says_why(browser, run):
    TrainingRun.objects.filter(pk=run.pk).update(
        status=RunStatus.FAILED, error="The file is gone.", started=run.created, finished=run.created
    )
    assert "The file is gone." in browser.get(reverse("runs:detail", args=[run.pk])).content.decode()


@pytest.mark.parametrize("name", ["detail", "live", "chart"])
def test_strangers_get_404_and_the_signed_out_the_login(client, stranger, staff, run, name, media):
    url = reverse(f"runs:{name}", args=[run.pk])
    assert client.get(url).url.startswith(reverse("login"))
    client.force_login(stranger)
    assert client.get(url).status_code == 404
    client.force_login(staff)
    assert client.get(url).status_code == 200


@pytest.mark.parametrize("name", ["cancel", "again"])
def test_strangers_change_nothing(client, stranger, run, name, media):
    client.force_login(stranger)
    assert client.post(reverse(f"runs:{name}", args=[run.pk])).status_code == 404
    assert TrainingRun.objects.get().status == RunStatus.QUEUED


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("method", "given", "words"),
    [
        ("bendoct", {}, "share of training rows correct, less the leaf penalty"),
        ("odt", {"sensitivity": 0.9}, "specificity on training rows, with a sensitivity of at least 0.9"),
        ("odt", {"specificity": 0.8}, "sensitivity on training rows, with a specificity of at least 0.8"),
        ("odt", {"negative_weight": "balanced"}, "weighted share of training rows correct"),
        ("odt", {"negative_weight": "1"}, "share of training rows correct"),
    ],
)
def test_the_page_says_what_the_objective_is(browser, owner, dataset, method, given, words):
    run = actions.enqueue(owner=owner, dataset=dataset, method="cart", parameters={})
    run.method = method
    run.parameters = given
    run.save()
    text = browser.get(reverse("runs:detail", args=[run.pk])).content.decode()
    assert f"objective: {words}</dd>" in text


@pytest.mark.one_database
def test_infeasible_recalls_are_answered_with_reachable_ones(browser, owner, dataset):
    run = actions.enqueue(owner=owner, dataset=dataset, method="cart", parameters={})
    run.method = "odt"
    run.parameters = {"sensitivity": 0.95, "specificity": 0.9, "depth": 2}
    run.status = "failed"
    run.error = "With a sensitivity of at least 0.95, no tree reaches a specificity of 0.9: the best is 0.87."
    run.summary = {"status": INFEASIBLE, "best": 0.87}
    run.save()
    text = browser.get(reverse("runs:detail", args=[run.pk])).content.decode()
    assert "The run failed." not in text
    assert "Not reachable" in text
    assert "the best is 0.87" in text
    assert "with the largest specificity that this sensitivity allows" in text
    answer = browser.post(reverse("runs:reachable", args=[run.pk]))
    again = TrainingRun.objects.exclude(pk=run.pk).get()
    assert answer.url == reverse("runs:detail", args=[again.pk])
    assert (again.parameters["sensitivity"], again.parameters["specificity"]) == (0.95, None)


@pytest.mark.one_database
def test_infeasible_constraints_do_not_count_as_failure(browser, owner, dataset):
    run = actions.enqueue(owner=owner, dataset=dataset, method="exact", parameters={})
    run.status = "failed"
    run.error = "No tree satisfies the constraints. Both recalls can be reached together if each is lowered by 5 percentage points."
    run.summary = {"status": INFEASIBLE, "best": 0.05}
    run.log = "CommandError: no tree"
    run.save()
    assert (
        "proved: no tree keeps the constraints" in browser.get(reverse("runs:detail", args=[run.pk])).content.decode()
    )
    for address in (reverse("searches"), reverse("datasets:detail", args=[dataset.pk])):
        listed = browser.get(address).content.decode()
        assert "Not reachable</button>" in listed
        assert "Failed</button>" not in listed
    for status, there in (("unreachable", True), ("failed", False), ("queued", False)):
        listed = browser.get(reverse("searches"), {"status": status}).content.decode()
        assert ("Not reachable</button>" in listed) == there
    text = browser.get(reverse("runs:detail", args=[run.pk])).content.decode()
    assert "Not reachable" in text
    assert "The run failed." not in text
    assert '<details class="card log"><summary' in text, "what the program said is not the first thing to read"
    run.error = "out of memory. Set a lower memory limit or a smaller depth"
    run.summary = {}
    run.save()
    assert "Not reachable</button>" not in browser.get(reverse("searches")).content.decode()
    assert '<details class="card log" open>' in browser.get(reverse("runs:detail", args=[run.pk])).content.decode()


def test_poll_without_new_records_reads_none(browser, run):
    address = reverse("runs:live", args=[run.pk])

    def looked(seen):
        with CaptureQueriesContext(connection) as queries:
            answer = browser.get(address, {"seen": seen})
        return answer, [q["sql"] for q in queries if '"runs_progressrecord"."record"' in q["sql"]]

    answer, reads = looked("")
    assert (answer.status_code, reads) == (200, [])
    TrainingRun.objects.filter(pk=run.pk).update(status=RunStatus.RUNNING, attempt=1)
    ProgressRecord.objects.create(run=run, attempt=1, line=0, record={"t": 0.1, "phase": "search"})
    answer, reads = looked(answer.context["seen"])
    assert (answer.status_code, len(reads)) == (200, 1)
    answer, reads = looked(answer.context["seen"])
    assert (answer.status_code, reads) == (204, [])
