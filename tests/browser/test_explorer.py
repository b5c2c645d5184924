"""The page of all good trees in a browser: three widths, both themes, and refused input."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from octweb.workbench import actions
from tests.browser.accessible import violations
from tests.browser.pictures import picture
from tests.browser.signed_in import signed_in
from tests.browser.waiting import overflow
from tests.octweb.runs.conftest import csv_file, dataset  # noqa: F401
from tests.octweb.workbench.conftest import model, serve  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
LOOKS = ((1600, "light"), (1440, "dark"), (1440, "light"), (1000, "light"), (380, "light"), (380, "dark"))
READ = ((1440, "light"), (380, "dark"))
BAD = {
    "slack_rows": ("abc", "-1"),
    "max_leaves": ("²", "0"),
    "recalls": ("zzz", "no: much", "no: 2"),
    "agree_rows": ("5-x",),
}


@pytest.fixture
def explorer(owner, model, live_server):  # noqa: F811
    bench = actions.open_for(owner=owner, model=model)
    return bench, f"{live_server.url}/workbenches/{bench.pk}/good-trees/"


def looked_at(page, name):
    """Return axe violations in both themes and two widths, and what overflows in any width. Also take pictures."""
    found = []
    for width, theme in LOOKS:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=theme)
        if (width, theme) in READ:
            found += [f"{width} {theme} {name}: {line}" for line in violations(page)]
        if overflow(page) > 0:
            found.append(f"{width} {name} is {overflow(page)} pixels too wide")
        picture(page, f"{name}-{width}-{theme}")
    return found


@pytest.mark.slow
def test_invalid_entry_is_named_beside_its_focused_field(page, live_server, explorer):
    bench, address = explorer
    signed_in(page.context, live_server.url, bench.owner.username)
    page.goto(address)
    found = looked_at(page, "explorer-empty")
    for name, entries in BAD.items():
        for entry in entries:
            page.fill(f"#{name}", entry)
            with page.expect_navigation():  # the previous page may already show an error of the same field
                page.press(f"#{name}", "Enter")
            expect(page.locator(f"#{name}")).to_be_focused()
            assert page.locator(f"#{name}-error").count() == 1
            assert page.get_attribute(f"#{name}", "aria-invalid") == "true"
            assert f"{name}-error" in page.get_attribute(f"#{name}", "aria-describedby")
            assert page.input_value(f"#{name}") == entry
        page.fill(f"#{name}", "")
    page.fill("#slack_rows", "abc")
    page.fill("#recalls", "zzz")
    page.locator("summary", has_text="treated alike").press("Enter")
    page.select_option("#groups", "colour")
    with page.expect_navigation():
        page.press("#slack_rows", "Enter")
    assert page.locator("#difference-error").count() == 1
    assert page.locator(".error[id]").count() == 3
    expect(page.locator("#slack_rows")).to_be_focused()
    found += looked_at(page, "explorer-wrong")
    assert found == []
    assert page.trouble == []
    assert not bench.steps.filter(kind="good").exists()


@pytest.mark.slow
def test_unknown_class_is_named_beside_its_field(page, live_server, explorer, serve):  # noqa: F811
    bench, address = explorer
    signed_in(page.context, live_server.url, bench.owner.username)
    page.goto(address)
    page.fill("#recalls", "zzz: 0.5")
    with page.expect_navigation(url=address):  # the previous page has the same address
        page.press("#recalls", "Enter")
    assert not bench.steps.filter(kind="good").exists()
    assert "zzz" in page.inner_text("#recalls-error")
    expect(page.locator("#recalls")).to_be_focused()
    page.fill("#recalls", "")
    page.fill("#slack_rows", "3")
    with page.expect_navigation(url=address):
        page.press("#slack_rows", "Enter")
    serve(bench)
    page.goto(address)
    page.wait_for_selector(".mini-card svg")
    page.locator(".mini-card summary").first.press("Enter")
    expect(page.locator(".mini-card details div").first).to_be_visible()
    assert looked_at(page, "explorer") == []
    assert page.trouble == []
