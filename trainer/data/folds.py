"""Which rows are held out: a stratified share, or stratified folds, fixed by a seed."""

from __future__ import annotations

import numpy as np

from trainer.errors import ParameterError

MOST_FOLDS = 50
MOST_HELD_OUT = 0.9  # share of the rows


def stratified_folds(codes: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """The fold of each row, int64 (n,): every class is dealt out evenly after a seeded shuffle."""
    order = np.random.default_rng(seed).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    fold = np.empty(len(codes), np.int64)
    fold[order] = np.arange(len(codes)) % folds
    return fold


def holdout(codes: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Row indices for training and for testing, stratified; every class keeps at least one training row."""
    test = np.zeros(len(codes), bool)
    rng = np.random.default_rng(seed)
    for k in np.unique(codes):
        members = rng.permutation(np.flatnonzero(codes == k))
        test[members[: min(len(members) - 1, round(share * len(members)))]] = True
    return np.flatnonzero(~test), np.flatnonzero(test)


def check_evaluation(test_share: float, folds: int, rows: int) -> None:
    """Raise ParameterError unless this share can be held out and `rows` rows can be dealt into this many folds (0: none)."""
    errors = {}
    if not 0 <= test_share <= MOST_HELD_OUT:
        errors["test_share"] = f"must lie between 0 and {MOST_HELD_OUT:g}; it is {test_share:g}."
    if folds and not 2 <= folds <= min(MOST_FOLDS, rows):
        errors["folds"] = f"must be 0 or from 2 to {min(MOST_FOLDS, rows)}; it is {folds}."
    if errors:
        raise ParameterError(errors)
