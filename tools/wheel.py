"""A hook of hatchling: the wheel carries the kernels that `python -m tools.ready` compiled, where it was run (`make wheel` does)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ReadyKernels(BuildHookInterface):
    """Puts build/ready, or the folder that OCTWEB_READY_KERNELS names, into `trainer/_ready`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = Path(os.environ.get("OCTWEB_READY_KERNELS") or Path(self.root) / "build" / "ready")
        if folder.is_dir():
            build_data["force_include"][str(folder)] = "trainer/_ready"
