"""Export a tree as a DMN 1.3 decision table.

The table (Object Management Group) has one rule for each leaf and hit policy FIRST. Its inputs are the questions of the
tree, FEEL expressions that are true or false. A comparison with null, a missing value, is null in FEEL and counts as
"no" here, as in the prediction kernel. A question that empty cells answer with "yes" tests for null first. Each rule
lists the answers on the path to its leaf. FEEL has decimal numbers. Thresholds are exact, since both sides are shortest
decimals. A weighted sum is the decimal sum, so a row within a double's rounding error of a hyperplane may go to the
other side.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from xml.etree import ElementTree as ET

from trainer.errors import DataError
from trainer.table import ColumnKind
from trainer.tree.export.nested import refuse_refusing
from trainer.tree.export.pmml import FORBIDDEN
from trainer.tree.literals import missing_category
from trainer.tree.nodes import Tree
from trainer.tree.splits.base import EMPTY, VALUE, Term
from trainer.version import VERSION

NAMESPACE = "https://www.omg.org/spec/DMN/20191111/MODEL/"


def to_dmn(tree: Tree, *, target: str = "class", name: str = "octweb tree", notes: Sequence[str] = ()) -> str:
    """Return the document, described by the notes; raise DataError for names that XML cannot hold, or a contract that refuses unknown values."""
    refuse_refusing(tree, "DMN")
    for text in [target, name, *tree.classes, *(w for j in tree.used_columns for w in _category_words(tree, j))]:
        if FORBIDDEN.search(text):
            raise DataError(f"XML cannot hold the name {text!r}: it has a control character. Rename it.")
    root = ET.Element(
        "definitions",
        {
            "xmlns": NAMESPACE,
            "id": "definitions",
            "name": name,
            "namespace": "https://octweb/dmn",
            "exporter": "octweb",
            "exporterVersion": VERSION,
        },
    )
    if notes:
        ET.SubElement(root, "description").text = "\n".join(notes)
    for j in tree.used_columns:
        data = ET.SubElement(root, "inputData", {"id": f"input_{variable(j)}", "name": tree.schema[j].name})
        kind = "string" if tree.schema[j].kind is ColumnKind.CATEGORICAL else "number"
        ET.SubElement(data, "variable", {"id": f"variable_{j}", "name": variable(j), "typeRef": kind})
    decision = ET.SubElement(root, "decision", {"id": "decision", "name": target})
    ET.SubElement(decision, "variable", {"id": "answer", "name": "answer", "typeRef": "string"})
    for j in tree.used_columns:
        requirement = ET.SubElement(decision, "informationRequirement", {"id": f"requirement_{j}"})
        ET.SubElement(requirement, "requiredInput", {"href": f"#input_{variable(j)}"})
    _table(decision, tree)
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def variable(column: int) -> str:
    """Return the name of a column in expressions; names in FEEL cannot have every character."""
    return f"column_{column + 1}"


def _category_words(tree: Tree, j: int) -> list[str]:
    return [tree.schema[j].name, *tree.schema[j].categories]


def _table(decision: ET.Element, tree: Tree) -> None:
    table = ET.SubElement(decision, "decisionTable", {"id": "table", "hitPolicy": "FIRST"})
    feel = Feel(tree)
    for v in tree.branches:
        assert v.split is not None
        entry = ET.SubElement(table, "input", {"id": f"question_{v.id}", "label": f"{v.split.text(tree.schema, 8)}?"})
        expression = ET.SubElement(entry, "inputExpression", {"id": f"test_{v.id}", "typeRef": "boolean"})
        ET.SubElement(expression, "text").text = v.split.expression(feel)
    for ident, label, kind in (("class", "class", "string"), ("leaf", "leaf", "number")):
        ET.SubElement(table, "output", {"id": f"output_{ident}", "name": label, "typeRef": kind})
    for leaf in tree.leaves:
        rule = ET.SubElement(table, "rule", {"id": f"rule_{leaf.id}"})
        answers = {a: "true" if b == tree.nodes[a].left else "false" for a, b in pairwise(tree.path_to(leaf.id))}
        for v in tree.branches:
            cell = ET.SubElement(rule, "inputEntry", {"id": f"entry_{leaf.id}_{v.id}"})
            ET.SubElement(cell, "text").text = answers.get(v.id, "-")
        for ident, value in (
            ("class", json.dumps(tree.classes[leaf.label], ensure_ascii=False)),
            ("leaf", str(leaf.id)),
        ):
            out = ET.SubElement(rule, "outputEntry", {"id": f"{ident}_{leaf.id}"})
            ET.SubElement(out, "text").text = value


class Feel:
    """The tests in FEEL: each is true or false, never null."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def at_most(self, column: int, threshold: float) -> str:
        return _sure(f"{variable(column)} <= {number(threshold)}")

    def is_empty(self, column: int) -> str:
        return f"({variable(column)} = null)"

    def any_of(self, tests: Sequence[str]) -> str:
        return " or ".join(tests)

    def between(self, column: int, low: float, high: float) -> str:
        ends = [f"{variable(column)} > {number(low)}"] if math.isfinite(low) else []
        ends += [f"{variable(column)} <= {number(high)}"] if math.isfinite(high) else []
        return _sure(" and ".join(ends) or f"{variable(column)} != null")

    def category_in(self, column: int, codes: Sequence[int]) -> str:
        return " or ".join(self._category(column, code) for code in codes) or "false"

    def sum_at_most(self, terms: Sequence[Term], threshold: float, fills: Sequence[float]) -> str:
        parts = [
            f"{number(a)} * {self._term(j, level, fill)}" for (j, level, a), fill in zip(terms, fills, strict=True)
        ]
        return _sure(f"{' + '.join(parts)} <= {number(threshold)}")

    def _term(self, column: int, level: int, fill: float) -> str:
        if level == VALUE:
            value = variable(column)
            return value if math.isnan(fill) else f"(if {self.is_empty(column)} then {number(fill)} else {value})"
        test = self.is_empty(column) if level == EMPTY else self._category(column, level)
        return f"(if {test} then 1 else 0)"

    def _category(self, column: int, code: int) -> str:
        column_schema = self.tree.schema[column]
        word = column_schema.categories[code]
        test = f"{variable(column)} = {json.dumps(word, ensure_ascii=False)}"
        return f"({variable(column)} = null or {test})" if word == missing_category(column_schema) else _sure(test)


def _sure(test: str) -> str:
    return f"(if {test} then true else false)"


def number(value: float) -> str:
    """Write a decimal without an exponent, which FEEL does not support; a negative one in parentheses."""
    text = f"{Decimal(repr(value)):f}"
    return f"({text})" if value < 0 else text
