"""Naming, following, comparing and ending a challenger."""

from __future__ import annotations

import importlib
import json
import math
import uuid
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import numpy as np
import pytest
from django.apps import apps
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from octweb.audit import actions as audit
from octweb.audit.models import Record
from octweb.challengers import actions, following, words
from octweb.challengers.models import ABOVE_ALL_RECORDS, Challenge, Difference
from octweb.challengers.record import challenger_record, verdicts_by_leaf
from octweb.challengers.verdicts import Verdicts
from octweb.core.problems import Conflict, Unprocessable
from octweb.decisions import collecting
from octweb.decisions.audited import audit_decisions
from octweb.decisions.erasing import erase_decisions, erase_old
from octweb.decisions.later import LaterRow, add_later_rows
from octweb.decisions.models import ChainEntry, Kind
from octweb.decisions.replaying import replay
from octweb.life.counting import flush
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions as lifecycle
from octweb.registry.models import ShareLevel, State, TreeModel
from octweb.registry.prediction.predictions import predict_rows
from tests.octweb.decisions.rows import record_rows
from tests.octweb.small_models import trained

pytestmark = pytest.mark.django_db
ROW = {"width": 3.5, "height": 0.5, "flag": 1, "colour": "red"}


def now():
    return datetime.now(UTC)


def some_rows(count=60):
    rng = np.random.default_rng(4)
    colours = ("blue", "green", "red")
    return [
        {
            "width": float(rng.integers(0, 20)) / 2,
            "height": round(float(rng.normal()), 2),
            "flag": int(rng.integers(0, 2)),
            "colour": colours[rng.integers(0, 3)],
        }
        for _ in range(count)
    ]


def post(client, path, body):
    return client.post(path, json.dumps(body), content_type="application/json")


def put(client, model, body):
    return client.put(f"/api/v1/models/{model.pk}/challenger/", json.dumps(body), content_type="application/json")


def record_of(challenge):
    flush()
    return challenger_record(challenge.model, now())


def follow():
    collecting.collect()
    return following.follow_due()


def test_answers_of_each_api_are_compared_by_leaf(challenge, client_of, owner):
    client = client_of(owner)
    model = challenge.model
    rows = some_rows()
    predict = f"/api/v1/models/{model.pk}/predict/"
    assert post(client, predict, {"rows": rows}).status_code == 200
    for row in rows[:5]:
        assert post(client, predict, {"rows": [row]}).status_code == 200
    assert post(client, predict + "?explain=true", {"rows": rows[:7]}).status_code == 200
    scored = post(client, f"/invocations?model={model.family.name}", {"dataframe_records": rows[:4]})
    assert scored.status_code == 200
    asked = rows + rows[:5] + rows[:7] + rows[:4]
    served = predict_rows(model, asked).records()
    silent = predict_rows(challenge.challenger, asked).records()
    expected: dict[int, list[int]] = {}
    for own, other in zip(served, silent, strict=True):
        counts = expected.setdefault(own["leaf"], [0, 0])
        counts[0] += 1
        counts[1] += own["label"] != other["label"]
    record = record_of(challenge)
    found = {leaf["leaf"]: [leaf["rows"], leaf["different"]] for leaf in record["leaves"] if leaf["rows"]}
    assert found == expected
    assert (record["rows"], record["different"]) == (76, sum(n for _, n in expected.values()))
    assert record["different"] > 0
    assert record["not_compared"] == record["skipped"] == 0


def test_tensors_of_plain_numbers_are_compared(register, staff, owner, client_of):
    """The quick path of /v2 is used, for one row and for several."""
    model = lifecycle.approve(lifecycle.ask_for_approval(register(document=trained("cart")), by=owner), by=staff)
    challenge = actions.name_challenger(model, register(document=trained("cart", depth=1)), by=owner)
    rows = some_rows(3)
    for part in (rows[:1], rows):
        inputs = [
            {
                "name": name,
                "datatype": "BYTES" if name == "colour" else "FP64",
                "shape": [len(part)],
                "data": [row[name] for row in part],
            }
            for name in ROW
        ]
        assert post(client_of(owner), f"/v2/models/{model.family.name}/infer", {"inputs": inputs}).status_code == 200
    assert record_of(challenge)["rows"] == 4


