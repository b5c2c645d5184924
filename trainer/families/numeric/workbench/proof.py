"""Proofs of trees with wishes over all thresholds: one step, which the checker searches by itself (docs/proof-format.md)."""

from __future__ import annotations

from fractions import Fraction

from trainer.families.numeric.workbench.bench import NumericWorkbench
from trainer.method import NotProved, Proof

DEEPEST, MOST_QUESTIONS = 3, 300


def numeric_proof(bench: NumericWorkbench, bound: Fraction, depth: int) -> Proof:
    """The proof that no tree with the wishes of the model costs less than `bound`, in rows. Raises NotProved if it would be too long."""
    space = bench.space
    if depth > DEEPEST or space.questions.encoded > MOST_QUESTIONS:
        raise NotProved(
            f"Wishes over thresholds are proved up to depth {DEEPEST} and {MOST_QUESTIONS} thresholds of all columns together."
        )
    goal = -(-bound.numerator * space.leaf_rows.denominator // bound.denominator)
    return Proof(scale=1, goal=goal, steps=[{"path": [], "height": depth, "bound": goal, "by": "within"}])
