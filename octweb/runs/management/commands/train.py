"""`manage.py train`: one training run, by hand or as the child of a worker. It never opens the database."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from octweb.core.orphans import exit_with_parent
from octweb.runs.command import TrainingCommand, add_dependence_flags, with_schema
from octweb.runs.estimate import before_training, trainings_words
from trainer.certificate import Certificate, Status
from trainer.counts.folder import holds_counts, read_counts
from trainer.counts.train import METHOD as COUNTED
from trainer.counts.train import train_counts
from trainer.data.inspection import tree_warnings
from trainer.errors import DataError, ParameterError
from trainer.evaluate.verdict import read_verdict, summary_members
from trainer.methods.base import Method
from trainer.methods.monitor import Monitor
from trainer.registry import METHODS, get
from trainer.training.claims import (
    cost_sentence,
    goal_sentence,
    price_sentence,
    reward_sentence,
    size_sentence,
    splits_words,
    weight_sentence,
)
from trainer.training.proof_file import ProofLimits
from trainer.training.recovery import RecoveredRun, left_in
from trainer.training.rewarded import as_costs, with_reward
from trainer.training.run import TrainRequest, TrainResult, progress_writer, save, train, training_problem
from trainer.tree.describe import rules_text
from trainer.tree.file import ModelFile, read_model
from trainer.tree.numbers import count_words

ENDS = [str(status) for status in (Status.MEMORY_LIMIT, Status.TIME_LIMIT, Status.CANCELLED)]


# options that need rows
NEED_ROWS = (
    "test_share", "folds", "schema", "warm_start", "sha256", "proof", "killed", "progress", "group", "time", "weight", "ignore", "special",
)  # fmt: skip


class Command(TrainingCommand):
    help = "Train one tree on a CSV (also .gz), .xlsx, Parquet or Arrow file, or on a folder of counts (`count`)."
    target_required = False  # counts know theirs

    def add_arguments(self, parser):
        super().add_arguments(parser)
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
        parser.add_argument("--name", default="", help="a name, kept in the model file")
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

    def run(self, options: dict[str, Any]) -> None:
        exit_with_parent()
        method = get(options["method"])
        if holds_counts(options["data"]):
            self._from_counts(method, options)
            return
        if not options["target"]:
            raise ParameterError({"target": "name the column to predict."})
        raw = self.parameters(method, options)
        if options["sha256"]:
            _check_digest(Path(options["data"]), options["sha256"])
        table, labels = self.data(options)
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
        settings = method.settings(request.parameters)
        self.expected = before_training(method, settings, request.table, len(labels.classes))
        trainings = trainings_words(options["folds"], settings.get("time_limit"))
        self.stderr.write(
            f"note: {count_words(self.expected.rows, 'row')} × "
            f"{count_words(self.expected.questions, 'question' if method.binary else 'column')}, about "
            f"{self.expected.megabytes:,} MB; expected time: "
            + (f"in each training {self.expected.words}; {trainings}" if trainings else self.expected.words)
        )
        result = self._train(request, options["progress"], Status(options["ended"]))
        if options["output"]:
            save(result.model, options["output"])
        self._print(with_reward(result, request, earned), options)

    def _from_counts(self, method: Method, options: dict[str, Any]) -> None:
        """Train from a folder of counts. Raises ParameterError for what counts do not tell."""
        if method.id != COUNTED:
            raise ParameterError({"method": f"'{method.id}' needs rows. From counts: {COUNTED}."})
        if row_options := [name for name in NEED_ROWS if options[name]]:
            raise ParameterError({row_options[0]: "it needs rows; a folder of counts has none."})
        counts = read_counts(options["data"])
        if options["target"] not in (None, counts.questions.target):
            raise ParameterError({"target": f"the counts are about '{counts.questions.target}'."})
        result = train_counts(counts, self.parameters(method, options), name=options["name"])
        if options["output"]:
            save(result.model, options["output"])
        if result.certificate.note:
            self.stderr.write(f"note: {result.certificate.note}")
        if options["json"]:
            self.stdout.write(json.dumps(result.summary | summary_members(result.model), allow_nan=False))
            return
        self._write_tree(result.model, result.certificate, result.summary)

    def _train(self, request: TrainRequest, progress: str | None, ended: Status) -> TrainResult:
        if request.left is not None:
            return train(request, on_start=partial(_stand, request.left, ended))
        if not progress:
            return train(request, on_start=self.interrupts.on_start)
        problem = training_problem(request)
        with open(progress, "a", encoding="utf-8") as stream:
            return train(request, sink=progress_writer(stream, lambda: problem), on_start=self.interrupts.on_start)

    def reading(self, options: dict[str, Any]) -> dict[str, Any]:
        """Kinds, missing policies, units and roles from --schema, the rest guessed."""
        reading = super().reading(options)
        return with_schema(reading, options["schema"]) if options["schema"] else reading

    def _print(self, result: TrainResult, options: dict[str, Any]) -> None:
        if result.certificate.note:
            self.stderr.write(f"note: {result.certificate.note}")
        warnings = tree_warnings(result.tree, self.identifiers)
        for warning in warnings:
            self.stderr.write(f"warning: {warning}")
        if options["json"]:
            record = (
                result.summary
                | summary_members(result.model)
                | {"expected": asdict(self.expected), "rows_dropped": self.rows_dropped}
            )
            record |= {"warnings": warnings}
            self.stdout.write(json.dumps(record, allow_nan=False))
            return
        self._write_tree(result.model, result.certificate, result.summary)

    def _write_tree(self, model: ModelFile, c: Certificate, summary: dict[str, Any]) -> None:
        """Write the tree, what is claimed, and whether it is any good."""
        self.stdout.write(rules_text(model.tree))
        proof = (
            f"bound {c.bound:.6g}, gap {100 * c.gap:.3g} %" if c.bound is not None and c.gap is not None else "no bound"
        )
        if c.unproved:
            proof += f", not proved: {c.unproved}"
        if c.splits is not None:
            proof = splits_words(c.splits_proved or 0, c.splits)
        unit = "rows" if c.weights is None else "weights"
        self.stdout.write(
            f"{c.status}: {c.correct} of {c.n} {unit} correct, {c.leaves} {'leaf' if c.leaves == 1 else 'leaves'}, objective {c.objective:.6g}, {proof}, "
            f"{c.seconds:.3g} s"
        )
        if c.weights is not None:
            self.stdout.write(weight_sentence(model.certificate))
        if c.costs is not None:
            earns = f"{reward_sentence(summary)} " if "reward" in summary else ""
            self.stdout.write(f"{summary['claim']}. {earns}{cost_sentence(c.costs, priced=bool(c.column_prices))}")
        if sentence := price_sentence(model.certificate):
            self.stdout.write(sentence)
        if sentence := goal_sentence(model.certificate, model.parameters):
            self.stdout.write(sentence)
        if model.sizes is not None:
            self.stdout.write(size_sentence(model.sizes, str((c.costs or {}).get("unit", ""))))
        verdict = read_verdict(model)
        self.stdout.write(f"{verdict.sentence} Next: {verdict.next}")
        written = summary.get("proof")
        if written is not None:
            self.stdout.write(
                f"proof: {count_words(written['steps'], 'step')}, {written['bytes']} bytes, {written['seconds']} s"
                if written["made"]
                else f"no proof: {written['reason']}"
            )


def _stand(left: RecoveredRun, ended: Status, monitor: Monitor) -> None:
    """Put the clock where that of the killed training stood, and say why it ended."""
    monitor.started -= left.seconds
    monitor.stop(ended)


def _check_digest(path: Path, expected: str) -> None:
    with path.open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != expected:
            raise DataError(
                "The stored file of this data set was changed outside octweb, so nothing is trained on it. Upload it again."
            )
