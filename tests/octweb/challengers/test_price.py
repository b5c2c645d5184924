"""The price of staying: the proved best tree of the same size on recorded decisions with outcomes."""

from __future__ import annotations

import json
import math
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from django.urls import reverse

from octweb.audit.models import Record
from octweb.challengers import price
from octweb.challengers.models import StayingPrice
from octweb.challengers.price import known_rows, points_at_most, price_words
from octweb.challengers.price_work import PriceChild, PriceSupervisor
from octweb.challengers.words import unheard_words
from octweb.core.problems import Conflict
from octweb.decisions import collecting
from octweb.decisions.later import LaterRow, add_later_rows
from octweb.decisions.models import ChainEntry, Kind
from octweb.jobs.supervisor import JobRefused, LostLease
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions as lifecycle
from octweb.registry.models import Recording
from octweb.registry.prediction.recording import Caller, recorder_of
from tests.octweb.small_models import trained
from trainer.convert import fitted_to, rival
from trainer.data.formats.read_file import read_table
from trainer.data.parsing import ColumnParsing
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table
from trainer.training.run import TrainRequest, train

pytestmark = pytest.mark.django_db
ROWS = 60


@pytest.fixture
def recorded(register, owner, staff):
    """Provide a recorded tree of four leaves on a number and a column of words."""
    model = register(document=trained("cart", depth=2))
    lifecycle.ask_for_approval(model, by=owner)
    return lifecycle.approve(model, by=staff, recording=Recording.FULL)


@pytest.fixture
def outcomes(recorded):
    """Provide the outcomes of sixty decisions except five. Two decisions have a category that did not occur in training."""
    tree = model_file(recorded).tree
    rng = np.random.default_rng(6)
    names = [column.name for column in tree.schema]
    matrix = np.stack(
        [rng.integers(0, 8, ROWS), rng.normal(size=ROWS).round(1), rng.integers(0, 2, ROWS), rng.integers(0, 3, ROWS)],
        1,
    ).astype(float)
    matrix[:2, names.index("colour")] = -1
    recorder = recorder_of(recorded)
    assert recorder is not None
    caller = Caller("token x", "small")
    recorder.record("v1", caller, matrix, tree.apply(matrix))
    collecting.collect()
    keys = list(ChainEntry.objects.filter(kind=Kind.DECISION).order_by("number").values_list("key", flat=True))
    actual = rng.integers(0, 3, ROWS)
    rows = [
        LaterRow(key, {"value": tree.classes[code]}) for key, code in zip(keys[5:], actual[5:].tolist(), strict=True)
    ]
    add_later_rows(str(Kind.OUTCOME), rows, user=recorded.owner, by="test")
    return matrix[5:], actual[5:]


def best_correct(matrix, codes, depth):
    """Return the most correct rows of a tree of this depth, over all thresholds and single categories."""
    leaf = int(np.bincount(codes, minlength=3).max()) if len(codes) else 0
    if depth == 0 or len(codes) == 0:
        return leaf
    best = leaf
    for j in range(matrix.shape[1]):
        values = matrix[:, j]
        is_words = j == matrix.shape[1] - 1
        for value in np.unique(values):
            left = values == value if is_words else values <= value
            total = best_correct(matrix[left], codes[left], depth - 1)
            best = max(best, total + best_correct(matrix[~left], codes[~left], depth - 1))
    return best


def work(job):
    PriceSupervisor(job_id=str(job.pk), worker="test", stopping=threading.Event()).run()
    return StayingPrice.objects.get(pk=job.pk)


@pytest.mark.slow
@pytest.mark.one_database
@pytest.mark.django_db(transaction=True)
def test_price_equals_that_of_every_tree_tried(recorded, outcomes, owner, client_of, client, media):
    matrix, codes = outcomes
    tree = model_file(recorded).tree
    used = list(tree.used_columns)
    assert tree.schema[used[-1]].name == "colour"
    api = client_of(owner)
    path = f"/api/v1/models/{recorded.pk}/life/price/"
    queued = api.post(path, json.dumps({"days": 30}), content_type="application/json")
    assert queued.status_code == 202
    assert queued.json()["found"] is None
    job = work(price.latest(recorded))
    assert job.status == "succeeded", job.error
    found = api.get(path).json()["found"]
    mistakes = int((tree.predict(matrix) != codes).sum())
    best = best_correct(matrix[:, used], codes, tree.depth)
    assert tree.n_leaves == 2**tree.depth
    assert (found["rows"], found["unknown"], found["mistakes"]) == (55, 5, mistakes)
    assert found["best_mistakes"] == found["least_mistakes"] == 55 - best
    assert found["points_at_most"] == math.ceil(1000 * (mistakes - 55 + best) / 55) / 10 > 0
    assert Record.objects.last().what == "price of staying"
    client.force_login(owner)
    page = client.get(f"{reverse('registry:detail', args=[recorded.pk])}?mode=life").content.decode()
    assert f"at most {found['points_at_most']:.1f} points more often" in page
    assert api.get(f"/api/v1/models/{recorded.pk}/life/").json()["price"]["found"]["rows"] == 55


