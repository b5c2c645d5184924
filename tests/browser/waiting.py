"""Helpers that wait until a condition of a page holds."""

from __future__ import annotations

import time
from typing import Any

PATIENCE = 120  # seconds, enough for a slow machine; a fast one never waits so long
# A form that sends a request while another one is in progress aborts that one. Htmx then logs these two lines.
ABORTED = ("htmx:afterRequest, ", "htmx:sendAbort, ")
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# Number of visible figures that are not drawn yet, and of parts that are not loaded yet.
UNDER_WAY = """[...document.querySelectorAll('.figure, [hx-trigger=load]')].filter((e) => e.checkVisibility()
  && e.getBoundingClientRect().top < innerHeight && e.getBoundingClientRect().bottom > 0
  && !e.classList.contains('note') && !e.querySelector('.main-svg')).length"""


def until(page: Any, expression: str) -> None:
    """Wait until an expression is true.

    `page.wait_for_function` polls with `eval`, which the page's Content-Security-Policy may forbid.
    """
    end = time.monotonic() + PATIENCE
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"never true: {expression}"
        page.wait_for_timeout(50)


def overflow(page: Any) -> int:
    """Return the number of pixels by which a page is too wide.

    Wait for figures, which follow the size of the window a moment later.
    """
    end = time.monotonic() + PATIENCE / 4
    while (over := page.evaluate(WIDER)) > 0 and time.monotonic() < end:
        page.wait_for_timeout(50)
    return over


def drawn(page: Any, figure: str) -> None:
    """Wait until a figure is drawn and reacts to input. Its buttons for pictures appear at the same moment."""
    page.wait_for_selector(f"{figure}.js-plotly-plot + .take", state="attached")


def calm(page: Any) -> None:
    """Wait until everything visible is loaded and drawn, so that nothing moves any more."""
    page.wait_for_load_state("networkidle")
    until(page, f"{UNDER_WAY} === 0")


def choose_last_point(page: Any, figure: str) -> None:
    """Click on the last point of a figure once its label shows that the pointer is on it.

    Before that, parts above the figure may still move it.
    """
    calm(page)
    point = page.locator(f"{figure} .points path.point").last
    words = page.locator(f"{figure} .hoverlayer .hovertext").first
    point.scroll_into_view_if_needed()
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        box = point.bounding_box()
        x = box["x"] + box["width"] / 2
        y = box["y"] + box["height"] / 2
        page.mouse.move(x - 40, y)
        page.mouse.move(x, y)
        page.wait_for_timeout(200)  # the picture updates its words at most every 50 ms
        if words.is_visible():
            page.mouse.click(x, y)
            return
    raise AssertionError(f"{figure}: no words at its last point")


def address(page: Any) -> str:
    """Return the current URL of the page. Playwright notices a change by a script only a moment later."""
    return page.evaluate("location.href")


def complaints(page: Any, kept: list[str], *, only: str = "", but: str = "") -> None:
    """Append console messages and script errors to `kept`.

    `only` limits the messages to this kind, and `but` excludes those with these words.
    """

    def on_line(line: Any) -> None:
        expected = (only and line.type != only) or (but and but in line.text) or line.text.startswith(ABORTED)
        if not expected:
            kept.append(line.text)

    page.on("console", on_line)
    page.on("pageerror", lambda error: kept.append(str(error)))
