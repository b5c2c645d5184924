"""Compare the exact search with one thread and with two.

python benchmarks/exact_threads.py [--depth 4] [--tables ionosphere_QT_5 wdbc_QT_5] [--limit 60] [--repeats 25]
Needs OCTWEB_BENCH_DATA (default ../shared/data).  The best of `--repeats` calls each, in turns.  The ratio of wall
times is the result and needs a machine without other work.  CPU seconds are counted by thread: longest way = main
thread + the busiest worker.  So one / longest way, which leaves out waiting, is the largest speed-up that two free
cores could give. Both must find the same tree.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from trainer.families.exact.search.solve import ExactResult, solve_binary
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits

DATA = Path(os.environ.get("OCTWEB_BENCH_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


LONG = 2.0  # seconds; a longer call is not repeated, but short ones vary by a third on a shared host


def solve_timed(name: str, depth: int, threads: int, limit: float) -> tuple[ExactResult, float, float]:
    """Solve a table.

    Returns the result, the CPU seconds of the main thread plus the busiest worker, and wall seconds.
    """
    table = pd.read_csv(DATA / "encoded" / f"{name}_enc.csv.gz")
    X = table.drop(columns="target").to_numpy(np.uint8)
    y = table["target"].to_numpy(np.int32)
    workers: list[float] = []
    run = threading.Thread.run

    def count_seconds(thread: threading.Thread) -> None:
        run(thread)
        workers.append(time.thread_time())

    threading.Thread.run = count_seconds  # type: ignore[method-assign]
    try:
        began = time.thread_time()
        wall = time.perf_counter()
        solution = solve_binary(
            BinaryProblem(X, y, n_classes=int(y.max()) + 1, depth=depth, leaf_cost=Fraction(len(y), 1000)),
            limits=SearchLimits(threads=threads, time_limit=limit),
        )
        return solution, time.thread_time() - began + max(workers, default=0.0), time.perf_counter() - wall
    finally:
        threading.Thread.run = run  # type: ignore[method-assign]


def main() -> int:
    """Print one line for each table; return 1 if two proved trees differ."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--tables", nargs="+", default=["credit_QB_5", "wdbc_QT_5", "ionosphere_QT_5", "wpbc_QB_5", "ozone-one_QT_5"]
    )
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--repeats", type=int, default=25)
    options = parser.parse_args()
    warm = np.random.default_rng(0).integers(0, 2, (30, 5)).astype(np.uint8)
    solve_binary(BinaryProblem(warm, (warm.sum(axis=1) % 2).astype(np.int32), n_classes=2, depth=4))
    print("| table | one, s | two, s | one / two | one / longest way (CPU) | same tree |\n" + "|---" * 6 + "|")
    differ = 0
    for name in options.tables:
        wall = [math.inf, math.inf]
        cpu = [math.inf, math.inf]
        for _ in range(options.repeats):
            one, spent, seconds = solve_timed(name, options.depth, 1, options.limit)
            wall[0] = min(wall[0], seconds)
            cpu[0] = min(cpu[0], spent)
            two, spent, seconds = solve_timed(name, options.depth, 2, options.limit)
            wall[1] = min(wall[1], seconds)
            cpu[1] = min(cpu[1], spent)
            if seconds > LONG:
                break
        same = one.shape == two.shape and one.cost == two.cost
        differ += not same and one.optimal and two.optimal
        print(
            f"| {name} | {wall[0]:.3f} | {wall[1]:.3f} | {wall[0] / wall[1]:.2f} | {cpu[0] / cpu[1]:.2f} | {same} |",
            flush=True,
        )
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
