"""The page Life in a browser: figures, an alarm that is closed, a phone, and the dark theme."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from octweb.life.actions import look_now
from octweb.life.models import Alarm
from octweb.registry.lifecycle import actions as registry
from octweb.registry.models import ReviewEvent, State
from tests.browser.accessible import violations
from tests.browser.signed_in import signed_in
from tests.browser.waiting import calm, drawn, overflow
from tests.octweb.life.filled import fill
from tests.octweb.small_models import trained

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def watched(owner, staff, media):
    """Provide a model with an alarm.

    It was approved 120 days ago, and the share of its largest leaf grows from day 60 on.
    """
    model = registry.register(owner=owner, document=trained("cart", folds=3), dataset=None, title="Small cart")
    registry.ask_for_approval(model, by=owner)
    registry.approve(model, by=staff, reason="A test.")
    ReviewEvent.objects.filter(model=model, after=State.APPROVED).update(at=timezone.now() - timedelta(days=120))
    fill(model, 120, changed_from=60)
    model.refresh_from_db()
    look_now(model)
    return model


def open_life(page, live_server, model, *, days=365):
    page.goto(f"{live_server.url}/models/{model.pk}/?mode=life&days={days}")
    for figure in ("leaves", "evidence"):
        page.locator(f"[data-figure-url*='/life/{figure}/']").scroll_into_view_if_needed()
        drawn(page, f"[data-figure-url*='/life/{figure}/']")
    calm(page)


@pytest.mark.slow
def test_alarm_is_read_and_closed_with_a_reason(page, live_server, watched):
    signed_in(page.context, live_server.url, "olga")
    open_life(page, live_server, watched)
    assert page.locator("#ends .js-plotly-plot").count() == 2
    assert "to more people than in training" in page.inner_text(".banner")
    assert overflow(page) <= 0
    assert violations(page) == []
    page.locator(".banner summary", has_text="Say what was done").first.click()
    page.locator(".banner textarea").first.fill("A campaign brought other people.")
    page.get_by_role("button", name="Close the alarm").first.click()
    page.wait_for_selector("#closed")
    assert "A campaign brought other people." in page.inner_text("#closed")
    assert Alarm.objects.exclude(closed_at=None).get().closed_by.username == "olga"
    assert page.trouble == []


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
def test_page_fits_a_phone(windows, live_server, watched, dark):
    page = windows.page(width=380, dark=dark)
    signed_in(page.context, live_server.url, "olga")
    open_life(page, live_server, watched)
    assert overflow(page) <= 0
    assert violations(page) == []
