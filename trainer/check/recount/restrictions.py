"""The restrictions that the parameters ask for: their words in the scope of a claim, and the tree counted again, one entry for each.

A new restriction is an entry of RESTRICTIONS. Nothing here is shared with the code that keeps the restrictions.
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
from trainer.check.recount.findings import Finding, columns_of, recounted
from trainer.check.recount.tree import branches, leaves, places, under, used_columns

Model = dict[str, Any]
Words = Callable[[Model], Sequence[str]]
Held = tuple[str, bool, str]  # the claim, whether it holds, and what was counted


class RestrictionData(NamedTuple):
    """The model, the class counts of its nodes, the training rows, and the leaf of each one."""

    model: Model
    counts: list[list[int]]
    rows: ModelTable
    leaf: np.ndarray


class Restriction(NamedTuple):
    """A parameter that leaves trees out of the search.

    `words` are what a scope says of it. `held` recounts it on the tree, a line for each thing that it asks for. `beside` are parameters that
    say how it is meant. `side`: one of those that all models of trees over yes/no questions take. `searched`: the plain search leaves out the
    same trees; where it does not, it searches nothing.
    """

    name: str
    words: Words
    held: Callable[[RestrictionData], Sequence[Held]] = lambda seen: ()
    beside: str = ""
    side: bool = False
    searched: bool = True


def restrictions(model: Model, counts: list[list[int]], rows: ModelTable, leaf: np.ndarray) -> list[Finding]:
    """One finding for each restriction; `counts` are the class counts of the nodes, `leaf` the leaf of each training row."""
    seen = RestrictionData(model, counts, rows, leaf)
    return [recounted(*held) for restriction in RESTRICTIONS for held in restriction.held(seen)]


def words_of(model: Model) -> list[str]:
    """Each restriction in words, in the order in which the file lists its parameters, which is that of the method."""
    words = {restriction.name: restriction.words for restriction in RESTRICTIONS}
    return [text for name in model["parameters"] if name in words for text in words[name](model)]


def not_searched(model: Model) -> str | None:
    """The first restriction that the plain search cannot keep, if any is asked for."""
    return next((r.name for r in RESTRICTIONS if not r.searched and active_parameter(model, r.name)), None)


# -- words of a scope --------------------------------------------------------------------------------------------------


def _at_most(name: str, one: str, many: str, what: str = "", none: int | None = None) -> Words:
    """Words for a largest number; `none` asks for nothing."""

    def words(model: Model) -> list[str]:
        most = active_parameter(model, name)
        return [] if most in (None, none) else [f"at most {most} {one if most == 1 else many}{what}"]

    return words


def _minimum_words(name: str, least: int, words: str) -> Words:
    """Words for a smallest number, with its place in them; up to `least` it asks for nothing."""
    return lambda model: (
        [words.format(active_parameter(model, name))] if (active_parameter(model, name) or least) > least else []
    )


def _item_words(listed: Callable[[Model], list[tuple[str, str]]], words: str) -> Words:
    """Words for each thing that a parameter lists, with the two parts of it in them."""
    return lambda model: [words.format(*one) for one in listed(model)]


def _at_least_share(name: str) -> Words:
    return lambda model: [] if active_parameter(model, name) is None else [f"{name} ≥ {model['parameters'][name]}"]


def _fairness_words(model: Model) -> list[str]:
    if not active_parameter(model, "fairness"):
        return []
    given = model["parameters"]
    name = str(given["fairness_class"]).strip() or "the last class"
    among = f" among rows of {name}" if given["fairness"] == "opportunity" else ""
    groups = str(given["fairness_column"]).strip()
    delta = given["fairness_delta"]
    return [f"{name} predicted at rates at most {delta} apart between groups of {groups}{among}"]


# -- counted again on the tree -----------------------------------------------------------------------------------------


def _few_leaves(seen: RestrictionData) -> list[Held]:
    most = active_parameter(seen.model, "max_leaves")
    own = len(leaves(seen.model["nodes"]))
    return [] if most is None else [("max_leaves", own <= most, f"{own} leaves")]


def _large_leaves(seen: RestrictionData) -> list[Held]:
    least = int(active_parameter(seen.model, "min_leaf") or 1)
    own = leaves(seen.model["nodes"])
    smallest = min(sum(seen.counts[v["id"]]) for v in own)
    held = smallest >= least or len(own) == 1
    return [("min_leaf", held, f"the smallest leaf has {smallest} rows")] if least > 1 else []


def _large_nodes(seen: RestrictionData) -> list[Held]:
    least = int(active_parameter(seen.model, "min_node") or 2)
    smallest = min((sum(seen.counts[v["id"]]) for v in branches(seen.model["nodes"])), default=least)
    return [("min_node", smallest >= least, f"the smallest question has {smallest} rows")] if least > 2 else []


def _small_subsets(seen: RestrictionData) -> list[Held]:
    most = int(active_parameter(seen.model, "max_card") or 0)
    sizes = {c["name"]: len(c.get("categories") or ()) for c in seen.model["columns"]}
    asks = [v["split"] for v in branches(seen.model["nodes"]) if v["split"]["kind"] == "subset"]
    few = [(len(set(split["categories"])), sizes[split["feature"]]) for split in asks]
    held = all(min(a, n - a) <= most for a, n in few)
    return [("max_card", held, "Every subset was counted.")] if most > 0 else []


def _few_columns(seen: RestrictionData) -> list[Held]:
    most = active_parameter(seen.model, "max_columns")
    own = len(used_columns(seen.model["nodes"]))
    return [] if most is None else [("max_columns", own <= most, f"{own} columns are used")]


def _none_forbidden(seen: RestrictionData) -> list[Held]:
    banned = set(split_items(active_parameter(seen.model, "forbidden")))
    held = not banned & used_columns(seen.model["nodes"])
    return [("forbidden", held, "The columns of every question were checked.")] if banned else []


def _pairs_apart(seen: RestrictionData) -> list[Held]:
    """Whether no path asks a question about one of two columns below one about the other."""
    found = places(seen.model["nodes"])
    asks = {place: columns_of(v["split"]) for place, v in found.items() if "split" in v}
    both = [(asks[place[:k]], own) for place, own in asks.items() for k in range(len(place))]
    held = [
        not any((a in one and b in two) or (b in one and a in two) for one, two in both)
        for a, b in forbidden_column_pairs(seen.model)
    ]
    texts = split_items(active_parameter(seen.model, "forbidden_pairs"))
    return [(f"forbidden_pairs {text}", own, "Every path was checked.") for text, own in zip(texts, held, strict=True)]


def _recalls(seen: RestrictionData) -> list[Held]:
    found = []
    counts = seen.counts
    for text, (name, share) in zip(
        split_items(active_parameter(seen.model, "recall")), minimum_recalls(seen.model), strict=True
    ):
        k = seen.model["classes"].index(name)
        right = sum(counts[v["id"]][k] for v in leaves(seen.model["nodes"]) if v["class"] == name)
        words = f"{right} of {counts[0][k]} rows of the class are right"
        found.append((f"recall {text}", right >= read_fraction(share) * counts[0][k], words))
    return found


def _fair(seen: RestrictionData) -> list[Held]:
    """Whether no two groups differ by more than allowed in how often the favoured class is predicted."""
    rates = rates_of(seen.model, seen.rows)
    if rates is None:
        return []
    name = seen.model["classes"][rates.label]
    said = np.array([v.get("class") == name for v in seen.model["nodes"]])[seen.leaf]
    counts = [int(seen.rows.weights[said & (rates.group == g)].sum()) for g in range(len(rates.sizes))]
    shares = [Fraction(count, size) for count, size in zip(counts, rates.sizes, strict=True)]
    apart = max(shares) - min(shares) if shares else Fraction(0)
    return [("fairness", apart <= rates.delta, f"the rates of the groups differ by {float(apart):.6g}")]


def _is_monotone(seen: RestrictionData) -> list[Held]:
    """Below each question on a column no leaf on the side of smaller values has a higher class than one opposite."""
    found = places(seen.model["nodes"])
    held = []
    for text, (name, way) in zip(
        split_items(active_parameter(seen.model, "monotone")), monotone_columns(seen.model), strict=True
    ):
        splits = {place: v["split"] for place, v in found.items() if "split" in v}
        asks = [p for p, split in splits.items() if columns_of(split) == [name] and split["kind"] != "missing"]
        sides = [[_labels(seen.model, found, place + letter) for letter in "yn"] for place in asks]
        rises = all(max(low) <= min(high) for low, high in (own[::-1] if way == "falling" else own for own in sides))
        held.append((f"monotone {text}", rises, "The leaves on both sides of every question were compared."))
    return held


def _labels(model: Model, found: dict[str, dict[str, Any]], place: str) -> list[int]:
    """The classes of the leaves at and below a place."""
    return [model["classes"].index(v["class"]) for v in leaves(list(under(found, place).values()))]


RESTRICTIONS = (
    Restriction("max_leaves", _at_most("max_leaves", "leaf", "leaves"), _few_leaves, side=True),
    Restriction("min_leaf", _minimum_words("min_leaf", 1, "at least {} rows in a leaf"), _large_leaves),
    Restriction(
        "max_card", _at_most("max_card", "category", "categories", " in a subset or outside it", 0), _small_subsets
    ),
    Restriction("max_columns", _at_most("max_columns", "column", "columns"), _few_columns, side=True),
    Restriction(
        "forbidden",
        lambda model: [f"no question on {name}" for name in split_items(active_parameter(model, "forbidden"))],
        _none_forbidden,
    ),
    Restriction(
        "forbidden_pairs", _item_words(forbidden_column_pairs, "no path with both {} and {}"), _pairs_apart, side=True
    ),
    Restriction("recall", _item_words(minimum_recalls, "recall of {} ≥ {}"), _recalls, side=True),
    Restriction("fairness", _fairness_words, _fair, beside="fairness_column fairness_class fairness_delta", side=True),
    Restriction("monotone", _item_words(monotone_columns, "classes only {1} along {0}"), _is_monotone, side=True),
    Restriction(
        "balanced",
        _minimum_words("balanced", 0, "every path with as many questions as the depth allows"),
        searched=False,
    ),
    Restriction("sensitivity", _at_least_share("sensitivity")),
    Restriction("specificity", _at_least_share("specificity")),
    Restriction("min_node", _minimum_words("min_node", 2, "no question to fewer than {} rows"), _large_nodes),
    Restriction(
        "min_gain", _minimum_words("min_gain", 0, "each question lowering the impurity by at least {} of the rows")
    ),
)
SIDE = " ".join(f"{r.name} {r.beside}".strip() for r in RESTRICTIONS if r.side)  # their parameters
