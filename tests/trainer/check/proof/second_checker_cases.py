"""Cases and oracles of `test_second_checker.py` that other tests use, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from trainer.check.recount.proof import check_model_proof
from trainer.check.recount.table.rows import load as read_rows
from trainer.check.recount.trees.prices import column_prices


def table(folder: Path, seed: int) -> Path:
    """Return a file with numbers, categories, a column of zeros and ones, a constant one and empty cells."""
    rng = np.random.default_rng(seed)
    n = 45
    x = rng.normal(size=n).round(1)
    z = rng.integers(0, 9, n)
    colour = rng.choice(["red", "green", "blue"], n)
    kind = np.where((x + z / 4 + rng.normal(size=n) > 1) ^ (colour == "red"), "yes", "no")
    rows = [f"{a},{b},{c},{rng.integers(0, 2)},7,{k}" for a, b, c, k in zip(x, z, colour, kind, strict=True)]
    rows[3] = f',"4","red",1,7,{kind[3]}'
    path = folder / f"table-{seed}.csv"
    path.write_text("\n".join(["x,z,colour,flag,same,kind", *rows]) + "\n")
    return path


def proved_alone(model: Path, data: Path, texts: list[str], folder: Path) -> list[bool]:
    """Return whether each proof alone proves the bound of the model.

    For every other proof, the whole check would search for the bound and for the price of each constraint on its own.
    """
    document = json.loads(model.read_text())
    rows = read_rows(data, document).training
    path = folder / "changed.jsonl"
    holds = []
    for text in texts:
        path.write_text(text)
        found = [
            f.verdict
            for f in check_model_proof(document, rows, path, column_prices(document))[0]
            if f.claim in ("bound", "proof")
        ]
        holds.append(found == ["proved"])
    return holds


def raised(head: dict[str, Any], more: int) -> dict[str, Any]:
    """Return the header with its goal, or all of its goals, raised by `more`."""
    if "goals" in head:
        return {**head, "goals": [max(0, goal + more) for goal in head["goals"]]}
    return {**head, "goal": max(0, head["goal"] + more)}
