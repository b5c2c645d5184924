"""Simulate false alarms and delays of the watches of a served tree.

    python benchmarks/monitoring.py [--years 1000] [--look]

The tree has six leaves with shares of 6 to 38 %. A clean year has the shares of the training. Rows of a day resemble
each other by the intra-class correlation `icc` (Dirichlet shares for each day). The chance of a false alarm is set to 1
% a year, half of it for the reference. For delays, the leaf of 9.8 % grows to 19.8 %. `--look` instead times the
evaluation of a year of 50 leaves of 100 models.
"""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

import common  # noqa: F401  (finds the library)
import numpy as np

from trainer.monitoring import (
    HORIZON_DAYS,
    ShareLimits,
    began_about,
    evidence,
    rows_are_units,
    rows_until_alarm,
    threshold,
)

SHARES = np.array([0.06, 0.098, 0.142, 0.15, 0.17, 0.38])
GROWN = 1  # index of the leaf whose share changes
GROWN_SHARE = 0.198
LEVEL = 0.005  # error probability of the alarms; the references may add as much again
PART = 100  # years that are simulated at once
THRESHOLD = threshold(len(SHARES), LEVEL)


class Setting(NamedTuple):
    """The settings of a simulation: decisions a day, reference rows, correlation within a day, day of the
    change (-1: none).
    """

    rows: int
    reference: int
    icc: float
    change: int = -1


class Years(NamedTuple):
    """Simulated counts: of the reference (years, leaves), and of each day (days, years, leaves)."""

    reference: np.ndarray
    days: np.ndarray


def simulate(setting: Setting, years: int, rng: np.random.Generator, days: int = HORIZON_DAYS) -> Years:
    """Simulate the counts of `years` years."""
    grown = SHARES * (1 - GROWN_SHARE) / (1 - SHARES[GROWN])
    grown[GROWN] = GROWN_SHARE
    counts = np.empty((days, years, len(SHARES)), np.int64)
    for d in range(days):
        shares = np.tile(grown if 0 <= setting.change <= d else SHARES, (years, 1))
        if setting.icc:
            gamma = rng.standard_gamma(shares * (1 / setting.icc - 1))
            shares = gamma / gamma.sum(axis=1, keepdims=True)
        counts[d] = rng.multinomial(setting.rows, shares)
    return Years(rng.multinomial(setting.reference, SHARES, size=years), counts)


def first_alarms(setting: Setting, simulated: Years, *, by_row: bool | None = None) -> np.ndarray:
    """Return the day of the first alarm of each leaf, int64 (years, leaves), -1 without one.

    `by_row` says whether each row or each day is one bet; None chooses as the application does.
    """
    days, years, leaves = simulated.days.shape
    miss = LEVEL / leaves
    limits = ShareLimits.of_reference(simulated.reference.ravel(), np.full(years * leaves, setting.reference), miss)
    if by_row is None:
        units = np.stack([rows_are_units(simulated.days[:, y])[:-1] for y in range(years)], axis=1)
    else:
        units = np.full((days, years), by_row)
    counts = simulated.days.reshape(days, years * leaves)
    rows = np.full_like(counts, setting.rows)
    result = evidence(counts, rows, limits, np.repeat(units, leaves, axis=1))
    return result.first_alarm(np.full(years * leaves, THRESHOLD)).reshape(years, leaves)


def clean(setting: Setting, years: int, rng: np.random.Generator) -> int:
    """Simulate years without a change, and return how many of them have an alarm."""
    return sum(
        int((first_alarms(setting, simulate(setting, part, rng)) >= 0).any(axis=1).sum()) for part in _parts(years)
    )


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
    """Simulate years, and return the delay of their alarms; it is infinite in a year without an alarm."""
    parts = [first_alarms(setting, simulate(setting, part, rng), by_row=by_row) for part in _parts(years)]
    first = np.concatenate(parts)
    first = np.where(first >= setting.change, first, HORIZON_DAYS * 10).min(axis=1)
    is_alarmed = first < HORIZON_DAYS
    days = np.where(is_alarmed, first - setting.change + 1, np.inf)
    return Delay(
        float(np.quantile(days, 0.5, method="lower")) * setting.rows,
        float(np.quantile(days, 0.9, method="lower")) * setting.rows,
        float(np.quantile(days, 0.5, method="lower")),
        float(is_alarmed.mean()),
    )


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
    print("rows a day, reference, icc: clean years with an alarm")
    for rows in (55, 500, 10):
        for reference in (150, 600, 2468):
            for icc in (0.0, 0.01, 0.05):
                setting = Setting(rows, reference, icc)
                print(
                    f"{rows}, {reference}, {icc}: {clean(setting, options.years, rng)} of {options.years}", flush=True
                )
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
