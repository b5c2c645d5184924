"""What each role may do with the objects of a team, and attacks on the rule."""

from __future__ import annotations

import io
import uuid
from contextlib import suppress

import pytest
from django.core.exceptions import PermissionDenied
from django.http import Http404

from octweb.audit.actions import broken
from octweb.audit.models import Record
from octweb.core.models import Membership, Team
from octweb.core.ownership import may_change, may_delete, may_see
from octweb.core.problems import Conflict, Unprocessable
from octweb.datasets import actions as datasets
from octweb.datasets import versions
from octweb.datasets.models import Dataset
from octweb.registry.lifecycle import access
from octweb.registry.lifecycle import actions as registry
from octweb.registry.lifecycle.audit_trail import audit_datasets, audit_models, audit_teams
from octweb.registry.lifecycle.pruning import prune
from octweb.registry.models import TreeModel
from octweb.runs import actions as runs
from octweb.runs.models import TrainingRun
from octweb.teams import actions
from octweb.workbench import actions as workbenches
from tests.octweb.runs.conftest import CSV
from tests.octweb.teams.conftest import ROLES

pytestmark = pytest.mark.django_db
SEES = set(ROLES)
CHANGES = {"owner", "editor"}
DELETES = {"owner"}


@pytest.mark.parametrize("role", ROLES)
def test_list_and_question_agree_for_each_role(shared, tree, members, role):
    """The querysets and the questions about one object are the same rule."""
    run = TrainingRun.objects.create(owner=members["owner"], dataset=shared, method="cart")
    user = members[role]
    for thing in (shared, tree, run):
        kind = type(thing).objects
        assert kind.visible_to(user).filter(pk=thing.pk).exists() == may_see(user, thing) == (role in SEES)
        assert kind.changeable_by(user).filter(pk=thing.pk).exists() == may_change(user, thing) == (role in CHANGES)
        assert kind.deletable_by(user).filter(pk=thing.pk).exists() == may_delete(user, thing) == (role in DELETES)


@pytest.mark.parametrize("role", ROLES)
def test_every_member_predicts_and_reads_rows(shared, tree, members, client_of, role):
    client = client_of(members[role])
    assert client.get(f"/api/v1/datasets/{shared.pk}/download/").status_code == 200
    assert client.get("/api/v1/models/").data["results"][0]["id"] == str(tree.pk)
    body = {"rows": [{"x1": 1.0}]}
    assert client.post(f"/api/v1/models/{tree.pk}/predict/", body, format="json").status_code != 404
    assert access.may_call(members[role], None, tree)
    assert access.may_see_rows(members[role], tree)


def test_outsider_finds_nothing_of_a_team(shared, tree, team, stranger, client_of):
    client = client_of(stranger)
    for address in (f"datasets/{shared.pk}", f"models/{tree.pk}", f"teams/{team.pk}"):
        assert client.get(f"/api/v1/{address}/").status_code == 404
    assert client.get("/api/v1/teams/").data == []
    assert client.get("/api/v1/datasets/").data["results"] == []
    assert not access.may_call(stranger, None, tree)


def test_former_member_loses_access_even_to_what_he_made(shared, team, members, client_of):
    editor = members["editor"]
    made = runs.enqueue(owner=editor, dataset=shared, method="cart")
    own = datasets.create(owner=editor, file=io.BytesIO(CSV.encode()), source_name="own.csv", target="class")
    actions.give(own, by=editor, team=team)
    client = client_of(editor)
    addresses = [f"/api/v1/runs/{made.pk}/", f"/api/v1/datasets/{own.pk}/", f"/api/v1/datasets/{shared.pk}/"]
    assert [client.get(address).status_code for address in addresses] == [200] * 3
    actions.remove_member(team, by=members["owner"], username="editor")
    assert [client.get(address).status_code for address in addresses] == [404] * 3
    assert client.delete(addresses[1]).status_code == 404
    assert client.get("/api/v1/runs/").data["results"] == []
    assert not may_delete(editor, own)


def test_model_of_a_run_that_ends_after_leaving_is_the_teams(shared, team, members, cart_document):
    """A training that ends after its user has left registers its model for the team."""
    stale = Dataset.objects.get(pk=shared.pk)
    stale.team = None
    actions.remove_member(team, by=members["owner"], username="editor")
    made = registry.register(owner=members["editor"], document=cart_document, dataset=stale, title="late")
    assert made.team_id == team.pk
    assert not may_see(members["editor"], made)
    assert may_change(members["owner"], made)


def test_demoted_editor_keeps_no_right_over_what_he_made(shared, team, members):
    run = runs.enqueue(owner=members["editor"], dataset=shared, method="cart")
    assert may_delete(members["editor"], run)
    actions.set_member(team, by=members["owner"], username="editor", role="reader")
    assert may_see(members["editor"], run)
    assert not may_change(members["editor"], run)
    assert not may_delete(members["editor"], run)


