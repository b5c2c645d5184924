"""The side constraints that the settings ask for, over the features of an instance."""

from __future__ import annotations

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


def side_constraints(problem: Problem, settings: Settings, instance: Instance) -> tuple[SideConstraint, ...]:
    """The constraints that the settings ask for; raises ParameterError for names that do not exist."""
    names = problem.names
    columns = tuple(problem.binary.features[h].column for h in instance.features.tolist())

    def features(name: str) -> tuple[int, ...]:
        own = names.columns.index(name)
        return tuple(f for f, c in enumerate(columns) if c == own)

    def label(name: str, parameter: str) -> int:
        place = np.flatnonzero(instance.labels == names.classes.index(name))
        if not len(place):
            raise ParameterError({parameter: f"No training row has the class '{name}'."})
        return int(place[0])

    found: list[SideConstraint] = []
    if settings["max_leaves"] is not None:
        found.append(MaxLeaves(limit=settings["max_leaves"]))
    if settings["max_columns"] is not None:
        found.append(MaxColumns(limit=settings["max_columns"], columns=columns))
    for name, share in recalls(settings, names):
        found.append(ClassRecall(label=label(name, "recall"), share=share))
    if (asked := favoured(settings, names)) is not None:
        name = asked[1] or names.classes[int(instance.labels[-1])]
        delta = exact_fraction(settings["fairness_delta"])
        only = settings["fairness"] != "parity"
        found.append(EqualRates(label=label(name, "fairness_class"), delta=delta, only_label=only))
    for first, second in forbidden_pairs(settings, names):
        found.append(ForbiddenPair(first=features(first), second=features(second)))
    for name, falls in directions(settings, names):
        mine = features(name)
        if any(problem.binary.features[int(instance.features[f])].test is not Test.ABOVE for f in mine):
            words = f"'{name}' is not encoded by thresholds; use a number with binarise=quantile-thresholds."
            raise ParameterError({"monotone": words})
        if mine:
            found.append(Monotone(features=mine, decreasing=falls))
    return tuple(found)
