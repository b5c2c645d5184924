"""Write the files of a dossier into a folder, and zip it."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from octweb.dossier.document import to_html
from octweb.dossier.pdf import can_print, to_pdf
from trainer.check.bundle import bundle
from trainer.tree.document import publishable
from trainer.tree.file import read_model

HTML = "dossier.html"
PDF = "dossier.pdf"
JSON = "dossier.json"
MODEL = "model.json"
PROOF = "proof.jsonl.gz"
CHECKER = "check_octweb.py"
MAX_HTML_BYTES = 500_000  # bytes; the document of a tree with 64 leaves is smaller


def write(folder: Path, record: Mapping[str, Any], model: Path, proof: Path | None, *, pdf: bool = True) -> list[str]:
    """Write document, record, model, proof and checker. Return all file names in the folder.

    The signature is added later. Without the PDF library, there is no PDF.
    """
    (folder / MODEL).write_bytes(publishable(model.read_bytes()))
    if proof is not None:
        shutil.copyfile(proof, folder / PROOF)
    (folder / CHECKER).write_text(bundle(), encoding="utf-8")
    (folder / JSON).write_text(
        json.dumps(record, ensure_ascii=False, indent=1, allow_nan=False) + "\n", encoding="utf-8"
    )
    document = to_html(record, read_model(model).tree)
    (folder / HTML).write_text(document, encoding="utf-8")
    if pdf and can_print():
        (folder / PDF).write_bytes(to_pdf(document, title=f"Dossier {record['model']['sha256'][:12]}"))
    return sorted(p.name for p in folder.iterdir())


def zip_folder(folder: Path) -> bytes:
    """Return the files of a folder as a zip file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, path.name)
    return out.getvalue()
