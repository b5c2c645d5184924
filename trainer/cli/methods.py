"""`methods`: list the methods, or write the tables of their pages."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path

from trainer.cli.command import CommandError, Options
from trainer.errors import DataError
from trainer.registry import METHODS

HELP = "List the methods with their parameters."


def add_arguments(parser: ArgumentParser) -> None:
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


def run(options: Options) -> int:
    if options["write"]:
        _write_pages(Path(options["write"]), options["again"])
    elif options["json"]:
        print(json.dumps({"methods": [method.to_json() for method in METHODS]}))
    else:
        _list_methods()
    return 0


def _list_methods() -> None:
    for method in METHODS:
        print(f"{method.id}: {method.title} ({method.guarantee}; {method.paper})")
        print(f"  {method.summary}")
        for p in method.parameters:
            default = "none" if p.default is None else p.default
            print(f"  {p.name} = {default}: {p.help} ({p.describe_allowed()})")


def _write_pages(folder: Path, again: list[str]) -> None:
    # import here, so that listing the methods does not wait for the trainer
    from trainer.cli.page_trees import train_missing
    from trainer.training.method_pages import write_pages

    try:
        changed = [*train_missing(folder, again=again), *write_pages(folder)]
    except (OSError, DataError) as error:
        raise CommandError(str(error)) from None
    print("\n".join(map(str, changed)) or "every page is up to date")
