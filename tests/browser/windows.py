"""Browser windows that tests share.

A new window starts a process and compiles all scripts again.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit


class Windows:
    """Reusable browser contexts, by their options. A returned one is emptied, and is preferred to a new one."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self._free: list[tuple[dict[str, Any], Any]] = []
        self._taken: list[tuple[dict[str, Any], Any]] = []

    def take(self, **options: Any) -> Any:
        """Return a context without cookies and storage, which no other page of the test uses."""
        found = next((kept for kept in self._free if kept[0] == options), None)
        if found is not None:
            self._free.remove(found)
        else:
            found = options, self._browser.new_context(viewport={"width": 1440, "height": 900}, **options)
            found[1].new_page()  # an empty page keeps alive the process with its compiled scripts
        self._taken.append(found)
        return found[1]

    def page(self, *, width: int = 1440, height: int = 900, dark: bool = False, **options: Any) -> Any:
        """Return a page of this size and theme in a separate context."""
        page = self.take(**options).new_page()
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="dark" if dark else "light")
        page.set_default_timeout(120_000)
        return page

    def give_back(self) -> None:
        """Take back all lent contexts, and remove what the test left in them."""
        for options, context in self._taken:
            _empty(context)
            self._free.append((options, context))
        self._taken.clear()


def _empty(context: Any) -> None:
    kept, *pages = context.pages
    places = {page.url for page in pages if page.url.startswith("http")}
    for page in pages:
        page.close()
    context.clear_cookies()
    session = context.new_cdp_session(kept)
    for origin in {"{0.scheme}://{0.netloc}".format(urlsplit(place)) for place in places}:
        session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
    session.detach()
