"""Compare accelerated BendOCT with the published optima of BendOCT and strongtree.

Usage: OCTWEB_BENCH_DATA=... python benchmarks/mip_published.py [--rows 1000] [--depths 2,3] [--limit 60] [--sample 30]
       [--full] [--solver scip]

Counts the instances that are proved, that equal the published optimum, that improve on a published value without proof,
and that contradict a published optimum or bound, which must be none. It takes about thirty instances of each table,
evenly spread (`--sample`), or all of them (`--full`). The results of strongtree are for splits of scikit-learn, which
are rebuilt.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
from common import encodings
from mip_benchmark import load, warm_up

from trainer.families.mip import greedy
from trainer.families.mip import instance as instances
from trainer.families.mip.bendoct_accelerated import AcceleratedBendOCT
from trainer.families.mip.tree_mip import MipResult, optimise
from trainer.milo import SolveOptions, backend

SEEDS = (41, 23, 45, 36, 19)  # strongtree drew its samples with these seeds
SAME = ("BendersOCT", "FlowOCT")  # these approaches of strongtree have our objective


def prove(
    X: np.ndarray, y: np.ndarray, depth: int, kappa: Fraction, solver: str, limit: float
) -> tuple[MipResult, int, Fraction]:
    inst = instances.build(X, y, depth=depth, kappa=kappa)
    form = AcceleratedBendOCT(inst)
    result = optimise(
        form, backend(solver), starts=form.improve_starts([greedy.cart(inst)]), options=SolveOptions(time=limit)
    )
    return result, inst.total, inst.kappa


def check_accelerated(folder: Path, options: argparse.Namespace) -> Counter[str]:
    """Compare with accel_oct_instances.csv; return counts of agreements and contradictions.

    Its objectives are the accuracy minus the penalty for each leaf.
    """
    count: Counter[str] = Counter()
    with (folder / "published" / "accel_oct_instances.csv").open() as lines:
        rows = [r for r in csv.DictReader(lines) if r["depth"] in options.depths and int(r["n"]) <= options.rows]
    for r in rows if options.full else rows[:: max(1, len(rows) // options.sample)]:
        name = r["dataset"] if r["encoding"] == "none" else f"{r['dataset']}_{r['encoding']}_5"
        X, y = load(folder, name)
        result, total, _ = prove(X, y, int(r["depth"]), Fraction(r["lambda"]) * len(y), options.solver, options.limit)
        value = float(result.value / total)
        best = float(r["best_objective"])
        bound = float(r["best_bound"])
        count["instances"] += 1
        count["proved"] += result.optimal
        proved = r["solved_runs"] != "0"
        if result.optimal and abs(value - best) < 1e-6:
            count["equal to the published value"] += 1
        elif not proved and value > best and value < bound + 1e-6:
            count["better than a published value without proof"] += 1
        if value > bound + 1e-6 or (proved and value > best + 1e-6) or (result.optimal and value < best - 1e-6):
            count["CONTRADICTIONS"] += 1
            print(
                f"contradiction: {name}, depth {r['depth']}, lambda {r['lambda']}: {value}, published {best} ≤ {bound}"
            )
    return count


def strongtree(folder: Path, options: argparse.Namespace) -> Counter[str]:
    """Compare with the proved runs of the approaches SAME in strongtree_results.csv; return counts.

    The training rows are split as in that study. Their objective is -(1 - lambda) errors - lambda branchings.
    """
    from sklearn.model_selection import train_test_split

    count: Counter[str] = Counter()
    names = {path.name.removesuffix("_enc.csv.gz") for path in (folder / "encoded").glob("*_enc.csv.gz")}
    with (folder / "published" / "strongtree_results.csv").open() as lines:
        rows = [
            r
            for r in csv.DictReader(lines)
            if r["approach"] in SAME
            and r["status"] == "2"
            and r["depth"] in options.depths
            and r["dataset"] in names
            and Fraction(r["lambda"]) < 1
            and int(r["nrow"]) <= options.rows
        ]
    for r in rows if options.full else rows[:: max(1, len(rows) // options.sample)]:
        X, y = load(folder, r["dataset"])
        seed = SEEDS[int(r["sample"]) - 1]
        training, _ = train_test_split(np.arange(len(y)), test_size=0.25, random_state=seed)
        if r["phase"] == "calibration":
            training, _ = train_test_split(training, test_size=0.33, random_state=seed)
        if len(training) != int(r["nrow"]):
            count["rows left out: another encoding"] += 1
            continue
        lam = Fraction(r["lambda"])
        result, total, kappa = prove(
            X[training], y[training], int(r["depth"]), lam / (1 - lam), options.solver, options.limit
        )
        value = float((1 - lam) * (result.value + kappa - total))
        count["instances"] += 1
        count["proved"] += result.optimal
        if abs(value - float(r["obj_value"])) < 1e-4:
            count["equal to the published value"] += 1
        elif result.optimal or value > float(r["obj_value"]):
            count["CONTRADICTIONS"] += 1
            print(
                f"contradiction: {r['dataset']}, depth {r['depth']}, lambda {r['lambda']}, sample {r['sample']}: {value}, {r['obj_value']}"
            )
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--depths", default="2,3", type=lambda text: text.split(","))
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--solver", default="scip", choices=("scip", "gurobi"))
    parser.add_argument("--sample", type=int, default=30, help="instances of each table, evenly spread")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--tables", default="accelerated,strongtree")
    options = parser.parse_args()
    folder = encodings()
    if folder is None:
        return 0
    warm_up()
    wrong = 0
    for name, check in (("accelerated", check_accelerated), ("strongtree", strongtree)):
        if name not in options.tables.split(","):
            continue
        began = time.perf_counter()
        count = check(folder, options)
        wrong += count["CONTRADICTIONS"]
        print(
            f"{name}: "
            + ", ".join(f"{n} {what}" for what, n in count.items())
            + f", {time.perf_counter() - began:.0f} s",
            flush=True,
        )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
