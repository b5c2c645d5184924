"""The restrictions that the parameters ask for: their words in the scope of a claim, and the tree counted again, one entry for each.

A new restriction is an entry of RESTRICTIONS. Nothing here is shared with the code that keeps the restrictions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from trainer.verify.findings import Finding, asked, columns_of, exact, items, recounted
from trainer.verify.rates import rates_of
from trainer.verify.rows import Rows

Model = dict[str, Any]
Held = tuple[str, bool, str]  # the claim, whether it holds, and what was counted


class Seen(NamedTuple):
    """The model, the class counts of its nodes, the training rows, and the leaf of each one."""

    model: Model
    counts: list[list[int]]
    rows: Rows
    leaf: np.ndarray


class Restriction(NamedTuple):
    """A parameter that leaves trees out of the search.

    `words` are what a scope says of it. `held` recounts it on the tree, a line for each thing that it asks for. `beside` are parameters that
    say how it is meant. `side`: one of those that all models of trees over yes/no questions take. `searched`: the plain search leaves out the
    same trees; where it does not, it searches nothing.
    """

    name: str
    words: Callable[[Model], Sequence[str]]
    held: Callable[[Seen], Sequence[Held]] = lambda seen: ()
    beside: str = ""
    side: bool = False
    searched: bool = True


def restrictions(model: Model, counts: list[list[int]], rows: Rows, leaf: np.ndarray) -> list[Finding]:
    """One finding for each restriction; `counts` are the class counts of the nodes, `leaf` the leaf of each training row."""
    seen = Seen(model, counts, rows, leaf)
    return [recounted(*held) for restriction in RESTRICTIONS for held in restriction.held(seen)]


def words_of(model: Model) -> list[str]:
    """Each restriction in words, in the order in which the file lists its parameters, which is that of the method."""
    words = {restriction.name: restriction.words for restriction in RESTRICTIONS}
    return [text for name in model["parameters"] if name in words for text in words[name](model)]


def not_searched(model: Model) -> str | None:
    """The first restriction that the plain search cannot keep, if any is asked for."""
    return next((r.name for r in RESTRICTIONS if not r.searched and asked(model, r.name)), None)


def _at_most(name: str, one: str, many: str) -> Callable[[Model], Sequence[str]]:
    def words(model: Model) -> list[str]:
        most = asked(model, name)
        return [] if most is None else [f"at most {most} {one if most == 1 else many}"]

    return words


def _at_least_share(name: str) -> Callable[[Model], Sequence[str]]:
    return lambda model: [] if asked(model, name) is None else [f"{name} ≥ {model['parameters'][name]}"]


def _few_leaves(seen: Seen) -> list[Held]:
    most, leaves = asked(seen.model, "max_leaves"), len(_leaves(seen.model))
    return [] if most is None else [("max_leaves", leaves <= most, f"{leaves} leaves")]


def _min_leaf_words(model: Model) -> list[str]:
    least = asked(model, "min_leaf") or 1
    return [f"at least {least} rows in a leaf"] if least > 1 else []


def _large_leaves(seen: Seen) -> list[Held]:
    least, leaves = int(asked(seen.model, "min_leaf") or 1), _leaves(seen.model)
    smallest = min(sum(seen.counts[v["id"]]) for v in leaves)
    held = smallest >= least or len(leaves) == 1
    return [("min_leaf", held, f"the smallest leaf has {smallest} rows")] if least > 1 else []


def _max_card_words(model: Model) -> list[str]:
    most = asked(model, "max_card") or 0
    return [f"at most {most} {'category' if most == 1 else 'categories'} in a subset or outside it"] if most > 0 else []


def _small_subsets(seen: Seen) -> list[Held]:
    most = int(asked(seen.model, "max_card") or 0)
    sizes = {c["name"]: len(c.get("categories") or ()) for c in seen.model["columns"]}
    few = [(len(set(s["categories"])), sizes[s["feature"]]) for s in _splits(seen.model) if s["kind"] == "subset"]
    held = all(min(a, n - a) <= most for a, n in few)
    return [("max_card", held, "Every subset was counted.")] if most > 0 else []


def _few_columns(seen: Seen) -> list[Held]:
    most, used = asked(seen.model, "max_columns"), len(_used(seen.model))
    return [] if most is None else [("max_columns", used <= most, f"{used} columns are used")]


def _none_forbidden(seen: Seen) -> list[Held]:
    banned = set(items(asked(seen.model, "forbidden")))
    held = not banned & _used(seen.model)
    return [("forbidden", held, "The columns of every question were checked.")] if banned else []


def _pair_words(model: Model) -> list[str]:
    pairs = [[name.strip() for name in text.split("+")] for text in items(asked(model, "forbidden_pairs"))]
    return [f"no path with both {' and '.join(pair)}" for pair in pairs]


def _pairs_apart(seen: Seen) -> list[Held]:
    found = []
    for text in items(asked(seen.model, "forbidden_pairs")):
        a, b = (name.strip() for name in text.split("+"))
        found.append((f"forbidden_pairs {text}", _apart(seen.model["nodes"], a, b, 0, ()), "Every path was checked."))
    return found


def _recall_words(model: Model) -> list[str]:
    shares = [text.rpartition(":") for text in items(asked(model, "recall"))]
    return [f"recall of {name.strip()} ≥ {share.strip()}" for name, _, share in shares]


def _recalls(seen: Seen) -> list[Held]:
    found, counts = [], seen.counts
    for text in items(asked(seen.model, "recall")):
        name, _, share = text.rpartition(":")
        k = seen.model["classes"].index(name.strip())
        right = sum(counts[v["id"]][k] for v in _leaves(seen.model) if v["class"] == name.strip())
        words = f"{right} of {counts[0][k]} rows of the class are right"
        found.append((f"recall {text}", right >= exact(share) * counts[0][k], words))
    return found


def _fairness_words(model: Model) -> list[str]:
    if not asked(model, "fairness"):
        return []
    given = model["parameters"]
    name = str(given["fairness_class"]).strip() or "the last class"
    among = f" among rows of {name}" if given["fairness"] == "opportunity" else ""
    groups, delta = str(given["fairness_column"]).strip(), given["fairness_delta"]
    return [f"{name} predicted at rates at most {delta} apart between groups of {groups}{among}"]


def _fair(seen: Seen) -> list[Held]:
    """Whether no two groups differ by more than allowed in how often the favoured class is predicted."""
    rates = rates_of(seen.model, seen.rows)
    if rates is None:
        return []
    name = seen.model["classes"][rates.label]
    said = np.array([v.get("class") == name for v in seen.model["nodes"]])[seen.leaf]
    apart = rates.apart(said, seen.rows.weights)
    return [("fairness", apart <= rates.delta, f"the rates of the groups differ by {float(apart):.6g}")]


def _monotone_words(model: Model) -> list[str]:
    ways = [text.rpartition(" ") for text in items(asked(model, "monotone"))]
    return [f"classes only {'rising' if way == 'up' else 'falling'} along {name.strip()}" for name, _, way in ways]


def _ordered(seen: Seen) -> list[Held]:
    found = []
    for text in items(asked(seen.model, "monotone")):
        name, _, direction = text.rpartition(" ")
        held = _monotone(seen.model, 0, name.strip(), falls=direction == "down")
        found.append((f"monotone {text}", held, "The leaves on both sides of every question were compared."))
    return found


def _balanced_words(model: Model) -> list[str]:
    return ["every path with as many questions as the depth allows"] if asked(model, "balanced") else []


def _min_node_words(model: Model) -> list[str]:
    least = asked(model, "min_node") or 2
    return [f"no question to fewer than {least} rows"] if least > 2 else []


def _min_gain_words(model: Model) -> list[str]:
    least = asked(model, "min_gain")
    return [f"each question lowering the impurity by at least {least} of the rows"] if least else []


def _leaves(model: Model) -> list[dict[str, Any]]:
    return [v for v in model["nodes"] if "split" not in v]


def _splits(model: Model) -> list[dict[str, Any]]:
    return [v["split"] for v in model["nodes"] if "split" in v]


def _used(model: Model) -> set[str]:
    return {name for split in _splits(model) for name in columns_of(split)}


def _apart(nodes: list[dict[str, Any]], a: str, b: str, v: int, path: tuple[str, ...]) -> bool:
    """True if no path from v asks a question about one of the two where `path` holds the other."""
    if "split" not in nodes[v]:
        return True
    own = columns_of(nodes[v]["split"])
    if (a in own and b in path) or (b in own and a in path):
        return False
    return all(_apart(nodes, a, b, nodes[v][side], (*path, *own)) for side in ("left", "right"))


def _labels(model: dict[str, Any], v: int) -> list[int]:
    node = model["nodes"][v]
    if "split" not in node:
        return [model["classes"].index(node["class"])]
    return _labels(model, node["left"]) + _labels(model, node["right"])


def _monotone(model: dict[str, Any], v: int, name: str, *, falls: bool) -> bool:
    """Below each question on the column no leaf on the side of smaller values has a higher class than one opposite."""
    node = model["nodes"][v]
    if "split" not in node:
        return True
    if columns_of(node["split"]) == [name]:
        low, high = (_labels(model, node[side]) for side in ("left", "right"))
        if max(high if falls else low) > min(low if falls else high):
            return False
    return all(_monotone(model, node[side], name, falls=falls) for side in ("left", "right"))


RESTRICTIONS = (
    Restriction("max_leaves", _at_most("max_leaves", "leaf", "leaves"), _few_leaves, side=True),
    Restriction("min_leaf", _min_leaf_words, _large_leaves),
    Restriction("max_card", _max_card_words, _small_subsets),
    Restriction("max_columns", _at_most("max_columns", "column", "columns"), _few_columns, side=True),
    Restriction(
        "forbidden",
        lambda model: [f"no question on {name}" for name in items(asked(model, "forbidden"))],
        _none_forbidden,
    ),
    Restriction("forbidden_pairs", _pair_words, _pairs_apart, side=True),
    Restriction("recall", _recall_words, _recalls, side=True),
    Restriction(
        "fairness",
        _fairness_words,
        _fair,
        beside="fairness_column fairness_class fairness_delta",
        side=True,
    ),
    Restriction("monotone", _monotone_words, _ordered, side=True),
    Restriction("balanced", _balanced_words, searched=False),
    Restriction("sensitivity", _at_least_share("sensitivity")),
    Restriction("specificity", _at_least_share("specificity")),
    Restriction("min_node", _min_node_words),
    Restriction("min_gain", _min_gain_words),
)
SIDE = " ".join(f"{r.name} {r.beside}".strip() for r in RESTRICTIONS if r.side)  # their parameters
