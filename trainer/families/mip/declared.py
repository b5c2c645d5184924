"""What all methods of this family declare alike: formulations over the yes/no questions of the binary encoding."""

from __future__ import annotations

from trainer.certificate import Guarantee
from trainer.constraints import CONSTRAINTS
from trainer.families.mip.tree_mip import TAIL
from trainer.methods.base import Method, Parameter, Solve
from trainer.methods.scope import binary_space

STRONG = "Aghaei, Gomez & Vayanos, Strong optimal classification trees"
NO_BETTER = "Optimal: no tree of this depth over the encoded questions is better."


def over_questions(
    *,
    id: str,
    title: str,
    summary: str,
    paper: str,
    size_hint: str,
    parameters: tuple[Parameter, ...],
    solve: Solve,
    claim: str = NO_BETTER,
    complete: bool = False,
) -> Method:
    """The declaration of a formulation: its own parameters, then side constraints and what every solver takes."""
    return Method(
        id=id,
        title=title,
        summary=summary,
        paper=paper,
        guarantee=Guarantee.TREE,
        splits=("threshold", "subset"),
        binary=True,
        space=binary_space,
        complete=complete,
        warm_start=True,
        size_hint=size_hint,
        claim=claim,
        parameters=(*parameters, *CONSTRAINTS, *TAIL),
        solve=solve,
    )
