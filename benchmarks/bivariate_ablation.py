"""Ablation of the root split search of bivariate trees.

    python benchmarks/bivariate_ablation.py [--limit 10] [--data NAME …]

Searches all pairs of columns, with one part of the search changed at a time.  Gini, one thread, CPU seconds.  A search
that takes longer than `--limit` is stopped and marked with a plus sign.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from common import data_folder, numeric

from trainer.dtypes import CountArray
from trainer.families.bivariate import node as bivariate
from trainer.families.bivariate.kernels.points import ColumnPair, Points
from trainer.families.bivariate.pair import C2, C3, C4, C5, SearchOptions
from trainer.families.bivariate.search import best_split
from trainer.growing.node_split import SplitData

CHANGES = {
    "as it is": SearchOptions(),
    "bounds of Theorems 5 and 6": SearchOptions(bound="paper"),
    "bound of Theorem 4": SearchOptions(bound="theorem4"),
    "strategy 1": SearchOptions(strategy=1),
    "best-first": SearchOptions(best_first=True),
    "no local sweep (C5)": SearchOptions(criteria=C2 | C3 | C4),
    "local sweep up to 48 points": SearchOptions(local=48),
    "no criterion 3": SearchOptions(criteria=C2 | C4 | C5),
    "no switch to the sweep": SearchOptions(switch=False),
}


def line(name: str, change: str, data: SplitData, options: SearchOptions, limit: float, base: float) -> float:
    """Run the root search and print its time.

    The printed ratio is the seconds divided by `base`, or 1 if `base` is 0. Returns the seconds.
    """
    start = time.process_time()
    split = best_split(data, np.arange(len(data.y)), options, stopped=lambda: time.process_time() > start + limit)
    seconds = time.process_time() - start
    if split is None:
        raise SystemExit(f"{name}: no split")
    mark = "" if split.bound == split.value else "+"
    print(
        f"| {name} | {change} | {seconds:.3f}{mark} | {seconds / (base or seconds):.1f}{mark} | {split.boxes:,} "
        f"| {split.classified / 1e6:.1f} M |",
        flush=True,
    )
    return seconds


def points_of_rows(columns: ColumnPair, y: CountArray, weight: CountArray, total: CountArray) -> Points:
    """Return a point for each row, without merging equal rows, in the order that the sweep expects."""
    u = columns.u
    v = columns.v
    order = np.lexsort((v, u))
    first = np.arange(len(u) + 1, dtype=np.int64)
    return Points(u=u[order], v=v[order], first=first, klass=y[order], weight=weight[order], total=total)


def data_set(name: str, data: SplitData, limit: float) -> None:
    """Print one line for each variant of the search on a data set."""
    base = 0.0
    for change, options in CHANGES.items():
        seconds = line(name, change, data, options, limit, base)
        base = base or seconds
    slopes = bivariate.SLOPES
    merged = bivariate.merge_points
    try:
        bivariate.SLOPES = np.array([0.0])
        line(name, "one sampled slope instead of six", data, SearchOptions(), limit, base)
        bivariate.SLOPES = slopes
        bivariate.merge_points = points_of_rows
        # The sweep expects merged points, so it is off in this line.
        line(name, "equal points not merged", data, SearchOptions(switch=False), limit, base)
    finally:
        bivariate.SLOPES = slopes
        bivariate.merge_points = merged


def main() -> None:
    """Compile, then print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="*", default=["banknote", "wdbc", "poker-hand"], metavar="NAME")
    parser.add_argument("--limit", type=float, default=10.0, help="CPU seconds of one search")
    options = parser.parse_args()
    folder = data_folder()
    if folder is None:
        raise SystemExit("The data sets are not here: set OCTWEB_BENCH_DATA to their folder.")
    rng = np.random.default_rng(0)
    best_split(SplitData.of(rng.normal(size=(40, 3)), rng.integers(0, 2, 40), 2), np.arange(40), SearchOptions())
    print("| data | change | s | ÷ as it is | boxes | classified |\n|---|---|---|---|---|---|")
    for name in options.data:
        X, y = numeric(folder, name)
        data_set(name, SplitData.of(X, y, int(y.max()) + 1), options.limit)


if __name__ == "__main__":
    main()
