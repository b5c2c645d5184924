"""Compare ways to treat empty cells by accuracy on unseen rows.

python benchmarks/missing.py [--folds 5] [--depth 3] [--rows 2000] [--limit 20] [--seed 0] [--tables ...]
Compares learned sides, dropped rows, scikit-learn, and LightGBM with one tree. Needs OCTWEB_BENCH_DATA (default
../shared/data), scikit-learn and LightGBM. Tables with more rows than --rows are sampled by class. If a method refuses
a row, the majority class of the training rows is its answer. The codes -7, -8 and -9 of heloc are empty cells. Complete
tables lose 20 % of their cells, at random, or large values more often. All methods see the same folds; scikit-learn and
LightGBM read categories as 0/1 columns. `learn` is at least as good as scikit-learn where its mean is not lower.

python benchmarks/missing.py --speed [--against CHECKOUT]
Processor seconds of a training on a table whose columns all have empty cells, on the same table filled with medians,
and on the complete table. With --against the complete table is also trained by the code of another checkout. The least
of three trainings counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.tree import DecisionTreeClassifier

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from trainer.sklearn_api.estimators import make_classifier

DATA = Path(os.environ.get("OCTWEB_BENCH_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
EMPTY = ("hepatitis", "ozone-one", "credit", "breast-cancer-wisconsin", "a1a-grouped", "heloc")
COMPLETE = ("wdbc", "vehicle", "banknote", "ionosphere")
CODES = {"heloc": (-7, -8, -9)}
GONE = 0.2  # share of the cells that complete tables lose
SPEED: tuple[tuple[str, dict[str, object]], ...] = (
    ("cart", {"depth": 6}),
    ("exact", {"depth": 3, "binarise": "quantile-thresholds", "bins": 8, "leaf_penalty": 0}),
    ("exact", {"depth": 4, "binarise": "quantile-thresholds", "bins": 8, "leaf_penalty": 0}),
    ("exact-numeric", {"depth": 2, "leaf_penalty": 0}),
    ("odt", {"depth": 2, "bins": 8}),
    ("bivariate", {"depth": 1, "columns": 6}),
    ("bendoct", {"depth": 2, "binarise": "quantile-thresholds", "bins": 3, "columns": 5, "rows": 100}),
)
TRAINING = """
import json, sys, time
checkout, rows, method, options = sys.argv[1:]
sys.path.insert(0, checkout)
import numpy as np
from trainer.sklearn_api.estimators import make_classifier
data = np.load(rows, allow_pickle=False)
found = []
for _ in range(4):
    model = make_classifier(method, time_limit=300, **json.loads(options))
    begin = time.process_time()
    model.fit(data["X"], data["y"])
    found.append(time.process_time() - begin)
print(min(found[1:]))
"""  # the first training compiles kernels, so it does not count


def read(name: str, entry: dict, most: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the columns, with categories as texts, and the classes; at most `most` rows."""
    table = pd.read_csv(DATA / entry["file"])
    target = entry.get("target") or "class"
    X = table.drop(columns=target)
    for column in entry["categorical_features"]:
        X[column] = [None if pd.isna(v) else str(v) for v in X[column]]
    X = X.mask(X.isin(CODES.get(name, ())))
    y = table[target].astype(str).to_numpy()
    if len(X) > most:
        X, _, y, _ = train_test_split(X, y, train_size=most, stratify=y, random_state=0)
    return X.reset_index(drop=True), y


def with_holes(X: pd.DataFrame, by_value: bool) -> pd.DataFrame:
    """Return the table with a fifth of its cells empty.

    With `by_value`, large values become empty four times as often as small ones; else cells are chosen at
    random.
    """
    rng = np.random.default_rng(1)
    rank = X.rank(pct=True).to_numpy()
    chance = np.where(rank > 0.5, 1.6 * GONE, 0.4 * GONE) if by_value else np.full(X.shape, GONE)
    return X.mask(rng.random(X.shape) < chance)


def tables(names: list[str], most: int) -> dict[str, tuple[pd.DataFrame, np.ndarray]]:
    """Return the named tables, or all of them.

    Each table without empty cells occurs twice, with cells emptied in two ways.
    """
    entries = {entry["name"]: entry for entry in json.loads((DATA / "manifest.json").read_text(encoding="utf-8"))}
    table_by_name = {name: read(name, entries[name], most) for name in EMPTY}
    for name in COMPLETE:
        X, y = read(name, entries[name], most)
        table_by_name[f"{name}, at random"] = with_holes(X, by_value=False), y
        table_by_name[f"{name}, by value"] = with_holes(X, by_value=True), y
    return {name: table_by_name[name] for name in names or table_by_name}


