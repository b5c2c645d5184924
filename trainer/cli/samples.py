"""`samples`: list the sample tables, or write them as CSV files."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from trainer.cli.command import CommandError, Options, error_text
from trainer.data.samples import SAMPLES, write_samples

HELP = "List the sample tables; with --write FOLDER, write each as a CSV file for the examples of the documentation."


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--write", metavar="FOLDER", type=Path, help="write the tables into this folder")


def run(options: Options) -> int:
    folder = options["write"]
    if folder is not None:
        try:
            write_samples(folder)
        except OSError as error:
            raise CommandError(f"The samples were not written: {error_text(error)}") from error
    for sample in SAMPLES:
        path = Path(f"{sample.slug}.csv") if folder is None else folder / f"{sample.slug}.csv"
        print(f"{path}   --target {sample.target}   {sample.summary}")
    return 0
