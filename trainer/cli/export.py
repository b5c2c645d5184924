"""`export MODEL.json --to FORMAT`: write the model in another form.

The form is one HTML file, the contract, a program, a formula or a table.
"""

from __future__ import annotations

import hashlib
import json
import sys
from argparse import ArgumentParser
from pathlib import Path

from trainer.cli.command import Options, note
from trainer.cli.reading_flags import OWN_FILES
from trainer.data.table_contract import model_contract
from trainer.explain.rows import rows_to_explain
from trainer.model_page import Subject, to_html
from trainer.tree.document import publishable
from trainer.tree.export.forms import EXPORTS, export
from trainer.tree.file import read_model, write_atomically

HELP = "Write a model in another form. With DATA, the file that trained it, changes are measured on its training rows."


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL.json")
    parser.add_argument("--to", required=True, choices=["html", "contract", *EXPORTS])
    parser.add_argument("--output", metavar="FILE", help="default: standard output")
    parser.add_argument(
        "--data",
        metavar="DATA",
        help="CSV (also .gz), .xlsx, Parquet or Arrow: the rows that trained the model, for html",
    )


def run(options: Options) -> int:
    content = _export(_read_subject(options), options["to"])
    if options["output"]:
        write_atomically(Path(options["output"]), content.encode() if isinstance(content, str) else content)
    elif isinstance(content, str):
        print(content, end="")
    else:
        sys.stdout.buffer.write(content)
    return 0


def _export(subject: Subject, form: str) -> str | bytes:
    if form == "html":
        return to_html(subject)
    if form == "contract":
        return json.dumps(model_contract(subject.file), ensure_ascii=False, indent=1)
    return export(subject.file, form, subject.title)


def _read_subject(options: Options) -> Subject:
    path = Path(options["model"])
    file = read_model(path)
    rows = rows_to_explain(file, options["data"], limits=OWN_FILES) if options["data"] else None
    if rows is not None:
        note(f"changes are measured on {rows.source}.")
    text = publishable(path.read_bytes())
    return Subject(
        file=file,
        title=file.name or f"A tree for {file.target}",
        sha256=hashlib.sha256(text).hexdigest(),
        document=text.decode(),
        statistics=None if rows is None else rows.statistics,
    )
