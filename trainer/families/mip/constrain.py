"""The side constraints that the settings ask for, over the features of an instance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trainer.constraints import directions, favoured, forbidden_pairs, recalls
from trainer.data.encoding import Test
from trainer.data.problem import Problem
from trainer.errors import ParameterError
from trainer.families.mip.instance import Instance
from trainer.families.mip.side import (
    ClassRecall,
    EqualRates,
    ForbiddenPair,
    MaxColumns,
    MaxLeaves,
    Monotone,
    SideConstraint,
)
from trainer.method import Settings, exact_fraction


@dataclass(frozen=True, kw_only=True)
class Names:
    """Columns and classes by name, as places of an instance."""

    problem: Problem
    instance: Instance

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """The column of each feature of the instance."""
        return tuple(self.problem.binary.features[h].column for h in self.instance.features.tolist())

    def features(self, name: str) -> tuple[int, ...]:
        """The features that ask about a column."""
        own = self.problem.names.columns.index(name)
        return tuple(f for f, c in enumerate(self.columns) if c == own)

    def label(self, name: str, parameter: str) -> int:
        """The place of a class; raises ParameterError if no training row has it."""
        place = np.flatnonzero(self.instance.labels == self.problem.names.classes.index(name))
        if not len(place):
            raise ParameterError({parameter: f"No training row has the class '{name}'."})
        return int(place[0])


def _max_leaves(at: Names, settings: Settings) -> Iterator[SideConstraint]:
    if settings["max_leaves"] is not None:
        yield MaxLeaves(limit=settings["max_leaves"])


def _max_columns(at: Names, settings: Settings) -> Iterator[SideConstraint]:
    if settings["max_columns"] is not None:
        yield MaxColumns(limit=settings["max_columns"], columns=at.columns)


def _recall(at: Names, settings: Settings) -> Iterator[SideConstraint]:
    for name, share in recalls(settings, at.problem.names):
        yield ClassRecall(label=at.label(name, "recall"), share=share)


def _fairness(at: Names, settings: Settings) -> Iterator[SideConstraint]:
    asked = favoured(settings, at.problem.names)
    if asked is not None:
        name = asked[1] or at.problem.names.classes[int(at.instance.labels[-1])]
        delta, only = exact_fraction(settings["fairness_delta"]), settings["fairness"] != "parity"
        yield EqualRates(label=at.label(name, "fairness_class"), delta=delta, only_label=only)


def _forbidden_pairs(at: Names, settings: Settings) -> Iterator[SideConstraint]:
    for first, second in forbidden_pairs(settings, at.problem.names):
        yield ForbiddenPair(first=at.features(first), second=at.features(second))


def _monotone(at: Names, settings: Settings) -> Iterator[SideConstraint]:
    for name, falls in directions(settings, at.problem.names):
        mine = at.features(name)
        tests = {at.problem.binary.features[int(at.instance.features[f])].test for f in mine}
        if tests - {Test.ABOVE}:
            words = f"'{name}' is not encoded by thresholds; use a number with binarise=quantile-thresholds."
            raise ParameterError({"monotone": words})
        if mine:
            yield Monotone(features=mine, decreasing=falls)


# how the formulations keep each constraint of `trainer.constraints`, by its name
KEEP: dict[str, Callable[[Names, Settings], Iterator[SideConstraint]]] = {
    "max_leaves": _max_leaves,
    "max_columns": _max_columns,
    "recall": _recall,
    "fairness": _fairness,
    "forbidden_pairs": _forbidden_pairs,
    "monotone": _monotone,
}


def side_constraints(problem: Problem, settings: Settings, instance: Instance) -> tuple[SideConstraint, ...]:
    """The constraints that the settings ask for; raises ParameterError for names that do not exist."""
    at = Names(problem=problem, instance=instance)
    return tuple(found for keep in KEEP.values() for found in keep(at, settings))
