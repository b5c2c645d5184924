"""Fixtures for browser tests: Chromium, and a page that draws figures with octweb's script and styles."""

from __future__ import annotations

import functools
import http.server
import itertools
import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.waiting import complaints, until
from tests.browser.windows import Windows

STATIC = Path(__file__).resolve().parents[2] / "static"
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# One process serves all pages, and the browser process itself draws. Each of the two saves an eighth of the processor
# time.
LEAN = ("--renderer-process-limit=1", "--in-process-gpu")
# Each page runs its scripts only once or twice, so optimising them takes longer than it saves: a sixth of the time.
PLAIN = "--js-flags=--no-opt --no-maglev"
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", *LEAN, PLAIN]
NUMBERS = itertools.count()
PAGE = """<!doctype html><html lang="en" data-theme="{theme}"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>Figures</title>
<link rel="icon" href="icon.svg"><link rel="stylesheet" href="tokens.css"><link rel="stylesheet" href="octweb.css">
<main>{body}</main><script src="plotly.min.js"></script><script src="figures.js" type="module"></script></html>"""
CARD = """<section class="card"><header><h2>{name}</h2></header><div class="body">
<div id="{name}" class="figure"></div><script type="application/json" data-figure-for="{name}">{figure}</script></div></section>"""


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Provide a headless Chromium. The test is skipped where there is none."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no Chromium found; install it (apt-get install chromium)")
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    sync.expect.set_options(timeout=120_000)  # the pages of the tests have the same limit
    with sync.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def all_windows(browser: Any) -> Windows:
    """Provide the windows of all tests of this process."""
    return Windows(browser)


@pytest.fixture
def windows(all_windows: Windows) -> Iterator[Windows]:
    """Provide windows for one test, and reset them when it ends."""
    yield all_windows
    all_windows.give_back()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        self.send_header(
            "Content-Security-Policy",
            "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:",
        )
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Provide the URL and folder of a server of the static files, which sends the content security policy of octweb."""
    folder = tmp_path_factory.mktemp("site")
    for file in STATIC.iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    shutil.copy(STATIC / "vendor" / "plotly.min.js", folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", folder
    server.shutdown()
    server.server_close()


@pytest.fixture
def figure_page(site: tuple[str, Path], windows: Windows) -> Any:
    """Provide a function that opens a page with figures and waits until all of them are drawn.

    It takes the figures by name, and a theme and a width.
    """
    address, folder = site

    def show(figures: dict[str, Any], *, theme: str = "light", width: int = 1440, body: str = "") -> Any:
        cards = "".join(
            CARD.format(name=name, figure=json.dumps(f).replace("<", "\\u003c")) for name, f in figures.items()
        )
        # Each file has a new name, because within a second the server may answer that the file is unchanged.
        file = folder / f"page-{next(NUMBERS)}.html"
        file.write_text(PAGE.format(theme=theme, body=cards + body), encoding="utf-8")
        page = windows.page(width=width)
        page.problems = []
        page.on("console", lambda m: page.problems.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: page.problems.append(str(e)))
        page.goto(f"{address}/{file.name}")
        # A figure gets its button for pictures last, after it can answer to clicks and keys.
        until(page, f"document.querySelectorAll('.js-plotly-plot + .take').length >= {len(figures)}")
        return page

    return show


@pytest.fixture
def page(windows, live_server):
    """Provide a page that collects every script error and every refusal by the content security policy in `trouble`."""
    page = windows.page()
    page.trouble = []
    complaints(page, page.trouble, only="error", but="status of 4")
    return page