def test_dry_runs_and_rows_before_the_challenge_are_not_compared(approved, smaller, owner, client_of):
    client = client_of(owner)
    path = f"/api/v1/models/{approved.pk}/predict/"
    assert post(client, path, {"rows": [ROW]}).status_code == 200
    challenge = actions.name_challenger(approved, smaller, by=owner)
    dry = client.post(
        path, json.dumps({"rows": [ROW]}), content_type="application/json", headers={"Octweb-Dry-Run": "1"}
    )
    assert dry.status_code == 200
    assert record_of(challenge)["rows"] == 0
    assert post(client, path, {"rows": [ROW]}).status_code == 200
    assert record_of(challenge)["rows"] == 1


def test_answer_of_the_served_tree_is_the_same_with_a_challenger(approved, smaller, owner, client_of):
    client = client_of(owner)
    path = f"/api/v1/models/{approved.pk}/predict/"
    before = post(client, path, {"rows": some_rows()}).json()
    actions.name_challenger(approved, smaller, by=owner)
    assert post(client, path, {"rows": some_rows()}).json() == before


def test_records_are_compared_exactly_once(recorded_challenge):
    ids = record_rows(recorded_challenge.model, 6)
    assert follow() == len(ids) == 24
    stale = Challenge.objects.select_related("model", "challenger").get(pk=recorded_challenge.pk)
    stale.last_number = 0  # as in a worker that read the row before the other worker wrote it
    assert following._follow(stale) == 0
    assert follow() == 0
    record = record_of(recorded_challenge)
    assert record["rows"] == 24
    assert record["different"] == Difference.objects.count() > 0


def test_batches_hold_the_records_of_this_model_alone(recorded_challenge, register, owner, staff, monkeypatch):
    monkeypatch.setattr(following, "BATCH_RECORDS", 5)
    other = lifecycle.approve(
        lifecycle.ask_for_approval(register(title="Other"), by=owner), by=staff, recording="full", reason="A test."
    )
    for model in (other, recorded_challenge.model, other, recorded_challenge.model):
        record_rows(model, 2)
    assert follow() == 16
    recorded_challenge.refresh_from_db()
    assert recorded_challenge.last_number == 32
    assert record_of(recorded_challenge)["rows"] == 16


def test_look_without_new_records_reads_none(recorded_challenge):
    """Workers look each second, and a model may have a million records."""
    record_rows(recorded_challenge.model, 2)
    follow()
    with CaptureQueriesContext(connection) as queries:
        assert following.follow_due() == 0
    assert not [query["sql"] for query in queries if "decisions_chainentry" in query["sql"]]


def with_outcomes(challenge, label_of):
    """Record rows and, for each difference, the outcome `label_of(given, silent)`. None is not an outcome."""
    record_rows(challenge.model, 40)
    follow()
    classes = model_file(challenge.model).tree.classes
    rows = []
    for difference in Difference.objects.order_by("pk"):
        label = label_of(difference.answer, difference.silent, len(rows))
        if label is not None:
            rows.append(LaterRow(difference.decision, {"value": classes[label]}))
    add_later_rows(str(Kind.OUTCOME), rows, user=challenge.model.owner, by="test")
    return rows


def test_odds_favour_the_tree_that_was_right(recorded_challenge):
    rows = with_outcomes(recorded_challenge, lambda given, silent, i: silent if i % 8 else given)
    outcomes = record_of(recorded_challenge)["outcomes"]
    n = len(rows)
    k = outcomes["challenger_right"]
    assert (outcomes["known"], outcomes["served_right"], outcomes["unknown"]) == (n, n - k, 0)
    assert k == n - math.ceil(n / 8)
    log = n * math.log(2) + math.lgamma(k + 1) + math.lgamma(n - k + 1) - math.lgamma(n + 2)
    assert outcomes["odds"] == pytest.approx(math.exp(log))
    assert record_of(recorded_challenge)["sentences"][-1].endswith("to 1 against chance, for version 2.")
    by_leaf = sum(leaf["challenger_right"] for leaf in record_of(recorded_challenge)["leaves"])
    assert by_leaf == k


