"""The public demo: entry, permissions of visitors, what others see, and deletion after a day."""

from __future__ import annotations

import io
import re
import threading
from datetime import timedelta

import pytest
from axes.models import AccessLog
from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.core.files.base import ContentFile
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from octweb.audit import actions as audit
from octweb.audit.models import Record
from octweb.batch import actions as batch
from octweb.datasets import actions as datasets
from octweb.datasets.models import Dataset
from octweb.demo import actions as demo
from octweb.demo.deleting import delete_all
from octweb.demo.models import Visit
from octweb.demo.visits import count_objects, owned_models
from octweb.experiments import actions as experiments
from octweb.jobs.management.commands import worker
from octweb.jobs.models import RunStatus
from octweb.notify.models import Wish
from octweb.registry.lifecycle import actions as registry
from octweb.registry.models import TreeModel
from octweb.runs import actions as runs
from octweb.runs.models import TrainingRun
from octweb.runs.training import TrainingSupervisor
from octweb.serving.actions import create_token
from octweb.serving.authentication import forget
from octweb.serving.models import ApiToken
from octweb.workbench import actions as workbenches
from tests.octweb.demo.demo_cases import BEGIN, visitor
from tests.octweb.runs.conftest import CSV, hard_csv

pytestmark = pytest.mark.django_db
END = "/demo/end/"


@pytest.fixture(autouse=True)
def _demo(settings, media):
    settings.DEMO = True
    settings.MAX_TRAINING_SECONDS = 60


def test_sample_button_begins_demo_and_training():
    answer = Client().post(reverse("start", args=["iris"]))
    assert answer["Location"] == reverse("runs:detail", args=[TrainingRun.objects.get().pk])


def trained(browser: Client) -> TrainingRun:
    """Return the run of the first page's button, trained to its end."""
    answer = browser.post(reverse("start", args=["iris"]))
    run = TrainingRun.objects.latest("created")
    assert answer["Location"] == reverse("runs:detail", args=[run.pk])
    TrainingSupervisor(job_id=str(run.pk), worker="here", stopping=threading.Event()).run()
    run.refresh_from_db()
    return run


def files_in(folder) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def full_of_things(user, document) -> TreeModel:
    """Create one object of every kind that a user can have, with files."""
    data = datasets.create(owner=user, file=io.BytesIO(CSV.encode()), source_name="private name.csv", target="class")
    datasets.stage(owner=user, file=io.BytesIO(CSV.encode()), source_name="staged.csv")
    model = registry.register(owner=user, document=document, dataset=data, title="Private title")
    rows = ContentFile(CSV.encode(), name="rows.csv")
    batch.enqueue(owner=user, model=model, file=rows, source_name="rows.csv")
    experiments.start(owner=user, dataset=data, candidates=[{"method": "cart"}], folds=3, test_share=0.2)
    # a deleted run that could still be restored
    runs.delete(runs.cancel(runs.enqueue(owner=user, dataset=data, method="cart")))
    workbenches.open_for(owner=user, dataset=data)
    create_token(owner=user)
    return model


# The tests below are about entering the demo.


def test_without_the_demo_there_is_no_such_address(settings, client):
    settings.DEMO = False
    for address in (BEGIN, END):
        assert client.post(address).status_code == 404
    assert not get_user_model().objects.exists()
    for page in ("/", reverse("login")):
        assert "Try it now" not in client.get(page).content.decode()


@pytest.mark.one_database
def test_a_crawler_that_follows_every_link_makes_no_account(client):
    seen = set()
    left = ["/", reverse("login"), BEGIN, END]
    while left:
        page = left.pop()
        seen.add(page)
        answer = client.get(page)
        matches = re.findall(r'(?:href|action)="(/[^"#?]*)"', answer.content.decode(errors="replace"))
        left += [a for a in set(matches) if a not in seen | set(left) and not a.startswith(("/static/", "/admin/"))]
        client.head(page)
    assert BEGIN in seen
    assert client.get(BEGIN).status_code == 405
    assert (get_user_model().objects.count(), Visit.objects.count()) == (0, 0)
    assert Session.objects.count() == 0


def test_other_site_cannot_begin_or_end_a_demo():
    strict = Client(enforce_csrf_checks=True)
    assert strict.post(BEGIN).status_code == 403
    assert not Visit.objects.exists()
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', strict.get("/").content.decode())[1]
    assert strict.post(BEGIN, {"csrfmiddlewaretoken": token}).status_code == 302
    assert strict.post(END).status_code == 403
    assert Visit.objects.get().user is not None


