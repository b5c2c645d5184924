"""Compare the exact search without a depth limit with GOSDT and pystreed.

python benchmarks/depthless.py [--limit 10] [--tables monk1 …] [--penalties 0.01 …] [--no-peers] [--proofs]
Needs OCTWEB_BENCH_DATA (default ../shared/data).  pystreed has depth 20.  A peer that is not installed is left out.
Processor seconds of one call each, one thread.  The limit is processor time for us, wall-clock time for the peers.  A
time with * has no proof; *none* is a peer that failed, or did not end.  A table with -ordinal has the questions
"at most this value?" instead of one question per value.  With --proofs the proof file of each proved cost is made and
checked: its steps, the seconds to write it and those to check it, with *none* beyond the limit.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from trainer.check.proof.steps.steps import check_proof
from trainer.check.proof.subject import ProofSpace
from trainer.families.exact.proofs.any_depth import prove_any_depth
from trainer.families.exact.search.any_depth import solve_any_depth
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits

DATA = Path(os.environ.get("OCTWEB_BENCH_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
ORDINAL = "-ordinal"
TABLES = (
    "monk1", "monk2", "monk3", "tic-tac-toe", "car_evaluation", "balance-scale", "kr-vs-kp", "mushroom",
    "monk1-ordinal", "monk2-ordinal", "monk3-ordinal", "car_evaluation-coded-ordinal", "balance-scale-ordinal",
)  # fmt: skip
PENALTIES = ("0.01", "0.005", "0.001")
MOST_CHECKED_STEPS = 20_000
NO_LIMIT = 1000  # more splits than any of these tables has features


class Run(NamedTuple):
    """The result of one program: seconds, cost of its tree in rows, lower bound, and whether it claims a proof."""

    seconds: float
    cost: float
    bound: float
    proved: bool


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return binary features uint8 and class codes: a published encoding, or one feature per category of a column."""
    if name.endswith(ORDINAL):
        return load_ordinal(name.removesuffix(ORDINAL))
    file = DATA / "encoded" / f"{name}_enc.csv.gz"
    if file.exists():
        table = pd.read_csv(file)
        return table.drop(columns="target").to_numpy(np.uint8), table["target"].to_numpy(np.int32)
    table = pd.read_csv(DATA / f"{name}.csv", dtype=str, keep_default_na=False)
    y = pd.factorize(table.iloc[:, -1], sort=True)[0].astype(np.int32)
    columns = table.iloc[:, :-1]
    questions = [columns[c] == value for c in columns for value in sorted(columns[c].unique())]
    return np.column_stack(questions).astype(np.uint8), y


