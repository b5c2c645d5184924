"""The tree of one leaf: always the most frequent class."""

from __future__ import annotations

from fractions import Fraction

from trainer.certificate import Guarantee
from trainer.data.problem import Problem
from trainer.methods.base import COMMON, LEAF_PENALTY, Method, Settings, Solution
from trainer.methods.capabilities import ProofKind
from trainer.methods.monitor import Monitor
from trainer.tree.nodes import DraftLeaf


def solve(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """The leaf, which is the best tree of one leaf: its objective is the bound."""
    largest = max(int(problem.row_weights[problem.y == k].sum()) for k in range(problem.n_classes))
    bound = Fraction(largest, problem.n) - problem.leaf_penalty
    return Solution(draft=DraftLeaf(), bound=float(bound), scope="the tree of one leaf")


METHOD = Method(
    id="majority",
    title="Most frequent class",
    summary="A tree of one leaf, to compare other trees with.",
    paper="folklore",
    guarantee=Guarantee.TREE,
    splits=(),
    parameters=(LEAF_PENALTY, *COMMON),
    solve=solve,
    claim="Proves that no other single leaf is better.",
    proof=ProofKind.NONE,
)
