"""Serve the documentation below /docs/ without sign-in.

Until the site is built, its pages are shown as text. The site has no inline scripts, so it has the same
Content-Security-Policy as other pages.
"""

from __future__ import annotations

import mimetypes
from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

TYPES = {
    ".js": "text/javascript",
    ".webp": "image/webp",
    ".ipynb": "application/json",
}  # not every system registers these types


@require_safe
def documentation(request: HttpRequest, page: str = "") -> HttpResponse:
    """Return a file of the site. Without a site, return a page with the source text and how to build the site."""
    site = settings.DOCS_DIR
    if not (site / "index.html").is_file():
        return _page_as_text(request, page)
    path = file_of(site, page)
    if path is None:
        raise Http404("There is no such page of the documentation.")
    kind = TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    if kind.startswith("text/"):
        kind += "; charset=utf-8"
    # the browser checks the ETag at each visit, so a new build appears at once
    return HttpResponse(path.read_bytes(), content_type=kind, headers={"Cache-Control": "no-cache"})


def _page_as_text(request: HttpRequest, page: str) -> HttpResponse:
    """Return the source of a documentation page, with links to all others. 404 if it is not installed."""
    sources = settings.SHIPPED / "docs"
    names = sorted(path.relative_to(sources).with_suffix(".html").as_posix() for path in sources.rglob("*.md"))
    file_name = _without_slash(page) or "index.html"
    known = file_name in names
    text = (sources / file_name).with_suffix(".md").read_text(encoding="utf-8") if known else ""
    context = {"names": names, "page": file_name, "text": text}
    return render(request, "home/no_documentation.html", context, status=200 if known else 404)


def file_of(site: Path, page: str) -> Path | None:
    """Return the file for a path below /docs/, or None if it is missing or outside the site.

    For a folder, this is its `index.html`. `problems/`, the form in the types of errors, is `problems.html`.
    """
    if any(part.startswith(".") for part in page.split("/")):
        return None
    try:
        root = site.resolve()
        path = (root / page.lstrip("/")).resolve()  # resolve, because a symbolic link may lead out of the site
        if page == "" or page.endswith("/"):
            path = path / "index.html"
            path = path if path.is_file() else (root / _without_slash(page).lstrip("/")).resolve()
        return path if path.is_relative_to(root) and path.is_file() else None
    except (OSError, ValueError):  # the name is too long or contains a NUL
        return None


def _without_slash(page: str) -> str:
    return f"{page.rstrip('/')}.html" if page.endswith("/") else page
