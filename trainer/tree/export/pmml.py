"""Export a tree as PMML 4.4.

The TreeModel (Data Mining Group) has the node ids of the tree, so that readers can compare leaves. Every left child has
the test of the split, every right child `True`. A test that is unknown because of a missing value counts as false, so
the row goes right as in the prediction kernel. If a split sends empty cells left, every node names a default child
instead, which takes the rows whose test is unknown. Sums of linear splits are derived fields whose terms are added in
the order of the split. Values must be finite, because PMML has no infinity.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET

from trainer.errors import DataError
from trainer.table import MISSING_CATEGORY, ColumnKind, EmptySide
from trainer.tree.nodes import Node, Tree
from trainer.tree.splits.base import EMPTY, VALUE, Term
from trainer.version import VERSION

NAMESPACE = "http://www.dmg.org/PMML-4_4"
# characters that XML 1.0 cannot represent
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# readers of PMML arrays split or unescape these texts in different ways, so such texts are compared one by one
AWKWARD = re.compile(r'^$|^\s|\s$|["\\\t\r\n]')


def to_pmml(tree: Tree, *, target: str = "class", name: str = "octweb tree", notes: Sequence[str] = ()) -> str:
    """Return the PMML document of `tree`.

    Inputs are the columns that the tree reads; outputs the predicted class, one probability per class, and the node id.
    The header has the notes. Raise DataError for names that XML cannot hold.
    """
    for text in [
        target,
        name,
        *tree.classes,
        *(c.name for c in tree.schema),
        *(x for c in tree.schema for x in c.categories),
    ]:
        if FORBIDDEN.search(text):
            raise DataError(f"XML cannot hold the name {text!r}: it has a control character. Rename it.")
    names = _FieldNames([tree.schema[j].name for j in tree.used_columns])
    target = names.new(target)
    root = ET.Element("PMML", {"xmlns": NAMESPACE, "version": "4.4"})
    header = ET.SubElement(root, "Header", {"description": name})
    ET.SubElement(header, "Application", {"name": "octweb", "version": VERSION})
    for note in notes:
        ET.SubElement(header, "Annotation").text = note
    _data_dictionary(root, tree, target)
    default_children = any(v.split is not None and v.split.missing is EmptySide.LEFT for v in tree.branches)
    model = ET.Element(
        "TreeModel",
        {
            "modelName": name,
            "functionName": "classification",
            "algorithmName": "octweb",
            "missingValueStrategy": "defaultChild" if default_children else "none",
            "noTrueChildStrategy": "returnLastPrediction",
            "splitCharacteristic": "binarySplit",
        },
    )
    _mining_schema(model, tree, target)
    _output(model, tree, target, names)
    local = ET.SubElement(model, "LocalTransformations")
    writer = _Writer(tree=tree, names=names, local=local)
    _nodes(model, tree, writer, default_children=default_children)
    if not len(local):
        model.remove(local)
    root.append(model)
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


class _FieldNames:
    """Registry of the field names of one document, which must be unique."""

    def __init__(self, used_names: list[str]) -> None:
        self._taken = set(used_names)

    def new(self, wish: str) -> str:
        """Return `wish`, with underscores until no other field has the name."""
        while wish in self._taken or not wish:
            wish += "_"
        self._taken.add(wish)
        return wish


def _data_dictionary(root: ET.Element, tree: Tree, target: str) -> None:
    dictionary = ET.SubElement(root, "DataDictionary")
    for j in tree.used_columns:
        column = tree.schema[j]
        if column.kind is ColumnKind.CATEGORICAL:
            field = ET.SubElement(
                dictionary, "DataField", {"name": column.name, "optype": "categorical", "dataType": "string"}
            )
            for category in column.categories:
                ET.SubElement(field, "Value", {"value": category})
        else:
            ET.SubElement(dictionary, "DataField", {"name": column.name, "optype": "continuous", "dataType": "double"})
    field = ET.SubElement(dictionary, "DataField", {"name": target, "optype": "categorical", "dataType": "string"})
    for label in tree.classes:
        ET.SubElement(field, "Value", {"value": label})


def _mining_schema(model: ET.Element, tree: Tree, target: str) -> None:
    schema = ET.SubElement(model, "MiningSchema")
    ET.SubElement(schema, "MiningField", {"name": target, "usageType": "target"})
    for j in tree.used_columns:
        column = tree.schema[j]
        # `asIs` compares an unknown category as it is: it equals none and goes right. Otherwise the contract refuses it
        treatment = "returnInvalid" if j in tree.unknown_refused else "asIs"
        attributes = {"name": column.name, "invalidValueTreatment": treatment}
        if column.missing_code is not None:
            attributes |= {"missingValueReplacement": MISSING_CATEGORY, "missingValueTreatment": "asValue"}
        ET.SubElement(schema, "MiningField", attributes)


def _output(model: ET.Element, tree: Tree, target: str, names: _FieldNames) -> None:
    output = ET.SubElement(model, "Output")
    categorical = {"optype": "categorical", "dataType": "string"}
    label = {"name": names.new(f"predicted {target}"), "feature": "predictedValue"}
    ET.SubElement(output, "OutputField", label | categorical)
    for k in tree.classes:
        attributes = {"name": names.new(f"probability({k})"), "feature": "probability", "value": k}
        ET.SubElement(output, "OutputField", attributes | {"optype": "continuous", "dataType": "double"})
    ET.SubElement(output, "OutputField", {"name": names.new("leaf"), "feature": "entityId"} | categorical)


@dataclass(kw_only=True)
class _Writer:
    """Writer of the predicates of splits; it collects derived fields in `local`."""

    tree: Tree
    names: _FieldNames
    local: ET.Element
    _indicators: dict[tuple[int, int], str] = field(default_factory=dict)

    def name(self, column: int) -> str:
        """Return the field of a column."""
        return self.tree.schema[column].name

    def simple(self, field: str, operator: str, value: str | None = None) -> ET.Element:
        """Return one comparison of a field."""
        attributes = {"field": field, "operator": operator}
        return ET.Element("SimplePredicate", attributes if value is None else attributes | {"value": value})

    def category_in(self, column: int, codes: Sequence[int]) -> ET.Element:
        """Return the predicate "the category of the column is one of `codes`"."""
        name = self.name(column)
        categories = [self.tree.schema[column].categories[code] for code in codes]
        if not categories:
            return ET.Element("False")
        if len(categories) == 1:
            return self.simple(name, "equal", categories[0])
        if any(AWKWARD.search(category) for category in categories):
            either = ET.Element("CompoundPredicate", {"booleanOperator": "or"})
            either.extend(self.simple(name, "equal", category) for category in categories)
            return either
        element = ET.Element("SimpleSetPredicate", {"field": name, "booleanOperator": "isIn"})
        array = ET.SubElement(element, "Array", {"type": "string", "n": str(len(categories))})
        array.text = " ".join(f'"{category}"' for category in categories)
        return element

    def sum_field(self, node: int, terms: Sequence[Term], fills: Sequence[float]) -> str:
        """Add a derived field with a weighted sum, in the order of the terms; return its name."""
        expression: ET.Element | None = None
        for (column, level, a), fill in zip(terms, fills, strict=True):
            product = ET.Element("Apply", {"function": "*"})
            product.append(_number(a))
            value = ET.Element("FieldRef", {"field": self.name(column)})
            if level != VALUE:
                value.set("field", self._indicator(column, level))
            elif not math.isnan(fill):
                value = _if_missing(self.name(column), _number(fill), value)
            product.append(value)
            if expression is None:
                expression = product
            else:
                total = ET.Element("Apply", {"function": "+"})
                total.extend([expression, product])
                expression = total
        if expression is None:
            raise DataError(f"The linear split of node {node} has no terms.")
        return self._derive_field(f"sum at node {node}", expression)

    def _indicator(self, column: int, level: int) -> str:
        """Return the derived field that is 1 for one category of a column, or for its empty cells."""
        if level == EMPTY and (column, level) not in self._indicators:
            choice = _if_missing(self.name(column), _number(1.0), _number(0.0))
            self._indicators[column, level] = self._derive_field(f"{self.name(column)} is empty", choice)
        elif (column, level) not in self._indicators:
            category = self.tree.schema[column].categories[level]
            discrete = {"field": self.name(column), "value": category, "mapMissingTo": "0"}
            wish = f"{self.name(column)} is {category}"
            self._indicators[column, level] = self._derive_field(wish, ET.Element("NormDiscrete", discrete))
        return self._indicators[column, level]

    def _derive_field(self, wish: str, expression: ET.Element) -> str:
        name = self.names.new(wish)
        attributes = {"name": name, "optype": "continuous", "dataType": "double"}
        ET.SubElement(self.local, "DerivedField", attributes).append(expression)
        return name


def _number(value: float) -> ET.Element:
    constant = ET.Element("Constant", {"dataType": "double"})
    constant.text = repr(value)
    return constant


def _if_missing(field: str, then: ET.Element, otherwise: ET.Element) -> ET.Element:
    """Return `then` where the field is missing, else `otherwise`."""
    choice = ET.Element("Apply", {"function": "if"})
    missing = ET.SubElement(choice, "Apply", {"function": "isMissing"})
    ET.SubElement(missing, "FieldRef", {"field": field})
    choice.extend([then, otherwise])
    return choice


def _nodes(model: ET.Element, tree: Tree, writer: _Writer, *, default_children: bool) -> None:
    elements: dict[int, ET.Element] = {}
    for v in tree.nodes:  # parents precede their children in the list
        parent = model if v.id == 0 else elements[tree.parents[v.id]]
        element = ET.SubElement(parent, "Node", {"id": str(v.id), "score": tree.classes[v.label]})
        element.set("recordCount", str(v.rows))
        elements[v.id] = element
        above = None if v.id == 0 else tree.nodes[tree.parents[v.id]]
        if above is not None and above.split is not None and above.left == v.id:
            element.append(above.split.pmml(writer, above.id))
        else:
            ET.SubElement(element, "True")
        if v.is_leaf:
            _distribution(element, tree, v)
        elif default_children and v.split is not None:
            element.set("defaultChild", str(v.left if v.split.missing is EmptySide.LEFT else v.right))


def _distribution(element: ET.Element, tree: Tree, leaf: Node) -> None:
    for label, count, share in zip(tree.classes, leaf.counts, tree.probabilities[leaf.id].tolist(), strict=True):
        attributes = {"value": label, "recordCount": str(count), "probability": repr(share)}
        ET.SubElement(element, "ScoreDistribution", attributes)
