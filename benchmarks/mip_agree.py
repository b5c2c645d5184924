"""Check every MIP formulation against the exact search on small published sets.

Usage: OCTWEB_BENCH_DATA=... python benchmarks/mip_agree.py [--limit 20] [--depths 2,3] [--sets monk1,monk3] [--solver scip]

The exact search gives the optimum. Each formulation starts from the CART tree and has to find and prove the same value.
A cell has the processor time if it did, else its value and bound in rows, which must enclose the optimum. Penalties are
0.04 at depth 2 and 0.08 at depth 3, as in mip_benchmark.py. BinOCT has complete trees and no leaf penalty, so it is
compared with the exact search without a penalty. The limit is processor time. The exit status is 1 if anything
contradicts the optimum.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from common import encodings
from mip_benchmark import VANILLA, load, warm_up, within

from trainer.families.mip import instance as instances
from trainer.families.mip.bendoct import BendOCT
from trainer.families.mip.bendoct_accelerated import AcceleratedBendOCT, Techniques
from trainer.families.mip.binoct import BinOCT
from trainer.families.mip.first_tree import make_start
from trainer.families.mip.flowoct import FlowOCT
from trainer.families.mip.instance import Instance
from trainer.families.mip.oct import OCT
from trainer.families.mip.tree_mip import Formulation, optimise
from trainer.milo import Backend, backend

SETS = (
    "soybean-small", "monk1", "monk2", "monk3", "iris_QB_5", "iris_QT_5", "breast-cancer", "balance-scale", "tic-tac-toe",
)  # fmt: skip
PENALTIES = {2: Fraction("0.04"), 3: Fraction("0.08")}
FORMULATIONS: dict[str, Callable[[Instance], Formulation]] = {
    "FlowOCT": FlowOCT,
    "BendOCT": BendOCT,
    "accelerated": AcceleratedBendOCT,
    "accelerated, without bounds": lambda inst: AcceleratedBendOCT(
        inst, replace(VANILLA, equivalent_points="recursive", polishing=True, strengthened=True)
    ),
    "accelerated, basic equivalent points": lambda inst: AcceleratedBendOCT(
        inst, Techniques(equivalent_points="basic", split_bounds=False)
    ),
    "OCT": OCT,
    "BinOCT": BinOCT,
}
LEAST = Fraction(1, 10**6)


def cell(make: Callable[[Instance], Formulation], inst: Instance, solver: Backend, limit: float) -> tuple[str, bool]:
    """Solve with a formulation; return its result as text, and whether it agrees with the exact search."""
    optimum = make_start(inst, "exact", 600.0).bound
    assert optimum is not None
    began = time.process_time()
    form = make(inst)
    starts = form.improve_starts(make_start(inst, "cart", 0.0).trees)
    result = optimise(form, solver, starts=starts, options=within(solver.name, limit))
    assert result.value is not None
    if result.optimal:
        return f"{time.process_time() - began:.1f} s", result.value == optimum
    agrees = result.value <= optimum <= result.bound + LEAST
    return f"{float(result.value):.2f} to {float(result.bound):.2f}", agrees


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=20.0)
    parser.add_argument("--depths", default="2,3")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--solver", default="scip")
    options = parser.parse_args()
    folder = encodings()
    if folder is None:
        return 0
    warm_up()
    solver = backend(options.solver)
    wrong = proved = solves = 0
    print(f"| set | depth | optimum, rows | {' | '.join(FORMULATIONS)} |\n|{'---|' * (len(FORMULATIONS) + 3)}")
    for depth in map(int, options.depths.split(",")):
        for name in options.sets.split(","):
            X, y = load(folder, name)
            priced = instances.build(X, y, depth=depth, kappa=PENALTIES[depth] * len(y))
            cells = []
            for key, make in FORMULATIONS.items():
                inst = replace(priced, kappa=Fraction(0)) if key == "BinOCT" else priced
                text, agrees = cell(make, inst, solver, options.limit)
                wrong = wrong + (not agrees)
                proved = proved + text.endswith("s")
                solves = solves + 1
                cells.append(text if agrees else f"**{text}: contradiction**")
            optimum = make_start(priced, "exact", 600.0).bound
            print(f"| {name} | {depth} | {float(optimum or 0):.2f} | {' | '.join(cells)} |", flush=True)
    print(f"\n{proved} of {solves} proved and equal, {wrong} contradictions")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
