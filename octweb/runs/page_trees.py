"""The trees that the pages of the methods show, trained on the samples; `manage.py methods --write` trains those that are missing.

A tree is trained once and kept, since a training of hyperplanes takes minutes and its limit of time makes it different each time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from django.core.management import call_command

from octweb.datasets.samples import SAMPLES, Sample
from trainer.errors import DataError
from trainer.methods.base import Method
from trainer.registry import METHODS
from trainer.training.method_pages import model_path

SECONDS = "300"


def command_of(method: Method) -> tuple[Sample, list[str]]:
    """The sample that a method's page shows a tree of, and the options of `train` for it."""
    sample = next(s for s in SAMPLES if s.slug == method.example.sample)
    return sample, ["--target", sample.target, "--method", method.id, *method.example.options]


def train_missing(folder: Path, *, again: Iterable[str] = ()) -> Iterator[Path]:
    """Train the trees that FOLDER/trees lacks, and the trees of the methods in `again`; yields the files as they are written."""
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
    """One tree, by the command that a person types."""
    sample, options = command_of(method)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / f"{sample.slug}.csv"
        table.write_text("\n".join(sample.lines()) + "\n", encoding="utf-8")
        output_options = ["--name", sample.slug, "--time-limit", SECONDS, "--output", str(path)]
        call_command("train", str(table), *options, *output_options)
