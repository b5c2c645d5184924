"""Owners and administrators erase decisions by id and by person, over REST and on pages, and read those of deleted models."""

from __future__ import annotations

import json
import uuid

import pytest
from django.urls import reverse

from octweb.core.deleting import hide
from octweb.core.models import StoredAnswer
from octweb.core.spool import WRITER
from octweb.decisions import collecting
from octweb.decisions.audited import audit_decisions
from octweb.decisions.models import ChainEntry, RecordStream
from octweb.registry.lifecycle import actions
from octweb.registry.models import ShareLevel
from octweb.registry.prediction.recording import SUBJECT_KEY
from tests.octweb.decisions.conftest import ROW
from tests.octweb.decisions.rows import record_rows
from tests.octweb.visible_text import visible

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]


def count_kept():
    return ChainEntry.objects.filter(kind="decision").exclude(payload="").count()


def erasures():
    return [json.loads(entry.payload) for entry in ChainEntry.objects.filter(kind="erased")]


def test_api_erases_one_decision_with_its_reason(ids, owner, client_of):
    api = client_of(owner)
    at = f"/api/v1/decisions/{ids[3]}/"
    api.post(f"{at}objection/", {"reason": "The width is wrong."}, format="json")
    assert api.post(f"{at}erase/", {"why": "mistake"}, format="json").json() == {"erased": [ids[3]]}
    assert api.post(f"{at}erase/", {}, format="json").json() == {"erased": []}
    assert count_kept() == 19
    assert [(e["why"], e["decisions"]) for e in erasures()] == [("mistake", [ids[3]])]
    assert erasures()[0]["by"].startswith("token ")
    answer = api.get(at).json()
    assert (answer["values"], answer["erased"]["why"], answer["later"][0].get("reason")) == ({}, "mistake", None)
    assert api.post(f"{at}erase/", {"why": "retention"}, format="json").status_code == 400
    assert audit_decisions().problems == []


def test_content_under_idempotency_key_is_stored_once_and_erased(ids, owner, client_of):
    api = client_of(owner)
    at = f"/api/v1/decisions/{ids[3]}/"
    key = {"Idempotency-Key": "k-1"}
    body = {"reason": "Ms Smith is ill."}
    first = api.post(f"{at}objection/", body, format="json", headers=key)
    again = api.post(f"{at}objection/", body, format="json", headers=key)
    assert (again.status_code, again.json()) == (201, first.json())
    assert "Smith" not in str(StoredAnswer.objects.values_list())
    api.post(f"{at}erase/", {}, format="json")
    erased = api.post(f"{at}objection/", body, format="json", headers=key).json()
    assert (erased["id"], erased.get("reason")) == (first.json()["id"], None)
    assert "Smith" not in str(ChainEntry.objects.values_list())


def test_api_erases_a_person_also_what_is_not_collected_yet(ids, recorded, owner, client_of):
    api = client_of(owner)
    body = json.dumps({"rows": [ROW]})
    address = f"/api/v1/models/{recorded.pk}/predict/"
    answer = api.post(address, body, content_type="application/json", **{SUBJECT_KEY: "person 2"}).json()
    newest = answer["predictions"][0]["decision"]
    erased = api.post("/api/v1/subjects/erase/", {"subject": "person 2"}, format="json").json()["erased"]
    assert set(erased) == {*ids[8:12], newest}
    assert count_kept() == 16
    assert [e["why"] for e in erasures()] == ["request"]
    assert api.post("/api/v1/subjects/erase/", {"subject": "x" * 65}, format="json").status_code == 400
    assert api.post("/api/v1/subjects/erase/", {}, format="json").status_code == 400
    assert audit_decisions().problems == []


def test_spool_keeps_erased_values_for_a_minute_at_most(ids, recorded, owner, client_of, spool, monkeypatch):
    assert client_of(owner).post("/api/v1/subjects/erase/", {"subject": "person 2"}, format="json").status_code == 200
    monkeypatch.setattr(WRITER, "_began", WRITER._began - 61)  # nobody calls the model any more
    WRITER.look_after()
    collecting.collect()
    assert list(spool.iterdir()) == []
    record_rows(recorded, 1)
    assert ChainEntry.objects.filter(kind="ended").count() == 0
    assert RecordStream.objects.count() == 1
    assert audit_decisions().problems == []


