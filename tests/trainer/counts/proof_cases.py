"""Cases and oracles of `test_proof.py` that other tests use, too."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

from trainer.counts.folder import NUMBERS, RECORD


def lines_of(folder: Path) -> list[dict[str, Any]]:
    with gzip.open(folder / "proof.jsonl.gz", "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def page_files(folder: Path, lines: list[dict[str, Any]]) -> Any:
    """Return the texts of a model, a proof and counts as the page reads them."""
    proof = "".join(json.dumps(line) + "\n" for line in lines)
    numbers = base64.b64encode((folder / "counts" / NUMBERS).read_bytes()).decode()
    record = (folder / "counts" / RECORD).read_text(encoding="utf-8")
    return (folder / "model.json").read_text(encoding="utf-8"), proof, record, numbers
