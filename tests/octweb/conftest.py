"""Fixtures of octweb's tests: models and clients for pages, API and protocol."""

from __future__ import annotations

import pytest
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from rest_framework.test import APIClient

from octweb.core.throttles import WINDOWS
from octweb.registry.lifecycle import actions, model_cache
from octweb.serving.actions import create_token
from octweb.serving.authentication import forget
from tests.octweb.small_models import trained


@pytest.fixture(autouse=True)
def _forget():
    forget()
    model_cache.clear()
    WINDOWS.forget()


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
def client_of(db):
    """Provide a function that creates an API client with a token of a user, or without a token if no user is given."""

    def make(user=None, **changes):
        client = APIClient(raise_request_exception=True)
        if user is not None:
            _, secret = create_token(owner=user, **changes)
            client.credentials(HTTP_AUTHORIZATION=f"Token {secret}")
        return client

    return make


@pytest.fixture
def open_connection():
    """Keep the database connection open after a request through WSGI.

    The end of such a request would close the connection that holds the test's transaction.
    """
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)
