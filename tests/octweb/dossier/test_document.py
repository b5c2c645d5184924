"""The dossier document shows its record, draws every node, and has room for long names and many leaves."""

from __future__ import annotations

import io
import json
import re

import pytest
from pypdf import PdfReader

from octweb.dossier.document import to_html
from octweb.dossier.folder import MAX_HTML_BYTES
from octweb.dossier.pdf import to_pdf
from tests.octweb.figures.specimens import SPLITS, one_split, tree_of
from tests.trainer.check.recount.files import many_classes, trained
from trainer.dossier import dossier
from trainer.tree.file import read_model
from trainer.tree.render.paper import MOST, PAPER, below, pictures


@pytest.mark.parametrize("leaves", [1, 2, 7, 24, 64])
def test_every_node_is_drawn_within_the_page_width(leaves):
    tree = tree_of(leaves, classes=20)
    drawn = pictures(tree)
    seen = {node for p in drawn for node in shown(tree, p)}
    assert seen == {v.id for v in tree.nodes} or len(drawn) == MOST
    for p in drawn:
        assert float(re.search(r'width="(\d+)"', p.svg)[1]) <= PAPER
        assert "<script" not in p.svg  # one of the classes is named like this
    assert sum(len(p.svg) for p in drawn) < MAX_HTML_BYTES / 2


def shown(tree, picture):
    """Return the nodes of a picture: those below its first node, except those that other pictures continue."""
    _, ids = below(tree, picture.node)
    hidden = {i for node in picture.goes_on for i in below(tree, node)[1][1:]}
    return set(ids) - hidden


@pytest.mark.parametrize("kind", SPLITS)
def test_every_kind_of_split_is_drawn(kind):
    tree, *_ = one_split(kind)
    (picture,) = pictures(tree)
    assert picture.svg.count("<rect") >= 3
    assert picture.svg.startswith("<svg")


def document(tmp_path, model, data, **options):
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model))
    record = dossier(path, data, **options)
    return record, to_html(record, read_model(path).tree)


def test_document_says_that_depth_has_no_limit(tmp_path):
    page = document(tmp_path, *trained(tmp_path, "exact", depth=None, leaf_penalty=0.02))[1]
    assert "depth = no limit" in page


def test_document_with_long_names_is_small_and_prints(tmp_path):
    record, page = document(tmp_path, *many_classes(tmp_path))
    assert len(page) < MAX_HTML_BYTES
    assert page.count('<th scope="row">class number') >= 20
    assert "The most frequent mistakes" in page
    assert to_pdf(page, title="Many").startswith(b"%PDF-")
    for rule in record["tree"]["text"].splitlines():
        assert rule.strip().replace("≤", "≤") in page


@pytest.mark.slow
def test_no_heading_is_the_last_line_of_a_printed_page(tmp_path):
    """The sections before it get longer step by step, so that each heading reaches the end of a page."""
    _, page = document(tmp_path, *trained(tmp_path, "exact"))
    headings = {re.sub("<.*?>", "", text).strip() for text in re.findall(r"<h[23]>(.*?)</h[23]>", page)}
    assert {"Check it yourself", "Constraints kept"} <= headings
    for height in range(0, 1000, 90):
        space = f'<div style="height: {height}px"></div>'
        lower = re.sub(r'<section id="(claim|performance)"', rf'{space}<section id="\1"', page)
        pages = PdfReader(io.BytesIO(to_pdf(lower, title="Lower"))).pages
        for text in (page.extract_text(extraction_mode="layout").replace("\ufb01", "fi") for page in pages):
            *lines, _ = [line.strip() for line in text.splitlines() if line.strip()]
            assert lines[-1] not in headings, (height, lines[-1])


def test_missing_parts_are_reported_under_their_headings(tmp_path):
    _, page = document(tmp_path, *trained(tmp_path, "cart"))
    for heading in range(1, 13):
        assert f"<h2>{heading} " in page
    assert page.count("not evaluated") >= 5
    assert "No rows were held out" in page
    assert "There was no proof with the model" in page
    assert "This dossier is not signed" in page
    assert "<dt>Method</dt><dd>CART</dd>" in page  # the page shows the method's title


def test_the_numbers_of_the_record_are_on_the_page(tmp_path):
    record, page = document(
        tmp_path,
        *trained(tmp_path, "cart", test_share=0.4),
        about={"review": [{"at": "2026-11-01", "by": "ada", "step": "Approved", "note": "<b>fine</b>"}]},
    )
    measured = record["performance"]["unseen"]
    text = re.sub(r"<[^>]+>", " ", page)
    assert f"{measured['accuracy']['right']} of {measured['accuracy']['rows']} rows" in text
    assert record["model"]["sha256"] in page
    assert record["data"]["sha256"] in page
    for line in record["check"]["lines"]:
        assert f'<th scope="row">{line["claim"]}</th><td>{line["verdict"]}</td>' in page
    assert "&lt;b&gt;fine&lt;/b&gt;" in page
