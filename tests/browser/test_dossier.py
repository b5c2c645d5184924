"""The dossier document in a browser: wide, narrow, printed and without a network."""

from __future__ import annotations

import json
import re

import pytest

from octweb.dossier.document import to_html
from tests.browser.accessible import violations
from tests.trainer.check.recount.files import many_classes, trained
from trainer.dossier import dossier
from trainer.tree.file import read_model

pytestmark = pytest.mark.browser
SAID = {
    "title": "A name " * 20,
    "purpose": {"Meant for": "x" * 300},
    "review": [{"at": "2026-11-23T10:00+00:00", "by": "ada", "step": "Approved", "note": "fine"}],
    "signing": {"algorithm": "Ed25519", "public_key": "0f" * 32, "fingerprint": "1e" * 32},
    "signatures": {"Trained by": "olga", "Approved by": "ada"},
}


@pytest.fixture(scope="module", params=["cart", "many"])
def page_file(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("document")
    document, data = (
        many_classes(folder) if request.param == "many" else trained(folder, "cart", test_share=0.4, folds=3)
    )
    (folder / "model.json").write_text(json.dumps(document))
    record = dossier(folder / "model.json", data, about=SAID)
    (folder / "dossier.html").write_text(to_html(record, read_model(folder / "model.json").tree), encoding="utf-8")
    return folder / "dossier.html"


@pytest.mark.slow
@pytest.mark.parametrize("width", [1440, 380])
def test_document_opens_from_disk_and_is_accessible(page_file, windows, width):
    page = windows.page(width=width, offline=True, bypass_csp=True)
    lines = []
    asked = []
    page.on("console", lambda m: lines.append(m.text))
    page.on("request", lambda r: asked.append(r.url))
    page.goto(page_file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page) == []
    assert lines == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


def test_the_printed_pages_are_a4(page_file, windows):
    page = windows.page(offline=True)
    page.goto(page_file.as_uri())
    printed = page.pdf(prefer_css_page_size=True)
    sizes = set(re.findall(rb"/MediaBox \[0 0 ([0-9.]+) ([0-9.]+)\]", printed))
    assert {(round(float(w)), round(float(h))) for w, h in sizes} == {(596, 842)} or {
        (round(float(w)), round(float(h))) for w, h in sizes
    } == {(595, 842)}
