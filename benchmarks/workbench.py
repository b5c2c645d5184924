"""Time edits, price lists, counts and first trees of the workbench.

    python benchmarks/workbench.py [--sets N] [--depth D] [--method M]

One process, one thread, published binary encodings. For each data set it measures the tree without constraints (a cold
start), the median and the longest of random edits (one to three constraints, each on top of the search before), and the
first ten rows of the price list of the root. For the method exact it also measures the first 1,000 trees, and the count
of all good trees. Seconds are processor time. For exact-numeric and odt, too, each column is one binary feature; odt
has no leaf penalty.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import time
from fractions import Fraction

import numpy as np
from common import encodings

from trainer.data.problem import Problem
from trainer.data.reader import load
from trainer.editing.bench import Bench
from trainer.editing.space import SearchStopped
from trainer.families.exact.workbench import Workbench
from trainer.families.numeric.editing.bench import NumericWorkbench
from trainer.families.odt.editing.bench import SubsetWorkbench
from trainer.registry import editable_ids

SETS = (
    "tic-tac-toe", "breast-cancer", "fico_binary", "credit_QT_5", "kr-vs-kp", "monk1", "monk2", "monk3", "balance-scale",
    "car_evaluation", "iris_QT_5", "banknote_QT_5", "transfusion_QT_5", "fertility_QT_5", "hepatitis_QT_5", "plrx_QT_5",
    "wine_QT_5", "parkinsons_QT_5", "fertility_QB_5", "credit_QB_5",
)  # fmt: skip


def run_timed(work) -> tuple[float, object]:
    """Return the processor seconds of a call, and its result."""
    begin = time.process_time()
    result = work()
    return time.process_time() - begin, result


def bench_for(problem: Problem, args: argparse.Namespace) -> Bench:
    """Return a new workbench of the chosen method."""
    if args.method == "exact":
        return Workbench(problem, depth=args.depth)
    if args.method == "odt":
        return SubsetWorkbench(problem, depth=args.depth)
    return NumericWorkbench(problem, depth=args.depth)


def random_edits(bench: Bench, rng: np.random.Generator, count: int) -> list[list[str]]:
    """Return lists of one to three random constraints on columns and splits of the problem."""
    names = bench.problem.table.names
    questions = bench.space.questions
    edits = []
    for _ in range(count):
        wishes = []
        for _ in range(int(rng.integers(1, 4))):
            place = str(rng.choice(["root", "y", "n"]))
            verb = rng.choice(["ask", "forbid", "leaf", "depth"], p=[0.4, 0.35, 0.1, 0.15])
            if verb == "ask":
                wishes.append(f"ask {place} {questions.wish(int(rng.integers(questions.encoded)))}")
            elif verb == "forbid":
                wishes.append(f"forbid {place} {names[int(rng.integers(len(names)))]}")
            else:
                wishes.append(f"leaf {place}" if verb == "leaf" else f"depth {place} 2")
        edits.append(wishes)
    return edits


def measure(name: str, problem: Problem, args: argparse.Namespace, answers: list[float]) -> dict[str, object]:
    """Return one line of the table; append the seconds of each edit to `answers`."""
    bench = bench_for(problem, args)
    line: dict[str, object] = {"set": name, "rows": len(problem.table), "questions": len(problem.binary.features)}
    line["cold"], _ = run_timed(lambda: bench.complete([], time_limit=args.limit))
    edits = random_edits(bench, np.random.default_rng(0), args.edits)
    seconds = [run_timed(lambda wishes=wishes: bench.complete(wishes, time_limit=args.limit))[0] for wishes in edits]
    answers += seconds
    line |= {"edit_median": statistics.median(seconds), "edit_longest": max(seconds)}
    fresh = bench_for(problem, args)
    fresh.complete([], time_limit=args.limit)
    line["ten_prices"], _ = run_timed(
        lambda: list(itertools.islice(fresh.price_list("root", time_limit=args.limit), 10))
    )
    if not isinstance(bench, Workbench):
        return line
    try:
        line["first_1000"], trees = run_timed(lambda: bench.best_trees(1000, time_limit=args.limit))
        line["listed"] = len(trees)
        good = bench.good_trees(slack=Fraction(args.slack), time_limit=args.limit)
        line["count_seconds"], line["count"] = run_timed(lambda: good.count)
    except SearchStopped:
        line["count"] = None
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=len(SETS))
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--method", choices=editable_ids(), default=editable_ids()[0])
    parser.add_argument("--edits", type=int, default=10)
    parser.add_argument("--slack", default="0.05")
    parser.add_argument("--penalty", default="0.01")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one answer")
    args = parser.parse_args()
    folder = encodings()
    if folder is None:
        return
    lines: list[dict[str, object]] = []
    answers: list[float] = []
    for name in SETS[: args.sets]:
        path = folder / "encoded" / f"{name}_enc.csv.gz"
        if not path.exists():
            continue
        table, labels, _ = load(path, target="target")
        penalty = Fraction(0) if args.method == "odt" else Fraction(args.penalty)
        problem = Problem(table=table, labels=labels, leaf_penalty=penalty)
        if not lines:
            measure(name, problem, args, [])  # compiles the kernels before the clock starts
        lines.append(measure(name, problem, args, answers))
        print(json.dumps({k: round(v, 3) if isinstance(v, float) else v for k, v in lines[-1].items()}), flush=True)
    ordered = sorted(answers)
    print(
        f"{len(ordered)} edits on {len(lines)} sets: median {statistics.median(ordered):.3f} s, 95 % within "
        f"{ordered[math.ceil(0.95 * len(ordered)) - 1]:.3f} s, longest {ordered[-1]:.3f} s"
    )
    for part, words in (("cold", "first answer"), ("ten_prices", "ten prices"), ("first_1000", "first 1,000 trees")):
        if not (times := [line[part] for line in lines if part in line]):
            continue
        print(f"{words}: median {statistics.median(times):.3f} s, longest {max(times):.3f} s")


if __name__ == "__main__":
    main()
