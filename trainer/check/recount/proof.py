"""Check a model's proof and compare its bound with the file's.

See docs/proof-format.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from trainer.check.proof.model import ModelTable, active_parameter, read_fraction
from trainer.check.proof.proof import proved_bounds, proved_counts
from trainer.check.proof.steps.lines import ProvedBounds
from trainer.check.proof.subject import BadProof, CountedSets, NoProof
from trainer.check.recount.findings import TOLERANCE, Finding, proof_finding, recount_finding
from trainer.check.recount.search.goal_lines import GoalLines
from trainer.check.recount.trees.counts import penalty

MOST_DEPTH = 20  # trees with more than 2^20 leaves are not told apart

Errors = tuple[int, ...]  # entry t - 1 is a lower bound on the errors of trees with at most t leaves


def check_model_proof(
    model: dict[str, Any], rows: ModelTable, proof_path: Path, prices: Mapping[int, Fraction] | None = None
) -> tuple[list[Finding], Errors]:
    """Check the proof of a model over its training rows; return the findings and the errors of trees with few leaves.

    `prices` are those of columns for one unit of weight, in rows.
    """
    bounds = _bounds_or_reason(lambda: proved_bounds(model, rows, proof_path, prices))
    if isinstance(bounds, Finding):
        return [bounds], ()
    is_by_lines = model["certificate"].get("goal") is not None
    best = _best_goal(model, rows, bounds) if is_by_lines else 1 - bounds.cost / int(rows.weights.sum())
    return [_proved_bound(model, best, bounds.steps)], bounds.errors


def check_counted_proof(
    model: dict[str, Any], sets: CountedSets, questions: Sequence[dict[str, Any]], digest: str, proof_path: Path
) -> Finding:
    """Check the proof of a model over its counts; the arguments are those of `counted_space`."""
    bounds = _bounds_or_reason(lambda: proved_counts(model, sets, questions, digest, proof_path))
    if isinstance(bounds, Finding):
        return bounds
    return _proved_bound(model, 1 - bounds.cost / int(sets.numbers[:, 0].sum()), bounds.steps)


def _bounds_or_reason(prove: Callable[[], ProvedBounds]) -> ProvedBounds | Finding:
    """Return proved bounds, or the finding that says why there are none."""
    try:
        return prove()
    except NoProof as reason:
        return _open(f"The proof was not checked: {reason}.")
    except BadProof as reason:
        return recount_finding("proof", False, f"{reason}.")


def _best_goal(model: dict[str, Any], rows: ModelTable, bounds: ProvedBounds) -> Fraction:
    """Return an upper bound on F1 or MCC, less the price of leaves, by the lines of a proof."""
    goal = model["certificate"]["goal"]
    positive = rows.labels == model["classes"].index(goal["positive"])
    lines = GoalLines(goal, penalty(model), tuple(int(rows.weights[own].sum()) for own in (positive, ~positive)))
    for line in bounds.lines:
        lines.add(*line)
    most = 1 << min(int(model["parameters"]["depth"]), MOST_DEPTH)
    return lines.top(min(most, int(active_parameter(model, "max_leaves") or most)))


def _proved_bound(model: dict[str, Any], best: Fraction, number: int) -> Finding:
    """Compare the bound of the file with the best objective that a tree can have by the steps of the proof."""
    claimed = model["certificate"].get("bound")
    steps = f"{number} steps hold" if number != 1 else "one step holds"
    if claimed is None:
        return _open(f"The proof shows that no tree exceeds {float(best):.12g}, and the file claims no bound.")
    words = f"{steps}: no tree exceeds {best} = {float(best):.12g}."
    if best > read_fraction(claimed) + TOLERANCE:
        return _open(f"{words} The file claims {claimed}, which the proof does not show.")
    return proof_finding("bound", "proved", words, best)


def _open(words: str) -> Finding:
    return proof_finding("bound", "cannot be judged", words)
