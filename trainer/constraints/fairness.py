"""Limit the difference of prediction rates between groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from trainer.constraints.beside import check_beside
from trainer.data.problem import Problem, SettingNames
from trainer.errors import ParameterError
from trainer.methods.base import Parameter, Settings

MAX_GROUPS = 20


class ComparedGroups(NamedTuple):
    """The favoured class, and the group of each compared row, int32 (rows,); -1 for rows that are not compared."""

    label: int
    group: np.ndarray


def read_fairness(settings: Settings, names: SettingNames) -> tuple[str, str] | None:
    """Return the column of the groups and the favoured class (empty: the last one that occurs); None without fairness.

    Raises ParameterError for invalid settings.
    """
    if settings["fairness"] == "none":
        return None
    if settings["fairness"] == "parity" and len(names.classes) > 2:
        raise ParameterError(
            {"fairness": f"'parity' needs two classes, but the target has {len(names.classes)}. Choose 'opportunity'."}
        )
    name = settings["fairness_class"].strip()
    return (
        names.column(settings["fairness_column"].strip(), "fairness_column"),
        names.label(name, "fairness_class") if name else "",
    )


def group_codes(problem: Problem, settings: Settings) -> np.ndarray | None:
    """Return the group of each row, int32 (rows,); None without a fairness constraint."""
    fairness = read_fairness(settings, problem.names)
    if fairness is None:
        return None
    column = problem.table.columns[problem.table.names.index(fairness[0])]
    values, codes = np.unique(column.values, return_inverse=True)
    if len(values) > MAX_GROUPS:
        words = f"'{fairness[0]}' has {len(values)} values, but at most {MAX_GROUPS} groups can be compared. Choose another column."
        raise ParameterError({"fairness_column": words})
    return codes.astype(np.int32)


def compared_groups(problem: Problem, settings: Settings) -> ComparedGroups | None:
    """Return the compared rows of each group; None without a fairness constraint.

    Raises ParameterError if no training row has the favoured class.
    """
    fairness = read_fairness(settings, problem.names)
    codes = group_codes(problem, settings)
    if fairness is None or codes is None:
        return None
    has_weight = problem.row_weights > 0
    label = problem.names.classes.index(fairness[1]) if fairness[1] else int(problem.y[has_weight].max())
    if not (has_weight & (problem.y == label)).any():
        raise ParameterError(
            {"fairness_class": f"No training row has the class '{fairness[1]}'. Choose another class."}
        )
    is_compared = has_weight & ((problem.y == label) | (settings["fairness"] == "parity"))
    return ComparedGroups(label, np.where(is_compared, codes, -1).astype(np.int32))


def _check_fairness(settings: Settings, names: SettingNames) -> None:
    """Raise ParameterError for invalid settings, and for weights of classes, which would change the rates."""
    if read_fairness(settings, names) is None:
        return
    check_beside("fairness", settings)
    if settings.get("class_weight") == "balanced":
        words = "must be 'none' with class_weight 'balanced', since rates would count weighted rows. Leave one of the two out."
        raise ParameterError({"fairness": words})


def _scope_words(settings: Settings) -> list[str]:
    if settings["fairness"] == "none":
        return []
    name = settings["fairness_class"].strip() or "the last class"
    among = f" among rows of {name}" if settings["fairness"] == "opportunity" else ""
    column = settings["fairness_column"].strip()
    delta = settings["fairness_delta"]
    return [f"{name} predicted at rates at most {delta} apart between groups of {column}{among}"]


def _sentences(values: Mapping[str, Any]) -> list[str]:
    if values.get("fairness") in (None, "none"):
        return []
    delta = 100 * float(values.get("fairness_delta") or 0)
    return [f"Rates of the groups of {values.get('fairness_column')} differ by at most {delta:.4g} points."]


FAIRNESS = (
    Parameter(
        name="fairness", counts_rows=True, type="choice", default="none", choices=("none", "parity", "opportunity"), label="Fairness",
        help="Predict a class equally often in all groups: among all rows (parity, two classes) or among the rows of that class (opportunity).",
        advanced=True, check=_check_fairness, restricts=_scope_words, sentences=_sentences,
    ),
    Parameter(
        name="fairness_column", type="text", default="", label="Groups",
        help="The column whose values form the groups that are compared.", advanced=True,
    ),
    Parameter(
        name="fairness_class", type="text", default="", label="Favoured class",
        help="The predicted class whose rates are compared; empty means the last class.", advanced=True,
    ),
    Parameter(
        name="fairness_delta", type="number", default=0.05, minimum=0, maximum=1, label="Largest difference of rates",
        help="The largest allowed difference between the rates of two groups.", advanced=True,
    ),
)  # fmt: skip
