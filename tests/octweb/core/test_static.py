"""Collected static files: their names contain a digest, and they are compressed with gzip only."""

from __future__ import annotations

import gzip
import json
import re

from django.core.management import call_command

from tests.conftest import ROOT


def test_static_files_have_hashed_names_and_gzip(settings, tmp_path):
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = settings.STORAGES | {"staticfiles": {"BACKEND": "octweb.core.static.StaticFiles"}}
    call_command("collectstatic", interactive=False, verbosity=0)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if path.suffix == ".br"]
    styles = [path for path in files if path.suffix == ".css" and "octweb" in path.name]
    assert styles
    for style in styles:
        assert len(style.name.split(".")) > 2
        squeezed = style.with_name(style.name + ".gz")
        assert gzip.decompress(squeezed.read_bytes()) == style.read_bytes()
    for sheet in tmp_path.glob("font.*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert "font-display: swap" in text
        assert (tmp_path / re.findall(r'url\("([^"]+)"\)', text)[0]).read_bytes()[:4] == b"wOF2"
    (licence,) = tmp_path.glob("fonts/LICENSE.*.txt")
    assert "SIL OPEN FONT LICENSE" in licence.read_text(encoding="utf-8")


def test_templates_with_tokens_link_the_font():
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "templates").rglob("*.html")]
    assert [text for text in texts if "'tokens.css'" in text]
    assert not [text for text in texts if "'tokens.css'" in text and "'font.css'" not in text]


def test_plotly_bundle_matches_recipe_and_has_used_traces():
    version = json.loads((ROOT / "tools/plotly/package.json").read_text())["dependencies"]["plotly.js"]
    head = (ROOT / "static/vendor/plotly.min.js").read_text(encoding="utf-8")[:300].split("*/")[0]
    assert f"plotly.js v{version}," in head
    # Traces, shapes, error bars and axes all have a "type".
    types = {"scatter", "bar", "path", "line", "rect", "data", "log"}
    for file in (ROOT / "octweb/figures").glob("*.py"):
        used = set(re.findall(r'"type": "(\w+)"', file.read_text(encoding="utf-8")))
        assert used <= types, f"{file.name}: add the trace to tools/plotly/entry.js and build the bundle"
    assert "traces scatter and bar" in head
