"""Root split of bivariate trees on made data, as ratios in one run: against the angular sweep and the paper's plain search.

    python benchmarks/bivariate_root.py [rows]

One pair of columns, one thread, Gini. "plain" is strategy 1 with the bound of Theorem 4 and criteria 1-4.
"""

from __future__ import annotations

import math
import sys
import time

import numpy as np

from trainer.kernels.bivariate_sweep import sweep
from trainer.search.bivariate_pair import C2, C3, C4, Points, SearchOptions, Workspace, merged, search_pair
from trainer.search.bivariate_scale import node_points, whole_numbers

FAST = SearchOptions()
PLAIN = SearchOptions(bound="theorem4", strategy=1, criteria=C2 | C3 | C4, switch=False)
PLAIN_SECONDS = 10.0


def made(name: str, n: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Two columns, classes and their number."""
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
    """The points of the two columns."""
    points = node_points(whole_numbers(X), np.arange(len(y)))
    total = np.bincount(y, minlength=classes).astype(np.int64)
    (u, v), (r, s) = points.values, points.ranks
    return merged(u, v, r, s, points.levels[:2], y.astype(np.int64), np.ones(len(y), np.int64), total)


def timed_search(points: Points, options: SearchOptions, seconds: float) -> tuple[float, object]:
    """Seconds and result of a search that is cut off after `seconds`."""
    start = time.perf_counter()
    end = start + seconds
    result = search_pair(points, options, Workspace(), cap=lambda own: own, stopped=lambda: time.perf_counter() > end)
    return time.perf_counter() - start, result


def timed_sweep(points: Points) -> tuple[float, float]:
    """Seconds and best value of the sweep."""
    best = np.array([math.inf])
    data = (points.u, points.v, points.first, points.klass, points.weight, points.total)
    start = time.perf_counter()
    sweep(0, 1, 10**15, 1e-9, *data, np.zeros(1, np.int64), np.zeros(3, np.int64), best)
    return time.perf_counter() - start, float(best[0])


def main() -> None:
    """Print one line a data set."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    warm = pair(*made("noise", 50))
    timed_sweep(warm), timed_search(warm, FAST, 9), timed_search(warm, PLAIN, 9)
    print(f"{'data':28} {'points':>7} {'search s':>9} {'boxes':>8} {'sweep/search':>13} {'plain/search':>13}")
    for name in ("oblique rule, 10 % noise", "10 gaussians", "integers 0-99, 10 gaussians", "noise"):
        points = pair(*made(name, n))
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


if __name__ == "__main__":
    main()