def test_last_outcome_counts_and_third_class_is_wrong_for_both(recorded_challenge):
    rows = with_outcomes(recorded_challenge, lambda given, silent, i: given)
    other = Difference.objects.get(decision=rows[0].decision)
    third = ({0, 1, 2} - {other.answer, other.silent}).pop()
    classes = model_file(recorded_challenge.model).tree.classes
    correction = [LaterRow(rows[0].decision, {"value": classes[third]})]
    add_later_rows(str(Kind.OUTCOME), correction, user=recorded_challenge.model.owner, by="test")
    outcomes = record_of(recorded_challenge)["outcomes"]
    assert (outcomes["neither_right"], outcomes["served_right"]) == (1, len(rows) - 1)


def test_answers_without_any_outcome_are_named(recorded_challenge):
    first = []
    with_outcomes(
        recorded_challenge, lambda given, silent, i: first.append(given) or (silent if given == first[0] else None)
    )
    others = {d.answer for d in Difference.objects.all()} - {first[0]}
    classes = model_file(recorded_challenge.model).tree.classes
    assert others
    last = record_of(recorded_challenge)["sentences"][-1]
    assert all(classes[code] in last.partition("No outcome is known where")[2] for code in others)


def test_outcomes_count_on_their_day_and_not_sooner(recorded_challenge):
    recorded_challenge.outcome_days = 120
    recorded_challenge.save()
    rows = with_outcomes(recorded_challenge, lambda given, silent, i: silent)
    assert record_of(recorded_challenge)["outcomes"]["known"] == 0
    later = verdicts_by_leaf(recorded_challenge, now() + timedelta(days=121))
    assert sum(verdict.challenger for verdict in later.values()) == len(rows)


def test_silent_answers_are_in_the_records(recorded_challenge, client_of, owner):
    """They are those of the comparison, old records stay whole, and the chain verifies and replays."""
    collecting.collect()
    Challenge.objects.update(since=now() + timedelta(hours=1))
    before = record_rows(recorded_challenge.model, 1)
    Challenge.objects.update(since=now() - timedelta(hours=1))
    ids = record_rows(recorded_challenge.model, 5)
    tree = model_file(recorded_challenge.challenger).tree
    payloads = {str(e.key): json.loads(e.payload) for e in ChainEntry.objects.filter(kind=Kind.DECISION)}
    assert not any("challenger" in payloads[key] for key in before)
    for key in ids:
        ((sha256, leaf, label),) = payloads[key]["challenger"]
        assert sha256 == recorded_challenge.challenger.sha256
        assert tree.nodes[leaf].split is None
        assert tree.nodes[leaf].label == label  # both models have the same list of classes
    follow()
    different = {str(d.decision): d.silent for d in Difference.objects.all()}
    assert different == {
        key: payloads[key]["challenger"][0][2]
        for key in ids
        if payloads[key]["challenger"][0][2] != payloads[key]["label"]
    }
    answer = client_of(owner).get(f"/api/v1/decisions/{ids[0]}/").json()["challenger"]
    assert answer[0]["label"] == tree.classes[payloads[ids[0]]["challenger"][0][2]]
    assert client_of(owner).get(f"/api/v1/decisions/{before[0]}/").json()["challenger"] == []
    assert audit_decisions().problems == []
    assert replay("", "", None).different == []


def test_outcome_before_the_comparison_counts(recorded_challenge):
    """An outcome may be recorded within the second before the challenger's answer is compared."""
    ids = record_rows(recorded_challenge.model, 5)
    collecting.collect()
    label = model_file(recorded_challenge.model).tree.classes[0]
    rows = [LaterRow(uuid.UUID(key), {"value": label}) for key in ids]
    add_later_rows(str(Kind.OUTCOME), rows, user=recorded_challenge.model.owner, by="test")
    following.follow_due()
    assert Difference.objects.count() == Difference.objects.filter(outcome=0).count() > 0


def test_retention_leaves_no_difference(recorded_challenge, settings):
    with_outcomes(recorded_challenge, lambda given, silent, i: silent)
    settings.RECORD_KEEP_DAYS = 1
    later = now() + timedelta(days=3)
    collecting.collect_due(later)
    erase_old(later)
    assert not Difference.objects.exists()


