"""Add the side constraints of `trainer.constraints` to formulations, one module each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from trainer.data.problem import Problem
from trainer.families.mip.instance import Instance
from trainer.families.mip.side.base import NamedIndices, RelaxedConstraint, SideConstraint
from trainer.families.mip.side.columns import column_constraints
from trainer.families.mip.side.fairness import fairness_constraints
from trainer.families.mip.side.leaves import leaf_constraints
from trainer.families.mip.side.monotone import monotone_constraints
from trainer.families.mip.side.pairs import pair_constraints
from trainer.families.mip.side.recall import recall_constraints
from trainer.methods.base import Settings

# builds the constraints from the settings, by name of their parameter
KEEP: dict[str, Callable[[NamedIndices, Settings], Iterator[SideConstraint]]] = {
    "max_leaves": leaf_constraints,
    "max_columns": column_constraints,
    "recall": recall_constraints,
    "fairness": fairness_constraints,
    "forbidden_pairs": pair_constraints,
    "monotone": monotone_constraints,
}


def side_constraints(problem: Problem, settings: Settings, instance: Instance) -> tuple[SideConstraint, ...]:
    """Return the constraints of the settings. Raises ParameterError for unknown names."""
    at = NamedIndices(problem=problem, instance=instance)
    return tuple(constraint for build in KEEP.values() for constraint in build(at, settings))


def relaxations(side: Sequence[SideConstraint]) -> list[tuple[RelaxedConstraint, list[SideConstraint]]]:
    """Return the relaxation of each limit that can be relaxed, with the other constraints; joint relaxations first."""
    together = dict.fromkeys(type(c) for c in side if c.together)
    groups = [[c for c in side if type(c) is kind] for kind in together]
    groups += [[c] for c in side if not c.together]
    relaxed_groups = [(given_up[0].relax(given_up), given_up) for given_up in groups]
    return [
        (relaxed, [c for c in side if not any(c is g for g in given_up)])
        for relaxed, given_up in relaxed_groups
        if relaxed is not None
    ]
