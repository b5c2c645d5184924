"""Compare plain and accelerated BendOCT, and each acceleration technique.

Usage: OCTWEB_BENCH_DATA=... python benchmarks/mip_benchmark.py [RESULTS.jsonl] [--group shared|techniques|short|hard]
       [--limit 120] [--variants vanilla,default] [--solver scip] [--sets monk1,monk3] [--minutes 75] [--processor]
       [--report] [--ratio gurobi] [--pictures benchmarks/results]

Every technique is tested alone and left out, on the published encodings. With `--processor` limit and seconds are
processor time instead of wall-clock time. Then other work on the machine hardly counts, and a run may take several
days. `benchmarks/results/mip-shared.jsonl.gz` holds solves of the group `shared` with `--processor` and a limit of 120,
by SCIP and by Gurobi (plain and default); `mip-techniques.jsonl.gz` those of all techniques at an earlier commit with
longer Benders rows, `mip-hard.jsonl.gz` the group `hard` with a limit of 20, `mip-low.jsonl.gz` the group `techniques`
with 10.

Every solve is one JSON line in RESULTS.jsonl. Solves in the file are not run again, so a run may be stopped anywhere.
A proof within a smaller limit counts for a larger one. Without a file the group `short` is run plain and accelerated
with 4 s per solve, and reported.
`--report` prints a table of the file: instances solved, shifted geometric mean time (shift 1 s, unsolved at the limit),
mean gap of the rest, and share of time in hooks (processor time of all callbacks). The last column is the time in which
plain BendOCT solves its last instance, divided by the time in which the variant solves as many.
`--ratio` adds the processor time of the solver divided by that of another one, if the file has solves of both.
`--pictures` draws instances solved over time and gaps at the limit with Plotly: techniques alone, left out, and plain
against default. The output is PNG if Playwright and Chromium are installed, else HTML.

Groups     shared      every table of at most 1000 rows at depth 2 (leaf penalty 0.04) and depth 3 (0.08), and those
                       of at most 150 rows at depth 3 with 0.01
           techniques  monk1-3, balance-scale, breast-cancer, iris, wine, transfusion at depth 3 with 0.01
           short       monk1, monk3, balance-scale, breast-cancer at depth 3 with 0.01
           hard        every table of at most 1000 rows at depth 3 with 0.01 and 0.001
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from common import encodings

from trainer.families.mip import instance as instances
from trainer.families.mip.bendoct_accelerated import PAPER, VANILLA, AcceleratedBendOCT, Techniques
from trainer.families.mip.first_tree import make_start
from trainer.families.mip.tree_mip import optimise
from trainer.milo import SolveOptions, backend

DEFAULT = Techniques()
VARIANTS = {
    "vanilla": VANILLA,
    "+ polishing": replace(VANILLA, polishing=True),
    "+ strengthened": replace(VANILLA, strengthened=True),
    "+ equivalent points": replace(VANILLA, equivalent_points="recursive"),
    "+ path bounds": replace(VANILLA, path_bounds=True),
    "+ split bounds": replace(VANILLA, split_bounds=True),
    "default": DEFAULT,
    "- polishing": replace(DEFAULT, polishing=False),
    "- equivalent points": replace(DEFAULT, equivalent_points=None),
    "- path bounds": replace(DEFAULT, path_bounds=False),
    "- structure": replace(DEFAULT, structure=False),
    "- split bounds": replace(DEFAULT, split_bounds=False),
    "- cache": replace(DEFAULT, cache=False),
    "paper": PAPER,
    # Each of the following differs from the default in one option.
    "no first tree": DEFAULT,
    "chain": replace(DEFAULT, equivalent_points="chain"),
    "basic": replace(DEFAULT, equivalent_points="basic"),
    "aggregated": replace(DEFAULT, disaggregated=False),
    "no group selection": replace(DEFAULT, group_selection=False),
    "split sets 0": replace(DEFAULT, split_set=0),
    "split sets 1": replace(DEFAULT, split_set=1),
    "strengthened": replace(DEFAULT, strengthened=True),
    "no negative samples": replace(DEFAULT, negative_samples=False),
    "end points only": replace(DEFAULT, endpoints_only=True),
    "not at trees": replace(DEFAULT, at_integral=False),
    "objective form": replace(DEFAULT, objective_form=True),
}
WITHOUT_FIRST = ("no first tree",)
SMALL = 1000
TECHNIQUES = (
    "monk1",
    "monk2",
    "monk3",
    "balance-scale",
    "breast-cancer",
    "iris_QB_5",
    "iris_QT_5",
    "wine_QT_5",
    "transfusion_QT_5",
)
SHORT = ("monk1", "monk3", "balance-scale", "breast-cancer")


@dataclass(frozen=True, kw_only=True)
class Case:
    """An instance: a table with its rows, the depth and the leaf penalty."""

    name: str
    rows: int
    depth: int
    penalty: str


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    with gzip.open(folder / "encoded" / f"{name}_enc.csv.gz", "rt") as lines:
        cells = np.loadtxt(lines, delimiter=",", skiprows=1)
    return cells[:, :-1].astype(np.uint8), cells[:, -1].astype(np.int32)


def sizes(folder: Path) -> dict[str, int]:
    """Return the number of rows of each table, smallest first."""
    size_by_set = {}
    for path in sorted((folder / "encoded").glob("*_enc.csv.gz")):
        with gzip.open(path, "rt") as lines:
            size_by_set[path.name.removesuffix("_enc.csv.gz")] = sum(1 for _ in lines) - 1
    return dict(sorted(size_by_set.items(), key=lambda item: (item[1], item[0])))


def cases(folder: Path, group: str, sets: list[str] | None) -> Iterator[Case]:
    for name, rows in sizes(folder).items():
        if rows > SMALL or (sets is not None and name not in sets):
            continue
        selected = {
            "shared": [(2, "0.04"), (3, "0.08"), *([(3, "0.01")] if rows <= 150 else [])],
            "techniques": [(3, "0.01")] if name in TECHNIQUES else [],
            "short": [(3, "0.01")] if name in SHORT else [],
            "hard": [(3, "0.01"), (3, "0.001")],
        }
        for depth, penalty in selected[group]:
            yield Case(name=name, rows=rows, depth=depth, penalty=penalty)


def solve(
    folder: Path, case: Case, techniques: Techniques, solver: str, limit: float, *, processor: bool, first: str = "cart"
) -> dict[str, Any]:
    """Build and solve an instance; return the record of the solve.

    `seconds` includes building, since constraints stated before the search cost time too. `seconds` and the limit are
    wall-clock time, or processor time if `processor` is set. `cpu` is always processor time.
    """
    X, y = load(folder, case.name)
    began = time.perf_counter()
    work = time.process_time()
    inst = instances.build(X, y, depth=case.depth, kappa=Fraction(case.penalty) * len(y))
    form = AcceleratedBendOCT(inst, techniques)
    starts = form.improve_starts(make_start(inst, first, 0.0).trees)
    built = time.process_time() - work if processor else time.perf_counter() - began
    left = max(limit - built, 0.1)
    options = within(solver, left) if processor else SolveOptions(time=left)
    result = optimise(form, backend(solver), starts=starts, options=options)
    value = float(result.value or 0)
    cpu = time.process_time() - work
    return {
        "seconds": round(cpu if processor else time.perf_counter() - began, 4),
        "cpu": round(cpu, 4),
        "optimal": result.optimal,
        "value": value,
        "gap": 0.0 if result.optimal else abs(float(result.bound) - value) / max(abs(value), 1e-10),
        "callback_cpu": round(result.outcome.hook_seconds, 4),
        "nodes": result.outcome.nodes,
        "added": sum(result.outcome.rows.values()),
    }


def within(solver: str, seconds: float) -> SolveOptions:
    """Return options that limit the processor time from now on."""
    if solver == "scip":  # SCIP can measure processor time itself
        return SolveOptions(parameters={"timing/clocktype": 1, "limits/time": seconds})
    began = time.process_time()
    return SolveOptions(stopped=lambda: time.process_time() - began >= seconds)


def warm_up() -> None:
    """Compile the kernels, so that no instance's time includes it."""
    X = np.random.default_rng(0).integers(0, 2, (40, 5)).astype(np.uint8)
    inst = instances.build(X, (X[:, 0] ^ X[:, 1] ^ X[:, 2]).astype(np.int32), depth=3, kappa=Fraction(1, 3))
    optimise(AcceleratedBendOCT(inst, DEFAULT), backend("scip"))


