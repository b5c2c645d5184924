"""Prove that no smaller hyperplane tree is as good (docs/proof-format.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from trainer.data.problem import Problem
from trainer.families.oblique.proving import build_proof
from trainer.families.oblique.store import Step
from trainer.methods.base import NotProved, ProofSteps, Settings


def with_smaller(
    problem: Problem, settings: Settings, proof: ProofSteps, leaves: int, stop: Callable[[], bool]
) -> ProofSteps:
    """Add blocks that show that trees with fewer than `leaves` leaves cost more; return the proof unchanged if none are found."""
    if leaves < 2 or problem.coefficient_penalty:
        return proof
    few = Settings(dict(settings) | {"max_leaves": leaves - 1})
    # costs are integer multiples of 1/denominator of a row, so goal + 1 is the next larger one
    bound = 1 - Fraction(proof.goal + 1, problem.kappa.denominator * problem.n)
    try:
        more = build_proof(problem, few, bound, stop)
    except NotProved:
        more = None
    return proof if more is None else replace(proof, steps=[*proof.steps, *_shift_steps(more.steps, len(proof.steps))])


def _shift_steps(steps: Sequence[Step], by: int) -> Iterator[Step]:
    """Yield the steps with line numbers shifted by `by`."""
    for step in steps:
        if step["by"] == "meet":
            yield step | {"of": step["of"] + by}
        elif step["by"] == "sum":
            yield step | {"of": [[line + by, place] for line, place in step["of"]]}
        else:
            yield step
