"""Watches of shares: intervals, bets, evidence, units, and simulated years without change."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import betaln
from scipy.stats import beta, binom

from trainer.monitoring import (
    HORIZON_DAYS,
    ODDS,
    ShareLimits,
    began_about,
    challenger_evidence,
    dispersion,
    divergence,
    evidence,
    rows_are_units,
    rows_until_alarm,
    threshold,
)

SHARES = np.array([0.06, 0.098, 0.142, 0.15, 0.17, 0.38])
LEVEL = 0.005


def limits_of(yes, rows, miss=0.001):
    return ShareLimits.of_reference(np.atleast_1d(yes), np.atleast_1d(rows), miss)


def naive(yes, rows, low, high, by_row):
    """Return the evidence from the definition in floating point: one watch, with bets in the order of the days."""
    sides = [(high, odds) for odds in ODDS] if high < 1 else []
    sides += [(low, 1 / odds) for odds in ODDS] if low > 0 else []
    state = [0.0] * len(sides)
    found = []
    for d, (k, n) in enumerate(zip(yes, rows, strict=True)):
        for i, (p, odds) in enumerate(sides):
            q = p * odds / (1 - p + p * odds)
            if by_row[d]:
                bet = (q / p) ** k * ((1 - q) / (1 - p)) ** (n - k)
            else:
                bet = 1 + (k / n - p) * (q - p) / (p * (1 - p)) if n else 1.0
            state[i] = (state[i] + 1 / HORIZON_DAYS) * bet
        found.append(sum(state) / len(sides) + 1 - (d + 1) / HORIZON_DAYS)
    return np.array(found)


def one(yes, rows, limits, by_row):
    columns = [np.asarray(values)[:, None] for values in (yes, rows, by_row)]
    return np.exp(evidence(columns[0], columns[1], limits, columns[2]).log[:, 0])


def test_interval_equals_the_exact_quantiles():
    limits = limits_of([7, 0, 20], [20, 20, 20], 0.01)
    assert limits.low == pytest.approx([beta.ppf(0.005, 7, 14), 0.0, beta.ppf(0.005, 20, 1)])
    assert limits.high == pytest.approx([beta.ppf(0.995, 8, 13), beta.ppf(0.995, 1, 20), 1.0])
    one_sided = ShareLimits.of_reference(np.array([0]), np.array([20]), 0.01, growth_only=True)
    assert (one_sided.low[0], one_sided.high[0]) == pytest.approx((0.0, 1 - 0.01 ** (1 / 20)))


@pytest.mark.parametrize("share", [0.02, 0.3, 0.8])
def test_interval_coverage_is_as_stated(share):
    yes = np.arange(151)
    found = ShareLimits.of_reference(yes, np.full(151, 150), 0.01)
    missed = (found.high < share) | (found.low > share)
    assert binom.pmf(yes, 150, share)[missed].sum() <= 0.01


@pytest.mark.parametrize("by_row", [True, False])
def test_evidence_equals_its_definition(by_row):
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 30, 60)
    yes = rng.binomial(rows, 0.3)
    limits = limits_of(30, 120)
    units = np.full(60, by_row)
    wanted = naive(yes, rows, float(limits.low[0]), float(limits.high[0]), units)
    assert one(yes, rows, limits, units) == pytest.approx(wanted, rel=1e-9)


def test_evidence_of_single_rows_equals_that_of_counts():
    """The bets of the rows of a day, multiplied in any order, are the bet of its counts."""
    rng = np.random.default_rng(4)
    low = 0.2
    high = 0.25
    answers = [rng.random(rng.integers(1, 20)) < 0.4 for _ in range(30)]
    found = one([a.sum() for a in answers], [len(a) for a in answers], limits := _limits(low, high), np.ones(30, bool))
    states = np.zeros(14)
    p = np.repeat([high, low], 7)
    odds = np.concatenate([ODDS, 1 / ODDS])
    q = p * odds / (1 - p + p * odds)
    for d, day in enumerate(answers):
        states += 1 / HORIZON_DAYS
        for answer in rng.permutation(day):
            states *= q / p if answer else (1 - q) / (1 - p)
        assert found[d] == pytest.approx(states.mean() + 1 - (d + 1) / HORIZON_DAYS, rel=1e-9)
    assert limits.high[0] == high


def _limits(low, high):
    return ShareLimits(low=np.array([low]), high=np.array([high]))


@pytest.mark.parametrize("by_row", [True, False])
@pytest.mark.parametrize("share", [0.2, 0.225, 0.25])
def test_mean_of_a_bet_is_at_most_one_within_the_limits(share, by_row):
    """This is exact, over all counts of a day of 12 rows."""
    yes = np.arange(13)
    found = [one([k], [12], _limits(0.2, 0.25), np.array([by_row]))[0] for k in yes]
    assert np.dot(binom.pmf(yes, 12, share), found) <= 1 + 1e-12


def test_days_without_rows_change_no_bet():
    limits = limits_of(30, 120)
    found = one([0, 0, 0], [0, 0, 0], limits, np.array([True, False, True]))
    assert found == pytest.approx([1, 1, 1])


def test_evidence_of_a_lasting_change_stays_finite():
    yes = np.full((HORIZON_DAYS, 1), 500)
    found = evidence(yes, np.full_like(yes, 500), limits_of(30, 120), np.ones_like(yes, bool))
    assert np.isfinite(found.log).all()
    assert found.grew[-1, 0]


def test_side_that_is_not_watched_gets_no_weight():
    found = evidence(np.array([[0]]), np.array([[50]]), ShareLimits.at_most(0.35), np.array([[True]]))
    assert found.log[0, 0] < 0
    assert found.grew[0, 0]


def test_alarm_is_at_the_first_day_over_the_threshold():
    rows = np.full((100, 2), 50)
    yes = np.column_stack([np.full(100, 10), np.r_[np.full(50, 10), np.full(50, 25)]])
    found = evidence(yes, rows, limits_of([200, 200], [1000, 1000]), np.ones((100, 2), bool))
    first = found.first_alarm(np.full(2, threshold(2, 0.002)))
    assert first[0] == -1
    assert 50 < first[1] < 60


def test_dispersion_is_about_one_for_independent_rows():
    rng = np.random.default_rng(5)
    counts = rng.multinomial(50, SHARES, size=400)
    found = dispersion(counts)
    assert np.isnan(found[:28]).all()
    assert np.nanmean(found) == pytest.approx(1, abs=0.05)


def test_dispersion_of_days_that_are_alike_exceeds_the_bound():
    rng = np.random.default_rng(6)
    counts = np.array([rng.multinomial(50, rng.dirichlet(SHARES * 19)) for _ in range(100)])
    assert not rows_are_units(counts).any()


def test_shift_of_a_share_is_no_dispersion():
    rng = np.random.default_rng(7)
    moved = np.array([0.2, 0.2, 0.1, 0.1, 0.1, 0.3])
    counts = np.concatenate([rng.multinomial(50, SHARES, size=60), rng.multinomial(50, moved, size=60)])
    assert rows_are_units(counts)[40:].mean() > 0.9


def test_unit_of_a_day_depends_on_earlier_days_only():
    rng = np.random.default_rng(8)
    counts = rng.multinomial(50, SHARES, size=60)
    changed = counts.copy()
    changed[45:] = 0
    changed[45:, 0] = 999
    assert rows_are_units(counts)[:46].tolist() == rows_are_units(changed)[:46].tolist()
    assert len(rows_are_units(counts[:, :0])) == 61


def test_beginning_of_a_change_is_found():
    rows = np.full(60, 50)
    yes = np.r_[np.full(40, 10), np.full(20, 20)]
    assert began_about(yes, rows, 0.25, grew=True) == 40
    assert began_about(np.r_[np.full(40, 20), np.full(20, 5)], rows, 0.3, grew=False) == 40


def test_expected_rows_equal_those_of_the_specification():
    for reference, wanted in ((2468, 624), (600, 1512), (150, math.inf)):
        limit = float(limits_of(round(0.098 * reference), reference, LEVEL / 6).high[0])
        assert rows_until_alarm(0.198, limit, 6, LEVEL) == pytest.approx(wanted, abs=1)


def test_divergence_of_certain_shares_is_finite():
    assert divergence(np.array([0.0, 1.0]), 0.5) == pytest.approx([math.log(2)] * 2)


def test_odds_of_a_challenger_equal_the_formula():
    assert challenger_evidence(2, 2) == pytest.approx(4 / 3)
    assert challenger_evidence(183, 281) == pytest.approx(33_375.07, rel=1e-6)
    assert challenger_evidence(0, 0) == 1


def test_odds_of_a_challenger_are_a_fair_bet():
    """If both trees are equally often right, the expected odds after the next row equal the present odds."""
    for n in range(40):
        for k in range(n + 1):
            now = challenger_evidence(k, n)
            assert (challenger_evidence(k + 1, n + 1) + challenger_evidence(k, n + 1)) / 2 == pytest.approx(now)
            assert challenger_evidence(n - k, n) == pytest.approx(now)
    shares = (np.arange(20_000) + 0.5) / 20_000
    assert challenger_evidence(13, 17) == pytest.approx((2**17 * shares**13 * (1 - shares) ** 4).mean(), rel=1e-6)


def test_odds_of_challenger_rarely_exceed_their_bound():
    """In 2,000 fair streams of 400 rows, checked after each row, at most 1 of 20 ever reaches 20 to 1."""
    rng = np.random.default_rng(11)
    right = np.cumsum(rng.random((2_000, 400)) < 0.5, axis=1)
    n = np.arange(1, 401)
    logs = n * math.log(2) + betaln(right + 1, n - right + 1)
    assert np.exp(logs[0, -1]) == pytest.approx(challenger_evidence(int(right[0, -1]), 400))
    ever = (logs >= math.log(20)).any(axis=1).mean()
    assert 0.005 < ever <= 0.05


def test_better_challenger_is_found():
    """A challenger that is right on 65 % of the rows that differ reaches 100 to 1 within about 150 rows."""
    rng = np.random.default_rng(12)
    reached = []
    for _ in range(50):
        right = np.cumsum(rng.random(600) < 0.65)
        odds = np.array([challenger_evidence(int(k), n) for n, k in enumerate(right, 1)])
        reached.append(int((odds >= 100).argmax()) + 1 if (odds >= 100).any() else 999)
    assert np.median(reached) < 200


@pytest.mark.slow
@pytest.mark.parametrize("icc", [0.0, 0.05])
def test_clean_years_have_hardly_an_alarm(icc):
    """This is a sample of `benchmarks/monitoring.py`: 40 years of 55 rows a day, with a reference of 600 rows."""
    rng = np.random.default_rng(9)
    alarms = 0
    for _ in range(40):
        shares = rng.dirichlet(SHARES * (1 / icc - 1), HORIZON_DAYS) if icc else np.tile(SHARES, (HORIZON_DAYS, 1))
        days = rng.multinomial(55, shares)
        limits = limits_of(rng.multinomial(600, SHARES), np.full(6, 600), LEVEL / 6)
        units = np.repeat(rows_are_units(days)[:-1, None], 6, axis=1)
        found = evidence(days, np.full_like(days, 55), limits, units)
        alarms += bool((found.first_alarm(np.full(6, threshold(6, LEVEL))) >= 0).any())
    assert alarms <= 1


def test_grown_leaf_is_found_and_named_in_time():
    rng = np.random.default_rng(10)
    grown = SHARES * 0.802 / 0.902
    grown[1] = 0.198
    right = 0
    rows = []
    for _ in range(20):
        days = rng.multinomial(55, grown, size=80)
        limits = limits_of(rng.multinomial(2468, SHARES), np.full(6, 2468), LEVEL / 6)
        found = evidence(days, np.full_like(days, 55), limits, np.ones_like(days, bool))
        first = found.first_alarm(np.full(6, threshold(6, LEVEL)))
        first = np.where(first < 0, 999, first)
        right += int(first.argmin()) == 1
        rows.append((first.min() + 1) * 55)
    assert right >= 19
    assert np.median(rows) == pytest.approx(624, rel=0.25)


WRONG = np.array([0.31, 0.29, 0.36, 0.28, 0.22, 0.15])  # shares of wrong answers of leaves with SHARES
WRONG_LEVEL = 0.001  # of the leaves, and once more of all leaves together


def wrong_alarms(rng, days, shares_of_days, reference=2468):
    """Return the first alarm of each leaf about its wrong answers, and of all leaves together, with 55 outcomes a day."""
    rows = rng.multinomial(55, SHARES, size=days)
    yes = rng.binomial(rows, shares_of_days)
    reference_rows = rng.multinomial(reference, SHARES)
    reference_yes = rng.binomial(reference_rows, WRONG)
    leaves = [(yes[:, j], rows[:, j]) for j in range(len(SHARES))]
    tables = [np.stack([k, n - k], axis=1) for k, n in [*leaves, (yes.sum(axis=1), rows.sum(axis=1))]]
    units = (rows_are_units(*tables[:-1]) & rows_are_units(tables[-1]))[:-1]
    found = []
    for together in (False, True):
        k, n, k0, n0 = (
            v.sum(axis=-1, keepdims=True) if together else v for v in (yes, rows, reference_yes, reference_rows)
        )
        watches = len(k0)
        limits = ShareLimits.of_reference(k0, n0, WRONG_LEVEL / watches, growth_only=True)
        by_row = np.repeat(units[:, None], watches, axis=1)
        found.append(evidence(k, n, limits, by_row).first_alarm(np.full(watches, threshold(watches, WRONG_LEVEL))))
    return found


@pytest.mark.parametrize(
    ("icc", "years"),
    [
        (0.0, 15),
        (0.05, 15),
        pytest.param(0.0, 500, marks=pytest.mark.slow),
        pytest.param(0.05, 500, marks=pytest.mark.slow),
    ],
)
def test_kept_promises_have_hardly_an_alarm(icc, years):
    rng = np.random.default_rng(13)
    alarms = 0
    for _ in range(years):
        luck = rng.random((HORIZON_DAYS, 1))  # what the outcomes of a day have in common
        days = beta.ppf(luck, WRONG * (1 / icc - 1), (1 - WRONG) * (1 / icc - 1)) if icc else WRONG
        alarms += any((first >= 0).any() for first in wrong_alarms(rng, HORIZON_DAYS, days))
    assert alarms <= years / 100


def test_broken_promise_is_found_in_its_leaf():
    rng = np.random.default_rng(14)
    days = np.tile(WRONG, (200, 1))
    days[60:, 4] = 0.44
    delays = []
    for _ in range(20):
        leaves, _ = wrong_alarms(rng, 200, days)
        assert (np.flatnonzero(leaves >= 0) == [4]).all()
        delays.append(int(leaves[4]) - 60)
    limit = float(ShareLimits.of_reference(np.array([92]), np.array([420]), WRONG_LEVEL / 6, growth_only=True).high[0])
    expected = rows_until_alarm(0.44, limit, 6, WRONG_LEVEL) / (55 * SHARES[4])
    assert 0.5 * expected < np.median(delays) <= 1.25 * expected


def test_units_of_several_tables_follow_the_mean_dispersion():
    rng = np.random.default_rng(15)
    even = rng.multinomial(50, SHARES, size=60)
    alike = np.array([rng.multinomial(50, rng.dirichlet(SHARES * 19)) for _ in range(60)])
    mean = (dispersion(even) + dispersion(alike)) / 2
    with np.errstate(invalid="ignore"):
        assert rows_are_units(even, alike).tolist() == (mean < 1.3).tolist()
    assert rows_are_units(even, np.zeros_like(even)).tolist() == rows_are_units(even).tolist()
