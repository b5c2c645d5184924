"""The list of tree sizes on a model page in a browser: one click away, accessible, also on a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from octweb.runs.models import TrainingRun
from octweb.runs.sizes import size_options
from tests.browser.accessible import violations
from tests.browser.pictures import picture
from tests.browser.signed_in import signed_in
from tests.browser.waiting import overflow
from tests.octweb.noisy_runs import noisy_dataset, trained

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.slow
def test_click_on_another_size_starts_its_run(media, page, live_server, owner):
    noisy = noisy_dataset(owner)
    run = trained(owner, noisy)
    other = next(option for option in size_options(run.model).options if not option.here)
    signed_in(page.context, live_server.url, owner.username)
    page.goto(f"{live_server.url}/models/{run.model.pk}/")
    sizes = page.locator("form.sizes")
    expect(sizes.locator("button")).to_have_count(len(size_options(run.model).options))
    expect(sizes.locator("[aria-current]")).to_contain_text(f"{run.model.leaves} ")
    assert violations(page) == []
    picture(page, "sizes", whole=False)
    page.set_viewport_size({"width": 390, "height": 800})
    picture(page, "sizes-phone", whole=False)
    assert overflow(page) == 0
    sizes.locator(f"button[value='{other.leaves}']").click()
    page.wait_for_url("**/runs/*/")
    assert TrainingRun.objects.count() == 2
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{live_server.url}/runs/new/?dataset={noisy.pk}&method=exact")
    expect(page.locator("#id_p_leaf_penalty")).to_have_attribute("placeholder", "chosen by the data")
    picture(page, "sizes-form", whole=False)
    assert page.trouble == []
