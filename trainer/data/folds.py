"""Which rows are held out: a stratified share, or stratified folds, fixed by a seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trainer.errors import ParameterError

MOST_FOLDS = 50
SIGNS = np.array(list("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))  # of folds, in a model file
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
        test[members[: held_out_of(len(members), share)]] = True
    return np.flatnonzero(~test), np.flatnonzero(test)


def training_rows(codes: np.ndarray, rows: Mapping[str, Any] | None, parameters: Mapping[str, Any]) -> np.ndarray:
    """Positions of the rows that trained a model, among the rows that it reads, which have the classes `codes` (n,).

    `rows` and `parameters` come from the model file; files that do not say it row by row have the share and the seed.
    """
    signs = (rows or {}).get("held_out")
    if signs and len(signs) == len(codes):
        return np.flatnonzero(np.array(list(signs)) == "0")
    return holdout(codes, float(parameters.get("test_share") or 0), int(parameters.get("seed") or 0))[0]


def held_out_of(members: int, share: float) -> int:
    """How many rows of a class with so many `members` are held out: at least one stays for the training."""
    return max(0, min(members - 1, round(share * members)))


def check_evaluation(test_share: float, folds: int, rows: int) -> None:
    """Raise ParameterError unless this share can be held out and `rows` rows can be dealt into this many folds (0: none)."""
    errors = {}
    if not 0 <= test_share <= MOST_HELD_OUT:
        errors["test_share"] = f"must lie between 0 and {MOST_HELD_OUT:g}; it is {test_share:g}."
    if folds and not 2 <= folds <= min(MOST_FOLDS, rows):
        errors["folds"] = f"must be 0 or from 2 to {min(MOST_FOLDS, rows)}; it is {folds}."
    if errors:
        raise ParameterError(errors)


def rows_record(
    n: int,
    held_out: np.ndarray,
    fold: np.ndarray | None,
    weights: np.ndarray | None,
    fold_trees: list[Any] | None,
    costs: np.ndarray | None = None,
) -> dict[str, Any]:
    """What a model file says about its `n` rows: the indices `held_out`, the fold of each row, int weights (n,), trees of the folds.

    `costs`, float64 (n, classes), are the costs of each row where each has its own.

    One sign stands for each row without gaps, in the order of the file: of `held_out` 1 for a row that did not train, of `folds`
    the number of its fold (0-9, a-z, A-Z).
    """
    out = np.full(n, "0")
    out[held_out] = "1"
    return {
        "used": n,
        "held_out": "".join(out.tolist()) if len(held_out) else None,
        "folds": None if fold is None else "".join(SIGNS[fold].tolist()),
        "weights": None if weights is None else weights.tolist(),
        "fold_trees": fold_trees,
    } | ({} if costs is None else {"costs": costs.tolist()})
