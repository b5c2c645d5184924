"""Which rows are held out, and which fold judges each row: by chance, by groups, by time, or both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainer.data.dealing import deal_groups
from trainer.dtypes import CountArray, FloatArray
from trainer.errors import ParameterError
from trainer.table import RowGroups, RowTimes, Table
from trainer.tree.numbers import count_words

MOST_FOLDS = 50
SIGNS = np.array(list("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))  # of folds, in a model file
NO_FOLD = "-"  # the sign of a row that no fold judges
MOST_HELD_OUT = 0.9  # share of the rows
TRAINS = "0"
HELD_OUT = "1"
SET_ASIDE = "2"  # neither trains nor is judged: an earlier row of a group that is judged


@dataclass(frozen=True, kw_only=True)
class Folds:
    """Which rows each of `count` folds judges, and which rows train for it.

    `of_row`, int64 of shape (n,), is the fold that judges each row, -1 for none. Without times every other row trains. With
    times the folds rise with time and only rows of earlier folds, or of none, train. Rows of a group that a fold judges never
    train for it.
    """

    of_row: np.ndarray
    count: int
    forward: bool = False
    groups: np.ndarray | None = None

    def judged(self, fold: int, other: int = -1) -> np.ndarray:
        """Return the rows, int64, that a fold judges; without the groups of the `other` fold."""
        chosen = self.of_row == fold
        if other >= 0:
            chosen &= ~self._grouped_with(other)
        return np.flatnonzero(chosen)

    def training(self, fold: int, other: int = -1) -> np.ndarray:
        """Return the rows, int64, that train for a fold; without the rows of the `other` fold too."""
        chosen = np.ones(len(self.of_row), bool)
        for left_out in (fold, other):
            if left_out < 0:
                continue
            chosen &= ~self._grouped_with(left_out)
            if self.forward:
                chosen &= self.of_row < left_out
        return np.flatnonzero(chosen)

    def counts(self, codes: np.ndarray, classes: int) -> list[dict[str, Any]]:
        """Return rows, training rows, groups and rows of each class of every fold; `codes` (n,) are the classes."""
        found = []
        for fold in range(self.count):
            own = self.judged(fold)
            record: dict[str, Any] = {"rows": len(own), "training_rows": len(self.training(fold))}
            if self.groups is not None:
                record["groups"] = len(np.unique(self.groups[own]))
            found.append(record | {"classes": np.bincount(codes[own], minlength=classes).tolist()})
        return found

    @property
    def signs(self) -> str:
        """One sign for each row, as a model file keeps it."""
        return "".join(np.where(self.of_row < 0, NO_FOLD, SIGNS[self.of_row]).tolist())

    def _grouped_with(self, fold: int) -> np.ndarray:
        """Return the rows that a fold judges, and all other rows of their groups, as bool (n,)."""
        judged = self.of_row == fold
        if self.groups is None:
            return judged
        return judged | np.isin(self.groups, self.groups[judged])


def assign_folds(codes: np.ndarray, folds: int, seed: int, table: Table | None = None) -> Folds:
    """Assign rows to the folds of a cross-validation, deterministic by the seed.

    Parameters
    ----------
    codes : int array of shape (n,)
        The class of each row; class shares are as even as possible over folds that do not follow time.
    folds : int
        Number of folds, at least 2.
    seed : int
        Seed of the shuffle. Times alone decide where there are times.
    table : Table, optional
        The rows; its `groups` and `times` bind rows together.

    Raises
    ------
    ParameterError
        If there are fewer groups or different times than the folds need, or a fold would have no row to train on.
    """
    groups = None if table is None else table.groups
    times = None if table is None else table.times
    own = None if groups is None else groups.codes
    if times is not None:
        made = Folds(of_row=_time_blocks(times, folds + 1, "folds") - 1, count=folds, forward=True, groups=own)
        if groups is not None:
            _check_training(made, groups, times)
        return made
    if groups is not None:
        counts, place = _group_counts(codes, groups)
        if len(counts) < folds:
            raise ParameterError(
                {
                    "folds": f"column '{groups.column}' has {count_words(len(counts), 'group')}, too few for {folds} folds. "
                    f"Choose at most {len(counts)} folds."
                }
            )
        return Folds(of_row=deal_groups(counts, np.full(folds, 1 / folds), seed)[place], count=folds, groups=own)
    return Folds(of_row=stratified_folds(codes, folds, seed), count=folds)


def inner_folds(codes: np.ndarray, folds: int, seed: int, table: Table) -> Folds | None:
    """Assign rows to at most `folds` folds inside a training; None if the groups or times of the table allow no two."""
    while folds >= 2:
        try:
            return assign_folds(codes, folds, seed, table)
        except ParameterError:
            folds -= 1
    return None


def stratified_folds(codes: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """The fold of each row, int64 (n,): every class is dealt out evenly after a seeded shuffle."""
    order = np.random.default_rng(seed).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    fold = np.empty(len(codes), np.int64)
    fold[order] = np.arange(len(codes)) % folds
    return fold


def holdout(codes: np.ndarray, share: float, seed: int, table: Table | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return row indices for training and for testing.

    Without groups and times every class has its share, and keeps at least one training row. With groups, all rows of a group
    are on one side. With times, the last rows are held out, and equal times stay together. With both, rows of a held-out group
    that are earlier than all held-out rows are on neither side.

    Parameters
    ----------
    codes : int array of shape (n,)
        The class of each row.
    share : float
        Share of the rows to hold out, from 0 to 0.9.
    seed : int
        Seed of the shuffle. Times alone decide where there are times.
    table : Table, optional
        The rows; its `groups` and `times` bind rows together.

    Raises
    ------
    ParameterError
        If there is only one group or one time, or no row would be left to train on.
    """
    if share and table is not None and (table.groups is not None or table.times is not None):
        return _bound_holdout(codes, share, seed, table)
    test = np.zeros(len(codes), bool)
    rng = np.random.default_rng(seed)
    for k in np.unique(codes):
        members = rng.permutation(np.flatnonzero(codes == k))
        test[members[: held_out_of(len(members), share)]] = True
    return np.flatnonzero(~test), np.flatnonzero(test)


