"""Filters of good trees as people write them: columns, classes and groups by name, shares as decimals, rows by number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypedDict

import numpy as np

from trainer.constraints import MAX_GROUPS
from trainer.data.problem import Problem, SettingNames
from trainer.errors import ParameterError
from trainer.families.exact.rashomon.filters import Filters, RateFilter
from trainer.methods.base import exact_fraction
from trainer.tree.nodes import Tree

RATES = ("parity", "opportunity")


class GoodTreeFilter(TypedDict, total=False):
    """Which of the good trees are meant; what is left out, or None, leaves out no tree.

    `must`, `without`: columns to ask and not to ask. `recalls`: least share of right rows by class. `difference`: how much the shares
    of rows that are answered `favoured` (by default the last class that occurs) may differ between the values of the column `groups`,
    among all rows (`rate` parity, the default) or among the rows of that class (opportunity). `agrees`: a tree whose answers are kept
    on `agree_rows` (rows of the problem from 0, by default all).
    """

    must: Sequence[str]
    without: Sequence[str]
    max_leaves: int | None
    recalls: Mapping[str, Fraction | str] | None
    difference: Fraction | str | None
    groups: str | None
    rate: str
    favoured: str | None
    agrees: Tree | None
    agree_rows: Sequence[int] | None


def check_choice(names: SettingNames, choice: GoodTreeFilter) -> None:
    """Check columns, classes and numbers of a choice without the rows.

    Raises
    ------
    ParameterError
        Names the filter that cannot be read.
    """
    for column in choice.get("must", ()):
        names.column(column, "must")
    for column in choice.get("without", ()):
        names.column(column, "without")
    for label, share in (choice.get("recalls") or {}).items():
        names.label(label, "recalls")
        amount(share, "recalls")
    groups = choice.get("groups")
    difference = choice.get("difference")
    if difference is None:
        if groups is not None:
            raise ParameterError({"difference": "say how much the rates of the groups may differ."})
        return
    if groups is None:
        raise ParameterError({"groups": "name the column whose values are the groups that are compared."})
    names.column(groups, "groups")
    rate = choice.get("rate", RATES[0])
    if rate not in RATES:
        raise ParameterError({"rate": f"'{rate[:40]}' is neither {' nor '.join(RATES)}."})
    if favoured := choice.get("favoured"):
        names.label(favoured, "favoured")
    amount(difference, "difference")


def filters_of(problem: Problem, choice: GoodTreeFilter) -> Filters:
    """The filters that a choice expresses. Raises ParameterError."""
    names = problem.names
    check_choice(names, choice)
    agrees = choice.get("agrees")
    return Filters(
        must=tuple(dict.fromkeys(names.columns.index(name) for name in choice.get("must", ()))),
        without=frozenset(names.columns.index(name) for name in choice.get("without", ())),
        max_leaves=choice.get("max_leaves"),
        recalls=tuple(
            (names.classes.index(name), amount(share, "recalls"))
            for name, share in (choice.get("recalls") or {}).items()
        ),
        rates=_rates(problem, choice),
        answers=() if agrees is None else _answers(problem, agrees, choice.get("agree_rows")),
    )


def amount(value: Fraction | str | int, name: str) -> Fraction:
    """The number as written, not negative."""
    try:
        found = value if isinstance(value, Fraction) else exact_fraction(str(value))
    except ValueError:
        raise ParameterError({name: f"'{str(value)[:60]}' is not a number."}) from None
    if found < 0:
        raise ParameterError({name: f"it must not be negative; it is {value}."})
    return found


def _rates(problem: Problem, choice: GoodTreeFilter) -> RateFilter | None:
    groups = choice.get("groups")
    difference = choice.get("difference")
    if groups is None or difference is None:
        return None
    names = problem.names
    favoured = choice.get("favoured")
    column = problem.table.columns[names.columns.index(groups)]
    values, codes = np.unique(column.values, return_inverse=True)
    if len(values) > MAX_GROUPS:
        words = f"'{groups}' has {len(values)} values; groups must be at most {MAX_GROUPS}. Choose another column."
        raise ParameterError({"groups": words})
    last = int(problem.y[problem.row_weights > 0].max())
    return RateFilter(
        groups=codes.reshape(-1).astype(np.int64),
        favoured=names.classes.index(favoured) if favoured else last,
        among=choice.get("rate", RATES[0]) == "opportunity",
        most=amount(difference, "difference"),
    )


def _answers(problem: Problem, tree: Tree, rows: Sequence[int] | None) -> tuple[tuple[int, int], ...]:
    """The class that a tree answers for rows of the table (from 0; all without)."""
    if tree.schema != problem.table.schema or tree.classes != problem.labels.classes:
        raise ParameterError({"agrees": "the tree to agree with has other columns or classes than these rows."})
    said = tree.predict(problem.matrix).tolist()
    if rows is None:
        rows = range(len(said))
    elif not all(0 <= row < len(said) for row in rows):
        raise ParameterError({"agree_rows": f"the rows are numbered from 0 to {len(said) - 1}."})
    return tuple((row, said[row]) for row in dict.fromkeys(int(row) for row in rows))
