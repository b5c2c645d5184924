"""Check the number of optimal trees of a file, and those listed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from trainer.check.proof.model import THRESHOLDS, ModelTable, active_parameter, split_items
from trainer.check.proof.space.questions import column_questions
from trainer.check.recount.findings import Finding, proof_finding, recount_finding, unjudged_finding
from trainer.check.recount.search import small
from trainer.check.recount.tree import leaves
from trainer.check.recount.trees.counts import split_rows, value_of
from trainer.check.recount.trees.listed_tree import check_tree

CLAIM = "optimal-trees"
LISTED = "listed trees"
# the search does not count trees with these settings, and training refuses them beside a count
NOT_COUNTED = ("max_leaves", "max_columns", "recall", "fairness", "monotone")
Nodes = Sequence[dict[str, Any]]


def optimal_trees(model: dict[str, Any], part: dict[str, Any], rows: ModelTable) -> list[Finding]:
    """Check the number of optimal trees, and the trees that are listed."""
    count = part.get("count")
    trees = part.get("listed") or []
    if name := _setting_beyond_count(model):
        return [recount_finding(CLAIM, False, f"No training counts optimal trees with '{name}'.")]
    if count is None:
        return [recount_finding(CLAIM, not trees, "The file does not state how many there are.")]
    if len(trees) != min(int(count), int(model["parameters"]["optimal_trees"])):
        return [recount_finding(CLAIM, False, f"{len(trees)} of {count} trees are listed.")]
    number = small.optimal_trees(model, rows)
    listed = [_check_listed_trees(model, trees, rows)] if trees else []
    if number is None:
        return [
            proof_finding(CLAIM, "cannot be judged", "It is about many trees, which were not searched again."),
            *listed,
        ]
    return [
        proof_finding(CLAIM, "proved" if number == int(count) else "refuted", f"A plain search counts {number}."),
        *listed,
    ]


def _setting_beyond_count(model: dict[str, Any]) -> str:
    """Return a setting that training refuses beside a count of optimal trees; empty if there is none."""
    stated = [name for name in ("goal", "wishes") if model["certificate"].get(name)]
    # a list without items, such as ";", is not a setting
    values = ((name, active_parameter(model, name)) for name in NOT_COUNTED)
    stated += [name for name, value in values if value is not None and split_items(str(value))]
    return stated[0] if stated else ""


def _check_listed_trees(model: dict[str, Any], trees: Sequence[Any], rows: ModelTable) -> Finding:
    """Check that each listed tree is as good and as small as the tree of the file, and none is listed too often."""
    if not all(isinstance(tree, list) for tree in trees):
        return unjudged_finding(LISTED, "The listed trees are words, which were not run over the rows.")
    correct = model["certificate"]["correct"]
    size = len(leaves(model["nodes"]))
    for k, tree in enumerate(trees, start=1):
        trouble, counts = check_tree(model, tree, rows)
        if trouble:
            return recount_finding(LISTED, False, f"Tree {k} does not hold: {trouble}")
        right = value_of(model, tree, counts)[0]
        leaf_count = len(leaves(tree))
        if (right, leaf_count) != (correct, size):
            return recount_finding(LISTED, False, f"Tree {k} has {leaf_count} leaves and {right} rows right.")
    for text, times in Counter(_splits_text(tree) for tree in trees).items():
        tree = next(tree for tree in trees if _splits_text(tree) == text)
        if times > 1 and times > _count_equivalent_trees(model, tree, rows):
            return recount_finding(LISTED, False, f"A tree is listed {times} times.")
    return recount_finding(LISTED, True, f"{len(trees)} trees have {correct} rows right with {size} leaves each.")


def _splits_text(tree: Nodes) -> str:
    """Return the splits of a tree with their nodes as JSON."""
    splits = [{name: v.get(name) for name in ("split", "left", "right")} for v in tree]
    return json.dumps(splits, sort_keys=True)


def _count_equivalent_trees(model: dict[str, Any], tree: Nodes, rows: ModelTable) -> int:
    """Count the trees that a listed one may represent: each question may be replaced by one that splits the rows alike."""
    names = [column["name"] for column in model["columns"]]
    if model["method"] in THRESHOLDS:  # all thresholds are questions, and no value is special
        columns = [column | {"special": []} for column in model["columns"]]
        model = model | {"columns": columns, "parameters": model["parameters"] | {"binarise": "all-thresholds"}}
    ways = 1
    for i, node_rows, left in split_rows(tree, model["columns"], rows):
        agreements = (
            yes[node_rows] == left for yes in column_questions(model, rows, names.index(tree[i]["split"]["feature"]))
        )
        ways *= sum(bool(same.all() or not same.any()) for same in agreements)
    return ways
