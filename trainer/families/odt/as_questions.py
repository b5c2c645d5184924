"""Subsets as yes/no questions: a complete topology has the same trees as the exact search over these questions, which proves the bound.
A checker searches other topologies by itself, so that their proof is one step.

A column of k categories has 2^(k-1) - 1 questions, one for each subset and its complement, so this is for columns of few categories. The
numbers of the questions are defined in docs/proof-format.md.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from trainer.dtypes import BitArray
from trainer.families.odt.groups import Groups
from trainer.families.odt.topology import Shape
from trainer.methods.base import NotProved, ProofSteps

MOST = 1000  # questions; the checker counts their pairs
SEARCHED = "A check searches these trees by itself, as far as that takes seconds."
FEW = 100  # where a topology is four questions deep
NOISE = Fraction(1, 10**6)  # what rounding may have added to a number of errors


def count(groups: Groups) -> int:
    """How many questions there are, without a look at `max_card`."""
    return sum(
        int(size) - 1 if ordered else (1 << (int(size) - 1)) - 1
        for size, ordered in zip(groups.sizes, groups.ordered, strict=True)
    )


def questions(groups: Groups) -> BitArray:
    """The answers uint8 (n, m): of a categorical column its subsets without the first category, by their bits; of bins "above the i-th?"."""
    found = [np.zeros((len(groups.y), 0), np.uint8)]
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
        found.append(table.astype(np.uint8)[codes])
    return np.ascontiguousarray(np.concatenate(found, axis=1))


def topology_proof(groups: Groups, shape: Shape, bound: float, total: int) -> ProofSteps:
    """The proof that no tree of the topology has a larger share of the `total` weight right than `bound`.

    Raises NotProved where no checker looks.
    """
    check_number(groups)
    small = min(0 if side is None else side.depth for side in (shape.left, shape.right))
    if shape.depth > 4 or (shape.depth == 4 and (small > 2 or count(groups) > FEW)):
        raise NotProved(f"A topology of this depth has no step that is checked in short time. {SEARCHED}")
    goal = max(0, math.ceil((1 - Fraction(bound)) * total - NOISE))
    return ProofSteps(scale=1, goal=goal, steps=[{"path": [], "height": shape.depth, "bound": goal, "by": "topology"}])


def check_number(groups: Groups) -> None:
    """Raises NotProved where there are more subsets than a proof numbers."""
    if count(groups) > MOST:
        raise NotProved(f"A proof numbers all subsets, at most {MOST:,} of them. {SEARCHED}")
