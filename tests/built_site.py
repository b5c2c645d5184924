"""Build the documentation site once for all test processes, which only read it."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

PYTHON = Path(os.environ.get("OCTWEB_DOCS_PYTHON", ROOT / ".venv" / "docs" / "bin" / "python"))
needs_mkdocs = pytest.mark.skipif(
    not PYTHON.exists(), reason="the environment of the site is not there: make .venv/docs/.ready"
)


def built_site(factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site, which was built strictly.

    The first process that calls this builds the site, and the others wait.
    """
    # Under pytest-xdist, each process has its own folder below the folder of the run.
    shared = factory.getbasetemp().parent if "PYTEST_XDIST_WORKER" in os.environ else factory.getbasetemp()
    folder = shared / "docs-site"
    said = shared / "docs-site.built"
    with (shared / "docs-site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not said.exists():
            said.write_text(_build(folder), encoding="utf-8")
    assert said.read_text(encoding="utf-8") == "", said.read_text(encoding="utf-8")
    return folder


def _build(folder: Path) -> str:
    """Build the site. Return the error, or ""."""
    # No server listens at this proxy, so a build fails if it downloads something.
    nowhere = {"https_proxy": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9", "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(
        [PYTHON, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | nowhere,
        capture_output=True,
        text=True,
        check=False,
    )
    return (built.stdout + built.stderr or "mkdocs failed") if built.returncode else ""
