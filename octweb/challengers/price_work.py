"""Run the job of a price of staying: `manage.py convert --compare` on recorded rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from octweb.audit import actions as audit
from octweb.challengers.models import StayingPrice
from octweb.challengers.price import FEW_OUTCOMES, known_rows, reading_of_rows, write_rows
from octweb.core.faults import DamagedDocument
from octweb.core.templatetags.octweb import whole
from octweb.jobs.child import Process
from octweb.jobs.models import RunStatus
from octweb.jobs.supervisor import JobRefused, ResultSupervisor
from octweb.registry.document.model_files import document_of, model_file

MISREAD = (
    "The search read some recorded rows differently from the model. A category or class of the model is probably a word for an empty "
    "cell, such as NA. So there is no result."
)
ALL_ALIKE = (
    "All {n} decisions with a known outcome have the same values in the columns of the tree, so no question can tell them apart. "
    "Ask for more days."
)
MEMORY_SLACK = 1.25  # a child that exceeds the memory limit by this factor is killed


class PriceChild(Process):
    """Child process that runs `manage.py convert --compare`. Its last line of output is the result."""

    counts: Mapping[str, Any] = MappingProxyType({})
    # recorded rows and wrong answers; the search must find the same numbers
    expected: Mapping[str, int] = MappingProxyType({})

    @property
    def result(self) -> Path:
        return self.folder / "stdout"

    def write_inputs(self) -> None:
        model = self.job.model
        file = model_file(model)
        rows = known_rows(model, self.job.days, timezone.now())
        if not rows.has_two_classes:
            raise JobRefused(FEW_OUTCOMES.format(where=f"the period of {self.job.days} days"))
        self.counts = {"unknown": rows.unknown, "answers_without_outcome": list(rows.answers_without_outcome)}
        tested = rows.matrix[:, list(file.tree.used_columns)]
        if ((tested == tested[0]) | (np.isnan(tested) & np.isnan(tested[0]))).all():
            raise JobRefused(ALL_ALIKE.format(n=whole(len(tested))))
        mistakes = int((file.tree.predict(rows.matrix) != rows.outcomes).sum())
        self.expected = {"n": len(rows.outcomes), "mistakes": mistakes}
        (self.folder / "model.json").write_text(document_of(model), encoding="utf-8")
        (self.folder / "reading.json").write_text(json.dumps(reading_of_rows(file)), encoding="utf-8")
        write_rows(file, rows, self.folder / "rows.parquet")

    def command(self) -> list[str]:
        return [
            *settings.COMMAND,
            "convert",
            "--from=octweb",
            f"--data={self.folder / 'rows.parquet'}",
            f"--reading={self.folder / 'reading.json'}",
            f"--target={model_file(self.job.model).target}",
            "--compare",
            f"--time-limit={self.job.seconds}",
            "--json",
            "--",
            str(self.folder / "model.json"),
        ]


class PriceSupervisor(ResultSupervisor):
    """Supervisor of one attempt at a price of staying."""

    jobs = StayingPrice
    noun = "search"

    def load(self) -> StayingPrice:
        return StayingPrice.objects.select_related("model__family", "owner").get(pk=self.job_id)

    def prepare(self, job: StayingPrice) -> PriceChild:
        try:
            return PriceChild.prepare(job)
        except DamagedDocument as error:
            raise JobRefused(str(error)) from error

    def limits(self, job: StayingPrice) -> tuple[float, float]:
        return job.longest(), MEMORY_SLACK * settings.MAX_TRAINING_MB

    def complete(self, summary: dict[str, Any]) -> bool:
        return bool(summary) and not summary["compare"]["stopped"]

    def store(self, job: StayingPrice, child: Process, summary: dict[str, Any]) -> None:
        assert isinstance(child, PriceChild)
        found = summary["compare"] | child.counts
        if child.expected != {name: found[name] for name in child.expected}:
            raise JobRefused(MISREAD)
        status = RunStatus.CANCELLED if found["stopped"] else RunStatus.SUCCEEDED
        with transaction.atomic():
            numbers = {name: found[name] for name in ("mistakes", "best_mistakes", "least_mistakes")}
            audit.record("price of staying", job.model, by=job.owner, days=job.days, rows=found["n"], **numbers)
            self.end(status, summary=found | self.noted(), log=self._log(child))