def test_demo_button_is_on_first_and_sign_in_page(client):
    for page in ("/", reverse("login")):
        text = client.get(page).content.decode()
        assert f'action="{BEGIN}"' in text
        assert "60 seconds at most" in text
        assert "After 24 hours it is deleted" in text


def test_double_click_creates_one_account():
    browser, visit = visitor()
    assert browser.post(BEGIN).status_code == 302
    assert Visit.objects.get() == visit


def test_account_has_no_password_and_session_ends_with_visit():
    browser, visit = visitor()
    assert not visit.user.has_usable_password()
    assert (visit.user.is_staff, visit.user.email) == (False, "")
    assert visit.until - visit.begun == timedelta(days=1)
    session = Session.objects.get(session_key=browser.session.session_key)
    assert abs(session.expire_date - visit.until) < timedelta(seconds=2)
    page = browser.get("/").content.decode()
    assert visit.until.strftime("%H:%M") in page
    assert "this account is deleted, with every" in page
    assert "Hello, Visitor" in page


def test_accounts_with_password_see_no_demo_banner(client, owner, staff):
    for user in (owner, staff):
        client.force_login(user)
        page = client.get("/").content.decode()
        assert "demo-bar" not in page
        assert "Sign out" in page
        assert client.post(END).status_code == 404
    assert client.get("/admin/").status_code == 200
    assert create_token(owner=owner)[0].expiry is None


def test_demos_are_limited_per_network_and_in_total(settings):
    settings.DEMO_VISITORS_PER_ADDRESS = 2
    settings.DEMO_VISITORS = 3
    for end in ("1", "2"):
        assert Client(REMOTE_ADDR=f"2001:db8:1:2::{end}").post(BEGIN).status_code == 302
    refused = Client(REMOTE_ADDR="2001:db8:1:2:ffff::3").post(BEGIN)  # the address belongs to the same customer
    assert (refused.status_code, refused["Retry-After"]) == (429, "3600")
    assert "2 demos were begun from your network within a day" in refused.content.decode()
    demo.end(Visit.objects.first())  # the daily limit counts the visit even after its end
    assert Client(REMOTE_ADDR="2001:db8:1:2::4").post(BEGIN).status_code == 429
    assert Client(REMOTE_ADDR="192.0.2.1").post(BEGIN).status_code == 302
    refused = Client(REMOTE_ADDR="192.0.2.2").post(BEGIN)
    assert "3 demos were begun within a day" in refused.content.decode()
    Visit.objects.update(begun=timezone.now() - timedelta(hours=25))
    assert Client(REMOTE_ADDR="192.0.2.2").post(BEGIN).status_code == 302
    assert "192.0.2" not in "".join(Visit.objects.values_list("origin", flat=True))


# The tests below are about visitors' work.


@pytest.mark.slow
@pytest.mark.one_database
def test_visitor_trains_a_tree_that_the_next_cannot_see():
    first, visit = visitor()
    run = trained(first)
    assert (run.status, run.summary["status"], run.summary["gap"]) == (RunStatus.SUCCEEDED, "optimal", 0)
    mine = [
        reverse("runs:detail", args=[run.pk]), reverse("registry:detail", args=[run.model_id]),
        reverse("datasets:detail", args=[run.dataset_id]), f"/api/v1/runs/{run.pk}/", f"/api/v1/models/{run.model_id}/",
        f"/api/v1/datasets/{run.dataset_id}/", f"/api/v1/models/{run.model_id}/download/",
    ]  # fmt: skip
    assert [first.get(address).status_code for address in mine] == [200] * len(mine)
    second, other = visitor()
    with_token = APIClient()
    with_token.credentials(HTTP_AUTHORIZATION=f"Token {create_token(owner=other.user)[1]}")
    for client in (second, with_token):
        wanted = mine if client is second else mine[3:]
        assert [client.get(address).status_code for address in wanted] == [404] * len(wanted)
        for kind in ("runs", "models", "datasets"):
            assert client.get(f"/api/v1/{kind}/").json()["results"] == []
    assert visit.user.username not in second.get("/").content.decode()


