"""Model files of every method on a small table, each trained once per test process."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from trainer.check.recount import Finding, verify
from trainer.data.reader import load
from trainer.goal import COUNT_GOALS
from trainer.registry import METHODS
from trainer.table import Labels, Table
from trainer.training.run import TrainRequest, train

SMALL = {"depth": 2, "time_limit": 60.0}
OBLIQUE = ("cut-h", "cutw-h", "s-oct", "oct-h")
# These tests check files. `mip/test_method.py` tests that these methods prove their optima on their own.
KNOWN_BOUND = {key: {"first_tree": "exact"} for key in ("oct", "flowoct", "binoct")}
TWO_CLASSES = {m.id for m in METHODS if m.two_classes}


def csv_text(rows: int = 48, classes: int = 3, seed: int = 5) -> str:
    """Return rows with two numeric columns, a categorical and a binary one. Equal rows of different classes occur."""
    rng = np.random.default_rng(seed)
    lines = ["length,width,colour,flag,class"]
    for _ in range(rows):
        length = rng.integers(0, 12) / 2
        width = rng.integers(0, 6)
        colour = rng.choice(["red", "green", "blue"])
        flag = rng.integers(2)
        answer = int(length > 3) + int(colour == "red" and width > 2 and classes > 2)
        if rng.random() < 0.15:
            answer = int(rng.integers(classes))
        lines.append(f"{length:g},{width},{colour},{flag},{'abc'[answer]}")
    return "\n".join(lines) + "\n"


@cache
def _table(method: str, classes: int) -> tuple[Table, Labels, str]:
    """Return the rows for a method, and their text."""
    text = csv_text(rows=24 if method in OBLIQUE else 48, classes=classes)
    with TemporaryDirectory() as folder:
        (path := Path(folder) / "rows.csv").write_text(text)
        table, labels, *_ = load(path, target="class")
    return table, labels, text


@cache
def _trained(method: str, test_share: float, folds: int, parameters: str) -> tuple[dict[str, Any], str]:
    document = json.loads(parameters)
    two = (
        method in TWO_CLASSES
        or document.get("fairness") == "parity"
        or document.get("positive")
        or document.get("goal") in COUNT_GOALS
    )
    table, labels, text = _table(method, 2 if two else 3)
    wanted = SMALL | KNOWN_BOUND.get(method, {}) | document
    request = TrainRequest(
        table=table, labels=labels, method=method, parameters=wanted, test_share=test_share, folds=folds
    )
    return json.loads(json.dumps(train(request).model.to_json())), text


def trained(
    folder: Path, method: str, *, test_share: float = 0.0, folds: int = 0, **parameters: Any
) -> tuple[dict[str, Any], Path]:
    """Return a copy of the document of a trained model, and the path of its rows."""
    document, text = _trained(method, test_share, folds, json.dumps(parameters, sort_keys=True))
    data = folder / f"rows-{len(document['classes'])}-{method in OBLIQUE}.csv"
    data.write_text(text)
    return copy.deepcopy(document), data


def findings(document: dict[str, Any], data: Path, folder: Path) -> list[Finding]:
    """Return the findings of the checker about a document."""
    path = folder / "model.json"
    path.write_text(json.dumps(document))
    return verify(path, data)


def verdicts(document: dict[str, Any], data: Path, folder: Path) -> dict[str, str]:
    """Return the verdict of each claim."""
    return {f.claim: f.verdict for f in findings(document, data, folder)}


def many_classes(folder: Path) -> tuple[dict[str, Any], Path]:
    """Return the document of a tree with more than 30 leaves and 20 classes of long names, and the path of its rows."""
    column = "a column whose name is as long as a sentence can be"
    name = "class number {} with a name that does not seem to end"
    blocks = np.random.default_rng(4).integers(0, 64, 1600).tolist()
    lines = [f"{b},{name.format(16 + b // 16 if b % 2 else b // 4)}" for b in blocks]
    data = folder / "many.csv"
    data.write_text("\n".join([f"{column},class", *lines]) + "\n")
    table, labels, *_ = load(data, target="class")
    request = TrainRequest(
        table=table, labels=labels, method="cart", parameters={"depth": 6}, test_share=0.25, name="Many " * 30
    )
    return json.loads(json.dumps(train(request).model.to_json())), data
