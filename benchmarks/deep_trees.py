"""Compare deep trees with optimal subtrees to pruned trees and to a forest, on tables with four and more classes.

python benchmarks/deep_trees.py [--data FOLDER] [--tables NAME ...] [--rows 600] [--folds 5] [--limit 120] [--output RESULTS.jsonl]

Every table has at most `--rows` rows, a stratified sample with a fixed seed. `--data` (or OCTWEB_BENCH_DATA) has the public tables;
digits is in scikit-learn, and the others are made here. Each method trains on the same outer folds:

- local-search with its defaults, so that folds inside the training rows choose the leaf penalty;
- cart: DecisionTreeClassifier of scikit-learn, with the cost-complexity parameter of least error in five inner folds;
- bivariate with depth 10 and `pruning="cross-validation"`, and a second per split;
- forest: RandomForestClassifier of scikit-learn with 200 trees.

Prints unseen accuracy and leaves as means over the outer folds. `--output` stores each result, and a second run skips what it has.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.tree import DecisionTreeClassifier

from trainer import BivariateTreeClassifier, LocalSearchClassifier

FILES = {"optdigits": "optdigits.csv", "vehicle": "vehicle.csv", "ecoli": "ecoli.csv", "car": "car_evaluation.csv", "poker-hand": "poker-hand.csv"}  # fmt: skip
MADE = ("vowel-like", "letter-like", "heart-like", "segment-like")
TABLES = (*FILES, "digits", *MADE)
FOREST_TREES = 200
MOST_ALPHAS = 60  # pruning parameters that the inner folds of CART compare
FEWEST = 5  # rows of a class; rarer classes cannot be in every fold


class Score(NamedTuple):
    """Unseen accuracy and leaves of one fold."""

    accuracy: float
    leaves: int
    proved: str = ""


def make_classes(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Make a table of normally distributed classes, of the size and the noise of the table after which it is named."""
    classes, columns, rows, spread, clusters = {
        "vowel-like": (11, 10, 990, 1.3, 3), "letter-like": (26, 16, 2600, 2.0, 2), "heart-like": (5, 13, 600, 0.35, 1),
        "segment-like": (7, 19, 1400, 1.0, 2),
    }[name]  # fmt: skip
    rng = np.random.default_rng(len(name) + classes)
    centres = rng.normal(0, spread, (classes, clusters, columns))
    y = rng.integers(0, classes, rows)
    X = centres[y, rng.integers(0, clusters, rows)] + rng.normal(0, 1, (rows, columns))
    return pd.DataFrame(np.round(X, 3)).rename(columns="x{}".format), y


def load(name: str, folder: Path) -> tuple[pd.DataFrame, np.ndarray]:
    """Return columns and classes of a table, without classes of fewer than FEWEST rows."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        frame = pd.DataFrame(X).rename(columns="p{}".format)
    elif name in MADE:
        frame, y = make_classes(name)
    else:
        table = pd.read_csv(folder / FILES[name])
        frame = table.iloc[:, :-1]
        y = table.iloc[:, -1].to_numpy()
    sizes = pd.Series(y).map(pd.Series(y).value_counts()).to_numpy()
    frame = frame[sizes >= FEWEST].reset_index(drop=True)
    return frame, np.array([f"c{label}" for label in y[sizes >= FEWEST]])


def sample(frame: pd.DataFrame, y: np.ndarray, rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a stratified sample of at most `rows` rows."""
    if len(y) <= rows:
        return frame, y
    frame, _, y, _ = train_test_split(frame, y, train_size=rows, random_state=0, stratify=y)
    sizes = pd.Series(y).map(pd.Series(y).value_counts()).to_numpy()
    return frame[sizes >= FEWEST].reset_index(drop=True), y[sizes >= FEWEST]


def local_search(X, y, test, truth, limit: float) -> Score:
    model = LocalSearchClassifier(time_limit=limit).fit(X, y)
    proved = f"{model.certificate_.subtrees_proved} of {model.certificate_.subtrees}"
    return Score(model.score(test, truth), model.tree_.n_leaves, proved)


def bivariate(X, y, test, truth, limit: float) -> Score:
    model = BivariateTreeClassifier(depth=10, pruning="cross-validation", split_time_limit=1, time_limit=limit)
    model.fit(X, y)
    return Score(model.score(test, truth), model.tree_.n_leaves)


