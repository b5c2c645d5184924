"""The version that a name served at a given time, on page and API."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest
from django.utils import timezone

from octweb.audit.models import Record
from octweb.core import tally
from octweb.registry.lifecycle import actions
from octweb.registry.lifecycle.serving_history import parse_moment, period_at, served_periods
from octweb.registry.models import TreeModel
from tests.octweb.small_models import trained

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]
NAME = "small-cart"
ROW = {"width": 8.0, "height": 1.0, "colour": "green"}


def approve(model, by, **options):
    actions.ask_for_approval(model, by=model.owner)
    return actions.approve(model, by=by, reason="A test.", **options)


def versions(name: str = NAME) -> list[int]:
    return [period.version for period in served_periods(name)]


@pytest.fixture
def two(model, register, owner, staff):
    """Provide versions 1 and 2, served one after the other."""
    second = register(document=trained("cart", depth=0))
    return approve(model, staff), approve(second, staff)


def test_periods_follow_promotion_and_rollback(two, owner):
    first, second = two
    assert versions() == [1, 2]
    actions.stop_serving(second, by=owner)
    assert versions() == [1, 2, 1]
    actions.publish(second, by=owner)
    actions.retire(second, by=owner)
    assert versions() == [1, 2, 1, 2, 1]
    actions.retire(first, by=owner)
    periods = served_periods(NAME)
    assert periods[-1].until is not None
    for before, after in pairwise(periods):
        assert before.until == after.since
        assert before.ended_by == after.record
    assert period_at(periods, timezone.now()) is None


def test_end_of_a_version_that_does_not_answer_changes_nothing(two, owner):
    actions.retire(two[0], by=owner)
    assert versions() == [1, 2]
    assert served_periods(NAME)[-1].until is None


def test_version_that_moves_to_another_name_answers_there(two, owner):
    actions.publish(two[1], by=owner, name="other")
    assert versions() == [1, 2, 1]
    assert versions("other") == [1]
    assert versions("small") == []


def test_beginning_belongs_to_the_period_and_end_does_not(two):
    first, second = served_periods(NAME)
    assert period_at([first, second], first.since - timedelta(microseconds=1)) is None
    assert period_at([first, second], first.since) == first
    assert period_at([first, second], second.since) == second


@pytest.mark.parametrize("text", ["yesterday", "2026-02-30", "2026-13-01T00:00", "", "0000-01-01", "9999-12-31"])
def test_other_texts_and_the_future_are_refused(text):
    with pytest.raises(Exception, match=r"neither a date nor a time|is in the future"):
        parse_moment(text)


def test_date_means_its_end_and_today_means_now(settings):
    settings.TIME_ZONE = "Europe/Berlin"
    timezone.get_default_timezone.cache_clear()
    try:
        assert parse_moment("2026-01-31").isoformat() == "2026-01-31T23:59:59.999999+01:00"
        assert parse_moment("2026-01-31T12:00Z").isoformat() == "2026-01-31T12:00:00+00:00"
        assert timezone.now() - parse_moment(timezone.localdate().isoformat()) < timedelta(minutes=1)
    finally:
        timezone.get_default_timezone.cache_clear()


def address(moment=None) -> str:
    return f"/api/v1/models/{NAME}/on/" + (f"?at={moment.isoformat().replace('+', '%2B')}" if moment else "")


def test_api_names_version_file_and_records(client_of, stranger, two):
    first, second = served_periods(NAME)
    answer = client_of(stranger).get(address(first.since)).json()
    assert (answer["version"], answer["model"]) == (1, str(two[0].pk))
    assert answer["sha256"] == TreeModel.objects.get(pk=two[0].pk).sha256
    assert answer["records"] == [first.record, second.record]
    assert answer["approved_by"] == "ada"
    assert Record.objects.get(number=second.record).subject_id == two[1].pk
    now = client_of(stranger).get(address()).json()
    assert (now["version"], now["until"]) == (2, None)


def test_api_refuses_names_never_served(client, client_of, stranger, two):
    early = served_periods(NAME)[0].since - timedelta(days=1)
    answer = client_of(stranger).get(address(early))
    assert answer.status_code == 404
    assert "It was first served on" in answer.json()["detail"]
    assert client_of(stranger).get("/api/v1/models/nothing/on/").status_code == 404
    assert client_of(stranger).get(f"/api/v1/models/{NAME}/on/?at=never").status_code == 400
    assert client.get(address()).status_code == 401


def test_rows_get_the_answer_of_that_time_and_do_not_count(client_of, owner, stranger, two):
    begin = served_periods(NAME)[0].since
    tally.drain()
    then = client_of(stranger).post(address(begin), {"rows": [ROW]}, format="json")
    now = client_of(stranger).post(address(), {"rows": [ROW]}, format="json")
    assert (then.status_code, now.status_code) == (200, 200)
    assert not tally.drain()
    for answer, model in ((then, two[0]), (now, two[1])):
        direct = client_of(owner).post(f"/api/v1/models/{model.pk}/predict/", {"rows": [ROW]}, format="json")
        assert answer.json()["predictions"] == direct.json()["predictions"]
    assert then.json()["predictions"] != now.json()["predictions"]


def test_retired_version_answers_its_owner_only(client_of, owner, stranger, two):
    begin = served_periods(NAME)[0].since
    actions.retire(two[0], by=owner)
    assert client_of(stranger).get(address(begin)).json()["version"] == 1
    assert client_of(stranger).post(address(begin), {"rows": [ROW]}, format="json").status_code == 403
    assert client_of(owner).post(address(begin), {"rows": [ROW]}, format="json").status_code == 200
    actions.delete(TreeModel.objects.get(pk=two[0].pk))
    assert client_of(owner).get(address(begin)).json()["version"] == 1
    assert client_of(owner).post(address(begin), {"rows": [ROW]}, format="json").status_code == 410


def test_changed_model_file_answers_nothing(client_of, owner, two):
    TreeModel.objects.filter(pk=two[0].pk).update(sha256="0" * 64)
    begin = served_periods(NAME)[0].since
    assert client_of(owner).post(address(begin), {"rows": [ROW]}, format="json").status_code == 409


def test_page_shows_version_and_all_times(client, stranger, two):
    client.force_login(stranger)
    moment = timezone.localtime(served_periods(NAME)[0].since - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
    page = client.get(f"/models/{NAME}/on/").content.decode()
    assert "version <b>2</b>" in page
    dated = client.get(f"/models/{NAME}/on/?at={timezone.localdate()}").content.decode()
    assert f'value="{timezone.localdate()}T' in dated
    assert "approved by ada" in dated
    assert "no version answered" in client.get(f"/models/{NAME}/on/?at={moment}").content.decode()
    wrong = client.get(f"/models/{NAME}/on/?at=never")
    assert wrong.status_code == 400
    assert "neither a date nor a time" in wrong.content.decode()
    assert client.get("/models/nothing/on/").status_code == 404
