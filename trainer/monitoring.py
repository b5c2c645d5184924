"""Detect changes in the shares of a served tree by betting.

A test supermartingale bets against an interval of the training share. It is mixed over the day and the size
of the change (Ville 1939; Shin, Ramdas, Rinaldo 2022, "E-detectors"). It needs only daily counts, not rows
(docs/life.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, betaln

from trainer.dtypes import BoolArray, CountArray, FloatArray

ODDS = np.array([1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 50.0])  # factors by which the odds of a share may have changed
HORIZON_DAYS = 365  # length of a monitoring period, after which a new one starts
WINDOW_DAYS = 28  # number of days with decisions from which the unit is chosen
MAX_DISPERSION = 1.3  # if the dispersion is below this, each row is a bet
CHANGES = 2 * len(ODDS)  # number of changes to bet on; growth comes first
SMALLEST_LOG = -1e300  # replaces the logarithm of 0


@dataclass(frozen=True, kw_only=True)
class ShareLimits:
    """Ends of the intervals of watched shares, float64 of shape (watches,).

    A share above `high` is growth, one below `low` is shrinking. 1 or 0 leaves that side unwatched.
    """

    low: FloatArray
    high: FloatArray

    @classmethod
    def of_reference(cls, yes: CountArray, rows: CountArray, miss: float, *, growth_only: bool = False) -> ShareLimits:
        """Return the Clopper-Pearson intervals of shares counted on other rows.

        Parameters
        ----------
        yes, rows : int64 arrays of shape (watches,)
            For each watch, `yes` of `rows` say yes.
        miss : float
            Probability that one interval misses its share.
        growth_only : bool
            Whether only growth is watched: the upper end then gets all of `miss`, and the lower end is 0.

        Returns
        -------
        ShareLimits
        """
        yes = np.asarray(yes, np.float64)
        rows = np.asarray(rows, np.float64)
        side = miss if growth_only else miss / 2
        no = rows - yes
        high = np.where(no > 0, betaincinv(yes + 1, np.maximum(no, 1), 1 - side), 1.0)
        low = np.where(yes > 0, betaincinv(np.maximum(yes, 1), no + 1, side), 0.0)
        return cls(low=np.zeros_like(low) if growth_only else low, high=high)

    @classmethod
    def at_most(cls, share: float) -> ShareLimits:
        """Return the limit that a user set for one watch: growth beyond `share` is watched."""
        return cls(low=np.zeros(1), high=np.array([share]))


@dataclass(frozen=True, kw_only=True)
class ShareEvidence:
    """Evidence of each watch at the end of each day.

    `log` is the natural logarithm of the evidence, float64 of shape (days, watches). `grew`, bool of the same shape, says whether at
    least half of it is for growth.
    """

    log: FloatArray
    grew: BoolArray

    def first_alarm(self, threshold: FloatArray) -> CountArray:
        """Return the first day at which the evidence reaches `threshold` (watches,), int64; -1 where it never does."""
        over = self.log >= np.log(threshold)
        return np.where(over.any(axis=0), over.argmax(axis=0), -1)


def threshold(watches: int, alarm_level: float) -> float:
    """Return the evidence at which to raise an alarm.

    The chance of any false alarm of the watches is then at most `alarm_level` (Ville).
    """
    return watches / alarm_level


def evidence(yes: CountArray, rows: CountArray, limits: ShareLimits, by_row: BoolArray) -> ShareEvidence:
    """Compute the evidence that shares have left their limits.

    Parameters
    ----------
    yes, rows : int64 arrays of shape (days, watches)
        On each day `yes` of `rows` say yes. Days without rows count as days.
    limits : ShareLimits
    by_row : bool array of shape (days, watches)
        Whether each row is a bet; else the share of the day is one bet. It must depend on earlier days only.

    Returns
    -------
    ShareEvidence

    Notes
    -----
    With S_0 = 0 and S_d = (S_(d-1) + 1/H) B_d for the product B_d of the bets of a day, the evidence is
    sum of v S_d + max(0, 1 - d/H). It is a supermartingale that starts at 1 for every share within the limits.
    """
    bets = _Bets(limits)
    days, watches = yes.shape
    states = bets.logs(yes, rows, by_row)
    state = np.full((watches, CHANGES), -np.inf)
    for d in range(days):
        states[d] += np.logaddexp(state, -math.log(HORIZON_DAYS))
        state = states[d]
    sides = _log_sum((bets.log_weight + states).reshape(days, watches, 2, len(ODDS)))
    with np.errstate(divide="ignore"):
        left = np.log(np.maximum(0.0, 1 - np.arange(1, days + 1) / HORIZON_DAYS))
    return ShareEvidence(log=np.logaddexp(_log_sum(sides), left[:, None]), grew=sides[..., 0] >= sides[..., 1])


class _Bets:
    """Bets of watches on seven sizes of growth and seven of shrinking, arrays of shape (watches, 14)."""

    def __init__(self, limits: ShareLimits) -> None:
        sides = np.stack([limits.high < 1, limits.low > 0], axis=1)
        null = np.stack([limits.high, limits.low], axis=1)
        null = np.repeat(np.where(sides, null, 0.5), len(ODDS), axis=1)
        odds = np.concatenate([ODDS, 1 / ODDS])
        other = null * odds / (1 - null + null * odds)
        live = np.repeat(sides, len(ODDS), axis=1)
        self.ratio_yes = np.where(live, other / null, 1.0)
        self.ratio_no = np.where(live, (1 - other) / (1 - null), 1.0)
        self.log_yes = np.log(self.ratio_yes)
        self.log_no = np.log(self.ratio_no)
        count = np.maximum(sides.sum(axis=1, keepdims=True) * len(ODDS), 1)
        with np.errstate(divide="ignore"):
            self.log_weight = np.log(live / count)

    def logs(self, yes: CountArray, rows: CountArray, by_row: BoolArray) -> FloatArray:
        """Return the logarithm of the product of the bets of each day, float64 (days, watches, 14)."""
        k = np.asarray(yes, np.float64)[..., None]
        n = np.asarray(rows, np.float64)[..., None]
        logs = np.asarray(k * (self.log_yes - self.log_no) + n * self.log_no)
        days = ~by_row.all(axis=1)
        share = k[days] / np.maximum(n[days], 1)
        daily = np.where(n[days] > 0, np.log(share * self.ratio_yes + (1 - share) * self.ratio_no), 0.0)
        logs[days] = np.where(by_row[days][..., None], logs[days], daily)
        return logs


def _log_sum(values: FloatArray) -> FloatArray:
    """Return the logarithm of the sum of exponentials over the last axis."""
    top = np.maximum(values.max(axis=-1), SMALLEST_LOG)
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log(np.exp(values - top[..., None]).sum(axis=-1)))


def dispersion(leaf_rows: CountArray) -> FloatArray:
    """Compute how much more the shares of successive days differ than chance explains.

    Parameters
    ----------
    leaf_rows : int64 array of shape (days, leaves)

    Returns
    -------
    float64 array of shape (days + 1,)
        For each day, and the day after the last one, the dispersion over the last 28 days with decisions before it. About 1 for
        independent rows; NaN while there are fewer such days.
    """
    rows = leaf_rows.sum(axis=1)
    days = np.flatnonzero(rows)
    ratios = np.full(len(leaf_rows) + 1, np.nan)
    if len(days) < WINDOW_DAYS:
        return ratios
    counts = leaf_rows[days].astype(np.float64)
    totals = rows[days].astype(np.float64)
    squares = np.diff(counts / totals[:, None], axis=0) ** 2
    chance = 1 / totals[1:] + 1 / totals[:-1]
    pairs = WINDOW_DAYS - 1
    share = _rolling(counts, WINDOW_DAYS) / _rolling(totals[:, None], WINDOW_DAYS)
    expected = share * (1 - share) * _rolling(chance[:, None], pairs)
    ratio = np.where(expected > 0, _rolling(squares, pairs) / np.where(expected > 0, expected, 1.0), np.nan)
    several = np.isfinite(ratio).any(axis=1)
    means = np.ones(len(ratio))
    means[several] = np.nanmean(ratio[several], axis=1)
    # for each day, the number of earlier days with decisions
    days_before = np.searchsorted(days, np.arange(len(leaf_rows) + 1))
    enough = days_before >= WINDOW_DAYS
    ratios[enough] = means[days_before[enough] - WINDOW_DAYS]
    return ratios


def _rolling(values: FloatArray, width: int) -> FloatArray:
    """Return sums over `width` successive rows of `values`."""
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    return np.asarray(sums[width:] - sums[:-width])


def rows_are_units(*counts: CountArray) -> BoolArray:
    """Return for each day, and the day after the last one, whether each row is a bet; else the day is one bet.

    Of several tables of counts over the same days, the mean of the known dispersions counts.
    """
    ratios = np.stack([dispersion(table) for table in counts])
    known = np.isfinite(ratios).sum(axis=0)
    means = np.where(known, np.nansum(ratios, axis=0) / np.maximum(known, 1), np.inf)
    return np.asarray(means < MAX_DISPERSION)


def outcomes_are_units(wrong: CountArray, right: CountArray) -> BoolArray:
    """Return for each day, and the day after the last one, whether each outcome is a bet; else the day is one bet.

    Parameters
    ----------
    wrong, right : int64 arrays of shape (days, leaves)
        Known outcomes of each leaf.

    Returns
    -------
    bool array of shape (days + 1,)

    Notes
    -----
    Shares of wrong answers of successive days must differ as chance explains, in the mean over the leaves and of all
    leaves together. What the outcomes of a day have in common shows best in the latter, which have most rows.
    """
    leaves = np.stack([wrong, right], axis=2)
    of_leaves = rows_are_units(*(leaves[:, k] for k in range(leaves.shape[1]))) if leaves.shape[1] > 1 else True
    return np.asarray(rows_are_units(leaves.sum(axis=1)) & of_leaves)


def began_about(yes: CountArray, rows: CountArray, limit: float, *, grew: bool) -> int:
    """Estimate the day on which a share left its limit.

    Parameters
    ----------
    yes, rows : int64 arrays of shape (days,)
        Counts up to the day of the alarm.
    limit : float
        The end of the interval beyond which the share lies.
    grew : bool
        Whether the share grew.

    Returns
    -------
    int
        The index of the first day of the period whose counts have the largest likelihood ratio against `limit`.
    """
    k = np.cumsum(np.asarray(yes, np.float64)[::-1])[::-1]
    n = np.cumsum(np.asarray(rows, np.float64)[::-1])[::-1]
    share = k / np.maximum(n, 1)
    outside = (share > limit) if grew else (share < limit)
    gain = np.where(outside & (n > 0), n * divergence(share, limit), -1.0)
    return int(gain.argmax())


def divergence(share: FloatArray, limit: float | FloatArray) -> FloatArray:
    """Return the Kullback-Leibler divergence of `share` from `limit` in nats."""
    share = np.asarray(share, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        yes = np.where(share > 0, share * np.log(share / limit), 0.0)
        no = np.where(share < 1, (1 - share) * np.log((1 - share) / (1 - np.asarray(limit))), 0.0)
    return np.asarray(yes + no)


def rows_until_alarm(
    share: float, limit: float, watches: int, alarm_level: float, *, grew: bool = True, two_sided: bool = True
) -> float:
    """Estimate the number of rows until an alarm once a share is `share`; infinite within the limit.

    `two_sided` says whether growth and shrinking are watched, so that only half of the bets are on each.
    """
    if (share <= limit) if grew else (share >= limit):
        return math.inf
    bets = CHANGES if two_sided else len(ODDS)
    log_odds = math.log(bets * watches * HORIZON_DAYS / alarm_level)
    return log_odds / float(divergence(np.array(share), limit))


def challenger_evidence(right: int, differing: int) -> float:
    """Compute the evidence that the accuracies of challenger and champion differ.

    Parameters
    ----------
    right, differing : int
        The challenger is right on `right` of the `differing` rows with known outcome on which one is right and one wrong.

    Returns
    -------
    float
        2^n B(k + 1, n - k + 1) for k = `right` and n = `differing`, to be stated as odds.
    """
    log = differing * math.log(2) + float(betaln(right + 1, differing - right + 1))
    return math.exp(min(log, 700.0))
