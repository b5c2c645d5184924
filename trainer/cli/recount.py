"""`recount MODEL.json SOURCE`: count the rows in the leaves of a tree."""

from __future__ import annotations

import json
from argparse import ArgumentParser

from trainer.cli.command import FAILED, Options, note
from trainer.cli.count import SOURCE_HELP, add_query_flags, query_of
from trainer.counts.opening import open_source
from trainer.counts.recount import recount
from trainer.data.parsing import ColumnParsing
from trainer.evaluate.verdict import training_base_words
from trainer.tree.file import read_model
from trainer.tree.numbers import count_words

HELP = (
    "Count the rows of a file or folder in the leaves of a tree, and compare them with the model file. "
    "Exit status 0 if all leaves are the same, otherwise 1."
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL.json")
    parser.add_argument("source", metavar="SOURCE", help=SOURCE_HELP)
    add_query_flags(parser)
    parser.add_argument("--json", action="store_true", help="the last line of standard output is one JSON object")


def run(options: Options) -> int:
    model = read_model(options["model"])
    structure = ColumnParsing.from_json(model.reading).given.structure
    with open_source(str(options["source"]), query=query_of(options), structure=structure) as source:
        comparison = recount(model, source)
    for leaf in comparison.differ:
        in_file = ", ".join(map(str, model.tree.nodes[leaf].counts))
        in_source = ", ".join(map(str, comparison.leaves[leaf].tolist()))
        print(f"leaf {leaf}: the file lists {in_file} rows by class, the source has {in_source}")
    if comparison.no_answer:
        note(f"{count_words(comparison.no_answer, 'row')} left out: an empty cell that the tree cannot answer")
    if comparison.no_class:
        note(f"{count_words(comparison.no_class, 'row')} left out: no class that the tree knows")
    outcome = "Each leaf has the rows that the file lists"
    if not comparison.same:
        outcome = f"{len(comparison.differ)} leaves differ"
    print(f"{outcome}: {comparison.correct:,} of {comparison.rows:,} rows correct.")
    print(training_base_words(model.tree, model.certificate))
    if options["json"]:
        print(json.dumps(comparison.to_json()))
    return 0 if comparison.same else FAILED
