"""A child process starts often: it does not load what only the web server needs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT

LOAD = """
import sys, importlib, django
django.setup()
importlib.import_module(sys.argv[1])
print([name for name in ("rest_framework.serializers", "psycopg", "plotly", "sklearn") if name in sys.modules])
"""


@pytest.mark.parametrize(
    "command", ["octweb.runs.management.commands.train", "octweb.workbench.management.commands.edit"]
)
def test_no_web_framework_for_the_api_no_driver_and_no_charts(command):
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "octweb.settings"}
    environment.pop("DATABASE_URL", None)
    done = subprocess.run(
        [sys.executable, "-c", LOAD, command], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
