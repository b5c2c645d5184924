"""Questions that separate the rows of a place alike, and the required columns that any of them asks.

One question represents all that separate the rows alike. It can ask one required column among theirs, at each place another one. A tree
asks all required columns if each has a place of its own. By Hall's theorem that holds if every set of n of them meets n places at least.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels.node import NodeView


class Credit(NamedTuple):
    """What a question adds to the key of its tree: `bit` is joined, `places` is added."""

    bit: int
    places: int


def required_sets(must: int) -> list[frozenset[int]]:
    """Return the sets of two or more required columns, by their positions."""
    return [frozenset(s) for n in range(2, must + 1) for s in itertools.combinations(range(must), n)]


def alike_columns(node: NodeView, columns: list[int]) -> dict[int, set[int]]:
    """Return for the first of each group of alike questions of a node the columns that the group asks."""
    turned = (node.columns[:1] & np.uint64(1)).astype(bool)
    same = np.where(turned, node.columns ^ node.valid[:, None], node.columns)
    found: dict[bytes, int] = {}
    groups: dict[int, set[int]] = {}
    for question, answers in zip(node.features.tolist(), same.T, strict=True):
        first = found.setdefault(answers.tobytes(), question)
        groups.setdefault(first, set()).add(columns[question])
    return groups
