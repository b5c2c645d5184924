"""The frontier of sensitivity and specificity on the model page and in the form of a new run."""

from __future__ import annotations

import json
from copy import deepcopy
from functools import cache

import pytest
from django.core.files.base import ContentFile

from octweb.datasets.models import Dataset
from octweb.registry.document.rows import check_claim
from octweb.registry.document.sensitivity_frontier import frontier_context, points_of
from tests.octweb.small_models import csv_of_small_table, small_table
from trainer.data.reader import load
from trainer.training.run import TrainRequest, train


@pytest.fixture(autouse=True)
def _media(media):
    pass


@cache
def _trained(path, **parameters):
    table, labels, *_ = load(path, target="kind")
    request = TrainRequest(
        table=table, labels=labels, method="odt", parameters={"depth": 2, **parameters}, name="Reach"
    )
    return train(request).model.to_json()


@pytest.fixture
def rows(tmp_path_factory):
    """Provide the file of the small table with two classes."""
    path = tmp_path_factory.getbasetemp() / "two.csv"
    # Renaming the third class to the second one leaves two classes.
    path.write_text(
        "\n".join(line[:-1] + "b" if line.endswith(",c") else line for line in csv_of_small_table().split("\n"))
    )
    return path


@pytest.fixture
def dataset(owner, media, rows):
    table, labels = small_table()
    columns = [c.to_json() | {"role": "feature"} for c in table.schema]
    made = Dataset(owner=owner, name="Two classes", target=labels.name, rows=len(table), columns=columns)
    made.sha256 = "0" * 64
    made.file.save("two.csv", ContentFile(rows.read_bytes()))
    return made


def test_frontier_lists_every_pair_and_offers_a_run(client, register, dataset, owner, rows):
    document = _trained(rows, frontier=True)
    model = register(document=document, dataset=dataset)
    points = points_of(document["certificate"])
    client.force_login(owner)
    text = client.get(f"/models/{model.pk}/?mode=proof").content.decode()
    assert len(points) > 2
    assert text.count("<tr data-reach ") == len(points)
    assert text.count(">proved<") >= len(points)
    assert 'id="reach-slider"' in text
    assert f"p_sensitivity={points[0]['required']!r}" in text
    assert "p_depth=2" in text
    answer = client.get(f"/api/v1/models/{model.pk}/figures/reach/").json()
    assert answer == json.loads(json.dumps(frontier_context(model)["figure"]))
    plain = register(document=_trained(rows), dataset=dataset)
    assert client.get(f"/api/v1/models/{plain.pk}/figures/reach/").status_code == 404


def test_the_required_sensitivity_of_a_point_reaches_it(rows):
    points = points_of(_trained(rows, frontier=True)["certificate"])
    for point in points[:: max(1, len(points) // 3)]:
        certificate = _trained(rows, sensitivity=point["required"])["certificate"]
        assert certificate["status"] == "optimal"
        assert certificate["objective"] == pytest.approx(point["specificity"])


@pytest.mark.parametrize(("share", "evaluation"), [(0.0, "none"), (0.3, "test")])
def test_a_new_run_is_on_the_rows_and_columns_of_the_frontier(
    client, register, dataset, owner, rows, share, evaluation
):
    document = deepcopy(_trained(rows, frontier=True, select="cart", seed=7))
    document["parameters"]["test_share"] = share
    reach = frontier_context(register(document=document, dataset=dataset))
    client.force_login(owner)
    form = client.get(f"/runs/new/?{reach['query']}").context["form"]
    assert form["evaluation"].value() == evaluation
    assert share == 0 or int(form["test_percent"].value()) == 30
    assert (form["p_select"].value(), form["p_seed"].value()) == ("cart", "7")


def test_unfinished_frontier_draws_bounds_unless_file_is_old(client, register, dataset, owner, rows):
    document = deepcopy(_trained(rows, frontier=True))
    kept = next(e for e in document["certificate"]["evidence"] if e["kind"] == "frontier")
    kept["pairs"] = [[tp, tn, tn + (i == 1)] for i, (tp, tn, _) in enumerate(kept["pairs"])]
    kept |= {"finished": False, "status": "time_limit", "bounds": [[kept["positives"], kept["negatives"]]]}
    kept["proved"] = [i > 1 for i in range(len(kept["pairs"]))]
    model = register(document=document, dataset=dataset)
    client.force_login(owner)
    text = client.get(f"/models/{model.pk}/?mode=proof").content.decode()
    assert "The search was stopped" in text
    assert "no tree is above" in text
    assert text.count("<td>proved</td>") == len(kept["pairs"]) - 2
    assert "<td>more sensitivity may be possible</td>" in text
    for name in ("finished", "status", "bounds", "proved"):
        del kept[name]
    older = client.get(f"/models/{register(document=document, dataset=dataset).pk}/?mode=proof").content.decode()
    assert 'id="reach-slider"' in older
    assert "no tree is above" not in older
    assert "best specificity found" in older


def test_a_model_without_a_frontier_has_no_such_card(client, register, owner):
    client.force_login(owner)
    assert b'id="reach"' not in client.get(f"/models/{register().pk}/?mode=proof").content


def test_the_goal_is_named_and_checked_again_from_the_file(client, register, dataset, owner, rows):
    model = register(document=_trained(rows, sensitivity=0.9), dataset=dataset)
    assert check_claim(model).agrees
    client.force_login(owner)
    assert "sensitivity at least 0.9" in client.get(f"/models/{model.pk}/?mode=proof").content.decode()


def test_form_shows_frontier_and_adopts_chosen_constraint(client, register, dataset, owner, rows):
    form = f"/runs/new/?dataset={dataset.pk}&method=odt&p_sensitivity=0.875"
    client.force_login(owner)
    before = client.get(form).content.decode()
    assert 'value="0.875"' in before
    assert 'id="reach"' not in before
    register(document=_trained(rows, frontier=True), dataset=dataset)
    assert 'id="reach-slider"' in client.get(form).content.decode()
    assert 'id="reach"' not in client.get(form.replace("odt", "cart")).content.decode()


def test_the_frontier_of_another_person_is_not_shown(client, register, dataset, owner, stranger, rows):
    register(document=_trained(rows, frontier=True), dataset=dataset)
    client.force_login(stranger)
    assert client.get(f"/runs/new/?dataset={dataset.pk}&method=odt").status_code == 404
