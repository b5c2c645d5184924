"""`manage.py frontier`: every reachable pair of sensitivity and specificity of a data set, each proved. It never opens the database."""

from __future__ import annotations

import json

from django.core.management.base import BaseCommand, CommandError

from octweb.runs.options import add_parameter_flags, parameters_of
from trainer.data.reader import load
from trainer.errors import ParameterError, TrainerError
from trainer.methods import get
from trainer.run import TrainRequest, train
from trainer.table import MissingPolicy

USAGE, FAILED = 2, 1


class Command(BaseCommand):
    help = (
        "All pairs of sensitivity and specificity that trees of a topology reach on a CSV (also .gz) or Parquet file."
    )
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser):
        parser.add_argument("data", metavar="DATA", help="CSV (also .gz) or Parquet")
        parser.add_argument("--target", required=True, metavar="COLUMN", help="the column to predict, of two classes")
        add_parameter_flags(parser)
        parser.add_argument(
            "--missing", choices=[str(p) for p in MissingPolicy], default="drop", help="rows with empty cells"
        )
        parser.add_argument("--ignore", action="append", default=[], metavar="COLUMN", help="a column to leave out")
        parser.add_argument("--json", action="store_true", help="the last line of standard output is one JSON object")

    def handle(self, *args, **options):
        method = get("odt")
        try:
            raw, unused = parameters_of(method, options)
            for name in unused:
                self.stderr.write(f"note: --{name.replace('_', '-')} has no effect on the method 'odt'")
            table, labels, _ = load(
                options["data"],
                target=options["target"],
                ignore=list(options["ignore"]),
                default_missing=MissingPolicy(options["missing"]),
            )
            request = TrainRequest(table=table, labels=labels, method="odt", parameters=raw | {"frontier": True})
            certificate = train(request).certificate
        except ParameterError as error:
            raise CommandError(str(error), returncode=USAGE) from error
        except (TrainerError, OSError) as error:
            raise CommandError(" ".join(str(error).split()), returncode=FAILED) from error
        kept = next((e for e in certificate.evidence if e["kind"] == "frontier"), None)
        if kept is None:
            raise CommandError("The rows have one class only; there is no frontier.", returncode=FAILED)
        points = frontier_points(kept)
        if options["json"]:
            record = {"positive": kept["positive"], "status": str(certificate.status), "seconds": certificate.seconds}
            self.stdout.write(json.dumps(record | {"points": points}, allow_nan=False))
            return
        self.stdout.write(f"positive class: {kept['positive']}\nsensitivity  specificity  proved")
        for point in points:
            proof = "yes" if point["proved"] else f"at most {point['bound']:.4f}"
            self.stdout.write(f"{point['sensitivity']:11.4f}  {point['specificity']:11.4f}  {proof}")


def frontier_points(kept: dict) -> list[dict]:
    """The pairs of the evidence as shares, by rising sensitivity."""
    P, N = max(1, kept["positives"]), max(1, kept["negatives"])
    return [
        {"sensitivity": tp / P, "specificity": tn / N, "bound": bound / N, "proved": bound == tn}
        for tp, tn, bound in kept["pairs"]
    ]
