"""Read the text of a PMML tree and answer rows, in the way the specification describes."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree as ET

SPACE = "{http://www.dmg.org/PMML-4_4}"
COMPARISONS = {
    "equal": lambda a, b: a == b,
    "lessOrEqual": lambda a, b: a <= b,
    "greaterThan": lambda a, b: a > b,
}

Cell = str | float | None


class PmmlTree:
    """The tree of a PMML 4.4 document. It shares no code with the export or with the converter."""

    def __init__(self, text: str) -> None:
        root = ET.fromstring(text)
        self.model = root.find(f"{SPACE}TreeModel")
        self.categories = {
            field.get("name"): [value.get("value") for value in field]
            for field in root.iter(f"{SPACE}DataField")
            if field.get("dataType") == "string"
        }
        self.fields = [f for f in self.model.iter(f"{SPACE}MiningField") if f.get("usageType") != "target"]

    def leaf(self, row: Mapping[str, Cell]) -> int | None:
        """Return the id of the leaf; None if a category is invalid."""
        cells: dict[str, Cell] = {}
        for field in self.fields:
            name = field.get("name")
            cell = row[name]
            if cell is None:
                cell = field.get("missingValueReplacement")
            elif name in self.categories and str(cell) not in self.categories[name]:
                if field.get("invalidValueTreatment") == "returnInvalid":
                    return None
                assert field.get("invalidValueTreatment") == "asIs"
            cells[name] = cell
        for derived in self.model.iter(f"{SPACE}DerivedField"):
            cells[derived.get("name")] = value_of(derived[0], cells)
        return int(self._leaf_below(self.model.find(f"{SPACE}Node"), cells))

    def _leaf_below(self, node: ET.Element, cells: Mapping[str, Cell]) -> str:
        children = node.findall(f"{SPACE}Node")
        if not children:
            return node.get("id")
        default = self.model.get("missingValueStrategy") == "defaultChild"
        for child in children:
            verdict = holds(child[0], cells)
            if verdict is None and default:
                return self._leaf_below(next(c for c in children if c.get("id") == node.get("defaultChild")), cells)
            if verdict:
                return self._leaf_below(child, cells)
        raise AssertionError("no child takes the row")


def holds(predicate: ET.Element, cells: Mapping[str, Cell]) -> bool | None:
    """Return whether a predicate is true; None if a missing value leaves it unknown."""
    kind = predicate.tag.removeprefix(SPACE)
    if kind in ("True", "False"):
        return kind == "True"
    if kind == "CompoundPredicate":
        verdicts = [holds(part, cells) for part in predicate]
        decisive = predicate.get("booleanOperator") == "or"
        return decisive if decisive in verdicts else None if None in verdicts else not decisive
    cell = cells[predicate.get("field")]
    if kind == "SimplePredicate" and predicate.get("operator") in ("isMissing", "isNotMissing"):
        return (cell is None) == (predicate.get("operator") == "isMissing")
    if cell is None:
        return None
    if kind == "SimpleSetPredicate":
        assert predicate.get("booleanOperator") == "isIn"
        words = predicate[0].text[1:-1].split('" "')
        assert len(words) == int(predicate[0].get("n"))
        return str(cell) in words
    assert kind == "SimplePredicate", kind
    value = predicate.get("value")
    return COMPARISONS[predicate.get("operator")](cell, value if isinstance(cell, str) else float(value))


def value_of(expression: ET.Element, cells: Mapping[str, Cell]) -> Cell:
    """Return the value of an expression of a derived field; None is missing."""
    kind = expression.tag.removeprefix(SPACE)
    if kind == "Constant":
        return float(expression.text)
    if kind == "FieldRef":
        return cells[expression.get("field")]
    if kind == "NormDiscrete":
        cell = cells[expression.get("field")]
        return float(expression.get("mapMissingTo")) if cell is None else float(cell == expression.get("value"))
    function = expression.get("function")
    if function == "if":
        chosen = expression[1] if value_of(expression[0], cells) else expression[2]
        return value_of(chosen, cells)
    values = [value_of(part, cells) for part in expression]
    if function == "isMissing":
        return float(values[0] is None)
    if None in values:
        return None
    return values[0] + values[1] if function == "+" else values[0] * values[1]
