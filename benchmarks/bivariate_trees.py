"""Compare bivariate trees with one and two threads, and with OC1.

    python benchmarks/bivariate_trees.py [--data NAME …] [--depth 4] [--limit 60]
    python benchmarks/bivariate_trees.py --package PYTHON [--data NAME …]

PYTHON is an interpreter with the pure-Python package `oblique-classifier-1`; it gets `--limit` seconds for a tree.  On
a busy machine the ratio of wall times says little.  "CPU ratio" is the speed-up of two free processors if no thread
waited. It divides the CPU seconds with one thread by the sum of those outside the worker threads and those of the
busiest worker thread.  The best of `--repeat` runs count.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import data_folder, numeric

from trainer import make_classifier
from trainer.worker_pool import WorkerPool

PACKAGE = """
import sys, time
import numpy as np
from oc1 import ObliqueDecisionTree
data = np.load(sys.argv[1])
tree = ObliqueDecisionTree(max_depth=int(sys.argv[2]), random_state=0)
start = time.process_time()
tree.fit(data["X"], data["y"])
print(time.process_time() - start, float((np.asarray(tree.predict(data["X"])) == data["y"]).mean()))
"""

spent_in_threads: list[float] = []
_serve = WorkerPool._serve


def _timed_serve(crew: WorkerPool[Any], work: Any) -> None:
    """Call `WorkerPool._serve` and record the CPU seconds of its thread."""
    start = time.thread_time()
    try:
        _serve(crew, work)
    finally:
        spent_in_threads.append(time.thread_time() - start)


def fit_timed(method: str, X: np.ndarray, y: np.ndarray, **options: Any) -> tuple[Any, float, float, float]:
    """Fit a classifier and measure its time.

    Returns the classifier, wall seconds, CPU seconds, and CPU seconds with only the busiest of the worker
    threads.
    """
    spent_in_threads.clear()
    wall = time.perf_counter()
    cpu = time.process_time()
    model = make_classifier(method, **options).fit(X, y)
    wall = time.perf_counter() - wall
    cpu = time.process_time() - cpu
    return model, wall, cpu, cpu - sum(spent_in_threads) + max(spent_in_threads, default=0.0)


def threads(name: str, X: np.ndarray, y: np.ndarray, depth: int, limit: float, repeat: int) -> None:
    """Print one line that compares a tree with one thread and with two."""
    runs: dict[int, list[tuple[Any, float, float, float]]] = {1: [], 2: []}
    for _ in range(repeat):
        for t in runs:
            runs[t].append(fit_timed("bivariate", X, y, depth=depth, time_limit=limit, threads=t))
    model = runs[1][0][0]
    cpu = min(run[2] for run in runs[1])
    wall, wall2 = (min(run[1] for run in runs[t]) for t in runs)
    ideal = cpu / min(run[3] for run in runs[2])
    proof = model.certificate_
    print(
        f"| {name} | {len(y)} × {X.shape[1]} | {depth} | {cpu:.2f} | {wall / wall2:.2f} | {ideal:.2f} "
        f"| {proof.splits_proved} of {proof.splits} | {(model.predict(X) == y).mean():.4f} |",
        flush=True,
    )


def against_package(python: str, name: str, X: np.ndarray, y: np.ndarray, depth: int, limit: float) -> None:
    """Print one line with the CPU seconds of our methods and of the package, and their ratios."""
    # The package climbs from ten starts, so `oc1` gets as many.
    more: dict[str, dict[str, int]] = {"bivariate": {}, "oc1": {"restarts": 10}}
    fits = {method: fit_timed(method, X, y, depth=depth, **options) for method, options in more.items()}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "data.npz")
        np.savez(file, X=X, y=y)
        command = [python, "-c", PACKAGE, str(file), str(depth)]
        try:
            peer = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=True)
            seconds, accuracy = (float(x) for x in peer.stdout.split())
            theirs = f"{seconds:.2f} ({accuracy:.4f})"
        except subprocess.TimeoutExpired:
            # The limit is in wall seconds, which exceed CPU seconds on a busy machine, so no ratio is printed.
            print(f"| {name} | the package was cut off after {limit} s |", flush=True)
            return
    cells = [f"{cpu:.3f} ({(model.predict(X) == y).mean():.4f})" for model, _, cpu, _ in fits.values()]
    ratios = [f"{seconds / cpu:.0f}" for _, _, cpu, _ in fits.values()]
    print(
        f"| {name} | {len(y)} × {X.shape[1]} | {depth} | {theirs} | {' | '.join(cells)} | {' | '.join(ratios)} |",
        flush=True,
    )


def main() -> None:
    """Compile the kernels, then print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="*", default=["banknote", "wdbc", "vehicle"], metavar="NAME")
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of one tree")
    parser.add_argument("--repeat", type=int, default=3, help="runs of a tree")
    parser.add_argument("--package", metavar="PYTHON", help="compare with oblique-classifier-1 under this interpreter")
    options = parser.parse_args()
    folder = data_folder()
    if folder is None:
        raise SystemExit("The data sets are not here: set OCTWEB_BENCH_DATA to their folder.")
    rng = np.random.default_rng(0)
    for method in ("bivariate", "oc1"):
        make_classifier(method, depth=2).fit(rng.normal(size=(60, 3)), rng.integers(0, 2, 60))
    if options.package:
        print("| data | rows × columns | depth | package, s (accuracy) | bivariate | oc1 | ÷ bivariate | ÷ oc1 |")
        print("|---|---|---|---|---|---|---|---|")
    else:
        WorkerPool._serve = _timed_serve  # type: ignore[method-assign]
        print("| data | rows × columns | depth | CPU s | wall ratio | CPU ratio | proved | accuracy |")
        print("|---|---|---|---|---|---|---|---|")
    for name in options.data:
        X, y = numeric(folder, name)
        if options.package:
            against_package(options.package, name, X, y, options.depth, options.limit)
        else:
            threads(name, X, y, options.depth, options.limit, options.repeat)


if __name__ == "__main__":
    main()
