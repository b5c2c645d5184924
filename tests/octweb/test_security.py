"""The promises of docs/security.md about signing in, sessions, forms, URLs and child processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import settings as configured
from django.core.cache import cache
from django.http import HttpRequest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from octweb.core.throttles import client_address
from octweb.jobs.child import Process
from octweb.serving.actions import create_token
from octweb.serving.models import ApiToken
from tests.conftest import ROOT

pytestmark = pytest.mark.django_db
PASSWORD = "a long password"


@pytest.fixture(autouse=True)
def _start_afresh(media):
    cache.clear()
    yield
    cache.clear()


def sign_in(client, password: str = PASSWORD, **extra: str):
    return client.post(reverse("login"), {"username": "olga", "password": password}, **extra)


def fail(times: int, **extra: str):
    for _ in range(times):
        answer = sign_in(Client(), "wrong", **extra)
    return answer


def test_ten_wrong_passwords_lock_the_name_for_that_address(owner):
    assert fail(configured.AXES_FAILURE_LIMIT - 1).status_code == 200
    answer = fail(1)
    assert answer.status_code == 429
    assert 0 < int(answer["Retry-After"]) <= 3600
    assert "script-src 'self'" in answer["Content-Security-Policy"]
    assert "Too many attempts" in answer.content.decode()
    assert sign_in(Client()).status_code == 429  # the right password does not help
    assert sign_in(Client(), REMOTE_ADDR="10.0.0.9").status_code == 302  # nobody locks others out


def test_forged_address_does_not_evade_the_lock(owner):
    for number in range(configured.AXES_FAILURE_LIMIT):
        sign_in(Client(), "wrong", HTTP_X_FORWARDED_FOR=f"10.1.1.{number}")
    assert sign_in(Client(), HTTP_X_FORWARDED_FOR="10.2.2.2").status_code == 429


def test_client_address_is_taken_from_the_proxy(owner, settings):
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"NUM_PROXIES": 1}
    fail(configured.AXES_FAILURE_LIMIT, HTTP_X_FORWARDED_FOR="1.1.1.1, 203.0.113.5")
    assert sign_in(Client(), HTTP_X_FORWARDED_FOR="9.9.9.9, 203.0.113.5").status_code == 429
    assert sign_in(Client(), HTTP_X_FORWARDED_FOR="1.1.1.1, 203.0.113.6").status_code == 302


def test_forged_address_does_not_evade_the_throttle(rf):
    from django.contrib.auth.models import AnonymousUser

    from octweb.core.throttles import StrangerThrottle

    callers = set()
    for number in range(5):
        request = rf.get("/api/v1/models/", headers={"X-Forwarded-For": f"10.1.1.{number}"})
        request.user = AnonymousUser()
        callers.add(StrangerThrottle().caller(request))
    assert callers == {"stranger 127.0.0.1"}


@pytest.mark.parametrize("password", ["too-short", "1234567890123", "password123", "olgaolga"])
def test_a_weak_password_is_refused(owner, password, client):
    client.force_login(owner)
    fields = {"old_password": PASSWORD, "new_password1": password, "new_password2": password}
    assert client.post(reverse("password_change"), fields).status_code == 200
    owner.refresh_from_db()
    assert owner.check_password(PASSWORD)


def test_a_form_without_its_token_is_refused(owner):
    client = Client(enforce_csrf_checks=True)
    assert sign_in(client).status_code == 403
    client.force_login(owner)
    assert client.post(reverse("datasets:new"), {}).status_code == 403
    assert client.post(reverse("logout")).status_code == 403
    # the API with a session asks for it too; with a token there is no cookie that a foreign page could use
    api = APIClient(enforce_csrf_checks=True)
    api.force_login(owner)
    assert api.post("/api/v1/runs/", {}, format="json").status_code == 403


def test_signing_in_makes_a_new_session_and_signing_out_ends_it(owner):
    client = Client()
    client.cookies["sessionid"] = "a value that somebody else knows"
    sign_in(client)
    cookie = client.cookies["sessionid"]
    assert cookie.value != "a value that somebody else knows"
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    thief = Client()
    thief.cookies["sessionid"] = cookie.value
    assert thief.get(reverse("searches")).status_code == 200
    client.post(reverse("logout"))
    assert thief.get(reverse("searches")).status_code == 302


def test_a_new_password_ends_the_other_sessions(owner):
    here = Client()
    there = Client()
    sign_in(here)
    sign_in(there)
    new = "another long password"
    here.post(reverse("password_change"), {"old_password": PASSWORD, "new_password1": new, "new_password2": new})
    assert here.get(reverse("searches")).status_code == 200
    assert there.get(reverse("searches")).status_code == 302


def test_served_security_policy(client):
    policy = dict(part.strip().partition(" ")[::2] for part in client.get("/")["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == policy["script-src"] == policy["connect-src"] == "'self'"
    assert policy["object-src"] == policy["frame-ancestors"] == "'none'"
    assert policy["base-uri"] == policy["form-action"] == "'self'"
    answer = client.get("/")
    assert answer["Referrer-Policy"] == "same-origin"
    assert answer["Cross-Origin-Opener-Policy"] == "same-origin"


@pytest.mark.slow
def test_settings_behind_tls_pass_deployment_checks():
    environment = {k: v for k, v in os.environ.items() if k != "DJANGO_ALLOW_ASYNC_UNSAFE"} | {
        "OCTWEB_HTTPS": "1",
        "OCTWEB_SECRET_KEY": "k7" * 20 + "qwertyuiop-asdfghjkl-zxcvbnm",
        "OCTWEB_ALLOWED_HOSTS": "trees.example.org",
        "DJANGO_SETTINGS_MODULE": "octweb.settings",
    }
    program = """
