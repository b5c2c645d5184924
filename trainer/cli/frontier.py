"""`frontier`: print the Pareto front of a data set, each point proved.

With `--method odt`, it has all pairs of sensitivity and specificity. With `--method exact`, it has the most
correct rows for each number of leaves, or with `--cost` the least cost.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from fractions import Fraction
from functools import partial
from typing import Any

from trainer.certificate import Certificate, Evidence
from trainer.cli.command import CommandError, Options, note
from trainer.cli.interrupts import Interrupts
from trainer.cli.training import (
    add_training_arguments,
    add_weight_flag,
    checked_parameters,
    counts_of,
    read_data,
    run_training,
    weighed_text,
    weight_record,
    with_rows,
)
from trainer.constraints import active_constraints
from trainer.constraints.leaves import LEAVES
from trainer.counts.folder import holds_counts
from trainer.counts.frontier import CountedFrontier, leaf_frontier
from trainer.errors import ParameterError
from trainer.goal import count_goal
from trainer.methods.base import Method
from trainer.registry import METHODS, get
from trainer.table import Table
from trainer.training.claims import rounded_classes_sentence
from trainer.training.cost_frontier import CostFrontier, cost_frontier
from trainer.training.rewarded import as_costs, best_reward, best_reward_sentence
from trainer.training.run import TrainRequest, train
from trainer.training.sensitivity_frontier import frontier_bounds, frontier_points, open_bound_text
from trainer.tree.describe import number_text

MOST_LEAVES = 1 << 10
ONE_CLASS = "The rows have only one class, so there is no frontier."

HELP = (
    "All pairs of sensitivity and specificity (odt), or accuracy for each number of leaves (exact), that trees reach on "
    "a CSV (also .gz), .xlsx, Parquet or Arrow file, or with exact on a folder of counts."
)


def add_arguments(parser: ArgumentParser) -> None:
    add_training_arguments(parser, target_help="the column to predict; odt needs two classes", target_required=False)
    add_weight_flag(parser)
    able = [method.id for method in METHODS if method.parameter("frontier")]
    able += [method.id for method in METHODS if method.leaf_frontier]
    parser.add_argument("--method", choices=able, default=able[0])
    parser.add_argument("--markdown", action="store_true", help="a table in Markdown (exact)")


def run(options: Options) -> int:
    return run_training(_print_frontier, options)


def _print_frontier(options: Options, interrupts: Interrupts) -> None:
    method = get(options["method"])
    raw = _frontier_parameters(method, options)
    if holds_counts(options["data"]):
        _print_counted(leaf_frontier(counts_of(options), raw), options)
        return
    if not options["target"]:
        raise ParameterError({"target": "name the column to predict."})
    table, labels, _ = read_data(options)
    request, earned = as_costs(TrainRequest(table=table, labels=labels, method=method.id, parameters=raw))
    if raw.get("costs"):
        costs = cost_frontier(request, interrupts.on_start)
        if costs is None:
            raise CommandError(ONE_CLASS)
        _print_costs(costs, best_reward(request, earned), options)
        return
    certificate = train(request, on_start=interrupts.on_start).certificate
    kind = Evidence.LEAF_FRONTIER if method.leaf_frontier else Evidence.FRONTIER
    evidence = next((e for e in certificate.evidence if e["kind"] == kind), None)
    if evidence is None:
        raise CommandError(ONE_CLASS)
    if method.leaf_frontier:
        evidence = evidence | {"points": with_rows(evidence["points"], table, labels)}
        _print_leaves(evidence, str(certificate.status), certificate.seconds, table, options, certificate.class_weights)
    else:
        _print_pairs(evidence, certificate, table, options)


def _print_counted(frontier: CountedFrontier, options: Options) -> None:
    """Print the frontier of leaves from counts."""
    if frontier.objective.costs is not None:
        _print_costs(frontier.costs(), {}, options)
    else:
        _print_leaves(frontier.evidence, str(frontier.status), frontier.seconds, Table(columns=()), options)


def _print_pairs(evidence: dict[str, Any], certificate: Certificate, table: Table, options: Options) -> None:
    """Print the pairs of sensitivity and specificity."""
    points = frontier_points(evidence)
    if options["json"]:
        record = {"positive": evidence["positive"], "status": evidence["status"], "seconds": certificate.seconds}
        record |= {"finished": evidence["finished"], "points": points, "bounds": frontier_bounds(evidence)}
        print(json.dumps(record | weight_record(table), allow_nan=False))
        return
    print(f"positive class: {evidence['positive']}\nsensitivity  specificity  proved")
    for point in points:
        proof = "yes" if point["proved"] else open_bound_text(point, 2)
        print(f"{point['sensitivity']:11.4f}  {point['specificity']:11.4f}  {proof}")
    if not evidence["finished"]:
        print(f"stopped ({evidence['status']}): other pairs may be reachable")


def _frontier_parameters(method: Method, options: Options) -> dict[str, Any]:
    """Return the parameters, with those that make the method record its frontier."""
    if not method.leaf_frontier:
        return checked_parameters(method, options, frontier=True)
    raw = checked_parameters(method, options)
    if count_goal(raw):
        raise ParameterError({"goal": "the frontier counts errors. Leave the goal out, or use 'train'."})
    settings = method.settings(raw)
    unsupported = [
        *sorted(active_constraints(settings) - {LEAVES.name}),
        *(name for name in ("column_price", "optimal_trees") if settings[name]),
    ]
    if unsupported:
        raise ParameterError({unsupported[0]: "the frontier does not support it. Leave it out, or use 'train'."})
    depth = settings["depth"]
    if depth is None:
        raise ParameterError({"depth": "the frontier needs a number of questions, not 'none'."})
    most = min(1 << depth, MOST_LEAVES)
    return {"leaf_penalty": 0.0} | raw | {"max_leaves": raw.get("max_leaves") or most}


def _print_costs(costs: CostFrontier, rewards: dict[str, Any], options: Options) -> None:
    """Print the least cost for each number of leaves on the front; `rewards` is a result of `best_reward`."""
    if options["json"]:
        record = {name: value for name, value in asdict(costs).items() if value is not None}
        print(json.dumps(record | {"status": str(costs.status)} | rewards, allow_nan=False))
        return
    if rewards:
        print(best_reward_sentence(rewards, costs.unit))
    bar = "| " if options["markdown"] else ""
    print(f"{bar}leaves {bar}{f'cost {costs.unit}'.rstrip():>14} {bar} proved {bar}".strip())
    if options["markdown"]:
        print("|---|---|---|")
    for p in costs.points:
        proof = "yes" if p["proved"] else f"at least {number_text(p['least'])}"
        print(f"{bar}{p['leaves']:6d} {bar}{number_text(p['cost']):>14} {bar} {proof} {bar}".strip())
    for p in costs.unsettled:
        print(f"{p['leaves']} leaves: nothing cheaper was found, at least {number_text(p['least'])}")


def _print_leaves(
    evidence: dict[str, Any],
    status: str,
    seconds: float,
    table: Table,
    options: Options,
    class_weights: dict[str, Any] | None = None,
) -> None:
    """Print the accuracy for each number of leaves on the front; `class_weights` is the record of the certificate."""
    n = evidence["n"]
    points = [
        point | {"accuracy": point["correct"] / n, "largest_accuracy": point["bound"] / n}
        for point in evidence["points"]
    ]
    if options["json"]:
        record = {"n": n, "status": status, "seconds": seconds}
        record |= {"points": points, "unsettled": evidence["unsettled"]} | weight_record(table)
        record |= {} if class_weights is None else {"class_weights": class_weights}
        print(json.dumps(record, allow_nan=False))
        return
    bar = "| " if options["markdown"] else ""
    rows = "" if table.weights is None else f"     rows {bar}"
    unit = "rows" if table.weights is None and class_weights is None else "of weight"
    # a count of balanced classes is not a multiple of the step
    text = str if class_weights is not None else partial(weighed_text, table=table)
    print(f"{bar}leaves {bar} correct {bar}{rows} accuracy {bar} proved {bar}".strip())
    if options["markdown"]:
        print(f"|---|---|---|{'---|' if rows else ''}---|")
    for p in points:
        proof = "yes" if p["proved"] else f"at most {text(p['bound'])}"
        rows = f"{p['correct_rows']:8d} {bar}" if "correct_rows" in p else ""
        correct = text(p["correct"])
        print(f"{bar}{p['leaves']:6d} {bar}{correct:>8} {bar}{rows}{p['accuracy']:9.4f} {bar} {proof} {bar}".strip())
    if class_weights is not None:
        factors = [
            f"{name} {number_text(float(Fraction(weight)), 4)}" for name, weight in class_weights["weights"].items()
        ]
        note(f"'correct' counts weights that make all classes equally heavy ({', '.join(factors)})")
        if class_weights.get("error"):
            note(rounded_classes_sentence(class_weights["error"]))
    note("a tree of 1 leaf always gives the most frequent class")
    for p in evidence["unsettled"]:
        most = text(p["bound"])
        print(f"{p['leaves']} leaves: nothing better was found, at most {most} {unit}")
