"""Search many brief pairs in one call.

A call from Python costs as much as the search of a pair of a few hundred points. Notation as in `explore`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trainer.families.bivariate.kernels.both import ALL_BOXES, ALL_CLASSIFIED, WINNER, advance, opening
from trainer.families.bivariate.kernels.bounds import EXACT_CLASSES
from trainer.families.bivariate.kernels.points import allocate_points, pair_points
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

BOX = 2000  # fixed cost of a box, in units of work (about 1 ns each)
BOX_ASSIGNMENT = 100  # additional cost for each assignment of classes to sides
SWITCH = 0.25  # budget of the branch and bound before the sweep, as a share of the sweep's cost
BRIEF_WORK = 400_000  # units of work that a pair may take here
BRIEF_SWEEP = 2_000_000  # units of work that a sweep may take here
CALL_WORK = 20_000_000.0  # units of work of a call; the clock is checked between calls

# columns of the result of a pair: value (infinity for none), bound, order of the rule or one of the numbers below, slope and offset
# (pivot, first point and cut of a rule of the sweep: A, B, CUT), boxes, points classified, whether it was swept
RESULT, PROVED, ORDER, A, B, CUT, BOXES_OF, CLASSIFIED_OF, SWEPT = range(9)
COLUMNS = 9
NO_RULE = -1
BY_SWEEP = -2


class Pairs(NamedTuple):
    """Pairs int64 (P, 3), as in `pair_points`, in search order; and a start rule of each, float64 (P, 3): order, slope, offset."""

    features: np.ndarray
    starts: np.ndarray


@kernel
def search_budget(points, classes):
    """Return the budget of the branch and bound before the sweep, in units of work.

    Work counts the points that a box classifies. On few points the bounds cost more than that (all assignments of up to five classes for
    each of four children), so the budget is reduced by their share.
    """
    box = BOX + BOX_ASSIGNMENT * 2.0 ** min(EXACT_CLASSES, classes)
    return (SWITCH * PER_POINT * points * points + 20_000.0) * 3.0 * points / (3.0 * points + box)


@kernel
def brief_pair(search, rank, start, points, incumbent, queue, row):
    """Search one pair of merged points, including the sweep; return False if it takes too long.

    start float64 (3,): order, slope, offset of a start rule. incumbent float64 (2,): best value and its rank, updated here. The search record
    must have `TOL`, `EPS` and `how`. The result is written to row float64 (COLUMNS,).
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
        row[RESULT] = value
        row[ORDER] = start[0]
        row[A] = start[1]
        row[B] = start[2]
    limits[CAP] = _cap(incumbent, row[RESULT], rank, tol)
    row[PROVED] = row[RESULT]
    if floor >= limits[CAP] - tol or (how[FIRST] == 1 and row[ORDER] != NO_RULE):
        return True
    reach = 1.0
    for x in (points.u, points.v):
        reach += 2.0 * max(-x.min(), x.max())
    limits[TAU] = 8.0 * 2.0**-52 * reach
    best[VALUE] = row[RESULT]
    best[SLOPE] = 0.0
    best[OFFSET] = 0.0
    best[GIVEN_UP] = math.inf
    at[WINNER] = -1
    how[WORK] = BRIEF_WORK
    if how[SWEEP] == 1:
        how[WORK] = min(BRIEF_WORK, max(1, np.int64(search_budget(N, points.total.shape[0]))))
    code = advance(search, floor, at, points, queue)
    turns = PER_POINT * N * N + 500 * N
    if code == GROW or (code == RUNNING and not (how[SWEEP] == 1 and turns <= BRIEF_SWEEP)):
        return False
    if at[WINNER] >= 0:
        row[RESULT] = best[VALUE]
        row[ORDER] = at[WINNER]
        row[A] = best[SLOPE]
        row[B] = best[OFFSET]
        _cap(incumbent, row[RESULT], rank, tol)
    row[PROVED] = min(row[RESULT], best[GIVEN_UP])
    row[BOXES_OF] = at[ALL_BOXES]
    row[CLASSIFIED_OF] = at[ALL_CLASSIFIED]
    if code == RUNNING:
        rule_numbers = np.full(3, -1, np.int64)
        sought = np.zeros(1)
        sought[0] = min(row[RESULT], _cap(incumbent, row[RESULT], rank, tol))
        turn = Turn(np.zeros(1, np.int64), rule_numbers, sought)
        sweep(how[MEASURE], how[MIN_LEAF], 2 * turns, tol, points, turn)
        if rule_numbers[0] >= 0 and sought[0] < row[RESULT]:
            row[RESULT] = sought[0]
            row[ORDER] = BY_SWEEP
            row[A] = rule_numbers[0]
            row[B] = rule_numbers[1]
            row[CUT] = rule_numbers[2]
            _cap(incumbent, row[RESULT], rank, tol)
        row[PROVED] = row[RESULT]
        row[SWEPT] = 1.0
        row[BOXES_OF] += counts[BOXES]
        row[CLASSIFIED_OF] += counts[CLASSIFIED]
    return True


@kernel
def brief_pairs(search, rank, until, pairs, rows, incumbent, queue, out):
    """Search the pairs `rank` to `until` - 1 in order; return the next rank, and whether that pair takes too long.

    The call also ends after `CALL_WORK`. The search record is as in `brief_pair`; out float64 (until - rank, COLUMNS).
    """
    n = rows.y.shape[0]
    first_rank = rank
    space = allocate_points(n, rows.total)
    work = 0.0
    while rank < until and work < CALL_WORK:
        points = pair_points(pairs.features[rank], rows, space)
        row = out[rank - first_rank]
        if not brief_pair(search, rank, pairs.starts[rank], points, incumbent, queue, row):
            return rank, True
        work += 20.0 * n + 6.0 * row[CLASSIFIED_OF] + BOX * row[BOXES_OF]
        work += row[SWEPT] * PER_POINT * points.u.shape[0] * points.u.shape[0]
        rank += 1
    return rank, False


@kernel
def _cap(incumbent, value, rank, tol):
    """Update the incumbent, and return the value that rules of the pair at `rank` must beat; a pair may tie with a later one."""
    if value < incumbent[0] - tol or (value < incumbent[0] + tol and rank < incumbent[1]):
        incumbent[0] = min(value, incumbent[0])
        incumbent[1] = rank
    return incumbent[0] if incumbent[1] <= rank else incumbent[0] + 2.0 * tol
