"""Prove bounds of constrained trees over subsets of categories (docs/proof-format.md)."""

from __future__ import annotations

from fractions import Fraction

from trainer.families.odt.as_questions import CHECKER_SEARCHES
from trainer.families.odt.editing.bench import SubsetWorkbench
from trainer.families.odt.topology import complete
from trainer.methods.base import NotProved, ProofSteps

DEEPEST = 3
MOST_QUESTIONS = 300


def subset_proof(bench: SubsetWorkbench, bound: Fraction) -> ProofSteps:
    """Build the proof that no tree with the model's constraints has fewer errors than `bound`.

    It is one step, which the checker searches by itself. Raises NotProved if that search would be too large.
    """
    depth = bench.space.depth
    if bench.space.shape != complete(depth):
        raise NotProved(f"Wishes within a topology that is not complete have no step of a proof. {CHECKER_SEARCHES}")
    if depth > DEEPEST or bench.space.questions.encoded > MOST_QUESTIONS:
        raise NotProved(
            f"Wishes over subsets are proved up to depth {DEEPEST} and {MOST_QUESTIONS} subsets of all columns together."
        )
    goal = -(-bound.numerator // bound.denominator)
    return ProofSteps(scale=1, goal=goal, steps=[{"path": [], "height": depth, "bound": goal, "by": "within"}])
