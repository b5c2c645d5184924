"""Side constraints as people write them: columns and classes by name, turned into constraint objects of an instance."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from trainer.cuts.instance import Instance
from trainer.cuts.side import ClassRecall, EqualRates, ForbiddenPair, MaxColumns, MaxLeaves, Monotone, SideConstraint
from trainer.data.encoding import Test
from trainer.data.problem import Problem
from trainer.errors import ParameterError
from trainer.methods.base import Parameter, Settings, exact_fraction
from trainer.search.exact_pareto import Constraints

MAX_GROUPS = 20
MAX_MONOTONE_DEPTH = 4

CONSTRAINTS = (
    Parameter(
        name="max_leaves", type="integer", default=None, minimum=1, maximum=256, label="Largest number of leaves",
        help="The tree has at most this many leaves. No value means no limit.", advanced=True,
    ),
    Parameter(
        name="max_columns", type="integer", default=None, minimum=0, maximum=10_000, label="Largest number of columns",
        help="The tree asks at most this many different columns. No value means no limit.", advanced=True,
    ),
    Parameter(
        name="recall", type="text", default="", label="Least recall",
        help="Share of a class that must be classified correctly (sensitivity, specificity), as 'yes: 0.9; no: 0.8'.",
        advanced=True,
    ),
    Parameter(
        name="fairness", type="choice", default="none", choices=("none", "parity", "opportunity"), label="Fairness",
        help="Equal rates of a prediction between groups: among all rows (parity, two classes) or those of the class (opportunity).",
        advanced=True,
    ),
    Parameter(
        name="fairness_column", type="text", default="", label="Groups",
        help="The column whose values are the groups that fairness compares.", advanced=True,
    ),
    Parameter(
        name="fairness_class", type="text", default="", label="Favoured class",
        help="The predicted class whose rates are compared; the last class where nothing is given.", advanced=True,
    ),
    Parameter(
        name="fairness_delta", type="number", default=0.05, minimum=0, maximum=1, label="Largest difference of rates",
        help="How far the rates of two groups may be apart.", advanced=True,
    ),
    Parameter(
        name="forbidden_pairs", type="text", default="", label="Forbidden pairs",
        help="Columns that no path asks together, as 'age + income; sex + region'.", advanced=True,
    ),
    Parameter(
        name="monotone", type="text", default="", label="Monotone columns",
        help="Columns along which the class may only rise or fall (classes in their order), as 'age up; price down'.",
        advanced=True,
    ),
)  # fmt: skip


def groups(problem: Problem, settings: Settings) -> np.ndarray | None:
    """The group of each row for fairness, int32 (rows,), or None where no fairness is asked for."""
    if settings["fairness"] == "none":
        return None
    name = settings["fairness_column"].strip()
    column = problem.table.columns[_column(problem, name, "fairness_column")]
    values, codes = np.unique(column.values, return_inverse=True)
    if len(values) > MAX_GROUPS:
        raise ParameterError(
            {
                "fairness_column": f"'{name}' has {len(values)} values; groups must be at most {MAX_GROUPS}. Choose another."
            }
        )
    return codes.astype(np.int32)


def side_constraints(problem: Problem, settings: Settings, instance: Instance) -> tuple[SideConstraint, ...]:
    """The constraints that the settings ask for; raises ParameterError for names that do not exist."""
    found: list[SideConstraint] = []
    if settings["max_leaves"] is not None:
        found.append(MaxLeaves(limit=settings["max_leaves"]))
    if settings["max_columns"] is not None:
        found.append(MaxColumns(limit=settings["max_columns"], columns=_columns(problem, instance)))
    for text in _items(settings["recall"]):
        name, _, share = text.rpartition(":")
        found.append(ClassRecall(label=_class(problem, instance, name.strip(), "recall"), share=_share(share)))
    if settings["fairness"] != "none":
        found.append(_fairness(problem, settings, instance))
    for text in _items(settings["forbidden_pairs"]):
        pair = [_features(problem, instance, name.strip(), "forbidden_pairs") for name in text.split("+")]
        if len(pair) != 2:
            raise ParameterError(
                {"forbidden_pairs": f"'{text}' is not a pair; write two columns with a + between them."}
            )
        found.append(ForbiddenPair(first=pair[0], second=pair[1]))
    for text in _items(settings["monotone"]):
        found += _monotone(problem, instance, text)
    return tuple(found)


def exact_constraints(problem: Problem, settings: Settings) -> Constraints | None:
    """The constraints of the exact search over the problem's binary features, or None where only leaves may be limited."""
    columns = np.array([f.column for f in problem.binary.features], np.int64)
    recalls = []
    for text in _items(settings["recall"]):
        name, _, share = text.rpartition(":")
        name = name.strip()
        if name not in problem.labels.classes:
            raise ParameterError({"recall": f"'{name}' is not a class. Classes: {', '.join(problem.labels.classes)}."})
        code = problem.labels.classes.index(name)
        if not (problem.row_weights[problem.y == code] > 0).any():
            raise ParameterError({"recall": f"No training row has the class '{name}'."})
        recalls.append((code, _share(share)))
    conflict = np.zeros((len(columns), len(columns)), np.uint8)
    for text in _items(settings["forbidden_pairs"]):
        pair = [_column(problem, name.strip(), "forbidden_pairs") for name in text.split("+")]
        if len(pair) != 2:
            raise ParameterError(
                {"forbidden_pairs": f"'{text}' is not a pair; write two columns with a + between them."}
            )
        first, second = (columns == c for c in pair)
        conflict[np.ix_(first, second)] = conflict[np.ix_(second, first)] = 1
    if not recalls and not conflict.any() and settings["max_columns"] is None:
        return None
    return Constraints(
        recalls=tuple(recalls),
        conflict=conflict if conflict.any() else None,
        max_leaves=settings["max_leaves"],
        max_columns=settings["max_columns"],
        columns=columns,
    )


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(";") if item.strip()]


