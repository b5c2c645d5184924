"""`manage.py frontier`: the best trade-offs of a data set, each proved. It never opens the database.

`--method odt`: all pairs of sensitivity and specificity. `--method exact`: the most rows correct for each number of leaves, or with
`--cost` the least cost.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError

from octweb.figures.reach import open_question, shares, steps
from octweb.runs.command import FAILED, TrainingCommand, add_weight_flag, weighed_text, weight_record, with_rows
from trainer.certificate import Certificate, Evidence
from trainer.errors import ParameterError
from trainer.goal import count_goal
from trainer.methods.base import Method
from trainer.registry import METHODS, get
from trainer.table import Table
from trainer.training.cost_frontier import cost_frontier
from trainer.training.rewarded import as_costs, best_reward, best_reward_sentence
from trainer.training.run import TrainRequest, train
from trainer.tree.describe import number_text

MOST_LEAVES = 1 << 10


class Command(TrainingCommand):
    help = (
        "All pairs of sensitivity and specificity (odt), or accuracy for each number of leaves (exact), that trees reach on "
        "a CSV (also .gz), .xlsx, Parquet or Arrow file."
    )
    target_help = "the column to predict; odt needs two classes"

    def add_arguments(self, parser):
        super().add_arguments(parser)
        add_weight_flag(parser)
        able = [method.id for method in METHODS if method.parameter("frontier")]
        able += [method.id for method in METHODS if method.leaf_frontier]
        parser.add_argument("--method", choices=able, default=able[0])
        parser.add_argument("--markdown", action="store_true", help="a table in Markdown (exact)")

    def run(self, options: dict[str, Any]) -> None:
        method = get(options["method"])
        kind = Evidence.LEAF_FRONTIER if method.leaf_frontier else Evidence.FRONTIER
        raw = self._raw(method, options)
        table, labels = self.data(options)
        request, earned = as_costs(TrainRequest(table=table, labels=labels, method=method.id, parameters=raw))
        if raw.get("costs"):
            self._costs(request, best_reward(request, earned), options)
            return
        certificate = train(request, on_start=self.interrupts.on_start).certificate
        evidence = next((e for e in certificate.evidence if e["kind"] == kind), None)
        if evidence is None:
            raise CommandError("The rows have only one class, so there is no frontier.", returncode=FAILED)
        if method.leaf_frontier:
            evidence = evidence | {"points": with_rows(evidence["points"], table, labels)}
            self._leaves(evidence, certificate, table, options)
            return
        points = shares(evidence)
        if options["json"]:
            record = {"positive": evidence["positive"], "status": evidence["status"], "seconds": certificate.seconds}
            record |= {"finished": evidence["finished"], "points": points, "bounds": steps(evidence)} | weight_record(
                table
            )
            self.stdout.write(json.dumps(record, allow_nan=False))
            return
        self.stdout.write(f"positive class: {evidence['positive']}\nsensitivity  specificity  proved")
        for point in points:
            proof = "yes" if point["proved"] else open_question(point, 2)
            self.stdout.write(f"{point['sensitivity']:11.4f}  {point['specificity']:11.4f}  {proof}")
        if not evidence["finished"]:
            self.stdout.write(f"stopped ({evidence['status']}): other pairs may be reachable")

    def _raw(self, method: Method, options: dict[str, Any]) -> dict[str, Any]:
        """The parameters, with those that ask for a frontier."""
        if not method.leaf_frontier:
            return self.parameters(method, options, frontier=True)
        raw = self.parameters(method, options)
        if count_goal(raw):
            raise ParameterError({"goal": "the frontier counts errors. Leave the goal out, or use 'train'."})
        most = min(1 << method.settings(raw)["depth"], MOST_LEAVES)
        return {"leaf_penalty": 0.0} | raw | {"max_leaves": raw.get("max_leaves") or most}

    def _costs(self, request: TrainRequest, rewards: dict[str, Any], options: dict) -> None:
        """The least cost for each number of leaves that is worth having; `rewards` as `best_reward` says."""
        frontier = cost_frontier(request, self.interrupts.on_start)
        if frontier is None:
            raise CommandError("The rows have only one class, so there is no frontier.", returncode=FAILED)
        if options["json"]:
            record = {name: value for name, value in asdict(frontier).items() if value is not None}
            self.stdout.write(json.dumps(record | {"status": str(frontier.status)} | rewards, allow_nan=False))
            return
        if rewards:
            self.stdout.write(best_reward_sentence(rewards, frontier.unit))
        bar = "| " if options["markdown"] else ""
        self.stdout.write(f"{bar}leaves {bar}{f'cost {frontier.unit}'.rstrip():>14} {bar} proved {bar}".strip())
        if options["markdown"]:
            self.stdout.write("|---|---|---|")
        for p in frontier.points:
            proof = "yes" if p["proved"] else f"at least {number_text(p['least'])}"
            self.stdout.write(f"{bar}{p['leaves']:6d} {bar}{number_text(p['cost']):>14} {bar} {proof} {bar}".strip())
        for p in frontier.unsettled:
            self.stdout.write(f"{p['leaves']} leaves: nothing cheaper was found, at least {number_text(p['least'])}")

    def _leaves(self, evidence: dict, certificate: Certificate, table: Table, options: dict) -> None:
        """Accuracy for each number of leaves that is worth having."""
        n = evidence["n"]
        points = [
            point | {"accuracy": point["correct"] / n, "largest_accuracy": point["bound"] / n}
            for point in evidence["points"]
        ]
        if options["json"]:
            record = {"n": n, "status": str(certificate.status), "seconds": certificate.seconds}
            record |= {"points": points, "unsettled": evidence["unsettled"]} | weight_record(table)
            self.stdout.write(json.dumps(record, allow_nan=False))
            return
        bar = "| " if options["markdown"] else ""
        rows = "" if table.weights is None else f"     rows {bar}"
        unit = "rows" if table.weights is None else "of weight"
        self.stdout.write(f"{bar}leaves {bar} correct {bar}{rows} accuracy {bar} proved {bar}".strip())
        if options["markdown"]:
            self.stdout.write(f"|---|---|---|{'---|' if rows else ''}---|")
        for p in points:
            proof = "yes" if p["proved"] else f"at most {weighed_text(p['bound'], table)}"
            rows = f"{p['correct_rows']:8d} {bar}" if "correct_rows" in p else ""
            correct = weighed_text(p["correct"], table)
            self.stdout.write(
                f"{bar}{p['leaves']:6d} {bar}{correct:>8} {bar}{rows}{p['accuracy']:9.4f} {bar} {proof} {bar}".strip()
            )
        self.stderr.write("note: a tree of 1 leaf always gives the most frequent class")
        for p in evidence["unsettled"]:
            most = weighed_text(p["bound"], table)
            self.stdout.write(f"{p['leaves']} leaves: nothing better was found, at most {most} {unit}")
