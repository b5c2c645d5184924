"""The public page of an approved model: who may open and see it, and what it reveals about training rows."""

from __future__ import annotations

import io
import json
import re
import uuid

import pytest
from django.core.management import call_command

from octweb.datasets import actions as datasets
from octweb.decide.actions import guidance_of, mark, publish
from octweb.decide.payload import payload
from octweb.registry.document.model_files import model_file
from octweb.registry.document.units import statistics_of
from octweb.registry.lifecycle import actions as registry
from trainer.explain.carried import tree_data
from trainer.explain.rows import rows_to_explain
from trainer.explain.statistics import statistics_of_model
from trainer.training.run import TrainRequest, train

FORM = {"purpose": "Pre-screening of <loans>.\nA person decides.", "contact": "loans@example.org"}


def settings(client, model, **form):
    return client.post(f"/models/{model.pk}/public/", form)


def public(client, model):
    return client.get(f"/public/{guidance_of(model).key}/")


def data(page):
    match = re.search(r'<script id="questionnaire-data" type="application/json">(.*?)</script>', page, re.DOTALL)
    return json.loads(match.group(1))


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


@pytest.mark.parametrize("name", ["purpose", "contact"])
def test_text_that_no_database_stores_is_refused(approved_model, owner, client, name):
    client.force_login(owner)
    answer = settings(client, approved_model, **FORM | {name: "a\x00b"})
    assert "control characters" in answer.content.decode()
    assert not guidance_of(approved_model).public


@pytest.mark.parametrize("allowed", [False, True])
def test_training_rows_are_not_spoken_of_unless_allowed(approved_model, owner, client, allowed):
    client.force_login(owner)
    settings(client, approved_model, **FORM, **({"show_training": "on"} if allowed else {}))
    found = data(public(client, approved_model).content.decode())["tree"]
    counted = {key for node in found["nodes"] for key in node} & {"r", "c", "u"}
    assert counted == ({"r", "c"} if allowed else set())
    if not allowed:
        units = {c.name: c.change_unit for c in model_file(approved_model).tree.schema}
        assert {c["name"]: c["scale"] for c in found["columns"] if "scale" in c}.items() <= units.items()


def test_page_is_independent_of_training_rows(owner, staff, media, client):
    """Two tables give one tree with the same steps and units, from other values, frequencies and categories."""
    pages = []
    found = []
    for rows in (
        training_rows(scores=(1, 2, 10, 11, 19), towns=("north", "south", "east")),
        training_rows(scores=(-7, 1, 10, 11, 300), towns=("north", "south", "east", "west", "")),
    ):
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
    assert source.startswith("training rows")
    # The two models do differ: in counts, deviations and categories.
    assert [v.counts for v in one.nodes] != [v.counts for v in two.nodes]
    assert [u.deviation for u in units] != [u.deviation for u in others]
    assert one.schema[1].categories != two.schema[1].categories
    assert "another one" in pages[0]
    assert pages[0] == pages[1]


def test_every_interface_changes_columns_alike(owner, media, tmp_path):
    """Pages, API, exported page and commands change an integer grade in the same steps and unit."""
    rows = training_rows(scores=(1, 2, 10, 11, 19), towns=("north", "south", "east"))
    model = trained_on(rows, owner)
    file = model_file(model)
    table = tmp_path / "t.csv"
    table.write_text("score,town,answer\n" + "".join(f"{s},{t},{k}\n" for s, t, k in rows))
    doors = {
        "owner": tree_data(file.tree, statistics_of(model, inside=True)[0]),
        "others": tree_data(file.tree, statistics_of(model, inside=False)[0]),
        "questionnaire": payload(model, inside=False)["tree"],
        "public page": payload(model, inside=False, rows=False)["tree"],
        "explain": tree_data(file.tree, rows_to_explain(file, table).statistics),
        "explained columns": tree_data(file.tree, statistics_of_model(file.tree)),
    }
    path = tmp_path / "m.json"
    path.write_text(json.dumps(file.to_json()))
    for name, data in (("export", {}), ("export with rows", {"data": str(table)})):
        call_command("export", str(path), to="html", output=str(tmp_path / "m.html"), **data)
        text = (tmp_path / "m.html").read_text()
        doors[name] = json.loads(re.search(r'<script id="model"[^>]*>(.*?)</script>', text, re.DOTALL)[1])["tree"]
    score = {name: next(c for c in page["columns"] if c["name"] == "score") for name, page in doors.items()}
    assert {name: (c["decimals"], c["scale"]) for name, c in score.items()} == dict.fromkeys(doors, (0, 10.0))


def training_rows(*, scores, towns):
    return [(s, t, "good" if s > 10.5 or t == "north" else "bad") for s in scores for t in towns for _ in range(8)]


def trained_on(rows, owner):
    text = "score,town,answer\n" + "".join(f"{s:g},{t},{k}\n" for s, t, k in rows)
    choice = datasets.ColumnChoice(target="answer", missing={"town": "category"})
    dataset = datasets.create(owner=owner, file=io.BytesIO(text.encode()), source_name="t.csv", name="t", choice=choice)
    table, labels = datasets.load(dataset)
    request = TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 2})
    return registry.register(owner=owner, document=train(request).model.to_json(), dataset=dataset, title="Loans")


def test_public_page_is_404_without_approval_or_ownership(approved_model, owner, staff, stranger, client):
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


def test_missing_parts_are_reported(approved_model, table_model, owner, client):
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
