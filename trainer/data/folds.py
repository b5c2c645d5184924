"""Hold out rows and assign folds: random, by groups, or by time."""

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
# characters that encode folds in a model file
SIGNS = np.array(list("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
NO_FOLD = "-"  # encodes a row that is in no fold
MAX_HELD_OUT_SHARE = 0.9  # largest share of rows that may be held out
TRAINS = "0"
HELD_OUT = "1"
SET_ASIDE = "2"  # encodes a row that neither trains nor is held out, such as an earlier row of a held-out group


@dataclass(frozen=True, kw_only=True)
class Folds:
    """Validation and training rows of `count` folds.

    `of_row`, int64 of shape (n,), is the fold that validates each row, -1 for none. All other rows train. If `forward`, folds
    follow time, and only rows of earlier folds, or of none, train. Rows of a group never both train and validate.
    """

    of_row: np.ndarray
    count: int
    forward: bool = False
    groups: np.ndarray | None = None

    def validation(self, fold: int, other: int = -1) -> np.ndarray:
        """Return the validation rows of a fold, int64, without the groups of the `other` fold."""
        mask = self.of_row == fold
        if other >= 0:
            mask &= ~self._grouped_with(other)
        return np.flatnonzero(mask)

    def training(self, fold: int, other: int = -1) -> np.ndarray:
        """Return the training rows of a fold, int64, also without the rows of the `other` fold."""
        mask = np.ones(len(self.of_row), bool)
        for left_out in (fold, other):
            if left_out < 0:
                continue
            mask &= ~self._grouped_with(left_out)
            if self.forward:
                mask &= self.of_row < left_out
        return np.flatnonzero(mask)

    def counts(self, codes: np.ndarray, classes: int) -> list[dict[str, Any]]:
        """Return rows, training rows, groups and class counts of every fold; `codes` (n,) are the classes."""
        records = []
        for fold in range(self.count):
            rows = self.validation(fold)
            record: dict[str, Any] = {"rows": len(rows), "training_rows": len(self.training(fold))}
            if self.groups is not None:
                record["groups"] = len(np.unique(self.groups[rows]))
            records.append(record | {"classes": np.bincount(codes[rows], minlength=classes).tolist()})
        return records

    @property
    def signs(self) -> str:
        """One character per row, for the model file."""
        return "".join(np.where(self.of_row < 0, NO_FOLD, SIGNS[self.of_row]).tolist())

    def _grouped_with(self, fold: int) -> np.ndarray:
        """Return the mask of the validation rows of a fold and all other rows of their groups, bool (n,)."""
        judged = self.of_row == fold
        if self.groups is None:
            return judged
        return judged | np.isin(self.groups, self.groups[judged])


def assign_folds(codes: np.ndarray, folds: int, seed: int, table: Table | None = None) -> Folds:
    """Assign rows to the folds of a cross-validation, deterministic by the seed.

    Parameters
    ----------
    codes : int array of shape (n,)
        The class of each row. Folds have class shares as even as possible, unless they follow time.
    folds : int
        Number of folds, at least 2.
    seed : int
        Seed of the shuffle; ignored if there are times.
    table : Table, optional
        The rows, whose `groups` and `times` keep rows together.

    Raises
    ------
    ParameterError
        If there are fewer groups or different times than the folds need, or a fold would have no row to train on.
    """
    groups = None if table is None else table.groups
    times = None if table is None else table.times
    group_codes = None if groups is None else groups.codes
    if times is not None:
        folds_by_time = Folds(
            of_row=_time_blocks(times, folds + 1, "folds") - 1, count=folds, forward=True, groups=group_codes
        )
        if groups is not None:
            _check_training(folds_by_time, groups, times)
        return folds_by_time
    if groups is not None:
        counts, place = _group_counts(codes, groups)
        if len(counts) < folds:
            raise ParameterError(
                {
                    "folds": f"column '{groups.column}' has {count_words(len(counts), 'group')}, too few for {folds} folds. "
                    f"Choose at most {len(counts)} folds."
                }
            )
        return Folds(
            of_row=deal_groups(counts, np.full(folds, 1 / folds), seed)[place], count=folds, groups=group_codes
        )
    return Folds(of_row=stratified_folds(codes, folds, seed), count=folds)


def inner_folds(codes: np.ndarray, folds: int, seed: int, table: Table) -> Folds | None:
    """Assign rows to at most `folds` folds inside a training; None if groups or times do not allow two folds."""
    while folds >= 2:
        try:
            return assign_folds(codes, folds, seed, table)
        except ParameterError:
            folds -= 1
    return None


def stratified_folds(codes: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """Return the fold of each row, int64 (n,), with each class dealt evenly after a seeded shuffle."""
    order = np.random.default_rng(seed).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    fold = np.empty(len(codes), np.int64)
    fold[order] = np.arange(len(codes)) % folds
    return fold


def holdout(codes: np.ndarray, share: float, seed: int, table: Table | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Split the rows into training rows and held-out rows; return their indices.

    Without groups and times, each class is split by the share and keeps at least one training row. With groups, all rows of
    a group are on one side. With times, the last rows are held out, and equal times stay together. With both, earlier rows
    of a held-out group are on neither side.

    Parameters
    ----------
    codes : int array of shape (n,)
        The class of each row.
    share : float
        Share of the rows to hold out, from 0 to 0.9.
    seed : int
        Seed of the shuffle; ignored if there are times.
    table : Table, optional
        The rows, whose `groups` and `times` keep rows together.

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
    """Return the rows of each class in each group, int64 (groups, classes), and the index of each row's group."""
    place = _places(groups.codes)
    counts = np.zeros((int(place.max()) + 1, int(codes.max()) + 1), np.int64)
    np.add.at(counts, (place, codes), 1)
    return counts, place


def _time_blocks(times: RowTimes, blocks: int, name: str, share: float | None = None) -> np.ndarray:
    """Return the block of each row: blocks follow each other in time, and equal times share a block.

    Blocks have about the same size; with a `share`, the last of two blocks has about this share of the rows.
    """
    distinct, place = np.unique(times.values, return_inverse=True)
    if len(distinct) < blocks:
        requirement = f"{blocks - 1} folds need {blocks}" if name == "folds" else "held-out rows need 2"
        raise ParameterError(
            {
                name: f"column '{times.column}' has {count_words(len(distinct), 'different time')}; {requirement}. Use another column."
            }
        )
    ends = np.cumsum(np.bincount(place))
    n = int(ends[-1])
    block_of = np.full(len(distinct), blocks - 1)
    start = 0
    rows = 0
    for b in range(blocks - 1):
        target = rows + (n - rows) / (blocks - b) if share is None else n * (1 - share)
        last = len(distinct) - (blocks - b)  # leave at least one distinct time for every later block
        end = start + int(np.abs(ends[start : last + 1] - target).argmin())
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
    """Return the indices of the rows that trained a model, among the rows that it reads.

    `codes` (n,) are their classes. `rows` and `parameters` come from the model file: either it lists the rows, or the split
    is repeated from its share and seed.
    """
    signs = (rows or {}).get("held_out")
    if signs and len(signs) == len(codes):
        return np.flatnonzero(np.array(list(signs)) == TRAINS)
    return holdout(codes, float(parameters.get("test_share") or 0), int(parameters.get("seed") or 0))[0]


def unseen_rows(training: np.ndarray, n: int, rows: Mapping[str, Any] | None) -> np.ndarray:
    """Return the indices of the held-out rows: neither `training` nor set aside; `rows` as in `training_rows`."""
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
    """Return how many rows to hold out of a class with `members` rows; at least one row stays for training."""
    return max(0, min(members - 1, round(share * members)))


def check_evaluation(test_share: float, folds: int, rows: int) -> None:
    """Raise ParameterError unless the share and the number of folds (0: none) are possible for `rows` rows."""
    errors = {}
    if not 0 <= test_share <= MAX_HELD_OUT_SHARE:
        errors["test_share"] = f"must lie between 0 and {MAX_HELD_OUT_SHARE:g}. It is {test_share:g}."
    if folds and not 2 <= folds <= min(MOST_FOLDS, rows):
        errors["folds"] = f"must be 0 or from 2 to {min(MOST_FOLDS, rows)}. It is {folds}."
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
    """Return the record of the rows of `table` for a model file.

    The record has one character per row, in the order of the file. In `held_out`: 0 training, 1 held out, 2 neither. In
    `folds`: the fold (0-9, a-z, A-Z), or - for none. Rows of weight 0, which the table lacks, are neither.

    Parameters
    ----------
    table : Table
    train, held_out : int64 array
        Row indices.
    folds : Folds, optional
    weights : int64 array of shape (n,), optional
    fold_trees : list, optional
        Record of the tree of each fold.
    costs : float64 array of shape (n, n_classes), optional
        Costs of each row, if each row has its own.
    """
    positions = np.arange(len(table)) if table.weights is None else np.flatnonzero(table.weights.counted)
    n_rows = len(table) if table.weights is None else len(table.weights.counted)
    row_weights = weights if weights is not None or table.weights is None else table.weights.values
    roles = np.full(n_rows, SET_ASIDE)
    roles[positions[train]] = TRAINS
    roles[positions[held_out]] = HELD_OUT
    record: dict[str, Any] = {
        "used": n_rows,
        "held_out": "".join(roles.tolist()) if len(held_out) or n_rows > len(table) else None,
        "folds": None if folds is None else "".join(_spread(np.array(list(folds.signs)), positions, n_rows, NO_FOLD)),
        "weights": None if row_weights is None else _spread(row_weights, positions, n_rows, 0),
        "fold_trees": fold_trees,
    }
    if costs is not None:
        record["costs"] = _spread(costs, positions, n_rows, 0)
    if table.weights is not None:
        record["weight"] = table.weights.to_json()
    if table.groups is not None:
        record["group"] = {"column": table.groups.column}
    if table.times is not None:
        record["time"] = {"column": table.times.column}
        record["time"] |= {} if table.times.form is None else {"form": dict(table.times.form)}
    return record


def _spread(values: np.ndarray, positions: np.ndarray, n_rows: int, filler: Any) -> list[Any]:
    """Return a list of `n_rows` values, with `values` at `positions` and `filler` elsewhere."""
    spread = np.full((n_rows, *values.shape[1:]), filler, values.dtype)
    spread[positions] = values
    rows: list[Any] = spread.tolist()
    return rows


def group_sums(values: np.ndarray, groups: np.ndarray) -> FloatArray:
    """Return the sum of `values` (n,) over each group, float64, with groups in the order of their first row."""
    return np.bincount(_places(groups), weights=values).astype(np.float64)


def _places(groups: np.ndarray) -> np.ndarray:
    """Return the index of each row's group, int64 (n,), with groups in the order of their first row."""
    _, first, place = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[place]
