"""Cases and oracles of `test_styles.py` that other tests use, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.conftest import ROOT

TYPES = {"static": ".css .js", "templates": ".html .css", "octweb": ".py", "trainer": ".py .html"}


def sources() -> Iterator[Path]:
    """Yield the files of the project in which a custom property may be written."""
    for folder, suffixes in TYPES.items():
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes.split() and "vendor" not in path.parts:
                yield path
