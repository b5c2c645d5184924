"""Security headers of responses, and pages that work under them."""

import re

import pytest
from django.urls import reverse

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("url", ["/", "/accounts/login/", "/api/docs/", "/healthz"])
def test_every_answer_has_the_security_headers(client, media, url):
    answer = client.get(url)
    assert answer.status_code == 200
    policy = answer["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "unsafe-eval" not in policy
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("url", ["/", "/accounts/login/", "/api/docs/"])
def test_no_page_has_a_script_that_the_policy_refuses(client, media, url):
    body = client.get(url).content.decode()
    assert re.findall(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>", body) == []
    assert re.findall(r"\son[a-z]+=\"", body) == []


def test_an_unknown_address_is_a_page_or_a_problem(client, media):
    assert client.get("/nowhere/").status_code == 404
    answer = client.get("/api/v1/nowhere/")
    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["error"]


def test_anonymous_visitor_is_redirected_to_login(client, media):
    for name in ("datasets:list", "searches", "registry:list", "serving:guide"):
        assert client.get(reverse(name)).status_code in (200, 302)
        assert reverse("login") in (client.get(reverse("searches")).url)
