"""`contract MODEL.json`: print the meaning of each column and class of a model."""

from __future__ import annotations

import json
from argparse import ArgumentParser

from trainer.cli.command import Options
from trainer.data.table_contract import contract_lines, model_contract
from trainer.tree.file import read_model

HELP = "Print the contract of a model: kind, unit, values, range, codes and policies of each column, and the classes."


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL.json")
    parser.add_argument("--json", action="store_true", help="the last line of standard output is one JSON object")


def run(options: Options) -> int:
    contract = model_contract(read_model(options["model"]))
    if options["json"]:
        print(json.dumps(contract, ensure_ascii=False))
    else:
        print("\n".join(contract_lines(contract)))
    return 0
