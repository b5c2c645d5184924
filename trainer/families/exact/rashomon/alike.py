"""Group splits that separate the rows of a subproblem alike.

One split represents its group and covers one required column of the group. A tree covers all required columns if each has a split of
its own. By Hall's theorem this holds if for every set of n columns at least n splits can cover one of them.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels.node import NodeView


class Credit(NamedTuple):
    """The part of a split in the key of its tree: `bit` is joined by "or", `places` is added."""

    bit: int
    places: int


def required_sets(must: int) -> list[frozenset[int]]:
    """Return the sets of two or more required columns, by their positions."""
    return [frozenset(s) for n in range(2, must + 1) for s in itertools.combinations(range(must), n)]


def alike_columns(node: NodeView, columns: list[int]) -> dict[int, set[int]]:
    """Return the columns of each group of alike splits of a node, by the first split of the group."""
    turned = (node.columns[:1] & np.uint64(1)).astype(bool)
    same = np.where(turned, node.columns ^ node.valid[:, None], node.columns)
    first_by_values: dict[bytes, int] = {}
    groups: dict[int, set[int]] = {}
    for question, answers in zip(node.features.tolist(), same.T, strict=True):
        first = first_by_values.setdefault(answers.tobytes(), question)
        groups.setdefault(first, set()).add(columns[question])
    return groups