def key(record: dict[str, Any]) -> tuple[Any, ...]:
    return *(record[k] for k in ("variant", "name", "depth", "penalty", "solver", "limit")), record.get("clock", "wall")


def known_solves(
    records: Iterable[dict[str, Any]], solver: str, limit: float, clock: str
) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return the usable solves by variant, table, depth and penalty.

    A solve is usable if it had this limit, or proved its tree within a smaller one.
    """
    mine = [r for r in records if r["solver"] == solver and r.get("clock", "wall") == clock]
    mine = [r for r in mine if r["limit"] == limit or (r["optimal"] and r["limit"] < limit)]
    return {key(r)[:4]: r for r in sorted(mine, key=lambda r: (r["optimal"], r["limit"]))}


def records(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    if not path.exists():
        return {}
    with open_results(path, "rt") as lines:
        return {key(r): r for r in map(json.loads, lines)}


def open_results(path: Path, mode: str) -> IO[str]:
    """Open a file of JSON lines, compressed if its name ends in gz."""
    return cast(IO[str], gzip.open(path, mode)) if path.suffix == ".gz" else path.open(mode)


def geometric(runs: list[dict[str, Any]], limit: float) -> float:
    return math.exp(sum(math.log(1 + (r["seconds"] if r["optimal"] else limit)) for r in runs) / len(runs)) - 1


def speed(runs: list[dict[str, Any]], base: list[dict[str, Any]]) -> str:
    """Return how many times faster `runs` are than `base`.

    Divides the time in which `base` solves its last instance by the time in which `runs` solve as many.
    """
    theirs = sorted(r["seconds"] for r in base if r["optimal"])
    solved = sorted(r["seconds"] for r in runs if r["optimal"])
    return f"{theirs[-1] / solved[len(theirs) - 1]:.0f}" if theirs and len(solved) >= len(theirs) else "-"


def solves_by_variant(
    records: list[dict[str, Any]], options: argparse.Namespace, selected: set[tuple[Any, ...]]
) -> dict[str, list[dict[str, Any]]]:
    """Return the solves of a group by variant.

    Leaves out incomplete variants, since they would look better, and prints their names.
    """
    runs: dict[str, list[dict[str, Any]]] = {}
    known = known_solves(records, options.solver, options.limit, options.clock)
    for variant in VARIANTS:
        solves = [r for (name, *case), r in known.items() if name == variant and tuple(case) in selected]
        if solves and len(solves) < len(selected):
            print(f"{variant}: {len(solves)} of {len(selected)} solves are there; not reported.")
        elif solves:
            runs[variant] = solves
    return runs


def report(runs: dict[str, list[dict[str, Any]]], limit: float) -> None:
    depths = sorted({r["depth"] for solves in runs.values() for r in solves})
    head = ["variant", "solved", *(f"depth {d}" for d in depths)]
    head += ["geometric mean, s", "gap of the rest", "time in hooks", "times faster than plain"]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for variant, solves in runs.items():
        open_gaps = [r["gap"] for r in solves if not r["optimal"]]
        gap = f"{np.mean(open_gaps):.1%}" if open_gaps else "-"
        timed = all("callback_cpu" in r for r in solves)
        hooks = f"{sum(r['callback_cpu'] for r in solves) / sum(r['cpu'] for r in solves):.0%}" if timed else "-"
        base = runs.get("vanilla", [])
        faster = speed(solves, base)
        parts = [solves, *([r for r in solves if r["depth"] == d] for d in depths)]
        solved = [f"{sum(r['optimal'] for r in part)} of {len(part)}" for part in parts]
        print(f"| {' | '.join([variant, *solved, f'{geometric(solves, limit):.2f}', gap, hooks, faster])} |")


def ratios(records: list[dict[str, Any]], solver: str, other: str) -> None:
    """Print the processor time of one solver divided by that of another: geometric means by variant and
    depth.

    Only instances that both prove count, with any limit.
    """
    best: dict[tuple[Any, ...], float] = {}
    for r in (r for r in records if r["optimal"]):
        about = (r["solver"], r["variant"], r["depth"], r["name"], r["penalty"])
        best[about] = min(r["cpu"], best.get(about, math.inf))
    shared = [k[1:] for k in best if k[0] == solver and (other, *k[1:]) in best]
    print(f"\n| variant | depth | instances that both prove | {solver} / {other} |\n|---|---|---|---|")
    for variant, depth in dict.fromkeys(k[:2] for k in shared):
        logs = [math.log(best[solver, *k] / best[other, *k]) for k in shared if k[:2] == (variant, depth)]
        print(f"| {variant} | {depth} | {len(logs)} | {math.exp(float(np.mean(logs))):.2f} |")


def draw(runs: dict[str, list[dict[str, Any]]], limit: float, title: str, path: Path) -> None:
    """Draw solved instances over time on the left and the remaining gaps on the right, as in the paper."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=1, cols=2, shared_yaxes=True, subplot_titles=("solved within", "gap at the limit"))
    colours = (
        "#1f77b4",
        "#ff7f0e",
        "#2ca02c",
        "#d62728",
        "#9467bd",
        "#8c564b",
        "#e377c2",
        "#7f7f7f",
        "#bcbd22",
        "#17becf",
    )
    for number, (name, solves) in enumerate(runs.items()):
        solved = sorted(r["seconds"] for r in solves if r["optimal"])
        gaps = sorted(r["gap"] for r in solves if not r["optimal"])
        style: dict[str, Any] = {
            "name": name, "legendgroup": name, "mode": "lines",
            "line": {"shape": "hv", "color": colours[number % 10], "dash": "solid" if number < 10 else "dash"},
        }  # fmt: skip
        figure.add_trace(go.Scatter(x=[*solved, limit], y=[*range(1, len(solved) + 1), len(solved)], **style), 1, 1)
        counts = [len(solved) + i for i in range(len(gaps) + 1)]
        figure.add_trace(go.Scatter(x=[0, *gaps], y=counts, showlegend=False, **style), 1, 2)
    figure.update_xaxes(type="log", title="seconds", row=1, col=1)
    figure.update_xaxes(title="relative gap", row=1, col=2)
    figure.update_yaxes(title="instances", row=1, col=1, rangemode="tozero")
    figure.update_layout(title=title, template="plotly_white", width=1000, height=460)
    page = path.with_suffix(".html")
    figure.write_html(page, include_plotlyjs=True)
    if photograph(page, path):
        page.unlink()


