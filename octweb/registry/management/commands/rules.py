"""`manage.py rules MODEL.json`: exactly the rules that the page and the download show."""

from __future__ import annotations

import json

from django.core.management.base import BaseCommand, CommandError

from octweb.core.command_line import sentence
from trainer.errors import TrainerError
from trainer.tree.describe import rules_text
from trainer.tree.file import read_model
from trainer.tree.rules import rules_of


class Command(BaseCommand):
    help = "Print the rules of a model as text, or with --json as a list of one rule per leaf; the first rule that fits gives the answer."
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser):
        parser.add_argument("model", metavar="MODEL.json")
        parser.add_argument("--json", action="store_true", help="print a JSON list, one object per leaf")

    def handle(self, *args, **options):
        try:
            tree = read_model(options["model"]).tree
        except (TrainerError, OSError) as error:
            raise CommandError(sentence(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps([rule.to_json() for rule in rules_of(tree)], ensure_ascii=False))
        else:
            self.stdout.write(rules_text(tree), ending="")
