"""The reviewer's checklist: its items, who may read it, notes for open items, and two approvals."""

from __future__ import annotations

import copy
import io
import math
import random
import re

import pytest
from django.core.exceptions import PermissionDenied
from rest_framework.exceptions import ValidationError

from octweb.audit.models import Record
from octweb.checking.models import ModelCheck
from octweb.datasets import actions as datasets
from octweb.decide import actions as decide
from octweb.dossier.models import ModelDossier
from octweb.jobs.models import RunStatus
from octweb.registry.lifecycle import actions
from octweb.registry.lifecycle.audit_trail import audit_models
from octweb.registry.models import State, TreeModel
from octweb.registry.review.checklist import TITLES, ReviewedModel, build_checklist
from tests.octweb.runs.conftest import CSV
from tests.octweb.small_models import trained
from trainer.training.run import TrainRequest, train

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]


@pytest.fixture
def data(owner):
    return datasets.create(owner=owner, file=io.BytesIO(CSV.encode()), source_name="a.csv", name="A", target="class")


@pytest.fixture
def second_staff(django_user_model):
    return django_user_model.objects.create_superuser("bert", password="a long password")


def fitted(register, data, depth=2, test_share=0.25):
    table, labels = datasets.load(data)
    request = TrainRequest(
        table=table, labels=labels, method="cart", parameters={"depth": depth}, test_share=test_share
    )
    return register(dataset=data, document=train(request).model.to_json())


def items(model):
    return {item.key: item for item in build_checklist(ReviewedModel(TreeModel.objects.get(pk=model.pk)))}


def states(model):
    return {key: item.state for key, item in items(model).items()}


def finish(job, **values):
    type(job).objects.filter(pk=job.pk).update(status=RunStatus.SUCCEEDED, **values)


def test_all_items_are_listed_in_order(register, data):
    assert list(items(fitted(register, data))) == list(TITLES)


def test_asking_starts_a_check_and_a_dossier_once(register, data, staff):
    model = fitted(register, data)
    assert (states(model)["checked"], states(model)["dossier"]) == ("cannot be said", "open")
    actions.ask_for_approval(model, by=model.owner)
    check, dossier = ModelCheck.objects.get(model=model), ModelDossier.objects.get(model=model)
    assert (states(model)["checked"], states(model)["dossier"]) == ("cannot be said", "cannot be said")
    finish(check, summary={"verdict": "recounted"})
    finish(dossier, file="dossiers/a.zip")
    assert (states(model)["checked"], states(model)["dossier"]) == ("holds", "holds")
    actions.ask_back(model, by=staff, reason="Why?")
    actions.ask_for_approval(model, by=model.owner, reason="Because.")
    assert ModelCheck.objects.count() == ModelDossier.objects.count() == 1


@pytest.mark.parametrize(
    ("claim", "verdict", "state"),
    [("heuristic", "recounted", "holds"), ("heuristic", "refuted", "open"), ("heuristic", "cannot be judged", "cannot be said"),
     ("proved", "proved", "holds"), ("proved", "recounted", "cannot be said")],
)  # fmt: skip
def test_a_verdict_of_the_checker_sets_the_item(register, data, claim, verdict, state):
    document = trained("exact", depth=2) if claim == "proved" else trained("cart", depth=2)
    model = register(dataset=data, document=copy.deepcopy(document))
    ModelCheck.objects.create(model=model, owner=model.owner, status=RunStatus.SUCCEEDED, summary={"verdict": verdict})
    assert states(model)["checked"] == state


def test_tree_without_splits_is_an_open_point(register, data):
    found = items(fitted(register, data, depth=0))
    assert found["better"].state == "open"
    assert "always answers" in found["better"].sentence


def test_leaves_without_unseen_rows_cannot_be_judged(register, data):
    assert states(fitted(register, data))["leaves"] == "holds"
    without = register(dataset=None, document=copy.deepcopy(trained("cart", depth=2)))
    assert states(without)["leaves"] == "cannot be said"


def test_weak_leaves_are_named_with_their_shares(register, owner):
    """A tree that learned noise; leaves are judged again here, with the interval of Wilson written out."""
    draw = random.Random(5)
    text = "x,z,class\n" + "".join(f"{draw.random():.4f},{draw.random():.4f},{draw.choice('ab')}\n" for _ in range(400))
    noise = datasets.create(owner=owner, file=io.BytesIO(text.encode()), source_name="n.csv", name="N", target="class")
    model = fitted(register, noise, depth=5, test_share=0.5)
    scene = ReviewedModel(model).scene
    reached = scene.tree.apply(scene.rows.matrix)[scene.rows.unseen]
    weak = []
    for leaf in scene.tree.leaves:
        here = scene.rows.codes[scene.rows.unseen][reached == leaf.id]
        n, promised = len(here), leaf.counts[leaf.label] / leaf.rows
        if n and highest((here == leaf.label).mean(), n) < promised:
            weak.append(f"{(here == leaf.label).sum() / n * 100:.1f}")
    assert len(weak) >= 4
    found = items(model)["leaves"]
    assert found.state == "open"
    assert f"{len(weak)} leaves of {scene.tree.n_leaves} keep less than they promise" in found.sentence
    assert f"And {len(weak) - 3} " in found.sentence
    shares = re.findall(r"is right for ([\d.]+)", found.sentence)
    assert len(shares) == 3
    assert {f"{float(share):.1f}" for share in shares} <= set(weak)


