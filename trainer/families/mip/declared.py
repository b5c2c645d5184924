"""Declare the methods of this family with their common parts."""

from __future__ import annotations

from typing import Any

from trainer.certificate import Guarantee
from trainer.constraints import CONSTRAINTS
from trainer.families.mip.tree_mip import TAIL
from trainer.methods.base import Method, Parameter, Solve
from trainer.methods.capabilities import ProofKind
from trainer.methods.cost import INTEGER_PROGRAM
from trainer.methods.scope import binary_space

STRONG = "Aghaei, Gomez & Vayanos, Strong optimal classification trees"
NO_BETTER = "Optimal: no tree of this depth over the encoded questions is better."


def declare_method(
    *,
    id: str,
    title: str,
    summary: str,
    paper: str,
    size_hint: str,
    parameters: tuple[Parameter, ...],
    solve: Solve,
    **facts: Any,
) -> Method:
    """Declare a formulation: its parameters, then side constraints and the parameters of solvers."""
    return Method(
        id=id,
        title=title,
        summary=summary,
        paper=paper,
        guarantee=Guarantee.TREE,
        splits=("threshold", "subset"),
        binary=True,
        space=binary_space,
        warm_start=True,
        size_hint=size_hint,
        parameters=(*parameters, *CONSTRAINTS, *TAIL),
        solve=solve,
        **{"claim": NO_BETTER, "proof": ProofKind.SAME_TREES, "cost": INTEGER_PROGRAM, **facts},
    )
