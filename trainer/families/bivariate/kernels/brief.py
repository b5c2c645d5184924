"""Pairs that are soon done, many in one call: what a call from Python costs is as much as the search of a pair of a few hundred points."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trainer.families.bivariate.kernels.both import ALL_BOXES, ALL_CLASSIFIED, WINNER, advance, opening
from trainer.families.bivariate.kernels.bounds import EXACT_CLASSES
from trainer.families.bivariate.kernels.points import new_room, pair_points
from trainer.families.bivariate.kernels.sweep import PER_POINT, Turn, sweep
from trainer.families.bivariate.kernels.tables import (
    BOXES,
    CAP,
    CLASSIFIED,
    FIRST,
    GIVEN_UP,
    GROW,
    MEASURE,
    MIN_LEAF,
    OFFSET,
    RUNNING,
    SLOPE,
    SWEEP,
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
NO_RULE = -1
BY_SWEEP = -2


class Pairs(NamedTuple):
    """Pairs int64 (P, 3), as `pair_points` takes them, in the order of the search; a first rule of each, float64 (P, 3).

    A rule is its order, slope and offset.
    """

    features: np.ndarray
    starts: np.ndarray


@kernel
def search_budget(points, classes):
    """Units that the branch and bound may take before the sweep takes over.

    The kernel counts the points that a box classifies. On few points its bounds cost more than that (all assignments of up to
    five classes for each of four children), so the budget falls by their share.
    """
    box = BOX + BOX_ASSIGNMENT * 2.0 ** min(EXACT_CLASSES, classes)
    return (SWITCH * PER_POINT * points * points + 20_000.0) * 3.0 * points / (3.0 * points + box)


@kernel
def brief_pair(search, rank, start, points, incumbent, queue, row):
    """Search one pair of merged points, sweep included; False where it takes longer than it may here.

    start float64 (3,): order, slope, offset of a first rule; incumbent float64 (2,): best value so far and its rank, which take
    what is found here; of the search `TOL`, `EPS` and `how` are given; row float64 (COLUMNS,) is written.
    """
    how, limits, best, counts = search
    N = points.u.shape[0]
    tol = limits[TOL]
    at = np.zeros(5, np.int64)
    value, floor = opening(how, start, points)
    row[:] = 0.0
    row[RESULT] = math.inf
    row[ORDER] = NO_RULE
    if value < _cap(incumbent, math.inf, rank, tol) - tol:
        row[RESULT], row[ORDER], row[A], row[B] = value, start[0], start[1], start[2]
    limits[CAP] = _cap(incumbent, row[RESULT], rank, tol)
    row[PROVED] = row[RESULT]
    if floor >= limits[CAP] - tol or (how[FIRST] == 1 and row[ORDER] != NO_RULE):
        return True
    reach = 1.0
    for x in (points.u, points.v):
        reach += 2.0 * max(-x.min(), x.max())
    limits[TAU] = 8.0 * 2.0**-52 * reach
    best[VALUE], best[SLOPE], best[OFFSET], best[GIVEN_UP] = row[RESULT], 0.0, 0.0, math.inf
    at[WINNER] = -1
    how[WORK] = BRIEF_WORK
    if how[SWEEP] == 1:
        how[WORK] = min(BRIEF_WORK, max(1, np.int64(search_budget(N, points.total.shape[0]))))
    code = advance(search, floor, at, points, queue)
    turns = PER_POINT * N * N + 500 * N
    if code == GROW or (code == RUNNING and not (how[SWEEP] == 1 and turns <= BRIEF_SWEEP)):
        return False
    if at[WINNER] >= 0:
        row[RESULT], row[ORDER], row[A], row[B] = best[VALUE], at[WINNER], best[SLOPE], best[OFFSET]
        _cap(incumbent, row[RESULT], rank, tol)
    row[PROVED] = min(row[RESULT], best[GIVEN_UP])
    row[BOXES_OF], row[CLASSIFIED_OF] = at[ALL_BOXES], at[ALL_CLASSIFIED]
    if code == RUNNING:
        found = np.full(3, -1, np.int64)
        sought = np.zeros(1)
        sought[0] = min(row[RESULT], _cap(incumbent, row[RESULT], rank, tol))
        turn = Turn(np.zeros(1, np.int64), found, sought)
        sweep(how[MEASURE], how[MIN_LEAF], 2 * turns, tol, points, turn)
        if found[0] >= 0 and sought[0] < row[RESULT]:
            row[RESULT], row[ORDER], row[A], row[B] = sought[0], BY_SWEEP, found[0], found[1]
            row[CUT] = found[2]
            _cap(incumbent, row[RESULT], rank, tol)
        row[PROVED] = row[RESULT]
        row[SWEPT] = 1.0
        row[BOXES_OF] += counts[BOXES]
        row[CLASSIFIED_OF] += counts[CLASSIFIED]
    return True


@kernel
def brief_pairs(search, rank, until, pairs, rows, incumbent, queue, out):
    """Search the pairs `rank` to `until` - 1 in their order; returns the next one to do, and whether it takes longer than it may here.

    Else the call has taken long enough, or all are done. The search as in `brief_pair`; out float64 (until - rank, COLUMNS).
    """
    n = rows.y.shape[0]
    first_rank = rank
    space = new_room(n, rows.total)
    taken = 0.0
    while rank < until and taken < CALL_WORK:
        points = pair_points(pairs.features[rank], rows, space)
        row = out[rank - first_rank]
        if not brief_pair(search, rank, pairs.starts[rank], points, incumbent, queue, row):
            return rank, True
        taken += 20.0 * n + 6.0 * row[CLASSIFIED_OF] + BOX * row[BOXES_OF]
        taken += row[SWEPT] * PER_POINT * points.u.shape[0] * points.u.shape[0]
        rank += 1
    return rank, False


@kernel
def _cap(incumbent, own, rank, tol):
    """Take a better value into the incumbent; the value below which the pair at `rank` looks for rules: it may tie with a later pair."""
    if own < incumbent[0] - tol or (own < incumbent[0] + tol and rank < incumbent[1]):
        incumbent[0] = min(own, incumbent[0])
        incumbent[1] = rank
    return incumbent[0] if incumbent[1] <= rank else incumbent[0] + 2.0 * tol
