"""Compare numbers of thresholds per numeric column in the exact search.

python benchmarks/thresholds.py [NAME …] [--bins 5 9 17 33 0] [--depth 3] [--folds 5] [--repeats 1] [--limit 60]

Accuracy on unseen rows and time to proof, beside CART of the same depth, in stratified folds.  Each fold is fitted once
for each number of bins (k bins make k − 1 thresholds, 0 means all).  The leaf penalty is the default: `exact` chooses
it by inner folds, CART has none.  One thread; wall seconds of a fit, the longest of the folds.  More bins are not tried
once a fold is not proved.
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np
from common import data_folder, numeric

from trainer import make_classifier
from trainer.data.folds import stratified_folds

TABLES = (
    "banknote",
    "ecoli",
    "eeg",
    "heloc",
    "htru",
    "magic",
    "parkinsons",
    "seeds",
    "transfusion",
    "vehicle",
    "wdbc",
    "wine",
)


def fit_folds(
    method: str, X: np.ndarray, y: np.ndarray, folds: int, repeats: int, **settings
) -> tuple[float, float, int]:
    """Return the accuracy on unseen rows, the longest seconds of a fit, and the number of folds with a proved tree."""
    right = 0
    longest = 0.0
    proved = 0
    for seed, f in itertools.product(range(repeats), range(folds)):
        fold = stratified_folds(y, folds, seed)
        begun = time.perf_counter()
        model = make_classifier(method, **settings).fit(X[fold != f], y[fold != f])
        longest = max(longest, time.perf_counter() - begun)
        right += int((model.predict(X[fold == f]) == y[fold == f]).sum())
        proved += model.certificate_.status == "optimal"
    return right / len(y) / repeats, longest, proved


def main() -> None:
    """Print one line for each table and number of bins."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=TABLES)
    parser.add_argument("--bins", type=int, nargs="*", default=[5, 9, 17, 33, 0])
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=1, help="with other folds")
    parser.add_argument("--limit", type=float, default=60.0)
    options = parser.parse_args()
    folder = data_folder()
    fits = options.folds * options.repeats
    if folder is None:
        print("The data sets are not here; set OCTWEB_BENCH_DATA.")
        return
    print(
        "| table | method | thresholds per column | unseen accuracy | s | proved |\n|---|---|---|---|---|---|",
        flush=True,
    )
    for name in options.names:
        X, y = numeric(folder, name)
        complete = ~np.isnan(X).any(axis=1)
        X = X[complete]
        y = y[complete]
        share, seconds, _ = fit_folds("cart", X, y, options.folds, options.repeats, depth=options.depth)
        print(f"| {name} {X.shape} | cart | all | {share:.4f} | {seconds:.2f} | |", flush=True)
        for bins in options.bins:
            scheme = {"bins": bins} if bins else {"binarise": "all-thresholds"}
            settings = {"depth": options.depth, "time_limit": options.limit, **scheme}
            share, seconds, proved = fit_folds("exact", X, y, options.folds, options.repeats, **settings)
            label = bins - 1 if bins else "all"
            print(f"| {name} | exact | {label} | {share:.4f} | {seconds:.2f} | {proved} of {fits} |", flush=True)
            if proved < fits:
                break


if __name__ == "__main__":
    main()
