"""Write the proof of a trained tree to a file.

The format is that of docs/proof-format.md. The mixed-integer methods over binary features, and `odt` with few
categories, search the same trees as the exact search, which therefore proves their bounds afterwards.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trainer.certificate import Evidence
from trainer.constraints import active_constraints
from trainer.data.problem import Problem
from trainer.dtypes import BitArray
from trainer.errors import DataError
from trainer.families.exact.proofs.editing import constrained_bench, restricted_proof
from trainer.families.exact.proofs.rule_proof import proof_within_rules
from trainer.families.exact.search.constraints import LIMITS
from trainer.families.exact.search.solve import prove_binary
from trainer.families.oblique.fewest import with_smaller
from trainer.families.oblique.proving import build_proof as planes_proof
from trainer.goal import COUNT_GOALS
from trainer.methods.base import CHECKER_SEARCHES, Method, NotProved, ProofSteps, Settings, Solution
from trainer.methods.capabilities import ProofKind
from trainer.solver_common.binary_problem import BinaryProblem

FORMAT = "octweb-proof"
WITHIN = {"within", "cases"}  # reasons of steps that need version 2
NARROW = {"few", "weigh"}  # reasons of steps that need version 7, in proofs about hyperplanes
OF_ANY_HEIGHT = 9
OF_PRICES = 10
OF_LINES = 11
OF_COUNTS = 12
OF_EMPTY_CELLS = 8  # version for tables with empty cells; 'like' then names the version of the steps
RATES = "fairness"  # needs version 6, whose vectors have groups
SEARCHED = {"monotone", RATES}  # constraints that couple leaves and that the checker supports
MAX_PROOF_BYTES = 50_000_000
LONGEST_LINE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class ProofLimits:
    """Limits of time and size for a proof."""

    seconds: float | None = None  # time limit after the search; None for no limit
    size: int = MAX_PROOF_BYTES  # limit on the bytes of the file


def write_proof(
    path: Path,
    problem: Problem,
    method: Method,
    settings: Settings,
    solution: Solution,
    limits: ProofLimits,
    cancelled: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Write the proof of a solution's bound to a file; return its record for the model file.

    If there is no proof, no file is written, and the record states the reason.
    """
    start = time.perf_counter()

    def stop() -> bool:
        return cancelled() or (limits.seconds is not None and time.perf_counter() - start > limits.seconds)

    def lines() -> Iterator[dict[str, Any]]:
        proof = _proof(problem, method, settings, solution, stop)
        planes = method.proof is ProofKind.HYPERPLANES
        return _lines(problem, proof, planes=planes, rates=RATES in active_constraints(settings))

    return write_lines(path, lines, limits.size)


def write_lines(path: Path, lines: Callable[[], Iterator[dict[str, Any]]], most: int) -> dict[str, Any]:
    """Write a proof of at most so many bytes; return its record for the model file.

    `lines` returns the header and the steps, or raises NotProved; then the record states the reason, and no file is written.
    """
    start = time.perf_counter()
    path.unlink(missing_ok=True)
    try:
        written = _write(path, lines(), most)
    except (NotProved, DataError) as reason:  # DataError means that the exact search would have too many features
        return {"kind": Evidence.PROOF, "made": False, "reason": str(reason)}
    return {
        "kind": Evidence.PROOF,
        "made": True,
        "steps": written.steps,
        "bytes": written.size,
        "sha256": written.sha256,
        "seconds": round(time.perf_counter() - start, 3),
    }


def _proof(
    problem: Problem, method: Method, settings: Settings, solution: Solution, stop: Callable[[], bool]
) -> ProofSteps:
    if solution.bound is None:
        raise NotProved("This training claims no bound, so there is nothing to prove.")
    if solution.goal is not None and solution.goal.maximise not in COUNT_GOALS:
        raise NotProved(f"Proofs are supported only for accuracy, F1 and MCC. {CHECKER_SEARCHES}")
    if method.proof is ProofKind.HYPERPLANES:
        own_proof = None if solution.proof is None else solution.proof(stop)
        proof = own_proof or planes_proof(problem, settings, Fraction(solution.bound), stop)
    elif solution.proof is not None:
        proof = solution.proof(stop)
    elif solution.questions is not None:
        proof = _afterwards(solution.questions(), problem, settings, cost_of(solution, problem), stop)
    elif method.proof is ProofKind.SAME_TREES and "binarise" in settings:
        proof = _of_same_trees(problem, settings, solution, stop)
    else:
        raise NotProved(f"No proof steps exist for '{method.id}' with these settings.")
    if proof is None:
        raise NotProved("The proof would be larger, or take longer, than its limits allow.")
    # with `goals`, the proof already covers each number of leaves
    if settings.get("then_fewest") and solution.finished and proof.goals is None:
        return with_smaller(problem, settings, proof, problem.tree(solution.draft).n_leaves, stop)
    return proof


def _of_same_trees(
    problem: Problem, settings: Settings, solution: Solution, stop: Callable[[], bool]
) -> ProofSteps | None:
    """Prove the bound with the exact search over the same trees, within the constraints if they worsen the optimum."""
    cost = cost_of(solution, problem)
    proof = _afterwards(problem.binary.bits(problem.table), problem, settings, cost, stop)
    if (
        proof is None
        or not active_constraints(settings)
        or (_rows(proof, problem) >= cost and not _paths_forbidden(settings))
    ):
        return proof
    if beyond := active_constraints(settings).difference(LIMITS):
        return _within_rules(problem, settings, cost, beyond, stop)
    return restricted_proof(constrained_bench(problem, settings), (), cost, settings["depth"], stop)


