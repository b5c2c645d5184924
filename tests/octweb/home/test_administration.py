"""The administration page: who sees it, who manages people, and what remains an administrator's own."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry

from octweb.datasets.models import Dataset
from octweb.jobs.models import RunStatus
from octweb.runs import actions as runs
from tests.octweb.runs.conftest import csv_file, dataset  # noqa: F401

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]
ADDRESS = "/administration/"


@pytest.fixture
def boss(client, django_user_model):
    user = django_user_model.objects.create_superuser("boss", password="a long password 1")
    client.force_login(user)
    return client


def test_people_queue_and_health_are_on_one_page(boss, owner, dataset):  # noqa: F811
    run = runs.enqueue(owner=owner, dataset=dataset, method="cart", name="Waiting one")
    page = boss.get(ADDRESS).content.decode()
    assert owner.username in page
    assert "Waiting one" in page
    assert "none is running; nothing is trained until one is started" in page
    boss.post(ADDRESS, {"do": "stop", "kind": "runs.trainingrun", "job": str(run.pk)})
    run.refresh_from_db()
    assert run.status == RunStatus.CANCELLED
    assert Dataset.objects.count() == 1


def test_role_and_access_change_and_are_logged(boss, owner):
    boss.post(ADDRESS, {"do": "role", "user": owner.username, "role": "reviewer"})
    owner.refresh_from_db()
    assert (owner.is_staff, owner.is_superuser) == (True, False)
    boss.post(ADDRESS, {"do": "access", "user": owner.username, "active": "0"})
    owner.refresh_from_db()
    assert not owner.is_active
    assert [e.change_message for e in LogEntry.objects.order_by("pk")] == ["role: Reviewer", "access taken away"]


def test_own_role_and_unknown_roles_are_refused(boss, owner, django_user_model):
    for form in ({"user": "boss", "role": "member"}, {"user": owner.username, "role": "king"}):
        boss.post(ADDRESS, {"do": "role"} | form)
    boss.post(ADDRESS, {"do": "access", "user": "boss", "active": "0"})
    own = django_user_model.objects.get(username="boss")
    owner.refresh_from_db()
    assert own.is_superuser
    assert own.is_active
    assert not owner.is_staff


def test_new_person_sets_a_password_by_the_link(boss, client, django_user_model):
    page = boss.post(ADDRESS, {"do": "add", "username": "nora", "email": "nora@example.org"})
    link = page.context["link"]
    assert link in page.content.decode()
    assert not django_user_model.objects.get(username="nora").has_usable_password()
    client.logout()
    assert client.get(link, follow=True).context["validlink"]


@pytest.mark.parametrize("form", [{"username": "boss"}, {"username": ""}, {"username": "a b"}])
def test_bad_names_create_no_account(boss, django_user_model, form):
    before = django_user_model.objects.count()
    page = boss.post(ADDRESS, {"do": "add"} | form, follow=True).content.decode()
    assert "The account was not created" in page
    assert django_user_model.objects.count() == before


def test_reviewers_see_the_page_and_cannot_change_users(client, owner, django_user_model):
    client.force_login(django_user_model.objects.create_user("rita", is_staff=True))
    page = client.get(ADDRESS).content.decode()
    assert "Only administrators can manage people" in page
    for do in ("role", "access", "link", "add"):
        assert client.post(ADDRESS, {"do": do, "user": owner.username, "role": "administrator"}).status_code == 403
    client.force_login(owner)
    assert client.get(ADDRESS).status_code == 403
    assert client.post(ADDRESS, {"do": "add", "username": "x"}).status_code == 403


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"do": "stop", "kind": "x"},
        {"do": "stop", "kind": "runs.trainingrun", "job": "x"},
        {"do": "link", "user": "\x00"},
    ],
)
def test_forms_that_name_nothing_get_404(boss, form):
    assert boss.post(ADDRESS, form).status_code == 404
