"""What a deleted account made in a team stays with the team."""

from __future__ import annotations

import pytest
from django.db.models import ProtectedError
from django.urls import reverse

from octweb.audit.models import Record
from octweb.core.problems import Conflict
from octweb.datasets.models import Dataset
from octweb.registry.lifecycle.audit_trail import audit_models
from octweb.registry.models import Family, TreeModel
from octweb.runs import actions as runs
from octweb.runs.models import TrainingRun
from octweb.teams import actions
from octweb.teams.leaving import hand_over

pytestmark = pytest.mark.django_db


@pytest.fixture
def heir(team, members):
    actions.set_member(team, by=members["owner"], username="editor", role="owner")
    return members["editor"]


def test_deleted_account_leaves_its_objects_to_an_owner(client, shared, tree, heir, owner, staff):
    runs.enqueue(owner=owner, dataset=shared, method="cart")
    Family.objects.create(owner=heir, name=tree.family.name)
    client.force_login(staff)
    answer = client.post(reverse("admin:auth_user_delete", args=[owner.pk]), {"post": "yes"})
    assert answer.status_code == 302
    assert not type(owner).objects.filter(pk=owner.pk).exists()
    for kind in (Dataset, TreeModel, TrainingRun):
        assert kind.objects.get().owner == heir
    model = TreeModel.objects.get()
    assert model.family.owner == heir
    assert Record.objects.get(what="handed over").details["to"] == heir.username
    assert audit_models([model]).problems == []


def test_account_of_the_last_owner_is_not_deleted(client, shared, members, owner, staff):
    with pytest.raises(Conflict, match="last owner of the team Risk"):
        hand_over(owner)
    client.force_login(staff)
    answer = client.post(reverse("admin:auth_user_delete", args=[owner.pk]), {"post": "yes"})
    assert "whose last owner is olga" in answer.content.decode()
    assert type(owner).objects.filter(pk=owner.pk).exists()


def test_deletion_that_would_lose_objects_is_refused(shared, tree, owner):
    with pytest.raises(ProtectedError):
        owner.delete()
    assert Dataset.objects.exists()
    assert TreeModel.objects.exists()


def test_account_without_objects_is_deleted(team, members):
    members["reader"].delete()
    assert team.members.count() == 3
