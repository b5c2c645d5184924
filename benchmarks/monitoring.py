"""Simulate false alarms and delays of the watches of a served tree.

    python benchmarks/monitoring.py [--years 1000] [--look]

The tree has six leaves with shares of 6 to 38 %, and tests four columns. A clean year has the shares of the training,
and every watch of the application: leaves, wrong answers of leaves and of all leaves, empty cells, and cells below and
above the training range. Rows, outcomes and cells of a day resemble each other by the intra-class correlation `icc`. The
chance of a false alarm is set to 1 % a year for all watches together. For delays, the leaf of 9.8 % grows to 19.8 %, and
only leaves are watched. `--look` instead times the evaluation of a year of 50 leaves of 100 models.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import NamedTuple

import common  # noqa: F401  (finds the library)
import numpy as np
from scipy.stats import beta

from trainer.monitoring import (
    HORIZON_DAYS,
    ShareLimits,
    began_about,
    evidence,
    outcomes_are_units,
    rows_are_units,
    rows_until_alarm,
    threshold,
)

SHARES = np.array([0.06, 0.098, 0.142, 0.15, 0.17, 0.38])
WRONG_SHARES = np.array([0.31, 0.29, 0.36, 0.28, 0.22, 0.15])
EMPTY_SHARES = np.array([0.02, 0.1])
COLUMNS = 4  # tested columns with a range; of each, cells below and above it are watched
KNOWN_SHARE = 0.9  # of the outcomes on the day on which they are due
GROWN = 1  # index of the leaf whose share changes
GROWN_SHARE = 0.198
LEVEL = 0.005  # error probability of the alarms where only leaves are watched; the references may add as much again
LEVELS = {"leaves": 0.002, "wrong": 0.001, "all wrong": 0.001, "cells": 0.001}  # as in octweb.life.watches
PART = 50  # years that are simulated at once


class Setting(NamedTuple):
    """The settings of a simulation: decisions a day, reference rows, correlation within a day, day of the
    change (-1: none).
    """

    rows: int
    reference: int
    icc: float
    change: int = -1


class Group(NamedTuple):
    """Simulated counts of watches: int64 (days, years, watches), and of their references (years, watches)."""

    yes: np.ndarray
    rows: np.ndarray
    reference_yes: np.ndarray
    reference_rows: np.ndarray
    growth_only: bool = True


def simulate(setting: Setting, years: int, rng: np.random.Generator, days: int = HORIZON_DAYS) -> Group:
    """Simulate the decisions of `years` years by leaf."""
    grown = SHARES * (1 - GROWN_SHARE) / (1 - SHARES[GROWN])
    grown[GROWN] = GROWN_SHARE
    counts = np.empty((days, years, len(SHARES)), np.int64)
    for d in range(days):
        shares = np.tile(grown if 0 <= setting.change <= d else SHARES, (years, 1))
        if setting.icc:
            gamma = rng.standard_gamma(shares * (1 / setting.icc - 1))
            shares = gamma / gamma.sum(axis=1, keepdims=True)
        counts[d] = rng.multinomial(setting.rows, shares)
    reference = rng.multinomial(setting.reference, SHARES, size=years)
    rows = np.full_like(counts, setting.rows)
    return Group(counts, rows, reference, np.full_like(reference, setting.reference), growth_only=False)


def simulate_all(setting: Setting, years: int, rng: np.random.Generator) -> dict[str, Group]:
    """Simulate the counts of all watches in `years` years without a change."""
    leaves = simulate(setting, years, rng)
    wrong = _wrong_answers(setting, leaves, rng)
    return {"leaves": leaves, "wrong": wrong, "all wrong": _together(wrong), "cells": _cells(setting, leaves, rng)}


def _wrong_answers(setting: Setting, leaves: Group, rng: np.random.Generator) -> Group:
    """Simulate outcomes. The outcomes of a day have their luck in common, in all leaves."""
    days, years, _ = leaves.yes.shape
    known = rng.binomial(leaves.yes, KNOWN_SHARE)
    shares = WRONG_SHARES
    if setting.icc:
        strength = 1 / setting.icc - 1
        shares = beta.ppf(rng.random((days, years, 1)), WRONG_SHARES * strength, (1 - WRONG_SHARES) * strength)
    unseen = rng.multinomial(setting.reference, SHARES, size=years)
    return Group(rng.binomial(known, shares), known, rng.binomial(unseen, WRONG_SHARES), unseen)


def _together(group: Group) -> Group:
    """Return the watch of all leaves together."""
    return Group(*(counts.sum(axis=-1, keepdims=True) for counts in group[:-1]))


def _cells(setting: Setting, leaves: Group, rng: np.random.Generator) -> Group:
    """Simulate unusual cells. The training range has the extremes of the reference rows, so a later cell may exceed it."""
    days, years, _ = leaves.yes.shape
    outside = 1 - rng.random((years, 2 * COLUMNS)) ** (1 / setting.reference)
    means = np.concatenate([np.tile(EMPTY_SHARES, (years, 1)), outside], axis=1)
    rows = np.full((days, *means.shape), setting.rows)
    strength = 1 / setting.icc - 1 if setting.icc else 0.0
    shares = rng.beta(means * strength, (1 - means) * strength, size=rows.shape) if strength else means
    yes = rng.binomial(rows, shares)
    reference_rows = np.full(means.shape, setting.reference)
    empty = rng.binomial(reference_rows[:, : len(EMPTY_SHARES)], EMPTY_SHARES)
    reference_yes = np.concatenate([empty, np.zeros_like(outside, np.int64)], axis=1)
    return Group(yes, rows, reference_yes, reference_rows)


def first_alarms(group: Group, level: float, by_row: np.ndarray) -> np.ndarray:
    """Return the day of the first alarm of each watch, int64 (years, watches), -1 without one.

    `by_row`, bool (days, years), says whether each row or each day is one bet.
    """
    days, years, watches = group.yes.shape
    limits = ShareLimits.of_reference(
        group.reference_yes.ravel(), group.reference_rows.ravel(), level / watches, growth_only=group.growth_only
    )
    counts, rows = (c.reshape(days, years * watches) for c in (group.yes, group.rows))
    result = evidence(counts, rows, limits, np.repeat(by_row, watches, axis=1))
    return result.first_alarm(np.full(years * watches, threshold(watches, level))).reshape(years, watches)


def units_of(group: Group) -> np.ndarray:
    """Return whether each row is a bet, bool (days, years), as the application chooses from the leaves."""
    return np.stack([rows_are_units(group.yes[:, y])[:-1] for y in range(group.yes.shape[1])], axis=1)


def units_of_outcomes(wrong: Group) -> np.ndarray:
    """Return whether each outcome is a bet, bool (days, years), as the application chooses."""
    years = range(wrong.yes.shape[1])
    right = wrong.rows - wrong.yes
    return np.stack([outcomes_are_units(wrong.yes[:, y], right[:, y])[:-1] for y in years], axis=1)


def clean(setting: Setting, years: int, rng: np.random.Generator) -> dict[str, int]:
    """Simulate years without a change, and return how many of them have an alarm: of any watch, and by group."""
    counts = dict.fromkeys(("any", *LEVELS), 0)
    for part in _parts(years):
        alarmed = _alarmed(simulate_all(setting, part, rng))
        for name, years_with_alarm in alarmed.items():
            counts[name] += int(years_with_alarm.sum())
        counts["any"] += int(np.any(list(alarmed.values()), axis=0).sum())
    return counts


def _alarmed(groups: Mapping[str, Group]) -> dict[str, np.ndarray]:
    """Return for each group which years have an alarm, bool (years,)."""
    of_rows = units_of(groups["leaves"])
    of_outcomes = units_of_outcomes(groups["wrong"])
    return {
        name: (first_alarms(group, LEVELS[name], of_outcomes if "wrong" in name else of_rows) >= 0).any(axis=1)
        for name, group in groups.items()
    }


def _parts(years: int) -> list[int]:
    """Return sizes of parts of the years that fit into memory."""
    return [min(PART, years - start) for start in range(0, years, PART)]


class Delay(NamedTuple):
    """The delay from the change to the first alarm: median and 90 % quantile in rows, and median in days.

    `found` is the share of years with an alarm before the end of the year.
    """

    median: float
    most: float
    days: float
    found: float


def delay(setting: Setting, years: int, rng: np.random.Generator, *, by_row: bool | None = True) -> Delay:
    """Simulate years, and return the delay of their alarms; it is infinite in a year without an alarm.

    `by_row` says whether each row or each day is one bet; None chooses as the application does.
    """
    first = np.concatenate([_leaf_alarms(simulate(setting, part, rng), by_row) for part in _parts(years)])
    first = np.where(first >= setting.change, first, HORIZON_DAYS * 10).min(axis=1)
    is_alarmed = first < HORIZON_DAYS
    days = np.where(is_alarmed, first - setting.change + 1, np.inf)
    return Delay(
        float(np.quantile(days, 0.5, method="lower")) * setting.rows,
        float(np.quantile(days, 0.9, method="lower")) * setting.rows,
        float(np.quantile(days, 0.5, method="lower")),
        float(is_alarmed.mean()),
    )


def _leaf_alarms(leaves: Group, by_row: bool | None) -> np.ndarray:
    units = units_of(leaves) if by_row is None else np.full(leaves.yes.shape[:2], by_row)
    return first_alarms(leaves, LEVEL, units)


def look() -> float:
    """Return the processor seconds of evaluating a year of 50 leaves of 100 models, from counts in memory."""
    rng = np.random.default_rng(0)
    shares = np.full(50, 0.02)
    counts = rng.multinomial(200, shares, size=HORIZON_DAYS)
    limits = ShareLimits.of_reference(rng.multinomial(2_000, shares), np.full(50, 2_000), 0.002 / 50)
    start = time.process_time()
    for _ in range(100):
        units = rows_are_units(counts)[:-1]
        rows = np.tile(counts.sum(axis=1, keepdims=True), (1, 50))
        result = evidence(counts, rows, limits, np.repeat(units[:, None], 50, axis=1))
        result.first_alarm(np.full(50, threshold(50, 0.002)))
        began_about(counts[:, 0], rows[:, 0], float(limits.high[0]), grew=True)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--years", type=int, default=1000)
    parser.add_argument("--look", action="store_true")
    options = parser.parse_args()
    if options.look:
        print(f"one look at 100 models of 50 leaves: {look():.1f} s of processor time")
        return
    rng = np.random.default_rng(47)
    print("rows a day, reference, icc: clean years with an alarm of any watch, and of each kind")
    for rows in (55, 500, 10):
        for reference in (150, 600, 2468):
            for icc in (0.0, 0.01, 0.05):
                setting = Setting(rows, reference, icc)
                counts = ", ".join(f"{name} {number}" for name, number in clean(setting, options.years, rng).items())
                print(f"{rows}, {reference}, {icc}: {counts} of {options.years}", flush=True)
    print("rows a day, reference, icc, day of change: expected; median and 90 % of rows until the alarm; days; found")
    for setting, by_row in (
        (Setting(55, 2468, 0.0, 0), True),
        (Setting(55, 2468, 0.0, 180), None),
        (Setting(200, 2468, 0.0, 0), True),
        (Setting(10, 2468, 0.0, 0), True),
        (Setting(55, 600, 0.0, 0), True),
        (Setting(55, 150, 0.0, 0), True),
        (Setting(55, 2468, 0.05, 0), False),
    ):
        limit = ShareLimits.of_reference(
            np.array([round(SHARES[GROWN] * setting.reference)]), np.array([setting.reference]), LEVEL / len(SHARES)
        )
        expected = rows_until_alarm(GROWN_SHARE, float(limit.high[0]), len(SHARES), LEVEL)
        alarm = delay(setting, options.years, rng, by_row=by_row)
        print(
            f"{', '.join(map(str, setting))}: {expected:.0f}; {alarm.median:.0f}, {alarm.most:.0f}; "
            f"{alarm.days:.0f}; {100 * alarm.found:.1f} %",
            flush=True,
        )


if __name__ == "__main__":
    main()