def _column(problem: Problem, name: str, parameter: str) -> int:
    if name not in problem.table.names:
        known = ", ".join(problem.table.names)
        raise ParameterError({parameter: f"'{name}' is not a column. Columns: {known}."})
    return problem.table.names.index(name)


def _columns(problem: Problem, instance: Instance) -> tuple[int, ...]:
    return tuple(problem.binary.features[h].column for h in instance.features.tolist())


def _features(problem: Problem, instance: Instance, name: str, parameter: str) -> tuple[int, ...]:
    column = _column(problem, name, parameter)
    return tuple(f for f, c in enumerate(_columns(problem, instance)) if c == column)


def _class(problem: Problem, instance: Instance, name: str, parameter: str) -> int:
    if name not in problem.labels.classes:
        raise ParameterError({parameter: f"'{name}' is not a class. Classes: {', '.join(problem.labels.classes)}."})
    place = np.flatnonzero(instance.labels == problem.labels.classes.index(name))
    if not len(place):
        raise ParameterError({parameter: f"No training row has the class '{name}'."})
    return int(place[0])


def _share(text: str) -> Fraction:
    try:
        share = exact_fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        raise ParameterError({"recall": f"'{text}' is not a share; write as in 'yes: 0.9; no: 0.8'."}) from None
    if not 0 <= share <= 1:
        raise ParameterError({"recall": f"{text.strip()} is not between 0 and 1."})
    return share


def _fairness(problem: Problem, settings: Settings, instance: Instance) -> EqualRates:
    name = settings["fairness_class"].strip() or problem.labels.classes[int(instance.labels[-1])]
    parity = settings["fairness"] == "parity"
    if parity and instance.classes > 2:
        raise ParameterError({"fairness": "Parity needs two classes; choose 'opportunity' for more."})
    return EqualRates(
        label=_class(problem, instance, name, "fairness_class"),
        delta=exact_fraction(settings["fairness_delta"]),
        only_label=not parity,
    )


def _monotone(problem: Problem, instance: Instance, text: str) -> Sequence[Monotone]:
    name, _, direction = text.rpartition(" ")
    if direction not in ("up", "down"):
        raise ParameterError({"monotone": f"'{text}' has no direction; write 'column up' or 'column down'."})
    if instance.depth > MAX_MONOTONE_DEPTH:
        raise ParameterError({"monotone": f"Monotone columns need a depth of at most {MAX_MONOTONE_DEPTH}."})
    features = _features(problem, instance, name.strip(), "monotone")
    kinds = {problem.binary.features[int(instance.features[f])].test for f in features}
    if kinds - {Test.ABOVE}:
        raise ParameterError(
            {
                "monotone": f"'{name.strip()}' is not encoded by thresholds; use a number with binarise=quantile-thresholds."
            }
        )
    return [Monotone(features=features, decreasing=direction == "down")] if features else []
