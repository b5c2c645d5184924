"""Compare CUT-H in the plane with and without decomposition by the root.

python benchmarks/plane_roots.py [--limit 30] [--points 40 80 120 160 200] [--processor]
Two columns of random numbers, random classes (two and three), depth 2, no penalty, one thread: random labels are the
hardest. Without the decomposition a run has first trees, local search, the bound of planes (sets of at most 110 points)
and SCIP.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from multivariate import by_processor

from trainer.families.oblique import packing as oblique_packing
from trainer.families.oblique import presolve
from trainer.table import Labels, numeric_table
from trainer.training.run import TrainRequest, train


def run(points: int, classes: int, limit: float) -> str:
    """Train once; return status, correct rows, gap and seconds as text."""
    draw = np.random.default_rng(points)
    X = draw.normal(size=(points, 2)).round(3)
    y = draw.integers(0, classes, points).astype(np.int32)
    labels = Labels(name="y", classes=tuple("abc"[:classes]), codes=y)
    parameters = {"depth": 2, "time_limit": limit}
    begin = time.perf_counter()
    result = train(
        TrainRequest(table=numeric_table(X), labels=labels, method="cut-h", parameters=parameters)
    ).certificate
    seconds = time.perf_counter() - begin
    return f"{result.status}, {result.correct} right, gap {100 * (result.gap or 0):.1f} %, {seconds:.1f} s"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=30.0)
    parser.add_argument("--points", type=int, nargs="+", default=[40, 80, 120, 160, 200])
    parser.add_argument("--processor", action="store_true", help="limit and seconds in processor time")
    args = parser.parse_args(arguments)
    if args.processor:
        by_processor()
    run(20, 2, 5.0)  # compiles the kernels before the clock starts
    largest = presolve.MAX_SET_POINTS
    print("| points | classes | by the root | without |", "|---|---|---|---|", sep="\n")
    for points in args.points:
        for classes in (2, 3):
            cells = []
            for roots, sets in ((largest, largest), (0, 110)):
                presolve.MAX_SET_POINTS = roots
                oblique_packing.MAX_SET_POINTS = sets
                cells.append(run(points, classes, args.limit))
            print(f"| {points} | {classes} | {cells[0]} | {cells[1]} |", flush=True)


if __name__ == "__main__":
    main()
