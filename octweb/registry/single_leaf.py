"""Why a tree has no question: the setting that forbids one, or what the search found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.certificate import Guarantee, Status
from trainer.tree.file import ModelFile

ENDED = (Status.TIME_LIMIT, Status.MEMORY_LIMIT, Status.CANCELLED)


def reason(file: ModelFile) -> str:
    """One or two sentences for a tree of one leaf; empty for others."""
    root = file.tree.nodes[0]
    if not root.is_leaf:
        return ""
    if sum(n > 0 for n in root.counts) < 2:
        return "All training rows have the same class, so there is nothing to ask."
    return _forbidden(file.parameters, root.rows) or _not_worth_it(file)


def _forbidden(settings: Mapping[str, Any], rows: int) -> str:
    """The setting that leaves room for one leaf only."""
    leaf, node = int(settings.get("min_leaf") or 1), int(settings.get("min_node") or 1)
    if settings.get("depth") == 0:
        return "The setting depth is 0, so no question is allowed."
    if settings.get("max_leaves") == 1:
        return "The setting max_leaves is 1, so no question is allowed."
    if 2 * leaf > rows:
        return f"The setting min_leaf asks for {leaf:,} rows in every leaf: two leaves need {2 * leaf:,} rows, and there are {rows:,}."
    if node > rows:
        return f"The setting min_node allows questions only to groups of at least {node:,} rows, and there are {rows:,} rows."
    if settings.get("max_columns") == 0:
        return "The setting max_columns is 0, so no column may be used."
    return ""


def _not_worth_it(file: ModelFile) -> str:
    certificate, settings = file.certificate, file.parameters
    leaf = int(settings.get("min_leaf") or 1)
    within = f" that leaves {leaf:,} rows on each side" if leaf > 1 else ""
    if certificate.get("status") in ENDED:
        return "The search ended before it found a question that improves the objective."
    if certificate.get("guarantee") != Guarantee.TREE:
        return f"No question{within} was kept: either no question makes the classes purer within the settings, or pruning removed it."
    if certificate.get("status") != Status.OPTIMAL:
        return "The search ended before it found a question that improves the objective."
    if str(certificate.get("leaf_penalty") or "0") != "0":
        return f"No question{within} improves the objective enough to pay for a second leaf (leaf_penalty)."
    if certificate.get("coefficient_penalty"):
        return f"No question{within} improves the objective enough to pay for its columns (coefficient_penalty)."
    if certificate.get("goal") or settings.get("class_weight") == "balanced" or (file.rows or {}).get("weights"):
        return f"No tree{within} that the settings allow has a better objective than a single leaf; rows do not all count alike in it."
    return f"No tree{within} that the settings allow gets more training rows right than a single leaf."