def highest(share, n, z=1.959964):
    """Return the upper end of Wilson's interval."""
    centre = share + z * z / (2 * n)
    return (centre + z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))) / (1 + z * z / n)


def test_marks_of_the_owner_stand_beside_the_columns(register, data):
    model = fitted(register, data)
    before = items(model)["columns"]
    assert before.state == "cannot be said"
    column = before.sentence.removeprefix("The tree asks ").split(";")[0].split(".")[0]
    decide.mark(model, by=model.owner, change={column: "never"})
    after = items(model)["columns"]
    assert after.state == "holds"
    assert f"{column} (never changes)" in after.sentence


def test_worse_answers_are_open_points(register, data, staff):
    better, worse = fitted(register, data), fitted(register, data, depth=0)
    assert states(better)["changes"] == "holds"
    actions.ask_for_approval(better, by=better.owner)
    actions.approve(better, by=staff)
    found = items(worse)["changes"]
    counts = ReviewedModel(worse).difference.unseen
    assert counts.now_wrong > counts.now_right
    assert found.state == "open"
    assert f"{counts.now_wrong} now wrong" in found.sentence


def test_the_purpose_stays_after_the_owner_answered(client, client_of, register, data, staff):
    model = fitted(register, data)
    actions.ask_for_approval(model, by=model.owner, reason="For triage at night.")
    actions.ask_back(model, by=staff, reason="Whose rows are these?")
    assert states(model)["questions"] == "open"
    actions.ask_for_approval(model, by=model.owner, reason="Of ward 3.")
    assert states(model)["questions"] == "holds"
    client.force_login(staff)
    text = client.get(f"/models/{model.pk}/review/").content.decode()
    box = text.split("Why the owner asks for approval")[1].split("</section>")[0]
    assert box.index("For triage at night.") < box.index("Whose rows are these?") < box.index("Of ward 3.")
    record = client_of(staff).get(f"/api/v1/models/{model.pk}/review/").json()
    assert record["purpose"] == "For triage at night."
    assert record["sent_back"][0]["answer"] == "Of ward 3."


def test_owner_and_administrators_read_the_checklist(client_of, register, data, owner, staff, stranger):
    model = fitted(register, data)
    address = f"/api/v1/models/{model.pk}/review/"
    for user, status in ((None, 401), (stranger, 404), (owner, 200), (staff, 200)):
        answer = client_of(user).get(address)
        assert answer.status_code == status
        if status == 200:
            record = answer.json()
            assert [line["item"] for line in record["checklist"]] == list(TITLES)
            assert record["open"] == sum(line["state"] == "open" for line in record["checklist"])
    actions.ask_for_approval(model, by=owner)
    actions.approve(model, by=staff, reason="Known.")
    # all users may read an approved model
    assert client_of(stranger).get(f"/api/v1/models/{model.pk}/").status_code == 200
    assert client_of(stranger).get(address).status_code == 404  # they still learn nothing about its rows


def test_open_items_need_a_note(client, client_of, register, data, staff):
    model = actions.ask_for_approval(fitted(register, data, depth=0), by=data.owner)
    with pytest.raises(ValidationError, match="Better than one answer for all"):
        actions.approve(model, by=staff)
    answer = client_of(staff).post(f"/api/v1/models/{model.pk}/review/", {"action": "approve"}, format="json")
    assert answer.status_code == 400
    assert "Say in a note why" in str(answer.json()["errors"])
    client.force_login(staff)
    page = client.post(f"/models/{model.pk}/review/approve-only/", {"back": "review"})
    assert "Say in a note why" in page.content.decode()
    assert TreeModel.objects.get(pk=model.pk).state == State.IN_REVIEW
    assert actions.approve(model, by=staff, reason="The constant is wanted.").state == State.APPROVED


def test_a_site_can_ask_for_two_approvals(client, settings, register, data, staff, second_staff):
    settings.APPROVALS = 2
    model = actions.ask_for_approval(fitted(register, data), by=data.owner)
    client.force_login(staff)
    page = client.post(f"/models/{model.pk}/review/approve-and-serve/", {"back": "review"}, follow=True)
    assert "a second one must approve it, too" in page.content.decode()
    model.refresh_from_db()
    assert (model.state, model.served_since) == (State.IN_REVIEW, None)
    assert model.events.last().step == "First approval"
    with pytest.raises(PermissionDenied, match="another administrator"):
        actions.approve(model, by=staff)
    assert "approve" not in actions.possible_steps(model, staff)
    approved = actions.approve(model, by=second_staff, publish=True)
    assert approved.state == State.APPROVED
    assert approved.served_since is not None
    assert list(Record.objects.filter(subject_id=model.pk).values_list("what", flat=True))[-3:] == [
        "first approval",
        "approve",
        "served",
    ]
    assert audit_models([TreeModel.objects.get(pk=model.pk)]).problems == []


def test_the_first_approval_ends_when_asked_back(settings, register, data, staff, second_staff):
    settings.APPROVALS = 2
    model = actions.ask_for_approval(fitted(register, data), by=data.owner)
    actions.approve(model, by=staff)
    actions.ask_back(model, by=second_staff, reason="Whose rows?")
    model = actions.ask_for_approval(TreeModel.objects.get(pk=model.pk), by=data.owner, reason="Ours.")
    assert actions.approvals(model) == []
    assert actions.approve(model, by=second_staff).state == State.IN_REVIEW
