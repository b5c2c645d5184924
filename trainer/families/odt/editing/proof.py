"""Prove bounds of constrained trees over subsets of categories (docs/proof-format.md)."""

from __future__ import annotations

from fractions import Fraction

from trainer.families.odt.editing.bench import SubsetWorkbench
from trainer.families.odt.topology import complete
from trainer.methods.base import CHECKER_SEARCHES, NotProved, ProofSteps

DEEPEST = 3
MOST_QUESTIONS = 300


def subset_proof(bench: SubsetWorkbench, bound: Fraction) -> ProofSteps:
    """Build the proof that no tree with the model's constraints has fewer errors than `bound`.

    It is one step, which the checker searches by itself. Raises NotProved if that search would be too large.
    """
    depth = bench.space.depth
    if bench.space.shape != complete(depth):
        raise NotProved(f"No proof step covers wishes in a topology that is not complete. {CHECKER_SEARCHES}")
    if depth > DEEPEST or bench.space.questions.encoded > MOST_QUESTIONS:
        raise NotProved(
            f"Wishes over subsets are proved up to depth {DEEPEST} and {MOST_QUESTIONS} subsets. "
            f"Here the depth is {depth}, and all columns together have {bench.space.questions.encoded} subsets."
        )
    goal = -(-bound.numerator // bound.denominator)
    return ProofSteps(scale=1, goal=goal, steps=[{"path": [], "height": depth, "bound": goal, "by": "within"}])
