"""Child processes do not load modules that only the web server needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow

LOAD = """
import sys, importlib
importlib.import_module(sys.argv[1])
print([name for name in ("django", "rest_framework", "psycopg", "plotly", "sklearn") if name in sys.modules])
"""


@pytest.mark.parametrize("command", ["trainer.cli.train", "trainer.cli.edit"])
def test_no_web_framework_no_driver_and_no_charts(command):
    process = subprocess.run([sys.executable, "-c", LOAD, command], cwd=ROOT, capture_output=True, text=True)
    assert process.stdout.strip() == "[]", process.stdout + process.stderr
