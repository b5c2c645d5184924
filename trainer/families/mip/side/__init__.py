"""How the formulations keep each side constraint of `trainer.constraints`: a file for each one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from trainer.data.problem import Problem
from trainer.families.mip.instance import Instance
from trainer.families.mip.side.base import NamedIndices, RelaxedConstraint, SideConstraint
from trainer.families.mip.side.columns import max_columns
from trainer.families.mip.side.fairness import fairness
from trainer.families.mip.side.leaves import max_leaves
from trainer.families.mip.side.monotone import monotone
from trainer.families.mip.side.pairs import pairs
from trainer.families.mip.side.recall import recall
from trainer.methods.base import Settings

# the constraints that settings ask for, by the name of their parameter
KEEP: dict[str, Callable[[NamedIndices, Settings], Iterator[SideConstraint]]] = {
    "max_leaves": max_leaves,
    "max_columns": max_columns,
    "recall": recall,
    "fairness": fairness,
    "forbidden_pairs": pairs,
    "monotone": monotone,
}


def side_constraints(problem: Problem, settings: Settings, instance: Instance) -> tuple[SideConstraint, ...]:
    """The constraints that the settings ask for; raises ParameterError for names that do not exist."""
    at = NamedIndices(problem=problem, instance=instance)
    return tuple(found for keep in KEEP.values() for found in keep(at, settings))


def relaxations(side: Sequence[SideConstraint]) -> list[tuple[RelaxedConstraint, list[SideConstraint]]]:
    """For each limit that can be given up: what takes its place, and the constraints that stay. Those given up together come first."""
    together = dict.fromkeys(type(c) for c in side if c.together)
    groups = [[c for c in side if type(c) is kind] for kind in together]
    groups += [[c] for c in side if not c.together]
    found = [(gone[0].relaxed(gone), gone) for gone in groups]
    return [
        (relaxed, [c for c in side if not any(c is g for g in gone)]) for relaxed, gone in found if relaxed is not None
    ]