@pytest.mark.one_database
def test_limits_hold_with_words(settings):
    settings.MAX_ROWS = 100
    settings.MAX_COLUMNS = 3
    settings.MAX_UPLOAD_BYTES = 1_000_000
    settings.MAX_QUEUED_RUNS = 1
    browser, visit = visitor()

    def upload(text: str):
        return browser.post("/api/v1/datasets/", {"file": ContentFile(text.encode(), name="x.csv")})

    assert "100" in upload("a,class\n" + "1,x\n2,y\n" * 60).json()["detail"]
    assert "3" in upload("a,b,c,d,class\n1,2,3,4,x\n").json()["detail"]
    large = upload("a,class\n" + "1,x\n" * 300_000)
    assert (large.status_code, "1 MB" in large.json()["detail"]) == (413, True)
    stored = upload("a,class\n" + "1,x\n2,y\n" * 20)
    assert stored.status_code == 201

    def train(**parameters):
        body = {"dataset": stored.json()["id"], "method": "cart", "parameters": parameters}
        return browser.post("/api/v1/runs/", body, content_type="application/json")

    assert "at most 60 s" in train(time_limit=61).content.decode()
    assert "at most" in train(memory_limit=10**6).content.decode()
    first = train()  # the default of the method is longer than the demo permits
    assert (first.status_code, first.json()["parameters"]["time_limit"]) == (201, 60)
    page = browser.get(reverse("runs:new"), {"dataset": stored.json()["id"], "method": "cart"}).content.decode()
    assert re.search(r'name="p_time_limit" value="1"', page)
    assert "1 is the limit" in train().json()["detail"]
    settings.DEMO_ITEMS = count_objects(visit.user)
    refused = upload("a,class\n" + "1,x\n2,y\n" * 20)
    assert refused.status_code == 409
    assert f"{settings.DEMO_ITEMS} is the limit" in refused.json()["detail"]
    page = browser.post(reverse("start", args=["iris"]), follow=True)
    assert f"{settings.DEMO_ITEMS} is the limit" in page.content.decode()


def test_demo_limits_do_not_apply_to_other_accounts(settings, owner):
    settings.DEMO_ITEMS = 1
    for _ in range(3):
        datasets.create(owner=owner, file=io.BytesIO(CSV.encode()), source_name="x.csv", target="class")
    assert Dataset.objects.filter(owner=owner).count() == 3


@pytest.mark.parametrize("days", [None, 30])
def test_tokens_end_with_the_visit(days):
    _, visit = visitor()
    token, _ = create_token(owner=visit.user, days=days)
    assert abs(token.expiry - visit.until) < timedelta(seconds=2)


def test_no_mail_no_webhook_no_sharing_and_no_approval(cart_document, owner, staff, mailoutbox):
    browser, visit = visitor()
    model = registry.register(owner=visit.user, document=cart_document, dataset=None, title="Mine")
    asked = {
        f"/api/v1/models/{model.pk}/review/": {"action": "ask"},
        f"/api/v1/models/{model.pk}/shares/": {"username": "olga", "level": "read"},
    }
    for address, body in asked.items():
        answer = browser.post(address, body, content_type="application/json")
        assert answer.status_code == 403, address
        assert "is not part of the demo" in answer.json()["detail"], address
    answer = browser.post(reverse("notify"), {"webhook": "https://example.org/hook"})
    assert answer.status_code == 403
    assert "is not part of the demo" in answer.content.decode()
    assert not Wish.objects.exists()
    model.refresh_from_db()
    assert (model.state, model.shares.count()) == ("draft", 0)
    assert "ask" not in registry.possible_steps(model, visit.user)
    assert "Ask for approval" not in browser.get(reverse("registry:detail", args=[model.pk])).content.decode()
    assert mailoutbox == []


# The tests below are about the end of a visit.


def test_ended_visit_is_deleted_with_files_and_nothing_else(owner, media, cart_document):
    full_of_things(owner, cart_document)
    own_files = files_in(media)
    own_things = count_objects(owner)
    own_tokens = ApiToken.objects.filter(user=owner).count()
    browser, visit = visitor()
    user = visit.user
    model = full_of_things(user, cart_document)
    run = runs.enqueue(owner=user, dataset=model.dataset, method="cart")
    TrainingRun.objects.filter(pk=run.pk).update(status=RunStatus.RUNNING, worker="here", attempt=1)
    assert len(files_in(media)) == 2 * len(own_files)
    browser.get("/")

    assert demo.end_due(visit.until - timedelta(seconds=1)) == 0
    with_token = APIClient()
    with_token.credentials(HTTP_AUTHORIZATION=f"Token {create_token(owner=user)[1]}")
    assert with_token.get("/api/v1/runs/").status_code == 200
    Visit.objects.update(until=timezone.now())
    with_commit(worker._end_visits)

    assert not get_user_model().objects.filter(pk=user.pk).exists()
    assert not Visit.objects.exists()
    assert files_in(media) == own_files
    assert count_objects(owner) == own_things
    assert ApiToken.objects.count() == own_tokens
    for kind in owned_models():
        assert set(kind._default_manager.values_list("owner", flat=True)) <= {owner.pk}, kind
    assert not AccessLog.objects.filter(username=user.username).exists()
    assert not Session.objects.exists()
    assert browser.get("/api/v1/runs/").status_code in (401, 403)
    forget()  # the cached token expires by itself after five seconds
    assert with_token.get("/api/v1/runs/").status_code == 401


