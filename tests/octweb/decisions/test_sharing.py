"""A share for records lets a user read the decisions of one model, and nothing more."""

from __future__ import annotations

import json

import pytest

from octweb.audit.models import Record
from octweb.decisions.models import ChainEntry
from octweb.registry.lifecycle import actions
from octweb.registry.lifecycle.audit_trail import audit_models
from octweb.registry.models import Recording
from tests.octweb.decisions.rows import record_rows

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]
READ = ("decisions/{key}/", "decisions/{key}/letter/", "models/{model}/decisions/")
PAGES = ("/models/{model}/decisions/", "/models/{model}/decisions/{key}/", "/models/{model}/decisions/{key}/letter/")
BODIES = {
    "outcome": {"value": "yes"},
    "override": {"label": "yes", "reason": "a test"},
    "objection": {"reason": "a test"},
    "erase": {"why": "request"},
}


@pytest.fixture
def reader(recorded, stranger):
    actions.share(recorded, by=recorded.owner, username=stranger.username, level="read", records=True)
    return stranger


def statuses(client, addresses, model, key):
    return {client.get(address.format(model=model.pk, key=key)).status_code for address in addresses}


def send(client, path, body):
    return client.post(f"/api/v1/{path}/", json.dumps(body), content_type="application/json")


def test_reader_reads_and_each_look_is_recorded(recorded, ids, reader, client_of, client):
    api = client_of(reader)
    assert statuses(api, [f"/api/v1/{path}" for path in READ], recorded, ids[0]) == {200}
    client.force_login(reader)
    assert statuses(client, PAGES, recorded, ids[0]) == {200}
    looks = [json.loads(entry.payload) for entry in ChainEntry.objects.filter(kind="look")]
    assert sorted(look["page"] for look in looks) == ["api", "letter", "letter", "page"]
    assert sum(look["by"] == f"user {reader.pk}" for look in looks) == 2
    assert f"/models/{recorded.pk}/decisions/" in client.get(f"/models/{recorded.pk}/").content.decode()


@pytest.mark.parametrize("share", [None, {"level": "read"}, {"level": "call"}])
def test_others_find_no_decision(recorded, ids, stranger, client_of, client, share):
    if share is not None:
        actions.share(recorded, by=recorded.owner, username=stranger.username, **share)
    assert statuses(client_of(stranger), [f"/api/v1/{path}" for path in READ], recorded, ids[0]) == {404}
    client.force_login(stranger)
    assert statuses(client, PAGES, recorded, ids[0]) == {404}
    assert f"/models/{recorded.pk}/decisions/" not in client.get(f"/models/{recorded.pk}/").content.decode()
    for verb, body in BODIES.items():
        assert send(client_of(stranger), f"decisions/{ids[0]}/{verb}", body).status_code == 404


def test_reader_changes_nothing(recorded, ids, reader, client_of, client):
    before = ChainEntry.objects.exclude(kind="look").count()
    api = client_of(reader)
    for verb, body in BODIES.items():
        answer = send(api, f"decisions/{ids[0]}/{verb}", body)
        assert answer.status_code == 403, answer.content
        assert "Ask its owner" in answer.json()["detail"]
    many = send(api, "outcomes", {"rows": [{"decision": ids[0], "value": "yes"}]})
    assert many.status_code == 400
    assert "Ask its owner" in many.content.decode()
    assert send(api, "subjects/erase", {"subject": "person 0"}).json() == {"erased": []}
    client.force_login(reader)
    pages = f"/models/{recorded.pk}/decisions/"
    assert client.post(f"{pages}{ids[0]}/erase/", {"why": "request", "sure": "1"}).status_code == 403
    assert client.post(f"{pages}erase/", {"subject": "person 0", "why": "request", "sure": "1"}).status_code == 403
    assert client.post(f"{pages}{ids[0]}/", {"kind": "outcome", "value": "yes"}).status_code == 403
    shown = client.get(f"{pages}{ids[0]}/").content.decode()
    assert "Say what came of it" not in shown
    assert "Erase" not in client.post(pages, {"subject": "person 0"}).content.decode()
    assert ChainEntry.objects.exclude(kind="look").count() == before


def test_right_ends_with_the_share_and_covers_one_version(recorded, ids, reader, register, staff, client_of):
    second = register()
    actions.approve(actions.ask_for_approval(second, by=second.owner), by=staff, recording=Recording.FULL)
    other = record_rows(second, 1)[0]
    api = client_of(reader)
    assert api.get(f"/api/v1/decisions/{other}/").status_code == 404
    listed = api.get(f"/api/v1/models/{recorded.pk}/decisions/?version=all").json()
    assert listed["count"] == len(ids)
    actions.share(recorded, by=recorded.owner, username=reader.username, level="call")
    assert api.get(f"/api/v1/decisions/{ids[0]}/").status_code == 404
    actions.share(recorded, by=recorded.owner, username=reader.username, level="read", records=True)
    assert api.get(f"/api/v1/decisions/{ids[0]}/").status_code == 200
    actions.unshare(recorded, by=recorded.owner, username=reader.username)
    assert api.get(f"/api/v1/decisions/{ids[0]}/").status_code == 404


def test_deleted_model_is_closed_to_readers(recorded, ids, reader, client_of, owner):
    actions.retire(recorded, by=owner)
    api = client_of(reader)
    assert api.get(f"/api/v1/decisions/{ids[0]}/").status_code == 200
    recorded.refresh_from_db()
    actions.delete(recorded)
    assert api.get(f"/api/v1/decisions/{ids[0]}/").status_code == 404
    assert client_of(owner).get(f"/api/v1/decisions/{ids[0]}/").status_code == 200


def test_only_the_owner_gives_the_right_and_the_chain_has_it(recorded, reader, client_of, owner, client):
    api = f"/api/v1/models/{recorded.pk}/shares/"
    assert client_of(reader).post(api, {"username": reader.username, "records": True}).status_code in (403, 404)
    assert client_of(owner).get(api).json() == [{"username": reader.username, "level": "read", "records": True}]
    record = Record.objects.filter(what="shared").last()
    assert (record.details["records"], record.details["level"]) == (True, "read")
    assert not any("shared" in problem for problem in audit_models([recorded]).problems)
    recorded.shares.update(records=False)
    assert any("shared" in problem for problem in audit_models([recorded]).problems)
    client.force_login(owner)
    form = {"username": reader.username, "level": "call", "records": "on", "back": "review"}
    client.post(f"/models/{recorded.pk}/share/", form)
    share = recorded.shares.get()
    assert (share.level, share.records) == ("call", True)
    page = client.get(f"/models/{recorded.pk}/review/").content.decode()
    assert "and its" in page
