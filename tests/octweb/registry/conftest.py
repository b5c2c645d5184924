"""Models trained on small tables, with every kind of column."""

from __future__ import annotations

import json

import pytest

from octweb.registry import actions
from tests.octweb.small_models import trained


@pytest.fixture(scope="session")
def cart_document():
    return trained("cart", folds=3)


@pytest.fixture
def register(owner, cart_document):
    def make(**changes):
        arguments = {"owner": owner, "document": cart_document, "dataset": None, "title": "Small cart"} | changes
        return actions.register(**arguments)

    return make


@pytest.fixture
def model(register, db):
    return register()


@pytest.fixture
def approved(model, staff):
    actions.ask_for_approval(model, by=model.owner)
    return actions.approve(model, by=staff)


@pytest.fixture
def parsed():
    return lambda model: json.loads(model.document)
