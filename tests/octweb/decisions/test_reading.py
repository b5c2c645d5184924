"""Owners read, filter and complete recorded decisions, and each look and correction is recorded."""

from __future__ import annotations

import io
import json
import random
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from django.db.models import Count

from octweb.decisions import adding, collecting, erasing, hashing
from octweb.decisions.audited import audit_decisions
from octweb.decisions.exporting import export_chain
from octweb.decisions.listing import decisions_of
from octweb.decisions.models import ChainEntry
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions
from octweb.registry.models import Recording, TreeModel
from tests.octweb.decisions.conftest import ROW
from tests.octweb.decisions.erasing_cases import check_decisions
from tests.octweb.decisions.rows import record_rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(client_of, owner):
    return client_of(owner)


def send(client, path, body):
    return client.post(f"/api/v1/{path}/", json.dumps(body), content_type="application/json")


def listed(client, model, query="", **headers):
    answer = client.get(f"/api/v1/models/{model.pk}/decisions/?{query}", headers=headers)
    assert answer.status_code == 200, answer.json()
    return answer.json()


def keys(page):
    return [row["decision"] for row in page["results"]]


def test_pages_list_each_decision_once_newest_first(recorded, ids, client):
    found = []
    page = listed(client, recorded, "page_size=7")
    assert page["count"] == 20
    while True:
        found += keys(page)
        if page["next"] is None:
            break
        page = client.get(page["next"]).json()
    assert found == ids[::-1]
    back = client.get(page["previous"]).json()
    assert keys(back) == ids[::-1][7:14]


def test_filters_agree_with_the_entries(recorded, ids, client):
    entries = {str(e.key): e for e in ChainEntry.objects.filter(kind="decision")}
    classes = model_file(recorded).tree.classes
    send(client, f"decisions/{ids[3]}/outcome", {"value": classes[0]})
    send(client, f"decisions/{ids[4]}/override", {"label": classes[1], "reason": "asked twice"})
    send(client, f"decisions/{ids[5]}/objection", {"reason": "wrong width"})
    for k, name in enumerate(classes):
        assert set(keys(listed(client, recorded, f"answer={name}"))) == {i for i in ids if entries[i].label == k}
    leaf = entries[ids[0]].leaf
    assert set(keys(listed(client, recorded, f"leaf={leaf}"))) == {i for i in ids if entries[i].leaf == leaf}
    assert keys(listed(client, recorded, "outcome=known")) == [ids[3]]
    assert set(keys(listed(client, recorded, "outcome=unknown"))) == set(ids) - {ids[3]}
    assert keys(listed(client, recorded, "overridden=yes")) == [ids[4]]
    assert len(keys(listed(client, recorded, "overridden=no"))) == 19
    assert keys(listed(client, recorded, "objection=open")) == [ids[5]]
    assert keys(listed(client, recorded, "objection=refused")) == []
    assert keys(listed(client, recorded, **{"Octweb-Subject": "person 2"})) == ids[8:12][::-1]
    assert len(keys(listed(client, recorded, "refused=no"))) == 20
    assert keys(listed(client, recorded, "refused=yes")) == []
    row = next(r for r in listed(client, recorded)["results"] if r["decision"] == ids[4])
    assert (row["override"], row["outcome"], row["version"]) == (classes[1], None, 1)
    assert "width" not in json.dumps(row)