def share_right(model: object, X: pd.DataFrame, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> float:
    """Return the accuracy on the test rows.

    A refused row gets the most frequent class of the training rows.
    """
    labels, counts = np.unique(y[train], return_counts=True)
    answers = np.full(len(test), labels[counts.argmax()], object)
    dropping = getattr(model, "missing", "learn") == "drop"
    if dropping and X.iloc[train].isna().any(axis=1).all():
        return float((answers == y[test]).mean())  # no row is left to train on
    model.fit(X.iloc[train], y[train])
    rows = X.iloc[test]
    answered = np.ones(len(test), bool)
    if dropping:
        used = [model.tree_.schema[j].name for j in model.tree_.used_columns]
        answered = ~rows[used].isna().any(axis=1).to_numpy()
    if answered.any():
        answers[answered] = model.predict(rows[answered])
    return float((answers == y[test]).mean())


def methods(depth: int, limit: float) -> dict[str, tuple[object, bool]]:
    """Return the methods with their defaults, all of the same depth, and whether each accepts text cells."""
    exact = {"depth": depth, "time_limit": limit}  # thresholds and leaf penalty are those that a training chooses
    return {
        "cart learn": (make_classifier("cart", depth=depth), True),
        "cart drop": (make_classifier("cart", depth=depth, missing="drop"), True),
        "exact learn": (make_classifier("exact", **exact), True),
        "exact drop": (make_classifier("exact", missing="drop", **exact), True),
        "bivariate": (make_classifier("bivariate", depth=depth, time_limit=limit), True),
        "scikit-learn": (DecisionTreeClassifier(max_depth=depth, random_state=0), False),
        "LightGBM": (
            LGBMClassifier(
                n_estimators=1, learning_rate=1.0, num_leaves=2**depth, max_depth=depth, min_child_samples=1,
                min_data_in_bin=1, boost_from_average=True, verbose=-1, n_jobs=1,
            ),
            False,
        ),
    }  # fmt: skip


def numbers_of(X: pd.DataFrame) -> pd.DataFrame:
    """Return the columns with texts as 0/1 columns, one of them for empty cells; numbers do not change."""
    texts = [column for column in X if X[column].dtype == object or str(X[column].dtype) in ("string", "str")]
    wide = pd.get_dummies(X, columns=texts, dummy_na=True, dtype=float)
    wide.columns = [f"c{j}" for j in range(wide.shape[1])]  # LightGBM accepts no special characters in names
    return wide


def user_seconds(checkout: Path, X: np.ndarray, y: np.ndarray, method: str, options: dict) -> float:
    """Train in a child process with the code of another checkout; return the processor seconds."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.npz"
        np.savez(rows, X=X, y=y)
        command = [sys.executable, "-c", TRAINING, str(checkout), str(rows), method, json.dumps(options)]
        process = subprocess.run(command, capture_output=True, text=True, check=True, cwd=checkout)
    return float(process.stdout.splitlines()[-1])


def compare_speed(against: Path | None) -> None:
    """Print processor seconds and ratios of each method of SPEED."""
    root = Path(__file__).resolve().parents[1]
    entries = {entry["name"]: entry for entry in json.loads((DATA / "manifest.json").read_text(encoding="utf-8"))}
    table, classes = read("wdbc", entries["wdbc"], 2000)
    _, codes = np.unique(classes, return_inverse=True)
    print("method", "depth", "complete", "filled", "empty", "empty/filled", "complete/other", sep="\t")
    for method, settings in SPEED:
        options = {name: value for name, value in settings.items() if name not in ("columns", "rows")}
        X = table.iloc[: settings.get("rows", 600), : settings.get("columns", 10)]
        y = codes[: len(X)]
        holes = with_holes(X, by_value=False)
        forms = [X.to_numpy(float), holes.fillna(holes.median()).to_numpy(float), holes.to_numpy(float)]
        complete, filled, empty = (user_seconds(root, form, y, method, options) for form in forms)
        other = user_seconds(against, forms[0], y, method, options) if against else float("nan")
        seconds = (f"{value:.3f}" for value in (complete, filled, empty))
        print(
            method,
            settings["depth"],
            *seconds,
            f"{empty / filled:.2f}",
            f"{complete / other:.2f}",
            sep="\t",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="of the folds")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds of each training of exact and bivariate")
    parser.add_argument("--tables", nargs="*", default=[])
    parser.add_argument("--without", nargs="*", default=[], help="methods to leave out, such as bivariate")
    parser.add_argument("--speed", action="store_true", help="compare user seconds instead of accuracy")
    parser.add_argument("--against", type=Path, help="with --speed: the folder of another checkout")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.speed:
        compare_speed(options.against)
        return
    kinds = {k: m for k, m in methods(options.depth, options.limit).items() if k not in options.without}
    print("table", *kinds, sep="\t", flush=True)
    means: dict[str, dict[str, float]] = {}
    for name, (X, y) in tables(options.tables, options.rows).items():
        wide = numbers_of(X)
        folds = list(StratifiedKFold(options.folds, shuffle=True, random_state=options.seed).split(X, y))
        means[name] = {
            kind: float(np.mean([share_right(model, X if texts else wide, y, *fold) for fold in folds]))
            for kind, (model, texts) in kinds.items()
        }
        print(name, *(f"{100 * means[name][kind]:.1f}" for kind in kinds), sep="\t", flush=True)
    for kind in kinds:
        good = sum(mean[kind] >= mean["scikit-learn"] - 1e-12 for mean in means.values())
        print(f"{kind}: at least as good as scikit-learn on {good} of {len(means)} tables")


if __name__ == "__main__":
    main()
