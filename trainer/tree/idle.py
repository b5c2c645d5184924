"""Find and remove idle questions: splits whose leaves all predict the same class.

A search of whole trees returns none. A greedy tree has them where a split changes class shares, but not the largest class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from trainer.certificate import Evidence, Guarantee
from trainer.errors import ModelFileError
from trainer.tree.file import ModelFile
from trainer.tree.nodes import Node, Tree

NOTE = "Questions that change no answer were removed after the training."


def idle_questions(tree: Tree) -> frozenset[int]:
    """Return the node ids of the idle questions.

    Parameters
    ----------
    tree : Tree

    Returns
    -------
    frozenset of int
        Ids of the branches whose leaves all predict the same class.
    """
    label = _only_label(tree)
    return frozenset(v.id for v in tree.branches if label[v.id] is not None)


def _only_label(tree: Tree) -> list[int | None]:
    """Return for each node the class that all leaves at or below it predict; None if they predict several."""
    labels: list[int | None] = [v.label if v.is_leaf else None for v in tree.nodes]
    for v in reversed(tree.branches):  # children follow their parents in the list, so the reverse order works bottom-up
        if labels[v.left] == labels[v.right]:
            labels[v.id] = labels[v.left]
    return labels


def without_idle(tree: Tree) -> Tree:
    """Replace each idle question by a leaf with its rows; no prediction changes.

    Parameters
    ----------
    tree : Tree

    Returns
    -------
    Tree
        Its nodes are numbered breadth first.
    """
    label = _only_label(tree)
    order = [0]
    for at in order:  # the list grows during the loop, which gives the breadth-first order of node numbers
        if label[at] is None:
            order += [tree.nodes[at].left, tree.nodes[at].right]
    place = {at: number for number, at in enumerate(order)}

    def renumber(v: Node) -> Node:
        same = label[v.id]
        if same is not None:
            return Node(id=place[v.id], counts=v.counts, label=same)
        return replace(v, id=place[v.id], left=place[v.left], right=place[v.right])

    return replace(tree, nodes=tuple(renumber(tree.nodes[at]) for at in order))


def pruned(model: ModelFile) -> ModelFile:
    """Return the model without its idle questions.

    Parameters
    ----------
    model : ModelFile

    Returns
    -------
    ModelFile
        The smaller model; its certificate has no bound.

    Raises
    ------
    ModelFileError
        If no question is idle, or if the model claims that its whole tree is optimal.
    """
    if model.certificate.get("guarantee") == Guarantee.TREE:
        raise ModelFileError("This model claims that its whole tree is optimal, so its questions cannot be removed.")
    tree = without_idle(model.tree)
    if len(tree.nodes) == len(model.tree.nodes):
        raise ModelFileError("No question of this tree can be removed: each of them changes an answer.")
    return replace(model, tree=tree, certificate=_certificate(model.certificate, tree))


def _certificate(before: Mapping[str, Any], tree: Tree) -> dict[str, Any]:
    """Return the certificate of the smaller tree, without a bound."""
    certificate = dict(before)
    counts: dict[str, Any] = {"leaves": tree.n_leaves, "depth": tree.depth}
    if certificate.get("splits") is not None:
        counts |= {"splits": len(tree.branches), "splits_proved": sum(v.split_proved for v in tree.branches)}
    rows = tree.nodes[0].rows
    evidence = certificate.get("evidence") or []
    for part in evidence:
        if part["kind"] == Evidence.SUBTREES:  # the ids of the nodes have changed, so no subtree is proved any more
            low = sum(height <= part["height"] for height in tree.heights)
            counts |= {"subtrees": low, "subtrees_proved": 0}
            counts |= {"evidence": [other for other in evidence if other is not part]}
    if (price := _price(certificate)) and rows:
        correct = sum(v.counts[v.label] for v in tree.leaves)
        counts["objective"] = float(Fraction(correct, rows) - price * tree.n_leaves)
    note = str(certificate.get("note") or "")
    notes = note if NOTE in note else f"{note} {NOTE}".strip()
    return certificate | {name: value for name, value in counts.items() if name in certificate} | {"note": notes}


def _price(certificate: Mapping[str, Any]) -> Fraction:
    """Return the price of a leaf as a share of the rows; raise ModelFileError if it is not a number."""
    try:
        return Fraction(str(certificate.get("leaf_penalty") or 0))
    except (ValueError, ZeroDivisionError) as error:
        raise ModelFileError(
            "The model file is damaged: the leaf penalty of its certificate is not a number."
        ) from error