def test_migration_deletes_differences_of_erased_decisions(recorded_challenge):
    """A worker of the earlier version may have ended before it deleted them."""
    rows = with_outcomes(recorded_challenge, lambda given, silent, i: silent)
    ChainEntry.objects.filter(key=rows[0].decision).update(payload="")
    Difference.objects.update(outcome=None)
    migration = importlib.import_module("octweb.challengers.migrations.0004_outcome_of_a_difference")
    migration.keep_outcomes(apps, SimpleNamespace(connection=connection))
    assert not Difference.objects.filter(decision=rows[0].decision).exists()
    assert Difference.objects.exclude(outcome=None).count() == len(rows) - 1


@pytest.mark.one_database
def test_correct_answers_are_counted_from_an_index(recorded_challenge):
    """In 50,000 differences the counts took 0.7 s with the records, and take some milliseconds with the index."""
    with CaptureQueriesContext(
        connection,
    ) as queries:
        verdicts_by_leaf(recorded_challenge, now())
    (query,) = queries.captured_queries
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}")
        plan = " ".join(str(row) for row in cursor.fetchall())
    assert connection.vendor != "sqlite" or ("COVERING INDEX differences_by_outcome" in plan and "B-TREE" not in plan)


def test_erased_decisions_leave_no_difference(recorded_challenge):
    rows = with_outcomes(recorded_challenge, lambda given, silent, i: silent)
    erased = [row.decision for row in rows[:3]]
    different = record_of(recorded_challenge)["different"]
    erase_decisions(erased, by="test", why="request")
    assert record_of(recorded_challenge)["outcomes"]["known"] == len(rows) - 3
    assert not Difference.objects.filter(decision__in=erased).exists()
    assert record_of(recorded_challenge)["different"] == different


def test_counts_without_outcomes_name_no_better_model(challenge, client_of, owner):
    post(client_of(owner), f"/api/v1/models/{challenge.model.pk}/predict/", {"rows": some_rows()})
    assert record_of(challenge)["sentences"][-1].startswith("Who was right cannot be known")


def test_rest_names_reads_and_ends_a_challenger(approved, smaller, owner, client_of):
    client = client_of(owner)
    path = f"/api/v1/models/{smaller.pk}/challenger/"
    answer = put(client, smaller, {"to": approved.family.name, "outcome_days": 3})
    assert answer.status_code == 201
    assert (answer.json()["running"], answer.json()["outcome_days"]) == (True, 3)
    assert client.get(path).json()["model"] == str(smaller.pk)
    life = client.get(f"/api/v1/models/{approved.pk}/life/").json()
    assert life["challenger"]["version"] == 2
    assert put(client, smaller, {"to": str(approved.pk)}).status_code == 409
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == client.delete(path).status_code == 404
    assert client.get(f"/api/v1/models/{approved.pk}/life/").json()["challenger"]["running"] is False
    assert [r.what for r in Record.objects.all()][-2:] == ["challenger named", "challenger ended"]
    assert audit.broken() == []


def test_approved_unserved_version_is_found_by_name(approved, smaller, owner, client_of):
    lifecycle.stop_serving(approved, by=owner)
    assert put(client_of(owner), smaller, {"to": approved.family.name}).status_code == 400
    assert put(client_of(owner), smaller, {"to": f"{approved.family.name}/1"}).status_code == 201


def test_figures_are_drawn_without_the_challenger(challenge, owner, client_of, monkeypatch):
    """The page asks for the record once, and for two figures, which would count all other answers again."""
    monkeypatch.setattr("octweb.challengers.record.challenger_record", None)
    for figure in ("leaves", "evidence"):
        path = f"/api/v1/models/{challenge.model.pk}/figures/life/{figure}/"
        assert client_of(owner).get(path).status_code == 200


def test_strangers_learn_nothing_of_a_challenge(challenge, stranger, client_of):
    caller = client_of(stranger)
    path = f"/api/v1/models/{challenge.challenger.pk}/challenger/"
    assert [caller.get(path).status_code, caller.delete(path).status_code] == [404, 404]
    assert post(caller, path + "promote/", {}).status_code == 404
    assert put(caller, challenge.challenger, {"to": challenge.model.family.name}).status_code == 404
    assert caller.get(f"/api/v1/models/{challenge.model.pk}/life/").status_code == 404


