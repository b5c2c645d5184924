"""Compare default exact trees with the most frequent class and pruned CART.

python benchmarks/defaults.py [NAME …] [--command]

Accuracy on unseen rows in five stratified folds of 14 tables: three samples of scikit-learn, the others from
OCTWEB_BENCH_DATA (default ../shared/data). `exact` is `ExactTreeClassifier().fit`. CART is scikit-learn's tree, with
the cost-complexity pruning that has the best mean accuracy in five inner folds. --command adds
`manage.py train --method exact --folds 5`, which makes its own folds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from common import ROOT, data_folder, numeric
from sklearn import datasets
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from trainer import ExactTreeClassifier

SAMPLES = ("breast_cancer", "iris", "wine")
TABLES = (
    "balance-scale", "banknote", "breast-cancer-wisconsin", "ecoli", "ionosphere", "parkinsons", "plrx", "seeds", "transfusion",
    "vehicle", "wpbc",
)  # fmt: skip
FOLDS = 5


class Figures(NamedTuple):
    """Results on one table: accuracy on unseen rows, mean leaves, and CPU seconds of all fits of `exact`."""

    base: float
    cart: float
    cart_leaves: float
    exact: float
    exact_leaves: float
    seconds: float


def table(name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return X float64 (rows, columns) without empty cells, and class codes; None if the data are missing."""
    if name in SAMPLES:
        return getattr(datasets, f"load_{name}")(return_X_y=True)
    folder = data_folder()
    if folder is None:
        return None
    X, y = numeric(folder, name)
    complete = ~np.isnan(X).any(axis=1)
    return X[complete], y[complete]


def pruned_cart(X: np.ndarray, y: np.ndarray) -> DecisionTreeClassifier:
    """Return CART with the pruning that inner folds choose."""
    alphas = DecisionTreeClassifier(random_state=0).cost_complexity_pruning_path(X, y).ccp_alphas
    grid = {"ccp_alpha": np.unique(np.clip(alphas, 0, None))}
    inner = StratifiedKFold(FOLDS, shuffle=True, random_state=1)
    return GridSearchCV(DecisionTreeClassifier(random_state=0), grid, cv=inner).fit(X, y).best_estimator_


def measure(X: np.ndarray, y: np.ndarray) -> Figures:
    """Evaluate all methods on the same folds."""
    right = np.zeros(3, int)
    leaves = np.zeros(2)
    seconds = 0.0
    for trained, judged in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
        most = np.bincount(y[trained]).argmax()
        cart = pruned_cart(X[trained], y[trained])
        started = time.process_time()
        exact = ExactTreeClassifier().fit(X[trained], y[trained])
        seconds += time.process_time() - started
        answers = (np.full(len(judged), most), cart.predict(X[judged]), exact.predict(X[judged]))
        right += [int((answer == y[judged]).sum()) for answer in answers]
        leaves += (cart.get_n_leaves(), exact.get_n_leaves())
    shares = right / len(y)
    return Figures(shares[0], shares[1], leaves[0] / FOLDS, shares[2], leaves[1] / FOLDS, seconds)


def command(X: np.ndarray, y: np.ndarray) -> float:
    """Return the accuracy on unseen rows that the command line prints."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        rows = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
        rows.assign(answer=[f"class {k}" for k in y]).to_csv(path, index=False)
        arguments = ["train", str(path), "--target=answer", "--method=exact", f"--folds={FOLDS}", "--json"]
        process = subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), *arguments], capture_output=True, text=True, check=True, cwd=ROOT
        )
    unseen = json.loads(process.stdout.splitlines()[-1])["unseen_accuracy"]
    return float(unseen["accuracy"] if isinstance(unseen, dict) else unseen)


def main() -> None:
    """Print one line for each table, and a summary."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=(*SAMPLES, *TABLES))
    parser.add_argument("--command", action="store_true", help="also by the command line")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    figures: list[Figures] = []
    head = "| table | rows × columns | most frequent | pruned CART | leaves | exact | leaves | s |"
    print(head + (" octweb train |" if options.command else ""), flush=True)
    print("|---|" + "---|" * (8 if options.command else 7), flush=True)
    for name in options.names:
        data = table(name)
        if data is None:
            print(f"{name} is not here; set OCTWEB_BENCH_DATA.", file=sys.stderr)
            continue
        measured = measure(*data)
        figures.append(measured)
        cells = [
            name,
            f"{data[0].shape[0]} × {data[0].shape[1]}",
            f"{100 * measured.base:.1f}",
            f"{100 * measured.cart:.1f}",
        ]
        cells += [
            f"{measured.cart_leaves:.1f}",
            f"{100 * measured.exact:.1f}",
            f"{measured.exact_leaves:.1f}",
            f"{measured.seconds:.1f}",
        ]
        cells += [f"{100 * command(*data):.1f}"] if options.command else []
        print(f"| {' | '.join(cells)} |", flush=True)
    if figures:
        print(
            f"\nAt least the most frequent class: {sum(f.exact >= f.base for f in figures)} of {len(figures)}; at least pruned CART: "
            f"{sum(f.exact >= f.cart for f in figures)}; mean leaves {np.mean([f.exact_leaves for f in figures]):.1f}, of pruned CART "
            f"{np.mean([f.cart_leaves for f in figures]):.1f}."
        )


if __name__ == "__main__":
    main()