def test_time_span_includes_both_days(recorded, ids, client):
    today = datetime.now(UTC).date()
    yesterday = today - timedelta(days=1)
    assert len(keys(listed(client, recorded, f"since={today}&until={today}"))) == 20
    assert keys(listed(client, recorded, f"until={yesterday}")) == []
    middle = ChainEntry.objects.get(key=ids[8]).at
    moment = datetime.fromtimestamp(middle // 10**9, UTC) + timedelta(microseconds=middle % 10**9 // 1000)
    text = moment.isoformat().replace("+", "%2B")
    assert set(keys(listed(client, recorded, f"since={text}"))) == set(ids[8:])


def test_version_filter_covers_all_versions_of_the_name(recorded, ids, client, register, staff):
    second = register()
    actions.ask_for_approval(second, by=second.owner)
    actions.approve(second, by=staff, recording=Recording.FULL)
    more = record_rows(second, 1)
    label = model_file(second).tree.classes[0]
    assert second.version == 2
    assert keys(listed(client, recorded)) == ids[::-1]
    assert set(keys(listed(client, recorded, "version=2"))) == set(more)
    assert set(keys(listed(client, recorded, "version=all"))) == set(ids) | set(more)
    both = listed(client, recorded, f"version=all&answer={label}")
    one = [listed(client, recorded, f"version={n}&answer={label}")["count"] for n in (1, 2)]
    assert both["count"] == sum(one) > max(one) > 0


def test_person_named_in_utf8_is_found_by_the_same_letters(recorded, client):
    path = f"/api/v1/models/{recorded.pk}/predict/"
    sent = {"Octweb-Subject": "Jürgen Łoś".encode().decode("latin-1")}  # WSGI decodes the bytes of a header as Latin-1
    answer = client.post(path, json.dumps({"rows": [ROW]}), content_type="application/json", headers=sent)
    collecting.collect()
    key = answer.json()["predictions"][0]["decision"]
    assert keys(listed(client, recorded, **sent)) == [key]
    assert [str(erased) for erased in erasing.erase_subject("Jürgen Łoś", by="t")] == [key]


@pytest.mark.parametrize(
    "query",
    [
        "answer=no",
        "leaf=x",
        "version=9",
        "outcome=maybe",
        "objection=x",
        "since=soon",
        "until=2026-02-30",
        "cursor=x",
        "q=1",
    ],
)
def test_invalid_filter_is_named(recorded, client, query):
    answer = client.get(f"/api/v1/models/{recorded.pk}/decisions/?{query}")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == query.partition("=")[0]


def test_record_is_read_as_it_was_answered(recorded, client):
    path = f"/api/v1/models/{recorded.pk}/predict/?explain=true"
    answers = client.post(path, json.dumps({"rows": [ROW]}), content_type="application/json").json()
    (answer,) = answers["predictions"]
    collecting.collect()
    found = client.get(f"/api/v1/decisions/{answer['decision']}/").json()
    assert (found["label"], found["leaf"]) == (answer["label"], answer["leaf"])
    assert found["probabilities"] == answer["probabilities"]
    tree = model_file(recorded).tree
    assert found["values"] == {tree.schema[j].name: ROW[tree.schema[j].name] for j in tree.used_columns}
    assert found["explanation"]["label"] == answer["label"]
    assert [step["node"] for step in found["explanation"]["path"]] == tree.path_to(answer["leaf"])[:-1]
    assert found["explanation"]["flip"]["label"] != answer["label"]
    assert found["answered_again"] == "same"
    assert found["erased"] is None
    assert found["chain"]["block"] is None


def test_refused_row_is_read_with_its_reason(recorded, client):
    path = f"/api/v1/models/{recorded.pk}/predict/"
    body = {"rows": [{name: cell for name, cell in ROW.items() if name != "width"}]}
    assert client.post(path, json.dumps(body), content_type="application/json").status_code == 422
    collecting.collect()
    (row,) = listed(client, recorded, "refused=yes")["results"]
    assert (row["refused"], row["label"]) == ("empty", None)
    answer = client.get(f"/api/v1/decisions/{row['decision']}/").json()
    assert (answer["refused"], answer["values"], answer["explanation"], answer["answered_again"]) == (
        "empty",
        {},
        None,
        None,
    )
    assert answer["noted"] == [{"column": "width", "kind": "empty"}]


def test_place_in_the_chain_is_proved_without_octweb(recorded, ids, client, monkeypatch):
    monkeypatch.setattr(adding, "BLOCK_RECORDS", 8)
    export_chain(io.StringIO())
    for key in (ids[0], ids[5], ids[19]):
        place = client.get(f"/api/v1/decisions/{key}/").json()["chain"]
        block = place["block"]
        assert hashing.commitment(place["salt"], place["payload"]) == place["commitment"]
        assert (
            root_of(place["commitment"], block["index"], json.loads(block["header"])["records"], block["path"])
            == (json.loads(block["header"])["root"])
        )
        assert hashing.header_digest(block["header"]) == block["sha256"]
        assert block["is_signed"]


def root_of(leaf, index, size, path):
    """Compute the root hash from an inclusion proof, as in RFC 9162, section 2.1.3.2."""
    digest = bytes.fromhex(leaf)
    last = size - 1
    for text in path:
        other = bytes.fromhex(text)
        if index % 2 or index == last:
            digest = check_decisions.sha256(b"\x01" + other + digest)
            while index % 2 == 0 and index:
                index >>= 1
                last >>= 1
        else:
            digest = check_decisions.sha256(b"\x01" + digest + other)
        index >>= 1
        last >>= 1
    return digest.hex()


def test_each_view_is_recorded(recorded, ids, client, client_of, staff):
    for reader in (client, client_of(staff), client):
        reader.get(f"/api/v1/decisions/{ids[1]}/")
    looks = ChainEntry.objects.filter(kind="look")
    assert [str(look.about) for look in looks] == [ids[1]] * 3
    by = [json.loads(look.payload)["by"] for look in looks]
    assert by[0] == by[2] != by[1]
    answer = client.get(f"/api/v1/decisions/{ids[1]}/").json()
    assert (answer["looks"], [later["kind"] for later in answer["later"]]) == (3, ["look"] * 3)


def test_letter_is_read_as_html_or_pdf_and_is_a_look(recorded, ids, client, monkeypatch):
    address = f"/api/v1/decisions/{ids[1]}/letter/"
    answer = client.get(address)
    label = client.get(f"/api/v1/decisions/{ids[1]}/").json()["label"]
    assert answer["Content-Type"].startswith("text/html")
    assert f"The program answered: <b>{label}</b>" in answer.content.decode()
    assert [json.loads(look.payload)["page"] for look in ChainEntry.objects.filter(kind="look")] == ["letter", "api"]
    monkeypatch.setattr("octweb.dossier.pdf.can_print", lambda: True)
    monkeypatch.setattr("octweb.dossier.pdf.to_pdf", lambda html, title: b"%PDF-" + title.encode())
    for printed in (client.get(f"{address}?format=pdf"), client.get(address, HTTP_ACCEPT="application/pdf")):
        assert (printed["Content-Type"], printed.content[:5]) == ("application/pdf", b"%PDF-")
    assert client.get(f"{address}?format=doc").status_code == 400
    monkeypatch.setattr("octweb.dossier.pdf.can_print", lambda: False)
    assert client.get(f"{address}?format=pdf").status_code == 406
    erasing.erase_decisions([uuid.UUID(ids[1])], by="t", why="request")
    assert client.get(address).status_code == 410
    assert ChainEntry.objects.filter(kind="look").count() == 4


def test_looks_are_counted_and_the_last_are_listed(recorded, ids, client, monkeypatch):
    monkeypatch.setattr("octweb.decisions.reading.MAX_LOOKS", 2)
    for _ in range(3):
        client.get(f"/api/v1/decisions/{ids[1]}/")
    answer = client.get(f"/api/v1/decisions/{ids[1]}/").json()
    last = ChainEntry.objects.filter(kind="look").order_by("number").values_list("number", flat=True)[1:3]
    assert (answer["looks"], [later["number"] for later in answer["later"]]) == (3, list(last))


def test_decision_of_another_file_is_not_answered_again(recorded, ids, client):
    TreeModel.objects.filter(pk=recorded.pk).update(sha256="0" * 64)
    answer = client.get(f"/api/v1/decisions/{ids[1]}/").json()
    assert (answer["explanation"], answer["answered_again"]) == (None, None)


def test_strangers_get_the_answer_of_an_absent_decision(recorded, ids, client_of, stranger, owner):
    other = client_of(stranger)
    absent = uuid.uuid4()
    bodies = {
        "outcome": {"value": "a"},
        "override": {"label": "a", "reason": "b"},
        "objection": {"reason": "b"},
    }
    answers = [other.get(f"/api/v1/decisions/{key}/") for key in (ids[0], absent)]
    answers += [other.get(f"/api/v1/decisions/{key}/letter/") for key in (ids[0], absent)]
    for kind, body in bodies.items():
        answers += [send(other, f"decisions/{key}/{kind}", body) for key in (ids[0], absent)]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.content for answer in answers}) == 1
    assert other.get(f"/api/v1/models/{recorded.pk}/decisions/").status_code == 404
    (error,) = send(other, "outcomes", {"rows": [{"decision": ids[0], "value": "a"}] * 2}).json()["errors"][:1]
    assert error["detail"] == answers[0].json()["detail"]
    predict = client_of(owner, scope="predict")
    assert predict.get(f"/api/v1/decisions/{ids[0]}/").status_code == 403
    assert predict.get(f"/api/v1/decisions/{ids[0]}/letter/").status_code == 403
    assert send(predict, "outcomes", {"rows": []}).status_code == 403
    assert ChainEntry.objects.exclude(kind="decision").count() == 0


