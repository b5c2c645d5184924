"""Shared helpers of the benchmarks: find and read data sets, time calls."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(os.environ.get("OCTWEB_BENCH_DATA", ROOT.parent / "shared" / "data"))
sys.path.insert(0, str(ROOT))  # `python benchmarks/NAME.py` must find the trainer


def data_folder() -> Path | None:
    """Return the folder with data sets, or None if it has no manifest.

    The folder is OCTWEB_BENCH_DATA, by default ../shared/data.
    """
    return FOLDER if (FOLDER / "manifest.json").exists() else None


def encodings() -> Path | None:
    """Return the folder with the published binary encodings and results.

    If they are missing, prints a note and returns None.
    """
    if (FOLDER / "encoded").is_dir():
        return FOLDER
    print("The published encodings and results are not here; set OCTWEB_BENCH_DATA.")
    return None


def numeric(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return X float64 (rows, columns) and class codes of a numeric data set."""
    about = next(d for d in json.loads((folder / "manifest.json").read_text()) if d["name"] == name)
    table = pd.read_csv(folder / about["file"])
    columns = [*about["numeric_features"], *about["categorical_features"]]
    (target,) = set(table) - set(columns)
    return table.drop(columns=target).to_numpy(float), np.unique(table[target], return_inverse=True)[1]


def best(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the CPU seconds of the fastest run, and the last answer.

    A run of more than 2 s is the last one.
    """
    fastest = float("inf")
    answer = None
    for _ in range(repeats):
        started = time.process_time()
        answer = work()
        fastest = min(fastest, time.process_time() - started)
        if fastest > 2:
            break
    return fastest, answer
