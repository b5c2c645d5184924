"""Convert PMML 4.x documents with one TreeModel.

An element that cannot be converted exactly raises an error with its name. PMML tests the predicates of a node's children in order
and takes the first child whose predicate is true. That is a chain of branches. The last child needs no split if its predicate is
the opposite of the one before it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from trainer.convert.pmml_fields import Fields, fields_of
from trainer.convert.pmml_predicates import PredicateSplit, opposite, split_of_predicate
from trainer.convert.source import MOST_BYTES, ConvertedTree, CountedLeaf, too_deep, tree_of
from trainer.convert.xml_tree import Element, parse
from trainer.errors import ConversionError
from trainer.table import ColumnKind, EmptySide, MissingPolicy
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf, Tree
from trainer.tree.splits import Subset

ASIDE = {"Extension", "Header", "MiningBuildTask", "DataDictionary", "TransformationDictionary", "TreeModel"}
OF_MODEL = {"Extension", "MiningSchema", "Output", "LocalTransformations", "Node", "ModelStats", "ModelExplanation",
            "ModelVerification"}  # fmt: skip
STRATEGIES = {"none", "lastPrediction", "nullPrediction", "defaultChild"}
PREDICATES = ("SimplePredicate", "SimpleSetPredicate", "CompoundPredicate", "True", "False")


def from_pmml(content: bytes) -> Tree:
    """Convert the tree of a PMML 4.x document; every row that the document answers gets the same class.

    A missing number goes to the default child, or to the next child whose predicate is true. If the document does neither, the row
    gets no answer.

    Parameters
    ----------
    content : bytes
        The document.

    Returns
    -------
    Tree

    Raises
    ------
    ConversionError
        If an element cannot be converted exactly; the message names it.
    """
    return read_pmml(content).tree


def read_pmml(content: bytes) -> ConvertedTree:
    """Return the tree of a PMML document and its target; raises ConversionError."""
    if len(content) > MOST_BYTES:
        raise ConversionError(
            f"The document is larger than the limit of {MOST_BYTES // 10**6} MB. Give a document of one smaller tree."
        )
    root = parse(content)
    if root.name != "PMML" or not str(root.get("version", "")).startswith("4"):
        raise ConversionError(
            f"This is not PMML of version 4: it begins with {root}, version {root.get('version')}. Export the tree as PMML 4."
        )
    if odd := next((child for child in root.children if child.name not in ASIDE), None):
        raise ConversionError(f"{odd} is not a TreeModel. Export one tree, not a model made of several parts.")
    model = _only(root, "TreeModel")
    if model.get("functionName") != "classification":
        raise ConversionError(
            f"{model} has the function '{model.get('functionName')}', but only trees with the function 'classification' are converted. Export a classification tree."
        )
    if odd := next((child for child in model.children if child.name not in OF_MODEL), None):
        raise ConversionError(f"{odd} cannot be converted. Export one plain classification tree without it.")
    if (strategy := model.get("missingValueStrategy", "none")) not in STRATEGIES:
        raise ConversionError(
            f"{model} has the missingValueStrategy '{strategy}'. Only these are converted: {', '.join(sorted(STRATEGIES))}. Export the tree with one of them."
        )
    fields = fields_of(root, model)
    classes = _classes(model, fields)
    reader = _Reader(fields, classes, model.get("noTrueChildStrategy", "returnNullPrediction") or "", strategy)
    top = _only(model, "Node")
    if _predicate(top).name != "True":
        raise ConversionError(f"{top} is the root and has a condition. Give the root the predicate <True/>.")
    tree = tree_of(reader.node(top, 0), fields.schema, reader.classes)
    return ConvertedTree(tree=_with_policies(tree), target=fields.target, form="pmml")


def _with_policies(tree: Tree) -> Tree:
    """Set the policy 'learn' for the columns that are not categorical and whose empty cells no split refuses."""
    numeric = [column.kind is not ColumnKind.CATEGORICAL for column in tree.schema]
    learned = (
        replace(column, missing=MissingPolicy.LEARN) if number and j not in tree.refused_columns else column
        for j, (column, number) in enumerate(zip(tree.schema, numeric, strict=True))
    )
    return replace(tree, schema=tuple(learned))


def _only(parent: Element, name: str) -> Element:
    elements = list(parent.all(name))
    if len(elements) != 1:
        raise ConversionError(
            f"{parent} has {len(elements)} elements <{name}>, but needs exactly one. Export the document again."
        )
    return elements[0]


def _predicate(node: Element) -> Element:
    predicates = [
        child for child in node.children if child.name.endswith("Predicate") or child.name in ("True", "False")
    ]
    if len(predicates) != 1:
        raise ConversionError(
            f"{node} has {len(predicates)} predicates, but needs exactly one. Export the document again."
        )
    if predicates[0].name not in PREDICATES:
        raise ConversionError(
            f"{predicates[0]} is a predicate that cannot be converted. Known are: {', '.join(PREDICATES)}."
        )
    return predicates[0]


def _classes(model: Element, fields: Fields) -> list[str]:
    """Return the classes in the order of the target's field, then those that only nodes name."""
    names = list(fields.classes)
    stack = list(model.all("Node"))
    while stack:
        node = stack.pop(0)
        shares = [str(child.get("value")) for child in node.all("ScoreDistribution")]
        score = node.get("score")
        for value in [*shares, *([score] if score is not None else [])]:
            if value not in names:
                names.append(value)
        stack += node.all("Node")
    return names


