"""Take the dependencies of the wheel from the requirements files, by a hook of hatchling.

The dependencies come from requirements.in, the extras from the other files: `hosts` (files in a bucket, folds
on a cluster), `pdf` (dossiers as PDF), `fast` (a compiled parser), `databases` (counts from DuckDB and
PostgreSQL), `sso` (sign-on by OpenID), `mlflow` (MLflow models), `client` (octweb.Client).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


def requirements(path: Path) -> list[str]:
    """Return the requirements in a file, without its comments and the files that it includes."""
    lines = (line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("-")]


class Requirements(MetadataHookInterface):
    """Set dependencies and extras of the wheel from the requirements files."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        metadata["dependencies"] = requirements(root / "requirements.in")
        metadata["optional-dependencies"] = {
            "hosts": requirements(root / "requirements-hosts.in"),
            "pdf": requirements(root / "requirements-pdf.in"),
            "fast": requirements(root / "requirements-fast.in"),
            "databases": requirements(root / "requirements-databases.in"),
            "sso": requirements(root / "requirements-sso.in"),
            "mlflow": requirements(root / "requirements-mlflow.in"),
            "client": requirements(root / "requirements-python-client.in"),
        }
