"""A hook of hatchling: the wheel needs what requirements.in names, so that there is one list.

The extra `hosts` is requirements-hosts.in: files in a bucket, folds on a cluster; `pdf` is requirements-pdf.in: dossiers as PDF;
`fast` is requirements-fast.in: a parser that has to be compiled;
`mlflow` is requirements-mlflow.in: trees as MLflow models.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


def needed(path: Path) -> list[str]:
    """The requirements of a file, without its comments and the files that it names."""
    lines = (line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("-")]


class Requirements(MetadataHookInterface):
    """Dependencies and extras out of the files of requirements."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        metadata["dependencies"] = needed(root / "requirements.in")
        metadata["optional-dependencies"] = {
            "hosts": needed(root / "requirements-hosts.in"),
            "pdf": needed(root / "requirements-pdf.in"),
            "fast": needed(root / "requirements-fast.in"),
            "mlflow": needed(root / "requirements-mlflow.in"),
        }
