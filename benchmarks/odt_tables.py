"""Reproduce tables 2-4, 6, 8 and 14 of Günlük et al.

python benchmarks/odt_tables.py [TABLE ...] [--limit SECONDS] [--splits 5] [--datasets NAME ...]
The paper is "Optimal decision trees for categorical data via integer programming". Prints Markdown. Needs
OCTWEB_BENCH_DATA (default ../shared/data). One thread, compiled kernels; the paper used CPLEX on eight cores.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from trainer.certificate import Certificate, Limits
from trainer.data.problem import Problem
from trainer.data.reader import load
from trainer.families.odt.goals import RateGoalSearch, make_goal
from trainer.families.odt.grouping import make_groups, predict_labels
from trainer.families.odt.topology import complete
from trainer.methods.monitor import Monitor
from trainer.registry import get
from trainer.table import MISSING_CATEGORY, Column, ColumnKind, Labels, MissingPolicy, Table
from trainer.training.run import fit
from trainer.tree.nodes import Tree

DATA = Path(os.environ.get("OCTWEB_BENCH_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
FILES = {"a1a": "a1a-grouped"}
CODED = ("monks-1-432", "breast-cancer-wisconsin")  # the paper treats these numeric data sets as categorical
TOPOLOGY = {"2": "depth-2", "2.5": "depth-2.5", "3": "depth-3", "imbalanced": "imbalanced"}
WITHOUT = {
    "nothing": "anchor, relax, strengthen", "no_anchor": "anchor", "no_relax": "relax", "no_strength": "strengthen", "all": "",
}  # fmt: skip


def read_published(number: int) -> list[dict[str, str]]:
    """Return the rows of a table of the paper."""
    with (DATA / "published" / f"paper004_table{number}.csv").open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def read(name: str) -> tuple[Table, Labels]:
    """Read a data set as the paper does.

    Empty cells of a categorical column are a category; rows of heloc with -9 are left out.
    """
    kinds = {}
    path = DATA / f"{FILES.get(name, name)}.csv"
    if name in CODED:
        columns = path.open(encoding="utf-8").readline().strip().split(",")[:-1]
        kinds = dict.fromkeys(columns, ColumnKind.CATEGORICAL)
    table, labels, *_ = load(path, target="class", kinds=kinds, default_missing=MissingPolicy.CATEGORY)
    if name == "heloc":
        keep = np.flatnonzero(~(table.matrix() == -9).all(axis=1))
        table = table.take(keep)
        labels = labels.take(keep)
    return table, labels


def _empty(column: Column) -> np.ndarray:
    """Return which rows of a categorical column have the category of empty cells."""
    categories = column.schema.categories
    return np.array([categories[int(value)] == MISSING_CATEGORY for value in column.values])


class Split:
    """Training and test rows of a data set: `rows`, but at most nine tenths, for training, and a tenth for
    testing.

    `whole` leaves out rows with empty categorical cells.
    """

    def __init__(self, name: str, seed: int, rows: int = 600, *, whole: bool = False) -> None:
        table, labels = read(name)
        if whole:
            # Only rows without an empty cell take part.
            empty = np.array([_empty(column) for column in table.columns]).any(axis=0)
            table = table.take(np.flatnonzero(~empty))
            labels = labels.take(np.flatnonzero(~empty))
        order = np.random.default_rng(seed).permutation(len(table))
        tenth = len(order) // 10
        train = np.sort(order[tenth : tenth + rows])
        test = np.sort(order[:tenth])
        self.problem = Problem(table=table.take(train), labels=labels.take(train))
        self.test = table.take(test).matrix(), labels.codes[test]

    def fit(self, limit: float, method: str = "odt", **settings: object) -> tuple[Tree, Certificate]:
        """Train with a time limit in seconds; return tree and certificate."""
        chosen = get(method)
        raw = {"bins": 10, **settings} if method == "odt" else settings
        return fit(chosen, self.problem, chosen.settings(raw), Monitor(Limits(time=limit)))[:2]

    def accuracy(self, tree: Tree) -> float:
        """Return the accuracy on the test rows in percent."""
        return 100 * float((tree.predict(self.test[0]) == self.test[1]).mean())


def show(header: list[str], rows: list[list[object]]) -> None:
    """Print a Markdown table."""
    print("| " + " | ".join(header) + " |\n" + "|---" * len(header) + "|")
    for row in rows:
        print(
            "| " + " | ".join(f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in row) + " |",
            flush=True,
        )
    print(flush=True)


def seconds(certificate: Certificate, limit: float) -> str:
    """Return the time of a proof, or the remaining gap, as text."""
    if certificate.proved_optimal:
        return f"{certificate.seconds:.2f} s"
    return f"gap {100 * (certificate.gap or 0):.1f} % after {limit:g} s"


def techniques(number: int, limit: float, datasets: set[str], depth: int, most: int) -> None:
    """Print table 2 or 3: the model with and without each technique (depth 3 in the paper), and our search."""
    rows: list[list[object]] = []
    for row in read_published(number):
        name = row["dataset"]
        samples = min(most, int(row["samples"]))
        variant = row["variant"]
        if datasets and name not in datasets:
            continue
        split = Split(name, 0, samples)
        printed = "> 3 h" if row["timed_out"] == "1" else f"{float(row['seconds']):g} s"
        search = ""
        if variant == "nothing":
            search = seconds(split.fit(60, depth=depth)[1], 60)
        result = split.fit(limit, depth=depth, solver="scip", without=WITHOUT[variant])[1]
        rows.append([name, samples, variant, printed, seconds(result, limit), f"{result.nodes:,}", search])
    show(["data", "rows", "techniques", "printed (CPLEX, 8 cores)", "SCIP, 1 core", "nodes", "search, 1 core"], rows)


def times(limit: float, datasets: set[str]) -> None:
    """Print table 4: time by topology and rows."""
    rows: list[list[object]] = []
    for row in read_published(4):
        if datasets and row["dataset"] not in datasets:
            continue
        result = Split(row["dataset"], 0, int(row["samples"])).fit(limit, topology=TOPOLOGY[row["topology"]])[1]
        printed = "> 3 h" if row["timed_out"] == "1" else f"{float(row['seconds']):g} s"
        rows.append([row["dataset"], row["topology"], row["samples"], printed, seconds(result, limit)])
    show(["data", "topology", "rows", "printed", "search"], rows)


def branching(limit: float, splits: int, datasets: set[str]) -> None:
    """Print table 6: splits by one category, limited subsets, or any subset.

    The paper does not state its limit of subsets, so three limits are shown.
    """
    rows: list[list[object]] = []
    for row in read_published(6):
        name = row["dataset"]
        depth = int(row["depth"])
        if datasets and name not in datasets:
            continue
        for card in {"simple": (1,), "comb-con": (2, 3, 4), "comb-unc": (0,)}[row["branching"]]:
            train, test, proved = measure_splits(name, limit, splits, depth=depth, max_card=card)
            label = row["branching"] + (f", at most {card}" if row["branching"] == "comb-con" else "")
            rows.append([name, depth, label, row["train_acc"], train, row["test_acc"], test, f"{proved} of {splits}"])
    show(["data", "depth", "questions", "train, printed", "train", "test, printed", "test", "proved"], rows)


def measure_splits(
    name: str, limit: float, splits: int, method: str = "odt", **settings: object
) -> tuple[float, float, int]:
    """Return the mean accuracy in percent on training and test rows over the splits, and how many are proved."""
    train = []
    test = []
    proved = 0
    for seed in range(splits):
        split = Split(name, seed)
        tree, certificate = split.fit(limit, method, **settings)
        train.append(100 * certificate.correct / certificate.n)
        test.append(split.accuracy(tree))
        proved += certificate.proved_optimal
    return float(np.mean(train)), float(np.mean(test)), proved


def accuracy(limit: float, splits: int, datasets: set[str]) -> None:
    """Print table 8: accuracy by topology; a1a and mushroom have subsets of at most four categories."""
    rows: list[list[object]] = []
    for row in read_published(8):
        name = row["dataset"]
        shape = row["topology"]
        if datasets and name not in datasets:
            continue
        if shape == "CART-D3":
            train, test, proved = measure_splits(name, limit, splits, "cart", depth=3)
        else:
            card = 4 if name in ("a1a", "mushroom") else 0
            train, test, proved = measure_splits(name, limit, splits, topology=TOPOLOGY[shape], max_card=card)
        claim = "" if shape == "CART-D3" else f"{proved} of {splits}"
        rows.append([name, shape, row["train_acc"], train, row["test_acc"], test, claim])
    show(["data", "topology", "train, printed", "train", "test, printed", "test", "proved"], rows)


def sensitivity(limit: float, splits: int, depths: list[int], printed: bool) -> None:
    """Print table 14: the largest specificity for a required sensitivity, as means over the splits.

    One frontier per split and depth gives all required sensitivities. `printed` uses only complete rows and rounds
    required rows down, which gives the paper's numbers.
    """
    rates_by_run: dict[tuple[int, str], list[tuple[float, ...]]] = defaultdict(list)
    required = list(dict.fromkeys(row["train_tpr"] for row in read_published(14)))
    proved = total = 0
    for seed in range(splits):
        split = Split("breast-cancer-wisconsin", seed, whole=printed)
        settings = get("odt").settings({"frontier": True, "positive": "2", "bins": 10})
        for depth in depths:
            goal = make_goal(split.problem, settings)
            assert goal is not None
            monitor = Monitor(Limits(time=limit))
            reach = RateGoalSearch(
                split.problem, make_groups(split.problem, 10, 0), complete(depth), goal, monitor, all_entries=True
            )
            reach.search.solve()
            for share in required:
                exact = Fraction(share) * reach.positives / 100
                least = exact // 1 if printed else -(-exact // 1)
                pair = reach.search.at(int(least))
                proved = proved + pair.proved
                total = total + 1
                predicted = predict_labels(reach.search.tree(pair.tp), split.test[0]) == 1
                positive = split.test[1] == split.problem.labels.classes.index("2")
                if reach.classes != (0, 1):
                    predicted = predicted if reach.classes[1] == 0 else ~predicted
                rates = (
                    pair.tp / reach.positives,
                    pair.tn / reach.negatives,
                    predicted[positive].mean(),
                    1 - predicted[~positive].mean(),
                )
                rates_by_run[depth, share].append(tuple(100 * r for r in rates))
    rows: list[list[object]] = []
    for row in read_published(14):
        if int(row["depth"]) not in depths:
            continue
        mean = np.mean(rates_by_run[int(row["depth"]), row["train_tpr"]], axis=0)
        cells: list[object] = [row["depth"]]
        for name, values in zip(("train_tpr", "train_tnr", "test_tpr", "test_tnr"), mean, strict=True):
            cells += [row[name], float(values)]
        rows.append(cells)
    heads = ["train TPR", "train TNR", "test TPR", "test TNR"]
    show(["depth", *(f"{h}{end}" for h in heads for end in (", printed", ""))], rows)
    print(f"{proved} of {total} points proved.\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", type=int, default=[4], help="2 3 4 6 8 14; 4 if none is given")
    parser.add_argument("--limit", type=float, default=5, help="seconds for each search or solver")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--depth", type=int, default=3, help="of tables 2 and 3, which have 3")
    parser.add_argument("--rows", type=int, default=600, help="at most so many rows in tables 2 and 3")
    parser.add_argument("--depths", nargs="*", type=int, default=[2, 3], help="of table 14")
    parser.add_argument("--printed", action="store_true", help="table 14 in the reading that gives the printed numbers")
    parser.add_argument("--datasets", nargs="*", default=[])
    options = parser.parse_args()
    if not (DATA / "published").exists():
        sys.exit("OCTWEB_BENCH_DATA does not name the folder of the shared data.")
    datasets = set(options.datasets)
    Split("a1a", 0, 100).fit(600, topology="imbalanced")  # compiles the kernels before the clock starts
    for number in options.tables:
        print(f"### Table {number}\n")
        if number in (2, 3):
            techniques(number, options.limit, datasets, options.depth, options.rows)
        elif number == 4:
            times(options.limit, datasets)
        elif number == 6:
            branching(options.limit, options.splits, datasets)
        elif number == 8:
            accuracy(options.limit, options.splits, datasets)
        elif number == 14:
            sensitivity(options.limit, options.splits, options.depths, options.printed)
        else:
            parser.error(f"there is no table {number} here")


if __name__ == "__main__":
    main()