def test_others_erase_nothing_and_learn_nothing(ids, recorded, owner, stranger, staff, client_of):
    actions.share(recorded, by=owner, username=stranger.username, level=ShareLevel.CALL)
    api = client_of(stranger)
    unknown = api.post(f"/api/v1/decisions/{uuid.uuid4()}/erase/", {}, format="json")
    assert unknown.status_code == 404
    assert api.post(f"/api/v1/decisions/{ids[0]}/erase/", {}, format="json").json() == unknown.json()
    assert api.post("/api/v1/subjects/erase/", {"subject": "person 2"}, format="json").json() == {"erased": []}
    assert client_of().post("/api/v1/subjects/erase/", {"subject": "person 2"}, format="json").status_code == 401
    limited = client_of(owner, scope="predict")
    assert limited.post("/api/v1/subjects/erase/", {"subject": "person 2"}, format="json").status_code == 403
    assert count_kept() == 20
    assert (
        len(client_of(staff).post("/api/v1/subjects/erase/", {"subject": "person 2"}, format="json").json()["erased"])
        == 4
    )


def test_pages_erase_only_what_is_confirmed(ids, recorded, owner, stranger, client):
    one = reverse("records:erase", args=[recorded.pk, ids[0]])
    person = reverse("records:erase-person", args=[recorded.pk])
    form = {"why": "request", "sure": "on", "subject": "person 2"}
    client.force_login(stranger)
    assert {client.post(one, form).status_code, client.post(person, form).status_code} == {404}
    client.force_login(owner)
    for broken in ({"why": "request"}, {"sure": "on"}, {"why": "retention", "sure": "on"}):
        assert "Nothing was erased" in client.post(one, broken, follow=True).content.decode()
    assert count_kept() == 20
    assert "Erase its content" in client.get(reverse("records:decision", args=[recorded.pk, ids[0]])).content.decode()
    assert "was erased" in visible(client.post(one, form, follow=True).content.decode())
    found = client.post(reverse("records:list", args=[recorded.pk]), {"subject": "person 2"}).content.decode()
    assert "Erase all decisions of this person" in found
    assert "Erased of this person: four decisions." in visible(client.post(person, form, follow=True).content.decode())
    assert "64" in client.post(person, form | {"subject": "x" * 65}, follow=True).content.decode()
    assert count_kept() == 15


def test_list_warns_administrators_that_all_owners_lose_records(ids, recorded, owner, staff, client):
    page = reverse("records:list", args=[recorded.pk])
    for user, words in ((owner, "also of your other models"), (staff, "of all models and owners")):
        client.force_login(user)
        assert words in visible(client.post(page, {"subject": "person 2"}).content.decode())


def test_records_of_a_deleted_model_stay_readable(ids, recorded, owner, staff, stranger, client, client_of):
    actions.retire(recorded, by=staff)
    hide(recorded)
    place = [recorded.pk, ids[0]]
    client.force_login(owner)
    assert reverse("records:list", args=place[:1]) in client.get(reverse("deleted")).content.decode()
    for name, arguments in (("list", place[:1]), ("decision", place), ("letter", place)):
        html = client.get(reverse(f"records:{name}", args=arguments)).content.decode()
        assert reverse("registry:detail", args=[recorded.pk]) + '"' not in html
        assert ids[0] in html
    api = client_of(owner)
    assert api.get(f"/api/v1/models/{recorded.pk}/decisions/").json()["count"] == 20
    assert api.get(f"/api/v1/decisions/{ids[0]}/").json()["answered_again"] == "same"
    assert api.post(f"/api/v1/decisions/{ids[0]}/objection/", {"reason": "x"}, format="json").status_code == 201
    assert api.post(f"/api/v1/decisions/{ids[0]}/erase/", {}, format="json").json() == {"erased": [ids[0]]}
    assert client_of(stranger).get(f"/api/v1/models/{recorded.pk}/decisions/").status_code == 404
    collecting.collect()
    assert audit_decisions().problems == []
