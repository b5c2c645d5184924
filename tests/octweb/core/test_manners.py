"""OPTIONS on every URL, private pages, and octweb below a URL prefix."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from rest_framework.test import APIClient

from octweb.core.throttles import WINDOWS
from octweb.serving.actions import create_token
from tests.conftest import ROOT
from tests.octweb.test_every_address import ROUTES, filled, things  # noqa: F401  (a fixture)

pytestmark = [pytest.mark.django_db, pytest.mark.one_database, pytest.mark.usefixtures("media")]


@pytest.mark.slow
def test_options_describes_every_address(client, owner, things):  # noqa: F811
    calls = APIClient(headers={"Authorization": f"Token {create_token(owner=owner)[1]}"})
    for route in [*ROUTES, "admin/", "accounts/login/", "accounts/logout/"]:
        WINDOWS.forget()  # there are more addresses than calls that are allowed in one minute
        address = "/" + filled(route, things)[0].lstrip("/")
        nobody = client.options(address)
        answer = calls.options(address)
        assert nobody.status_code in (200, 204, 401), (route, nobody.status_code)
        # 404 is right if the owner's object has no such part, as for GET.
        assert answer.status_code in (200, 204, 404), (route, answer.status_code)
        if answer.status_code != 404:
            assert "OPTIONS" in answer["Allow"], route


def test_options_lists_the_allowed_methods(client):
    assert client.options("/accounts/logout/")["Allow"] == "POST, OPTIONS"
    assert client.options("/api/tokens/x/revoke/")["Allow"] == "POST, OPTIONS"
    assert client.options("*").status_code == 204
    assert client.options("/nothing/").status_code == 404


def test_no_cache_keeps_a_page(client, client_of, owner, approved):
    client.force_login(owner)
    for address in ("/", "/datasets/", f"/models/{approved.pk}/", "/accounts/password/", "/nothing/"):
        said = client.get(address)["Cache-Control"]
        assert "private" in said, address
        assert "no-store" in said, address
    for address in ("/api/v1/models/", f"/api/v1/models/{approved.pk}/", "/v2/models/small-cart", "/api/v1/nothing/"):
        assert client_of(owner).get(address)["Cache-Control"] == "private, no-store", address


SCRIPT = """
import io, json
from octweb.wsgi import application
from django.conf import settings
def get(path):
    seen = []
    environ = {"REQUEST_METHOD": "GET", "SCRIPT_NAME": "/trees", "PATH_INFO": path, "SERVER_NAME": "localhost", "SERVER_PORT": "80",
        "HTTP_HOST": "localhost", "wsgi.input": io.BytesIO(), "wsgi.url_scheme": "http", "QUERY_STRING": "", "REMOTE_ADDR": "127.0.0.1"}
    body = b"".join(application(environ, lambda status, headers, *rest: seen.append((status[:3], dict(headers)))))
    return *seen[0], body
print(json.dumps([settings.STATIC_URL, get("/datasets/")[1]["Location"], get("/api/v1/nothing/")[1]["Content-Type"], get("/healthz")[0],
    get("/static/icon.svg")[0]]))
"""


@pytest.mark.slow
def test_links_follow_the_script_name(tmp_path):
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "icon.svg").write_text("<svg/>")
    environment = os.environ | {
        "OCTWEB_DATA_DIR": str(tmp_path),
        "SCRIPT_NAME": "/trees",
        "DJANGO_SETTINGS_MODULE": "octweb.settings",
        "OCTWEB_WARM": "0",
    }
    process = subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr[-2000:]
    static, page, error, health, file = json.loads(process.stdout.splitlines()[-1])
    assert static == "/trees/static/"
    assert page == "/trees/accounts/login/?next=/trees/datasets/"
    assert (error, health, file) == ("application/problem+json", "200", "200")
