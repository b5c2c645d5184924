"""Recount the prices that rows pay for columns on their paths."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.check.proof.model import ModelTable, active_parameter, read_fraction, split_items
from trainer.check.recount.findings import TOLERANCE, Finding, recount_finding
from trainer.check.recount.tree import branches
from trainer.check.recount.trees.costs import AnswerCosts

CLAIM = "column prices"
# parameters that training refuses beside prices of columns, with the values that leave them inactive
NOT_PRICED = {"optimal_trees": (0,), "class_weight": ()}


def column_prices(model: dict[str, Any]) -> dict[int, Fraction]:
    """Return the price of each column that is not free, by its position; raise ValueError for invalid prices."""
    text = str(active_parameter(model, "column_price") or "").strip()
    names = [column["name"] for column in model["columns"]]
    stated = _read_prices(text)
    places = [names.index(name) for name, _ in stated]
    prices = [read_fraction(value) for _, value in stated]
    if len(set(places)) < len(places) or any(price < 0 for price in prices):
        raise ValueError("a price is negative, or named twice")
    return {j: price for j, price in zip(places, prices, strict=True) if price}


def _read_prices(text: str) -> list[tuple[str, str]]:
    if text.startswith("{"):
        return [(name, str(value)) for name, value in json.loads(text, parse_float=str, parse_int=str).items()]
    parts = [item.rpartition("=") for item in split_items(text)]
    return [(name.strip(), value.strip()) for name, _, value in parts]


def paid_weights(model: dict[str, Any], rows: ModelTable, leaf: np.ndarray) -> dict[int, int]:
    """Return for each priced column the weight of the rows whose path tests it; `leaf` is the leaf of each row."""
    place = {column["name"]: j for j, column in enumerate(model["columns"])}
    columns_on_path: dict[int, set[int]] = {0: set()}
    # a parent precedes its children in the list, so one pass passes the columns down
    for node in branches(model["nodes"]):
        split = node["split"]
        split_columns = {place[name] for name in split.get("features") or [split["feature"]]}
        columns_on_path[node["left"]] = columns_on_path[node["right"]] = columns_on_path[node["id"]] | split_columns
    weights = {}
    for j in column_prices(model):
        pays = np.array([j in columns_on_path[node["id"]] for node in model["nodes"]])
        weights[j] = int(rows.plain[pays[leaf]].sum())
    return weights


def column_cost(model: dict[str, Any], rows: ModelTable, leaf: np.ndarray) -> Fraction:
    """Return the total price of all rows, in the unit of the costs, or in errors."""
    prices = column_prices(model)
    paid = paid_weights(model, rows, leaf)
    step = rows.step if active_parameter(model, "costs") else Fraction(1)
    return step * sum((prices[j] * weight for j, weight in paid.items()), Fraction(0))


def lost_share(cost: Fraction, rows: ModelTable, costs: AnswerCosts | None) -> Fraction:
    """Convert a cost to the decrease of the objective that it causes."""
    if costs is None:
        return cost / int(rows.weights.sum())
    return cost / costs.step * costs.scale / costs.weight


def charges_of(model: dict[str, Any], costs: AnswerCosts | None) -> dict[int, Fraction]:
    """Return the price of each column per unit of weight in a search, where the copies of each row weigh the same."""
    prices = column_prices(model)
    if costs is None:
        return prices
    if not costs.dearest:
        return prices
    return {j: price * costs.unit_weight / costs.step / costs.dearest for j, price in prices.items()}


def check_prices(model: dict[str, Any], rows: ModelTable, costs: AnswerCosts | None, leaf: np.ndarray) -> list[Finding]:
    """Check the prices of columns in the certificate."""
    stated = model["certificate"].get("column_prices")
    prices = column_prices(model)
    if not prices:
        return [] if stated is None else [recount_finding(CLAIM, False, "The parameters name no prices of columns.")]
    if stated is None:
        return [recount_finding(CLAIM, False, "The parameters name prices of columns, and the certificate does not.")]
    if model["certificate"].get("goal") or model["certificate"].get("wishes"):
        return [recount_finding(CLAIM, False, "No training with prices of columns has wishes, or another goal.")]
    for name, off in NOT_PRICED.items():
        if active_parameter(model, name) not in (None, *off):
            return [recount_finding(CLAIM, False, f"No training with prices of columns takes '{name}'.")]
    names = [column["name"] for column in model["columns"]]
    paid = {names[j]: weight for j, weight in paid_weights(model, rows, leaf).items()}
    cost = float(column_cost(model, rows, leaf))
    stated_prices = stated.get("prices") or {}
    same = set(stated_prices) == {names[j] for j in prices} and all(
        read_fraction(stated_prices[names[j]]) == price for j, price in prices.items()
    )
    same = same and stated.get("paid") == paid and stated.get("unit") == ("" if costs is None else costs.unit)
    same = same and math.isclose(stated.get("cost"), cost, rel_tol=float(TOLERANCE), abs_tol=float(TOLERANCE))
    return [recount_finding(CLAIM, same, f"Rows pay {cost:.12g} for columns.")]
