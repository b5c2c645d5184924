"""The public demo refuses to start with settings that it may not be combined with."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured

from octweb.demo.checks import refuse_unsafe, safe
from tests.conftest import ROOT

UNSAFE = [
    ({"DEBUG": True}, "E001", "OCTWEB_DEBUG"),
    ({"ALLOWED_HOSTS": ["*"], "HTTPS": True, "PROXIES": 1}, "E002", "OCTWEB_ALLOWED_HOSTS"),
    ({"HTTPS": True, "PROXIES": 0}, "E003", "OCTWEB_PROXIES"),
    ({"ALLOWED_HOSTS": ["trees.example.org"]}, "E004", "OCTWEB_HTTPS"),
    ({"DEMO_ITEMS": 0}, "E005", "OCTWEB_DEMO_ITEMS"),
]


@pytest.fixture(autouse=True)
def _sound(settings):
    settings.DEMO = True
    settings.DEBUG = False
    settings.HTTPS = False
    settings.PROXIES = 0
    settings.ALLOWED_HOSTS = ["localhost"]
    settings.MAX_TRAINING_SECONDS = 60


def test_local_and_tls_proxy_setups_are_allowed(settings):
    assert safe() == []
    settings.ALLOWED_HOSTS = ["trees.example.org"]
    settings.HTTPS = True
    settings.PROXIES = 1
    assert safe() == []
    refuse_unsafe()


@pytest.mark.parametrize(("changes", "number", "named"), UNSAFE)
def test_unsafe_settings_are_refused_by_name(settings, changes, number, named):
    for name, value in changes.items():
        setattr(settings, name, value)
    (found,) = safe()
    assert found.id == f"octweb.demo.{number}"
    assert named in found.msg + found.hint
    with pytest.raises(ImproperlyConfigured, match=named):
        refuse_unsafe()
    settings.DEMO = False
    assert safe() == []


def test_long_trainings_are_a_warning(settings):
    settings.MAX_TRAINING_SECONDS = 3600
    (found,) = safe()
    assert found.id == "octweb.demo.W001"
    refuse_unsafe()


@pytest.mark.slow
def test_demo_check_fails_unsafe_setup_and_defaults_are_small(tmp_path):
    environment = os.environ | {"OCTWEB_DEMO": "1", "OCTWEB_DEBUG": "1", "OCTWEB_DATA_DIR": str(tmp_path)}
    check = [sys.executable, str(ROOT / "manage.py"), "check"]
    process = subprocess.run(check, env=environment, capture_output=True, text=True)
    assert process.returncode != 0
    assert "octweb.demo.E001" in process.stderr
    code = "from octweb import settings as s; print(s.MAX_ROWS, s.MAX_TRAINING_SECONDS, s.MAX_QUEUED_RUNS)"
    environment |= {"OCTWEB_MAX_ROWS": "77"}
    process = subprocess.run([sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert process.stdout.split() == ["77", "60", "3"]  # a limit that is set replaces the default of the demo
