"""Hooks of MkDocs for `make docs`: the site needs no network, and no script of it stands inside a page.

The application serves the site under its own Content-Security-Policy (`script-src 'self'`), which refuses scripts inside pages. So each of
Material's small inline scripts becomes a file, named by its digest.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
SCRIPT = re.compile(r"<script(?P<attributes>[^>]*)>(?P<code>.*?)</script>", re.DOTALL)
FOLDER = "assets/inline"
SHIM = "assets/iframe-worker.js"  # the offline plugin asks for one from a CDN unless a script of this name is there

_scripts: dict[str, str] = {}


def on_config(config: Any) -> Any:
    """The shim by which the search works in a page that was opened from the disk is ours."""
    _scripts.clear()
    return config


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Links to code, which the site does not hold, become their text."""
    docs = Path(config["docs_dir"]).resolve()
    folder = (docs / page.file.src_uri).parent

    def kept(match: re.Match[str]) -> str:
        text, target = match.groups()
        if re.match(r"[a-z]+:|#", target) or (folder / target.partition("#")[0]).resolve().is_relative_to(docs):
            return match.group()
        return text

    return LINK.sub(kept, markdown)


def on_post_page(output: str, *, page: Any, config: Any) -> str:
    """Each inline script becomes a file that the page names in its place, so that the order in which they run stays."""
    base = "../" * page.url.count("/")

    def moved(match: re.Match[str]) -> str:
        attributes = match["attributes"]
        code = match["code"]
        if "src=" in attributes or "application/json" in attributes or not code.strip():
            return match.group()
        name = f"{hashlib.sha256(code.encode()).hexdigest()[:16]}.js"
        _scripts[name] = code
        return f'<script src="{base}{FOLDER}/{name}"></script>'

    return SCRIPT.sub(moved, output)


def on_post_build(*, config: Any) -> None:
    """Writes those scripts and the icon; removes what no page of this site asks for, some two megabytes."""
    site = Path(config["site_dir"])
    folder = site / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, code in _scripts.items():
        (folder / name).write_text(code, encoding="utf-8")
    shutil.copy(ROOT / "tools" / "iframe-worker.js", site / SHIM)
    shutil.copy(ROOT / "static" / "icon.svg", site / "assets" / "icon.svg")
    for path in site.rglob("*.map"):
        path.unlink()
    shutil.rmtree(site / "assets" / "javascripts" / "lunr", ignore_errors=True)  # words of other languages
    for name in ("404.html", "sitemap.xml", "sitemap.xml.gz"):  # they need the address at which the site will be served
        (site / name).unlink(missing_ok=True)