def test_rows_are_those_of_the_days_with_their_last_outcome(recorded, outcomes):
    matrix, codes = outcomes
    now = datetime.now(UTC)
    rows = known_rows(recorded, 90, now)
    tested = list(model_file(recorded).tree.used_columns)
    assert np.array_equal(rows.matrix[::-1][:, tested], matrix[:, tested])
    assert np.array_equal(rows.outcomes[::-1], codes)
    assert rows.unknown == 5
    key = ChainEntry.objects.filter(kind=Kind.DECISION).order_by("-number").first().key
    label = (int(codes[-1]) + 1) % 3
    correction = [LaterRow(key, {"value": model_file(recorded).tree.classes[label]})]
    add_later_rows(str(Kind.OUTCOME), correction, user=recorded.owner, by="test")
    assert known_rows(recorded, 90, now).outcomes[0] == label
    assert len(known_rows(recorded, 90, now + timedelta(days=91)).outcomes) == 0


def test_answers_without_any_outcome_are_named(recorded, outcomes):
    """All outcomes of one answer are erased, as if only granted loans had outcomes."""
    tree = model_file(recorded).tree
    leaves = [leaf.id for leaf in tree.leaves if leaf.label == 0]
    keys = ChainEntry.objects.filter(kind=Kind.DECISION, leaf__in=leaves).values("key")
    ChainEntry.objects.filter(kind=Kind.OUTCOME, about__in=keys).update(payload="", label=None)
    rows = known_rows(recorded, 90, datetime.now(UTC))
    assert rows.answers_without_outcome == (tree.classes[0],)
    assert unheard_words(rows.answers_without_outcome).startswith(
        f" No outcome is known where the answer was {tree.classes[0]},"
    )
    assert unheard_words(()) == ""


def test_search_reads_the_recorded_rows_and_tested_columns_only(recorded, outcomes, owner):
    """`convert --compare` gives the same leaf and the same mistakes in each row, also for unknown categories."""
    matrix, codes = outcomes
    job = StayingPrice(owner=owner, model=recorded, days=90, seconds=5, attempt=1)
    child = PriceChild.prepare(job)
    reading = ColumnParsing.from_json(json.loads((child.folder / "reading.json").read_text()))
    raw = read_table(str(child.folder / "rows.parquet"))
    own = model_file(recorded).tree
    tree, table, labels = fitted_to(own, raw, reading, "kind")
    assert table.names == tuple(own.schema[j].name for j in own.used_columns)
    assert tree.apply(table.matrix()).tolist() == own.apply(matrix)[::-1].tolist()
    assert labels.codes.tolist() == codes[::-1].tolist()
    child.clean()
    assert not child.folder.exists()


def test_models_without_outcomes_or_approval_have_no_price(recorded, model, owner):
    with pytest.raises(Conflict, match="at least two classes"):
        price.start(owner=owner, model=recorded)
    with pytest.raises(Conflict, match="only an approved model"):
        price.start(owner=owner, model=model)


def test_rows_that_the_search_read_otherwise_have_no_price(recorded, outcomes, owner):
    """As with a class NA, which a file takes for an empty cell: these rows would be left out."""
    job = price.start(owner=owner, model=recorded)
    child = PriceChild.prepare(job)
    matrix, codes = outcomes
    found = {"n": 55, "mistakes": int((model_file(recorded).tree.predict(matrix) != codes).sum()), "stopped": False}
    found |= {"best_mistakes": 0, "least_mistakes": 0}
    supervisor = PriceSupervisor(job_id=str(job.pk), worker="test", stopping=threading.Event())
    for member in ("n", "mistakes"):
        with pytest.raises(JobRefused, match="such as NA"):
            supervisor.store(job, child, {"compare": found | {member: found[member] - 1}})
    with pytest.raises(LostLease):  # all alike, but nobody claimed this job
        supervisor.store(job, child, {"compare": found})


def test_decisions_that_are_all_alike_have_no_price(recorded, outcomes, owner):
    """The search itself would advise another delimiter of the file."""
    first = ChainEntry.objects.filter(kind=Kind.DECISION).order_by("-number").first()
    ChainEntry.objects.filter(kind=Kind.DECISION).update(payload=first.payload)
    job = work(price.start(owner=owner, model=recorded))
    assert (job.status, job.error[:40]) == ("failed", "All 55 decisions with a known outcome ha")


