"""Compare SCIP with Gurobi on the shared instances.

Usage: OCTWEB_BENCH_DATA=... python benchmarks/mip_solvers.py [--depth 2] [--limit 20] [--variants vanilla,default]
       [--sets monk1,monk3] [--known RESULTS.jsonl]

The solvers take turns, so that other work on the machine affects both. The instances are the group `shared` of
mip_benchmark.py; all of them fit Gurobi's size-limited licence. Limit and seconds are processor time. The ratio is a
geometric mean over the instances that both prove within the limit. `--known` names a file of mip_benchmark.py.
Instances that one of the solvers did not prove there within the limit are left out.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

import mip_benchmark as shared
from common import encodings

from trainer.errors import SolverError
from trainer.milo import backend

SOLVERS = ("scip", "gurobi")


def slow(path: Path | None, limit: float) -> set[tuple[str, str, int, str]]:
    """Return variant, table, depth and penalty of the cases that one of the solvers does not prove in time."""
    records = shared.records(path) if path else {}
    late = [r for r in records.values() if r["solver"] in SOLVERS and (not r["optimal"] or r["cpu"] > limit)]
    return {(r["variant"], r["name"], r["depth"], r["penalty"]) for r in late}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--limit", type=float, default=20.0)
    parser.add_argument("--variants", default="vanilla,default")
    parser.add_argument("--sets", default=None)
    parser.add_argument("--known", type=Path, default=None)
    options = parser.parse_args()
    folder = encodings()
    if folder is None:
        return 0
    try:
        backend("gurobi")
    except SolverError as error:
        print(error)
        return 0
    left_out = slow(options.known, options.limit)
    cases = shared.cases(folder, "shared", options.sets.split(",") if options.sets else None)
    selected = [case for case in cases if case.depth == options.depth]
    shared.warm_up()
    for variant in options.variants.split(","):
        ratios = []
        print(
            f"\n| {variant}, depth {options.depth} | penalty | SCIP, s | nodes | Gurobi, s | nodes | ratio |\n|---|---|---|---|---|---|---|"
        )
        for case in selected:
            if (variant, case.name, case.depth, case.penalty) in left_out:
                continue
            techniques = shared.VARIANTS[variant]
            ours, theirs = (
                shared.solve(folder, case, techniques, solver, options.limit, processor=True) for solver in SOLVERS
            )
            ratio = ours["cpu"] / theirs["cpu"] if ours["optimal"] and theirs["optimal"] else math.nan
            ratios += [] if math.isnan(ratio) else [ratio]
            seconds = [f"{r['cpu']:.2f}" if r["optimal"] else "limit" for r in (ours, theirs)]
            print(
                f"| {case.name} | {case.penalty} | {seconds[0]} | {ours['nodes']} | {seconds[1]} | {theirs['nodes']} | {ratio:.2f} |",
                flush=True,
            )
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"\n{variant}, depth {options.depth}: {mean:.2f} over {len(ratios)} instances that both prove")
    return 0


if __name__ == "__main__":
    sys.exit(main())