def test_same_record_again_adds_nothing_and_a_correction_adds(recorded, ids, client):
    classes = model_file(recorded).tree.classes
    path = f"decisions/{ids[0]}/outcome"
    body = {"value": classes[0], "known_at": "2026-01-31", "source": "ledger"}
    first = send(client, path, body)
    again = send(client, path, body)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    corrected = send(client, path, body | {"value": classes[1]})
    assert (corrected.status_code, corrected.json()["value"]) == (201, classes[1])
    answer = client.get(f"/api/v1/decisions/{ids[0]}/").json()
    assert [later["value"] for later in answer["later"]] == [classes[0], classes[1]]
    assert answer["outcome"]["value"] == classes[1]
    assert answer["label"] is not None
    assert audit_decisions().problems == []


def test_objection_is_opened_and_answered(recorded, ids, client):
    path = f"decisions/{ids[0]}/objection"
    assert send(client, path, {}).status_code == 400
    opened = send(client, path, {"reason": "My width is 4.", "text_ref": "letter 12"}).json()
    assert (opened["state"], opened["received"]) == ("open", datetime.now(UTC).date().isoformat())
    assert send(client, path, {"state": "refused"}).json()["errors"][0]["attr"] == "answer"
    closed = send(client, path, {"state": "upheld", "answer": "You are right."}).json()
    assert (closed["reason"], closed["text_ref"], closed["state"]) == ("My width is 4.", "letter 12", "upheld")
    assert keys(listed(client, recorded, "objection=upheld")) == [ids[0]]
    assert keys(listed(client, recorded, "objection=open")) == []


