"""Deal groups of rows into parts with even shares of each class."""

from __future__ import annotations

import itertools

import numpy as np

from trainer.dtypes import CountArray, FloatArray

MAX_STEPS = 500  # limit on the steps of the local improvement
MAX_SWAPS = 4000  # limit on the pairs of group kinds that one step compares
DECIMALS = 9  # imbalances are equal if they agree to this many decimals


def deal_groups(counts: CountArray, shares: FloatArray, seed: int) -> np.ndarray:
    """Assign each group to a part, with class shares as even as possible.

    Minimises Pearson's chi-squared statistic of the classes, and of the rows, over the parts. It deals greedily from the
    largest group to the smallest, and then moves one group or swaps two while that helps. Groups with the same counts
    are interchangeable; a seeded shuffle decides between them.

    Parameters
    ----------
    counts : int64 array of shape (groups, classes)
        Rows of each class in each group; at least as many groups as parts.
    shares : float64 array of shape (parts,)
        The wanted share of the rows in each part; they add up to 1.
    seed : int
        Seed of the shuffle.

    Returns
    -------
    int64 array of shape (groups,)
        The part of each group. No part is empty.
    """
    kinds, kind_of = np.unique(np.column_stack([counts, counts.sum(axis=1)]), axis=0, return_inverse=True)
    kind_of = kind_of.reshape(-1)
    amounts = _deal_kinds(kinds, np.bincount(kind_of), shares)
    order = np.random.default_rng(seed).permutation(len(counts))
    order = order[np.argsort(kind_of[order], kind="stable")]
    part = np.empty(len(counts), np.int64)
    part[order] = np.repeat(np.tile(np.arange(len(shares)), len(kinds)), amounts.reshape(-1))
    return part


def imbalance(counts: CountArray, part: np.ndarray, shares: FloatArray) -> float:
    """Return the statistic that `deal_groups` minimises, for groups with `counts` assigned to parts by `part`."""
    counts_and_rows = np.column_stack([counts, counts.sum(axis=1)])
    totals = counts_and_rows.sum(axis=0)
    totals_of_parts = np.array([counts_and_rows[part == b].sum(axis=0) for b in range(len(shares))])
    expected = shares[:, None] * totals
    present = totals > 0
    return float((((totals_of_parts - expected)[:, present] ** 2) / expected[:, present]).sum())


def _deal_kinds(kinds: CountArray, members: CountArray, shares: FloatArray) -> CountArray:
    """Return how many groups of each kind each part gets, int64 (kinds, parts)."""
    totals = (kinds * members[:, None]).sum(axis=0)
    weights = np.where(totals > 0, 1 / np.maximum(totals, 1), 0.0)
    amounts = np.floor(members[:, None] * shares + 1e-9).astype(np.int64)
    excess = amounts.T @ kinds - shares[:, None] * totals
    for u in np.lexsort((np.arange(len(kinds)), -kinds[:, -1])):
        for _ in range(int(members[u] - amounts[u].sum())):
            rise = ((2 * excess + kinds[u]) * kinds[u] * weights).sum(axis=1) / shares
            b = int(np.argmin(np.round(rise, DECIMALS)))
            amounts[u, b] += 1
            excess[b] += kinds[u]
    _fill_empty(kinds, amounts)
    _improve(kinds, amounts, weights, shares)
    return amounts


def _fill_empty(kinds: CountArray, amounts: CountArray) -> None:
    """Give each part without a group the smallest group of the part with most groups."""
    for b in np.flatnonzero(amounts.sum(axis=0) == 0):
        donor = int(amounts.sum(axis=0).argmax())
        kinds_of_part = np.flatnonzero(amounts[:, donor])
        u = kinds_of_part[np.argmin(kinds[kinds_of_part, -1])]
        amounts[u, donor] -= 1
        amounts[u, b] += 1


def _improve(kinds: CountArray, amounts: CountArray, weights: FloatArray, shares: FloatArray) -> None:
    """Move one group, or swap two, between two parts as long as that lowers the imbalance."""
    n = len(kinds)
    pairs = [(u, -1) for u in range(n)]
    if n * n <= MAX_SWAPS:
        pairs += [(u, w) for u, w in itertools.permutations(range(n), 2)]
    given_kinds = np.array([u for u, _ in pairs])
    taken_kinds = np.array([w for _, w in pairs])
    change = kinds[given_kinds] - np.where(taken_kinds[:, None] >= 0, kinds[taken_kinds], 0)
    squares = (change * change * weights).sum(axis=1)
    totals = (kinds * amounts.sum(axis=1)[:, None]).sum(axis=0)
    for _ in range(MAX_STEPS):
        excess = amounts.T @ kinds - shares[:, None] * totals
        best = (-(10.0**-DECIMALS), 0, 0, 0)
        for a, b in itertools.permutations(range(len(shares)), 2):
            slope = weights * (excess[b] / shares[b] - excess[a] / shares[a])
            gain = squares * (1 / shares[a] + 1 / shares[b]) + 2 * change @ slope
            possible = (amounts[given_kinds, a] > 0) & np.where(
                taken_kinds >= 0, amounts[taken_kinds, b] > 0, amounts[:, a].sum() > 1
            )
            gain = np.round(np.where(possible, gain, 0.0), DECIMALS)
            i = int(np.argmin(gain))
            if gain[i] < best[0]:
                best = (float(gain[i]), a, b, i)
        if best[0] >= -(10.0**-DECIMALS):
            return
        _, a, b, i = best
        amounts[given_kinds[i], a] -= 1
        amounts[given_kinds[i], b] += 1
        if taken_kinds[i] >= 0:
            amounts[taken_kinds[i], b] -= 1
            amounts[taken_kinds[i], a] += 1
