"""Lists stay fast in a large database: queries use an index and count only rows on the page."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement

import pytest
from django.apps import apps
from django.db import connection
from django.db.models.signals import post_init
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from octweb.core.models import Membership, Team
from octweb.core.ownership import Deletable
from octweb.datasets.models import Dataset
from octweb.experiments.board import status_of
from octweb.experiments.listing import STATUS
from octweb.experiments.models import Candidate, Experiment
from octweb.jobs.models import RunStatus
from octweb.registry.models import Family, TreeModel
from octweb.runs.listing import SOURCES, MergedEntries
from octweb.runs.models import TrainingRun
from octweb.workbench.models import Step, StepKind, Workbench

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
KINDS = [model for model in apps.get_models() if issubclass(model, Deletable)]


@pytest.mark.parametrize("model", KINDS, ids=lambda model: model.__name__)
def test_first_rows_of_a_list_are_read_from_an_index(model, owner, staff):
    for user, name in ((owner, "of_owner"), (staff, "of_all")):
        plan = model.objects.visible_to(user)[:30].explain()
        assert f"{model._meta.model_name}_{name}" in plan
        assert "TEMP B-TREE" not in plan


@pytest.mark.parametrize("model", KINDS, ids=lambda model: model.__name__)
def test_list_of_a_member_is_read_from_an_index(model, owner, staff):
    """The conditions of teams compare columns of the index, so that no row of another user is read."""
    team = Team.objects.create(name="Risk")
    Membership.objects.create(team=team, user=owner, role="reader")
    plan = model.objects.visible_to(owner)[:30].explain()
    assert f"{model._meta.model_name}_of_" in plan
    assert "TEMP B-TREE" not in plan
    index = next(i for i in model._meta.indexes if i.name.endswith("_of_all"))
    column = model.TEAM_PATH.partition("__")[0]
    assert not column or {"owner", column} <= set(index.fields)


@pytest.mark.parametrize("sort", ["newest", "runs"])
def test_data_sets_are_listed_with_their_runs(client, owner, media, sort, django_assert_max_num_queries):
    datasets = Dataset.objects.bulk_create(
        Dataset(owner=owner, name=f"table {i:02}", target="class", rows=3, sha256="0" * 64) for i in range(40)
    )
    TrainingRun.objects.bulk_create(
        TrainingRun(owner=owner, dataset=dataset, method="cart") for dataset in datasets for _ in range(3)
    )
    client.force_login(owner)
    with django_assert_max_num_queries(8):
        answer = client.get(reverse("datasets:list"), {"sort": sort})
    page = answer.context["page"]
    assert [dataset.run_count for dataset in page] == [3] * 30
    assert page.paginator.count == 40


@pytest.fixture
def large(owner, media):
    """Provide many rows of every kind, each with documents."""
    text = {"words": "x" * 500}
    datasets = Dataset.objects.bulk_create(
        Dataset(owner=owner, name=f"table {i:04}", target="y", rows=3, sha256="0" * 64, profile=text)
        for i in range(200)
    )
    TrainingRun.objects.bulk_create(
        TrainingRun(
            owner=owner,
            dataset=datasets[i % len(datasets)],
            name="" if i % 2 else f"Run {i:04}",
            method="cart",
            status=(RunStatus.SUCCEEDED, RunStatus.FAILED)[i % 2],
            summary=text,
            log="x" * 500,
        )
        for i in range(2000)
    )
    tried = Experiment.objects.bulk_create(
        Experiment(owner=owner, dataset=datasets[0], name=f"Experiment {i:04}") for i in range(200)
    )
    Candidate.objects.bulk_create(
        Candidate(owner=owner, experiment=experiment, number=0, method="cart", document="x" * 500)
        for experiment in tried
    )
    family = Family.objects.create(owner=owner, name="trees")
    TreeModel.objects.bulk_create(
        TreeModel(
            owner=owner,
            family=family,
            version=i + 1,
            title="tree",
            method="cart",
            document="x" * 500,
            sha256=f"{i:064}",
            objective=1,
            train_accuracy=1,
            leaves=1,
            depth=0,
        )
        for i in range(200)
    )
    benches = Workbench.objects.bulk_create(Workbench(owner=owner, dataset=datasets[0], position=1) for _ in range(200))
    Step.objects.bulk_create(
        Step(workbench=bench, number=number, kind=StepKind.COMPLETE, document="x" * 500)
        for bench in benches
        for number in (1, 2)
    )


@pytest.fixture
def made():
    """Provide the number of rows that were read, by model."""
    counts = Counter()

    def count(sender, **_):
        counts[sender] += 1

    post_init.connect(count)
    yield counts
    post_init.disconnect(count)


def plans_of(queries, table):
    """Return the plans of the queries that read this table in an order."""
    for query in queries:
        sql = query["sql"]
        if sql.startswith("SELECT") and f'"{table}"' in sql and "ORDER BY" in sql and "LIMIT" in sql:
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN QUERY PLAN {sql}".replace("%", "%%"), ())
                yield "\n".join(row[3] for row in cursor.fetchall())


PAGES = ["datasets", "runs", "experiments", "models", "workbenches"]


@pytest.mark.slow
@pytest.mark.parametrize("query", [{}, {"page": 6}, {"page": 40}, {"sort": "name"}])
@pytest.mark.parametrize("address", ["/datasets/", "/models/", "/models/searches/", "/models/drafts/"])
def test_page_of_a_large_list_reads_few_rows(client, owner, large, made, address, query):
    client.force_login(owner)
    made.clear()
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address, query).status_code == 200
    assert len(queries) <= 14
    for model in (Dataset, TrainingRun, Experiment, Candidate, TreeModel, Workbench, Step):
        assert made[model] <= 80, model
    if "sort" not in query:
        for table in ("experiments_experiment", "runs_trainingrun"):
            for plan in plans_of(queries, table):
                assert "TEMP B-TREE" not in plan


@pytest.mark.slow
@pytest.mark.parametrize("query", [{}, {"page": 4}, {"page_size": 30}])
@pytest.mark.parametrize("name", PAGES)
def test_api_page_of_a_large_list_reads_few_rows(client_of, owner, large, made, name, query):
    client = client_of(owner)
    client.get("/api/v1/", {"page": 1})  # builds the OpenAPI document, so that this is not measured
    made.clear()
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(f"/api/v1/{name}/", query)
    assert answer.status_code == 200
    assert len(queries) <= 7
    assert max(made.values()) <= 51
    table = {"workbenches": "workbench_workbench", "models": "registry_treemodel", "runs": "runs_trainingrun"}
    for plan in plans_of(queries, table.get(name, f"{name}_{name[:-1]}")):
        assert "_of_owner" in plan or name == "models"
        assert "TEMP B-TREE" not in plan
    assert not any('"document"' in query["sql"] for query in queries)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PAGES, "predictions", "tokens"])
def test_cursors_visit_each_row_once_in_both_directions(client_of, owner, large, name):
    client = client_of(owner)
    seen = []
    address = f"/api/v1/{name}/?page_size=70"
    while address:
        page = client.get(address).json()
        seen.append([row.get("id", row.get("key")) for row in page["results"]])
        last = address
        address = page["next"]
    assert sum(map(len, seen)) == len({key for keys in seen for key in keys}) == page["count"]
    back = []
    address = last
    while address:
        page = client.get(address).json()
        back.append([row.get("id", row.get("key")) for row in page["results"]])
        address = page["previous"]
    assert back == seen[::-1]


@pytest.mark.slow
def test_cursor_shows_no_row_twice_after_an_insert(client_of, owner, large):
    client = client_of(owner)
    first = client.get("/api/v1/datasets/?page_size=50").json()
    Dataset.objects.create(owner=owner, name="newer", target="y", rows=1, sha256="0" * 64)
    second = client.get(first["next"]).json()
    assert not {row["id"] for row in first["results"]} & {row["id"] for row in second["results"]}


@pytest.mark.parametrize(
    "cursor", ["", "x", "é", "W10", "bnVsbA", "WyJhZnRlciIsIngiLCJ5Il0", "A" * 1000, "WyJhZnRlciIsMSwyXQ"]
)
def test_cursor_that_no_answer_named_is_refused(client_of, owner, cursor):
    answer = client_of(owner).get("/api/v1/runs/", {"cursor": cursor})
    assert answer.status_code == 400
    assert "is not a cursor" in answer.json()["detail"]


def test_cursor_and_page_together_are_refused(client_of, owner):
    assert client_of(owner).get("/api/v1/runs/", {"cursor": "x", "page": 1}).status_code == 400


@pytest.mark.slow
def test_numbered_pages_link_to_numbered_pages(client_of, owner, large):
    page = client_of(owner).get("/api/v1/runs/?page=2").json()
    assert "page=3" in page["next"]
    assert len(page["results"]) == 50


@pytest.mark.slow
@pytest.mark.parametrize("sort", ["newest", "oldest", "name", "dataset", "status"])
def test_list_of_runs_is_sorted_as_in_python(owner, large, sort):
    found = MergedEntries(SOURCES, owner, sort=sort)
    keys = {
        "newest": lambda e: -e.created.timestamp(),
        "oldest": lambda e: e.created.timestamp(),
        "name": lambda e: e.name.lower(),
        "dataset": lambda e: (e.dataset.lower(), e.name.lower()),
        "status": lambda e: e.badge,
    }
    rows = found[0 : found.count()]
    assert len(rows) == 2200
    assert [keys[sort](row) for row in rows] == sorted(keys[sort](row) for row in rows)
    assert rows[100:130] == found[100:130]


def test_status_of_experiments_is_one_in_sql_and_python(owner):
    dataset = Dataset.objects.create(owner=owner, name="table", target="y", rows=1, sha256="0" * 64)
    for size in range(4):
        for states in combinations_with_replacement(RunStatus.values, size):
            experiment = Experiment.objects.create(owner=owner, dataset=dataset, name=" ".join(states))
            Candidate.objects.bulk_create(
                Candidate(owner=owner, experiment=experiment, number=number, method="cart", status=status)
                for number, status in enumerate(states)
            )
    for experiment in Experiment.objects.annotate(found=STATUS):
        assert experiment.found == status_of(experiment.candidates.all()), experiment.name
