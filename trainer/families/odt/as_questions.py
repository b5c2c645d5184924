"""Encode subset splits as binary features, as proofs need them.

With these features, the proofs of the exact search apply: a complete topology has the same trees as the exact search. A checker searches
other topologies by itself, so their proof is one step.

A column of k categories has 2^(k-1) - 1 features, one for each subset and its complement. Columns must have few categories.
docs/proof-format.md defines the numbers of the features.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from trainer.dtypes import BitArray
from trainer.families.odt.groups import Groups
from trainer.families.odt.topology import Shape
from trainer.methods.base import CHECKER_SEARCHES, NotProved, ProofSteps

MAX_QUESTIONS = 1000  # limit set by the checker, which counts pairs of questions
MAX_QUESTIONS_DEPTH_4 = 100  # the checker searches topologies of depth four up to this many questions
ROUNDING_TOLERANCE = Fraction(1, 10**6)  # largest rounding error in a number of errors


def count_questions(groups: Groups) -> int:
    """Count the subset and threshold splits of all groups; `max_card` is ignored."""
    return sum(
        int(size) - 1 if ordered else (1 << (int(size) - 1)) - 1
        for size, ordered in zip(groups.sizes, groups.ordered, strict=True)
    )


def encode_questions(groups: Groups) -> BitArray:
    """Return the binary features, uint8 (n_rows, n_features).

    A categorical column has a feature for each subset without its first category, ordered by their bits and limited by `max_card`. A
    column of bins has a feature for each bin but the last: 1 for rows above it.
    """
    answers = [np.zeros((len(groups.y), 0), np.uint8)]
    for codes, size, ordered in zip(groups.cat.T, groups.sizes.tolist(), groups.ordered, strict=True):
        if ordered:
            table = np.arange(size)[:, None] > np.arange(size - 1)
        else:
            masks = np.arange(1, 1 << (size - 1))
            table = np.arange(size)[:, None] > 0
            table = table & ((masks << 1 >> np.arange(size)[:, None]) & 1).astype(bool)
            if groups.card:
                inside = table.sum(axis=0)
                table = table[:, np.minimum(inside, size - inside) <= groups.card]
        answers.append(table.astype(np.uint8)[codes])
    return np.ascontiguousarray(np.concatenate(answers, axis=1))


def topology_proof(groups: Groups, shape: Shape, bound: float, total: int) -> ProofSteps:
    """Build the proof that no tree of the topology classifies more than the share `bound` of the `total` weight correctly.

    Raises NotProved if the checker does not search such a topology.
    """
    check_question_count(groups)
    small = min(0 if side is None else side.depth for side in (shape.left, shape.right))
    if shape.depth > 4 or (shape.depth == 4 and (small > 2 or count_questions(groups) > MAX_QUESTIONS_DEPTH_4)):
        raise NotProved(f"No proof step for topologies of this depth can be checked fast. {CHECKER_SEARCHES}")
    goal = max(0, math.ceil((1 - Fraction(bound)) * total - ROUNDING_TOLERANCE))
    return ProofSteps(scale=1, goal=goal, steps=[{"path": [], "height": shape.depth, "bound": goal, "by": "topology"}])


def check_question_count(groups: Groups) -> None:
    """Raise NotProved if there are more splits than a proof may number."""
    if count_questions(groups) > MAX_QUESTIONS:
        raise NotProved(
            f"A proof numbers all subsets, {count_questions(groups):,} here, and the limit is {MAX_QUESTIONS:,}. {CHECKER_SEARCHES}"
        )
