"""`manage.py predict MODEL.json DATA`: the tree's answer for every row of a file, as CSV."""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path
from typing import IO, Any

from django.core.management.base import BaseCommand, CommandError

from trainer.data.reader import ModelRows, load_for_model
from trainer.errors import TrainerError
from trainer.tree.file import ModelFile, read


class Command(BaseCommand):
    help = "Predict the rows of a CSV (also .gz) or Parquet file with a model file."
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser):
        parser.add_argument("model", metavar="MODEL.json")
        parser.add_argument("data", metavar="DATA", help="CSV (also .gz) or Parquet")
        parser.add_argument("--output", metavar="OUT.csv", help="default: standard output")

    def handle(self, *args, **options):
        try:
            model = read(options["model"])
            tree = model.tree
            rows = load_for_model(
                options["data"], tree.schema, target=model.target, classes=tree.classes, used=tree.used_columns
            )
            if options["output"]:
                _write_file(Path(options["output"]), model, rows)
            else:
                _write(self.stdout, model, rows)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return
        except (TrainerError, OSError) as error:
            raise CommandError(" ".join(str(error).split())) from error
        for note in rows.notes:
            self.stderr.write(f"note: {note}")
        if rows.labels is not None:
            known = rows.usable & (rows.labels.codes >= 0)
            right = int((tree.predict(rows.table.matrix())[known] == rows.labels.codes[known]).sum())
            self.stderr.write(f"note: {right} of {int(known.sum())} rows with a known class are correct.")


def _write_file(path: Path, model: ModelFile, rows: ModelRows) -> None:
    """Write beside the file and rename into place, so that nobody reads half of it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8", newline="") as stream:
            _write(stream, model, rows)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _write(stream: IO[str] | Any, model: ModelFile, rows: ModelRows) -> None:
    """Columns row (from 1, without the header), label, one share for each class, leaf; empty where a needed cell is."""
    tree = model.tree
    leaves = tree.apply(rows.table.matrix()).tolist()
    answers = [
        [tree.classes[int(tree.labels[v.id])], *(repr(p) for p in tree.probabilities[v.id].tolist()), v.id]
        for v in tree.nodes
    ]
    nothing = [""] * (len(tree.classes) + 2)
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["row", "label", *(f"probability {c}" for c in tree.classes), "leaf"])
    writer.writerows(
        [i, *(answers[leaf] if usable else nothing)]
        for i, (leaf, usable) in enumerate(zip(leaves, rows.usable.tolist(), strict=True), 1)
    )
