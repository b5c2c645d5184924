"""`train`: train one tree, by hand or as a worker's child process."""

from __future__ import annotations

import hashlib
import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from trainer.certificate import Certificate, Progress, Status
from trainer.cli.command import Options, note
from trainer.cli.interrupts import Interrupts
from trainer.cli.orphans import exit_with_parent
from trainer.cli.reading_flags import flags_of
from trainer.cli.training import (
    add_dependence_flags,
    add_training_arguments,
    checked_parameters,
    counts_of,
    read_data,
    run_training,
)
from trainer.counts.folder import holds_counts
from trainer.counts.train import train_counts
from trainer.data.inspection import leak_findings, tree_warnings
from trainer.errors import DataError, ParameterError
from trainer.evaluate.verdict import read_verdict, summary_members
from trainer.methods.base import Method
from trainer.methods.monitor import COMPILING, Monitor, Sink
from trainer.registry import METHODS, get
from trainer.table import Labels, Table
from trainer.training.claims import (
    cost_sentence,
    goal_sentence,
    parts_claim,
    price_sentence,
    reward_sentence,
    size_sentence,
    weight_sentence,
)
from trainer.training.estimate import FitEstimate, estimate_fit, trainings_words
from trainer.training.proof_file import ProofLimits
from trainer.training.recovery import RecoveredRun, left_in
from trainer.training.rewarded import as_costs, with_reward
from trainer.training.run import TrainRequest, TrainResult, progress_writer, save, train, training_problem
from trainer.tree.describe import is_weighted, rules_text
from trainer.tree.file import ModelFile, read_model
from trainer.tree.nodes import Draft
from trainer.tree.numbers import count_words

MOST_LEAKS = 6  # more findings that accuracy may be too high are counted, not printed

ENDS = [str(status) for status in (Status.MEMORY_LIMIT, Status.TIME_LIMIT, Status.CANCELLED)]

# these options need rows, so they are refused for counts
HELP = "Train one tree on a CSV (also .gz), .xlsx, Parquet or Arrow file, or on a folder of counts (`count`)."


def add_arguments(parser: ArgumentParser) -> None:
    add_training_arguments(parser, target_required=False)  # a folder of counts already names its target
    add_dependence_flags(parser)
    parser.add_argument("--method", required=True, choices=[method.id for method in METHODS])
    parser.add_argument("--test-share", type=float, default=0.0, help="share of the rows held out for testing")
    parser.add_argument("--folds", type=int, default=0, help="folds of a cross-validation after training")
    parser.add_argument("--schema", metavar="FILE", help="JSON list of columns: name, kind, missing, unit, role")
    parser.add_argument(
        "--warm-start",
        metavar="MODEL.json",
        help="a model to begin with, for the methods that can (`methods` lists them)",
    )
    parser.add_argument("--sha256", help="refuse the data unless their file has this digest")
    parser.add_argument("--name", default="", help="a name, stored in the model file")
    parser.add_argument("--output", metavar="MODEL.json", help="where to write the model")
    parser.add_argument(
        "--proof",
        metavar="FILE",
        help="where to write the proof of the bound, for `verify --proof`; .jsonl.gz is usual",
    )
    parser.add_argument(
        "--proof-seconds", type=float, metavar="S", help="the longest time that writing the proof may take"
    )
    parser.add_argument(
        "--proof-size", type=float, metavar="MB", default=50.0, help="the largest proof that is written (50)"
    )
    parser.add_argument(
        "--killed",
        metavar="PROGRESS",
        help="search nothing: keep the last tree that a training with these arguments had written to this progress file when it was killed",
    )
    parser.add_argument(
        "--ended",
        choices=ENDS,
        default=str(Status.MEMORY_LIMIT),
        help="with --killed: what ended it (memory_limit)",
    )
    parser.add_argument("--progress", metavar="FILE", help="append one JSON line for each event")


def run(options: Options) -> int:
    exit_with_parent()
    return run_training(_train_from_counts if holds_counts(options["data"]) else _train_from_rows, options)


def _train_from_rows(options: Options, interrupts: Interrupts) -> None:
    method = get(options["method"])
    if not options["target"]:
        raise ParameterError({"target": "name the column to predict."})
    raw = checked_parameters(method, options)
    if options["sha256"]:
        _check_digest(Path(options["data"]), options["sha256"])
    table, labels, report = read_data(options)
    leaks = _leak_warnings(options, table, labels)
    for warning in leaks:
        _warn(warning)
    start = read_model(options["warm_start"]).tree if options["warm_start"] else None
    request, earned = as_costs(TrainRequest(table=table, labels=labels, method=method.id, parameters=raw))
    request = replace(
        request,
        test_share=options["test_share"],
        folds=options["folds"],
        name=options["name"],
        warm_start=start,
        proof=Path(options["proof"]) if options["proof"] else None,
        left=left_in(Path(options["killed"]), start) if options["killed"] else None,
        proof_limits=ProofLimits(seconds=options["proof_seconds"], size=int(options["proof_size"] * 1_000_000)),
    )
    expected = _estimate(method, request, len(labels.classes))
    result = _train(request, options, interrupts)
    if options["output"]:
        save(result.model, options["output"])
    result = with_reward(result, request, earned)
    if result.certificate.note:
        note(result.certificate.note)
    warnings = tree_warnings(result.tree)
    for warning in warnings:
        _warn(warning)
    if options["json"]:
        record = result.summary | summary_members(result.model)
        record |= {"expected": asdict(expected), "rows_dropped": report.rows_dropped}
        record |= {"warnings": leaks + warnings}
        print(json.dumps(record, allow_nan=False))
    else:
        _print_tree(result.model, result.certificate, result.summary)


