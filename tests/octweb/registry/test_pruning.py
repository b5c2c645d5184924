"""A new version without idle splits: by page and API, and who may make one."""

from __future__ import annotations

import io

import numpy as np
import pytest

from octweb.core.problems import Conflict
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions
from octweb.registry.lifecycle.importing import import_tree
from octweb.registry.lifecycle.pruning import prune
from octweb.registry.models import TreeModel
from tests.octweb.demo.demo_cases import visitor
from tests.octweb.registry.test_workspace import table, trained_on  # noqa: F401 - a fixture
from trainer.tree.idle import idle_questions


@pytest.fixture(autouse=True)
def _media(media):
    pass


@pytest.fixture
def grown(table, owner):  # noqa: F811
    """Provide a tree that was grown without pruning and has idle splits."""
    model = trained_on(table, owner, depth=6, min_leaf=1, pruning="0")
    assert idle_questions(model_file(model).tree)
    return model


def test_the_page_makes_the_next_version_with_the_same_answers(grown, owner, client):
    client.force_login(owner)
    page = client.get(f"/models/{grown.pk}/?mode=tree&node=0&tab=below").content.decode()
    assert f'action="/models/{grown.pk}/prune/"' in page
    answer = client.post(f"/models/{grown.pk}/prune/", follow=True)
    made = answer.context["model"]
    assert (made.version, made.family) == (grown.version + 1, grown.family)
    assert f"with {made.leaves} leaves instead of {grown.leaves}" in answer.content.decode()
    before = model_file(grown).tree
    after = model_file(made).tree
    assert made.leaves == before.n_leaves - len(idle_questions(before)) == after.n_leaves
    assert made.unseen_accuracy == grown.unseen_accuracy
    draw = np.random.default_rng(0).normal(scale=5, size=(400, len(before.schema)))
    assert after.predict(draw).tolist() == before.predict(draw).tolist()
    assert "same answers" not in client.get(f"/models/{made.pk}/?mode=tree&node=0&tab=below").content.decode()
    again = client.post(f"/models/{made.pk}/prune/", follow=True)
    assert "No question of this tree can be removed" in again.content.decode()
    assert TreeModel.objects.count() == 2


def test_api_creates_dossier_or_states_the_reason(grown, owner, stranger, client_of):
    api = client_of(owner)
    answer = api.post(f"/api/v1/models/{grown.pk}/prune/")
    assert answer.status_code == 201
    assert answer.json()["leaves"] < grown.leaves
    refused = api.post(f"/api/v1/models/{answer.json()['id']}/prune/")
    assert refused.status_code == 422
    assert "each of them changes an answer" in refused.json()["detail"]
    actions.share(grown, by=owner, username=stranger.username, level="read")
    assert client_of(stranger).post(f"/api/v1/models/{grown.pk}/prune/").status_code == 403


def test_a_visitor_of_the_demo_has_a_limit(grown, settings, client_of, table):  # noqa: F811
    settings.DEMO = True
    settings.DEMO_ITEMS = 1
    _, visit = visitor()
    TreeModel.objects.update(owner=visit.user)
    with pytest.raises(Conflict, match="1 is the limit"):
        prune(TreeModel.objects.get(), by=visit.user)
    with pytest.raises(Conflict, match="1 is the limit"):  # the same limit holds for a tree from another program
        import_tree(owner=visit.user, file=io.BytesIO(b"{}"), source_name="tree.json", dataset=grown.dataset)


def test_readers_are_not_offered_pruning(grown, owner, stranger, client):
    actions.share(grown, by=owner, username=stranger.username, level="read")
    client.force_login(stranger)
    page = client.get(f"/models/{grown.pk}/?mode=tree&node=0&tab=below").content.decode()
    assert "changes nothing" in page or "change nothing" in page
    assert "same answers" not in page
    assert client.post(f"/models/{grown.pk}/prune/").status_code == 404
