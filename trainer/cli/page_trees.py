"""Train the example trees of the methods' pages.

`methods --write` trains those that are missing. Each tree is trained once and stored. Training hyperplanes
takes minutes, and under a time limit the result varies.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from trainer.cli.dispatch import run_command
from trainer.data.samples import SAMPLES, Sample, csv_text
from trainer.errors import DataError
from trainer.methods.base import Method
from trainer.registry import METHODS
from trainer.training.method_pages import model_path

TIME_LIMIT_SECONDS = "300"


def command_of(method: Method) -> tuple[Sample, list[str]]:
    """Return the sample table and the `train` options behind the example tree on a method's page."""
    sample = next(s for s in SAMPLES if s.slug == method.example.sample)
    return sample, ["--target", sample.target, "--method", method.id, *method.example.options]


def train_missing(folder: Path, *, again: Iterable[str] = ()) -> Iterator[Path]:
    """Train the trees that FOLDER/trees lacks, and those of the methods in `again`; yield each file when it is written."""
    if unknown := sorted(set(again) - {m.id for m in METHODS}):
        raise DataError(f"There is no method '{unknown[0]}'. `manage.py methods` lists them.")
    for method in METHODS:
        path = model_path(folder, method)
        if path.exists() and method.id not in again:
            continue
        path.parent.mkdir(exist_ok=True)
        train(method, path)
        yield path


def train(method: Method, path: Path) -> None:
    """Train one tree with the command that a user would type."""
    sample, options = command_of(method)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / f"{sample.slug}.csv"
        table.write_text(csv_text(sample), encoding="utf-8")
        output = ["--name", sample.slug, "--time-limit", TIME_LIMIT_SECONDS, "--output", str(path)]
        run_command("octweb", ["train", str(table), *options, *output])
