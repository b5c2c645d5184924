"""`rules MODEL.json`: print the rules of a model, as on its page."""

from __future__ import annotations

import json
from argparse import ArgumentParser

from trainer.cli.command import Options
from trainer.tree.describe import rules_text
from trainer.tree.file import read_model
from trainer.tree.rules import rules_of

HELP = "Print the rules of a model as text, or with --json as a list of one rule per leaf; the first rule that fits gives the answer."


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL.json")
    parser.add_argument("--json", action="store_true", help="print a JSON list, one object per leaf")


def run(options: Options) -> int:
    model = read_model(options["model"])
    tree = model.tree
    if options["json"]:
        print(json.dumps([rule.to_json() for rule in rules_of(tree)], ensure_ascii=False))
    else:
        print(rules_text(tree, model.certificate), end="")
    return 0
