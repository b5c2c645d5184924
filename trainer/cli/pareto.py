"""`pareto`: print the Pareto front of trees of hyperplanes.

It compares accuracy or cost with size, with a proof or a bound for each point.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from trainer.certificate import Evidence, Status
from trainer.cli.command import CommandError, Options
from trainer.cli.interrupts import Interrupts
from trainer.cli.training import (
    add_training_arguments,
    add_weight_flag,
    checked_parameters,
    read_data,
    run_training,
    weighed_text,
    weight_record,
    with_rows,
)
from trainer.errors import ParameterError
from trainer.evaluate.verdict import training_base_words
from trainer.registry import METHODS, get
from trainer.table import Table
from trainer.training.cost_frontier import CostFrontier, cost_frontier
from trainer.training.rewarded import as_costs, best_reward, best_reward_sentence
from trainer.training.run import TrainRequest, save, train
from trainer.tree.describe import number_text

ENDED_EARLY = (Status.CANCELLED, Status.TIME_LIMIT, Status.MEMORY_LIMIT)
ONE_CLASS = "The rows have only one class, so there is no frontier."

HELP = (
    "Most rows correct, or with --cost the least cost, for each number of branchings, and for few coefficients, on a CSV "
    "(also .gz), .xlsx, Parquet or Arrow file."
)


def add_arguments(parser: ArgumentParser) -> None:
    add_training_arguments(parser)
    add_weight_flag(parser)
    able = [method.id for method in METHODS if method.parameter("pareto")]
    parser.add_argument("--method", choices=able, default=able[0])
    parser.add_argument("--output", metavar="MODEL.json", help="write the model with the frontier in its certificate")


def run(options: Options) -> int:
    return run_training(_print_front, options)


def _print_front(options: Options, interrupts: Interrupts) -> None:
    method = get(options["method"])
    raw = checked_parameters(method, options, pareto=True)
    if raw.get("costs") and options["output"]:
        raise ParameterError(
            {"output": "a model file cannot hold a frontier of costs. Leave --output out, and use --json."}
        )
    table, labels, _ = read_data(options)
    request, earned = as_costs(TrainRequest(table=table, labels=labels, method=method.id, parameters=raw))
    if raw.get("costs"):
        costs = cost_frontier(request, interrupts.on_start)
        if costs is None or costs.coefficients is None:
            raise CommandError(ONE_CLASS)
        _print_costs(costs, best_reward(request, earned), options)
        return
    result = train(request, on_start=interrupts.on_start)
    if options["output"]:
        save(result.model, options["output"])
    evidence = {e["kind"]: e for e in result.certificate.evidence}
    if Evidence.LEAF_FRONTIER not in evidence:
        raise CommandError(ONE_CLASS)
    leaves = evidence[Evidence.LEAF_FRONTIER]
    coefficients = evidence[Evidence.COEFFICIENT_FRONTIER]
    points_by_axis = {
        "branchings": with_rows(leaves["points"], table, labels),
        "coefficients": with_rows(coefficients["points"], table, labels),
    }
    if options["json"]:
        record = {
            "n": leaves["n"],
            "status": str(result.certificate.status),
            "seconds": result.certificate.seconds,
            "branchings": points_by_axis["branchings"],
            "unsettled": [{"branchings": p["leaves"] - 1, "bound": p["bound"]} for p in leaves["unsettled"]],
            "coefficients": points_by_axis["coefficients"],
        } | weight_record(table)
        print(json.dumps(record, allow_nan=False))
        return
    _print_accuracies(points_by_axis, leaves["n"], table)
    if table.weights is None:
        print(training_base_words(result.tree))
    if (status := result.certificate.status) in ENDED_EARLY:
        print(f"ended early ({status}): larger trees may be better than this says")
    unit = "rows" if table.weights is None else "of weight"
    for p in leaves["unsettled"]:
        print(
            f"{p['leaves'] - 1} branchings: nothing better was found, at most {weighed_text(p['bound'], table)} {unit}"
        )


def _print_accuracies(points_by_axis: dict[str, list[dict[str, Any]]], n: int, table: Table) -> None:
    """Print a table of accuracies for each axis."""
    for axis, points in points_by_axis.items():
        rows = "" if table.weights is None else "     rows"
        print(f"{axis:>12}  correct{rows}  accuracy  proved")
        for p in points:
            proof = "yes" if p["proved"] else f"at most {weighed_text(p['bound'], table)}"
            rows = f"  {p['correct_rows']:7d}" if "correct_rows" in p else ""
            share = p["correct"] / n
            print(f"{p[axis]:12d}  {weighed_text(p['correct'], table):>7}{rows}  {share:8.4f}  {proof}")


def _print_costs(costs: CostFrontier, rewards: dict[str, Any], options: Options) -> None:
    """Print the least cost by branchings and by coefficients; `rewards` is a result of `best_reward`."""
    unsettled = [{"branchings": p["leaves"] - 1, "least": p["least"]} for p in costs.unsettled]
    if options["json"]:
        record = asdict(costs) | {"status": str(costs.status), "unsettled": unsettled}
        record["branchings"] = record.pop("points")
        print(json.dumps(record | rewards, allow_nan=False))
        return
    if rewards:
        print(best_reward_sentence(rewards, costs.unit))
    for axis, points in (("branchings", costs.points), ("coefficients", costs.coefficients or [])):
        print(f"{axis:>12}  {f'cost {costs.unit}'.rstrip():>14}  proved")
        for p in points:
            proof = "yes" if p["proved"] else f"at least {number_text(p['least'])}"
            print(f"{p[axis]:12d}  {number_text(p['cost']):>14}  {proof}")
    unit = f" {costs.unit}" if costs.unit else ""
    best = costs.best_constant
    print(f"Always answering {best['answer']} costs {number_text(best['cost'])}{unit}.")
    if costs.status in ENDED_EARLY:
        print(f"ended early ({costs.status}): larger trees may cost less than this says")
    for p in unsettled:
        least = number_text(p["least"])
        print(f"{p['branchings']} branchings: nothing cheaper was found, at least {least}{unit}")