def _leak_warnings(options: Options, table: Table, labels: Labels) -> list[str]:
    """Return what makes accuracy look better than it will be, each with its figure and the options that mend it."""
    found = leak_findings(table, labels, options["data"])
    warnings = []
    for finding in found[:MOST_LEAKS]:
        flags = flags_of(finding.mend)
        remedy = f" To leave it out: {flags}." if flags else f" {finding.if_nothing}"
        name = f"'{finding.column}'" if finding.column else "Equal rows"
        warnings.append(f"{name}: {finding.figure}. {finding.sentence}{remedy}")
    if len(found) > MOST_LEAKS:
        warnings.append(f"{len(found) - MOST_LEAKS} more such findings; `inspect` lists them all.")
    return warnings


def _warn(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)


def _estimate(method: Method, request: TrainRequest, classes: int) -> FitEstimate:
    """Estimate time and memory of the training, and note them."""
    settings = method.settings(request.parameters)
    expected = estimate_fit(method, settings, request.table, classes)
    trainings = trainings_words(request.folds, settings.get("time_limit"))
    seconds = f"in each training {expected.words}; {trainings}" if trainings else expected.words
    note(
        f"{count_words(expected.rows, 'row')} × "
        f"{count_words(expected.questions, 'question' if method.binary else 'column')}, about "
        f"{expected.megabytes:,} MB; expected time: {seconds}"
    )
    return expected


def _train(request: TrainRequest, options: Options, interrupts: Interrupts) -> TrainResult:
    if request.left is not None:
        return train(request, on_start=partial(_resume_clock, request.left, Status(options["ended"])))
    if not options["progress"]:
        return train(request, sink=_first_tree_noter(request), on_start=interrupts.on_start)
    problem = training_problem(request)
    with open(options["progress"], "a", encoding="utf-8") as stream:
        return train(request, sink=progress_writer(stream, lambda: problem), on_start=interrupts.on_start)


def _first_tree_noter(request: TrainRequest) -> Sink:
    """Return a sink that notes the first tree once, if the search waits for its kernels."""
    noted = False

    def write(progress: Progress, draft: Draft | None) -> None:
        nonlocal noted
        if noted or draft is None or progress.phase != COMPILING:
            return
        noted = True
        problem = training_problem(request)
        tree = problem.tree(draft)
        rows = f"{problem.correct(tree):,} of {count_words(problem.n, 'row')}"
        size = count_words(tree.n_leaves, "leaf", "leaves")
        note(f"compiling, only the first time; a quick first tree is right for {rows} with {size}")

    return write


def _resume_clock(run: RecoveredRun, ended: Status, monitor: Monitor) -> None:
    """Start the monitor's clock where the killed training ended, and stop it with the reason `ended`."""
    monitor.started -= run.seconds
    monitor.stop(ended)


def _train_from_counts(options: Options, interrupts: Interrupts) -> None:
    """Train from a folder of counts; raise ParameterError for options that need rows."""
    counts = counts_of(options)
    method = get(options["method"])
    result = train_counts(
        counts,
        checked_parameters(method, options),
        name=options["name"],
        proof=Path(options["proof"]) if options["proof"] else None,
        proof_size=int(options["proof_size"] * 1_000_000),
    )
    if options["output"]:
        save(result.model, options["output"])
    if result.certificate.note:
        note(result.certificate.note)
    if options["json"]:
        print(json.dumps(result.summary | summary_members(result.model), allow_nan=False))
    else:
        _print_tree(result.model, result.certificate, result.summary)


def _print_tree(model: ModelFile, c: Certificate, summary: dict[str, Any]) -> None:
    """Print the tree, its claims, and the verdict on it."""
    print(rules_text(model.tree, model.certificate), end="")
    weighted = is_weighted(model.certificate)
    unit = "weights" if weighted else "rows"
    leaves = f"{c.leaves} {'leaf' if c.leaves == 1 else 'leaves'}"
    print(
        f"{c.status}: {c.correct} of {c.n} {unit} correct, {leaves}, objective {c.objective:.6g}, {_proof_text(c)}, "
        f"{c.seconds:.3g} s"
    )
    if weighted:
        print(weight_sentence(model.certificate))
    if c.costs is not None:
        earns = f"{reward_sentence(summary)} " if "reward" in summary else ""
        print(f"{summary['claim']}. {earns}{cost_sentence(c.costs, priced=bool(c.column_prices))}")
    if sentence := price_sentence(model.certificate):
        print(sentence)
    if sentence := goal_sentence(model.certificate, model.parameters):
        print(sentence)
    if model.sizes is not None:
        print(size_sentence(model.sizes, str((c.costs or {}).get("unit", ""))))
    verdict = read_verdict(model)
    print(f"{verdict.sentence} Next: {verdict.next}")
    proof = summary.get("proof")
    if proof is None:
        return
    if proof["made"]:
        print(f"proof: {count_words(proof['steps'], 'step')}, {proof['bytes']} bytes, {proof['seconds']} s")
    else:
        print(f"no proof: {proof['reason']}")


def _proof_text(c: Certificate) -> str:
    """Return bound and gap, or the number of splits, or small subtrees, that are proved."""
    parts = parts_claim(c.to_json())
    if parts is not None:
        return parts.words
    text = "no bound"
    if c.bound is not None and c.gap is not None:
        text = f"bound {c.bound:.6g}, gap {100 * c.gap:.3g} %"
    return f"{text}, not proved: {c.unproved}" if c.unproved else text


def _check_digest(path: Path, expected: str) -> None:
    with path.open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != expected:
            raise DataError(
                "The stored file of this data set was changed outside octweb, so nothing is trained on it. Upload it again."
            )
