"""A hook of hatchling: the wheel carries what is built before it, where it was built (`make wheel` does).

These are the kernels that `python -m tools.ready` compiled, and the documentation as a site that `make docs` wrote.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BuiltBefore(BuildHookInterface):
    """Puts build/ready, or the folder that OCTWEB_READY_KERNELS names, into `trainer/_ready`, and build/docs beside the templates."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = Path(os.environ.get("OCTWEB_READY_KERNELS") or Path(self.root) / "build" / "ready")
        if folder.is_dir():
            build_data["force_include"][str(folder)] = "trainer/_ready"
        site = Path(self.root) / "build" / "docs"
        if (site / "index.html").is_file():
            build_data["force_include"][str(site)] = "octweb/_packed/site"  # where octweb/places.py looks for it