def photograph(page: Path, path: Path) -> bool:
    """Render the page as PNG; return False if Playwright or a browser is missing."""
    import shutil

    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return False
    if browser is None:
        return False
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-dev-shm-usage"])
        tab = chromium.new_page(viewport={"width": 1020, "height": 480})
        tab.goto(page.resolve().as_uri())
        tab.wait_for_selector(".main-svg")
        tab.screenshot(path=str(path.with_suffix(".png")))
        chromium.close()
    return True


def pictures(runs: dict[str, list[dict[str, Any]]], options: argparse.Namespace) -> None:
    """Draw the paper's two figures if techniques were run alone or left out, else plain against default."""
    folder = options.pictures
    depths = "depth 2 and 3" if options.group == "shared" else "depth 3"
    rule = f"{len(runs['default'])} instances of {depths}, {options.limit:g} s"
    alone = {k: v for k, v in runs.items() if k in ("vanilla", "default", "paper") or k.startswith("+")}
    out = {k: v for k, v in runs.items() if k in ("default", "paper") or k.startswith("-")}
    if not any(k[0] in "+-" for k in runs):
        draw(alone, options.limit, f"Plain and accelerated BendOCT, {rule}", folder / "mip-shared")
        return
    draw(alone, options.limit, f"Each technique alone, {rule}", folder / "mip-alone")
    draw(out, options.limit, f"Each technique left out, {rule}", folder / "mip-left-out")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="?", default=None)
    parser.add_argument("--group", default="short", choices=("shared", "techniques", "short", "hard"))
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--variants", default=None, help="comma-separated, among: " + ", ".join(VARIANTS))
    parser.add_argument("--solver", default="scip", choices=("scip", "gurobi", "highs"))
    parser.add_argument("--sets", default=None)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--processor", action="store_true", help="limit and seconds in processor time")
    parser.add_argument("--report", action="store_true")
    parser.add_argument(
        "--ratio", choices=("scip", "gurobi", "highs"), help="with --report: processor time against this solver"
    )
    parser.add_argument("--pictures", type=Path, default=None)
    options = parser.parse_args()
    options.clock = "processor" if options.processor else "wall"
    folder = encodings()
    if folder is None:
        return 0
    brief = options.results is None
    if brief:  # this is a short run with a few seconds per solve, so its results are not kept
        options.results = Path(tempfile.mkdtemp()) / "results.jsonl"
        options.report = True
        options.limit = 4.0
    until = time.monotonic() + 60 * options.minutes
    sets = options.sets.split(",") if options.sets else None
    if (options.report and not brief) or options.pictures:
        selected = {(c.name, c.depth, c.penalty) for c in cases(folder, options.group, sets)}
        runs = solves_by_variant(list(records(options.results).values()), options, selected)
        if options.variants:
            runs = {variant: solves for variant, solves in runs.items() if variant in options.variants.split(",")}
        report(runs, options.limit)
        if options.ratio:
            ratios(list(records(options.results).values()), options.solver, options.ratio)
        if options.pictures:
            pictures(runs, options)
        return 0
    chosen = ["vanilla", "default"] if brief else list(VARIANTS)
    if options.variants:
        chosen = options.variants.split(",")
    finished = known_solves(records(options.results).values(), options.solver, options.limit, options.clock)
    warm_up()
    for variant in chosen:
        for case in cases(folder, options.group, sets):
            about = {"variant": variant, **vars(case), "solver": options.solver, "limit": options.limit}
            about["clock"] = options.clock
            if key(about)[:4] in finished or time.monotonic() > until:
                continue
            techniques = VARIANTS[variant]
            record = about | solve(
                folder,
                case,
                techniques,
                options.solver,
                options.limit,
                processor=options.processor,
                first="none" if variant in WITHOUT_FIRST else "cart",
            )
            with open_results(options.results, "at") as lines:
                lines.write(json.dumps(record) + "\n")
    if brief:
        selected = {(c.name, c.depth, c.penalty) for c in cases(folder, options.group, sets)}
        report(solves_by_variant(list(records(options.results).values()), options, selected), options.limit)
    return 0


if __name__ == "__main__":
    sys.exit(main())
