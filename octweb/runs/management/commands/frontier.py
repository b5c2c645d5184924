"""`manage.py frontier`: the best trade-offs of a data set, each proved. It never opens the database.

`--method odt`: all pairs of sensitivity and specificity. `--method exact`: the most rows correct for each number of leaves.
"""

from __future__ import annotations

import json

from django.core.management.base import BaseCommand, CommandError

from octweb.figures.reach import open_question, shares, steps
from octweb.runs.interrupts import Cancelled, Interrupts
from octweb.runs.options import add_parameter_flags, parameters_of
from trainer.certificate import Certificate
from trainer.data.reader import load
from trainer.errors import ParameterError, TrainerError
from trainer.methods import get
from trainer.run import TrainRequest, train
from trainer.table import MissingPolicy

USAGE, FAILED = 2, 1
MOST_LEAVES = 1 << 10


class Command(BaseCommand):
    help = (
        "All pairs of sensitivity and specificity (odt), or accuracy for each number of leaves (exact), that trees reach on "
        "a CSV (also .gz) or Parquet file."
    )
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser):
        parser.add_argument("data", metavar="DATA", help="CSV (also .gz) or Parquet")
        parser.add_argument(
            "--target", required=True, metavar="COLUMN", help="the column to predict; odt needs two classes"
        )
        parser.add_argument("--method", choices=("odt", "exact"), default="odt")
        parser.add_argument("--markdown", action="store_true", help="a table in Markdown (exact)")
        add_parameter_flags(parser)
        parser.add_argument(
            "--missing", choices=[str(p) for p in MissingPolicy], default="drop", help="rows with empty cells"
        )
        parser.add_argument("--ignore", action="append", default=[], metavar="COLUMN", help="a column to leave out")
        parser.add_argument("--json", action="store_true", help="the last line of standard output is one JSON object")

    def handle(self, *args, **options):
        method = get(options["method"])
        interrupts = Interrupts()
        wanted = {"odt": "frontier", "exact": "leaf-frontier"}[method.id]
        try:
            raw, unused = parameters_of(method, options)
            for name in unused:
                self.stderr.write(f"note: --{name.replace('_', '-')} has no effect on the method '{method.id}'")
            if method.id == "exact":
                raw["max_leaves"] = raw.get("max_leaves") or min(1 << method.settings(raw)["depth"], MOST_LEAVES)
            else:
                raw["frontier"] = True
            table, labels, _ = load(
                options["data"],
                target=options["target"],
                ignore=list(options["ignore"]),
                default_missing=MissingPolicy(options["missing"]),
            )
            request = TrainRequest(table=table, labels=labels, method=method.id, parameters=raw)
            certificate = train(request, on_start=interrupts.on_start).certificate
        except ParameterError as error:
            raise CommandError(str(error), returncode=USAGE) from error
        except Cancelled as error:
            raise CommandError("cancelled before a tree was found", returncode=FAILED) from error
        except (TrainerError, OSError) as error:
            raise CommandError(" ".join(str(error).split()), returncode=FAILED) from error
        kept = next((e for e in certificate.evidence if e["kind"] == wanted), None)
        if kept is None:
            raise CommandError("The rows have one class only; there is no frontier.", returncode=FAILED)
        if method.id == "exact":
            self._leaves(kept, certificate, options)
            return
        points = shares(kept)
        if options["json"]:
            record = {"positive": kept["positive"], "status": kept["status"], "seconds": certificate.seconds}
            record |= {"finished": kept["finished"], "points": points, "bounds": steps(kept)}
            self.stdout.write(json.dumps(record, allow_nan=False))
            return
        self.stdout.write(f"positive class: {kept['positive']}\nsensitivity  specificity  proved")
        for point in points:
            proof = "yes" if point["proved"] else open_question(point, 2)
            self.stdout.write(f"{point['sensitivity']:11.4f}  {point['specificity']:11.4f}  {proof}")
        if not kept["finished"]:
            self.stdout.write(f"stopped ({kept['status']}): other pairs may be reachable")

    def _leaves(self, kept: dict, certificate: Certificate, options: dict) -> None:
        """Accuracy for each number of leaves that is worth having."""
        n = kept["n"]
        points = [
            point | {"accuracy": point["correct"] / n, "largest_accuracy": point["bound"] / n}
            for point in kept["points"]
        ]
        if options["json"]:
            record = {"n": n, "status": str(certificate.status), "seconds": certificate.seconds}
            self.stdout.write(json.dumps(record | {"points": points, "unsettled": kept["unsettled"]}, allow_nan=False))
            return
        bar = "| " if options["markdown"] else ""
        self.stdout.write(f"{bar}leaves {bar} correct {bar} accuracy {bar} proved {bar}".strip())
        if options["markdown"]:
            self.stdout.write("|---|---|---|---|")
        for p in points:
            proof = "yes" if p["proved"] else f"at most {p['bound']}"
            self.stdout.write(
                f"{bar}{p['leaves']:6d} {bar}{p['correct']:8d} {bar}{p['accuracy']:9.4f} {bar} {proof} {bar}".strip()
            )
        for p in kept["unsettled"]:
            self.stdout.write(f"{p['leaves']} leaves: nothing better was found, at most {p['bound']} rows")
