"""List leaves, branches and places of a tree in a file.

A place is a word over y and n, the answers from the root; y is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainer.check.recount.findings import columns_of

Nodes = Sequence[dict[str, Any]]
LETTERS = {"y": "left", "n": "right"}  # letters of a path from the root, and the child that each leads to


def leaves(nodes: Nodes) -> list[dict[str, Any]]:
    return [v for v in nodes if "split" not in v]


def branches(nodes: Nodes) -> list[dict[str, Any]]:
    return [v for v in nodes if "split" in v]


def used_columns(nodes: Nodes) -> set[str]:
    """Return the names of the columns that a tree uses."""
    return {name for v in branches(nodes) for name in columns_of(v["split"])}


def places(nodes: Nodes) -> dict[str, dict[str, Any]]:
    """Return the node at each place, parents before their children."""
    place = {0: ""}
    for v in branches(nodes):
        place |= {v[side]: place[v["id"]] + letter for letter, side in LETTERS.items()}
    return {place[v["id"]]: v for v in nodes}


def under(nodes: dict[str, dict[str, Any]], place: str) -> dict[str, dict[str, Any]]:
    """Return the nodes at and below a place, by their places relative to it."""
    return {word[len(place) :]: v for word, v in nodes.items() if word.startswith(place)}
