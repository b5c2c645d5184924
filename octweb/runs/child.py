"""Run the child process of a training run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from octweb.core.files import place_in
from octweb.datasets.stored import unpack_counts
from octweb.jobs.child import PROGRESS, Process
from octweb.registry.document.model_files import document_of
from octweb.runs.incumbents import of_earlier_attempts
from octweb.runs.models import TrainingRun
from trainer.cli.parameters import PROOF_SECONDS, arguments_of
from trainer.registry import get
from trainer.tree.file import ModelFile, write

START = "start.json"


@dataclass(kw_only=True)
class TrainingProcess(Process):
    """Child process of a training run: its input files and its command line."""

    data: Path = Path()  # path of the table; set by `write_inputs`
    # why an earlier process of this attempt was killed; if set, this process only recovers the reported tree
    ended: str = ""

    def write_inputs(self) -> None:
        run: TrainingRun = self.job
        if run.dataset.counts:
            self.data = unpack_counts(run.dataset, self.folder)
            return
        self.data = place_in(run.dataset.file, self.folder / "data.parquet")
        (self.folder / "schema.json").write_text(json.dumps(run.dataset.columns), encoding="utf-8")
        (self.folder / "reading.json").write_text(json.dumps(run.dataset.reading), encoding="utf-8")
        start_tree = of_earlier_attempts(run) if get(run.method).warm_start else None
        # an earlier attempt began with the given start tree, so its incumbent is at least as good
        if start_tree is not None:
            write(ModelFile.of_tree(start_tree), self.folder / START)
        elif run.warm_start is not None:
            (self.folder / START).write_text(document_of(run.warm_start), encoding="utf-8")

    @property
    def result(self) -> Path:
        return self.folder / "model.json"

    @property
    def proof(self) -> Path:
        """Path of the proof. The file does not exist if the method writes none, or if the time was too short."""
        return self.folder / "proof.jsonl.gz"

    def _how(self) -> list[str]:
        """Return the options for a search with progress and a proof, or for recovering the reported tree."""
        progress = self.folder / PROGRESS
        if self.ended:
            return [f"--killed={progress}", f"--ended={self.ended}"]
        proof = [f"--proof={self.proof}", f"--proof-seconds={PROOF_SECONDS}"] if get(self.job.method).provable else []
        return [f"--progress={progress}", *proof]

    def _from_counts(self, run: TrainingRun) -> list[str]:
        """Return the command line of a training from counts, which needs no rows."""
        parameters = arguments_of(run.parameters.items())
        command = [*settings.COMMAND, "train", f"--method={run.method}", *parameters, f"--name={run.name}"]
        return [*command, f"--output={self.result}", f"--proof={self.proof}", "--json", "--", str(self.data)]

    def command(self) -> list[str]:
        run: TrainingRun = self.job
        if run.dataset.counts:
            return self._from_counts(run)
        # no shell is involved; each value is one argument, so a name that begins with a dash stays a value
        return [
            *settings.COMMAND,
            "train",
            f"--target={run.dataset.target}",
            f"--method={run.method}",
            *arguments_of(run.parameters.items()),
            *([f"--warm-start={self.folder / START}"] if (self.folder / START).exists() else []),
            f"--test-share={run.test_share}",
            f"--folds={run.folds}",
            *([f"--group={run.group}"] if run.group else []),
            *([f"--time={run.time}"] if run.time else []),
            *([f"--weight={run.weight}"] if run.weight else []),
            f"--name={run.name}",
            f"--sha256={run.dataset.sha256}",
            f"--schema={self.folder / 'schema.json'}",
            f"--reading={self.folder / 'reading.json'}",
            f"--output={self.result}",
            *self._how(),
            "--json",
            "--",
            str(self.data),
        ]
