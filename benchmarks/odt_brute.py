"""Check every option of odt against brute force on small random tables.

python benchmarks/odt_brute.py [--count 200] [--solvers search scip gurobi highs] [--options NAME ...]
Checks the exact search and the model under each solver, and prints Markdown. A run fails at the first instance with a
wrong tree, bound or claim (`tests/trainer/odt/options.py`).
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.trainer.odt.options import OPTIONS, applies, check, instance


def measure(option: str, solver: str, count: int) -> str:
    """Check an option on `count` instances; return the cell of the printed table.

    Raises SystemExit at the first failure.
    """
    started = time.perf_counter()
    for seed in range(count):
        problem, topology, settings = instance(option, seed)
        try:
            check(problem, solver, topology, settings)
        except Exception as error:
            raise SystemExit(f"{option}, {solver}, instance {seed}, {topology}, {settings}: {error!r}") from error
    return f"{count} in {time.perf_counter() - started:.0f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="instances of each option and solver")
    parser.add_argument("--solvers", nargs="*", default=["search", "scip", "gurobi"])
    parser.add_argument("--options", nargs="*", default=list(OPTIONS), choices=list(OPTIONS))
    options = parser.parse_args()
    print("| option | " + " | ".join(options.solvers) + " |\n" + "|---" * (1 + len(options.solvers)) + "|")
    for option in options.options:
        cells = []
        for solver in options.solvers:
            cells.append(measure(option, solver, options.count) if applies(option, solver) else "-")
        print(f"| {option} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