def _paths_forbidden(settings: Settings) -> bool:
    """Return whether steps below the root may be about paths that forbidden pairs exclude."""
    return settings["depth"] > 3 and "forbidden_pairs" in active_constraints(settings)


def _within_rules(
    problem: Problem, settings: Settings, cost: Fraction, beyond: set[str], stop: Callable[[], bool]
) -> ProofSteps | None:
    """Prove a bound under the constraints `beyond`, which couple leaves.

    Raises NotProved if there is no proof.
    """
    if unknown := sorted(beyond - SEARCHED):
        raise NotProved(f"No proof steps exist for {' and '.join(unknown)}, on which the bound depends.")
    return proof_within_rules(problem, settings, cost, stop)


def cost_of(solution: Solution, problem: Problem) -> Fraction:
    """Return the bound in rows, rounded to a possible cost of errors and leaves."""
    assert solution.bound is not None
    Q = problem.kappa.denominator
    cost = (1 - Fraction(solution.bound)) * problem.n * Q
    return Fraction(math.ceil(cost - Fraction(1, 10**6)), Q)


def _rows(proof: ProofSteps, problem: Problem) -> Fraction:
    """Return the lower bound that a proof shows, in rows."""
    Q = problem.kappa.denominator
    return Fraction(proof.goal, proof.scale * Q)


def _afterwards(
    bits: BitArray, problem: Problem, settings: Settings, cost: Fraction, stop: Callable[[], bool]
) -> ProofSteps | None:
    """Prove that no tree over these features costs less than `cost` rows, or the optimum if that is less.

    Constraints that the exact search ignores can only raise the optimum, so the bound stays valid.
    """
    binary = BinaryProblem(
        bits,
        problem.y,
        n_classes=problem.n_classes,
        depth=settings["depth"],
        leaf_cost=problem.kappa,
        weights=problem.weights,
        min_leaf=int(settings.get("min_leaf") or 1),
    )
    return prove_binary(binary, cost, stop=stop)


def one_class(problem: Problem) -> ProofSteps:
    """Prove the bound of one class: every tree costs at least one leaf."""
    return ProofSteps(scale=1, goal=problem.kappa.numerator, steps=[])


def _lines(problem: Problem, proof: ProofSteps, *, planes: bool, rates: bool) -> Iterator[dict[str, Any]]:
    by_shape = any(step["by"] == "topology" for step in proof.steps)
    within = any(step["by"] in WITHIN or "columns" in step for step in proof.steps)
    goal: dict[str, Any] = {"goal": proof.goal} if proof.goals is None else {"goals": proof.goals}
    if proof.lines is not None:
        goal = {"lines": proof.lines}
    narrow = any(step["by"] in NARROW or "charged" in step for step in proof.steps)
    if proof.lines is not None:
        version = OF_LINES
    elif any(step.get("height", 0) is None for step in proof.steps):
        version = OF_ANY_HEIGHT
    elif proof.priced:
        version = OF_PRICES
    elif by_shape:
        version = 5
    elif proof.goals:
        version = 4
    elif planes:
        version = 7 if narrow else 3
    elif within:
        version = 6 if rates else 2
    else:
        version = 1
    if any(column.has_missing for column in problem.table.columns):
        versions = {"version": OF_EMPTY_CELLS, "like": version}
    else:
        versions = {"version": version}
    yield {"format": FORMAT, **versions, "rows": rows_digest(problem), "scale": proof.scale} | goal
    yield from proof.steps


def rows_digest(problem: Problem) -> str:
    """Return the SHA-256 of columns (float64), classes (int32) and weights (int64) of the training rows, little-endian."""
    sha = hashlib.sha256()
    for column in problem.table.columns:
        # give every empty cell the same bit pattern, because the digest covers bytes
        values = np.where(column.missing, np.nan, column.values + 0.0)
        sha.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
    sha.update(np.ascontiguousarray(problem.y, dtype="<i4").tobytes())
    sha.update(np.ascontiguousarray(problem.row_weights, dtype="<i8").tobytes())
    return sha.hexdigest()


class _Written(NamedTuple):
    """Number of steps, bytes and SHA-256 of a file."""

    steps: int
    size: int
    sha256: str


def _write(path: Path, lines: Iterator[dict[str, Any]], most: int) -> _Written:
    """Write the file atomically; it has no time or name, so equal proofs are equal files."""
    draft = path.with_name(f"{path.name}.part")
    k = 0
    try:
        with open(draft, "wb") as raw, gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as stream:
            for k, line in enumerate(lines):
                text = json.dumps(line, separators=(",", ":")).encode() + b"\n"
                if len(text) > LONGEST_LINE:
                    raise NotProved("A step of the proof would be longer than the checker reads.")
                stream.write(text)
                if k % 1000 == 0 and raw.tell() > most:
                    raise NotProved(f"The proof would be larger than its limit of {most // 1_000_000} MB.")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    content = path.read_bytes()
    return _Written(k, len(content), hashlib.sha256(content).hexdigest())
