"""`checker FILE`: write the independent checker; each command has a module."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from trainer.check.bundle import bundle
from trainer.cli.command import Options

HELP = "Write the checker of models and proofs as one Python file: python check_octweb.py MODEL PROOF DATA."


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("output", metavar="FILE", nargs="?", default="check_octweb.py", help="default: check_octweb.py")


def run(options: Options) -> int:
    output = options["output"]
    Path(output).write_text(bundle(), encoding="utf-8")
    print(f"{output}: run it as python {output} MODEL.json PROOF.jsonl.gz DATA.csv")
    return 0
