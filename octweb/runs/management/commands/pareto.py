"""`manage.py pareto`: accuracy or cost against size for trees of hyperplanes, each point proved or with its bound.

It never opens the database.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError

from octweb.runs.command import FAILED, TrainingCommand, add_weight_flag, weighed_text, weight_record, with_rows
from trainer.certificate import Evidence, Status
from trainer.errors import ParameterError
from trainer.evaluate.verdict import training_base_words
from trainer.registry import METHODS, get
from trainer.training.cost_frontier import cost_frontier
from trainer.training.rewarded import as_costs, best_reward, best_reward_sentence
from trainer.training.run import TrainRequest, save, train
from trainer.tree.describe import number_text

ENDED_EARLY = (Status.CANCELLED, Status.TIME_LIMIT, Status.MEMORY_LIMIT)


class Command(TrainingCommand):
    help = (
        "Most rows correct, or with --cost the least cost, for each number of branchings, and for few coefficients, on a CSV "
        "(also .gz), .xlsx, Parquet or Arrow file."
    )

    def add_arguments(self, parser):
        super().add_arguments(parser)
        add_weight_flag(parser)
        able = [method.id for method in METHODS if method.parameter("pareto")]
        parser.add_argument("--method", choices=able, default=able[0])
        parser.add_argument(
            "--output", metavar="MODEL.json", help="write the model with the frontier in its certificate"
        )

    def run(self, options: dict[str, Any]) -> None:
        method = get(options["method"])
        raw = self.parameters(method, options, pareto=True)
        if raw.get("costs") and options["output"]:
            raise ParameterError({"output": "a model file has no frontier of costs. Leave it out, or use --json."})
        table, labels = self.data(options)
        request, earned = as_costs(TrainRequest(table=table, labels=labels, method=method.id, parameters=raw))
        if raw.get("costs"):
            self._costs(request, best_reward(request, earned), options)
            return
        result = train(request, on_start=self.interrupts.on_start)
        if options["output"]:
            save(result.model, options["output"])
        evidence = {e["kind"]: e for e in result.certificate.evidence}
        if Evidence.LEAF_FRONTIER not in evidence:
            raise CommandError("The rows have only one class, so there is no frontier.", returncode=FAILED)
        leaves = evidence[Evidence.LEAF_FRONTIER]
        coefficients = evidence[Evidence.COEFFICIENT_FRONTIER]
        shown = {
            "branchings": with_rows(leaves["points"], table, labels),
            "coefficients": with_rows(coefficients["points"], table, labels),
        }
        if options["json"]:
            record = {
                "n": leaves["n"],
                "status": str(result.certificate.status),
                "seconds": result.certificate.seconds,
                "branchings": shown["branchings"],
                "unsettled": [{"branchings": p["leaves"] - 1, "bound": p["bound"]} for p in leaves["unsettled"]],
                "coefficients": shown["coefficients"],
            } | weight_record(table)
            self.stdout.write(json.dumps(record, allow_nan=False))
            return
        for axis, points in shown.items():
            rows = "" if table.weights is None else "     rows"
            self.stdout.write(f"{axis:>12}  correct{rows}  accuracy  proved")
            for p in points:
                proof = "yes" if p["proved"] else f"at most {weighed_text(p['bound'], table)}"
                rows = f"  {p['correct_rows']:7d}" if "correct_rows" in p else ""
                share = p["correct"] / leaves["n"]
                self.stdout.write(f"{p[axis]:12d}  {weighed_text(p['correct'], table):>7}{rows}  {share:8.4f}  {proof}")
        if table.weights is None:
            self.stdout.write(training_base_words(result.tree))
        if (status := result.certificate.status) in ENDED_EARLY:
            self.stdout.write(f"ended early ({status}): larger trees may be better than this says")
        unit = "rows" if table.weights is None else "of weight"
        for p in leaves["unsettled"]:
            self.stdout.write(
                f"{p['leaves'] - 1} branchings: nothing better was found, at most {weighed_text(p['bound'], table)} {unit}"
            )

    def _costs(self, request: TrainRequest, rewards: dict[str, Any], options: dict[str, Any]) -> None:
        """The least cost by branchings and by coefficients; `rewards` as `best_reward` says."""
        frontier = cost_frontier(request, self.interrupts.on_start)
        if frontier is None or frontier.coefficients is None:
            raise CommandError("The rows have only one class, so there is no frontier.", returncode=FAILED)
        unsettled = [{"branchings": p["leaves"] - 1, "least": p["least"]} for p in frontier.unsettled]
        if options["json"]:
            record = asdict(frontier) | {"status": str(frontier.status), "unsettled": unsettled}
            record["branchings"] = record.pop("points")
            self.stdout.write(json.dumps(record | rewards, allow_nan=False))
            return
        if rewards:
            self.stdout.write(best_reward_sentence(rewards, frontier.unit))
        for axis, points in (("branchings", frontier.points), ("coefficients", frontier.coefficients)):
            self.stdout.write(f"{axis:>12}  {f'cost {frontier.unit}'.rstrip():>14}  proved")
            for p in points:
                proof = "yes" if p["proved"] else f"at least {number_text(p['least'])}"
                self.stdout.write(f"{p[axis]:12d}  {number_text(p['cost']):>14}  {proof}")
        unit = f" {frontier.unit}" if frontier.unit else ""
        best = frontier.best_constant
        self.stdout.write(f"Always answering {best['answer']} costs {number_text(best['cost'])}{unit}.")
        if frontier.status in ENDED_EARLY:
            self.stdout.write(f"ended early ({frontier.status}): larger trees may cost less than this says")
        for p in unsettled:
            least = number_text(p["least"])
            self.stdout.write(f"{p['branchings']} branchings: nothing cheaper was found, at least {least}{unit}")