def test_objection_of_today_is_accepted_west_of_utc(recorded, ids, client, settings, monkeypatch):
    settings.TIME_ZONE = "America/New_York"
    monkeypatch.setattr("django.utils.timezone.now", lambda: datetime(2026, 11, 28, 1, tzinfo=UTC))
    opened = send(client, f"decisions/{ids[0]}/objection", {"reason": "My width is 4."})
    assert (opened.status_code, opened.json()["received"]) == (201, "2026-11-27")
    assert send(client, f"decisions/{ids[1]}/objection", {"reason": "a", "received": "2026-11-28"}).status_code == 400


@pytest.mark.parametrize(
    ("kind", "body", "attr"),
    [
        ("outcome", {"value": "blue"}, "value"),
        ("outcome", {"value": 3}, "value"),
        ("outcome", {"value": "low", "known_at": "2999-01-01"}, "known_at"),
        ("outcome", {"value": "low", "known_at": "2026-01-31" + " " * 40 + "x" * 90}, "known_at"),
        ("outcome", {"value": "low", "source": "x" * 81}, "source"),
        ("outcome", {"value": "low", "note": "x"}, "note"),
        ("override", {"label": "low"}, "reason"),
        ("override", {"label": "low", "reason": " "}, "reason"),
        ("override", {"label": "low", "reason": "x" * 5001}, "reason"),
        ("objection", {"reason": "a", "state": "lost"}, "state"),
        ("objection", {"reason": "a", "received": "once"}, "received"),
        ("objection", {"reason": "a\x00"}, "reason"),
    ],
)
def test_invalid_member_is_named_and_nothing_is_added(recorded, ids, client, kind, body, attr):
    classes = model_file(recorded).tree.classes
    body = {name: classes[0] if value == "low" else value for name, value in body.items()}
    answer = send(client, f"decisions/{ids[0]}/{kind}", body)
    assert answer.status_code == 400, answer.json()
    assert answer.json()["errors"][0]["attr"] == attr
    assert not ChainEntry.objects.filter(kind=kind).exists()


