"""All pages, API, dossier and commands say in the same words that a tree is no better than one answer."""

from __future__ import annotations

import html
import io
import json
import re

import numpy as np
import pytest
from django.core.management import call_command

from octweb.datasets import actions as datasets
from octweb.dossier.document import to_html
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions
from tests.octweb.visible_text import visible
from trainer.dossier import dossier as make_dossier
from trainer.evaluate.verdict import read_verdict, training_base_rate
from trainer.training.run import TrainRequest, train

pytestmark = pytest.mark.django_db
PAGES = ("/models/{pk}/", "/models/{pk}/review/", "/api/v1/models/{pk}/")


def noise_csv() -> str:
    """Return 160 rows of three columns that say nothing about the class."""
    rng = np.random.default_rng(5)
    X = rng.integers(0, 30, (160, 3))
    y = np.where(rng.random(160) < 0.7, "well", "ill")
    return "a,b,c,state\n" + "".join(f"{r[0]},{r[1]},{r[2]},{k}\n" for r, k in zip(X, y, strict=True))


@pytest.fixture
def model(owner, media):
    table = datasets.create(
        owner=owner, file=io.BytesIO(noise_csv().encode()), source_name="n.csv", name="n", target="state"
    )
    rows, labels = datasets.load(table)
    request = TrainRequest(table=rows, labels=labels, method="cart", parameters={"depth": 4}, test_share=0.3)
    result = train(request)
    return actions.register(owner=owner, document=result.model.to_json(), dataset=table, title="Noise")


@pytest.mark.parametrize("address", ["/", "/models/", "/models/compare/?models={pk}&models={other}"])
def test_lists_and_comparisons_show_the_warning(model, owner, client, address):
    other = actions.register(owner=owner, document=json.loads(model.document), dataset=model.dataset, title="Other")
    client.force_login(owner)
    page = visible(client.get(address.format(pk=model.pk, other=other.pk)).content.decode()).replace("\u202f", " ")
    assert page.count(" ".join(read_verdict(model_file(model)).sentence.split()).replace("\u202f", " ")) == 2


@pytest.mark.parametrize("address", PAGES)
def test_tree_no_better_than_one_answer_says_so(model, owner, client, address):
    verdict = read_verdict(model_file(model))
    assert verdict.kind == "worse"
    client.force_login(owner)
    page = visible(client.get(address.format(pk=model.pk)).content.decode().replace('\\"', '"'))
    assert " ".join(verdict.sentence.split()) in page.replace("\u202f", " ")
    assert verdict.next in page


def test_next_step_opens_form_with_proposed_settings(model, owner, client):
    client.force_login(owner)
    page = client.get(f"/models/{model.pk}/").content.decode()
    main = re.findall(r'<a class="btn[^"]* primary"[^>]*>([^<]*)</a>', page)
    assert main == [read_verdict(model_file(model)).next]
    address = html.unescape(re.search(r'href="(/runs/new/\?[^"]*p_depth=[^"]*)"', page).group(1))
    form = client.get(address).context["form"]
    assert form["p_depth"].value() in (3, "3")
    assert form.method.id == "cart"


@pytest.mark.parametrize("address", ["/", "/models/", "/models/{pk}/"])
def test_base_rate_stands_beside_accuracy(model, owner, client, address):
    client.force_login(owner)
    rate = read_verdict(model_file(model)).base_rate
    page = visible(client.get(address.format(pk=model.pk)).content.decode())
    assert f"one answer: {100 * rate.share:.1f} %" in page.replace("\u202f", " ")


@pytest.mark.parametrize("address", ["/models/", "/models/{pk}/review/", "/models/compare/?models={pk}&models={other}"])
def test_base_rate_stands_beside_training_accuracy(model, owner, client, address):
    other = actions.register(owner=owner, document=json.loads(model.document), dataset=model.dataset, title="Other")
    client.force_login(owner)
    base = training_base_rate(model_file(model)).share
    page = visible(client.get(address.format(pk=model.pk, other=other.pk)).content.decode()).replace("\u202f", " ")
    assert f"{100 * model.train_accuracy:.1f} % one answer: {100 * base:.1f} %" in page


def test_dossier_states_verdict(model, media, tmp_path):
    path = tmp_path / "n.csv"
    path.write_text(noise_csv())
    file = tmp_path / "model.json"
    file.write_text(model.document)
    record = make_dossier(file, path)
    verdict = read_verdict(model_file(model))
    assert record["verdict"] == verdict.to_json()
    page = html.unescape(to_html(record, model_file(model).tree))
    assert verdict.sentence in page
    assert record["base_rate"] == verdict.base_rate.to_json()
    for share in (verdict.base_rate.share, training_base_rate(model_file(model)).share):
        assert f"{100 * share:.1f}" in page


@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_command_prints_base_rate_and_verdict(tmp_path, command):
    path = tmp_path / "n.csv"
    path.write_text(noise_csv())
    out = io.StringIO()
    options = {"target": "state", "json": True, "method": "cart" if command == "train" else ["cart"], "stdout": out}
    options |= {"test_share": 0.3} if command == "train" else {"folds": 4, "model": str(tmp_path / "m.json")}
    call_command(command, str(path), **options)
    record = json.loads(out.getvalue().splitlines()[-1])
    record = record if command == "train" else record["whole"]
    assert record["base_rate"]["class"] == "well"
    assert record["base_rate"]["rows"] == "unseen"
    assert record["verdict"]["kind"] in ("worse", "chance")
