"""`manage.py recount MODEL.json SOURCE`: count the rows of a source in the leaves of a tree. It never opens the database."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from octweb.core.command_line import sentence
from trainer.counts.recount import recount
from trainer.counts.source import Source
from trainer.data.parsing import ColumnParsing
from trainer.errors import TrainerError
from trainer.evaluate.verdict import training_base_words
from trainer.tree.file import read_model
from trainer.tree.numbers import count_words


class Command(BaseCommand):
    help = (
        "Count the rows of a file or folder in the leaves of a tree, and compare them with the model file. "
        "Exit status 0 if all leaves are the same, otherwise 1."
    )
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser):
        parser.add_argument("model", metavar="MODEL.json")
        parser.add_argument("source", metavar="SOURCE", help="a CSV or Parquet file, or a folder of them")
        parser.add_argument("--json", action="store_true", help="the last line of standard output is one JSON object")

    def handle(self, *args, **options):
        try:
            model = read_model(options["model"])
            structure = ColumnParsing.from_json(model.reading).given.structure
            found = recount(model, Source(Path(options["source"]), structure))
        except (TrainerError, OSError) as error:
            raise CommandError(sentence(error)) from error
        for leaf in found.differ:
            listed = ", ".join(map(str, model.tree.nodes[leaf].counts))
            counted = ", ".join(map(str, found.leaves[leaf].tolist()))
            self.stdout.write(f"leaf {leaf}: the file lists {listed} rows by class, the source has {counted}")
        for rows, reason in (
            (found.no_answer, "an empty cell that the tree cannot answer"),
            (found.no_class, "no class that the tree knows"),
        ):
            if rows:
                self.stderr.write(f"note: {count_words(rows, 'row')} left out: {reason}")
        same = "Each leaf has the rows that the file lists" if found.same else f"{len(found.differ)} leaves differ"
        self.stdout.write(f"{same}: {found.correct:,} of {found.rows:,} rows correct.")
        self.stdout.write(training_base_words(model.tree))
        if options["json"]:
            self.stdout.write(json.dumps(found.to_json()))
        if not found.same:
            sys.exit(1)