def test_bulk_adds_all_or_none(recorded, ids, client):
    classes = model_file(recorded).tree.classes
    rows = [{"decision": key, "value": classes[i % 2]} for i, key in enumerate(ids)]
    wrong = [*rows, {"decision": str(uuid.uuid4()), "value": classes[0]}, {"decision": ids[0], "value": "blue"}]
    answer = send(client, "outcomes", {"rows": wrong})
    assert answer.status_code == 400
    assert [error["attr"] for error in answer.json()["errors"]] == ["rows[20].decision", "rows[21].value"]
    (error,) = send(client, "outcomes", {"rows": wrong[20:21]}).json()["errors"]
    assert error["attr"] == "rows[0].decision"
    assert not ChainEntry.objects.filter(kind="outcome").exists()
    assert send(client, "outcomes", {"rows": rows}).json() == {"added": 20, "unchanged": 0}
    assert send(client, "outcomes", {"rows": rows}).json() == {"added": 0, "unchanged": 20}
    assert listed(client, recorded, "outcome=known")["count"] == 20
    assert audit_decisions().problems == []


def test_bulk_reads_csv(recorded, ids, client):
    label = model_file(recorded).tree.classes[0]
    text = f'\ufeffdecision,label,reason\r\n{ids[0]},{label},"checked, by hand"\r\n{ids[1]},{label},again\r\n'
    answer = client.post("/api/v1/overrides/", text.encode(), content_type="text/csv")
    assert answer.json() == {"added": 2, "unchanged": 0}
    assert client.get(f"/api/v1/decisions/{ids[0]}/").json()["override"]["reason"] == "checked, by hand"
    outcomes = f"decision,outcome,known_at\n{ids[0]},{label},2026-02-01T10:00:00Z\n"
    assert client.post("/api/v1/outcomes/", outcomes, content_type="text/csv").json()["added"] == 1
    for bad in (
        b"\xff\xfe",
        b"",
        b"decision\n1,2\n",
        b"decision,value\nx,y\n",
        b'decision\n"x',
        b"decision,colour\n" + ids[0].encode() + b",red\n",
        f"decision,outcome,value\n{ids[0]},{label},{label}\n".encode(),
    ):
        assert client.post("/api/v1/outcomes/", bad, content_type="text/csv").status_code == 400, bad
    answer = client.post("/api/v1/outcomes/", f"decision;outcome\n{ids[0]};{label}\n", content_type="text/csv")
    assert answer.status_code == 400
    assert "no column 'decision', but 'decision;outcome'" in answer.json()["detail"]


def test_later_records_are_erased_with_the_person(recorded, ids, client):
    label = model_file(recorded).tree.classes[0]
    send(client, f"decisions/{ids[9]}/outcome", {"value": label, "source": "Jane Doe"})
    send(client, f"decisions/{ids[9]}/override", {"label": label, "reason": "Jane Doe called"})
    send(client, f"decisions/{ids[9]}/objection", {"reason": "I, Jane Doe, object"})
    client.get(f"/api/v1/decisions/{ids[9]}/")
    erasing.erase_subject("person 2", by="t")
    assert "Jane Doe" not in "".join(ChainEntry.objects.values_list("payload", flat=True))
    answer = client.get(f"/api/v1/decisions/{ids[9]}/").json()
    assert answer["erased"]["why"] == "request"
    assert (answer["label"], answer["values"], answer["outcome"], answer["explanation"]) == (None, {}, None, None)
    assert answer["chain"]["payload"] is None
    row = next(r for r in listed(client, recorded)["results"] if r["decision"] == ids[9])
    assert (row["erased"], row["outcome"]) == (True, None)
    assert listed(client, recorded, "outcome=known")["count"] == 0
    assert send(client, f"decisions/{ids[9]}/outcome", {"value": label}).status_code == 410
    assert audit_decisions().problems == []


