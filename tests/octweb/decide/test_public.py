"""The public page of an approved model: who opens it, who sees it, and what it says about training rows."""

from __future__ import annotations

import io
import json
import re
import uuid

import pytest

from octweb.datasets import actions as datasets
from octweb.decide.actions import guidance_of, mark, publish
from octweb.registry import actions as registry
from octweb.registry.parsed import model_file
from octweb.registry.units import statistics_of
from trainer.training.run import TrainRequest, train

FORM = {"purpose": "Pre-screening of <loans>.\nA person decides.", "contact": "loans@example.org"}


def settings(client, model, **form):
    return client.post(f"/models/{model.pk}/public/", form)


def public(client, model):
    return client.get(f"/public/{guidance_of(model).key}/")


def data(page):
    found = re.search(r'<script id="questionnaire-data" type="application/json">(.*?)</script>', page, re.DOTALL)
    return json.loads(found.group(1))


def test_an_approved_model_is_opened_by_its_owner_for_everyone(approved_model, owner, client):
    client.force_login(owner)
    assert settings(client, approved_model, **FORM).status_code == 302
    client.logout()
    answer = public(client, approved_model)
    page = answer.content.decode()
    assert answer.status_code == 200
    assert answer["X-Robots-Tag"] == "noindex"
    assert "Pre-screening of &lt;loans&gt;." in page
    assert "loans@example.org" in page
    assert not answer.cookies
    client.force_login(owner)
    assert settings(client, approved_model, close="1").status_code == 302
    assert public(client, approved_model).status_code == 404


@pytest.mark.parametrize("allowed", [False, True])
def test_training_rows_are_not_spoken_of_unless_allowed(approved_model, owner, client, allowed):
    client.force_login(owner)
    settings(client, approved_model, **FORM, **({"show_training": "on"} if allowed else {}))
    found = data(public(client, approved_model).content.decode())["tree"]
    counted = {key for node in found["nodes"] for key in node} & {"r", "c", "u"}
    assert counted == ({"r", "c"} if allowed else set())
    if not allowed:
        assert {c["scale"] for c in found["columns"] if "scale" in c} == {1.0}


def test_the_page_is_the_same_whatever_rows_led_to_the_tree(owner, staff, media, client):
    """Two tables with other values, other frequencies and another category, from which the same tree comes: the same page."""
    pages = []
    found = []
    for rows in (training_rows(scores=(1, 2, 10, 11, 19), towns=("north", "south", "east")),
                 training_rows(scores=(-7.25, 4, 10, 11, 300), towns=("north", "south", "east", "west", ""))):  # fmt: skip
        model = trained_on(rows, owner)
        registry.ask_for_approval(model, by=owner)
        registry.approve(model, by=staff)
        mark(model, by=owner, change={"score": "up"})
        publish(model, by=owner, purpose="Loans.", contact="a@example.org", show_training=False)
        tree = model_file(model).tree
        found.append((tree, statistics_of(model, inside=True)))
        page = public(client, model).content.decode()
        pages.append(page.replace(str(guidance_of(model).key), "KEY").replace(f"ersion {model.version}", "ersion N"))
    (one, (units, source)), (two, (others, _)) = found
    assert source == "training rows"
    # the models do differ: in counts, units and categories
    assert [v.counts for v in one.nodes] != [v.counts for v in two.nodes]
    assert [u.scale for u in units] != [u.scale for u in others]
    assert one.schema[1].categories != two.schema[1].categories
    assert "another one" in pages[0]
    assert pages[0] == pages[1]


def training_rows(*, scores, towns):
    return [(s, t, "good" if s > 10.5 or t == "north" else "bad") for s in scores for t in towns for _ in range(8)]


def trained_on(rows, owner):
    text = "score,town,answer\n" + "".join(f"{s:g},{t},{k}\n" for s, t, k in rows)
    choice = datasets.Choice(target="answer", missing={"town": "category"})
    dataset = datasets.create(owner=owner, file=io.BytesIO(text.encode()), source_name="t.csv", name="t", choice=choice)
    table, labels = datasets.load(dataset)
    request = TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 2})
    return registry.register(owner=owner, document=train(request).model.to_json(), dataset=dataset, title="Loans")


def test_it_closes_with_the_approval_and_for_others_it_is_not_there(approved_model, owner, staff, stranger, client):
    client.force_login(stranger)
    assert settings(client, approved_model, **FORM).status_code == 404
    assert client.get(f"/models/{approved_model.pk}/public/").status_code == 404
    client.force_login(owner)
    settings(client, approved_model, **FORM)
    assert public(client, approved_model).status_code == 200
    assert client.get(f"/public/{uuid.uuid4()}/").status_code == 404
    assert client.post(f"/public/{guidance_of(approved_model).key}/").status_code == 405
    registry.retire(approved_model, by=staff)
    assert public(client, approved_model).status_code == 404


def test_what_is_missing_is_said(approved_model, table_model, owner, client):
    client.force_login(owner)
    answer = settings(client, approved_model, purpose="", contact="me")
    assert answer.status_code == 200
    assert "Purpose" in answer.content.decode()
    assert not guidance_of(approved_model).public


def test_a_draft_has_no_public_page(table_model, owner, client):
    client.force_login(owner)
    answer = settings(client, table_model, **FORM)
    assert answer.status_code == 200
    assert "approved" in answer.content.decode()
