"""Compare counting the Rashomon set with TreeFARMS and PRAXIS.

Usage: GOOD_TREES_PYTHON=/path/of/venv/bin/python python benchmarks/good_trees.py [--limit 120] [--sets NAME ...]
       [--programs NAME ...] [--ties]

The peers need their own versions of libraries, so they run in their own environment: `python -m venv V`,
`V/bin/pip install treefarms tree-praxis`, then GOOD_TREES_PYTHON=V/bin/python. Without it only octweb is measured. All
count trees of depth at most 4 within 5 % of the best, with a leaf penalty of 0.01, on the same binary tables and one
core. The first 1,000 trees of octweb are timed as well. The programs do not count the same trees; docs/good-trees.md
explains the differences:

- octweb counts every tree up to 1.05 times the least cost exactly; leaves predict their majority class.
- TreeFARMS counts levels of nodes (`depth_budget` 5), takes its own first objective as the least one, and leaves out
  trivial splits by default. "all questions" is the run that keeps them (`rashomon_ignore_trivial_extensions` off),
  which is closer to ours.
- PRAXIS rounds the leaf penalty to whole rows and lets a leaf predict the rarer class. With its default `lookahead_k`
  1, the approximate run, it may miss trees, and its limit is relative to the tree that its own search finds first. With
  4 its count is exact.

A time is processor time of the process (`getrusage`), from the table in memory to the number of trees. Ours includes
the encoding, the best tree and the count, with compiled kernels. A peer's includes `fit` and the count in a fresh
process. Ours runs twice each time and the faster run counts; a peer that takes less than a second does so, too. So
neither pays for cold memory. The programs take turns, `--repeats` times; a peer that takes more than a second runs
once. Times are medians, with the least and the largest in brackets; the ratio is that of the medians. With `--apart`
ours has a fresh process each time, too, and counts once before, which loads the compiled code. A peer gets `--limit`
processor seconds and `--memory` GB. "> 120" means that it was stopped then, and the ratio is a lower bound. If
TreeFARMS was stopped, its second run, which takes at least as long, is left out.

`--ties` only counts tic-tac-toe with depth 3 by TreeFARMS and by ours. The classes are taken both ways round, and
TreeFARMS also gets the columns in reverse order. A leaf without a majority gets class 1 in TreeFARMS and the first
class in ours. The set of TreeFARMS depends on that and not on the order of columns.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

SETS = ("tic-tac-toe", "breast-cancer", "fico_binary", "credit_QT_5", "wdbc_QT_5", "kr-vs-kp")
FIRST = (
    "tic-tac-toe", "breast-cancer", "fico_binary", "credit_QT_5", "kr-vs-kp", "monk1", "monk2", "monk3", "balance-scale", "car_evaluation",
)  # fmt: skip
DEPTH = 4
PENALTY = "0.01"
SLACK = "0.05"
TREES = 1000
ALL = "TreeFARMS, all questions"
TREEFARMS = {"TreeFARMS": {}, ALL: {"rashomon_ignore_trivial_extensions": False}}
PRAXIS = {
    "PRAXIS, approximate": {},
    "PRAXIS, approximate, majority": {"majority_leaf_only": True},
    "PRAXIS, exact, majority": {"majority_leaf_only": True, "lookahead_k": DEPTH},
}
PROGRAMS = (*TREEFARMS, *PRAXIS)
OURS = "octweb"
FASTER = 20  # the target is to be this many times faster than TreeFARMS
BRIEF = 1.0  # seconds; a shorter run of a peer is repeated


# The functions below run in the environment of the peers.


def child(program: str, path: str, limit: float, memory: float) -> int:
    """Count with one program in this process, and print one line of JSON."""
    count = _count_ours(path) if program == OURS else _peer(program, path)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    most = int(spent() + limit) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    room = int(memory * 1e9)
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
    seconds, number = best(count, 1)
    if seconds < BRIEF:
        seconds = min(seconds, best(count, 1)[0])
    print("RESULT " + json.dumps({"seconds": seconds, "count": int(number)}), flush=True)
    return 0


def _peer(program: str, path: str) -> Callable[[], int]:
    import pandas as pd

    table = pd.read_csv(path)
    X = table.drop(columns="target")
    y = table["target"]
    return _treefarms(program, X, y) if program in TREEFARMS else _praxis(program, X, y)


def ties(path: str) -> int:
    """Count with TreeFARMS at depth 3, with both codings of the classes and both orders of the columns."""
    import pandas as pd
    from treefarms import TREEFARMS as Model

    table = pd.read_csv(path)
    settings = {
        "regularization": float(PENALTY), "rashomon_bound_multiplier": float(SLACK), "depth_budget": 4, "verbose": False, "worker_limit": 1,
    }  # fmt: skip
    for columns in (1, -1):
        X = table.drop(columns="target").iloc[:, ::columns]
        for one in (1, 0):
            count = Model(settings).fit(X, (table["target"] == one).astype(int)).get_tree_count()
            order = "as published" if columns == 1 else "the other way round"
            print(f"\nTIES columns {order}, ties to class {one}: {count}", flush=True)
    return 0


def _treefarms(program: str, X: Any, y: Any) -> Callable[[], int]:
    from treefarms import TREEFARMS as Model

    settings = {
        "regularization": float(PENALTY), "rashomon_bound_multiplier": float(SLACK), "depth_budget": DEPTH + 1, "verbose": False,
        "worker_limit": 1, **TREEFARMS[program],
    }  # fmt: skip
    return lambda: Model(settings).fit(X, y).get_tree_count()


def _praxis(program: str, X: Any, y: Any) -> Callable[[], int]:
    from praxis import PRAXIS as Model

    X = X.to_numpy(int)
    y = y.to_numpy(int)
    settings = {"lambda_reg": float(PENALTY), "rashomon_mult": float(SLACK), "depth_budget": DEPTH} | PRAXIS[program]

    def count() -> int:
        model = Model()
        model.fit(X, y, **settings)
        return model.count_trees()

    return count


# The functions below run in our environment.


def best(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the processor seconds of the fastest run, and the last answer."""
    fastest = float("inf")
    answer = None
    for _ in range(repeats):
        began = spent()
        answer = work()
        fastest = min(fastest, spent() - began)
    return fastest, answer


