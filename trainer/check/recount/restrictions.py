"""Check restrictions of the parameters, and write their words in a scope.

A new restriction is an entry of RESTRICTIONS. The code shares nothing with training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from trainer.check.proof.model import (
    ModelTable,
    active_parameter,
    forbidden_column_pairs,
    minimum_recalls,
    monotone_columns,
    read_fraction,
    split_items,
)
from trainer.check.proof.space.limits import rates_of
from trainer.check.recount.findings import Finding, columns_of, recount_finding
from trainer.check.recount.tree import branches, leaves, places, under, used_columns

Model = dict[str, Any]
Words = Callable[[Model], Sequence[str]]
RestrictionCheck = tuple[str, bool, str]  # the claim, whether it holds, and the count that shows it


class RestrictionData(NamedTuple):
    """The model, the class counts of its nodes, the training rows, and the leaf of each row."""

    model: Model
    counts: list[list[int]]
    rows: ModelTable
    leaf: np.ndarray


class Restriction(NamedTuple):
    """A parameter that excludes trees from the search.

    `words` write it into a scope. `check` recounts it on the tree, once for each of its items. `beside` names parameters that qualify it.
    With `side`, all models of trees over yes/no questions accept it. Unless `searched`, the plain search cannot keep it and does not run.
    """

    name: str
    words: Words
    check: Callable[[RestrictionData], Sequence[RestrictionCheck]] = lambda data: ()
    beside: str = ""
    side: bool = False
    searched: bool = True


def restrictions(model: Model, counts: list[list[int]], rows: ModelTable, leaf: np.ndarray) -> list[Finding]:
    """Check each restriction; `counts` are the class counts of the nodes, `leaf` the leaf of each training row."""
    data = RestrictionData(model, counts, rows, leaf)
    return [recount_finding(*outcome) for restriction in RESTRICTIONS for outcome in restriction.check(data)]


def counted_restrictions(model: Model, counts: list[list[int]]) -> list[Finding]:
    """Check each restriction of a model from counts, which supports only those of OF_COUNTS."""
    nothing = np.zeros(0, np.int64)
    data = RestrictionData(model, counts, ModelTable([], nothing, nothing, nothing), nothing)
    findings = []
    for restriction in RESTRICTIONS:
        if restriction.name in OF_COUNTS:
            findings += [recount_finding(*outcome) for outcome in restriction.check(data)]
        elif restriction.name in model["parameters"] and restriction.words(model):
            words = "Counts do not show this restriction, and no training from counts has it."
            findings.append(recount_finding(restriction.name, False, words))
    return findings


def words_of(model: Model) -> list[str]:
    """Write each restriction in words, in the order of the parameters of the file."""
    words = {restriction.name: restriction.words for restriction in RESTRICTIONS}
    return [text for name in model["parameters"] if name in words for text in words[name](model)]


def not_searched(model: Model) -> str | None:
    """Return the first active restriction that the plain search cannot keep, if there is one."""
    return next((r.name for r in RESTRICTIONS if not r.searched and active_parameter(model, r.name)), None)


# -- words of a scope --------------------------------------------------------------------------------------------------


def _maximum_words(name: str, one: str, many: str, what: str = "", none: int | None = None) -> Words:
    """Return words for a maximum; the value `none` is not a restriction."""

    def words(model: Model) -> list[str]:
        most = active_parameter(model, name)
        if most in (None, none):
            return []
        return [f"at most {most} {one if most == 1 else many}{what}"]

    return words


def _minimum_words(name: str, least: int, words: str) -> Words:
    """Return words for a minimum, with its value at `{}`; values up to `least` do not restrict."""
    return lambda model: (
        [words.format(active_parameter(model, name))] if (active_parameter(model, name) or least) > least else []
    )


def _item_words(listed: Callable[[Model], list[tuple[str, str]]], words: str) -> Words:
    """Return words for each item of a parameter, with its two parts at `{}`."""
    return lambda model: [words.format(*one) for one in listed(model)]


def _share_words(name: str) -> Words:
    return lambda model: [] if active_parameter(model, name) is None else [f"{name} ≥ {model['parameters'][name]}"]


def _fairness_words(model: Model) -> list[str]:
    if not active_parameter(model, "fairness"):
        return []
    parameters = model["parameters"]
    name = str(parameters["fairness_class"]).strip() or "the last class"
    among = f" among rows of {name}" if parameters["fairness"] == "opportunity" else ""
    groups = str(parameters["fairness_column"]).strip()
    delta = parameters["fairness_delta"]
    return [f"{name} predicted at rates at most {delta} apart between groups of {groups}{among}"]


# -- recounts on the tree ----------------------------------------------------------------------------------------------


def _check_max_leaves(data: RestrictionData) -> list[RestrictionCheck]:
    most = active_parameter(data.model, "max_leaves")
    size = len(leaves(data.model["nodes"]))
    return [] if most is None else [("max_leaves", size <= most, f"{size} leaves")]


def _check_min_leaf(data: RestrictionData) -> list[RestrictionCheck]:
    least = int(active_parameter(data.model, "min_leaf") or 1)
    tree_leaves = leaves(data.model["nodes"])
    smallest = min(sum(data.counts[v["id"]]) for v in tree_leaves)
    holds = smallest >= least or len(tree_leaves) == 1
    return [("min_leaf", holds, f"the smallest leaf has {smallest} rows")] if least > 1 else []


def _check_min_node(data: RestrictionData) -> list[RestrictionCheck]:
    least = int(active_parameter(data.model, "min_node") or 2)
    smallest = min((sum(data.counts[v["id"]]) for v in branches(data.model["nodes"])), default=least)
    return [("min_node", smallest >= least, f"the smallest question has {smallest} rows")] if least > 2 else []


def _check_max_card(data: RestrictionData) -> list[RestrictionCheck]:
    most = int(active_parameter(data.model, "max_card") or 0)
    sizes = {c["name"]: len(c.get("categories") or ()) for c in data.model["columns"]}
    asks = [v["split"] for v in branches(data.model["nodes"]) if v["split"]["kind"] == "subset"]
    few = [(len(set(split["categories"])), sizes[split["feature"]]) for split in asks]
    holds = all(min(a, n - a) <= most for a, n in few)
    return [("max_card", holds, "Every subset was counted.")] if most > 0 else []


def _check_max_columns(data: RestrictionData) -> list[RestrictionCheck]:
    most = active_parameter(data.model, "max_columns")
    used = len(used_columns(data.model["nodes"]))
    return [] if most is None else [("max_columns", used <= most, f"{used} columns are used")]


def _check_forbidden(data: RestrictionData) -> list[RestrictionCheck]:
    banned = set(split_items(active_parameter(data.model, "forbidden")))
    holds = not banned & used_columns(data.model["nodes"])
    return [("forbidden", holds, "The columns of every question were checked.")] if banned else []


def _check_forbidden_pairs(data: RestrictionData) -> list[RestrictionCheck]:
    """Check that no path asks both columns of a forbidden pair."""
    nodes = places(data.model["nodes"])
    asks = {place: columns_of(v["split"]) for place, v in nodes.items() if "split" in v}
    both = [(asks[place[:k]], columns) for place, columns in asks.items() for k in range(len(place))]
    holds = [
        not any((a in one and b in two) or (b in one and a in two) for one, two in both)
        for a, b in forbidden_column_pairs(data.model)
    ]
    texts = split_items(active_parameter(data.model, "forbidden_pairs"))
    return [
        (f"forbidden_pairs {text}", columns, "Every path was checked.")
        for text, columns in zip(texts, holds, strict=True)
    ]


def _check_recalls(data: RestrictionData) -> list[RestrictionCheck]:
    checks = []
    counts = data.counts
    for text, (name, share) in zip(
        split_items(active_parameter(data.model, "recall")), minimum_recalls(data.model), strict=True
    ):
        k = data.model["classes"].index(name)
        right = sum(counts[v["id"]][k] for v in leaves(data.model["nodes"]) if v["class"] == name)
        words = f"{right} of {counts[0][k]} rows of the class are right"
        checks.append((f"recall {text}", right >= read_fraction(share) * counts[0][k], words))
    return checks


def _check_fairness(data: RestrictionData) -> list[RestrictionCheck]:
    """Check that the rates of the favoured class differ between groups by at most delta."""
    rates = rates_of(data.model, data.rows)
    if rates is None:
        return []
    name = data.model["classes"][rates.label]
    favoured = np.array([v.get("class") == name for v in data.model["nodes"]])[data.leaf]
    counts = [int(data.rows.weights[favoured & (rates.group == g)].sum()) for g in range(len(rates.sizes))]
    shares = [Fraction(count, size) for count, size in zip(counts, rates.sizes, strict=True)]
    apart = max(shares) - min(shares) if shares else Fraction(0)
    return [("fairness", apart <= rates.delta, f"the rates of the groups differ by {float(apart):.6g}")]


def _check_monotone(data: RestrictionData) -> list[RestrictionCheck]:
    """Check that below each question on a monotone column the leaves of smaller values have no higher class."""
    nodes = places(data.model["nodes"])
    checks = []
    for text, (name, direction) in zip(
        split_items(active_parameter(data.model, "monotone")), monotone_columns(data.model), strict=True
    ):
        splits = {place: v["split"] for place, v in nodes.items() if "split" in v}
        asks = [p for p, split in splits.items() if columns_of(split) == [name] and split["kind"] != "missing"]
        sides = [[_labels(data.model, nodes, place + letter) for letter in "yn"] for place in asks]
        rises = all(
            max(low) <= min(high) for low, high in (side[::-1] if direction == "falling" else side for side in sides)
        )
        checks.append((f"monotone {text}", rises, "The leaves on both sides of every question were compared."))
    return checks


def _labels(model: Model, nodes: dict[str, dict[str, Any]], place: str) -> list[int]:
    """Return the classes of the leaves at and below a place."""
    return [model["classes"].index(v["class"]) for v in leaves(list(under(nodes, place).values()))]


RESTRICTIONS = (
    Restriction("max_leaves", _maximum_words("max_leaves", "leaf", "leaves"), _check_max_leaves, side=True),
    Restriction("height", lambda model: [f"subtrees of height ≤ {model['parameters']['height']}"]),
    Restriction("min_leaf", _minimum_words("min_leaf", 1, "at least {} rows in a leaf"), _check_min_leaf),
    Restriction(
        "max_card",
        _maximum_words("max_card", "category", "categories", " in a subset or outside it", 0),
        _check_max_card,
    ),
    Restriction("max_columns", _maximum_words("max_columns", "column", "columns"), _check_max_columns, side=True),
    Restriction(
        "forbidden",
        lambda model: [f"no question on {name}" for name in split_items(active_parameter(model, "forbidden"))],
        _check_forbidden,
    ),
    Restriction(
        "forbidden_pairs",
        _item_words(forbidden_column_pairs, "no path with both {} and {}"),
        _check_forbidden_pairs,
        side=True,
    ),
    Restriction("recall", _item_words(minimum_recalls, "recall of {} ≥ {}"), _check_recalls, side=True),
    Restriction(
        "fairness", _fairness_words, _check_fairness, beside="fairness_column fairness_class fairness_delta", side=True
    ),
    Restriction("monotone", _item_words(monotone_columns, "classes only {1} along {0}"), _check_monotone, side=True),
    Restriction(
        "balanced",
        _minimum_words("balanced", 0, "every path with as many questions as the depth allows"),
        searched=False,
    ),
    Restriction("sensitivity", _share_words("sensitivity")),
    Restriction("specificity", _share_words("specificity")),
    Restriction("min_node", _minimum_words("min_node", 2, "no question to fewer than {} rows"), _check_min_node),
    Restriction(
        "min_gain", _minimum_words("min_gain", 0, "each question lowering the impurity by at least {} of the rows")
    ),
)
OF_COUNTS = ("max_leaves", "min_leaf", "forbidden", "forbidden_pairs", "recall")  # restrictions that counts show
# names of the parameters that state side constraints
SIDE = " ".join(f"{r.name} {r.beside}".strip() for r in RESTRICTIONS if r.side)
