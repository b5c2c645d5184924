"""`good-trees`: count and list the nearly optimal trees, exactly."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from trainer.cli.command import Options
from trainer.cli.interrupts import Interrupts
from trainer.cli.orphans import exit_with_parent
from trainer.cli.training import (
    add_training_arguments,
    add_weight_flag,
    checked_parameters,
    counts_of,
    read_data,
    run_training,
    weight_record,
)
from trainer.counts.folder import holds_counts
from trainer.counts.good_trees import count_good_trees
from trainer.errors import ParameterError
from trainer.families.exact.rashomon.chosen import RATES, amount
from trainer.registry import get
from trainer.training.rewarded import as_costs, best_reward, best_reward_sentence
from trainer.training.run import TrainRequest
from trainer.tree.describe import number_text
from trainer.tree.file import read_model
from trainer.workbench.good_trees import GoodRequest
from trainer.workbench.requests import WorkbenchSession, good_trees_method

# options that a count from counts does not support
NEED_ROWS = (
    "slack_cost", "recall", "difference", "groups", "favoured", "agrees_with", "agree_rows", "sample", "distinct",
)  # fmt: skip

HELP = "Count and list the trees that are nearly as good as the best one on a CSV (also .gz), .xlsx, Parquet or Arrow file."


def add_arguments(parser: ArgumentParser) -> None:
    add_training_arguments(parser, target_required=False)  # a folder of counts already names its target
    add_weight_flag(parser)
    parser.add_argument("--method", default=good_trees_method().id, choices=[good_trees_method().id])
    slack = parser.add_mutually_exclusive_group(required=True)
    slack.add_argument("--slack", metavar="SHARE", help="cost at most (1 + SHARE) times the least cost")
    slack.add_argument("--slack-rows", metavar="N", help="cost at most N rows, or N of weight, above the least cost")
    slack.add_argument(
        "--slack-cost",
        metavar="AMOUNT",
        help="with costs: cost at most AMOUNT, in their unit, above the least cost",
    )
    parser.add_argument(
        "--must", action="append", default=[], metavar="COLUMN", help="a column that the tree must ask about"
    )
    parser.add_argument(
        "--without", action="append", default=[], metavar="COLUMN", help="a column that the tree must not ask about"
    )
    parser.add_argument("--max-leaves", type=int, metavar="N", help="the most leaves of a tree")
    parser.add_argument(
        "--recall",
        action="append",
        default=[],
        metavar="CLASS=SHARE",
        help="the share of a class that must be classified correctly",
    )
    parser.add_argument(
        "--difference",
        metavar="SHARE",
        help="the largest allowed difference between the rates of two groups, with --groups",
    )
    parser.add_argument("--groups", metavar="COLUMN", help="the column whose values are the groups")
    parser.add_argument(
        "--rate",
        choices=RATES,
        default=RATES[0],
        help="rows with the favoured answer, among all rows of a group (parity) or among those of that class (opportunity)",
    )
    parser.add_argument(
        "--favoured", metavar="CLASS", help="the answer whose rates are compared; default: the last class"
    )
    parser.add_argument(
        "--agrees-with", metavar="MODEL.json", help="a tree; the good trees must give its answers on --agree-rows"
    )
    parser.add_argument(
        "--agree-rows",
        metavar="ROWS",
        help="lines of the file (rows of a Parquet file) as in '3, 10-20', as pages number them; default: all that train",
    )
    parser.add_argument("--list", type=int, default=10, dest="listed", metavar="N", help="trees to list, best first")
    parser.add_argument(
        "--disputed",
        type=int,
        default=10,
        metavar="N",
        help="rows to list on which the trees disagree, the most disputed first",
    )
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="trees to draw uniformly")
    parser.add_argument(
        "--distinct",
        action="store_true",
        help="also count with questions that split the rows in the same way taken as one (slow)",
    )


def run(options: Options) -> int:
    exit_with_parent()
    return run_training(_count_from_counts if holds_counts(options["data"]) else _count, options)


def _count_from_counts(options: Options, interrupts: Interrupts) -> None:
    """Print the number of good trees of a folder of counts; what needs rows is null in the record."""
    if refused := [name for name in NEED_ROWS if options[name]]:
        raise ParameterError({refused[0]: "is not supported with counts. Leave it out, or use the table."})
    counts = counts_of(options)
    slack, slack_rows = (
        None if options[name] is None else amount(options[name], name) for name in ("slack", "slack_rows")
    )
    raw = checked_parameters(get(options["method"]), options)
    good = count_good_trees(
        counts,
        raw,
        slack=slack,
        slack_rows=slack_rows,
        must=options["must"],
        without=options["without"],
        max_leaves=_at_least_one(options["max_leaves"]),
        listed=options["listed"],
    )
    if options["json"]:
        print(json.dumps(good.to_json(), allow_nan=False))
        return
    print(f"{good.count:,} trees with objective {good.limit:.6g} to {good.optimum:.6g}")
    print(f"{good.count_without_idle:,} of them ask no idle question")
    for question, number in good.first_questions.items():
        print(f"{number:>12,} ask first: {question}")


def _count(options: Options, interrupts: Interrupts) -> None:
    if not options["target"]:
        raise ParameterError({"target": "name the column to predict."})
    good_request = GoodRequest(
        slack=options["slack"],
        slack_rows=options["slack_rows"],
        slack_cost=options["slack_cost"],
        must=options["must"],
        without=options["without"],
        max_leaves=_at_least_one(options["max_leaves"]),
        recalls=_recalls(options["recall"]),
        difference=options["difference"],
        groups=options["groups"],
        rate=options["rate"],
        favoured=options["favoured"],
        agree_rows=options["agree_rows"] or ("all" if options["agrees_with"] else None),
        listed=options["listed"],
        disputed=options["disputed"],
        sample=options["sample"],
        distinct=options["distinct"],
    )
    raw = checked_parameters(get(options["method"]), options)
    table, labels, _ = read_data(options)
    request, earned = as_costs(TrainRequest(table=table, labels=labels, method=options["method"], parameters=raw))
    rewards = best_reward(request, earned)
    session = WorkbenchSession(request)
    monitor = session.monitor()
    interrupts.on_start(monitor)
    agrees = read_model(options["agrees_with"]).tree if options["agrees_with"] else None
    record = session.good_trees(good_request, monitor, agrees)
    if options["json"]:
        print(json.dumps(record | weight_record(table) | rewards, allow_nan=False))
        return
    if rewards:
        print(best_reward_sentence(rewards, record["cost_unit"]))
    _print(record, bool(raw.get("leaf_penalty")))


def _print(record: dict[str, Any], pays_for_leaves: bool) -> None:
    """Print the count, the range of the objective, and the disagreement."""
    count = f"at least {record['at_least']:,}" if record["count"] is None else f"{record['count']:,}"
    ends = f"with objective {record['limit']:.6g} to {record['optimum']:.6g}"
    if "limit_cost" in record:
        unit = f" {record['cost_unit']}" if record["cost_unit"] else ""
        ends = f"that cost {number_text(record['optimum_cost'])} to {number_text(record['limit_cost'])}{unit}"
        if pays_for_leaves:
            ends += " with their leaves"
    print(f"{count} trees {ends}, {record['status']}")
    if record["count_without_idle"] is not None:
        print(f"{record['count_without_idle']:,} of them ask no idle question")
    if record["rows"] is not None:
        rows = record["rows"]
        print(
            f"the answer for {rows['depends']:,} of {rows['of']:,} {record['count_unit']} depends on which good tree was chosen"
        )
    for question, number in (record["first_questions"] or {}).items():
        print(f"{number:>12,} ask first: {question}")


def _at_least_one(most: int | None) -> int | None:
    if most is not None and most < 1:
        raise ParameterError({"max_leaves": f"must be at least 1, since every tree has a leaf. It is {most}."})
    return most


def _recalls(texts: list[str]) -> dict[str, str]:
    recalls = {}
    for text in texts:
        name, equals, share = text.rpartition("=")
        if not equals:
            raise ParameterError({"recall": f"'{text[:80]}' does not look like CLASS=SHARE, as in yes=0.9."})
        recalls[name] = share
    return recalls