class _Reader:
    """Reader that converts PMML nodes, given the fields and classes of the document."""

    def __init__(self, fields: Fields, classes: Sequence[str], no_child: str, strategy: str) -> None:
        self.fields = fields
        self.classes = list(classes)
        self.no_child = no_child
        self.strategy = strategy
        self.code = {label: k for k, label in enumerate(self.classes)}

    def node(self, node: Element, depth: int) -> Draft:
        """Return the draft of the subtree at a node."""
        too_deep(depth)
        if odd := next((c for c in node.all("Partition", "Regression", "DecisionTree")), None):
            raise ConversionError(f"{odd} cannot be converted. Export one plain classification tree without it.")
        children = list(node.all("Node"))
        if not children:
            return self._leaf(node)
        return self._chain(node, [(child, _predicate(child)) for child in children], depth)

    def _chain(self, node: Element, rest: list[tuple[Element, Element]], depth: int) -> Draft:
        (child, predicate), *others = rest
        if predicate.name == "True":
            return self.node(child, depth + 1)
        below = self.node(child, depth + 1)
        closed = len(others) == 1 and opposite(predicate, others[0][1])
        if predicate.name == "False":
            return DraftBranch(split=self._never(predicate), left=below, right=self._others(node, others, depth))
        question: PredicateSplit = split_of_predicate(predicate, self.fields, closed=closed)
        after = self.node(others[0][0], depth + 1) if closed else self._others(node, others, depth)
        split = question.split
        never_unknown = predicate.get("operator") in ("isMissing", "isNotMissing") or split.missing is EmptySide.FILL
        if not never_unknown:
            split = split.with_empty(self._side(node, child, [c for c, _ in others], question, closed=closed))
        if question.swapped:
            below, after = after, below
        return DraftBranch(split=split, left=below, right=after)

    def _side(
        self, node: Element, child: Element, others: Sequence[Element], question: PredicateSplit, *, closed: bool
    ) -> EmptySide:
        """Return the side of rows for which the predicate of `child` is unknown: `child`, the next one, or none."""
        default = node.get("defaultChild") if self.strategy == "defaultChild" else None
        to_child = default is not None and default == child.get("id")
        to_next = default is not None and len(others) == 1 and default == others[0].get("id")
        if self.strategy == "none" and not closed:
            to_next = True  # an unknown predicate counts as not true, so the row goes to the next child
        if not to_child and not to_next:
            return EmptySide.REFUSE
        return EmptySide.LEFT if to_child != question.swapped else EmptySide.RIGHT

    def _others(self, node: Element, others: list[tuple[Element, Element]], depth: int) -> Draft:
        too_deep(depth)
        if others:
            return self._chain(node, others, depth + 1)
        if self.no_child != "returnLastPrediction":
            raise ConversionError(
                f"{node} gives no prediction for rows that no child accepts (noTrueChildStrategy returnNullPrediction). "
                "Add a last child with the predicate <True/>, or export with returnLastPrediction."
            )
        return DraftLeaf(label=self._label(node))

    def _never(self, predicate: Element) -> Subset:
        """Return a split that no row satisfies: the empty set of categories of some column."""
        for j, column in enumerate(self.fields.schema):
            if column.categories:
                return Subset(feature=j, codes=())
        raise ConversionError(f"{predicate} accepts no row, and no question can express that. Remove its node.")

    def _leaf(self, node: Element) -> CountedLeaf:
        counts = [0] * len(self.classes)
        for share in node.all("ScoreDistribution"):
            size = float(share.get("recordCount") or "nan")
            if not (math.isfinite(size) and size >= 0 and size.is_integer()):
                return CountedLeaf(label=self._label(node))
            counts[self.code[str(share.get("value"))]] += int(size)
        return CountedLeaf(label=self._label(node), counts=tuple(counts) if list(node.all("ScoreDistribution")) else ())

    def _label(self, node: Element) -> int:
        """Return the code of a node's score, or else of the most frequent class of its shares."""
        if (score := node.get("score")) is not None:
            return self.code[score]
        shares = [(float(s.get("recordCount") or 0), str(s.get("value"))) for s in node.all("ScoreDistribution")]
        if not shares:
            raise ConversionError(
                f"{node} names no class: it has neither a score nor a ScoreDistribution. Add the score."
            )
        return self.code[max(shares, key=lambda share: share[0])[1]]
