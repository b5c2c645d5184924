"""Pages of decisions on record: list, one decision with its forms, and the letter."""

from __future__ import annotations

import json
import re

import pytest
from django.urls import reverse

from octweb.decisions import erasing
from octweb.decisions.audited import audit_decisions
from octweb.decisions.models import ChainEntry
from octweb.registry.document.model_files import model_file
from tests.octweb.visible_text import visible

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]


@pytest.fixture
def page(client, owner, recorded):
    """Get a page of the records of the model, or post a form to it, as its owner; returns its text."""
    client.force_login(owner)

    def read(*place, form=None, query=""):
        address = reverse(
            f"records:{'letter' if 'letter' in place else 'decision' if place else 'list'}",
            args=[recorded.pk, *place[:1]],
        )
        answer = client.get(address + query) if form is None else client.post(address + query, form, follow=True)
        assert answer.status_code == 200
        return answer.content.decode()

    return read


def links(html):
    return re.findall(r'/decisions/([0-9a-f-]{36})/"', html)


def test_list_pages_through_all_decisions(page, ids, recorded, monkeypatch):
    monkeypatch.setattr("octweb.decisions.pages.PAGE_ROWS", 8)
    html = page()
    found = links(html)
    while older := re.search(r'href="(\?[^"]*)">Older', html):
        html = page(query=older[1].replace("&amp;", "&"))
        found += links(html)
    assert found == ids[::-1]


def test_list_filters_and_names_an_invalid_filter(page, ids, recorded):
    classes = model_file(recorded).tree.classes
    entries = {str(e.key): e for e in ChainEntry.objects.filter(kind="decision")}
    for k, name in enumerate(classes):
        assert set(links(page(query=f"?answer={name}"))) == {i for i in ids if entries[i].label == k}
    html = page(query="?since=soon&outcome=known")
    assert "is neither a date nor a time" in html
    assert links(html) == []


def test_person_is_found_by_post_only(page, ids):
    assert links(page(form={"subject": "person 2"})) == ids[8:12][::-1]
    assert links(page(form={"subject": "person 9"})) == []
    assert len(links(page(query="?subject=person+2"))) == 20


def test_empty_list_says_what_to_do(page, recorded):
    assert "No decision is on record yet" in page()


def test_decision_shows_values_path_and_smallest_change(page, ids, recorded):
    entry = ChainEntry.objects.get(key=ids[0])
    text = visible(page(ids[0]))
    tree = model_file(recorded).tree
    assert f"Why {tree.classes[entry.label]}" in text
    for node in tree.path_to(entry.leaf)[:-1]:
        assert tree.nodes[node].split.text(tree.schema, 6) in text
    assert "What would change the answer" in text
    assert "same, bit for bit" in text
    assert ChainEntry.objects.filter(kind="look", about=ids[0]).count() == 1


def test_forms_record_and_keep_what_was_refused(page, ids, recorded):
    label = model_file(recorded).tree.classes[1]
    assert "The outcome is on record." in page(ids[0], form={"kind": "outcome", "value": label, "source": "ledger"})
    assert "was on record already" in page(ids[0], form={"kind": "outcome", "value": label, "source": "ledger"})
    html = page(ids[0], form={"kind": "objection", "reason": "The width is wrong.", "state": "refused"})
    assert "Say what the person is answered" in html
    assert "The width is wrong.</textarea>" in html
    form = {"kind": "override", "label": label, "reason": "measured <again>"}
    assert "measured &lt;again&gt;" in page(ids[0], form=form)
    assert "is none of outcome" in page(ids[0], form={"kind": "erased"})
    assert ChainEntry.objects.filter(kind__in=["outcome", "override", "objection"]).count() == 2
    assert audit_decisions().problems == []


def test_letter_tells_reasons_override_and_objection(page, ids, recorded):
    label = model_file(recorded).tree.classes[1]
    page(ids[0], form={"kind": "override", "label": label, "reason": "measured again"})
    page(ids[0], form={"kind": "objection", "reason": "The width is wrong.", "state": "upheld", "answer": "Sorry."})
    text = visible(page(ids[0], "letter"))
    for words in (
        "The program answered",
        "measured again",
        "would have been",
        "You are right, we follow it. Sorry.",
        ids[0],
    ):
        assert words in text
    assert json.loads(ChainEntry.objects.filter(kind="look").last().payload)["page"] == "letter"


def test_erased_decision_shows_no_form_and_no_letter(page, ids, recorded):
    erasing.erase_subject("person 0", by="t")
    text = visible(page(ids[0]))
    assert "Its content was erased" in text
    assert "Record the outcome" not in text
    assert "nothing to tell" in page(ids[0], "letter")
    assert "erased" in visible(page())


def test_strangers_and_other_models_get_404(client, stranger, owner, recorded, register, ids):
    other = register()
    client.force_login(owner)
    assert client.get(reverse("records:decision", args=[other.pk, ids[0]])).status_code == 404
    client.force_login(stranger)
    for name, place in (("list", []), ("decision", [ids[0]]), ("letter", [ids[0]])):
        assert client.get(reverse(f"records:{name}", args=[recorded.pk, *place])).status_code == 404
    assert not ChainEntry.objects.filter(kind="look").exists()