def _bound_holdout(codes: np.ndarray, share: float, seed: int, table: Table) -> tuple[np.ndarray, np.ndarray]:
    groups = table.groups
    if table.times is None:
        assert groups is not None
        counts, place = _group_counts(codes, groups)
        if len(counts) < 2:
            raise ParameterError(
                {
                    "test_share": f"column '{groups.column}' has one group only, so no other group can train. Choose another column."
                }
            )
        test = deal_groups(counts, np.array([1 - share, share]), seed)[place] == 1
        return np.flatnonzero(~test), np.flatnonzero(test)
    test = _time_blocks(table.times, 2, "test_share", share) == 1
    if groups is None:
        return np.flatnonzero(~test), np.flatnonzero(test)
    train = ~np.isin(groups.codes, groups.codes[test])
    if not train.any():
        raise ParameterError({"test_share": _no_training(groups, table.times, "held-out rows")})
    return np.flatnonzero(train), np.flatnonzero(test)


def _group_counts(codes: np.ndarray, groups: RowGroups) -> tuple[CountArray, np.ndarray]:
    """Return rows of each class in each group, int64 (groups, classes), and the place of each row's group."""
    place = _places(groups.codes)
    counts = np.zeros((int(place.max()) + 1, int(codes.max()) + 1), np.int64)
    np.add.at(counts, (place, codes), 1)
    return counts, place


def _time_blocks(times: RowTimes, blocks: int, name: str, share: float | None = None) -> np.ndarray:
    """Cut the rows into blocks that follow each other in time, equal times in one block.

    Every block has about the same number of rows; with a `share` the last of two blocks has about this share.
    """
    distinct, place = np.unique(times.values, return_inverse=True)
    if len(distinct) < blocks:
        needed = f"{blocks - 1} folds need {blocks}" if name == "folds" else "held-out rows need 2"
        raise ParameterError(
            {
                name: f"column '{times.column}' has {count_words(len(distinct), 'different time')}; {needed}. Use another column."
            }
        )
    ends = np.cumsum(np.bincount(place))
    n = int(ends[-1])
    block_of = np.full(len(distinct), blocks - 1)
    start = 0
    rows = 0
    for b in range(blocks - 1):
        wanted = rows + (n - rows) / (blocks - b) if share is None else n * (1 - share)
        last = len(distinct) - (blocks - b)  # every later block needs a time
        end = start + int(np.abs(ends[start : last + 1] - wanted).argmin())
        block_of[start : end + 1] = b
        rows = int(ends[end])
        start = end + 1
    return block_of[place]


