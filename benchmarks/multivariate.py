"""Compare hyperplane trees with Tables 2 and 3 of the CUT-H paper.

python benchmarks/multivariate.py [--limit 120] [--depths 2 3 4 5] [--splits 5] [--methods cut-h exact ...]
                                  [--only NAME ...] [--processor] [--output RESULTS.jsonl] [--table]
Prints time or gap, and accuracy on unseen rows.  Needs OCTWEB_BENCH_DATA (default ../shared/data).  Stratified 75/25
splits with seeds 1, 2, ...; one thread, one process.  The leaf penalty is the default: `exact` chooses it by inner
folds, the others have 0.  The paper's limit is 900 s; its λ was tuned.  A first tiny run of each method compiles the
kernels before the clock starts.  With --processor the limit and the seconds are processor time of this process, so
other work on the machine hardly counts.  With --output every result is appended as one line of JSON.  Results that the
file has for the same limit are not run again, so a stopped run can be resumed.  --table runs nothing and prints the
tables of the file.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from trainer.data.reader import load
from trainer.milo import scip
from trainer.table import ColumnKind, Labels, MissingPolicy, Table, numeric_table
from trainer.training.run import TrainRequest, train

DATA = Path(os.environ.get("OCTWEB_BENCH_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
SETS = (
    "soybean-small", "monk1", "iris", "parkinsons", "ionosphere", "breast-cancer", "banknote", "tic-tac-toe", "transfusion",
    "heloc",
)  # fmt: skip
METHODS = ("cut-h", "cutw-h", "s-oct", "oct-h", "exact", "exact-numeric", "cart", "bivariate")
NAMES = {"cut-h": "CUT-H", "cutw-h": "CUTw-H", "s-oct": "S-OCT", "oct-h": "OCT-H", "exact": "DL8.5", "cart": "CART"}
PROVERS = ("cut-h", "cutw-h", "s-oct", "oct-h")
KEY = ("dataset", "depth", "method", "split", "limit")
FIELDS = ("dataset", "depth", "method", "split", "n", "status", "correct", "bound", "gap", "seconds", "leaves", "test")


def split(codes: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the training rows (three quarters of every class) and the test rows."""
    draw = np.random.default_rng(seed)
    test = np.zeros(len(codes), bool)
    for k in np.unique(codes):
        mine = draw.permutation(np.flatnonzero(codes == k))
        test[mine[: round(len(mine) / 4)]] = True
    return np.flatnonzero(~test), np.flatnonzero(test)


def run(table: Table, labels: Labels, method: str, depth: int, seed: int, limit: float) -> dict[str, Any]:
    """Train once; return figures of the certificate, and the accuracy on the test rows."""
    rows, test = split(labels.codes, seed)
    parameters = {"depth": depth, "time_limit": limit, "seed": 0}
    request = TrainRequest(table=table.take(rows), labels=labels.take(rows), method=method, parameters=parameters)
    begin = time.perf_counter()
    result = train(request)
    seconds = time.perf_counter() - begin
    accuracy = float((result.tree.predict(table.take(test).matrix()) == labels.codes[test]).mean())
    c = result.certificate
    return {
        "n": len(rows), "status": str(c.status), "correct": c.correct, "bound": c.bound, "gap": c.gap,
        "seconds": round(seconds, 2), "leaves": c.leaves, "test": round(100 * accuracy, 2),
    }  # fmt: skip


def data(name: str) -> tuple[Table, Labels]:
    """Read a data set. If the paper calls it categorical, each level is a 0/1 feature and an empty cell is a level.

    For heloc these are the seventeen published 0/1 columns, as in the paper, which counts both values of each.
    """
    if name == "heloc":
        table, labels, _ = load(DATA / "encoded" / "fico_binary_enc.csv.gz", target="target")
        return table, labels
    path = DATA / f"{name}.csv"
    with (DATA / "published" / "paper001_table1.csv").open() as stream:
        types = {row["dataset"]: row["type"] for row in csv.DictReader(stream)}
    with path.open() as stream:
        columns = next(csv.reader(stream))[:-1]
    categorical = types.get(name) == "categorical"
    kinds = dict.fromkeys(columns, ColumnKind.CATEGORICAL) if categorical else None
    missing = MissingPolicy.CATEGORY if categorical else MissingPolicy.DROP
    table, labels, _ = load(path, target="class", kinds=kinds, default_missing=missing)
    return table, labels