def spent() -> float:
    """Return the processor seconds of this process.

    Under a limit of processor time, `time.process_time` is too small by up to one tick of the system.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def bench_on(path: Path) -> Callable[[], Any]:
    """Read a table; return a function that creates a fresh workbench on it."""
    from trainer.data.problem import Problem
    from trainer.data.reader import load
    from trainer.families.exact.workbench import Workbench

    table, labels, _ = load(path, target="target")
    return lambda: Workbench(Problem(table=table, labels=labels, leaf_penalty=Fraction(PENALTY)), depth=DEPTH)


def _count_ours(path: str) -> Callable[[], int]:
    """Count once to load the compiled code; return a function that counts with octweb."""
    import common  # noqa: F401  (finds the library)

    fresh = bench_on(Path(path))
    fresh().good_trees(slack=SLACK).count  # noqa: B018
    return lambda: int(fresh().good_trees(slack=SLACK).count)


def theirs(options: argparse.Namespace, program: str, path: Path) -> dict[str, Any]:
    """Run a program in a child process; return seconds and count.

    `count` is None if it was stopped. After another failure the record only has `failed`.
    """
    python = sys.executable if program == OURS else options.python
    command = [python, __file__, "--child", program, "--path", str(path)]
    process = subprocess.run(
        [*command, "--limit", str(options.limit), "--memory", str(options.memory)],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in process.stdout.splitlines() if line.startswith("RESULT ")]
    if lines:
        return dict(json.loads(lines[-1].removeprefix("RESULT ")))
    if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"seconds": options.limit, "count": None}
    return {"failed": (process.stderr.strip().splitlines() or ["no word"])[-1][-120:]}


def compare(options: argparse.Namespace, name: str, path: Path) -> dict[str, dict[str, Any]]:
    """Run all programs on a table, print one line for each, and return their results."""
    fresh = bench_on(path)
    runs: dict[str, list[dict[str, Any]]] = {OURS: []}
    for _ in range(options.repeats):
        if options.apart:
            runs[OURS].append(theirs(options, OURS, path))
        else:
            seconds, number = best(lambda: fresh().good_trees(slack=SLACK).count, 2)
            runs[OURS].append({"seconds": seconds, "count": number})
        for program in options.programs if options.python else ():
            if _runs_again(program, runs):
                runs.setdefault(program, []).append(theirs(options, program, path))
    medians = {program: _median(several) for program, several in runs.items()}
    if "failed" in medians[OURS]:
        raise SystemExit(f"octweb cannot count {name}: {medians[OURS]['failed']}")
    for program, one in medians.items():
        _line(name, program, one, medians[OURS]["seconds"])
    return medians


def _runs_again(program: str, runs: dict[str, list[dict[str, Any]]]) -> bool:
    """Return whether a peer runs again: its runs were brief, and, for `ALL`, TreeFARMS was not stopped."""
    if program == ALL and any(one.get("count") is None for one in runs.get("TreeFARMS", ())):
        return False
    return all(one.get("seconds", BRIEF) < BRIEF for one in runs.get(program, ()))


def _median(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the first result with the median and range of seconds of all runs, or the first failed run."""
    failed = [one for one in runs if "failed" in one]
    seconds = [one["seconds"] for one in runs if "failed" not in one]
    return (
        failed[0]
        if failed
        else runs[0] | {"seconds": statistics.median(seconds), "range": (min(seconds), max(seconds))}
    )


