"""Include the compiled kernels and the documentation in the wheel.

This hook of hatchling includes what was built before: `python -m tools.ready` compiles the kernels, `make
docs` writes the site, and `make wheel` does both.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BuiltBefore(BuildHookInterface):
    """Include build/ready (or the folder of OCTWEB_READY_KERNELS) as `trainer/_ready`, and build/docs as the site."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = Path(os.environ.get("OCTWEB_READY_KERNELS") or Path(self.root) / "build" / "ready")
        if folder.is_dir():
            build_data["force_include"][str(folder)] = "trainer/_ready"
        site = Path(self.root) / "build" / "docs"
        if (site / "index.html").is_file():
            build_data["force_include"][str(site)] = "octweb/_packed/site"  # where octweb/places.py looks for it
