"""`manage.py train`: one training run, by hand or as the child of a worker. It never opens the database."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from octweb.core.orphans import exit_with_parent
from octweb.runs.interrupts import Cancelled, Interrupts
from octweb.runs.options import INFEASIBLE, add_parameter_flags, parameters_of
from trainer.data.reader import load
from trainer.errors import InfeasibleError, ModelFileError, ParameterError, TrainerError
from trainer.methods import METHODS, get
from trainer.run import TrainRequest, TrainResult, progress_writer, save, train, training_problem
from trainer.table import ColumnSchema, MissingPolicy
from trainer.tree.describe import rules_text
from trainer.tree.file import read

USAGE, FAILED = 2, 1


class Command(BaseCommand):
    help = "Train one tree on a CSV (also .gz) or Parquet file."
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser):
        parser.add_argument("data", metavar="DATA", help="CSV (also .gz) or Parquet")
        parser.add_argument("--target", required=True, metavar="COLUMN", help="the column to predict")
        parser.add_argument("--method", required=True, choices=[method.id for method in METHODS])
        add_parameter_flags(parser)
        parser.add_argument("--test-share", type=float, default=0.0, help="share of the rows held out for testing")
        parser.add_argument("--folds", type=int, default=0, help="folds of a cross-validation after training")
        parser.add_argument(
            "--missing", choices=[str(p) for p in MissingPolicy], default="drop", help="rows with empty cells"
        )
        parser.add_argument("--schema", metavar="FILE", help="JSON list of columns: name, kind, missing, unit, role")
        parser.add_argument("--ignore", action="append", default=[], metavar="COLUMN", help="a column to leave out")
        parser.add_argument(
            "--warm-start",
            metavar="MODEL.json",
            help="a model to begin with, for the methods that can (`methods` lists them)",
        )
        parser.add_argument("--name", default="", help="a name, kept in the model file")
        parser.add_argument("--output", metavar="MODEL.json", help="where to write the model")
        parser.add_argument("--progress", metavar="FILE", help="append one JSON line at each piece of news")
        parser.add_argument("--json", action="store_true", help="the last line of standard output is one JSON object")

    def handle(self, *args, **options):
        self.interrupts = Interrupts()
        exit_with_parent()
        try:
            result = self._train(options)
        except ParameterError as error:
            raise CommandError(str(error), returncode=USAGE) from error
        except InfeasibleError as error:
            if options["json"]:
                record = {"status": INFEASIBLE, "reason": _line(str(error)), "best": error.best, "best_of": error.of}
                self.stdout.write(json.dumps(record, allow_nan=False))
            raise CommandError(_line(str(error)), returncode=FAILED) from error
        except (TrainerError, OSError) as error:
            raise CommandError(_line(str(error)), returncode=FAILED) from error
        except Cancelled as error:
            raise CommandError("cancelled before a tree was found", returncode=FAILED) from error
        except MemoryError as error:
            raise CommandError(
                "out of memory; set a lower memory limit or a smaller depth", returncode=FAILED
            ) from error
        self._print(result, options)

    def _train(self, options: dict[str, Any]) -> TrainResult:
        method = get(options["method"])
        raw, unused = parameters_of(method, options)
        for name in unused:
            self.stderr.write(f"note: --{name.replace('_', '-')} has no effect on the method '{method.id}'")
        method.settings(raw)  # refuse bad parameters before reading a large file
        if options["output"]:
            _check_folder(options["output"])
        table, labels, report = load(options["data"], **_reading(options))
        for note in report.notes:
            self.stderr.write(f"note: {note}")
        request = TrainRequest(
            table=table,
            labels=labels,
            method=method.id,
            parameters=raw,
            test_share=options["test_share"],
            folds=options["folds"],
            name=options["name"],
            warm_start=read(options["warm_start"]).tree if options["warm_start"] else None,
        )
        result = self._run(request, options["progress"])
        if options["output"]:
            save(result.model, options["output"])
        return result

    def _run(self, request: TrainRequest, progress: str | None) -> TrainResult:
        if not progress:
            return train(request, on_start=self.interrupts.on_start)
        problem = training_problem(request)
        with open(progress, "a", encoding="utf-8") as stream:
            return train(request, sink=progress_writer(stream, lambda: problem), on_start=self.interrupts.on_start)

    def _print(self, result: TrainResult, options: dict[str, Any]) -> None:
        if options["json"]:
            self.stdout.write(json.dumps(result.summary, allow_nan=False))
            return
        c = result.certificate
        self.stdout.write(rules_text(result.tree))
        proof = (
            f"bound {c.bound:.6g}, gap {100 * c.gap:.3g} %" if c.bound is not None and c.gap is not None else "no bound"
        )
        if c.unproved:
            proof += f", not proved: {c.unproved}"
        if c.splits is not None:
            proof = f"{c.splits_proved} of {c.splits} splits proved"
        self.stdout.write(
            f"{c.status}: {c.correct} of {c.n} rows correct, {c.leaves} leaves, objective {c.objective:.6g}, {proof}, "
            f"{c.seconds:.3g} s"
        )


def _reading(options: dict[str, Any]) -> dict[str, Any]:
    """How to read the table: kinds, missing policies, units and roles from --schema, the rest guessed."""
    reading: dict[str, Any] = {
        "target": options["target"],
        "ignore": list(options["ignore"]),
        "default_missing": MissingPolicy(options["missing"]),
    }
    if not options["schema"]:
        return reading
    try:
        records = json.loads(Path(options["schema"]).read_text(encoding="utf-8"))
        columns = [(ColumnSchema.from_json(record), record.get("role", "feature")) for record in records]
    except (ValueError, TypeError, AttributeError) as error:
        raise ModelFileError(f"The schema file is no JSON list of columns: {error}.") from error
    features = [schema for schema, role in columns if role == "feature"]
    return reading | {
        "kinds": {c.name: c.kind for c in features},
        "missing": {c.name: c.missing for c in features},
        "units": {c.name: c.unit for c in features if c.unit},
        "ignore": reading["ignore"] + [c.name for c, role in columns if role == "ignored"],
    }


def _check_folder(output: str) -> None:
    folder = Path(output).resolve().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ParameterError({"output": f"the folder of '{output}' does not exist or cannot be written to."})


def _line(text: str) -> str:
    return " ".join(text.split())
