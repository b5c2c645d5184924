"""What rows pay for the columns on their paths, counted again from the prices that the parameters name."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.check.proof.model import ModelTable, active_parameter, read_fraction, split_items
from trainer.check.recount.findings import TOLERANCE, Finding, recounted
from trainer.check.recount.tree import branches
from trainer.check.recount.trees.costs import AnswerCosts

CLAIM = "column prices"


def column_prices(model: dict[str, Any]) -> dict[int, Fraction]:
    """The price of each column that is not free, by its place. Raises ValueError for prices that no training takes."""
    text = str(active_parameter(model, "column_price") or "").strip()
    names = [column["name"] for column in model["columns"]]
    given = _stated(text)
    places = [names.index(name) for name, _ in given]
    prices = [read_fraction(value) for _, value in given]
    if len(set(places)) < len(places) or any(price < 0 for price in prices):
        raise ValueError("a price is negative, or named twice")
    return {j: price for j, price in zip(places, prices, strict=True) if price}


def _stated(text: str) -> list[tuple[str, str]]:
    if text.startswith("{"):
        return [(name, str(value)) for name, value in json.loads(text, parse_float=str, parse_int=str).items()]
    parts = [item.rpartition("=") for item in split_items(text)]
    return [(name.strip(), value.strip()) for name, _, value in parts]


def paid_weights(model: dict[str, Any], rows: ModelTable, leaf: np.ndarray) -> dict[int, int]:
    """The weight of the rows whose path asks each priced column; `leaf`: of each row."""
    place = {column["name"]: j for j, column in enumerate(model["columns"])}
    asked: dict[int, set[int]] = {0: set()}
    for node in branches(model["nodes"]):  # children come after their parent
        split = node["split"]
        own = {place[name] for name in split.get("features") or [split["feature"]]}
        asked[node["left"]] = asked[node["right"]] = asked[node["id"]] | own
    found = {}
    for j in column_prices(model):
        pays = np.array([j in asked[node["id"]] for node in model["nodes"]])
        found[j] = int(rows.plain[pays[leaf]].sum())
    return found


def column_cost(model: dict[str, Any], rows: ModelTable, leaf: np.ndarray) -> Fraction:
    """What all rows pay, in the unit of the costs, or in errors."""
    prices = column_prices(model)
    paid = paid_weights(model, rows, leaf)
    return sum((prices[j] * weight for j, weight in paid.items()), Fraction(0))


def lost_share(cost: Fraction, rows: ModelTable, costs: AnswerCosts | None) -> Fraction:
    """What the objective loses by a cost."""
    if costs is None:
        return cost / int(rows.weights.sum())
    return cost / costs.step * costs.scale / costs.weight


def charges_of(model: dict[str, Any], costs: AnswerCosts | None) -> dict[int, Fraction]:
    """What a unit of weight pays for each column in the search: the copies of every row weigh the same."""
    prices = column_prices(model)
    if costs is None:
        return prices
    saved = costs.each.max(axis=1, keepdims=True) - costs.each
    dearest = int(saved.sum(axis=1).max(initial=0))
    return {j: price / costs.step / dearest for j, price in prices.items()} if dearest else prices


def check_prices(model: dict[str, Any], rows: ModelTable, costs: AnswerCosts | None, leaf: np.ndarray) -> list[Finding]:
    """The line on what the certificate says about prices of columns."""
    stated = model["certificate"].get("column_prices")
    prices = column_prices(model)
    if not prices:
        return [] if stated is None else [recounted(CLAIM, False, "The parameters name no prices of columns.")]
    if stated is None:
        return [recounted(CLAIM, False, "The parameters name prices of columns, and the certificate does not.")]
    if model["certificate"].get("goal") or model["certificate"].get("wishes"):
        return [recounted(CLAIM, False, "No training with prices of columns has wishes, or another goal.")]
    names = [column["name"] for column in model["columns"]]
    paid = {names[j]: weight for j, weight in paid_weights(model, rows, leaf).items()}
    cost = float(column_cost(model, rows, leaf))
    said = stated.get("prices") or {}
    same = set(said) == {names[j] for j in prices} and all(
        read_fraction(said[names[j]]) == own for j, own in prices.items()
    )
    same = same and stated.get("paid") == paid and stated.get("unit") == ("" if costs is None else costs.unit)
    same = same and math.isclose(stated.get("cost"), cost, rel_tol=float(TOLERANCE), abs_tol=float(TOLERANCE))
    return [recounted(CLAIM, same, f"Rows pay {cost:.12g} for columns.")]
