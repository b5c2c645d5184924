"""Search, glossary, first steps, and deletion with confirmation and undo."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.template import engines
from django.urls import reverse
from django.utils import timezone

from octweb.batch import actions as batch
from octweb.core.problems import Conflict
from octweb.core.words import GLOSSARY
from octweb.datasets.models import Dataset
from octweb.jobs.models import RunStatus
from octweb.registry.lifecycle import actions as registry
from octweb.registry.models import TreeModel
from octweb.runs import actions as runs
from octweb.runs.models import TrainingRun
from octweb.workbench import actions as workbenches
from tests.octweb.batch.conftest import rows_csv
from tests.octweb.runs.conftest import csv_file, dataset  # noqa: F401

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]


@pytest.fixture
def browser(client, owner):
    client.force_login(owner)
    return client


@pytest.fixture
def run(owner, dataset):  # noqa: F811
    run = runs.enqueue(owner=owner, dataset=dataset, method="cart", name="First try")
    return runs.cancel(run)


def hits(client, text):
    return [(h["kind"], h["name"]) for h in client.get("/search/", {"q": text, "format": "json"}).json()["hits"]]


def test_search_finds_every_kind_by_a_part_of_its_name(browser, run, register):
    register(title="Small tree")
    assert ("data set", "Small") in hits(browser, "sma")
    assert ("column", "height") in hits(browser, "heig")
    assert ("run", "First try") in hits(browser, "try first")
    assert ("model", "Small tree") in hits(browser, "SMALL tr")
    assert hits(browser, "nothing like it") == hits(browser, "") == []
    assert "height" in browser.get("/search/", {"q": "heig"}).content.decode()


def test_the_field_says_whether_it_shows_all_that_was_found(browser, owner, dataset):  # noqa: F811
    ask = lambda: browser.get("/search/", {"q": "try", "format": "json"}).json()  # noqa: E731
    for i in range(6):
        runs.enqueue(owner=owner, dataset=dataset, method="cart", name=f"Try {i}")
    assert (len(ask()["hits"]), ask()["all"]) == (6, True)
    runs.enqueue(owner=owner, dataset=dataset, method="cart", name="Try 6")
    assert (len(ask()["hits"]), ask()["all"]) == (6, False)


def test_search_shows_nothing_of_others(client, stranger, run, register):
    register(title="Small tree")
    client.force_login(stranger)
    assert hits(client, "small") == hits(client, "height") == []
    client.logout()
    assert client.get("/search/", {"q": "small"}).status_code == 302


def test_new_user_trains_a_sample_in_one_click(browser):
    text = browser.get("/").content.decode()
    assert "Your first tree, in one click" in text
    answer = browser.post(reverse("start", args=["iris"]))
    run = TrainingRun.objects.get()
    assert answer.url == reverse("runs:detail", args=[run.pk])
    assert (run.method, run.dataset.sample, run.test_share) == ("exact", "iris", 0.25)
    assert "Your first tree, in one click" not in browser.get("/").content.decode()
    assert browser.post(reverse("start", args=["digits"])).status_code == 404


def test_every_word_has_a_sentence_and_a_place(browser):
    text = browser.get("/words/").content.decode()
    for word, sentence in GLOSSARY.items():
        assert sentence.endswith("."), word
        assert f'id="{word.replace(" ", "-")}"' in text
    html = engines["django"].from_string('{% term "gap" "the gap" %}').render({})
    assert "the gap" in html
    assert "/words/#gap" in html
    with pytest.raises(KeyError):
        engines["django"].from_string('{% term "nonsense" %}').render({})


def test_deleting_asks_and_says_what_depends_on_it(browser, run, register):
    model = register(dataset=run.dataset)
    url = reverse("delete", args=["dataset", run.dataset_id])
    assert "1 run cannot exist without it" in browser.get(url).content.decode()
    assert browser.post(url).url == reverse("datasets:detail", args=[run.dataset_id])
    browser.post(reverse("delete", args=["run", run.pk]))
    assert "One model was trained on it" in browser.get(url).content.decode()
    assert browser.post(url).url == reverse("datasets:list")
    assert browser.get(reverse("datasets:detail", args=[run.dataset_id])).status_code == 404
    assert browser.get(reverse("registry:detail", args=[model.pk])).status_code == 200


def test_deleted_objects_are_restored_in_order(browser, run):
    browser.post(reverse("delete", args=["run", run.pk]))
    browser.post(reverse("delete", args=["dataset", run.dataset_id]))
    text = browser.get(reverse("deleted")).content.decode()
    assert "First try" in text
    assert browser.post(reverse("undelete", args=["run", run.pk])).url == reverse("deleted")
    browser.post(reverse("undelete", args=["dataset", run.dataset_id]))
    assert browser.post(reverse("undelete", args=["run", run.pk])).url == reverse("runs:detail", args=[run.pk])
    assert browser.get(reverse("runs:detail", args=[run.pk])).status_code == 200


def test_after_thirty_days_it_is_gone_for_good(browser, run):
    browser.post(reverse("delete", args=["run", run.pk]))
    browser.post(reverse("delete", args=["dataset", run.dataset_id]))
    runs.tidy(timezone.now() + timedelta(days=29))
    assert TrainingRun.objects.exists()
    runs.tidy(timezone.now() + timedelta(days=31))
    assert not TrainingRun.objects.exists()
    assert not Dataset.objects.exists()


def test_strangers_delete_and_bring_back_nothing(client, stranger, run):
    client.force_login(stranger)
    assert client.post(reverse("delete", args=["run", run.pk])).status_code == 404
    assert client.post(reverse("undelete", args=["run", run.pk])).status_code == 404
    assert client.get(reverse("delete", args=["nonsense", run.pk])).status_code == 404


def test_a_model_that_is_served_is_not_deleted(browser, approved, owner):
    assert browser.post(reverse("delete", args=["model", approved.pk])).url == reverse(
        "registry:detail", args=[approved.pk]
    )
    assert TreeModel.objects.kept().exists()
    registry.retire(approved, by=owner)
    browser.post(reverse("delete", args=["model", approved.pk]))
    assert browser.get(reverse("registry:detail", args=[approved.pk])).status_code == 404


def test_active_run_is_not_deleted(browser, run):
    TrainingRun.objects.filter(pk=run.pk).update(status=RunStatus.RUNNING)
    run.refresh_from_db()
    with pytest.raises(Conflict):
        runs.delete(run)
    browser.post(reverse("delete", args=["run", run.pk]))
    assert TrainingRun.objects.kept().exists()


def test_sharing_by_page_and_api(browser, model, stranger, client_of, owner):
    url = reverse("registry:share", args=[model.pk])
    browser.post(url, {"username": "nobody", "level": "read"})
    assert not model.shares.exists()
    browser.post(url, {"username": "sam", "level": "call", "back": "review"})
    assert [(s.user.username, s.level) for s in model.shares.all()] == [("sam", "call")]
    assert "sam: read and call" in browser.get(reverse("registry:review-page", args=[model.pk])).content.decode()
    browser.post(url, {"remove": "sam"})
    api = client_of(owner)
    address = f"/api/v1/models/{model.pk}/shares/"
    share = {"username": "sam", "level": "read", "records": False}
    assert api.post(address, {"username": "sam"}, format="json").json() == [share]
    assert client_of(stranger).get(address).status_code == 404
    assert api.delete(f"{address}?username=sam").status_code == 204
    assert api.get(address).json() == []


def test_lists_are_searched_and_sorted(browser, run, register):
    register(title="Aardvark")
    register(title="Zebra")
    models = browser.get("/models/", {"sort": "name"}).content.decode()
    assert models.index("Aardvark") < models.index("Zebra")
    assert "Zebra" not in browser.get("/models/", {"q": "aard"}).content.decode()
    assert "No model matches." in browser.get("/models/", {"q": "nothing"}).content.decode()
    for sort in ("newest", "name", "rows", "target", "runs", "nonsense"):
        assert "Small" in browser.get("/datasets/", {"sort": sort}).content.decode()
    assert "No data set matches." in browser.get("/datasets/", {"q": "nothing"}).content.decode()
    for sort in ("newest", "oldest", "name", "dataset", "status"):
        assert "First try" in browser.get("/models/searches/", {"sort": sort, "q": "first"}).content.decode()


@pytest.mark.usefixtures("run")
def test_methods_have_their_titles_and_are_found_by_title_and_id(browser, owner, dataset):  # noqa: F811
    runs.enqueue(owner=owner, dataset=dataset, method="exact-numeric", name="Other one")
    page = browser.get("/models/searches/", {"q": "other"}).content.decode()
    assert "Exact search over all thresholds" in page
    assert "exact-numeric" in page
    for words in ("over all thresholds", "exact-numeric", "search numeric"):
        page = browser.get("/models/searches/", {"q": words}).content.decode()
        assert ("Other one" in page, "First try" in page) == (True, False)
    assert ("run", "Other one") in hits(browser, "exact thresholds")


def test_workbenches_and_predicted_files_are_searched_and_sorted(browser, owner, dataset, model):  # noqa: F811
    for name in ("Aardvark", "Zebra"):
        workbenches.open_for(owner=owner, dataset=dataset, name=name)
        batch.enqueue(owner=owner, model=model, file=rows_csv(), source_name=f"{name}.csv")
    for address in ("/models/drafts/", "/decisions/"):
        page = browser.get(address, {"sort": "name"}).content.decode()
        assert page.index("Aardvark") < page.index("Zebra")
        page = browser.get(address, {"sort": "newest"}).content.decode()
        assert page.index("Zebra") < page.index("Aardvark")
        assert "Zebra" not in browser.get(address, {"q": "aard"}).content.decode()
        assert "matches." in browser.get(address, {"q": "nothing"}).content.decode()


def test_the_page_of_a_queued_run_looks_at_the_queue_once(browser, owner, dataset, monkeypatch):  # noqa: F811
    from octweb.runs import views

    run = runs.enqueue(owner=owner, dataset=dataset, method="cart")
    asked = []
    wait_of = views.wait_of
    monkeypatch.setattr(views, "wait_of", lambda job: asked.append(job) or wait_of(job))
    page = browser.get(reverse("runs:live", args=[run.pk]))
    assert "in the queue" in page.content.decode()
    browser.get(reverse("runs:detail", args=[run.pk]))
    assert browser.get(reverse("runs:live", args=[run.pk]), {"seen": page.context["seen"]}).status_code == 204
    assert len(asked) == 3


@pytest.mark.parametrize(("phase", "left"), [("search", 70.0), ("fold 2 of 10", None), ("proof", None)])
def test_the_time_that_is_left_is_that_of_the_search(browser, run, phase, left):
    TrainingRun.objects.filter(pk=run.pk).update(
        status=RunStatus.RUNNING, parameters=run.parameters | {"time_limit": 100}, progress={"t": 30.0, "phase": phase}
    )
    (shown,) = browser.get(reverse("home")).context["runs"]
    assert shown["left"] == left
