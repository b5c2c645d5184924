"""Make the site of `make docs` work offline and without inline scripts, by hooks of MkDocs.

The application serves the site under its own Content-Security-Policy (`script-src 'self'`), which refuses
inline scripts. The hooks move each inline script of Material to a file, named by its digest.
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
SHIM = "assets/iframe-worker.js"  # without a script of this name the offline plugin loads one from a CDN

_scripts: dict[str, str] = {}


def on_config(config: Any) -> Any:
    """Forget the scripts of an earlier build."""
    _scripts.clear()
    return config


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Replace links to code with their text, since the site does not contain the code."""
    docs = Path(config["docs_dir"]).resolve()
    folder = (docs / page.file.src_uri).parent

    def link_or_text(match: re.Match[str]) -> str:
        text, target = match.groups()
        if re.match(r"[a-z]+:|#", target) or (folder / target.partition("#")[0]).resolve().is_relative_to(docs):
            return match.group()
        return text

    return LINK.sub(link_or_text, markdown)


def on_post_page(output: str, *, page: Any, config: Any) -> str:
    """Replace each inline script with a reference to a file in the same place, so that their order stays."""
    base = "../" * page.url.count("/")

    def script_element(match: re.Match[str]) -> str:
        attributes = match["attributes"]
        code = match["code"]
        if "src=" in attributes or "application/json" in attributes or not code.strip():
            return match.group()
        name = f"{hashlib.sha256(code.encode()).hexdigest()[:16]}.js"
        _scripts[name] = code
        return f'<script src="{base}{FOLDER}/{name}"></script>'

    return SCRIPT.sub(script_element, output)


def on_post_build(*, config: Any) -> None:
    """Write the scripts and the icon, and remove about two megabytes of files that no page loads."""
    site = Path(config["site_dir"])
    folder = site / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, code in _scripts.items():
        (folder / name).write_text(code, encoding="utf-8")
    shutil.copy(ROOT / "tools" / "iframe-worker.js", site / SHIM)
    shutil.copy(ROOT / "static" / "icon.svg", site / "assets" / "icon.svg")
    for path in site.rglob("*.map"):
        path.unlink()
    shutil.rmtree(site / "assets" / "javascripts" / "lunr", ignore_errors=True)  # other languages
    for name in ("404.html", "sitemap.xml", "sitemap.xml.gz"):  # they need the address of the site
        (site / name).unlink(missing_ok=True)