def test_editor_deletes_what_he_made_and_nothing_else(shared, tree, members, client_of):
    run = runs.cancel(runs.enqueue(owner=members["editor"], dataset=shared, method="cart"))
    client = client_of(members["editor"])
    assert client.delete(f"/api/v1/datasets/{shared.pk}/").status_code == 403
    assert client.delete(f"/api/v1/runs/{run.pk}/").status_code == 204


def test_reader_gets_reason_for_refused_change(shared, members, client_of):
    answer = client_of(members["reader"]).patch(f"/api/v1/datasets/{shared.pk}/", {"name": "mine"}, format="json")
    assert answer.status_code == 403
    assert "Your role in the team of this data set is reader" in answer.json()["detail"]
    shared.refresh_from_db()
    assert shared.name == "small"


def test_reader_cannot_train_on_the_data_set(shared, tree, members, client_of):
    client = client_of(members["reader"])
    body = {"dataset": str(shared.pk), "method": "cart"}
    assert client.post("/api/v1/runs/", body, format="json").status_code == 403
    assert client.post("/api/v1/workbenches/", {"model": str(tree.pk)}, format="json").status_code == 403
    candidates = {"dataset": str(shared.pk), "candidates": [{"method": "cart"}]}
    assert client.post("/api/v1/experiments/", candidates, format="json").status_code == 403
    assert not TrainingRun.objects.exists()


def test_editor_cannot_share_a_model_with_outsiders(shared, tree, members, stranger):
    with pytest.raises(PermissionDenied, match="owner of the model or of its team"):
        registry.share(tree, by=members["editor"], username=stranger.username, level="read")
    registry.share(tree, by=members["owner"], username=stranger.username, level="read")


def test_new_version_and_pruned_tree_stay_in_the_team(shared, tree, team, members):
    version = versions.new_version(
        shared, owner=members["editor"], file=io.BytesIO(CSV.encode()), source_name="b.csv", as_it_is=True
    )
    assert version.team_id == team.pk
    with suppress(Unprocessable):  # no question of the tree is idle
        assert prune(tree, by=members["editor"]).team_id == team.pk


# giving


@pytest.mark.parametrize("role", ["reader", "reviewer"])
def test_move_into_a_team_needs_its_editors(team, members, role, media):
    user = members[role]
    own = datasets.create(owner=user, file=io.BytesIO(CSV.encode()), source_name="own.csv", target="class")
    with pytest.raises(PermissionDenied, match="Only owners and editors"):
        actions.give(own, by=user, team=team)
    own.refresh_from_db()
    assert own.team_id is None


def test_move_into_a_foreign_team_is_as_if_it_did_not_exist(dataset, owner, stranger, client_of):
    foreign = actions.create(by=stranger, name="Other")
    client = client_of(owner)
    answers = [
        client.put(f"/api/v1/datasets/{dataset.pk}/team/", {"team": str(key)}, format="json")
        for key in (foreign.pk, uuid.uuid4())
    ]
    assert [a.status_code for a in answers] == [400, 400]
    assert answers[0].json()["detail"] == answers[1].json()["detail"]
    dataset.refresh_from_db()
    assert dataset.team_id is None


def test_editor_cannot_take_an_object_into_another_team(shared, members, client_of):
    other = actions.create(by=members["editor"], name="Mine")
    client = client_of(members["editor"])
    body = {"team": str(other.pk)}
    assert client.put(f"/api/v1/datasets/{shared.pk}/team/", body, format="json").status_code == 403
    assert client.put(f"/api/v1/datasets/{shared.pk}/team/", {"team": None}, format="json").status_code == 403
    shared.refresh_from_db()
    assert shared.team.name == "Risk"


def test_models_go_with_their_data_set(shared, tree, team, owner):
    assert tree.team_id == team.pk
    with pytest.raises(Conflict, match="team of its data set"):
        actions.give(tree, by=owner, team=None)
    actions.give(shared, by=owner, team=None)
    tree.refresh_from_db()
    assert tree.team_id is None


def test_data_set_with_runs_of_others_stays_in_the_team(shared, members):
    runs.enqueue(owner=members["editor"], dataset=shared, method="cart")
    with pytest.raises(Conflict, match="Other members made runs"):
        actions.give(shared, by=members["owner"], team=None)


def test_second_owner_cannot_take_the_data_set_for_its_maker(shared, team, members):
    actions.set_member(team, by=members["owner"], username="editor", role="owner")
    with pytest.raises(PermissionDenied, match="Only the user who made it"):
        actions.give(shared, by=members["editor"], team=None)


def test_staffs_private_model_shows_no_rows_of_a_team(shared, tree, team, staff, stranger):
    """A private model, of a user who was staff once, opens neither the rows of a team nor a workbench on them."""
    TreeModel.objects.filter(pk=tree.pk).update(owner=stranger, team=None)
    model = TreeModel.objects.get(pk=tree.pk)
    assert may_see(stranger, model)
    assert not access.may_see_rows(stranger, model)
    with pytest.raises(Unprocessable, match="data set of this model is not yours"):
        workbenches.open_for(owner=stranger, model=model)


