"""Pairs that are soon done, many in one call: what a call from Python costs is as much as the search of a pair of a few hundred points."""

from __future__ import annotations

import math

import numpy as np

from trainer.families.bivariate.kernels.both import ALL_BOXES, ALL_CLASSIFIED, WINNER, advance, opening
from trainer.families.bivariate.kernels.bounds import EXACT_CLASSES
from trainer.families.bivariate.kernels.points import merge
from trainer.families.bivariate.kernels.sweep import PER_POINT, sweep
from trainer.families.bivariate.kernels.tables import BOUND as WHICH_BOUND
from trainer.families.bivariate.kernels.tables import (
    BOXES,
    CAP,
    CLASSIFIED,
    EPS,
    FIRST,
    GIVEN_UP,
    GROW,
    MEASURE,
    MIN_LEAF,
    OFFSET,
    RUNNING,
    SLOPE,
    TAU,
    TOL,
    VALUE,
    WORK,
)
from trainer.kernels.compiled import kernel

BOX = 2000  # what a box costs besides its points, in units of work (about 1 ns each)
BOX_ASSIGNMENT = 100  # what it costs more for each assignment of classes to sides
SWITCH = 0.25  # share of the sweep's cost that the branch and bound may take before the sweep takes over
BRIEF_WORK = 400_000  # units that a pair may take here
BRIEF_SWEEP = 2_000_000  # and what a sweep may take here
CALL_WORK = 20_000_000.0  # units after which a call ends: the clock is looked at between calls

# columns of the result of a pair: value (infinity for none), bound, order of the rule or one of the numbers below, slope and offset
# (pivot, first point and cut of a rule of the sweep: A, B, CUT), boxes, points classified, whether it was swept
RESULT, PROVED, ORDER, A, B, CUT, BOXES_OF, CLASSIFIED_OF, SWEPT = range(9)
COLUMNS = 9
NO_RULE, BY_SWEEP = -1, -2


@kernel
def search_budget(points, classes):
    """Units that the branch and bound may take before the sweep takes over.

    The kernel counts the points that a box classifies. On few points its bounds cost more than that (all assignments of up to
    five classes for each of four children), so the budget falls by their share.
    """
    box = BOX + BOX_ASSIGNMENT * 2.0 ** min(EXACT_CLASSES, classes)
    return (SWITCH * PER_POINT * points * points + 20_000.0) * 3.0 * points / (3.0 * points + box)


