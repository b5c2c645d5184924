"""Fixtures of teams: a team with one member of each role, and a data set with a model in it."""

from __future__ import annotations

import io

import pytest

from octweb.datasets import actions as datasets
from octweb.registry.lifecycle import actions as registry
from octweb.teams import actions
from tests.octweb.runs.conftest import CSV

ROLES = ("owner", "editor", "reader", "reviewer")


@pytest.fixture
def dataset(owner, media):
    return datasets.create(owner=owner, file=io.BytesIO(CSV.encode()), source_name="small.csv", target="class")


@pytest.fixture
def tree(owner, dataset, cart_document):
    return registry.register(owner=owner, document=cart_document, dataset=dataset, title="shared one")


@pytest.fixture
def team(owner):
    return actions.create(by=owner, name="Risk")


@pytest.fixture
def members(team, owner, django_user_model):
    """Provide a user of each role, by role. The owner of the data set is the first owner of the team."""
    users = {"owner": owner}
    for role in ROLES[1:]:
        users[role] = django_user_model.objects.create_user(role, password="a long password")
        actions.set_member(team, by=owner, username=role, role=role)
    return users


@pytest.fixture
def shared(team, members, dataset, tree, owner):
    """Provide the data set, which belongs to the team with its model."""
    actions.give(dataset, by=owner, team=team)
    tree.refresh_from_db()
    return dataset
