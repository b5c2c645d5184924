"""Pages of recorded decisions: list, single decision with forms, and letter."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from django.urls import reverse

from octweb.decide.actions import mark, set_contact
from octweb.decide.wording import write_words
from octweb.decisions import collecting, erasing
from octweb.decisions.audited import audit_decisions
from octweb.decisions.explaining import explanation_json
from octweb.decisions.models import ChainEntry
from octweb.decisions.reading import find_decision
from octweb.dossier import pdf
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions
from octweb.registry.models import Recording, TreeModel
from octweb.registry.prediction.recording import Caller, recorder_of
from tests.octweb.decisions.conftest import ROW
from tests.octweb.visible_text import visible
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table
from trainer.training.run import TrainRequest, train

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]


@pytest.fixture
def page(client, owner, recorded):
    """Get a page of the model's records as its owner, or post a form to it. Return its text."""
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
    for query, words in (("?since=soon&outcome=known", "neither a date nor a time"), ("?page=1", "no page numbers")):
        html = page(query=query)
        assert words in html
        assert links(html) == []


def test_list_counts_up_to_a_limit(page, ids, monkeypatch):
    monkeypatch.setattr("octweb.decisions.pages.MAX_COUNT", 19)
    text = visible(page())
    assert "On record more than 19" in text
    assert "More than 19 decisions" in text
    monkeypatch.setattr("octweb.decisions.pages.MAX_COUNT", 20)
    assert "20 decisions" in visible(page())


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


@pytest.fixture
def items_model(owner, staff):
    """Provide a recorded model whose columns are `items`, a name that templates know, and a category."""
    rng = np.random.default_rng(5)
    items = rng.integers(0, 9, 80).astype(float)
    colours = rng.integers(0, 2, 80)
    columns = (
        Column(schema=ColumnSchema(name="items", kind=ColumnKind.NUMERIC), cells=items),
        Column(
            schema=ColumnSchema(name="colour", kind=ColumnKind.CATEGORICAL, categories=("blue", "red")),
            cells=colours.astype(float),
        ),
    )
    labels = Labels(name="y", classes=("no", "yes"), codes=((items > 4) ^ (colours > 0)).astype(np.int32))
    table = Table(columns=columns, row_numbers=np.arange(1, 81))
    document = train(TrainRequest(table=table, labels=labels, method="cart")).model.to_json()
    model = actions.register(owner=owner, document=json.loads(json.dumps(document)), dataset=None, title="Items")
    actions.ask_for_approval(model, by=owner)
    return actions.approve(model, by=staff, recording=Recording.FULL)


def test_decision_shows_each_cell_once(client, owner, items_model):
    row = np.array([[3.0, -1.0]])
    tree = model_file(items_model).tree
    (key,) = recorder_of(items_model).record("v1", Caller("token x", "items"), row, tree.apply(row)).texts()
    collecting.collect()
    client.force_login(owner)
    html = client.get(reverse("records:decision", args=[items_model.pk, key])).content.decode()
    cells = re.findall(r'<tr><td class="wrap">(.*?)</td>\s*<td class="num[^"]*">(.*?)</td>', html)
    assert cells == [("items", "3"), ("colour", "empty or unknown")]


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


def test_letter_states_reasons_override_and_objection(page, ids, recorded):
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


def test_days_are_written_for_people_on_page_and_letter(page, ids, recorded):
    label = model_file(recorded).tree.classes[0]
    page(ids[0], form={"kind": "objection", "reason": "The width is wrong.", "received": "2026-03-02"})
    page(ids[0], form={"kind": "outcome", "value": label, "known_at": "2026-03-01"})
    text = visible(page(ids[0]))
    assert "received 2 Mar 2026" in text
    assert "known 1 Mar 2026" in text
    assert "We received it on 2 March 2026" in visible(page(ids[0], "letter"))


def test_letter_quotes_recounted_reasons_in_owner_texts(page, ids, recorded, staff):
    tree = model_file(recorded).tree
    leaf = ChainEntry.objects.get(key=ids[0]).leaf
    path = tree.path_to(leaf)
    write_words(recorded, by=staff, texts=[{"node": v, "yes": f"Y{v}.", "no": f"N{v}."} for v in path[:-1]])
    record = find_decision(recorded.owner, ids[0])
    reasons = explanation_json(record, recorded.owner)["reasons"]
    for html in (page(ids[0], "letter"), page(ids[0])):
        text = visible(html)
        for reason in reasons["principal"]:
            assert reason["without"] != tree.classes[tree.nodes[leaf].label]
            for answer in reason["answers"]:
                at = path.index(answer["node"])
                side = "Y" if path[at + 1] == tree.nodes[path[at]].left else "N"
                assert answer["words"] == f"{side}{answer['node']}."
                assert answer["words"] in text
        assert all(words in text for column in reasons["columns"] for words in column["words"])
    assert reasons["principal"]


@pytest.mark.skipif(not pdf.can_print(), reason="PlutoPrint is not installed")
def test_letter_as_pdf_has_the_contact_and_is_a_look(page, client, ids, recorded, owner, monkeypatch):
    set_contact(recorded, by=owner, contact="Desk 3")
    printed = []
    to_pdf = pdf.to_pdf
    monkeypatch.setattr(pdf, "to_pdf", lambda html, title: printed.append(html) or to_pdf(html, title=title))
    answer = client.get(reverse("records:letter-pdf", args=[recorded.pk, ids[0]]))
    assert (answer["Content-Type"], answer.content[:5]) == ("application/pdf", b"%PDF-")
    assert "Contact: Desk 3." in visible(printed[0])
    assert json.loads(ChainEntry.objects.get(kind="look").payload)["page"] == "letter"
    assert "letter.pdf" in page(ids[0], "letter")
    erasing.erase_subject("person 0", by="t")
    assert client.get(reverse("records:letter-pdf", args=[recorded.pk, ids[0]])).status_code == 404


def test_letter_says_that_only_permitted_changes_were_compared(page, ids, recorded, owner):
    mark(recorded, by=owner, change={"colour": "never"})
    assert "No smaller change of the values that may change leads" in visible(page(ids[0], "letter"))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({**ROW, "age": 3}, "The row has a column that the model does not have."),
        (3, "The row has no column names."),
        ({**ROW, "width": "x"}, "width has a value of the wrong kind."),
    ],
)
def test_refused_row_says_why_and_differs_from_no_outcome(page, client_of, owner, recorded, row, words):
    api = client_of(owner)
    api.post(f"/api/v1/models/{recorded.pk}/predict/", json.dumps({"rows": [row]}), content_type="application/json")
    collecting.collect()
    key = str(ChainEntry.objects.get(kind="decision").key)
    assert words in visible(page(key, "letter"))
    page(key, form={"kind": "outcome", "value": model_file(recorded).tree.classes[0]})
    listed = visible(page(query="?refused=yes"))
    assert "differs" not in listed
    assert "none: " in listed
    assert "none: value" not in listed


def test_letter_without_the_file_that_answered_warns(page, ids, recorded):
    TreeModel.objects.filter(pk=recorded.pk).update(sha256="0" * 64)
    assert "cannot tell the answer. Do not send it." in visible(page(ids[0], "letter"))


def test_answered_objection_fills_the_form(page, ids):
    page(ids[0], form={"kind": "objection", "reason": "The width is wrong.", "state": "upheld", "answer": "Sorry."})
    html = page(ids[0])
    assert "<option selected>upheld</option>" in html
    assert "Sorry.</textarea>" in html


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
