"""`manage.py contract MODEL.json`: what each column and class of a model means. It never opens the database."""

from __future__ import annotations

import json

from django.core.management.base import BaseCommand, CommandError

from octweb.core.command_line import sentence
from trainer.data.table_contract import contract_lines, model_contract
from trainer.errors import TrainerError
from trainer.tree.file import read_model


class Command(BaseCommand):
    help = (
        "Print the contract of a model: kind, unit, values, range, codes and policies of each column, and the classes."
    )
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser):
        parser.add_argument("model", metavar="MODEL.json")
        parser.add_argument("--json", action="store_true", help="the last line of standard output is one JSON object")

    def handle(self, *args, **options):
        try:
            contract = model_contract(read_model(options["model"]))
        except (TrainerError, OSError) as error:
            raise CommandError(sentence(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(contract, ensure_ascii=False))
        else:
            self.stdout.write("\n".join(contract_lines(contract)))
