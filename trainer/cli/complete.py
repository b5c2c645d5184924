"""`complete`: find the best tree under the user's wishes.

It also prints the price of each wish and can write a proof.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path

from trainer.certificate import Certificate
from trainer.cli.command import CommandError, Options, error_text
from trainer.cli.interrupts import Interrupts
from trainer.cli.orphans import exit_with_parent
from trainer.cli.parameters import INFEASIBLE
from trainer.cli.training import (
    add_dependence_flags,
    add_training_arguments,
    checked_parameters,
    counts_of,
    editing_request,
    read_data,
    run_training,
)
from trainer.counts.folder import holds_counts
from trainer.counts.workbench import complete_counts
from trainer.editing.complete import ConflictError
from trainer.editing.words import check_reasons
from trainer.errors import ParameterError
from trainer.evaluate.verdict import training_base_words
from trainer.methods.capabilities import Role
from trainer.registry import editable_ids, get, method_for
from trainer.training.claims import cost_sentence, read_claim, reward_sentence, weight_sentence
from trainer.training.rewarded import with_reward
from trainer.training.run import save
from trainer.tree.describe import is_weighted, rules_text
from trainer.tree.file import ModelFile
from trainer.workbench.requests import WorkbenchSession

HELP = (
    "The best tree that keeps some wishes on a CSV (also .gz), .xlsx, Parquet or Arrow file, or on a folder of counts, and "
    "what each wish costs."
)


def add_arguments(parser: ArgumentParser) -> None:
    add_training_arguments(parser, target_required=False)  # a folder of counts already names its target
    add_dependence_flags(parser)
    parser.add_argument("--method", default=method_for(Role.ONE_PROVED).id, choices=editable_ids())
    parser.add_argument(
        "--wish",
        dest="wishes",
        action="append",
        default=[],
        metavar="WISH",
        help="'ask PLACE COLUMN <= VALUE' (and 'empty yes' or 'empty no'), 'ask PLACE COLUMN is empty', 'ask PLACE COLUMN in A|B', 'ask PLACE COLUMN', 'forbid PLACE COLUMN' (there and below), "
        "'avoid PLACE COLUMN' (there only), 'together PLACE COLUMN in A|B' (odt), 'leaf PLACE [CLASS]' or 'depth PLACE N'; "
        "PLACE is root or the answers from the root, as yn",
    )
    parser.add_argument(
        "--reason",
        dest="reasons",
        action="append",
        nargs=2,
        default=[],
        metavar=("WISH", "TEXT"),
        help="why you have a wish, above all for a class set by hand; kept with the wish in the model file",
    )
    parser.add_argument("--test-share", type=float, default=0.0, help="share of the rows held out for testing")
    parser.add_argument("--name", default="", help="a name, stored in the model file")
    parser.add_argument("--output", metavar="MODEL.json", help="where to write the model")
    parser.add_argument("--proof", metavar="FILE", help="where to write a proof of the bound that 'verify' checks")
    parser.add_argument(
        "--no-prices",
        action="store_true",
        help="report the best tree with the wishes, without their prices; a proof does not check the prices of large problems",
    )


def run(options: Options) -> int:
    exit_with_parent()
    return run_training(_complete_counts if holds_counts(options["data"]) else _complete, options)


def _complete_counts(options: Options, interrupts: Interrupts) -> None:
    """Complete wishes on a folder of counts."""
    counts = counts_of(options)
    raw = checked_parameters(get(options["method"]), options)
    proof = None if options["proof"] is None else Path(options["proof"])
    try:
        result = complete_counts(
            counts, options["wishes"], raw, reasons=dict(options["reasons"]), name=options["name"], proof=proof
        )
    except ConflictError as error:
        raise _conflict(error, options) from error
    if options["output"]:
        save(result.model, options["output"])
    if options["json"]:
        print(json.dumps(result.summary, allow_nan=False))
        return
    _print(result.model, result.certificate)


def _conflict(error: ConflictError, options: Options) -> CommandError:
    """Return the error of a conflict, and print its record with `--json`."""
    if options["json"]:
        print(json.dumps({"status": INFEASIBLE, "conflict": list(error.conflict), "reason": error.reason}))
    return CommandError(error_text(error))


def _complete(options: Options, interrupts: Interrupts) -> None:
    if not options["target"]:
        raise ParameterError({"target": "name the column to predict."})
    raw = checked_parameters(get(options["method"]), options)
    table, labels, _ = read_data(options)
    request, earned = editing_request(options, table, labels, raw)
    session = WorkbenchSession(request)
    session.bench.wishes(options["wishes"])
    reasons = check_reasons(dict(options["reasons"]), options["wishes"])
    monitor = session.monitor()
    interrupts.on_start(monitor)
    completion = session.complete(options["wishes"], monitor, prices=not options["no_prices"])
    try:
        proof = None if options["proof"] is None else Path(options["proof"])
        result = with_reward(session.result(completion, monitor, proof, reasons=reasons), request, earned)
    except ConflictError as error:
        raise _conflict(error, options) from error
    if options["output"]:
        save(result.model, options["output"])
    if options["json"]:
        print(json.dumps(result.summary, allow_nan=False))
        return
    _print(result.model, result.certificate, "" if earned is None else reward_sentence(result.summary))


def _print(model: ModelFile, c: Certificate, reward: str = "") -> None:
    """Print the tree, its claim, and the price of each wish."""
    claim = read_claim(model.certificate)
    print(rules_text(model.tree, model.certificate), end="")
    print(training_base_words(model.tree, model.certificate))
    weighted = is_weighted(model.certificate)
    unit = "weights" if weighted else "rows"
    print(f"{claim.words}: {c.correct} of {c.n} {unit} correct, {c.leaves} leaves, objective {c.objective:.6g}")
    if weighted:
        print(weight_sentence(model.certificate))
    if reward:
        print(reward)
    if c.costs is not None:
        print(cost_sentence(c.costs, wishes=bool(claim.wishes)))
    for wish in claim.wishes:
        why = f" (reason: {wish['reason']})" if wish["reason"] else ""
        print(f"{wish['price_words']}: {wish['words']}{why}")
