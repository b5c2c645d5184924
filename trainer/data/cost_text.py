"""Parse a cost matrix from text, 'bad>good=5; good>bad=0.2*amount', or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from trainer.data.costs import EACH_ROW, CostTable, CostTerm
from trainer.data.problem import SettingNames
from trainer.errors import ParameterError

NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?([eE][+-]?[0-9]{1,2})?", re.ASCII)
TERM = re.compile(rf"(?P<factor>{NUMBER.pattern})\s*\*\s*(?P<column>.+)", re.ASCII | re.DOTALL)
FORM = "Write 'bad>good=5' for a number, or 'good>bad=0.2*amount' for a column times a number"
MAX_UNIT_CHARACTERS = 20  # limit on the characters of a unit


Given = dict[tuple[str, str], str]


def read_costs(settings: Mapping[str, Any], names: SettingNames) -> CostTable | None:
    """Read the cost matrix from the settings.

    Costs that are not named are 0 on the diagonal and 1 elsewhere.

    Returns
    -------
    CostTable or None
        None without costs; errors are counted then.

    Raises
    ------
    ParameterError
        If a cost is not a number or a column times a number, or names an unknown class or column.
    """
    text = str(settings.get("costs") or "").strip()
    unit = str(settings.get("cost_unit") or "").strip()
    if not text:
        if unit:
            raise ParameterError(
                {"cost_unit": f"the unit '{unit[:MAX_UNIT_CHARACTERS]}' needs costs. Give costs, or remove the unit."}
            )
        return None
    if text == EACH_ROW:
        return CostTable(classes=names.classes, terms=(), unit=_checked_unit(unit))
    stated, stated_unit = _from_json(text, names) if text.startswith("{") else (_from_text(text, names), "")
    terms = tuple(
        tuple(
            _term(stated.get((true, answer), str(int(true != answer))), f"{true}>{answer}", names)
            for answer in names.classes
        )
        for true in names.classes
    )
    return CostTable(classes=names.classes, terms=terms, unit=_checked_unit(unit or stated_unit))


def _checked_unit(unit: str) -> str:
    if len(unit) > MAX_UNIT_CHARACTERS:
        raise ParameterError(
            {
                "cost_unit": f"the unit '{unit[:40]}' has {len(unit)} characters, but at most {MAX_UNIT_CHARACTERS} are possible. Shorten it."
            }
        )
    return unit


def stated_costs(text: str, classes: tuple[str, ...]) -> tuple[Given, str]:
    """Return the costs of a text by true class and answer, and their unit; empty if the text cannot be read."""
    names = SettingNames(columns=(), classes=classes)
    try:
        return _from_json(text, names) if text.startswith("{") else (_from_text(text, names), "")
    except ParameterError:
        return {}, ""


def _from_text(text: str, names: SettingNames) -> Given:
    costs: Given = {}
    for item in filter(None, (part.strip() for part in text.split(";"))):
        true, answer, value = _parts(item, names)
        if (true, answer) in costs:
            raise ParameterError({"costs": f"'{true}>{answer}' is named twice. Remove one of the two."})
        costs[true, answer] = value
    return costs


def _parts(item: str, names: SettingNames) -> tuple[str, str, str]:
    """Return true class, answer and cost of "bad>good=5"; class names may contain '>' and '='."""
    arrows = [match.start() for match in re.finditer(">", item)]
    equals = [match.start() for match in re.finditer("=", item)]
    pairs = [(a, e) for a in arrows for e in equals if a < e]
    parts = [(item[:a].strip(), item[a + 1 : e].strip(), item[e + 1 :].strip()) for a, e in pairs]
    readings = [part for part in parts if part[0] in names.classes and part[1] in names.classes]
    if readings:
        return readings[0]
    if not parts:
        raise ParameterError({"costs": f"'{item[:80]}' does not name a true class, an answer and a cost. {FORM}."})
    for name in parts[0][:2]:
        names.label(name, "costs")
    raise ParameterError({"costs": f"'{item[:80]}' cannot be read. {FORM}."})


def _from_json(text: str, names: SettingNames) -> tuple[Given, str]:
    try:
        record = json.loads(text, parse_float=str, parse_int=str)
    except (ValueError, RecursionError) as error:
        raise ParameterError({"costs": f"this is not JSON: {error}. Correct it, or write 'bad>good=5'."}) from None
    if "rewards" in record and "rewards" not in names.classes:
        raise ParameterError(
            {"costs": "rewards work in commands and runs. In Python, use fit(X, y, costs=trainer.regrets(rewards))."}
        )
    by_class = record.get("costs", record)
    if not isinstance(by_class, dict) or not all(isinstance(row, dict) for row in by_class.values()):
        example = '{"unit": "EUR", "costs": {"bad": {"good": 5}}}'
        raise ParameterError(
            {"costs": f"the JSON is not an object of true classes with their answers. Write, for example, {example}."}
        )
    costs: Given = {}
    for true, row in by_class.items():
        names.label(true, "costs")
        for answer, value in row.items():
            names.label(answer, "costs")
            costs[true, answer] = str(value).strip()
    return costs, str(record.get("unit") or "").strip() if "costs" in record else ""


def _term(value: str, pair: str, names: SettingNames) -> CostTerm:
    if NUMBER.fullmatch(value):
        return CostTerm(factor=Fraction(value))
    match = TERM.fullmatch(value)
    if match is None:
        hint = (
            " Costs cannot be negative: add the same number to all costs of the row." if value.startswith("-") else ""
        )
        raise ParameterError({"costs": f"'{pair}={value[:60]}' has no cost that can be read. {FORM}.{hint}"})
    return CostTerm(factor=Fraction(match["factor"]), column=names.number_column(match["column"].strip(), "costs"))
