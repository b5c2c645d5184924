"""`manage.py pareto`: accuracy against size for trees of hyperplanes, each point proved or with its bound. No database is opened."""

from __future__ import annotations

import json

from django.core.management.base import BaseCommand, CommandError

from octweb.runs.interrupts import Cancelled, Interrupts
from octweb.runs.options import add_parameter_flags, parameters_of
from trainer.certificate import Status
from trainer.data.reader import load
from trainer.errors import ParameterError, TrainerError
from trainer.methods import get
from trainer.run import TrainRequest, save, train
from trainer.table import MissingPolicy

USAGE, FAILED = 2, 1


class Command(BaseCommand):
    help = "Most rows correct for each number of branchings, and for few coefficients, on a CSV (also .gz) or Parquet file."
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser):
        parser.add_argument("data", metavar="DATA", help="CSV (also .gz) or Parquet")
        parser.add_argument("--target", required=True, metavar="COLUMN", help="the column to predict")
        parser.add_argument("--method", choices=("cut-h", "cutw-h"), default="cut-h")
        parser.add_argument(
            "--output", metavar="MODEL.json", help="write the model with the frontier in its certificate"
        )
        add_parameter_flags(parser)
        parser.add_argument(
            "--missing", choices=[str(p) for p in MissingPolicy], default="drop", help="rows with empty cells"
        )
        parser.add_argument("--ignore", action="append", default=[], metavar="COLUMN", help="a column to leave out")
        parser.add_argument("--json", action="store_true", help="the last line of standard output is one JSON object")

    def handle(self, *args, **options):
        method = get(options["method"])
        interrupts = Interrupts()
        try:
            raw, unused = parameters_of(method, options)
            for name in unused:
                self.stderr.write(f"note: --{name.replace('_', '-')} has no effect on the method '{method.id}'")
            table, labels, _ = load(
                options["data"],
                target=options["target"],
                ignore=list(options["ignore"]),
                default_missing=MissingPolicy(options["missing"]),
            )
            request = TrainRequest(table=table, labels=labels, method=method.id, parameters=raw | {"pareto": True})
            result = train(request, on_start=interrupts.on_start)
            if options["output"]:
                save(result.model, options["output"])
        except ParameterError as error:
            raise CommandError(str(error), returncode=USAGE) from error
        except Cancelled as error:
            raise CommandError("cancelled before a tree was found", returncode=FAILED) from error
        except (TrainerError, OSError) as error:
            raise CommandError(" ".join(str(error).split()), returncode=FAILED) from error
        kept = {e["kind"]: e for e in result.certificate.evidence}
        if "leaf-frontier" not in kept:
            raise CommandError("The rows have one class only; there is no frontier.", returncode=FAILED)
        leaves, coefficients = kept["leaf-frontier"], kept["coefficient-frontier"]
        if options["json"]:
            record = {
                "n": leaves["n"],
                "status": str(result.certificate.status),
                "seconds": result.certificate.seconds,
                "branchings": leaves["points"],
                "unsettled": [{"branchings": p["leaves"] - 1, "bound": p["bound"]} for p in leaves["unsettled"]],
                "coefficients": coefficients["points"],
            }
            self.stdout.write(json.dumps(record, allow_nan=False))
            return
        for title, axis, points in (
            ("branchings", "branchings", leaves["points"]),
            ("coefficients", "coefficients", coefficients["points"]),
        ):
            self.stdout.write(f"{title:>12}  correct  accuracy  proved")
            for p in points:
                proof = "yes" if p["proved"] else f"at most {p['bound']}"
                self.stdout.write(f"{p[axis]:12d}  {p['correct']:7d}  {p['correct'] / leaves['n']:8.4f}  {proof}")
        if (status := result.certificate.status) in (Status.CANCELLED, Status.TIME_LIMIT, Status.MEMORY_LIMIT):
            self.stdout.write(f"ended early ({status}): larger trees may be better than this says")
        for p in leaves["unsettled"]:
            self.stdout.write(f"{p['leaves'] - 1} branchings: nothing better was found, at most {p['bound']} rows")
