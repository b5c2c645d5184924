"""Random tables as CSV files: ties, constant columns, equal rows, empty cells, categories."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from trainer.counts.collect import CountRequest, count
from trainer.counts.folder import Counts

TARGET = "class"
KEY = "person"


def random_rows(rng: np.random.Generator, *, classes: int = 2, empty: bool = True) -> list[list[str]]:
    """Return a header and 12 to 60 rows with five columns, a person, and a class. Each class occurs."""
    n = int(rng.integers(12, 60))
    rows = []
    for i in range(n):
        numbers = [str(rng.integers(0, high)) for high in (2, 4, 9)]
        if empty and rng.random() < 0.2:
            numbers[2] = ""
        words = [str(rng.choice(["red", "green", "blue"])), "x"]
        label = i % classes if i < classes else int(rng.integers(classes))
        rows.append([*numbers, *words, f"p{rng.integers(0, 12)}", f"c{label}"])
    order = rng.permutation(n)
    return [["a", "b", "c", "colour", "same", KEY, TARGET], *(rows[i] for i in order)]


def write_rows(rows: list[list[str]], path: Path) -> Path:
    """Write rows as CSV, and return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(",".join(row) for row in rows) + "\n", encoding="utf-8")
    return path


def counted(path: Path, folder: Path, **changes: object) -> Counts:
    """Count a file or folder with few questions, and return the counts."""
    options = {"ignore": [KEY]}
    settings = {"depth": 3, "bins": 4, "options": options, "threads": 1} | changes
    return count(CountRequest(source=path, target=TARGET, **settings), folder)  # type: ignore[arg-type]
