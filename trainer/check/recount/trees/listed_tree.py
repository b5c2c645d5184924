"""Check a tree that a file lists beside its own.

It belongs to a fold, a frontier or the optimal trees. No bound is claimed for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainer.check.proof.model import ModelTable
from trainer.check.recount.restrictions import restrictions
from trainer.check.recount.structure import structure
from trainer.check.recount.trees.counts import Counts, check_node_counts, count_nodes
from trainer.check.recount.trees.empty import check_empty_cells
from trainer.check.recount.trees.members import questions_asked


def check_tree(model: dict[str, Any], nodes: Sequence[dict[str, Any]], rows: ModelTable) -> tuple[str, Counts]:
    """Return an error of the tree, empty if there is none, and the class counts of its nodes over its training rows."""
    # the scope names the columns of the main tree, and this tree may use others, so it is left out
    tree_model = model | {"nodes": nodes, "certificate": model["certificate"] | {"scope": ""}}
    findings = structure(tree_model)
    counts = list[list[int]]()
    if all(finding.verdict != "refuted" for finding in findings):
        leaf, counts = count_nodes(model, nodes, rows)
        findings = [
            check_node_counts(nodes, counts),
            *restrictions(tree_model, counts, rows, leaf),
            *questions_asked(tree_model, rows),
        ]
        findings += check_empty_cells(model, nodes, rows)
    trouble = next((finding.detail for finding in findings if finding.verdict == "refuted"), "")
    return trouble or (
        "Only the tree of the file may state impurities." if any("impurity" in v for v in nodes) else ""
    ), counts
