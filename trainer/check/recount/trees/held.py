"""What must hold of each tree that a file lists beside its own one: of a fold, or of a frontier. No bound is claimed of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainer.check.proof.model import ModelTable
from trainer.check.recount.restrictions import restrictions
from trainer.check.recount.structure import structure
from trainer.check.recount.trees.counts import Counts, count_nodes, node_counts
from trainer.check.recount.trees.empty import check_empty_cells
from trainer.check.recount.trees.members import questions_asked


def check_tree(model: dict[str, Any], nodes: Sequence[dict[str, Any]], rows: ModelTable) -> tuple[str, Counts]:
    """What is wrong with such a tree, empty if nothing is, and the class counts of its nodes; `rows` are those that it was trained on."""
    # the columns that the data chose may be others here, so that the scope says nothing of them
    own = model | {"nodes": nodes, "certificate": model["certificate"] | {"scope": ""}}
    found = structure(own)
    counts = list[list[int]]()
    if all(finding.verdict != "refuted" for finding in found):
        leaf, counts = count_nodes(model, nodes, rows)
        found = [node_counts(nodes, counts), *restrictions(own, counts, rows, leaf), *questions_asked(own, rows)]
        found += check_empty_cells(model, nodes, rows)
    trouble = next((finding.detail for finding in found if finding.verdict == "refuted"), "")
    return trouble or ("It claims something of its own." if any("impurity" in v for v in nodes) else ""), counts
