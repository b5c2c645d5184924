"""Measure time and memory of the exact search by rows and columns.

python benchmarks/exact_growth.py [--rows 1000 10000 100000 1000000] [--columns 25 50 100 200] [--picture exact-growth]
Depth 3 on generated tables: labels follow a random tree of depth 3 over fair binary columns; a tenth of them is
flipped. CPU seconds, one thread, compiled code warm, one call per point.  The memory is the peak resident size of the
process so far, including the table, so points run from small to large.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from trainer.families.exact.search.solve import solve_binary
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits


def table(rows: int, columns: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Generate a table for the search.

    Returns random bits uint8 (rows, columns), and the classes of a tree of depth 3 over seven columns, a
    tenth of them flipped.
    """
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (rows, columns), dtype=np.uint8)
    rule_columns = rng.choice(columns, 7, replace=False)
    node = np.zeros(rows, np.int64)
    for _ in range(2):
        node = 2 * node + 1 + X[np.arange(rows), rule_columns[node]]
    y = X[np.arange(rows), rule_columns[node]] ^ (rng.random(rows) < 0.1)
    return X, y.astype(np.int32)


def measure(rows: int, columns: int, limit: float) -> float:
    """Solve one table, print one line, and return the CPU seconds."""
    X, y = table(rows, columns)
    started = time.process_time()
    solution = solve_binary(
        BinaryProblem(X, y, n_classes=2, depth=3, leaf_cost=Fraction(rows, 1000)), limits=SearchLimits(time_limit=limit)
    )
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    proved = "yes" if solution.optimal else f"no, bound {float(solution.bound):.0f}"
    print(f"| {rows} | {columns} | {seconds:.3f} | {peak:.0f} | {solution.errors} | {proved} |", flush=True)
    return seconds


def picture(by_rows: dict[int, float], by_columns: dict[int, float], titles: tuple[str, str], path: Path) -> None:
    """Draw two log-log charts as PNG, or as HTML if there is no browser."""
    import plotly.graph_objects as go
    from mip_benchmark import photograph
    from plotly.subplots import make_subplots

    figure = make_subplots(1, 2, subplot_titles=titles)
    for place, (name, points) in enumerate((("rows", by_rows), ("columns", by_columns)), 1):
        line = {"mode": "lines+markers", "showlegend": False, "line": {"color": "#1f77b4"}}
        figure.add_trace(go.Scatter(x=list(points), y=list(points.values()), **line), 1, place)
        figure.update_xaxes(type="log", title=name, row=1, col=place, tickvals=list(points))
        figure.update_yaxes(type="log", title="CPU seconds", row=1, col=place)
    figure.update_layout(template="plotly_white", width=1000, height=460)
    page = path.with_suffix(".html")
    figure.write_html(page, include_plotlyjs=True)
    if photograph(page, path):
        page.unlink()


def main() -> None:
    """Measure, print and draw the growth of time and memory.

    Columns come before rows, since their tables are smaller and peak memory never falls.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="*", default=[1000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--columns", type=int, nargs="*", default=[25, 50, 100, 200])
    parser.add_argument("--fixed-rows", type=int, default=10_000, help="rows where the columns vary")
    parser.add_argument("--fixed-columns", type=int, default=100, help="columns where the rows vary")
    parser.add_argument("--limit", type=float, default=600.0, help="wall seconds of a point")
    parser.add_argument("--picture", type=Path, help="where to put the picture, without its ending")
    options = parser.parse_args()
    X, y = table(200, 10)
    solve_binary(BinaryProblem(X, y, n_classes=2, depth=3, leaf_cost=Fraction(1)))
    print("| rows | columns | CPU s | peak MiB | errors | proved |\n|---|---|---|---|---|---|")
    by_columns = {m: measure(options.fixed_rows, m, options.limit) for m in options.columns}
    by_rows = {n: measure(n, options.fixed_columns, options.limit) for n in options.rows}
    if options.picture:
        titles = (f"{options.fixed_columns} columns", f"{options.fixed_rows} rows")
        picture(by_rows, by_columns, titles, options.picture)


if __name__ == "__main__":
    main()
