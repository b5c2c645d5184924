"""`prune MODEL.json OUTPUT.json`: write the model without the splits that change no answer."""

from __future__ import annotations

from argparse import ArgumentParser

from trainer.cli.command import Options
from trainer.tree.file import read_model, write
from trainer.tree.idle import pruned

HELP = (
    "Write a model without the questions that change no answer: every row gets the class that it got before. For trees that were "
    "grown split by split (cart, oc1, bivariate, converted); searches of whole trees leave no such question."
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL.json")
    parser.add_argument("output", metavar="OUTPUT.json")


def run(options: Options) -> int:
    before = read_model(options["model"])
    after = pruned(before)
    write(after, options["output"])
    print(f"{before.tree.n_leaves} leaves before, {after.tree.n_leaves} now: {options['output']}")
    return 0
