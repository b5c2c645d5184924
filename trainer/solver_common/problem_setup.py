"""Make a Problem from rows and settings, for runs, folds and estimators."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.certificate import Limits
from trainer.data.column_prices import read_column_prices
from trainer.data.cost_text import read_costs
from trainer.data.costs import RowCosts, row_costs
from trainer.data.encoding import Scheme
from trainer.data.problem import Problem, class_weighted, read_extra_thresholds, setting_names
from trainer.dtypes import CountArray, FloatArray
from trainer.errors import ParameterError
from trainer.methods.base import AUTO, Settings, coefficient_penalty, leaf_penalty, stated_penalty
from trainer.solver_common.thresholds import LADDER, with_chosen_thresholds
from trainer.solver_common.warm_start import adapt
from trainer.table import Labels, RowWeights, Table
from trainer.tree.nodes import Tree


def pose(
    table: Table,
    labels: Labels,
    settings: Settings,
    *,
    weights: CountArray | None = None,
    start: Tree | None = None,
    given_costs: FloatArray | None = None,
    even: bool = False,
    neutral: bool = False,
) -> Problem:
    """Make the problem of rows and settings.

    Parameters
    ----------
    weights : int64 array of shape (n_rows,), optional
        Weights of the rows; by default those of the table.
    start : Tree, optional
        A start tree, matched by the names of columns and classes.
    given_costs : float64 array of shape (n_rows, n_classes), optional
        Costs of each row.
    even, neutral : bool
        Which copies rows get if answers have costs, see `RowCosts`.

    Raises
    ------
    ParameterError
        If class weights, costs or the start tree do not fit.
    DataError
        If there are no rows.
    """
    if weights is None and table.weights is not None:
        weights = table.weights.values
        check_weights(table.weights, settings)
    costs = costs_of(table, labels, settings, weights=weights, given_costs=given_costs, even=even, neutral=neutral)
    if costs is not None and not np.ptp(costs.values, axis=1).any():
        message = "all answers cost the same in every row, so there is nothing to learn. Give them different costs."
        raise ParameterError({"costs": message})
    weighted = class_weighted(settings, labels, weights)
    plain = np.ones(len(table), np.int64) if weights is None and weighted is not None else weights
    penalty = leaf_penalty(settings, len(table) if weighted is None else int(weighted.sum()))
    chooses = settings.get("bins") == AUTO
    problem = Problem(
        table=table,
        labels=labels,
        leaf_penalty=penalty if costs is None else costs.leaf_share(penalty),
        coefficient_penalty=coefficient_penalty(settings),
        weights=weighted,
        scheme=Scheme(settings.get("binarise", Scheme.QUANTILE_THRESHOLDS)),
        bins=LADDER[-1] if chooses else int(settings.get("bins", LADDER[-1])),
        extra_thresholds=read_extra_thresholds(settings.get("extra_thresholds", ""), setting_names(table, labels)),
        quantile_weights=plain,
        follow_unseen=settings.get("unseen_missing", "follow") == "follow",
        warm_start=None if start is None else adapt(start, table, labels),
        costs=costs,
        column_prices=_column_prices(table, labels, settings),
    )
    return with_chosen_thresholds(problem, settings) if chooses else problem


def costs_of(
    table: Table,
    labels: Labels,
    settings: Settings,
    *,
    weights: CountArray | None = None,
    given_costs: FloatArray | None = None,
    even: bool = False,
    neutral: bool = False,
) -> RowCosts | None:
    """Return the costs of each answer in each row, by the settings and `given_costs`; None without costs.

    Raises ParameterError if the costs do not fit the rows.
    """
    costs = read_costs(settings, setting_names(table, labels))
    decimals = table.weights
    if decimals is not None and weights is not None and not np.array_equal(weights, decimals.values):
        decimals = None
    even = even or int(settings.get("min_leaf") or 1) > 1 or bool(settings.get("column_price"))
    if costs is None:
        return None
    return row_costs(costs, table, labels.codes, weights, given_costs, even=even, neutral=neutral, decimals=decimals)


def _column_prices(table: Table, labels: Labels, settings: Settings) -> dict[int, Fraction]:
    """Return the positive prices of columns, by the index of the column."""
    prices = read_column_prices(str(settings.get("column_price") or ""), setting_names(table, labels).columns)
    return {j: price for j, price in prices.items() if price}


def check_weights(weights: RowWeights, settings: Mapping[str, Any]) -> None:
    """Raise ParameterError if weights are not integers and a setting counts weighted rows."""
    if weights.step == 1:
        return
    if int(settings.get("min_leaf") or 1) > 1:
        raise ParameterError({"min_leaf": f"must be 1. {weights.words} are not whole numbers."})


def searched_settings(problem: Problem, settings: Settings) -> Settings:
    """Return the settings for a search over copies of rows, with `min_leaf` in the weight of copies."""
    min_leaf = int(settings.get("min_leaf") or 1)
    if problem.costs is None or not problem.costs.even or min_leaf == 1:
        return settings
    return Settings(settings.to_json() | {"min_leaf": problem.costs.leaf_size(min_leaf)})


def file_parameters(problem: Problem, settings: Settings) -> dict[str, Any]:
    """Return the settings for a model file, with the chosen thresholds.

    A leaf penalty 'auto' that no training has chosen is 0.
    """
    values = settings.to_json()
    if "leaf_penalty" in values:
        values["leaf_penalty"] = stated_penalty(values)
    return values | {name: value for name, value in problem.question_settings.items() if name in values}


def chosen_settings(problem: Problem, settings: Settings, sized: Settings) -> dict[str, Any]:
    """Return the parameters that 'auto' has chosen: those of the thresholds, and the leaf penalty of `sized`."""
    parameters = problem.question_settings if settings.get("bins") == AUTO else {}
    if settings.get("leaf_penalty") == AUTO:
        parameters |= {"leaf_penalty": sized["leaf_penalty"]}
    return parameters


def limits_of(settings: Settings) -> Limits:
    """Return the limits of the settings: time, memory and threads."""
    return Limits(
        time=settings.get("time_limit"), memory=settings.get("memory_limit"), threads=settings.get("threads") or 1
    )