@kernel
def brief_pair(
    how, limits, switch, rank, start, u, v, first, klass, weight, total, incumbent, boxes, meta, heap, free, arena, scratch, st, row
):  # fmt: skip
    """Search one pair of merged points, sweep included; False where it takes longer than it may here.

    start float64 (3,): order, slope, offset of a first rule; incumbent float64 (2,): best value so far and its rank, which take
    what is found here; limits: `TOL` and `EPS` are given; row float64 (COLUMNS,) is written.
    """
    N, tol = u.shape[0], limits[TOL]
    best, at = np.zeros(4), np.zeros(5, np.int64)
    order, a, b = np.int64(start[0]), start[1], start[2]
    value, floor = opening(
        how[MEASURE], how[WHICH_BOUND], how[MIN_LEAF], order, a, b, u, v, first, klass, weight, total
    )
    row[:] = 0.0
    row[RESULT], row[ORDER] = math.inf, NO_RULE
    if value < _cap(incumbent, math.inf, rank, tol) - tol:
        row[RESULT], row[ORDER], row[A], row[B] = value, order, a, b
    cap = _cap(incumbent, row[RESULT], rank, tol)
    row[PROVED] = row[RESULT]
    if floor >= cap - tol or (how[FIRST] == 1 and row[ORDER] != NO_RULE):
        return True
    reach = 1.0
    for x in (u, v):
        reach += 2.0 * max(-x.min(), x.max())
    limits[CAP], limits[TAU] = cap, 8.0 * 2.0**-52 * reach
    best[VALUE], best[SLOPE], best[OFFSET], best[GIVEN_UP] = row[RESULT], 0.0, 0.0, math.inf
    at[WINNER] = -1
    how[WORK] = BRIEF_WORK
    if switch:
        how[WORK] = min(BRIEF_WORK, max(1, np.int64(search_budget(N, total.shape[0]))))
    code = advance(
        how, limits, floor, at, u, v, first, klass, weight, total, boxes, meta, heap, free, arena, scratch, st, best
    )
    turns = PER_POINT * N * N + 500 * N
    if code == GROW or (code == RUNNING and not (switch and turns <= BRIEF_SWEEP)):
        return False
    if at[WINNER] >= 0:
        row[RESULT], row[ORDER], row[A], row[B] = best[VALUE], at[WINNER], best[SLOPE], best[OFFSET]
        _cap(incumbent, row[RESULT], rank, tol)
    row[PROVED] = min(row[RESULT], best[GIVEN_UP])
    row[BOXES_OF], row[CLASSIFIED_OF] = at[ALL_BOXES], at[ALL_CLASSIFIED]
    if code == RUNNING:
        where, found, sought = np.zeros(1, np.int64), np.full(3, -1, np.int64), np.zeros(1)
        sought[0] = min(row[RESULT], _cap(incumbent, row[RESULT], rank, tol))
        sweep(how[MEASURE], how[MIN_LEAF], 2 * turns, tol, u, v, first, klass, weight, total, where, found, sought)
        if found[0] >= 0 and sought[0] < row[RESULT]:
            row[RESULT], row[ORDER], row[A], row[B] = sought[0], BY_SWEEP, found[0], found[1]
            row[CUT] = found[2]
            _cap(incumbent, row[RESULT], rank, tol)
        row[PROVED], row[SWEPT] = row[RESULT], 1.0
        row[BOXES_OF] += st[BOXES]
        row[CLASSIFIED_OF] += st[CLASSIFIED]
    return True


@kernel
def brief_pairs(
    how, tol, gap, switch, rank, until, pairs, starts, Z, R, levels, y, weight, total, incumbent, boxes, meta, heap, free, arena,
    scratch, st, out, spent,
):  # fmt: skip
    """Search the pairs `rank` to `until` - 1 in their order; returns the first one that takes longer, or the next one to do.

    pairs int64 (P, 2); starts float64 (P, 3) as in `brief_pair`; Z, R: values and ranks of the features, (p, n);
    out float64 (until - rank, COLUMNS); spent int64 (1,): 1 where a pair takes longer, 0 where the call has taken long enough.
    """
    n, first_rank = Z.shape[1], rank
    pu, pv, first = np.empty(n), np.empty(n), np.empty(n + 1, np.int64)
    klass, count = np.empty(n, np.int64), np.empty(n, np.int64)
    limits = np.zeros(4)
    limits[TOL], limits[EPS] = tol, gap
    taken = 0.0
    spent[0] = 0
    while rank < until and taken < CALL_WORK:
        i, j = pairs[rank, 0], pairs[rank, 1]
        N = merge(Z[i], Z[j], R[i], R[j], levels[i], levels[j], y, weight, total.shape[0], pu, pv, first, klass, count)
        h = first[N]
        row = out[rank - first_rank]
        done = brief_pair(
            how, limits, switch, rank, starts[rank], pu[:N], pv[:N], first[: N + 1], klass[:h], count[:h], total, incumbent, boxes,
            meta, heap, free, arena, scratch, st, row,
        )  # fmt: skip
        if not done:
            spent[0] = 1
            return rank
        taken += 20.0 * n + 6.0 * row[CLASSIFIED_OF] + BOX * row[BOXES_OF]
        taken += row[SWEPT] * PER_POINT * N * N
        rank += 1
    return rank


@kernel
def _cap(incumbent, own, rank, tol):
    """Take a better value into the incumbent; the value below which the pair at `rank` looks for rules: it may tie with a later pair."""
    if own < incumbent[0] - tol or (own < incumbent[0] + tol and rank < incumbent[1]):
        incumbent[0], incumbent[1] = min(own, incumbent[0]), rank
    return incumbent[0] if incumbent[1] <= rank else incumbent[0] + 2.0 * tol
