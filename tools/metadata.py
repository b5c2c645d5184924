"""Take the dependencies of the wheel from the requirements files, by a hook of hatchling.

The dependencies come from requirements.in, each extra from a file of its own. docs/install.md lists the extras.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


def requirements(path: Path) -> list[str]:
    """Return the requirements in a file, without its comments and the files that it includes."""
    lines = (line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("-")]


EXTRAS = {
    "client": "requirements-python-client.in",
    "databases": "requirements-databases.in",
    "fast": "requirements-fast.in",
    "gurobi": "requirements-gurobi.in",
    "hosts": "requirements-hosts.in",
    "ibis": "requirements-ibis.in",
    "mlflow": "requirements-mlflow.in",
    "notebook": "requirements-notebook.in",
    "onnx": "requirements-onnx.in",
    "pdf": "requirements-pdf.in",
    "postgres": "requirements-postgres.in",
    "sso": "requirements-sso.in",
}


class Requirements(MetadataHookInterface):
    """Set dependencies and extras of the wheel from the requirements files."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        metadata["dependencies"] = requirements(root / "requirements.in")
        metadata["optional-dependencies"] = {extra: requirements(root / file) for extra, file in EXTRAS.items()}
