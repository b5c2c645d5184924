"""Pages and API of teams."""

from __future__ import annotations

import io
import uuid

import pytest
from django.urls import reverse
from django.utils import timezone

from octweb.core.models import Team
from octweb.core.ownership import forget_roles
from octweb.datasets.models import Dataset
from octweb.demo.models import Visit
from octweb.notify.receivers import LONG_RUN, on_end
from octweb.registry.lifecycle import actions as registry
from octweb.registry.lifecycle.audit_trail import audit_datasets
from octweb.runs import actions as runs
from octweb.runs.models import TrainingRun
from octweb.teams import actions
from tests.octweb.runs.conftest import CSV
from tests.octweb.teams.conftest import ROLES

pytestmark = pytest.mark.django_db


def test_team_is_made_and_filled_on_its_pages(client, owner, stranger, dataset, tree):
    client.force_login(owner)
    answer = client.post(reverse("teams:list"), {"name": "Risk"})
    team = Team.objects.get()
    assert answer.url == reverse("teams:detail", args=[team.pk])
    client.post(answer.url, {"do": "set", "username": stranger.username, "role": "reader"})
    client.post(reverse("teams:of", args=["dataset", dataset.pk]), {"team": str(team.pk)})
    text = client.get(answer.url).content.decode()
    for words in ("Your role is owner", stranger.username, "small", "shared one"):
        assert words in text
    client.force_login(stranger)
    assert client.get(reverse("datasets:detail", args=[dataset.pk])).status_code == 200
    client.post(answer.url, {"do": "leave"})
    assert client.get(reverse("datasets:detail", args=[dataset.pk])).status_code == 404


@pytest.mark.parametrize("role", ROLES)
def test_pages_show_only_what_the_role_may_do(client, shared, tree, team, members, role):
    client.force_login(members[role])
    text = client.get(reverse("datasets:detail", args=[shared.pk])).content.decode()
    assert ("New run" in text) == (role in ("owner", "editor"))
    assert ("Team…" in text) == (role == "owner")
    model = client.get(reverse("registry:detail", args=[tree.pk])).content.decode()
    assert ("Edit a copy" in model) == (role in ("owner", "editor") and tree.method in ("exact",))
    assert ("Rename" in client.get(reverse("teams:detail", args=[team.pk])).content.decode()) == (role == "owner")
    assert client.get(reverse("registry:review-page", args=[tree.pk])).status_code == 200


def test_refusal_of_a_change_becomes_a_message(client, team, owner, media):
    client.force_login(owner)
    page = reverse("teams:detail", args=[team.pk])
    for change in ({"do": "leave"}, {"do": "set", "username": "nobody", "role": "reader"}):
        answer = client.post(page, change, follow=True)
        assert answer.status_code == 200
        assert list(answer.context["messages"])
    assert client.post(page, {"do": "nothing"}).status_code == 404


def test_team_is_managed_over_the_api(client_of, owner, stranger, dataset):
    client = client_of(owner)
    team = client.post("/api/v1/teams/", {"name": "Risk"}, format="json")
    assert team.status_code == 201
    address = f"/api/v1/teams/{team.data['id']}/"
    body = {"username": stranger.username, "role": "editor"}
    added = client.post(f"{address}members/", body, format="json")
    assert {m["username"]: m["role"] for m in added.data["members"]} == {"olga": "owner", "sam": "editor"}
    assert client.patch(address, {"name": "Fraud"}, format="json").data["name"] == "Fraud"
    given = client.put(f"/api/v1/datasets/{dataset.pk}/team/", {"team": team.data["id"]}, format="json")
    assert str(given.data["team"]) == team.data["id"]
    assert client_of(stranger).get(f"/api/v1/datasets/{dataset.pk}/").status_code == 200
    assert client.delete(address).status_code == 409
    assert client.delete(f"{address}members/?username=sam").status_code == 204
    assert client_of(stranger).get(f"/api/v1/datasets/{dataset.pk}/").status_code == 404
    assert client.get(address).data["role"] == "owner"


def test_table_is_uploaded_into_a_team(client_of, team, members, media):
    def upload(role, key):
        file = io.BytesIO(CSV.encode())
        file.name = "rows.csv"
        body = {"file": file, "target": "class", "team": str(key)}
        return client_of(members[role]).post("/api/v1/datasets/", body, format="multipart")

    assert str(upload("editor", team.pk).data["team"]) == str(team.pk)
    refused = [upload("reader", team.pk), upload("editor", uuid.uuid4())]
    assert [answer.status_code for answer in refused] == [400, 400]
    assert refused[0].json()["detail"] == refused[1].json()["detail"]
    assert Dataset.objects.count() == 1
    assert audit_datasets(Dataset.objects.all()).problems == []


def test_team_of_approved_model_is_hidden_from_others(client_of, shared, tree, owner, staff, stranger):
    registry.ask_for_approval(tree, by=owner)
    registry.approve(tree, by=staff, reason="fine")
    told = [client_of(user).get(f"/api/v1/models/{tree.pk}/").data["team"] for user in (owner, stranger)]
    assert told == [str(shared.team_id), None]


def test_former_member_gets_no_message(team, shared, members, owner, monkeypatch):
    run = runs.enqueue(owner=members["editor"], dataset=shared, method="cart")
    now = timezone.now()
    TrainingRun.objects.filter(pk=run.pk).update(started=now - 2 * LONG_RUN, finished=now, status="succeeded")
    told = []
    monkeypatch.setattr("octweb.notify.receivers.queue_message", lambda user, message: told.append(user))
    on_end(TrainingRun, job_id=str(run.pk))
    assert told == [members["editor"]]
    actions.remove_member(team, by=owner, username="editor")
    on_end(TrainingRun, job_id=str(run.pk))
    assert len(told) == 1


def test_list_of_teams_needs_few_queries(client_of, owner, members, team, staff, django_assert_max_num_queries):
    for i in range(20):
        actions.create(by=owner, name=f"Team {i}")
    client = client_of(staff)
    client.get("/api/v1/teams/")
    with django_assert_max_num_queries(6):
        assert len(client.get("/api/v1/teams/").data) == 21


def test_names_that_no_database_stores_are_refused(client, owner, team, media):
    client.force_login(owner)
    client.post(reverse("teams:list"), {"name": "a\x00b"})
    page = reverse("teams:detail", args=[team.pk])
    client.post(page, {"do": "set", "username": "s\x00am", "role": "reader"})
    assert client.post(page, {"do": "remove", "username": "s\x00am"}).status_code == 404
    assert Team.objects.get().name == "Risk"


def test_visitor_of_the_demo_is_in_no_team(team, owner, django_user_model):
    from rest_framework.exceptions import ValidationError

    visitor = django_user_model.objects.create_user("visitor")
    Visit.objects.create(user=visitor, begun=timezone.now(), until=timezone.now(), origin="somewhere")
    with pytest.raises(ValidationError, match="no active account"):
        actions.set_member(team, by=owner, username="visitor", role="reader")


def test_roles_are_read_again_in_other_processes(team, members, stranger, monkeypatch):
    """Another process keeps the roles of a user for CACHE_SECONDS at most."""
    from octweb.core import ownership

    user = members["reader"]
    forget_roles()
    assert ownership.team_roles(user) == {team.pk: "reader"}
    team.members.filter(user=user).delete()  # as another process does it
    assert ownership.team_roles(user) == {team.pk: "reader"}
    later = ownership.time.monotonic() + ownership.CACHE_SECONDS + 1
    monkeypatch.setattr(ownership.time, "monotonic", lambda: later)
    assert ownership.team_roles(user) == {}