def _check_training(folds: Folds, groups: RowGroups, times: RowTimes) -> None:
    for fold in range(folds.count):
        if not len(folds.training(fold)):
            raise ParameterError({"folds": _no_training(groups, times, f"rows of fold {fold + 1}")})


def _no_training(groups: RowGroups, times: RowTimes, judged: str) -> str:
    return (
        f"every group of column '{groups.column}' that has a row before the {judged} has a row among them too, so none is left to "
        f"train. Use '{groups.column}' or '{times.column}', not both."
    )


def training_rows(codes: np.ndarray, rows: Mapping[str, Any] | None, parameters: Mapping[str, Any]) -> np.ndarray:
    """Positions of the rows that trained a model, among the rows that it reads, which have the classes `codes` (n,).

    `rows` and `parameters` come from the model file; files that do not say it row by row have the share and the seed.
    """
    signs = (rows or {}).get("held_out")
    if signs and len(signs) == len(codes):
        return np.flatnonzero(np.array(list(signs)) == TRAINS)
    return holdout(codes, float(parameters.get("test_share") or 0), int(parameters.get("seed") or 0))[0]


def unseen_rows(training: np.ndarray, n: int, rows: Mapping[str, Any] | None) -> np.ndarray:
    """Positions of the rows that were held out to judge the tree: neither `training` nor set aside; `rows` as in `training_rows`."""
    unseen = np.ones(n, bool)
    unseen[training] = False
    signs = (rows or {}).get("held_out")
    if signs and len(signs) == n:
        unseen &= np.array(list(signs)) == HELD_OUT
    return np.flatnonzero(unseen)


def fold_of_signs(signs: str) -> np.ndarray:
    """Return the fold of each row, int64, -1 for none, from the signs of a model file."""
    fold = {sign: number for number, sign in enumerate(SIGNS.tolist())} | {NO_FOLD: -1}
    return np.array([fold[sign] for sign in signs], np.int64)


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
    table: Table,
    train: np.ndarray,
    held_out: np.ndarray,
    folds: Folds | None,
    weights: np.ndarray | None,
    fold_trees: list[Any] | None,
    costs: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return what a model file states about the rows of `table`.

    `train` and `held_out` hold row indices, `weights` int64 of shape (n,). One sign stands for each row, in the order of the
    file: in `held_out` 0 if it trained, 1 if it was held out and 2 if neither; in `folds` the number of its fold (0-9, a-z, A-Z)
    or - for none. Rows of weight 0, which the table lacks, are listed as neither. `costs`, float64 of shape (n, classes), are the costs of each row where each has its own.
    """
    counted = np.arange(len(table)) if table.weights is None else np.flatnonzero(table.weights.counted)
    used = len(table) if table.weights is None else len(table.weights.counted)
    own = weights if weights is not None or table.weights is None else table.weights.values
    roles = np.full(used, SET_ASIDE)
    roles[counted[train]] = TRAINS
    roles[counted[held_out]] = HELD_OUT
    record: dict[str, Any] = {
        "used": used,
        "held_out": "".join(roles.tolist()) if len(held_out) or used > len(table) else None,
        "folds": None if folds is None else "".join(_spread(np.array(list(folds.signs)), counted, used, NO_FOLD)),
        "weights": None if own is None else _spread(own, counted, used, 0),
        "fold_trees": fold_trees,
    }
    if costs is not None:
        record["costs"] = _spread(costs, counted, used, 0)
    if table.weights is not None:
        record["weight"] = table.weights.to_json()
    if table.groups is not None:
        record["group"] = {"column": table.groups.column}
    if table.times is not None:
        record["time"] = {"column": table.times.column}
        record["time"] |= {} if table.times.form is None else {"form": dict(table.times.form)}
    return record


def _spread(values: np.ndarray, counted: np.ndarray, used: int, rest: Any) -> list[Any]:
    """Return the values of the `counted` ones of `used` rows as a list of all of them, `rest` for the others."""
    spread = np.full((used, *values.shape[1:]), rest, values.dtype)
    spread[counted] = values
    found: list[Any] = spread.tolist()
    return found


def group_sums(values: np.ndarray, groups: np.ndarray) -> FloatArray:
    """Return the sum of `values` (n,) over each group, float64, groups in the order of their first row."""
    return np.bincount(_places(groups), weights=values).astype(np.float64)


def _places(groups: np.ndarray) -> np.ndarray:
    """Return the place of each row's group, int64 (n,), among the groups in the order of their first row."""
    _, first, place = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[place]
