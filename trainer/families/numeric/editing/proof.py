"""Write proofs of `exact-numeric` trees with wishes.

A proof is a single step, for which the checker does the search itself (docs/proof-format.md).
"""

from __future__ import annotations

from fractions import Fraction

from trainer.families.numeric.editing.bench import NumericWorkbench
from trainer.methods.base import NotProved, ProofSteps

DEEPEST = 3  # largest depth that the checker searches in one step
MOST_QUESTIONS = 300  # limit on the thresholds of a proof


def numeric_proof(bench: NumericWorkbench, bound: Fraction, depth: int) -> ProofSteps | None:
    """Return the proof that no tree with the wishes of the model costs less than `bound` rows; None beyond depth DEEPEST.

    Raises NotProved for more than MOST_QUESTIONS thresholds.
    """
    number = bench.space.questions.encoded
    space = bench.space
    if number > MOST_QUESTIONS:
        raise NotProved(
            f"Wishes are proved with at most {MOST_QUESTIONS} thresholds of all columns together, but there are {number}."
        )
    if depth > DEEPEST:
        return None
    goal = -(-bound.numerator * space.leaf_rows.denominator // bound.denominator)
    return ProofSteps(scale=1, goal=goal, steps=[{"path": [], "height": depth, "bound": goal, "by": "within"}])
