"""Fixtures of the client library: clients of a live server and of a fake server."""

from __future__ import annotations

import threading
from collections.abc import Callable

import httpx
import pytest

from octweb.client import Client, connection
from octweb.serving.actions import create_token


@pytest.fixture
def pauses(monkeypatch):
    """Provide the list of pauses that a client makes, and skip them. Other threads still sleep."""
    made: list[float] = []
    thread = threading.current_thread()
    sleep = connection.time.sleep

    def pause(seconds: float) -> None:
        if threading.current_thread() is thread:
            made.append(seconds)
        else:
            sleep(seconds)

    monkeypatch.setattr(connection.time, "sleep", pause)
    return made


@pytest.fixture
def played():
    """Provide a function that creates a client of a fake server and returns it with the list of its requests.

    The server answers each call with the next of the given functions, responses or errors.
    """

    def make(*answers: Callable[[httpx.Request], httpx.Response] | httpx.Response | Exception, **options):
        left = list(answers)
        calls: list[httpx.Request] = []

        def answer(request: httpx.Request) -> httpx.Response:
            request.read()
            calls.append(request)
            given = left.pop(0)
            if isinstance(given, Exception):
                raise given
            return given(request) if callable(given) else given

        client = Client("http://octweb.test", "secret", transport=httpx.MockTransport(answer), **options)
        return client, calls

    return make


@pytest.fixture
def client_of_user(live_server):
    """Provide a function that creates a client of the live server with a token of a user."""

    def make(user, **options):
        _, secret = create_token(owner=user, **options)
        return Client(live_server.url, secret, retries=0)

    return make
