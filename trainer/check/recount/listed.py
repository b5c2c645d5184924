"""The optimal trees of a file: how many there are, and the first of them, each of which is run over the rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from trainer.check.proof.model import ModelTable
from trainer.check.proof.space.questions import column_questions
from trainer.check.recount.findings import Finding, proof_finding, recounted, unjudged
from trainer.check.recount.search import small
from trainer.check.recount.tree import leaves
from trainer.check.recount.trees.counts import split_rows, value_of
from trainer.check.recount.trees.held import check_tree

CLAIM = "optimal-trees"
LISTED = "listed trees"
Nodes = Sequence[dict[str, Any]]


def optimal_trees(model: dict[str, Any], part: dict[str, Any], rows: ModelTable) -> list[Finding]:
    """A line on the number of optimal trees, and one on those that are listed."""
    said = part.get("count")
    trees = part.get("listed") or []
    if said is None:
        return [recounted(CLAIM, not trees, "Nothing is said of how many there are.")]
    if len(trees) != min(int(said), int(model["parameters"]["optimal_trees"])):
        return [recounted(CLAIM, False, f"{len(trees)} of {said} trees are listed.")]
    number = small.optimal_trees(model, rows)
    own = [_check_listed_trees(model, trees, rows)] if trees else []
    if number is None:
        return [
            proof_finding(CLAIM, "cannot be judged", "It is about many trees, which were not searched again."),
            *own,
        ]
    return [
        proof_finding(CLAIM, "proved" if number == int(said) else "refuted", f"A plain search counts {number}."),
        *own,
    ]


def _check_listed_trees(model: dict[str, Any], trees: Sequence[Any], rows: ModelTable) -> Finding:
    """Whether each listed tree is as good and as small as the tree of the file, and none is listed too often."""
    if not all(isinstance(tree, list) for tree in trees):
        return unjudged(LISTED, "The listed trees are words, which were not run over the rows.")
    correct = model["certificate"]["correct"]
    size = len(leaves(model["nodes"]))
    for k, tree in enumerate(trees, start=1):
        trouble, counts = check_tree(model, tree, rows)
        if trouble:
            return recounted(LISTED, False, f"Tree {k} does not hold: {trouble}")
        right = value_of(model, tree, counts)[0]
        own = len(leaves(tree))
        if (right, own) != (correct, size):
            return recounted(LISTED, False, f"Tree {k} has {own} leaves and {right} rows right.")
    for text, times in Counter(_splits_text(tree) for tree in trees).items():
        tree = next(tree for tree in trees if _splits_text(tree) == text)
        if times > 1 and times > _ways(model, tree, rows):
            return recounted(LISTED, False, f"A tree is listed {times} times.")
    return recounted(LISTED, True, f"{len(trees)} trees have {correct} rows right with {size} leaves each.")


def _splits_text(tree: Nodes) -> str:
    """The questions of a tree and their places, as a text."""
    kept = [{name: v.get(name) for name in ("split", "left", "right")} for v in tree]
    return json.dumps(kept, sort_keys=True)


def _ways(model: dict[str, Any], tree: Nodes, rows: ModelTable) -> int:
    """How many optimal trees a listed one may stand for: questions of a column that part the rows of a node alike may be written alike."""
    names = [column["name"] for column in model["columns"]]
    ways = 1
    for i, own, left in split_rows(tree, model["columns"], rows):
        asked = (yes[own] == left for yes in column_questions(model, rows, names.index(tree[i]["split"]["feature"])))
        ways *= sum(bool(same.all() or not same.any()) for same in asked)
    return ways
