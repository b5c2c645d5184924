"""The tree sizes that a training tried: on the model page, over REST, in the form, and a run for each."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from octweb.core.problems import Conflict
from octweb.datasets.models import Dataset
from octweb.registry.models import TreeModel
from octweb.runs import actions
from octweb.runs.forms import RunForm
from octweb.runs.models import TrainingRun
from octweb.runs.sizes import open_size, size_options
from octweb.runs.words import in_words, objective_words, run_name
from tests.octweb.noisy_runs import finished, noisy_dataset, trained
from tests.octweb.runs.costs_cases import called, defaults_of
from tests.octweb.visible_text import visible
from trainer.registry import get

pytestmark = pytest.mark.django_db
EXACT = get("exact")


@pytest.fixture
def noisy(owner, media) -> Dataset:
    return noisy_dataset(owner)


def test_run_without_a_penalty_leaves_the_size_open(owner, noisy):
    run = actions.enqueue(owner=owner, dataset=noisy, method="exact")
    assert run.parameters["leaf_penalty"] == "auto"
    assert run_name("noisy", EXACT, run.parameters) == "noisy, Exact search, depth 3"
    assert "less the leaf penalty" in objective_words(run.parameters, EXACT)
    words = in_words(EXACT, run.parameters, columns=4, questions=9)[1]
    assert any("chooses the number of leaves" in sentence for sentence in words)


@pytest.mark.parametrize(("typed", "wanted"), [("", "auto"), ("auto", "auto"), ("0", 0.0), ("2.5", 0.025)])
def test_form_leaves_the_size_open_or_takes_a_share(owner, noisy, typed, wanted):
    form = RunForm(user=owner, dataset=noisy, method=EXACT)
    field = form.fields["p_leaf_penalty"]
    assert field.widget.attrs["placeholder"] == "chosen by the data"
    assert not field.required
    data = defaults_of(form) | {"evaluation": "none", "p_leaf_penalty": typed}
    sent = RunForm(data, user=owner, dataset=noisy, method=EXACT)
    assert sent.is_valid(), sent.errors
    run = actions.enqueue(owner=owner, dataset=noisy, **sent.request())
    assert run.parameters["leaf_penalty"] == wanted


def test_panel_shows_each_size_and_marks_this_one(client, owner, noisy):
    run = trained(owner, noisy)
    client.force_login(owner)
    page = client.get(f"/models/{run.model.pk}/").content.decode()
    assert f"/models/{run.model.pk}/sizes/" in page
    answer = client.get(f"/models/{run.model.pk}/sizes/").content.decode()
    text = visible(answer)
    options = size_options(run.model)
    assert len(options.options) > 2
    for option in options.options:
        assert option.unseen in text
    assert answer.count('aria-current="true"') == 1
    assert "This size was chosen by the data" in text
    assert "shorter" in text
    assert "closer" in text


def test_click_starts_a_run_once_and_opens_it_when_done(client, owner, noisy):
    run = trained(owner, noisy)
    client.force_login(owner)
    other = next(option for option in size_options(run.model).options if not option.here)
    address = f"/models/{run.model.pk}/sizes/"
    first = client.post(address, {"leaves": other.leaves})
    started = TrainingRun.objects.exclude(pk=run.pk).get()
    assert first.url == f"/runs/{started.pk}/"
    assert started.parameters == run.parameters | {"leaf_penalty": other.leaf_penalty}
    assert started.test_share == run.test_share
    assert started.family == run.model.family
    assert client.post(address, {"leaves": other.leaves}).url == first.url  # no second run
    finished(started)
    assert client.post(address, {"leaves": other.leaves}).url == f"/models/{started.model.pk}/"
    assert started.model.leaves == other.leaves
    back = size_options(started.model)
    assert [option.leaves for option in back.options if option.here] == [other.leaves]
    chosen = f"/models/{started.model.pk}/sizes/"
    assert client.post(chosen, {"leaves": back.chosen.leaves}).url == f"/models/{run.model.pk}/"


@pytest.mark.parametrize("leaves", ["", "x", "-1", "9" * 30])
def test_click_without_a_number_of_leaves_is_not_found(client, owner, noisy, leaves):
    run = trained(owner, noisy)
    client.force_login(owner)
    assert client.post(f"/models/{run.model.pk}/sizes/", {"leaves": leaves}).status_code == 404


def test_click_on_untried_size_starts_no_run(client, owner, noisy):
    run = trained(owner, noisy)
    client.force_login(owner)
    answer = client.post(f"/models/{run.model.pk}/sizes/", {"leaves": "7777"}, follow=True)
    assert "did not try a tree of 7777 leaves" in answer.content.decode()
    assert TrainingRun.objects.count() == 1


def test_model_without_a_run_has_no_other_sizes(owner, noisy):
    run = trained(owner, noisy)
    model = run.model
    run.delete()
    with pytest.raises(Conflict, match="not trained here"):
        open_size(TreeModel.objects.get(pk=model.pk), 2, owner=owner)


def test_panel_of_a_stated_penalty_is_empty(client, owner, noisy):
    run = trained(owner, noisy, leaf_penalty=0.01)
    client.force_login(owner)
    assert client.get(f"/models/{run.model.pk}/sizes/").content == b""


def test_sizes_of_another_owner_are_not_shown(client, owner, noisy, django_user_model):
    run = trained(owner, noisy)
    client.force_login(django_user_model.objects.create_user("stranger", password="x"))
    assert client.get(f"/models/{run.model.pk}/sizes/").status_code == 404
    assert client.post(f"/models/{run.model.pk}/sizes/", {"leaves": "1"}).status_code == 404


def test_model_over_rest_lists_its_sizes(owner, noisy):
    run = trained(owner, noisy)
    api = APIClient()
    api.force_authenticate(owner)
    sizes = api.get(f"/api/v1/models/{run.model.pk}/").json()["sizes"]
    assert sizes["measure"] == "accuracy"
    assert [own["chosen"] for own in sizes["tried"]].count(True) == 1
    model = trained(owner, noisy, leaf_penalty=0.02)
    assert api.get(f"/api/v1/models/{model.model.pk}/").json()["sizes"] is None


def test_train_prints_the_size_and_its_alternatives(capsys, noisy, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(noisy.file.read())
    out = called(capsys, "train", path, "--target=class", "--method=exact", "--depth=2", "--bins=5")
    assert "Size chosen by the data: " in out
    assert "one leaf " in out
    out = called(capsys, "train", path, "--target=class", "--method=exact", "--depth=2", "--bins=5", "--leaf-penalty=0")
    assert "Size" not in out
