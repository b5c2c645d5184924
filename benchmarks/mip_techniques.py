"""BendOCT, plain and accelerated, on the published encodings: each technique alone and left out in turn, one run, one machine.

Usage: OCTWEB_BENCH_DATA=... python benchmarks/mip_techniques.py [--limit 10] [--sets monk1,monk3] [--depth 3]
       [--penalties 0.01,0.001] [--solver scip] [--variants vanilla,default] [--figure techniques.html] [--full]

Prints for each variant the instances solved, the shifted geometric mean time (shift 1 s, unsolved at the limit), the mean gap of
the rest, the share of time in hooks, and how many times faster it solves as many instances as plain BendOCT does. `--full` takes
every table of at most 1000 rows, both penalties, depth 3, and 120 s each. `--figure` writes solved instances over time, and gaps.
"""

from __future__ import annotations

import argparse
import gzip
import math
import os
import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from trainer.cuts import instance as instances  # noqa: E402
from trainer.methods.bendoct_accelerated import PAPER, VANILLA, AcceleratedBendOCT, Techniques  # noqa: E402
from trainer.methods.tree_mip import optimise, starting  # noqa: E402
from trainer.milo import Options, backend  # noqa: E402

DEFAULT = Techniques()
VARIANTS = {
    "vanilla": VANILLA,
    "+ polishing": replace(VANILLA, polishing=True),
    "+ strengthened": replace(VANILLA, strengthened=True),
    "+ equivalent points": replace(VANILLA, equivalent_points="recursive", set_limit=200),
    "+ path bounds": replace(VANILLA, path_bounds=True),
    "+ split bounds": replace(VANILLA, split_bounds=True),
    "default": DEFAULT,
    "default + equivalent points": replace(DEFAULT, equivalent_points="recursive", set_limit=200),
    "- polishing": replace(DEFAULT, polishing=False),
    "- path bounds": replace(DEFAULT, path_bounds=False),
    "- structure": replace(DEFAULT, structure=False),
    "- split bounds": replace(DEFAULT, split_bounds=False),
    "- cache": replace(DEFAULT, cache=False),
    "paper": PAPER,
}
SHORT = ("monk1", "monk3", "balance-scale", "breast-cancer")


@dataclass(frozen=True, kw_only=True)
class Run:
    """One solve."""

    seconds: float
    optimal: bool
    gap: float
    hooks: float


def tables(folder: Path, names: list[str] | None) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    found = {}
    for path in sorted((folder / "encoded").glob("*_enc.csv.gz")):
        name = path.name.removesuffix("_enc.csv.gz")
        if names is not None and name not in names:
            continue
        with gzip.open(path, "rt") as lines:
            cells = np.loadtxt(lines, delimiter=",", skiprows=1)
        if names is not None or len(cells) <= 1000:
            found[name] = cells[:, :-1].astype(np.uint8), cells[:, -1].astype(np.int32)
    return found


def solve(
    X: np.ndarray, y: np.ndarray, depth: int, penalty: str, techniques: Techniques, solver: str, limit: float
) -> Run:
    inst = instances.build(X, y, depth=depth, kappa=Fraction(penalty) * len(y))
    form = AcceleratedBendOCT(inst, techniques)
    starts = form.first(starting(inst, "cart", 0.0).trees)
    found = optimise(form, backend(solver), starts=starts, options=Options(time=limit))
    value = float(found.value or 0)
    gap = abs(float(found.bound) - value) / max(abs(value), 1e-10)
    return Run(
        seconds=found.outcome.seconds, optimal=found.optimal, gap=gap,
        hooks=found.outcome.hook_seconds / max(found.outcome.seconds, 1e-9),
    )  # fmt: skip


def geometric(runs: list[Run], limit: float) -> float:
    return math.exp(sum(math.log(1 + (r.seconds if r.optimal else limit)) for r in runs) / len(runs)) - 1


def speed(runs: list[Run], base: list[Run]) -> str:
    """Time until as many instances are solved as the base solved in its whole time, as a ratio."""
    wanted = sum(r.optimal for r in base)
    solved = sorted(r.seconds for r in runs if r.optimal)
    theirs = sorted(r.seconds for r in base if r.optimal)
    if not wanted or len(solved) < wanted:
        return "-"
    return f"{theirs[-1] / solved[wanted - 1]:.0f}"


def draw(results: dict[str, list[Run]], limit: float, path: Path) -> None:
    """Solved instances over time on the left, gaps of the rest on the right."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=1, cols=2, shared_yaxes=True, subplot_titles=("solved within", "gap at the limit"))
    for number, (name, runs) in enumerate(results.items()):
        solved = sorted(r.seconds for r in runs if r.optimal)
        gaps = sorted(r.gap for r in runs if not r.optimal)
        style = {"name": name, "legendgroup": name, "line": {"shape": "hv"}, "mode": "lines"}
        figure.add_trace(go.Scatter(x=[*solved, limit], y=[*range(1, len(solved) + 1), len(solved)], **style), 1, 1)
        counts = [len(solved) + i for i in range(len(gaps) + 1)]
        figure.add_trace(go.Scatter(x=[0, *gaps], y=counts, showlegend=False, **style), 1, 2)
        figure.data[2 * number + 1].line.color = figure.layout.template.layout.colorway[number % 10]
        figure.data[2 * number].line.color = figure.layout.template.layout.colorway[number % 10]
    figure.update_xaxes(type="log", title="seconds", row=1, col=1)
    figure.update_xaxes(title="relative gap", row=1, col=2)
    figure.update_yaxes(title="instances", row=1, col=1)
    figure.write_html(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=None)
    parser.add_argument("--sets", default=None)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--penalties", default=None)
    parser.add_argument("--solver", default="scip", choices=("scip", "gurobi", "highs"))
    parser.add_argument("--variants", default=None, help="comma-separated, among: " + ", ".join(VARIANTS))
    parser.add_argument("--figure", type=Path, default=None)
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    folder = Path(os.environ.get("OCTWEB_BENCH_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "encoded").is_dir():
        print("The published encodings are not here; set OCTWEB_BENCH_DATA.")
        return 0
    limit = options.limit or (120.0 if options.full else 4.0)
    names = options.sets.split(",") if options.sets else None if options.full else list(SHORT)
    penalties = (options.penalties or ("0.01,0.001" if options.full else "0.01")).split(",")
    chosen = options.variants.split(",") if options.variants else list(VARIANTS)
    cases = [(n, X, y, p) for n, (X, y) in tables(folder, names).items() for p in penalties]
    print(f"{len(cases)} instances, depth {options.depth}, {limit:g} s each, {options.solver}")
    print("| variant | solved | geometric mean, s | gap of the rest | time in hooks | times faster than plain |")
    print("|---|---|---|---|---|---|")
    results: dict[str, list[Run]] = {}
    for name in chosen:
        runs = results[name] = [
            solve(X, y, options.depth, p, VARIANTS[name], options.solver, limit) for _, X, y, p in cases
        ]
        rest = [r.gap for r in runs if not r.optimal]
        faster = speed(runs, results["vanilla"]) if "vanilla" in results else "-"
        gap = f"{np.mean(rest):.3f}" if rest else "-"
        mean = geometric(runs, limit)
        hooks = np.mean([r.hooks for r in runs])
        print(f"| {name} | {len(runs) - len(rest)} | {mean:.2f} | {gap} | {hooks:.0%} | {faster} |", flush=True)
    if options.figure is not None:
        draw(results, limit, options.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
