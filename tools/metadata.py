"""A hook of hatchling: the dependencies of the wheel are those of requirements.in, the extras those of the other files.

Extras: `hosts` (files in a bucket, folds on a cluster), `pdf` (dossiers as PDF), `fast` (a compiled parser), `mlflow` (MLflow models),
`client` (octweb.Client).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


def requirements(path: Path) -> list[str]:
    """Return the requirements of a file, without its comments and the files that it includes."""
    lines = (line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("-")]


class Requirements(MetadataHookInterface):
    """Take dependencies and extras from the requirements files."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        metadata["dependencies"] = requirements(root / "requirements.in")
        metadata["optional-dependencies"] = {
            "hosts": requirements(root / "requirements-hosts.in"),
            "pdf": requirements(root / "requirements-pdf.in"),
            "fast": requirements(root / "requirements-fast.in"),
            "mlflow": requirements(root / "requirements-mlflow.in"),
            "client": requirements(root / "requirements-python-client.in"),
        }
