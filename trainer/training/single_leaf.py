"""Explain why a tree has no question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.certificate import Guarantee, Status
from trainer.constraints.text import split_items
from trainer.errors import ParameterError
from trainer.methods.base import Method, Settings
from trainer.registry import METHODS
from trainer.tree.file import ModelFile
from trainer.tree.numbers import THIN

ENDED = (Status.TIME_LIMIT, Status.MEMORY_LIMIT, Status.CANCELLED)
NAMED = 3  # limit on the restrictions of a setting that are listed


def reason(file: ModelFile) -> str:
    """Return one or two sentences about a tree of one leaf; "" for other trees."""
    root = file.tree.nodes[0]
    if not root.is_leaf:
        return ""
    if sum(n > 0 for n in root.counts) < 2 and not file.certificate.get("costs"):
        return "All training rows have the same class, so there is nothing to ask."
    return forbidding(file) or _not_worth_it(file)


def forbidding(file: ModelFile) -> str:
    """Return a sentence about the setting that allows only one leaf; "" if none does."""
    settings = file.parameters
    rows = file.tree.nodes[0].rows
    leaf = int(settings.get("min_leaf") or 1)
    node = int(settings.get("min_node") or 1)
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
    if {c.name for c in file.tree.schema} <= set(split_items(settings.get("forbidden"))):
        return "The setting forbidden names every column, so there is none to ask."
    return ""


def _not_worth_it(file: ModelFile) -> str:
    certificate = file.certificate
    settings = file.parameters
    limits = _limits(file)
    within = " that keeps the wishes" if certificate.get("wishes") else ""
    within += f" within the settings ({limits})" if limits else ""
    if certificate.get("status") in ENDED:
        return "The search ended before it found a question that improves the objective."
    if certificate.get("guarantee") != Guarantee.TREE:
        return f"No question was kept: either none{within} makes the classes purer, or pruning removed it{_price_words(settings, ('pruning',))}."
    if certificate.get("status") != Status.OPTIMAL:
        return "The search ended before it found a question that improves the objective."
    weighted = settings.get("class_weight") == "balanced" or str(settings.get("negative_weight") or "1") != "1"
    unequal = certificate.get("goal") or weighted or (file.rows or {}).get("weights")
    if str(certificate.get("leaf_penalty") or "0") != "0":
        gain = "improves the objective enough"
        least = ""
        penalty = settings.get("leaf_penalty")
        if isinstance(penalty, (int, float)) and penalty and (certificate.get("costs") or not unequal):
            gain = "saves enough cost" if certificate.get("costs") else "gets enough more rows right"
            what = "save {}% of what one answer costs" if certificate.get("costs") else "gain {}% of the rows"
            least = f": it must {what.format(f'{100 * penalty:g}{THIN}')}"
        return f"No question{within} {gain} to pay for a second leaf{least}{_price_words(settings)}."
    if certificate.get("coefficient_penalty"):
        return f"No question{within} improves the objective enough to pay for its columns (coefficient_penalty)."
    if certificate.get("costs"):
        return f"No tree{within} costs less than a single answer."
    if unequal:
        return f"No tree{within} has a better objective than a single leaf; rows do not all count alike in it."
    return f"No tree{within} gets more training rows right than a single leaf."


def _limits(file: ModelFile) -> str:
    """Return the restrictions of a tree by the settings, without its depth, in words with the names of the settings."""
    method = next((m for m in METHODS if m.id == file.method), None)
    if method is None:
        return ""
    try:
        settings = method.settings({name: v for name, v in file.parameters.items() if method.parameter(name)})
    except ParameterError:  # the file has settings of another version
        return ""
    return "; ".join(_limits_of(method, settings))


def _limits_of(method: Method, settings: Settings) -> list[str]:
    limits = []
    for p in method.parameters:
        words = p.restricts(settings) if p.restricts is not None and p.name != "depth" else []
        if words:
            more = f" and {len(words) - NAMED} more" if len(words) > NAMED else ""
            limits.append(f"{p.name}: {', '.join(words[:NAMED])}{more}")
    return limits


def _price_words(settings: Mapping[str, Any], names: Sequence[str] = ("leaf_penalty", "paper_lambda")) -> str:
    """Return the prices of a leaf that the settings name, in brackets; "" without prices."""
    prices = [name for name in names if str(settings.get(name) or 0) not in ("0", "0.0")]
    return f" ({', '.join(f'{name} {settings[name]}' for name in prices)})" if prices else ""