def test_erasure_on_request_stays_one_after_retention(recorded, ids, client, settings):
    export_chain(io.StringIO())
    erasing.erase_subject("person 2", by="t")
    erasing.erase_old(datetime.now(UTC) + timedelta(days=settings.RECORD_KEEP_DAYS + 1))
    reasons = [client.get(f"/api/v1/decisions/{key}/").json()["erased"]["why"] for key in (ids[0], ids[9])]
    assert reasons == ["retention", "request"]


def test_retention_erases_later_records_of_younger_blocks(recorded, ids, client, settings, monkeypatch):
    label = model_file(recorded).tree.classes[0]
    export_chain(io.StringIO())  # seals the decisions into a block
    send(client, f"decisions/{ids[0]}/override", {"label": label, "reason": "Jane Doe called"})
    erasing.erase_old(datetime.now(UTC) + timedelta(days=settings.RECORD_KEEP_DAYS + 1))
    assert "Jane Doe" not in "".join(ChainEntry.objects.values_list("payload", flat=True))
    found = audit_decisions()
    assert (found.problems, dict(found.erased)) == ([], {"retention": 21})


def test_every_mutation_of_a_later_record_is_refuted(recorded, ids, client, count):
    label = model_file(recorded).tree.classes[0]
    bodies = {
        "outcome": {"value": label},
        "override": {"label": label, "reason": "because"},
        "objection": {"reason": "no", "state": "open"},
    }
    for i, (kind, body) in enumerate(bodies.items()):
        send(client, f"decisions/{ids[i]}/{kind}", body)
    client.get(f"/api/v1/decisions/{ids[0]}/")
    export_chain(io.StringIO())
    rng = random.Random(9)
    entries = list(ChainEntry.objects.filter(kind__in=[*bodies, "look"]))
    assert len(entries) == 4
    for entry in entries:
        rows = ChainEntry.objects.filter(pk=entry.pk)
        for change in (
            lambda rows=rows, entry=entry: rows.update(payload=entry.payload.replace('"by":"token ', '"by":"user ')),
            lambda rows=rows: rows.update(about=uuid.UUID(ids[7])),
            lambda rows=rows: rows.update(model=uuid.UUID(ids[7])),
            lambda rows=rows: rows.update(model=None),
            lambda rows=rows, entry=entry: rows.update(label=1 - (entry.label or 0)),
            lambda rows=rows, entry=entry: rows.update(at=entry.at - 1),
            lambda rows=rows: rows.update(kind="replayed"),
            lambda rows=rows: rows.update(salt=rng.randbytes(16).hex()),
            lambda rows=rows: rows.update(payload="", salt=""),
            lambda rows=rows: rows.delete(),
        ):
            with transaction.atomic():
                change()
                assert audit_decisions().problems
                transaction.set_rollback(True)
    assert audit_decisions().problems == []


@pytest.mark.parametrize("query", [{}, {"answer": "b"}, {"leaf": "2"}, {"since": "2026-01-01", "refused": "no"}])
def test_count_of_a_list_reads_only_an_index(recorded, owner, query):
    """Looking up a million rows for their count takes seconds."""
    if connection.vendor != "sqlite":
        pytest.skip("the plan is SQLite's")
    counted = decisions_of(owner, recorded, query).order_by().values("kind").annotate(n=Count("*")).query
    sql, parameters = counted.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)
        steps = [row[-1] for row in cursor.fetchall()]
    indexes = (
        ("entries_of_leaf (model=? AND kind=? AND leaf=?",)
        if "leaf" in query
        else ("entries_in_time", "entries_of_leaf")
    )
    assert any(f"COVERING INDEX {index}" in step for step in steps for index in indexes), steps
