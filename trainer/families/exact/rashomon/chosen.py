"""Read filters of good trees from requests.

Requests name columns, classes and groups. Shares are decimals, and rows are numbers.
"""

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
    """Filters of good trees; a missing or None filter excludes no tree.

    must, without : names of columns that a tree must test, and must not test.
    max_leaves : most leaves.
    recalls : minimum recall by class.
    difference : most difference between groups in the share of rows with the prediction `favoured`.
    groups : column whose values are the groups.
    rate : "parity" compares all rows (default), "opportunity" only rows of the class `favoured`.
    favoured : a class, by default the last one that occurs.
    agrees : a tree whose predictions a good tree must share on `agree_rows`.
    agree_rows : row numbers of the problem from 0, by default all.
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
        A filter is invalid; the error names it.
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
        raise ParameterError({"groups": "name the column that defines the groups to compare."})
    names.column(groups, "groups")
    rate = choice.get("rate", RATES[0])
    if rate not in RATES:
        raise ParameterError({"rate": f"'{rate[:40]}' is not a rate. Choose {' or '.join(RATES)}."})
    if favoured := choice.get("favoured"):
        names.label(favoured, "favoured")
    amount(difference, "difference")


def filters_of(problem: Problem, choice: GoodTreeFilter) -> Filters:
    """Convert a choice to filters. Raises ParameterError."""
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
    """Parse a non-negative number exactly as written."""
    try:
        number = value if isinstance(value, Fraction) else exact_fraction(str(value))
    except ValueError:
        raise ParameterError({name: f"'{str(value)[:60]}' is not a number. Write a number such as 0.05."}) from None
    if number < 0:
        raise ParameterError({name: f"must not be negative. It is {value}."})
    return number


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
        words = f"'{groups}' has {len(values)} values, but at most {MAX_GROUPS} groups can be compared. Choose another column."
        raise ParameterError({"groups": words})
    last = int(problem.y[problem.row_weights > 0].max())
    return RateFilter(
        groups=codes.reshape(-1).astype(np.int64),
        favoured=names.classes.index(favoured) if favoured else last,
        among=choice.get("rate", RATES[0]) == "opportunity",
        most=amount(difference, "difference"),
    )


def _answers(problem: Problem, tree: Tree, rows: Sequence[int] | None) -> tuple[tuple[int, int], ...]:
    """Return (row, class) pairs of a tree's predictions for some rows of the table, by default all."""
    if tree.schema != problem.table.schema or tree.classes != problem.labels.classes:
        raise ParameterError({"agrees": "the tree has other columns or classes than these rows. Choose another tree."})
    labels = tree.predict(problem.matrix).tolist()
    if rows is None:
        rows = range(len(labels))
    elif not all(0 <= row < len(labels) for row in rows):
        raise ParameterError({"agree_rows": f"use row numbers from 0 to {len(labels) - 1}."})
    return tuple((row, labels[row]) for row in dict.fromkeys(int(row) for row in rows))