def load_ordinal(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a feature "at most this value" for each value of a column except its largest, and the class codes."""
    table = pd.read_csv(DATA / f"{name}.csv")
    columns = table.iloc[:, :-1]
    questions = [columns[c] <= value for c in columns for value in sorted(columns[c].unique())[:-1]]
    y = pd.factorize(table.iloc[:, -1].astype(str), sort=True)[0].astype(np.int32)
    return np.column_stack(questions).astype(np.uint8), y


def proof_text(X: np.ndarray, y: np.ndarray, penalty: str, cost: float, limit: float) -> str:
    """Prove a cost and check the proof.

    Returns the number of steps, the seconds to write and the seconds to check as text, or "none" if the proof
    exceeds the limit.
    """
    leaf = Fraction(penalty) * len(y)
    classes = int(y.max()) + 1
    problem = BinaryProblem(X, y, n_classes=classes, depth=X.shape[1], leaf_cost=leaf)
    began = time.process_time()
    proof = prove_any_depth(
        problem, Fraction(cost).limit_denominator(10**6), stop=lambda: time.process_time() - began >= limit
    )
    written = time.process_time() - began
    if proof is None:
        return "none"
    if len(proof.steps) > MOST_CHECKED_STEPS:
        return f"{len(proof.steps)}, {written:.2f}, not checked"
    space = ProofSpace(
        "questions",
        X > 0,
        y,
        np.ones(len(y), np.int64),
        classes,
        min(X.shape[1], len(y) - 1),
        leaf,
        1,
        None,
        np.ones(X.shape[1], bool),
        None,
        "rows",
        any_depth=True,
    )
    header = {"format": "octweb-proof", "version": 9, "rows": "rows", "scale": proof.scale, "goal": proof.goal}
    began = time.process_time()
    proved = check_proof(iter(list(enumerate([header, *proof.steps]))), space).cost
    checked = time.process_time() - began
    verdict = "" if abs(float(proved) - cost) < 1e-6 else f", proves only {float(proved):.2f}"
    return f"{len(proof.steps)}, {written:.2f}, {checked:.2f}{verdict}"


def ours(X: np.ndarray, y: np.ndarray, penalty: str, limit: float) -> Run:
    problem = BinaryProblem(X, y, n_classes=int(y.max()) + 1, depth=NO_LIMIT, leaf_cost=Fraction(penalty) * len(y))
    began = time.process_time()
    solution = solve_any_depth(problem, limits=SearchLimits(stop=lambda: time.process_time() - began >= limit))
    seconds = time.process_time() - began
    return Run(seconds, float(solution.cost), float(solution.bound), solution.optimal)


def streed(X: np.ndarray, y: np.ndarray, penalty: str, limit: float) -> Run:
    from pystreed import STreeDClassifier

    model = STreeDClassifier("cost-complex-accuracy", max_depth=20, cost_complexity=float(penalty), time_limit=limit)
    began = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - began
    errors = int((model.predict(X) != y).sum())
    cost = errors + float(penalty) * len(y) * model.get_n_leaves()
    return Run(seconds, cost, 0.0, model.fit_result.is_optimal())


def gosdt(X: np.ndarray, y: np.ndarray, penalty: str, limit: float) -> Run:
    from gosdt import GOSDTClassifier, Status

    model = GOSDTClassifier(regularization=float(penalty), allow_small_reg=True, time_limit=int(limit))
    began = time.process_time()
    model.fit(pd.DataFrame(X.astype(bool), columns=[f"q{j}" for j in range(X.shape[1])]), y)
    seconds = time.process_time() - began
    result = model.result_
    return Run(seconds, result.upperbound * len(y), result.lowerbound * len(y), result.status == Status.CONVERGED)


PEERS: dict[str, Callable[..., Run]] = {"pystreed": streed, "gosdt": gosdt}


def cell(run: Run | None) -> str:
    """Return seconds and cost of a run as text, with a star if it has no proof."""
    if run is None:
        return "none"
    star = "" if run.proved else "*"
    return f"{run.seconds:.2f}{star} ({run.cost:.2f})"


def attempt(solver: Callable[..., Run], *question: object, limit: float) -> Run | None:
    """Run a peer in a child process.

    Returns None if the peer fails or takes more than 1.5 times its limit plus 5 s.
    """
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=lambda: queue.put(solver(*question, limit)))
    child.start()
    child.join(1.5 * limit + 5)
    if child.is_alive():
        child.kill()
    child.join()
    return None if queue.empty() else queue.get()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=10)
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--penalties", nargs="+", default=PENALTIES)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--proofs", action="store_true")
    options = parser.parse_args()
    peers = {name: run for name, run in PEERS.items() if importlib.util.find_spec(name) and not options.no_peers}
    warm = np.random.default_rng(0).integers(0, 2, (300, 8)).astype(np.uint8)
    for classes in (2, 3):
        ours(warm, (warm[:, :7].sum(axis=1) % classes).astype(np.int32), "0.003", 60)
    last = ["proof: steps, s to write, s to check"] if options.proofs else []
    print("|", " | ".join(["table", "rows × questions", "penalty", "octweb: s (cost)", "bound", *peers, *last]), "|")
    print("|---|---|---|---|---|" + "---|" * (len(peers) + len(last)))
    for name in options.tables:
        X, y = load(name)
        for penalty in options.penalties:
            mine = ours(X, y, penalty, options.limit)
            theirs = [cell(attempt(peer, X, y, penalty, limit=options.limit)) for peer in peers.values()]
            cells = [name, f"{len(y)} × {X.shape[1]}", penalty, cell(mine), f"{mine.bound:.2f}", *theirs]
            if options.proofs:
                cells.append(proof_text(X, y, penalty, mine.cost, options.limit) if mine.proved else "none")
            print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