import json, django
from django.conf import settings
settings.STORAGES["staticfiles"]["BACKEND"] = "django.contrib.staticfiles.storage.StaticFilesStorage"
django.setup()
from django.core.checks import run_checks
from django.test import Client
problems = [m.id for m in run_checks(include_deployment_checks=True) if m.level >= 30 and not m.is_silenced()]
plain = Client().get("/accounts/login/", SERVER_NAME="trees.example.org")
secure = Client().get("/accounts/login/", secure=True, SERVER_NAME="trees.example.org")
page = Client().get("/accounts/login/", secure=True, SERVER_NAME="trees.example.org")
strange = Client().get("/accounts/login/", secure=True, SERVER_NAME="evil.example.org")
print(json.dumps({"problems": problems, "plain": [plain.status_code, plain.headers.get("Location")],
    "hsts": secure.headers.get("Strict-Transport-Security"), "cookie": bool(page.cookies["csrftoken"]["secure"]), "strange": strange.status_code}))
"""
    process = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600
    )
    assert process.returncode == 0, process.stderr
    document = json.loads(process.stdout.strip().splitlines()[-1])
    # the last two are a matter of the whole domain, which the operator decides about
    assert set(document["problems"]) <= {"security.W005", "security.W021"}
    assert document["plain"] == [301, "https://trees.example.org/accounts/login/"]
    assert "max-age=31536000" in document["hsts"]
    assert document["cookie"] is True
    assert document["strange"] == 400


@dataclass(kw_only=True)
class Witness(Process):
    """Child process that reports what it was given."""

    def write_inputs(self) -> None:
        (self.folder / "witness.py").write_text(
            "import os, json, resource, sys\n"
            f"sys.path.insert(0, {str(ROOT)!r})\n"
            "from trainer.cli.orphans import exit_with_parent\n"
            "exit_with_parent()\n"
            "status = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
            "print(json.dumps({'names': sorted(os.environ), 'values': list(os.environ.values()), 'files': os.listdir('/proc/self/fd'),"
            " 'core': resource.getrlimit(resource.RLIMIT_CORE), 'new': status['NoNewPrivs'].strip(), 'group': os.getpgid(0) == os.getpid()}))\n"
        )

    @property
    def result(self) -> Path:
        return self.folder / "nothing"

    def command(self) -> list[str]:
        return [sys.executable, str(self.folder / "witness.py")]


class _Job:
    pk = "witness"
    attempt = 1


def test_a_child_gets_no_secret_and_gives_up_rights(settings, tmp_path, monkeypatch):
    settings.DATA_DIR = tmp_path
    for name in (
        "DATABASE_URL",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "OCTWEB_METRICS_TOKEN",
        "PGPASSWORD",
        "SMTP_PASSWORD",
        "OCTWEB_SECRET_KEY",
    ):
        monkeypatch.setenv(name, "hush")
    monkeypatch.setenv("GRB_LICENSE_FILE", "/somewhere/gurobi.lic")
    child = Witness.prepare(_Job())
    try:
        child.start()
        assert child.process.wait(60) == 0, child.log()
        found = child.summary()
    finally:
        child.kill()
        child.clean()
    assert "hush" not in found["values"]
    assert {"PATH", "GRB_LICENSE_FILE"} <= set(found["names"])
    assert found["core"] == [0, 0]
    assert found["new"] == "1"
    assert found["group"]
    assert len(found["files"]) <= 5  # standard streams and what lists them: no socket of the database
    assert not child.folder.exists()


@pytest.mark.parametrize(
    ("connection", "said", "address"),
    [
        ("192.0.2.7", "203.0.113.9", "203.0.113.9"),
        ("192.0.2.7", "first, 2001:db8::1", "2001:db8::1"),
        ("192.0.2.7", "not an address", None),
        ("", None, None),
    ],
)
def test_invalid_address_is_not_stored(rf, settings, connection, said, address):
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"NUM_PROXIES": 1}
    more = {} if said is None else {"HTTP_X_FORWARDED_FOR": said}
    assert client_address(rf.get("/", REMOTE_ADDR=connection, **more)) == address
    assert client_address(HttpRequest()) is None


@pytest.mark.parametrize("ticked", [True, False])
def test_new_password_revokes_tokens_if_ticked(owner, ticked):
    token, _ = create_token(owner=owner)
    client = Client()
    sign_in(client)
    new = "another long password"
    fields = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    client.post(reverse("password_change"), fields | ({"revoke_tokens": "on"} if ticked else {}))
    assert ApiToken.objects.filter(pk=token.pk).exists() is not ticked


def test_sign_out_everywhere_ends_tokens_and_other_sessions(owner, stranger):
    here = Client()
    there = Client()
    sign_in(here)
    sign_in(there)
    create_token(owner=owner)
    create_token(owner=stranger)
    here.post(reverse("serving:revoke-all"))
    assert here.get(reverse("searches")).status_code == 200
    assert there.get(reverse("searches")).status_code == 302
    assert [token.user for token in ApiToken.objects.all()] == [stranger]
