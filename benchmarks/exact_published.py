"""Compare `exact` with the published optima and bounds of accelerated BendOCT.

python benchmarks/exact_published.py [--limit 60] [--depths 1 2 3 4] [--only NAME] [--each 1] [--output results.csv]
Needs OCTWEB_BENCH_DATA (default ../shared/data): encoded/ and published/accel_oct_instances.csv.  One thread, warm
code.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from trainer.families.exact.search.solve import solve_binary
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits

DATA = Path(os.environ.get("OCTWEB_BENCH_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
TOLERANCE = 1e-6  # published values are rounded to six or seven digits
FIELDS = (
    "dataset",
    "encoding",
    "depth",
    "lambda",
    "n",
    "F",
    "objective",
    "bound",
    "optimal",
    "leaves",
    "cpu",
    "wall",
    "verdict",
)


def load(dataset: str, encoding: str) -> tuple[np.ndarray, np.ndarray]:
    """Return X uint8 (n, F) and class codes of a published table."""
    stem = dataset if encoding == "none" else f"{dataset}_{encoding}"
    paths = sorted((DATA / "encoded").glob(f"{stem}*_enc.csv.gz"))
    table = pd.read_csv(paths[0])
    return table.drop(columns="target").to_numpy(np.uint8), table["target"].to_numpy(np.int32)


def verdict(row: pd.Series, objective: float, bound: float, optimal: bool) -> str:
    """Return the verdict on a result.

    It 'agrees' with a published optimum, 'improves' on or 'equals' the best published tree, is 'open', or 'DISAGREES'.
    """
    proved = row["best_bound"] - row["best_objective"] <= TOLERANCE and row["solved_runs"] > 0
    if objective > row["best_bound"] + TOLERANCE or bound < row["best_objective"] - TOLERANCE:
        return "DISAGREES"
    if not optimal:
        return "open"
    if proved:
        return "agrees"
    return "improves" if objective > row["best_objective"] + TOLERANCE else "equals"


def main() -> None:
    """Solve the instances, write a CSV row for each, and print the summary."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--depths", type=int, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--only", default="")
    parser.add_argument("--skip", default="none of them")
    parser.add_argument("--each", type=int, default=1, help="take every n-th penalty")
    parser.add_argument("--output", default="exact_published.csv")
    options = parser.parse_args()
    table = pd.read_csv(DATA / "published" / "accel_oct_instances.csv")
    penalties = sorted(table["lambda"].unique())[:: options.each]
    is_selected = table["depth"].isin(options.depths) & table["lambda"].isin(penalties)
    is_selected &= table["dataset"].str.contains(options.only) & ~table["dataset"].str.contains(options.skip)
    table = table[is_selected].sort_values(["depth", "dataset", "encoding", "lambda"])
    warm = np.random.default_rng(0).integers(0, 2, (30, 5)).astype(np.uint8)
    for classes in (2, 3):
        solve_binary(BinaryProblem(warm, (warm.sum(axis=1) % classes).astype(np.int32), n_classes=classes, depth=4))
    groups: dict[tuple, list[dict]] = defaultdict(list)
    cache: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]] = {}
    with open(options.output, "w", newline="") as stream:
        writer = csv.DictWriter(stream, FIELDS)
        writer.writeheader()
        for _, row in table.iterrows():
            key = (row["dataset"], row["encoding"])
            if key not in cache:
                cache = {key: load(*key)}
            X, y = cache[key]
            penalty = Fraction(str(row["lambda"]))
            cpu = time.process_time()
            wall = time.perf_counter()
            solution = solve_binary(
                BinaryProblem(X, y, n_classes=int(y.max()) + 1, depth=int(row["depth"]), leaf_cost=penalty * len(y)),
                limits=SearchLimits(time_limit=options.limit),
            )
            cpu = time.process_time() - cpu
            wall = time.perf_counter() - wall
            objective = float(1 - solution.cost / len(y))
            bound = float(1 - solution.bound / len(y))
            record = {
                "dataset": key[0], "encoding": key[1], "depth": row["depth"], "lambda": row["lambda"], "n": len(y),
                "F": X.shape[1], "objective": objective, "bound": bound, "optimal": solution.optimal, "leaves": solution.leaves,
                "cpu": round(cpu, 4), "wall": round(wall, 4), "verdict": verdict(row, objective, bound, solution.optimal),
            }  # fmt: skip
            writer.writerow(record)
            stream.flush()
            groups[(record["depth"],)].append(record)
    summary(groups)


def summary(groups: dict[tuple, list[dict]]) -> None:
    """Print one line for each depth."""
    print("depth  instances  solved  <=1 s  median CPU s  max CPU s  agrees  equals  improves  open  disagrees")
    for (depth,), rows in sorted(groups.items()):
        cpu = np.array([r["cpu"] for r in rows])
        count = {v: sum(r["verdict"] == v for r in rows) for v in ("agrees", "equals", "improves", "open", "DISAGREES")}
        solved = sum(r["optimal"] for r in rows)
        print(
            f"{depth:5d}  {len(rows):9d}  {solved:6d}  {int((cpu <= 1).sum()):5d}  {np.median(cpu):12.4f}  {cpu.max():9.2f}"
            f"  {count['agrees']:6d}  {count['equals']:6d}  {count['improves']:8d}  {count['open']:4d}  {count['DISAGREES']:9d}"
        )


if __name__ == "__main__":
    main()