def by_processor() -> None:
    """Replace the clocks of the program and of SCIP by the processor time of this process."""
    configure = scip._configure

    def with_clock(model: Any, exchange: Any) -> None:
        configure(model, exchange)
        model.setParam("timing/clocktype", 1)

    time.perf_counter = time.process_time
    scip._configure = with_clock


def warm(methods: Sequence[str]) -> None:
    """Compile the kernels of each depth in advance, since no time limit stops a compilation."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(40, 2))
    y = draw.integers(0, 2, 40).astype(np.int32)
    labels = Labels(name="y", classes=("a", "b"), codes=y)
    for method in (*methods, "exact", "bivariate", "cart", "oc1", "cut-h"):
        for depth in (2, 3):
            limit = 30 if method not in PROVERS else 2
            parameters = {"depth": depth, "time_limit": limit}
            train(TrainRequest(table=numeric_table(X), labels=labels, method=method, parameters=parameters))


def read_published() -> tuple[dict[tuple[str, int, str], str], dict[tuple[str, int, str], str]]:
    """Return two tables of the paper by data set, depth and method.

    Table 2 has times or gaps, Table 3 the accuracy on unseen rows.
    """
    solved: dict[tuple[str, int, str], str] = {}
    accuracy: dict[tuple[str, int, str], str] = {}
    with (DATA / "published" / "paper001_table2.csv").open() as stream:
        for row in csv.DictReader(stream):
            mean = f"{float(row['mean']):g}" if row["mean"] else ""
            words = {"seconds": f"{mean} s", "gap_percent": f"gap {mean} %", "memory": "no tree (memory)"}
            solved[row["dataset"], int(row["depth"]), row["model"]] = words[row["kind"]]
    with (DATA / "published" / "paper001_table3.csv").open() as stream:
        for row in csv.DictReader(stream):
            accuracy[row["dataset"], int(row["depth"]), row["model"]] = f"{float(row['mean_acc']):.1f}"
    return solved, accuracy


def group_results(results: Sequence[dict[str, Any]]) -> dict[tuple[str, int, str], list[dict[str, Any]]]:
    """Group the results of all splits by data set, depth and method, in this order."""
    order = {name: i for i, name in enumerate((*SETS, *METHODS))}
    by_case: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
    for row in results:
        by_case.setdefault((row["dataset"], row["depth"], row["method"]), []).append(row)
    return dict(sorted(by_case.items(), key=lambda item: (order[item[0][0]], item[0][1], order[item[0][2]])))


def summary(results: Sequence[dict[str, Any]]) -> list[str]:
    """Return a Markdown table with one line for each data set, depth and method."""
    solved, accuracy = read_published()
    lines = [
        "| data | depth | method | proved | seconds | gap % | training % | unseen % | paper: time or gap | paper: unseen % |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (name, depth, method), rows in group_results(results).items():
        key = (name, depth, NAMES.get(method, ""))
        proved = sum(r["status"] == "optimal" for r in rows)
        gaps = [100 * r["gap"] for r in rows if r["gap"] is not None]
        lines.append(
            f"| {name} | {depth} | `{method}` | {'-' if method in ('cart', 'bivariate') else f'{proved} of {len(rows)}'} | "
            f"{np.mean([r['seconds'] for r in rows]):.1f} | {f'{np.mean(gaps):.1f}' if gaps else '-'} | "
            f"{100 * np.mean([r['correct'] / r['n'] for r in rows]):.1f} | {np.mean([r['test'] for r in rows]):.1f} | "
            f"{solved.get(key, '-')} | {accuracy.get(key, '-')} |"
        )
    return lines


def in_time(mean: float, sd: float, limit: float = 900.0, splits: int = 5) -> tuple[int, int]:
    """Return the least and the largest number of the paper's splits that may have ended before the limit.

    They follow from the printed mean and standard deviation in seconds. The means include the splits that ran into the
    limit: many lie near multiples of a fifth of it. A printed deviation of 0 at such a mean does not come from five
    equal times. Then the mean alone gives the number of splits at the limit.
    """
    if sd <= 1 and mean >= limit / splits:
        ended = splits - int(mean * splits // limit)
        return ended, ended
    possible = set()
    # `late`: seconds that a split may take beyond the limit
    for at_limit, late in itertools.product(range(splits + 1), (0, 1, 3, 5)):
        others = splits - at_limit
        stop = limit + late
        rest = splits * mean - at_limit * stop  # seconds that the other splits take together
        if not -3 <= rest <= others * limit + 3:  # printed seconds are rounded
            continue
        rest = min(max(rest, 0.0), others * (limit - 1))
        fixed = at_limit * (stop - mean) ** 2
        least = fixed + (others * (rest / others - mean) ** 2 if others else 0.0)
        full = int(rest // (limit - 1))
        ends = [limit - 1] * full + [rest - full * (limit - 1)] * (full < others) + [0.0] * (others - full - 1)
        most = fixed + sum((x - mean) ** 2 for x in ends)
        if (splits - 1) * (sd + 1) ** 2 >= least - 1 and (splits - 1) * max(sd - 1, 0.0) ** 2 <= most + 1:
            possible.add(others)
    return min(possible, default=0), max(possible, default=splits)


def totals(results: Sequence[dict[str, Any]]) -> list[str]:
    """Return a table of the data sets and splits proved here and in the paper.

    In the paper a proved data set has a time and no gap.
    """
    with (DATA / "published" / "paper001_table2.csv").open() as stream:
        times = {
            (row["dataset"], int(row["depth"]), row["model"]): in_time(float(row["mean"]), float(row["sd"]))
            for row in csv.DictReader(stream)
            if row["kind"] == "seconds"
        }
    lines = [
        "| depth | method | sets proved here | in the paper | splits proved here | in the paper |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    groups = group_results(results)
    for depth in sorted({row["depth"] for row in results}):
        for method in PROVERS:
            mine = {name: rows for (name, d, m), rows in groups.items() if (d, m) == (depth, method)}
            if not mine:
                continue
            theirs = [times[key] for name in mine if (key := (name, depth, NAMES[method])) in times]
            low, high = (sum(t[k] for t in theirs) for k in (0, 1))
            ended = [[r["status"] == "optimal" for r in rows] for rows in mine.values()]
            lines.append(
                f"| {depth} | `{method}` | {sum(map(all, ended))} of {len(mine)} | {len(theirs)} of {len(mine)} | "
                f"{sum(map(sum, ended))} of {sum(map(len, ended))} | {low if low == high else f'{low} to {high}'} |"
            )
    return lines


def read(path: Path | None) -> list[dict[str, Any]]:
    """Return the results of earlier runs, without an incomplete last line of a killed run."""
    results: list[dict[str, Any]] = []
    if path is not None and path.exists():
        text = path.read_text()
        for line in text[: text.rfind("\n") + 1].splitlines():
            results.append(json.loads(line))
    return results


def main() -> None:
    """Run the chosen cases that have no result yet, and print the tables. Every result is written at once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--depths", type=int, nargs="+", default=[2, 3, 4, 5])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--only", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--processor", action="store_true", help="limit and seconds in processor time")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--table", action="store_true", help="run nothing, print the tables of the file")
    args = parser.parse_args()
    results = [row for row in read(args.output) if row["limit"] == args.limit]
    if args.processor:
        by_processor()
    if not args.table:
        known = {tuple(row[k] for k in KEY) for row in results}
        work = [
            (name, depth, method, seed, args.limit)
            for depth in args.depths
            for seed in range(1, args.splits + 1)
            for name in args.only
            for method in args.methods
        ]
        results += list(measure([key for key in work if key not in known], args.output))
    print("\n".join((*summary(results), "", *totals(results))))


def measure(work: Sequence[tuple[str, int, str, int, float]], output: Path | None) -> Iterator[dict[str, Any]]:
    """Run each case, append its result to the file, and yield it."""
    if work:
        warm(sorted({key[2] for key in work}))
    tables: dict[str, tuple[Table, Labels]] = {}
    for name, depth, method, seed, limit in work:
        if name not in tables:
            tables[name] = data(name)
        key = dict(zip(KEY, (name, depth, method, seed, limit), strict=True))
        row = key | run(*tables[name], method, depth, seed, limit)
        print(*(row[f] for f in FIELDS), flush=True)
        if output is not None:
            with output.open("a") as stream:
                stream.write(json.dumps(row) + "\n")
        yield row


if __name__ == "__main__":
    main()
