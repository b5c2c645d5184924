"""`octweb samples`: list the sample tables, or write them as CSV files."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from octweb.datasets import samples
from trainer.cli.command import error_text


class Command(BaseCommand):
    help = (
        "List the sample tables; with --write FOLDER, write each as a CSV file for the examples of the documentation."
    )

    def add_arguments(self, parser):
        parser.add_argument("--write", metavar="FOLDER", type=Path, help="write the tables into this folder")

    def handle(self, *args, **options):
        folder = options["write"]
        if folder is not None:
            try:
                samples.write(folder)
            except OSError as error:
                raise CommandError(f"The samples were not written: {error_text(error)}") from error
        for sample in samples.SAMPLES:
            name = f"{sample.slug}.csv"
            place = name if folder is None else str(folder / name)
            self.stdout.write(f"{place}   --target {sample.target}   {sample.summary}")