def test_newest_rows_include_those_without_outcome(recorded, outcomes, monkeypatch):
    monkeypatch.setattr(price, "MAX_ROWS", 20)
    rows = known_rows(recorded, 90, datetime.now(UTC))
    assert (len(rows.outcomes), rows.unknown) == (20, 0)  # the five without outcome are the oldest


def test_second_search_is_refused_while_one_waits(recorded, outcomes, owner, client_of):
    path = f"/api/v1/models/{recorded.pk}/life/price/"
    api = client_of(owner)
    first = {"days": 30, "seconds": 5}
    assert api.post(path, json.dumps(first), content_type="application/json").status_code == 202
    assert api.post(path, json.dumps(first), content_type="application/json").status_code == 202
    other = api.post(path, json.dumps(first | {"monthly": True}), content_type="application/json")
    assert (other.status_code, StayingPrice.objects.count()) == (409, 1)
    assert "over 30 days for at most 5 seconds, once" in other.json()["detail"]


@pytest.mark.parametrize(
    ("body", "attr"), [({"days": 0}, "days"), ({"seconds": 10**9}, "seconds"), ({"days": "x"}, "days")]
)
def test_bad_members_of_a_search_are_named(recorded, outcomes, owner, client_of, body, attr):
    path = f"/api/v1/models/{recorded.pk}/life/price/"
    answer = client_of(owner).post(path, json.dumps(body), content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == attr


def test_strangers_see_no_price(recorded, stranger, client_of):
    path = f"/api/v1/models/{recorded.pk}/life/price/"
    caller = client_of(stranger)
    assert [caller.get(path).status_code, caller.post(path).status_code, caller.delete(path).status_code] == [404] * 3


def test_waiting_search_can_be_stopped(recorded, outcomes, owner, client_of):
    path = f"/api/v1/models/{recorded.pk}/life/price/"
    api = client_of(owner)
    assert api.delete(path).status_code == 404
    api.post(path)
    assert api.delete(path).json()["status"] == "cancelled"
    assert api.delete(path).status_code == 409


def test_monthly_search_repeats_until_a_single_one_is_queued(recorded, outcomes, owner, stranger):
    now = datetime.now(UTC)
    first = price.start(owner=owner, model=recorded, days=30, monthly=True)
    later = now + timedelta(days=31)
    assert price.repeat_due(later) == 0  # the first one still waits
    StayingPrice.objects.update(status="succeeded")
    assert price.repeat_due(now + timedelta(days=29)) == 0
    assert price.repeat_due(later) == 1
    second = price.latest(recorded)
    assert (second.pk != first.pk, second.days, second.monthly, second.owner) == (True, 30, True, owner)
    StayingPrice.objects.filter(pk=second.pk).update(status="cancelled")
    assert price.repeat_due(now + timedelta(days=99)) == 0
    StayingPrice.objects.filter(pk=second.pk).update(status="failed", owner=stranger)
    assert price.repeat_due(now + timedelta(days=99)) == 0
    StayingPrice.objects.filter(pk=second.pk).update(owner=owner, monthly=False)
    assert price.repeat_due(now + timedelta(days=99)) == 0


def test_price_is_rounded_up_and_claims_only_what_is_proved():
    assert points_at_most(1, 1000) == 0.1
    assert points_at_most(1, 3000) == 0.1
    assert points_at_most(0, 3000) == 0
    found = {"n": 1000, "leaves": 4, "depth": 2, "mistakes": 300, "least_mistakes": 296}
    assert "at most 0.4 points more often than this version (proved)" in price_words(found, 90)
    assert "no tree with at most 4 leaves" in price_words(found | {"least_mistakes": 300}, 90)
    assert "proved anything" in price_words(found | {"least_mistakes": None}, 90)
    assert "On the newest 100,000 decisions" in price_words(found | {"n": price.MAX_ROWS}, 90)


def test_no_better_tree_is_claimed_of_searched_questions_alone():
    """A tree that asks for two categories at once can be better than all that were searched."""
    colour = np.tile(np.arange(4.0), 15)
    codes = (colour % 2).astype(np.int32)
    schema = ColumnSchema(name="colour", kind=ColumnKind.CATEGORICAL, categories=tuple("abcd"))
    table = Table(columns=(Column(schema=schema, cells=colour),), row_numbers=np.arange(1, 61))
    labels = Labels(name="kind", classes=("no", "yes"), codes=codes)
    tree = train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 1})).model.tree
    found = rival(tree, table, labels, time_limit=10).to_json()
    two = replace(tree.nodes[0].split, codes=(1, 3))
    assert (two.goes_left(table.matrix()) == codes).all()
    assert found["least_mistakes"] > 0
    assert f"no tree with at most 2 leaves and depth 1, {price.SEARCHED_QUESTIONS}, would" in price_words(found, 90)
