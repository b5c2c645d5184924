"""Every export format of a model: download, API and `manage.py export`."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command

from octweb.registry.page.downloads import FORMATS
from tests.octweb.small_models import trained


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.json"
    path.write_text(json.dumps(trained("cart", depth=3)), encoding="utf-8")
    return path


@pytest.mark.one_database
@pytest.mark.parametrize("name", list(FORMATS))
def test_page_and_api_give_the_same_file(model, owner, client, client_of, name):
    client.force_login(owner)
    page = client.get(f"/models/{model.pk}/download/{name}/")
    api = client_of(owner).get(f"/api/v1/models/{model.pk}/download/", {"format": name})
    assert (page.status_code, api.status_code) == (200, 200)
    assert page.content == api.content
    assert page["Content-Disposition"].endswith(f'.{FORMATS[name].ending}"')
    assert page["Content-Disposition"].startswith("attachment")


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "json"])
def test_the_command_writes_every_form(file, tmp_path, name):
    out = tmp_path / "out"
    call_command("export", str(file), "--to", name, "--output", str(out))
    assert len(out.read_bytes()) > 100
    if name not in ("onnx",):
        text = io.StringIO()
        call_command("export", str(file), "--to", name, stdout=text)
        assert text.getvalue() == out.read_text(encoding="utf-8")


def test_one_html_file_names_no_address_and_says_what_is_claimed(file, tmp_path):
    out = tmp_path / "m.html"
    call_command("export", str(file), "--to", "html", "--output", str(out))
    text = out.read_text(encoding="utf-8")
    assert "default-src 'none'" in text.replace("&#x27;", "'")
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text
    assert "Heuristic: nothing is claimed" in text
    assert "<script src" not in text
    assert '<link rel="stylesheet"' not in text


def test_unreadable_file_is_refused(tmp_path):
    with pytest.raises(CommandError):
        call_command("export", str(tmp_path / "none.json"), "--to", "c")
