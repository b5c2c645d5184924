"""`manage.py export MODEL.json --to FORMAT`: the model as one HTML file, a program, or a table."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from octweb.registry.management.commands.predict import OWN_FILES
from octweb.registry.page.downloads import FORMATS
from octweb.registry.page.standalone_html import Subject
from trainer.cli.command import error_text
from trainer.errors import TrainerError
from trainer.explain.rows import rows_to_explain
from trainer.tree.document import publishable
from trainer.tree.file import read_model, write_atomically


class Command(BaseCommand):
    help = (
        "Write a model in another form. With DATA, the file that trained it, changes are measured on its training rows."
    )
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser):
        parser.add_argument("model", metavar="MODEL.json")
        parser.add_argument("--to", required=True, choices=[name for name in FORMATS if name != "json"])
        parser.add_argument("--output", metavar="FILE", help="default: standard output")
        parser.add_argument(
            "--data",
            metavar="DATA",
            help="CSV (also .gz), .xlsx, Parquet or Arrow: the rows that trained the model, for html",
        )

    def handle(self, *args, **options):
        try:
            content = FORMATS[options["to"]].write(self._subject(options))
            data = content.encode() if isinstance(content, str) else content
            if options["output"]:
                write_atomically(Path(options["output"]), data)
                return
        except (TrainerError, OSError) as error:
            raise CommandError(error_text(error)) from error
        if isinstance(content, str):
            self.stdout.write(content, ending="")
        else:
            sys.stdout.buffer.write(data)

    def _subject(self, options: dict[str, Any]) -> Subject:
        path = Path(options["model"])
        file = read_model(path)
        rows = rows_to_explain(file, options["data"], limits=OWN_FILES) if options["data"] else None
        if rows is not None:
            self.stderr.write(f"note: changes are measured on {rows.source}.")
        text = publishable(path.read_bytes())
        return Subject(
            file=file,
            title=file.name or f"A tree for {file.target}",
            sha256=hashlib.sha256(text).hexdigest(),
            document=text.decode(),
            statistics=None if rows is None else rows.statistics,
        )
