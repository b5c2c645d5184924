"""The restrictions that the parameters ask for, counted again on the tree."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from trainer.verify.findings import Finding, asked, exact, items, recounted
from trainer.verify.recount import Counts
from trainer.verify.rows import Rows
from trainer.verify.structure import columns_of

Held = tuple[str, bool, str]  # the claim, whether it holds, and what was counted


def restrictions(model: dict[str, Any], counts: Counts, rows: Rows, leaf: np.ndarray) -> list[Finding]:
    """One finding for each restriction; `counts` are the class counts of the nodes, `leaf` the leaf of each training row."""
    found = [*_sizes(model, counts), *_columns(model), *_shares(model, counts)]
    if asked(model, "fairness"):
        found.append(("fairness", *_fair(model, rows, leaf)))
    for text in items(asked(model, "monotone")):
        name, _, direction = text.rpartition(" ")
        holds = _monotone(model, 0, name.strip(), falls=direction == "down")
        found.append((f"monotone {text}", holds, "The leaves on both sides of every question were compared."))
    return [recounted(claim, holds, detail) for claim, holds, detail in found]


def _sizes(model: dict[str, Any], counts: Counts) -> list[Held]:
    leaves = [v for v in model["nodes"] if "split" not in v]
    found: list[Held] = []
    if (most := asked(model, "max_leaves")) is not None:
        found.append(("max_leaves", len(leaves) <= most, f"{len(leaves)} leaves"))
    if (least := int(asked(model, "min_leaf") or 1)) > 1:
        smallest = min(sum(counts[v["id"]]) for v in leaves)
        found.append(("min_leaf", smallest >= least or len(leaves) == 1, f"the smallest leaf has {smallest} rows"))
    if (most := int(asked(model, "max_card") or 0)) > 0:
        sizes = {c["name"]: len(c.get("categories") or ()) for c in model["columns"]}
        few = [(len(set(s["categories"])), sizes[s["feature"]]) for s in _splits(model) if s["kind"] == "subset"]
        found.append(("max_card", all(min(a, n - a) <= most for a, n in few), "Every subset was counted."))
    return found


def _columns(model: dict[str, Any]) -> list[Held]:
    used = {name for split in _splits(model) for name in columns_of(split)}
    found: list[Held] = []
    if (most := asked(model, "max_columns")) is not None:
        found.append(("max_columns", len(used) <= most, f"{len(used)} columns are used"))
    if banned := set(items(asked(model, "forbidden"))):
        found.append(("forbidden", not banned & used, "The columns of every question were checked."))
    for text in items(asked(model, "forbidden_pairs")):
        a, b = (name.strip() for name in text.split("+"))
        found.append((f"forbidden_pairs {text}", _apart(model["nodes"], a, b, 0, ()), "Every path was checked."))
    return found


def _shares(model: dict[str, Any], counts: Counts) -> list[Held]:
    found: list[Held] = []
    for text in items(asked(model, "recall")):
        name, _, share = text.rpartition(":")
        k = model["classes"].index(name.strip())
        right = sum(counts[v["id"]][k] for v in model["nodes"] if "split" not in v and v["class"] == name.strip())
        words = f"{right} of {counts[0][k]} rows of the class are right"
        found.append((f"recall {text}", right >= exact(share) * counts[0][k], words))
    return found


def _splits(model: dict[str, Any]) -> list[dict[str, Any]]:
    return [v["split"] for v in model["nodes"] if "split" in v]


def _apart(nodes: list[dict[str, Any]], a: str, b: str, v: int, path: tuple[str, ...]) -> bool:
    """True if no path from v asks a question about one of the two where `path` holds the other."""
    if "split" not in nodes[v]:
        return True
    own = columns_of(nodes[v]["split"])
    if (a in own and b in path) or (b in own and a in path):
        return False
    return all(_apart(nodes, a, b, nodes[v][side], (*path, *own)) for side in ("left", "right"))


def _fair(model: dict[str, Any], rows: Rows, leaf: np.ndarray) -> tuple[bool, str]:
    """Whether no two groups differ by more than allowed in how often the favoured class is predicted."""
    names = [c["name"] for c in model["columns"]]
    group = rows.columns[names.index(str(asked(model, "fairness_column")).strip())]
    present = np.unique(rows.labels)
    name = str(asked(model, "fairness_class") or "").strip() or model["classes"][int(present[-1])]
    said = np.array([v.get("class") == name for v in model["nodes"]])[leaf]
    among = np.ones(len(rows), bool)
    if asked(model, "fairness") == "opportunity":
        among = rows.labels == model["classes"].index(name)
    rates = []
    for value in np.unique(group[among]):
        own = among & (group == value)
        rates.append(Fraction(int(rows.weights[own & said].sum()), int(rows.weights[own].sum())))
    apart = max(rates) - min(rates) if rates else Fraction(0)
    return apart <= exact(
        model["parameters"]["fairness_delta"]
    ), f"the rates of the groups differ by {float(apart):.6g}"


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