def test_chain_has_a_record_of_each_move_and_finds_another(shared, tree, team, owner):
    assert [r.details["team"] for r in Record.objects.filter(what="team")] == [str(team.pk)] * 2
    assert audit_models([tree]).problems == audit_datasets([shared]).problems == []
    assert broken() == []
    Dataset.objects.update(team=None)
    TreeModel.objects.update(team=None)
    for report in (audit_models(TreeModel.objects.all()), audit_datasets(Dataset.objects.all())):
        assert "belongs to another team" in report.problems[0]


# review


@pytest.fixture
def asked(shared, tree, owner):
    registry.ask_for_approval(tree, by=owner)
    tree.refresh_from_db()
    return tree


def test_team_reviewer_approves_only_where_allowed(asked, members, settings):
    reviewer = members["reviewer"]
    with pytest.raises(PermissionDenied, match="Only an administrator"):
        registry.approve(asked, by=reviewer)
    settings.TEAM_REVIEW = True
    for role in ("owner", "editor", "reader"):
        with pytest.raises(PermissionDenied):
            registry.approve(asked, by=members[role], reason="fine")
    assert registry.approve(asked, by=reviewer, reason="fine").state == "approved"


def test_team_reviewer_never_approves_an_own_model(asked, team, members, settings):
    settings.TEAM_REVIEW = True
    settings.FOUR_EYES = False
    actions.set_member(team, by=members["owner"], username="editor", role="owner")
    actions.set_member(team, by=members["editor"], username=members["owner"].username, role="reviewer")
    with pytest.raises(PermissionDenied, match="Four eyes"):
        registry.approve(asked, by=members["owner"], reason="fine")


def test_team_reviewer_has_no_say_outside_the_team(register, members, stranger, settings):
    settings.TEAM_REVIEW = True
    model = register(owner=stranger)
    registry.ask_for_approval(model, by=stranger)
    with pytest.raises(PermissionDenied):
        registry.approve(model, by=members["reviewer"], reason="fine")
    assert not TreeModel.objects.visible_to(members["reviewer"]).filter(pk=model.pk).exists()


# members


def test_only_owners_manage_members(team, members, stranger):
    for role in ("editor", "reader", "reviewer"):
        for change in (
            lambda user: actions.set_member(team, by=user, username=stranger.username, role="owner"),
            lambda user: actions.set_member(team, by=user, username=user.username, role="owner"),
            lambda user: actions.remove_member(team, by=user, username=members["owner"].username),
            lambda user: actions.rename(team, by=user, name="Ours"),
            lambda user: actions.delete(team, by=user),
        ):
            with pytest.raises(PermissionDenied):
                change(members[role])
    assert Membership.objects.count() == 4


def test_last_owner_can_neither_leave_nor_step_down(team, members):
    owner = members["owner"]
    with pytest.raises(Conflict, match="last owner"):
        actions.remove_member(team, by=owner, username=owner.username)
    with pytest.raises(Conflict, match="last owner"):
        actions.set_member(team, by=owner, username=owner.username, role="reader")
    actions.set_member(team, by=owner, username="editor", role="owner")
    actions.remove_member(team, by=owner, username=owner.username)
    assert not may_see(owner, Dataset(owner=owner, team=team))


def test_member_leaves_by_himself(team, members):
    actions.remove_member(team, by=members["reader"], username="reader")
    with pytest.raises(Http404):
        actions.find_team(members["reader"], team.pk)


def test_each_change_of_members_is_a_record(team, members):
    actions.set_member(team, by=members["owner"], username="reader", role="editor")
    actions.remove_member(team, by=members["owner"], username="reader")
    steps = Record.objects.filter(subject="team").values_list("what", flat=True)
    assert list(steps) == ["team created", *["member added"] * 4, "member role", "member removed"]


def test_membership_without_a_record_is_found(team, members, stranger):
    assert audit_teams().problems == []
    Membership.objects.create(team=team, user=stranger, role="owner")
    team.members.filter(user=members["reader"]).update(role="owner")
    assert sorted(p.partition(": ")[2] or p for p in audit_teams().problems) == [
        "reader in Risk has the role owner, but no record says so.",
        "sam in Risk has the role owner, but no record says so.",
    ]


def test_team_with_objects_is_not_deleted(shared, team, owner):
    with pytest.raises(Conflict, match="1 data sets and 1 models"):
        actions.delete(team, by=owner)
    actions.give(shared, by=owner, team=None)
    actions.delete(team, by=owner)
    assert not Team.objects.exists()


def test_team_names_are_unique(team, stranger):
    with pytest.raises(Conflict, match="of this name"):
        actions.create(by=stranger, name="risk")
