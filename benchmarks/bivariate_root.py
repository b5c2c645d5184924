"""Compare root splits of bivariate trees with sweep and plain search.

    python benchmarks/bivariate_root.py [--rows N]            # one pair of generated columns
    python benchmarks/bivariate_root.py --data NAME [NAME …]  # data sets: all pairs, and a sample of pairs against both

One thread, Gini, ratios in one run. "sweep" turns a line through all O(n²) orders of the points, which are sorted once
per pair. "plain" is the paper's strategy 1 with the bound of Theorem 4 and criteria 1-4, stopped after PLAIN_SECONDS
per pair.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import time
from pathlib import Path

import numpy as np
from common import data_folder, numeric

from trainer.families.bivariate.kernels.points import ColumnPair, Points
from trainer.families.bivariate.kernels.sweep import Turn, sweep
from trainer.families.bivariate.pair import C2, C3, C4, SearchOptions, Workspace, merge_points, search_pair
from trainer.families.bivariate.scale import node_points
from trainer.families.bivariate.search import best_split
from trainer.growing.coordinates import codes_of, whole_numbers
from trainer.growing.node_split import SplitData

FAST = SearchOptions()
PLAIN = SearchOptions(bound="theorem4", strategy=1, criteria=C2 | C3 | C4, switch=False)
PLAIN_SECONDS = 10.0


def make_table(name: str, n: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Generate two columns; return them with the class codes and the number of classes."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 2))
    if name == "oblique rule, 10 % noise":
        y = (0.6 * X[:, 0] > X[:, 1]).astype(int)
        return X, np.where(rng.random(n) < 0.1, 1 - y, y), 2
    if name == "10 gaussians":
        y = rng.integers(0, 10, n)
        return X + 6 * rng.normal(size=(10, 2))[y], y, 10
    if name == "integers 0-99, 10 gaussians":
        y = rng.integers(0, 10, n)
        return np.rint(10 * (X + 6 * rng.random((10, 2))[y])), y, 10
    return X, rng.integers(0, 2, n), 2


def pair(X: np.ndarray, y: np.ndarray, classes: int) -> Points:
    """Return the points of two columns, with equal rows merged."""
    integers = whole_numbers(X)
    points = node_points(integers, *codes_of(integers), np.arange(len(y)))
    total = np.bincount(y, minlength=classes).astype(np.int64)
    return merge_points(
        ColumnPair(*points.values, *points.ranks, *points.levels), y.astype(np.int64), np.ones(len(y), np.int64), total
    )


def timed_search(points: Points, options: SearchOptions, seconds: float) -> tuple[float, object]:
    """Return the seconds and the result of a search with a time limit of `seconds`."""
    start = time.perf_counter()
    end = start + seconds
    result = search_pair(points, options, Workspace(), cap=lambda own: own, stopped=lambda: time.perf_counter() > end)
    return time.perf_counter() - start, result


def timed_sweep(points: Points) -> tuple[float, float]:
    """Return seconds and best value of the sweep."""
    best = np.array([math.inf])
    start = time.perf_counter()
    sweep(0, 1, 10**15, 1e-9, points, Turn(np.zeros(1, np.int64), np.zeros(3, np.int64), best))
    return time.perf_counter() - start, float(best[0])


def made_pairs(n: int) -> None:
    """Print one line for each kind of generated column."""
    print(f"{'data':28} {'points':>7} {'search s':>9} {'boxes':>8} {'sweep/search':>13} {'plain/search':>13}")
    for name in ("oblique rule, 10 % noise", "10 gaussians", "integers 0-99, 10 gaussians", "noise"):
        points = pair(*make_table(name, n))
        seconds, result = timed_search(points, FAST, 600)
        swept, value = timed_sweep(points)
        plain, unfinished = timed_search(points, PLAIN, PLAIN_SECONDS)
        if abs(value - result.value) > 1e-6:
            raise SystemExit(f"{name}: the sweep finds {value}, the search {result.value}")
        mark = "" if unfinished.finished else "+"
        print(
            f"{name:28} {len(points.u):7} {seconds:9.4f} {result.boxes:8} {swept / seconds:13.2f} {plain / seconds:12.1f}{mark:1}"
        )
    print("+: the plain search was cut off after", PLAIN_SECONDS, "s")


def data_set(folder: Path, name: str, pairs: int) -> None:
    """Print the root split over all pairs, and the ratios on a sample of pairs, each searched without an incumbent."""
    X, y = numeric(folder, name)
    classes = int(y.max()) + 1
    start = time.perf_counter()
    split = best_split(SplitData.of(X, y, classes), np.arange(len(y)), FAST)
    root = time.perf_counter() - start
    if split is None:
        raise SystemExit(f"{name}: no split")
    every = list(itertools.combinations([j for j in range(X.shape[1]) if np.ptp(X[:, j]) > 0], 2))
    searched = swept = plain = boxes = plain_boxes = 0.0
    open_pairs = 0
    size = []
    for i, j in random.Random(0).sample(every, min(pairs, len(every))):
        points = pair(X[:, [i, j]], y, classes)
        size.append(len(points.u))
        seconds, result = timed_search(points, FAST, 600)
        sweep_seconds, value = timed_sweep(points)
        other, unfinished = timed_search(points, PLAIN, PLAIN_SECONDS)
        if abs(value - result.value) > 1e-6:
            raise SystemExit(f"{name}, columns {i} and {j}: the sweep finds {value}, the search {result.value}")
        searched = searched + seconds
        swept = swept + sweep_seconds
        plain = plain + other
        plain_boxes = plain_boxes + unfinished.boxes
        boxes = boxes + result.boxes
        open_pairs += not unfinished.finished
    proved = "proved" if split.bound == split.value else "open"
    print(
        f"| {name} | {len(y)} × {X.shape[1]} | {root:.3f} {proved} | {split.boxes:,} | {split.classified / 1e6:.1f} M "
        f"| {len(size)} of {len(every)}, {sum(size) / len(size):.0f} points | {searched:.3f} | {swept / searched:.1f} "
        f"| {plain / searched:.1f}{f' ({open_pairs} cut off)' if open_pairs else ''} | {boxes:,.0f} / {plain_boxes:,.0f} |",
        flush=True,
    )


def main() -> None:
    """Compile the kernels, then print the chosen table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--data", nargs="*", default=[], metavar="NAME")
    parser.add_argument(
        "--pairs", type=int, default=3, help="pairs of a data set that sweep and plain search are run on"
    )
    options = parser.parse_args()
    warm = pair(*make_table("noise", 50))
    timed_sweep(warm), timed_search(warm, FAST, 9), timed_search(warm, PLAIN, 9)
    best_split(SplitData.of(*make_table("noise", 50)[:2], 2), np.arange(50), FAST)
    if not options.data:
        made_pairs(options.rows)
        return
    folder = data_folder()
    if folder is None:
        raise SystemExit("The data sets are not here: set OCTWEB_BENCH_DATA to their folder.")
    print(
        "| data | rows × columns | all pairs, s | boxes | classified | sample | search, s | sweep ÷ | plain ÷ | boxes / plain |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in options.data:
        data_set(folder, name, options.pairs)


if __name__ == "__main__":
    main()
