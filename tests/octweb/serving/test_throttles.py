"""Calls are limited per token, on the quick path and in the views, and refusals state the time to wait."""

from __future__ import annotations

import re

import pytest

from octweb.core.throttles import WINDOWS, Windows
from octweb.serving.models import Scope
from tests.octweb.registry.api_predict_cases import ROW

pytestmark = pytest.mark.django_db
MODELS = "/api/v1/models/"


@pytest.fixture
def rate(settings):
    def set_rate(**rates):
        old = settings.REST_FRAMEWORK
        settings.REST_FRAMEWORK = old | {"DEFAULT_THROTTLE_RATES": old["DEFAULT_THROTTLE_RATES"] | rates}

    return set_rate


def predict(client, model):
    return client.post(f"{MODELS}{model.pk}/predict/", {"rows": [ROW]}, format="json")


def infer(client, model):
    tensors = [
        {"name": name, "datatype": "BYTES" if isinstance(v, str) else "FP64", "shape": [1], "data": [v]}
        for name, v in ROW.items()
    ]
    return client.post(f"/v2/models/{model.family.name}/infer", {"inputs": tensors}, format="json")


@pytest.mark.parametrize("call", [predict, infer, lambda client, model: client.get(MODELS)])
def test_all_protocols_share_the_limit_of_a_token(rate, client_of, approved, owner, call):
    rate(user="3/min")
    client = client_of(owner)
    assert [predict(client, approved).status_code, infer(client, approved).status_code] == [200, 200]
    assert client.get(MODELS).status_code == 200
    answer = call(client, approved)
    assert answer.status_code == 429
    assert 1 <= int(answer["Retry-After"]) <= 121
    assert answer.json()["error"]
    # another token of the same user has calls of its own
    assert call(client_of(owner, scope=Scope.FULL), approved).status_code == 200


@pytest.mark.parametrize("call", [predict, infer, lambda client, model: client.get(MODELS)])
def test_every_answer_states_the_limit_and_what_is_left(rate, client_of, approved, owner, call):
    rate(user="3/min")
    client = client_of(owner)
    answers = [call(client, approved) for _ in range(4)]
    assert [a.status_code for a in answers] == [200, 200, 200, 429]
    assert {a["RateLimit-Policy"] for a in answers} == {'"user";q=3;w=60'}
    stated = [re.fullmatch(r'"user";r=(\d+);t=(\d+)', a["RateLimit"]) for a in answers]
    assert [int(s[1]) for s in stated] == [2, 1, 0, 0]
    assert all(1 <= int(s[2]) <= 60 for s in stated)


def test_refused_visitor_sees_the_limit(rate, client, approved):
    rate(stranger="3/min")
    assert client.get(MODELS)["RateLimit"].startswith('"stranger";r=2;')
    assert "RateLimit" not in client.get("/version")


def test_remaining_calls_equal_accepted_ones():
    for moment in (0.0, 20.0, 59.0):
        windows = Windows()
        for i in range(7):
            windows.take("a", 10, 60, now=600.0 + i)
        left, reset = windows.left("a", 10, 60, now=660.0 + moment)
        accepted = 0
        while not windows.take("a", 10, 60, now=660.0 + moment):
            accepted += 1
        assert left == accepted
        assert reset == 60 - int(moment)


def test_a_faulty_call_is_counted_once(rate, client_of, approved, owner):
    rate(user="2/min")
    client = client_of(owner)
    assert client.post(f"{MODELS}{approved.pk}/predict/", {"rows": [{}]}, format="json").status_code == 422
    assert predict(client, approved).status_code == 200
    assert predict(client, approved).status_code == 429


def test_signed_in_user_is_counted(rate, client, approved, owner):
    rate(user="1/min")
    client.force_login(owner)
    assert client.get(MODELS).status_code == 200
    assert client.get(MODELS).status_code == 429


def test_retry_after_suffices_and_is_tight():
    for moment in (0.0, 13.0, 59.9):
        windows = Windows()
        now = 600.0 + moment
        limit = 5
        while not windows.take("a", limit, 60, now=now):
            now += 0.7
        wait = windows.take("a", limit, 60, now=now)
        assert windows.take("a", limit, 60, now=now + wait - 0.1) > 0
        assert windows.take("a", limit, 60, now=now + wait + 0.01) == 0
        assert windows.take("b", limit, 60, now=now) == 0


def test_no_minute_has_many_more_calls_than_the_rate():
    windows = Windows()
    limit = 50
    taken = []
    for i in range(6000):
        if not windows.take("a", limit, 60, now=i / 10):
            taken.append(i / 10)
    most = max(sum(1 for t in taken if start <= t < start + 60) for start in taken)
    assert most <= 1.5 * limit  # at the border of two windows of even traffic
    assert len(taken) >= 0.9 * limit * 10
    assert WINDOWS is not windows


@pytest.mark.parametrize("headers", [{}, {"HTTP_AUTHORIZATION": "Token " + "a" * 64}])
def test_anonymous_calls_count_for_their_address(rate, client, approved, headers):
    rate(stranger="3/min")
    address = f"{MODELS}{approved.pk}/predict/"
    assert [client.post(address, **headers).status_code for _ in range(3)] == [401, 401, 401]
    refused = client.post(address, **headers)
    assert refused.status_code == 429
    assert int(refused["Retry-After"]) >= 1
    assert client.get("/v2", **headers).status_code == 429
    assert client.post(address, **headers, REMOTE_ADDR="10.9.8.7").status_code == 401
