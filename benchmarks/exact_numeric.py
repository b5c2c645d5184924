"""Compare the exact search over all thresholds with pycontree.

python benchmarks/exact_numeric.py [--depths 2 3] [--limit 120] [--only wdbc]
Needs OCTWEB_BENCH_DATA (default ../shared/data).  Same tables, no penalty, one run, one thread, compiled code warm.
CPU seconds; ratio = ours / theirs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from pycontree import ConTree

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from trainer.families.numeric.search import NumericProblem, solve_numeric
from trainer.solver_common.binary_problem import SearchLimits

DATA = Path(os.environ.get("OCTWEB_BENCH_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
TABLES = {"banknote": ("banknote.csv", None), "wdbc": ("wdbc.csv", None), "optdigits, 500 rows": ("optdigits.csv", 500),
          "magic, 4000 rows": ("magic.csv.gz", 4000), "magic": ("magic.csv.gz", None)}  # fmt: skip


def load(file: str, rows: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return numeric columns and class codes. The target is the column target, class or diagnosis, else the last."""
    table = pd.read_csv(DATA / file)
    target = next((c for c in table.columns if c.lower() in ("target", "class", "diagnosis")), table.columns[-1])
    y = pd.factorize(table[target], sort=True)[0].astype(np.int32)
    X = table.drop(columns=target).select_dtypes("number").to_numpy(np.float64)
    if rows is not None and rows < len(y):
        sample = np.random.default_rng(0).permutation(len(y))[:rows]
        X = X[sample]
        y = y[sample]
    return X, np.unique(y, return_inverse=True)[1].astype(np.int32)


def main() -> None:
    """Print one line for each table and depth."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--depths", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    warm = np.random.default_rng(0).normal(size=(40, 3))
    for classes in (2, 3):
        solve_numeric(NumericProblem(warm, np.arange(40, dtype=np.int32) % classes, n_classes=classes, depth=3))
    print("table                depth    rows  columns     ours  ConTree  ratio  errors  theirs")
    for name, (file, rows) in TABLES.items():
        if options.only not in name:
            continue
        X, y = load(file, rows)
        for depth in options.depths:
            started = time.process_time()
            solution = solve_numeric(
                NumericProblem(X, y, n_classes=int(y.max()) + 1, depth=depth), SearchLimits(time_limit=options.limit)
            )
            mine = time.process_time() - started
            started = time.process_time()
            model = ConTree(max_depth=depth, time_limit=options.limit)
            model.fit(X, y)
            theirs = time.process_time() - started
            wrong = int((np.asarray(model.predict(X)).astype(int) != y).sum())
            print(
                f"{name:20s} {depth:5d} {len(y):7d} {X.shape[1]:8d} {mine:8.3f} {theirs:8.3f} {mine / theirs:6.2f} "
                f"{solution.cost!s:>7s} {wrong:7d}{'' if solution.optimal else '  ours stopped at bound ' + str(solution.bound)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