def with_commit(action):
    """Run the commit hooks of a test's transaction, too."""
    from django.test import TestCase

    with TestCase.captureOnCommitCallbacks(execute=True):
        return action()


def test_deleted_visitor_is_named_in_the_chain_only(cart_document):
    _, visit = visitor()
    model = full_of_things(visit.user, cart_document)
    ids = {visit.user.username, str(model.pk), "Private title", "private name"}
    with_commit(lambda: demo.end(visit))
    left = set()
    for table in (model for model in apps.get_models() if model is not Record):
        for row in table._base_manager.values_list():
            left |= {f"{table.__name__}: {one}" for one in ids for value in row if one in str(value)}
    assert left == set()
    # The chain of decisions only grows. It holds hashes and the random name, but no words that the visitor chose.
    chain = " ".join(str(record.to_json()) for record in Record.objects.all())
    assert visit.user is not None
    assert "Private title" not in chain
    assert "private name" not in chain
    assert audit.broken() == []


def test_a_run_in_progress_is_stopped(media):
    _, visit = visitor()
    data = datasets.create(owner=visit.user, file=hard_csv(), source_name="hard.csv", target="class")
    parameters = {"depth": 5, "time_limit": 60}
    run = runs.enqueue(owner=visit.user, dataset=data, method="exact", parameters=parameters)
    supervisor = TrainingSupervisor(job_id=str(run.pk), worker="here", stopping=threading.Event())
    children = []
    tick = supervisor._tick

    def watched(child):
        children.append(child)
        if len(children) == 2:
            demo.end(visit)
        return tick(child)

    supervisor._tick = watched
    assert supervisor.run() == "deleted"
    assert len(children) == 2
    assert children[0].poll() is not None  # the child process has ended
    assert not TrainingRun.objects.filter(pk=run.pk).exists()


def test_visitor_can_end_the_demo(media):
    browser, visit = visitor()
    browser.post(reverse("datasets:sample", args=["iris"]))
    assert files_in(media)
    answer = with_commit(lambda: browser.post(END, follow=True))
    assert "The account and everything in it were deleted" in answer.content.decode()
    assert "Try it now" in answer.content.decode()
    assert files_in(media) == set()
    visit.refresh_from_db()
    assert visit.user is None  # the row stays until the day is over, because it counts towards the daily limit
    assert not get_user_model().objects.exists()


def test_objects_of_administrators_stay_and_visitor_is_locked(staff, caplog):
    browser, visit = visitor()
    data = datasets.create(owner=visit.user, file=io.BytesIO(CSV.encode()), source_name="x.csv", target="class")
    run = runs.enqueue(owner=staff, dataset=data, method="cart")
    assert demo.end_due(visit.until) == 0
    assert "is not deleted yet" in caplog.text
    assert TrainingRun.objects.get() == run
    assert Dataset.objects.get() == data
    assert browser.get("/api/v1/runs/").status_code in (401, 403)
    run.delete()
    assert demo.end_due(visit.until) == 1
    assert not Dataset.objects.exists()


def test_visit_ends_even_if_demo_is_disabled(settings):
    _, visit = visitor()
    settings.DEMO = False
    assert demo.end_due(visit.until) == 1
    assert not get_user_model().objects.exists()


def test_account_with_password_costs_no_visit_query(owner, django_assert_num_queries):
    from octweb.demo.visits import visit_of

    with django_assert_num_queries(0):
        assert visit_of(owner) is None


def test_files_stay_where_the_database_does_not_agree(media, monkeypatch):
    _, visit = visitor()
    datasets.create(owner=visit.user, file=io.BytesIO(CSV.encode()), source_name="x.csv", target="class")
    before = files_in(media)

    def failing(*_, **__):
        raise RuntimeError("away")

    monkeypatch.setattr(type(visit.user)._default_manager.__class__, "filter", failing, raising=False)
    with pytest.raises(RuntimeError):
        with_commit(lambda: delete_all(visit.user))
    assert files_in(media) == before
    assert connection.in_atomic_block
