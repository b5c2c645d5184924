"""Exact search with one thread and with two: the work on the longest way through the call, and the same tree from both.

python benchmarks/exact_threads.py [--depth 4] [--tables ionosphere_QT_5 wdbc_QT_5] [--limit 60]
Needs OCTWEB_BENCH_DATA (default ../shared/data).  Wall time says nothing on a machine with other work, so CPU seconds are counted by
thread: longest way = main thread + the busier worker.  one / longest way leaves out
waiting: it is the largest speed-up that two free cores could give, not a measured one.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from trainer.search.exact import ExactResult, solve_binary

DATA = Path(os.environ.get("OCTWEB_BENCH_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def timed(name: str, depth: int, threads: int, limit: float) -> tuple[ExactResult, float, float]:
    """The answer, CPU seconds of the longest way, wall seconds."""
    table = pd.read_csv(DATA / "encoded" / f"{name}_enc.csv.gz")
    X, y = table.drop(columns="target").to_numpy(np.uint8), table["target"].to_numpy(np.int32)
    workers: list[float] = []
    run = threading.Thread.run

    def counted(thread: threading.Thread) -> None:
        run(thread)
        workers.append(time.thread_time())

    threading.Thread.run = counted  # type: ignore[method-assign]
    try:
        began, wall = time.thread_time(), time.perf_counter()
        found = solve_binary(
            X, y, n_classes=int(y.max()) + 1, depth=depth, leaf_cost=Fraction(len(y), 1000), threads=threads,
            time_limit=limit,
        )  # fmt: skip
        return found, time.thread_time() - began + max(workers, default=0.0), time.perf_counter() - wall
    finally:
        threading.Thread.run = run  # type: ignore[method-assign]


def main() -> int:
    """One line a table; 1 where the trees differ."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", nargs="+", default=["ionosphere_QT_5", "wdbc_QT_5", "wpbc_QB_5", "credit_QB_5"])
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--limit", type=float, default=60.0)
    options = parser.parse_args()
    warm = np.random.default_rng(0).integers(0, 2, (30, 5)).astype(np.uint8)
    solve_binary(warm, (warm.sum(axis=1) % 2).astype(np.int32), n_classes=2, depth=4)
    print("| table | one, CPU s | two, longest way, CPU s | ratio | wall one / two | same tree |\n" + "|---" * 6 + "|")
    differ = 0
    for name in options.tables:
        one, alone, wall_one = timed(name, options.depth, 1, options.limit)
        two, longest, wall_two = timed(name, options.depth, 2, options.limit)
        same = one.shape == two.shape and one.cost == two.cost
        differ += not same and one.optimal and two.optimal
        print(
            f"| {name} | {alone:.2f} | {longest:.2f} | {alone / longest:.2f} | {wall_one / wall_two:.2f} | {same} |",
            flush=True,
        )
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
