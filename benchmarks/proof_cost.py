"""Measure proofs: time to write, size, and time to check.

python benchmarks/proof_cost.py [--depths 3 4] [--penalty 0] [--only NAME ...] [--minutes 5] [--output results.csv]
python benchmarks/proof_cost.py --max-columns 2 3       (`exact` on the original columns with a limit of columns)
python benchmarks/proof_cost.py --thresholds            (`exact-numeric` on the original columns)
Without a mode the published encodings are used. Needs OCTWEB_BENCH_DATA (default ../shared/data). Times are processor
seconds of one thread, printed next to those of the training; kernels are compiled beforehand. Small tables come first.
The last line lists the tables for which no time was left.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy reads this when it is imported

import argparse
import csv
import gzip
import json
import statistics
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
from common import encodings

from trainer.check.proof.steps.steps import check_proof
from trainer.check.proof.subject import ProofSpace
from trainer.data.reader import load
from trainer.families.exact.search.solve import solve_binary
from trainer.methods.base import ProofSteps
from trainer.methods.monitor import Monitor
from trainer.registry import get
from trainer.solver_common.binary_problem import BinaryProblem
from trainer.solver_common.problem_setup import limits_of, pose
from trainer.training.proof_file import cost_of

FIELDS = ("table", "depth", "rows", "questions", "train", "prove", "share", "steps", "bytes", "check", "check_to_train")
TARGETS = {3: 1.0, 4: 20.0}  # depth → target for the median check, in seconds
MOST_SHARE = 0.30
MOST_BYTES = 50_000_000
LONGEST = 600.0


def measure(X: np.ndarray, y: np.ndarray, depth: int, penalty: Fraction) -> dict[str, float]:
    """Train, prove, compress and check on a binary table; return the measurements.

    Raises BadProof if the proof does not hold.
    """
    classes = int(y.max()) + 1
    price = penalty * len(y)
    every = np.ones(X.shape[1], bool)
    one = np.ones(len(y), np.int64)
    space = ProofSpace("questions", X > 0, y, one, classes, depth, price, 1, None, every, None, "")

    def solve() -> tuple[Callable[[Callable[[], bool]], ProofSteps | None], Fraction]:
        solution = solve_binary(BinaryProblem(X, y, n_classes=classes, depth=depth, leaf_cost=price))
        return solution.proof, solution.cost

    return time_proof(solve, space)


def measure_columns(path: Path, target: str, depth: int, penalty: Fraction, most: int) -> dict[str, float]:
    """Measure `exact` on the original columns of a table, with a limit of columns."""
    table, labels, _ = load(path, target=target)
    method = get("exact")
    settings = method.settings({"depth": depth, "max_columns": most, "leaf_penalty": penalty, "time_limit": 600.0})
    problem = pose(table, labels, settings)
    X = problem.binary.bits(problem.table) > 0
    one = np.ones(problem.n, np.int64)
    space = ProofSpace(
        "questions",
        X,
        problem.y,
        one,
        problem.n_classes,
        depth,
        problem.kappa,
        1,
        None,
        np.ones(X.shape[1], bool),
        None,
        "",
        columns=np.array([f.column for f in problem.binary.features]),
        max_columns=most,
    )

    def solve() -> tuple[Callable[[Callable[[], bool]], ProofSteps | None], Fraction]:
        solution = method.solve(problem, settings, Monitor(limits_of(settings)))
        assert solution.proof is not None
        return solution.proof, cost_of(solution, problem)

    return time_proof(solve, space) | {"rows": problem.n, "questions": X.shape[1]}


def measure_thresholds(path: Path, target: str, depth: int, penalty: Fraction) -> dict[str, float]:
    """Measure `exact-numeric` on the original columns of a table."""
    table, labels, _ = load(path, target=target)
    method = get("exact-numeric")
    settings = method.settings({"depth": depth, "leaf_penalty": penalty, "time_limit": 600.0})
    problem = pose(table, labels, settings)
    X = problem.numeric.matrix(problem.table)
    one = np.ones(problem.n, np.int64)
    every = np.ones(X.shape[1], bool)
    space = ProofSpace(
        "thresholds", X, problem.y, one, problem.n_classes, depth, problem.kappa, 1, None, every, None, ""
    )

    def solve() -> tuple[Callable[[Callable[[], bool]], ProofSteps | None], Fraction]:
        solution = method.solve(problem, settings, Monitor(limits_of(settings)))
        assert solution.proof is not None
        return solution.proof, cost_of(solution, problem)

    cuts = sum(len(np.unique(column)) - 1 for column in X.T)
    return time_proof(solve, space) | {"rows": problem.n, "questions": cuts}


def time_proof(
    solve: Callable[[], tuple[Callable[[Callable[[], bool]], ProofSteps | None], Fraction]], space: ProofSpace
) -> dict[str, float]:
    """Return processor seconds of a search, of its proof and of the check, their ratios, and the size of the proof."""
    start = time.process_time()
    proves, cost = solve()
    trained = time.process_time()
    proof = proves(lambda: False)
    proved = time.process_time()
    assert proof is not None
    version = 2 if any("columns" in step or step["by"] in ("within", "cases") for step in proof.steps) else 1
    header = {"format": "octweb-proof", "version": version, "rows": "", "scale": proof.scale, "goal": proof.goal}
    lines = [header, *proof.steps]
    size = len(gzip.compress("\n".join(json.dumps(line, separators=(",", ":")) for line in lines).encode()))
    before = time.process_time()
    claims = check_proof(iter(list(enumerate(lines))), space)
    checked = time.process_time()
    assert claims.cost == cost
    train = trained - start
    prove = proved - trained
    check = checked - before
    return {
        "train": train, "prove": prove, "share": prove / train, "steps": len(proof.steps), "bytes": size, "check": check,
        "check_to_train": check / train,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depths", type=int, nargs="+", default=[3, 4])
    parser.add_argument("--penalty", type=Fraction, default=Fraction(0))
    parser.add_argument("--max-columns", type=int, nargs="+", default=[])
    parser.add_argument("--thresholds", action="store_true")
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    folder = encodings()
    if folder is None:
        return
    if options.max_columns or options.thresholds:
        own_columns(folder, options)
        return
    tables = []
    for path in (folder / "encoded").glob("*_enc.csv.gz"):
        name = path.name.removesuffix("_enc.csv.gz")
        if not options.only or name in options.only:
            table = np.loadtxt(path, delimiter=",", skiprows=1)
            tables.append((name, table[:, :-1].astype(np.uint8), table[:, -1].astype(np.int32)))
    tables.sort(key=lambda one: one[1].shape[1] ** 2 * len(one[1]))
    for depth in options.depths:  # compiles the kernels of each depth before the clock starts
        measure(*tables[0][1:], depth, options.penalty)
    records = []
    left = []
    end = time.monotonic() + 60 * options.minutes
    print("  ".join(f"{field:>14s}" for field in FIELDS))
    for depth in options.depths:
        for name, X, y in tables:
            if time.monotonic() > end:
                left.append(f"{name} at depth {depth}")
                continue
            record = {"table": name, "depth": depth, "rows": len(X), "questions": X.shape[1]}
            record |= measure(X, y, depth, options.penalty)
            records.append(record)
            print(
                "  ".join(f"{v:14.3f}" if isinstance(v, float) else f"{v!s:>14s}" for v in record.values()), flush=True
            )
    for depth in options.depths:
        summary(depth, [r for r in records if r["depth"] == depth])
    print(f"left out, no time: {', '.join(left) or 'none'}")
    if options.output:
        with options.output.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(records)


def own_columns(folder: Path, options: argparse.Namespace) -> None:
    """Measure `exact` or `exact-numeric` on the tables of the manifest, small ones first.

    A run on iris compiles the kernels before.
    """
    about = json.loads((folder / "manifest.json").read_text())
    about = [d for d in about if not options.only or d["name"] in options.only]
    about.sort(key=lambda d: d["rows"] * len(d["numeric_features"] + d["categorical_features"]) ** 2)
    iris = folder / "iris.csv"
    end = time.monotonic() + 60 * options.minutes
    left = []

    def measure_table(path: Path, target: str, depth: int, most: int | None) -> dict[str, float]:
        if most is None:
            return measure_thresholds(path, target, depth, options.penalty)
        return measure_columns(path, target, depth, options.penalty, most)

    limits = [None] if options.thresholds else options.max_columns
    for depth in options.depths:
        measure_table(iris, "class", depth, limits[0])
    print("  ".join(f"{field:>14s}" for field in ("table", "depth", "most", *FIELDS[2:])))
    for depth in options.depths:
        records = []
        for d in about:
            if time.monotonic() > end:
                left.append(f"{d['name']} at depth {depth}")
                continue
            path = folder / d["file"]
            (target,) = set(pd.read_csv(path, nrows=1)) - {*d["numeric_features"], *d["categorical_features"]}
            for most in limits:
                record = measure_table(path, target, depth, most)
                records.append(record)
                cells = [d["name"], depth, most, *(record[name] for name in FIELDS[2:])]
                print("  ".join(f"{v:14.3f}" if isinstance(v, float) else f"{v!s:>14s}" for v in cells), flush=True)
        summary(depth, records)
    print(f"left out, no time: {', '.join(left) or 'none'}")


def summary(depth: int, records: list[dict]) -> None:
    """Print the results of a depth beside their targets."""
    if not records:
        return
    check = [r["check"] for r in records]
    size = max(r["bytes"] for r in records)
    share = sum(r["prove"] for r in records) / sum(r["train"] for r in records)
    print(f"depth {depth}, {len(records)} tables:")
    for words, value, most in (
        ("proofs to training, in all", share, MOST_SHARE),
        ("largest proof, bytes", size, MOST_BYTES),
        ("median check, s", statistics.median(check), TARGETS.get(depth, LONGEST)),
        ("longest check, s", max(check), LONGEST),
    ):
        print(f"  {words:28s} {value:12.3f}  {'within' if value <= most else 'ABOVE'} {most:g}")


if __name__ == "__main__":
    sys.exit(main())
