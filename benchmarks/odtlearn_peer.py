"""Compare accelerated BendOCT on SCIP with odtlearn's BendersOCT on Gurobi.

Usage: OCTWEB_BENCH_DATA=... ODTLEARN_PYTHON=/path/of/venv/bin/python python benchmarks/odtlearn_peer.py
       [--limit 20] [--depth 3] [--penalty 0.04] [--sets monk1,monk3] [--full | --shared] [--results FILE.jsonl]

`--full` takes thirteen tables with one penalty, `--shared` every instance of that depth in the group `shared` of
mip_benchmark.py.

odtlearn needs its own versions of libraries, so it runs in its own environment: `python -m venv V`,
`V/bin/pip install odtlearn gurobipy`, then ODTLEARN_PYTHON=V/bin/python. Without it the benchmark prints a note and
ends. Instances that do not fit Gurobi's size-limited licence are left out. odtlearn maximises
(1 - lambda) correct - lambda branchings; lambda is kappa / (1 + kappa) for the same trees. Its time is that of `fit`,
ours that of building and solving. Both have one thread and the same limit. A time at the limit counts as the limit, so
the ratio favours the program that was stopped.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SETS = ("soybean-small", "monk3", "monk1", "monk2", "iris_QT_5", "iris_QB_5", "hepatitis_QT_5", "fertility_QT_5", "wine_QT_5",
        "breast-cancer", "balance-scale", "transfusion_QT_5", "tic-tac-toe")  # fmt: skip
SHORT = ("soybean-small", "monk3")
LICENCE = 2000


def child(path: str, depth: int, lam: float, limit: float) -> int:
    """Fit odtlearn in its own environment, and print the result as a line of JSON."""
    import numpy as np
    import pandas as pd
    from odtlearn.flow_oct import BendersOCT

    data = np.load(path)
    X = pd.DataFrame(data["X"], columns=[f"x{j}" for j in range(data["X"].shape[1])])
    y = data["y"]
    model = BendersOCT(solver="gurobi", depth=depth, _lambda=lam, time_limit=max(1, round(limit)), num_threads=1)
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    record = {"seconds": seconds, "gap": float(model.optim_gap), "objective": float(model.objective_value)}
    record["correct"] = int((np.asarray(model.predict(X)) == y).sum())
    print("RESULT " + json.dumps(record), flush=True)
    return 0


def theirs(python: str, X: Any, y: Any, depth: int, kappa: float, limit: float, folder: Path) -> dict[str, Any]:
    import numpy as np

    path = folder / "octweb-odtlearn.npz"
    np.savez(path, X=X, y=y)
    command = [python, __file__, "--child", str(path), "--depth", str(depth), "--lam", repr(kappa / (1 + kappa))]
    process = subprocess.run([*command, "--limit", str(limit)], capture_output=True, text=True, timeout=limit * 4 + 120)
    lines = [line for line in process.stdout.splitlines() if line.startswith("RESULT ")]
    return json.loads(lines[-1].removeprefix("RESULT ")) if lines else {"failed": process.stderr.strip()[-300:]}


def instances(options: argparse.Namespace, folder: Path) -> list[Any]:
    """Return the instances to compare, as `Case` of mip_benchmark.py."""
    import mip_benchmark as ours

    if options.shared:
        sets = options.sets.split(",") if options.sets else None
        return [case for case in ours.cases(folder, "shared", sets) if case.depth == options.depth]
    names = SETS if options.full else SHORT
    if options.sets:
        names = options.sets.split(",")
    return [ours.Case(name=n, rows=0, depth=options.depth, penalty=options.penalty) for n in names]


def compare(options: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """Solve each instance with both programs, print a line for each, and return the records."""
    import tempfile

    import mip_benchmark as ours

    ours.warm_up()
    records = []
    for case in instances(options, folder):
        name = case.name
        X, y = ours.load(folder, name)
        varying = X[:, X.min(axis=0) < X.max(axis=0)]
        size = (
            len(y)
            + varying.shape[1] * ((1 << options.depth) - 1)
            + (len(set(y.tolist())) + 1) * ((2 << options.depth) - 1)
        )
        if size > LICENCE:
            print(f"{name} needs {size} variables, more than the size-limited licence takes; left out.")
            continue
        solve = ours.solve(folder, case, ours.DEFAULT, "scip", options.limit, processor=False)
        kappa = float(case.penalty) * len(y)
        with tempfile.TemporaryDirectory() as scratch:
            other = theirs(options.python, varying, y, options.depth, kappa, options.limit, Path(scratch))
        if "failed" in other:
            print(f"{name}: odtlearn failed: {other['failed']}")
            continue
        # Their objective is (1 - lambda) (correct - kappa branchings). Ours is correct - kappa (branchings + 1).
        other["value"] = other["objective"] * (1 + kappa) - kappa
        record = {
            "name": name,
            "depth": case.depth,
            "penalty": case.penalty,
            "limit": options.limit,
            "ours": solve,
            "theirs": other,
        }
        records.append(record)
        print(
            f"| {name} | {case.depth} | {case.penalty} | {solve['seconds']:.3f} | {min(other['seconds'], options.limit):.2f} | "
            f"{solve['value']:.2f} | {other['value']:.2f} | {other['gap']:.3f} | {solve['seconds'] / min(other['seconds'], options.limit):.4f} |",
            flush=True,
        )
        if options.results:
            with options.results.open("a") as lines:
                lines.write(json.dumps(record) + "\n")
    return records


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=20.0)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--penalty", default="0.04")
    parser.add_argument("--sets", default=None)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--shared", action="store_true")
    parser.add_argument("--results", type=Path, default=None)
    parser.add_argument("--python", default=os.environ.get("ODTLEARN_PYTHON", sys.executable))
    parser.add_argument("--child", default=None, help=argparse.SUPPRESS)
    parser.add_argument("--lam", type=float, default=0.0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options.child, options.depth, options.lam, options.limit)
    from common import encodings

    folder = encodings()
    if folder is None:
        return 0
    probe = subprocess.run([options.python, "-c", "import odtlearn, gurobipy"], capture_output=True, check=False)
    if probe.returncode:
        print(
            "odtlearn with gurobipy is not here. Install it in its own environment and set ODTLEARN_PYTHON to its Python."
        )
        return 0
    print(
        "| instance | depth | leaf penalty | ours on SCIP, s | odtlearn on Gurobi, s | our value | its value | its gap | ratio |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    records = compare(options, folder)
    if records:
        ratios = [r["ours"]["seconds"] / min(r["theirs"]["seconds"], r["limit"]) for r in records]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"geometric mean of the ratios over {len(records)} instances: {mean:.4f}, the largest {max(ratios):.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
