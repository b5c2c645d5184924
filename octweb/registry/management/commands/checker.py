"""`manage.py checker FILE`: write the independent checker as one file that runs with NumPy alone."""

from __future__ import annotations

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from octweb.core.command_line import sentence
from trainer.check.bundle import bundle


class Command(BaseCommand):
    help = "Write the checker of models and proofs as one Python file: python check_octweb.py MODEL PROOF DATA."
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser):
        parser.add_argument(
            "output", metavar="FILE", nargs="?", default="check_octweb.py", help="default: check_octweb.py"
        )

    def handle(self, *args, **options):
        try:
            Path(options["output"]).write_text(bundle(), encoding="utf-8")
        except OSError as error:
            raise CommandError(sentence(error)) from error
        self.stdout.write(
            f"{options['output']}: run it as python {options['output']} MODEL.json PROOF.jsonl.gz DATA.csv"
        )
