"""The calls that the page "Call a model over REST" shows in Python and curl work on a live server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess

import pytest

from octweb.registry.lifecycle import actions
from octweb.serving.actions import create_token
from octweb.serving.models import Scope
from tests.conftest import ROOT
from tests.docs_code_cases import fences

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = ROOT / "docs" / "call.md"


@pytest.fixture
def called(owner, media, live_server) -> dict[str, str]:
    """Provide the variables for which the page asks."""
    document = json.loads((ROOT / "docs" / "methods" / "trees" / "exact.json").read_text(encoding="utf-8"))
    model = actions.register(owner=owner, document=document, dataset=None, title="iris")
    secret = create_token(owner=owner, name="loan service", scope=Scope.PREDICT)[1]
    return {"OCTWEB_URL": live_server.url, "OCTWEB_TOKEN": secret, "OCTWEB_MODEL": str(model.pk)}


@pytest.mark.slow
def test_the_python_of_the_page(called, monkeypatch, capsys):
    for name, value in called.items():
        monkeypatch.setenv(name, value)
    (code,) = fences(PAGE, {"python"})
    exec(compile(code, "docs/call.md", "exec"), {})
    assert capsys.readouterr().out.startswith("versicolor {'setosa': 0.0")


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_curl_call_of_the_page(called):
    (code,) = (code for code in fences(PAGE, {""}) if code.startswith("curl"))
    command = ["bash", "-c", re.sub("^curl", "curl -s", code)]
    process = subprocess.run(command, env=os.environ | called, capture_output=True, text=True, check=True)
    answer = json.loads(process.stdout)
    assert answer["predictions"][0]["label"] == "versicolor", answer
