"""GET /api/v1/ lists the addresses of the API."""

from __future__ import annotations

from django.urls import get_resolver

from octweb.serving.index import PLACES

URL = "/api/v1/"


def test_every_address_of_the_index_answers(client_of, owner, media):
    client = client_of(owner)
    answer = client.get(URL).json()
    assert list(answer) == list(PLACES)
    assert answer["models"] == "http://testserver/api/v1/models/"
    for address in answer.values():
        assert client.get(address.removeprefix("http://testserver")).status_code == 200, address


def test_no_list_of_the_api_is_left_out():
    def addresses(resolver, before=""):
        for pattern in resolver.url_patterns:
            here = before + str(pattern.pattern)
            if hasattr(pattern, "url_patterns"):
                yield from addresses(pattern, here)
            elif here.startswith("api/v1/") and "<" not in here and "/figures/" not in here:
                yield pattern.name

    only_posts = {"api-sign-out-everywhere", "api-outcomes", "api-overrides", "api-objections", "api-subjects-erase"}
    listed = set(addresses(get_resolver())) - {"api-index", *only_posts}
    assert listed == set(PLACES.values()) - {"schema", "api-docs"}


def test_a_token_is_needed(client, client_of, owner):
    assert client.get(URL).status_code == 401
    assert client_of(owner, scope="predict").get(URL).status_code == 200