def cart(X, y, test, truth, limit: float) -> Score:
    numbers = pd.get_dummies(pd.concat([X, test]), dtype=float)
    train, held_out = numbers.iloc[: len(X)].to_numpy(), numbers.iloc[len(X) :].to_numpy()
    alphas = DecisionTreeClassifier(random_state=0).cost_complexity_pruning_path(train, y).ccp_alphas
    grid = np.unique(np.clip(alphas, 0, None))
    grid = grid[np.unique(np.linspace(0, len(grid) - 1, MOST_ALPHAS).round().astype(int))]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    search = GridSearchCV(DecisionTreeClassifier(random_state=0), {"ccp_alpha": grid[::-1]}, cv=folds).fit(train, y)
    return Score(search.score(held_out, truth), int(search.best_estimator_.get_n_leaves()))


def forest(X, y, test, truth, limit: float) -> Score:
    numbers = pd.get_dummies(pd.concat([X, test]), dtype=float)
    train, held_out = numbers.iloc[: len(X)].to_numpy(), numbers.iloc[len(X) :].to_numpy()
    model = RandomForestClassifier(FOREST_TREES, random_state=0).fit(train, y)
    return Score(model.score(held_out, truth), int(sum(tree.get_n_leaves() for tree in model.estimators_)))


METHODS: dict[str, Callable[..., Score]] = {"local-search": local_search, "cart": cart, "bivariate": bivariate, "forest": forest}  # fmt: skip


def run(options: argparse.Namespace) -> list[dict]:
    """Train every method on every fold that the output does not have yet, and return all results."""
    results = []
    if options.output is not None and options.output.exists():
        results = [json.loads(line) for line in options.output.read_text().splitlines()]
    done = {(r["table"], r["method"], r["fold"], r["rows"]) for r in results}
    for table in options.tables:
        X, y = sample(*load(table, options.data), options.rows)
        folds = StratifiedKFold(options.folds, shuffle=True, random_state=1).split(X, y)
        for fold, (train, test) in enumerate(folds):
            for name in options.methods:
                if (table, name, fold, len(y)) in done:
                    continue
                began = time.process_time()
                score = METHODS[name](X.iloc[train], y[train], X.iloc[test], y[test], options.limit)
                record = {"table": table, "method": name, "fold": fold, "rows": len(y), "columns": X.shape[1], "classes": len(set(y)), "seconds": round(time.process_time() - began, 1), **score._asdict()}  # fmt: skip
                results.append(record)
                print(record, flush=True)
                if options.output is not None:
                    with options.output.open("a") as file:
                        file.write(json.dumps(record) + "\n")
    return results


def summary(results: list[dict]) -> str:
    """Return a table of means, and how often the bars are met."""
    frame = pd.DataFrame(results)
    means = frame.groupby(["table", "method"]).agg(
        accuracy=("accuracy", "mean"), leaves=("leaves", "mean"), seconds=("seconds", "mean")
    )
    lines = ["| table | rows × columns, classes | local-search | leaves | s | cart | leaves | bivariate | leaves | forest |", "|---|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    better = 0
    near = 0
    for table in dict.fromkeys(frame["table"]):
        first = frame[frame["table"] == table].iloc[0]
        own, greedy, lines_of_two, many = (means.loc[(table, name)] for name in METHODS)
        rivals = (greedy, lines_of_two)
        better += all(own.accuracy > r.accuracy and own.leaves <= r.leaves for r in rivals)
        near += own.accuracy >= many.accuracy - 0.02 and own.leaves <= 32
        lines.append(
            f"| {table} | {first['rows']} × {first['columns']}, {first['classes']} | {100 * own.accuracy:.1f} | {own.leaves:.1f} | {own.seconds:.0f} "
            f"| {100 * greedy.accuracy:.1f} | {greedy.leaves:.1f} | {100 * lines_of_two.accuracy:.1f} | {lines_of_two.leaves:.1f} | {100 * many.accuracy:.1f} |"
        )
    total = len(set(frame["table"]))
    lines += ["", f"Above pruned CART and pruned bivariate trees with no more leaves: {better} of {total}."]
    lines += [f"Within 2 points of the forest with at most 32 leaves: {near} of {total}."]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("OCTWEB_BENCH_DATA", "data")))
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of a training")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    results = run(options)
    if {r["method"] for r in results} == set(METHODS):
        print(summary(results))


if __name__ == "__main__":
    main()