def _line(name: str, program: str, one: dict[str, Any], ours: float) -> None:
    if "failed" in one:
        print(f"| {name} | {program} | failed: {one['failed']} | | |", flush=True)
        return
    more = "" if one["count"] is not None else "> "
    count = "not known" if one["count"] is None else f"{one['count']:,}"
    low, high = one["range"]
    print(
        f"| {name} | {program} | {count} | {more}{one['seconds']:.4f} ({low:.4f} to {high:.4f}) | {more}{one['seconds'] / ours:,.2f} |",
        flush=True,
    )


def verdict(results: dict[str, dict[str, dict[str, Any]]]) -> None:
    """Print on how many tables octweb reaches each target."""
    for program, least in (("TreeFARMS", FASTER), ("PRAXIS, approximate", 1)):
        finished = {name: one for name, one in results.items() if "seconds" in one.get(program, {})}
        if not finished:
            continue
        ratios = {name: one[program]["seconds"] / one[OURS]["seconds"] for name, one in finished.items()}
        slow = [f"{name} ({ratio:.2f})" for name, ratio in ratios.items() if ratio < least]
        print(
            f"{program}: at least {least} times our time on {len(ratios) - len(slow)} of {len(results)} tables; "
            f"smallest ratio {min(ratios.values()):.2f}; missed: {', '.join(slow) or 'none'}"
        )


def count_tied(options: argparse.Namespace, path: Path) -> int:
    """Print the counts of TreeFARMS at depth 3, and ours without splits that separate nothing."""
    from trainer.data.problem import Problem
    from trainer.data.reader import load
    from trainer.families.exact.workbench import Workbench

    table, labels, _ = load(path, target="target")
    for first in (0, 1):
        codes = labels.codes if first == 0 else 1 - labels.codes
        tied_labels = replace(labels, codes=codes)
        bench = Workbench(Problem(table=table, labels=tied_labels, leaf_penalty=Fraction(PENALTY)), depth=3)
        print(f"octweb, ties to class {first}: {bench.good_trees(slack=SLACK).without_idle}")
    if options.python:
        command = [options.python, __file__, "--ties", "--path", str(path)]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        print(*(line.removeprefix("TIES ") for line in output.splitlines() if line.startswith("TIES ")), sep="\n")
    return 0


def first_trees(folder: Path, repeats: int) -> None:
    """Print the seconds to the first 1,000 trees on ten encodings, including the search for the best tree."""
    print(f"\n| table | first {TREES:,} trees, s | listed |\n|---|---|---|")
    slowest = 0.0
    for name in FIRST:
        fresh = bench_on(folder / "encoded" / f"{name}_enc.csv.gz")
        seconds, trees = best(lambda fresh=fresh: fresh().best_trees(TREES), repeats)
        slowest = max(slowest, seconds)
        print(f"| {name} | {seconds:.3f} | {len(trees):,} |", flush=True)
    print(f"slowest: {slowest:.3f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=120.0, help="processor seconds of a peer for one table")
    parser.add_argument("--memory", type=float, default=8.0, help="GB of a peer")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS, metavar="NAME")
    parser.add_argument("--programs", nargs="+", default=PROGRAMS, choices=PROGRAMS, metavar="NAME")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--python", default=os.environ.get("GOOD_TREES_PYTHON", ""))
    parser.add_argument("--apart", action="store_true", help="a fresh process each time for ours, too")
    parser.add_argument("--child", choices=(OURS, *PROGRAMS), help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    parser.add_argument("--ties", action="store_true", help="which class TreeFARMS gives leaves without a majority")
    options = parser.parse_args()
    if options.child:
        return child(options.child, options.path, options.limit, options.memory)
    if options.ties and options.path:
        return ties(options.path)
    from common import encodings

    folder = encodings()
    if folder is None:
        return 0
    if not options.python:
        print(
            "The peers are not here: make an environment for them and set GOOD_TREES_PYTHON; see the top of this file."
        )
    if options.ties:
        return count_tied(options, folder / "encoded" / "tic-tac-toe_enc.csv.gz")
    # compiles the kernels before the clock starts
    best(lambda: bench_on(folder / "encoded" / "monk1_enc.csv.gz")().best_trees(TREES), 1)
    print("| table | program | trees | processor s | ÷ ours |\n|---|---|---|---|---|")
    verdict({name: compare(options, name, folder / "encoded" / f"{name}_enc.csv.gz") for name in options.sets})
    first_trees(folder, options.repeats)
    return 0


if __name__ == "__main__":
    sys.exit(main())
