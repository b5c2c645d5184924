"""Subsets as yes/no questions: a complete topology has the same trees as the exact search over these questions, which proves the bound.

A column of k categories has 2^(k-1) - 1 questions, one for each subset and its complement, so this is for columns of few categories. The
numbers of the questions are defined in docs/proof-format.md.
"""

from __future__ import annotations

import numpy as np

from trainer.dtypes import BitArray
from trainer.families.odt.groups import Groups

MOST = 1000  # questions; the checker counts their pairs


def count(groups: Groups) -> int:
    """How many questions there are, without a look at `max_card`."""
    return sum(
        int(size) - 1 if ordered else (1 << (int(size) - 1)) - 1
        for size, ordered in zip(groups.sizes, groups.ordered, strict=True)
    )


def questions(groups: Groups) -> BitArray:
    """The answers uint8 (n, m): of a categorical column its subsets without the first category, by their bits; of bins "above the i-th?"."""
    found = [np.zeros((len(groups.y), 0), np.uint8)]
    for codes, size, ordered in zip(groups.cat.T, groups.sizes.tolist(), groups.ordered, strict=True):
        if ordered:
            table = np.arange(size)[:, None] > np.arange(size - 1)
        else:
            masks = np.arange(1, 1 << (size - 1))
            table = np.arange(size)[:, None] > 0
            table = table & ((masks << 1 >> np.arange(size)[:, None]) & 1).astype(bool)
            if groups.card:
                inside = table.sum(axis=0)
                table = table[:, np.minimum(inside, size - inside) <= groups.card]
        found.append(table.astype(np.uint8)[codes])
    return np.ascontiguousarray(np.concatenate(found, axis=1))
