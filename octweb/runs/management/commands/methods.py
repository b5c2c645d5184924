"""`manage.py methods`: what can be trained, and with which parameters."""

import json
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from octweb.runs.page_trees import train_missing
from trainer.errors import DataError
from trainer.registry import METHODS
from trainer.training.method_pages import write_pages


class Command(BaseCommand):
    help = "List the methods with their parameters."
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser):
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument(
            "--write",
            metavar="FOLDER",
            help="write tables of parameters and pictures of trees into the pages of this folder",
        )
        parser.add_argument(
            "--again",
            metavar="METHOD",
            action="append",
            default=[],
            help="with --write: train the tree of this method's page again; trees that are missing are trained anyway",
        )

    def handle(self, *args, **options):
        if options["write"]:
            self._write(Path(options["write"]), options["again"])
            return
        if options["json"]:
            self.stdout.write(json.dumps({"methods": [method.to_json() for method in METHODS]}))
            return
        for method in METHODS:
            self.stdout.write(f"{method.id}: {method.title} ({method.guarantee}; {method.paper})")
            self.stdout.write(f"  {method.summary}")
            for p in method.parameters:
                default = "none" if p.default is None else p.default
                self.stdout.write(f"  {p.name} = {default}: {p.help} ({p.describe_allowed()})")

    def _write(self, folder, again):
        try:
            changed = [*train_missing(folder, again=again), *write_pages(folder)]
        except (OSError, DataError) as error:
            raise CommandError(str(error)) from None
        self.stdout.write("\n".join(map(str, changed)) or "every page is up to date")
