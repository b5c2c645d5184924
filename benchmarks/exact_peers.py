"""Compare the exact search with pystreed and pydl8.5.

python benchmarks/exact_peers.py [--repeats 3] [--limit 60] [--depths 3 4 5]
Needs OCTWEB_BENCH_DATA (default ../shared/data).  Same tables and objective, one run, one thread, compiled code warm.
CPU seconds of the process, the best of the repeats; ratios are the result.
"""

from __future__ import annotations

import argparse
import os
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
from common import best
from pydl85 import DL85Classifier
from pystreed import STreeDClassifier

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from trainer.families.exact.search.solve import ExactResult, solve_binary
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits

DATA = Path(os.environ.get("OCTWEB_BENCH_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
TABLES = {
    3: ("tic-tac-toe", "kr-vs-kp", "car_evaluation", "credit_QB_5", "ionosphere_QT_5", "wpbc_QB_5", "wdbc_QT_5", "ozone-one_QT_5"),
    4: ("tic-tac-toe", "kr-vs-kp", "car_evaluation", "balance-scale", "credit_QB_5", "parkinsons_QT_5", "plrx_QB_5", "wine_QB_5"),
    5: ("tic-tac-toe", "kr-vs-kp", "balance-scale", "car_evaluation", "car_evaluation-coded", "breast-cancer", "iris_QT_5",
        "wine_QT_5", "transfusion_QT_5", "banknote_QT_5"),
}  # fmt: skip


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return binary features uint8 and class codes: a published encoding, or all thresholds of a table of codes."""
    file = DATA / "encoded" / f"{name}_enc.csv.gz"
    if file.exists():
        table = pd.read_csv(file)
        return table.drop(columns="target").to_numpy(np.uint8), table["target"].to_numpy(np.int32)
    table = pd.read_csv(DATA / f"{name}.csv")
    y = pd.factorize(table.iloc[:, -1], sort=True)[0].astype(np.int32)
    questions = [table[c] <= v for c in table.columns[:-1] for v in sorted(table[c].unique())[:-1]]
    return np.column_stack(questions).astype(np.uint8), y


def compare(name: str, depth: int, penalty: str, repeats: int, limit: float) -> tuple[float, float]:
    """Print one line for a table; return the ratios of time to pystreed and to DL8.5."""
    X, y = load(name)

    def ours(leaf: str) -> ExactResult:
        return solve_binary(
            BinaryProblem(X, y, n_classes=int(y.max()) + 1, depth=depth, leaf_cost=Fraction(leaf) * len(y)),
            limits=SearchLimits(time_limit=limit),
        )

    mine, solution = best(lambda: ours(penalty), repeats)
    free, unpenalised = best(lambda: ours("0"), repeats)
    theirs, model = best(
        lambda: STreeDClassifier(
            "cost-complex-accuracy", max_depth=depth, cost_complexity=float(penalty), time_limit=limit
        ).fit(X, y),
        repeats,
    )
    dl8, other = best(lambda: DL85Classifier(max_depth=depth, time_limit=int(limit)).fit(X, y), repeats)
    value = float(1 - solution.cost / len(y))
    tree = model.get_tree() if hasattr(model, "get_tree") else None
    score = float((model.predict(X) == y).mean())
    leaves = leaves_of(tree) if tree is not None else None
    same = "?" if leaves is None else abs(score - float(penalty) * leaves - value) < 1e-9
    same_dl8 = abs(unpenalised.errors - other.error_) < 1e-9
    print(
        f"{name:18s} {depth}  {mine:8.4f}  {theirs:8.4f}  {mine / theirs:5.2f}  {same!s:5}  "
        f"{free:8.4f}  {dl8:8.4f}  {free / dl8:5.2f}  {same_dl8!s:5}",
        flush=True,
    )
    return mine / theirs, free / dl8


def leaves_of(tree: object) -> int:
    """Return the number of leaves of a pystreed tree."""
    return 1 if tree.is_leaf_node() else leaves_of(tree.left_child) + leaves_of(tree.right_child)


def main() -> None:
    """Print one line for each table and depth, and the median and worst ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--penalty", default="0.001")
    parser.add_argument("--depths", type=int, nargs="+", default=[3, 4, 5])
    options = parser.parse_args()
    warm = np.random.default_rng(0).integers(0, 2, (60, 7)).astype(np.uint8)
    for classes in (2, 3):
        solve_binary(BinaryProblem(warm, (warm.sum(axis=1) % classes).astype(np.int32), n_classes=classes, depth=5))
    print("table              depth  ours  pystreed  ratio  same   ours (0)   DL8.5  ratio  same")
    for depth in options.depths:
        ratios = [compare(name, depth, options.penalty, options.repeats, options.limit) for name in TABLES[depth]]
        streed, dl8 = np.array(ratios).T
        print(
            f"depth {depth}: pystreed median {np.median(streed):.2f} worst {streed.max():.2f}; "
            f"DL8.5 median {np.median(dl8):.2f} worst {dl8.max():.2f}"
        )


if __name__ == "__main__":
    main()
