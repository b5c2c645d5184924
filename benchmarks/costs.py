"""Compare the exact search for least cost with fewest errors and pystreed.

python benchmarks/costs.py [--repeats 9] [--limit 60] [--depths 3 4]
Needs OCTWEB_BENCH_DATA (default ../shared/data).  CPU seconds, the best of the repeats of one run; ratios are the
result.  Each repeat searches for errors and for all costs, so that other programs slow down both.  The costs are a matrix (5 and 1), whole amounts (1 to 19), and amounts in cents (up to 20.00).  pystreed's
cost-sensitive task takes part if it is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import best, encodings

from trainer.data.cost_text import read_costs
from trainer.data.costs import row_costs
from trainer.data.problem import SettingNames
from trainer.families.exact.search.solve import ExactResult, solve_binary
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits
from trainer.table import numeric_table

TABLES = {
    3: ("tic-tac-toe", "kr-vs-kp", "credit_QB_5", "ionosphere_QT_5", "wpbc_QB_5", "wdbc_QT_5", "ozone-one_QT_5"),
    4: ("tic-tac-toe", "kr-vs-kp", "credit_QB_5", "parkinsons_QT_5", "plrx_QB_5"),
}
PEER_REPEATS = 3  # pystreed takes about ten times as long
DEAR = 5  # cost of a misclassified row of the second class
KINDS = ("matrix", "amounts", "cents")


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return binary features uint8 (n, features) and class codes int32 (n,) of a published encoding."""
    table = pd.read_csv(folder / "encoded" / f"{name}_enc.csv.gz")
    return table.drop(columns="target").to_numpy(np.uint8), table["target"].to_numpy(np.int32)


def given_costs(kind: str, y: np.ndarray) -> np.ndarray:
    """Return the cost of predicting each of the two classes for each row, float64 (n, 2)."""
    draw = np.random.default_rng(1)
    dearest = {
        "matrix": np.ones(len(y)),
        "amounts": draw.integers(1, 20, len(y)),
        "cents": draw.integers(1, 2001, len(y)) / 100,
    }
    costs = np.zeros((len(y), 2))
    costs[y == 0, 1] = dearest[kind][y == 0]
    costs[y == 1, 0] = DEAR
    return costs


def copies(X: np.ndarray, y: np.ndarray, costs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any]:
    """Return the weighted copies of rows for the search: features, labels, weights; and the table of row costs."""
    table = read_costs({"costs": "rows"}, SettingNames(columns=(), classes=("0", "1")))
    row_cost_table = row_costs(table, numeric_table(X), y, given=costs)
    rows, answers = np.nonzero(row_cost_table.copies)
    return X[rows], answers.astype(np.int32), row_cost_table.copies[rows, answers], row_cost_table


def search(X: np.ndarray, y: np.ndarray, weights: np.ndarray | None, depth: int, limit: float) -> ExactResult:
    problem = BinaryProblem(X, y, n_classes=2, depth=depth, weights=weights)
    return solve_binary(problem, limits=SearchLimits(time_limit=limit))


def peer(kind: str, X: np.ndarray, y: np.ndarray, costs: np.ndarray, depth: int, limit: float) -> Any:
    """Return pystreed's tree of least cost, from a cost matrix or from costs of each row."""
    import pystreed
    from pystreed.cstreed import FeatureCostSpecifier

    if kind != "matrix":
        return pystreed.STreeDInstanceCostSensitiveClassifier(max_depth=depth, time_limit=limit).fit(X, costs)
    free = [FeatureCostSpecifier(0.0, 0.0, f"q{j}", j, j) for j in range(X.shape[1])]
    matrix = pystreed.CostSpecifier([[0.0, 1.0], [float(DEAR), 0.0]], free)
    return pystreed.STreeDCostSensitiveClassifier(max_depth=depth, time_limit=limit).fit(X, y, matrix)


def compare(folder: Path, name: str, depth: int, repeats: int, limit: float) -> dict[str, float]:
    """Print one line for a table; return the time ratio of each comparison."""
    X, y = load(folder, name)
    given = {kind: given_costs(kind, y) for kind in KINDS}
    cases = {kind: copies(X, y, costs) for kind, costs in given.items()}
    fastest = dict.fromkeys(("errors", *KINDS), float("inf"))
    solutions: dict[str, ExactResult] = {}
    for _ in range(repeats):
        for kind in fastest:
            rows = (X, y, None) if kind == "errors" else cases[kind][:3]
            seconds, solutions[kind] = best(lambda rows=rows: search(*rows, depth, limit), 1)
            fastest[kind] = min(fastest[kind], seconds)
    ratios: dict[str, float] = {}
    words = f"{name:16s} {depth}  errors {fastest['errors']:7.4f} s"
    for kind, costs in given.items():
        seconds = fastest[kind]
        solution = solutions[kind]
        row_cost_table = cases[kind][3]
        ratios[kind] = seconds / fastest["errors"]
        words += f"  {kind} {seconds:7.4f} s ({ratios[kind]:.2f}"
        if importlib.util.find_spec("pystreed"):
            theirs, model = best(lambda kind=kind, costs=costs: peer(kind, X, y, costs, depth, limit), PEER_REPEATS)
            ratios[f"{kind} against pystreed"] = seconds / theirs
            cost = costs[np.arange(len(y)), np.asarray(model.predict(X), int)].sum()
            differs = cost - float(
                (solution.errors * row_cost_table.divisor + row_cost_table.floor) * row_cost_table.step
            )
            words += f"; pystreed {theirs:7.4f} s, {seconds / theirs:.2f}"
            words += "" if abs(differs) < 1e-6 else f", its tree costs {differs:+.2f}"
        words += ")"
    print(words, flush=True)
    return ratios


def main() -> None:
    """Print one line for each table and depth, and the median and worst ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--depths", type=int, nargs="+", default=[3, 4], choices=sorted(TABLES))
    options = parser.parse_args()
    folder = encodings()
    if folder is None:
        return
    warm = np.random.default_rng(0).integers(0, 2, (60, 7)).astype(np.uint8)
    search(warm, (warm.sum(axis=1) % 2).astype(np.int32), None, 5, options.limit)
    for depth in options.depths:
        lines = [compare(folder, name, depth, options.repeats, options.limit) for name in TABLES[depth]]
        for kind in lines[0]:
            ratios = [line[kind] for line in lines]
            print(f"depth {depth}, {kind}: median {np.median(ratios):.2f}, worst {max(ratios):.2f}")


if __name__ == "__main__":
    main()
