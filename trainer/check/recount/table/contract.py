"""Check the table contract: class type, column ranges and policies."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import numpy as np

from trainer.check.proof.model import ModelTable
from trainer.check.recount.findings import Finding, recount_finding

POLICIES = ("branch", "warn", "refuse")
LARGEST_EXACT = 1 << 53  # doubles represent all integers up to this one exactly
PARTS = 10  # the ends of a range are rounded outward to a multiple of the unit of change divided by this


def contract_findings(model: dict[str, Any], rows: ModelTable) -> list[Finding]:
    """Return a finding that refutes the contract, or none; files of earlier versions have no contract."""
    contract = model.get("contract")
    if contract is None:
        return []
    trouble = _trouble(model, contract, rows)
    return [recount_finding("contract", False, trouble, "basis")] if trouble else []


def _trouble(model: dict[str, Any], contract: Any, rows: ModelTable) -> str:
    if not (
        isinstance(contract, dict)
        and isinstance(contract.get("target"), dict)
        and isinstance(contract.get("columns"), dict)
    ):
        return "It is no contract: 'target' and 'columns' are needed."
    kind = contract["target"].get("type")
    if not _is_type(kind, model["classes"]):
        return f"The classes are not values of the type '{str(kind)[:40]}'."
    for column, values in zip(model["columns"], rows.columns, strict=True):
        trouble = _column_trouble(column, contract["columns"].get(column["name"]), values)
        if trouble:
            return f"Column '{column['name']}': {trouble}"
    unknown = set(contract["columns"]) - {column["name"] for column in model["columns"]}
    return f"There is no column '{sorted(unknown)[0][:40]}'." if unknown else ""


def _is_type(kind: Any, classes: list[str]) -> bool:
    """Return True if every class is a value of the type."""
    if kind == "text":
        return True
    if kind == "bool":
        return {name.lower() for name in classes} <= {"true", "false"}
    if kind not in ("int", "float"):
        return False
    try:
        values = [int(name) if kind == "int" else float(name) for name in classes]
    except ValueError:
        return False
    return len(set(values)) == len(classes)


def _column_trouble(column: dict[str, Any], stated: Any, values: np.ndarray) -> str:
    if stated is None:
        return ""
    if not isinstance(stated, dict):
        return "its part of the contract has no members."
    policy = stated.get("unknown")
    if policy is not None and (policy not in POLICIES or column["kind"] != "categorical"):
        return f"'{str(policy)[:40]}' is not a policy for its unknown values."
    if "range" not in stated:
        return ""
    expected = None if column["kind"] == "categorical" else _range(column, _sizes(column, values))
    # earlier versions included special codes in the range, so their files are accepted, too
    earlier = expected if column["kind"] == "categorical" else _range(column, values)
    if expected is None or stated["range"] not in (expected, earlier):
        return f"it states the range {str(stated['range'])[:80]}; the training rows give {expected}."
    return ""


def _sizes(column: dict[str, Any], values: np.ndarray) -> np.ndarray:
    """Return the values that are not codes; all if there are only codes."""
    sizes = values[~np.isin(values, column.get("special", []))]
    return sizes if np.isfinite(sizes).any() else values


def _range(column: dict[str, Any], values: np.ndarray) -> list[float] | None:
    """Return smallest and largest value, rounded outward to a tenth of the unit of change."""
    finite = values[np.isfinite(values)]
    if not len(finite) or not column.get("change_unit"):
        return None
    step = Decimal(repr(float(column["change_unit"]))) / PARTS
    return [_outward(float(finite.min()), step, ROUND_FLOOR), _outward(float(finite.max()), step, ROUND_CEILING)]


def _outward(value: float, step: Decimal, rounding: str) -> float:
    steps = Decimal(repr(value)) / step
    if abs(steps) > LARGEST_EXACT:
        return value
    return float(steps.to_integral_value(rounding) * step) + 0.0
