"""Take pictures of pages for the documentation if OCTWEB_PICTURES names a folder."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

MOST_BYTES = 150_000
QUALITIES = (85, 70, 55, 40, 25)


def folder() -> Path | None:
    name = os.environ.get("OCTWEB_PICTURES")
    return Path(name) if name else None


def picture(page: Any, name: str, *, whole: bool = True, part: str = "", wait: int = 800) -> None:
    """Save a picture of the page as WebP, in the best quality that needs at most 150 kB.

    It shows the whole page, only the visible part (not `whole`), or one `part`.
    """
    if (where := folder()) is None:
        return
    page.wait_for_timeout(wait)  # by then the figures are drawn
    if part:
        # A pane with its own scroll bar draws only what is visible.
        page.locator(part).scroll_into_view_if_needed()
    session = page.context.new_cdp_session(page)
    clip = page.evaluate(CLIP, [part, whole]) | {"scale": 1}
    for quality in QUALITIES:
        wish = {"format": "webp", "quality": quality, "captureBeyondViewport": whole and not part, "clip": clip}
        content = base64.b64decode(session.send("Page.captureScreenshot", wish)["data"])
        if len(content) <= MOST_BYTES:
            break
    session.detach()
    where.mkdir(parents=True, exist_ok=True)
    (where / f"{name}.webp").write_bytes(content)


CLIP = """([part, whole]) => {
  if (part) {
    const box = document.querySelector(part).getBoundingClientRect();
    return {x: box.left + scrollX, y: box.top + scrollY, width: box.width, height: box.height};
  }
  const root = document.documentElement;
  return {x: 0, y: whole ? 0 : scrollY, width: root.clientWidth, height: whole ? Math.max(innerHeight, root.scrollHeight) : innerHeight};
}"""