def test_model_of_another_owner_needs_to_be_readable(approved, register, stranger, owner, client_of):
    theirs = register(owner=stranger, document=trained("cart", depth=1), title="Theirs")
    assert put(client_of(owner), theirs, {"to": approved.family.name}).status_code == 404
    lifecycle.share(theirs, by=stranger, username=owner.username, level=ShareLevel.READ)
    assert put(client_of(owner), theirs, {"to": approved.family.name}).status_code == 201
    own = put(client_of(stranger), theirs, {"to": approved.family.name})
    assert own.status_code == 400
    assert own.json()["errors"][0]["attr"] == "to"
    lifecycle.unshare(theirs, by=stranger, username=owner.username)
    following.follow_due()
    ended = Challenge.objects.get()
    assert ended.ended_at is not None
    assert "no longer readable" in ended.reason


@pytest.mark.parametrize(
    ("body", "attr"),
    [
        ({"to": "nobody"}, "to"),
        ({"to": "small-cart/²"}, "to"),
        ({}, "to"),
        ({"to": "small-cart", "until": "2020-01-01"}, "until"),
        ({"to": "small-cart", "until": "soon"}, "until"),
        ({"to": "small-cart", "outcome_days": -1}, "outcome_days"),
    ],
)
def test_bad_members_are_named(approved, smaller, owner, client_of, body, attr):
    answer = put(client_of(owner), smaller, body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == attr


def test_models_that_cannot_answer_the_rows_are_refused(approved, register, owner):
    document = trained("cart", depth=1)
    document["target"] = "other"
    with pytest.raises(Unprocessable, match="predicts 'other'"):
        actions.name_challenger(approved, register(document=document), by=owner)
    with pytest.raises(Unprocessable, match="itself"):
        actions.name_challenger(approved, approved, by=owner)


def test_draft_has_no_challenger(model, smaller, owner):
    with pytest.raises(Conflict, match="only an approved model"):
        actions.name_challenger(model, smaller, by=owner)


def test_last_day_ends_the_challenge(challenge):
    challenge.until = now().date() - timedelta(days=1)
    challenge.save()
    assert actions.named_challenger(challenge.model) is None
    following.follow_due()
    challenge.refresh_from_db()
    assert challenge.ended_at is not None
    assert challenge.reason.startswith("Its last day was")


def test_rows_after_the_last_day_are_not_compared(recorded_challenge):
    """This happens if no worker ran overnight."""
    recorded_challenge.since = now() - timedelta(days=3)
    recorded_challenge.until = now().date() - timedelta(days=1)
    recorded_challenge.save()
    record_rows(recorded_challenge.model, 2)
    today = list(ChainEntry.objects.values_list("number", flat=True))
    record_rows(recorded_challenge.model, 3)
    yesterday = ChainEntry.objects.exclude(number__in=today)
    yesterday.update(at=int((now() - timedelta(days=1)).timestamp()) * 10**9)
    assert follow() == 12
    recorded_challenge.refresh_from_db()
    assert recorded_challenge.ended_at is not None


def test_damaged_challenger_ends_and_leaves_the_page(recorded_challenge, owner, client_of, client, media):
    TreeModel.objects.filter(pk=recorded_challenge.challenger.pk).update(document="{}", sha256="0" * 64)
    path = f"/api/v1/models/{recorded_challenge.model.pk}/life/"
    assert client_of(owner).get(path).json()["challenger"]["running"] is True
    follow()
    ended = client_of(owner).get(path).json()["challenger"]
    assert (ended["running"], "was damaged" in ended["reason"]) == (False, True)
    client.force_login(owner)
    page = f"{reverse('registry:detail', args=[recorded_challenge.model.pk])}?mode=life"
    assert "was damaged or changed" in client.get(page).content.decode()


def test_promotion_is_a_review_and_serves_nothing(challenge, owner, client_of):
    client = client_of(owner)
    post(client, f"/api/v1/models/{challenge.model.pk}/predict/", {"rows": some_rows()})
    flush()
    path = f"/api/v1/models/{challenge.challenger.pk}/challenger/promote/"
    answer = post(client, path, {"reason": "More is right."})
    assert answer.status_code == 200
    assert answer.json()["state"] == State.IN_REVIEW
    note = challenge.challenger.events.last().reason
    assert "rows differently" in note
    assert note.endswith("More is right.")
    assert lifecycle.served_version(challenge.model.family) == challenge.model
    assert post(client, path, {}).status_code == 409


def test_long_reason_reaches_the_reviewer_whole(challenge, owner):
    reason = "x" * (actions.MAX_REASON - 1) + "."
    actions.ask_for_promotion(challenge, by=owner, reason=reason)
    assert challenge.challenger.events.last().reason.endswith(reason)


def test_one_row_is_counted_in_the_singular(recorded_challenge):
    said = words.sentences(recorded_challenge, 1, 1, Verdicts(challenger=1), has_outcomes=True)
    assert said[0].endswith("1 of 1 row differently.")
    assert said[1].startswith("1 of these has a known outcome")


def test_only_the_owner_of_the_challenger_asks_for_its_approval(approved, register, stranger, owner):
    theirs = register(owner=stranger, document=trained("cart", depth=1), title="Theirs")
    lifecycle.share(theirs, by=stranger, username=owner.username, level=ShareLevel.READ)
    challenge = actions.name_challenger(approved, theirs, by=owner)
    with pytest.raises(PermissionDenied):
        actions.ask_for_promotion(challenge, by=owner)


def test_page_names_shows_promotes_and_ends(approved, smaller, owner, client, media):
    client.force_login(owner)
    page = f"{reverse('registry:detail', args=[approved.pk])}?mode=life"
    assert "Name a challenger" in client.get(page).content.decode()
    form = {"challenger": str(smaller.pk), "until": "", "outcome_days": "0"}
    client.post(reverse("challengers:name", args=[approved.pk]), form)
    text = client.get(page).content.decode()
    assert "version 2 answers silently" in text
    assert "Ask for approval of the challenger" in text
    client.post(reverse("challengers:promote", args=[approved.pk]), {"reason": "More is right."})
    assert smaller.events.last().reason.endswith("More is right.")
    assert "The challenger is in review." in client.get(page).content.decode()
    client.post(reverse("challengers:end", args=[approved.pk]))
    assert "answered silently" in client.get(page).content.decode()
    assert (
        client.post(reverse("challengers:name", args=[approved.pk]), form | {"until": "x"}, follow=True).status_code
        == 200
    )
    assert not actions.running_challenges().exists()


def test_records_before_the_end_are_compared_after_it(recorded_challenge, owner):
    record_rows(recorded_challenge.model, 2)
    actions.end_challenge(recorded_challenge, by=owner)
    record_rows(recorded_challenge.model, 2)
    assert follow() == 8
    assert follow() == 0
    assert record_of(recorded_challenge)["rows"] == 8
    Challenge.objects.update(ended_at=now() - following.LATE)
    assert follow() == 0
    assert Challenge.objects.get().last_number == ABOVE_ALL_RECORDS
    assert not actions.ended_challenges().exists()


def test_two_workers_compare_all_records_of_an_ended_challenge(recorded_challenge, owner, monkeypatch):
    record_rows(recorded_challenge.model, 2)
    actions.end_challenge(recorded_challenge, by=owner)
    Challenge.objects.update(ended_at=now() - following.LATE)
    behind = list(actions.ended_challenges())
    Challenge.objects.update(last_number=behind[0].last_number + 1)  # the other worker is between two batches
    with monkeypatch.context() as patched:
        patched.setattr(following, "ended_challenges", lambda: behind)
        following.follow_due()
    assert Challenge.objects.get().last_number != ABOVE_ALL_RECORDS
    following.follow_due()
    assert Challenge.objects.get().last_number == ABOVE_ALL_RECORDS


def test_differences_are_drawn_by_day(recorded_challenge, owner, stranger, client_of):
    path = f"/api/v1/models/{recorded_challenge.model.pk}/figures/life/differences/"
    api = client_of(owner)
    assert "No answer was compared" in api.get(path).content.decode()
    record_rows(recorded_challenge.model, 6)
    follow()
    record = record_of(recorded_challenge)
    (bars,) = api.get(path).json()["data"]
    assert [sum(pair) for pair in zip(*bars["customdata"], strict=True)] == [record["different"], record["rows"]]
    assert bars["y"][0] == round(100 * bars["customdata"][0][0] / bars["customdata"][0][1], 2)
    assert client_of(stranger).get(path).status_code == 404
