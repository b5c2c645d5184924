"""Read the rows of a model, with their roles and weights."""

from __future__ import annotations

import hashlib
import math
import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trainer.check.proof.model import ModelTable, read_fraction
from trainer.check.proof.space.questions import lower_median
from trainer.check.recount.findings import Finding, recount_finding, unjudged_finding
from trainer.check.recount.table.contract import contract_findings
from trainer.check.recount.table.dependent import (
    Dependence,
    dependence_columns,
    divert,
    folds_finding,
    held_out_finding,
    read_dependence,
    trains_for,
    weights_finding,
)
from trainer.check.recount.table.reading import (
    GAPS,
    EmptiedCells,
    column_sources,
    plain_pieces,
    reading_findings,
    skipped_lines,
)
from trainer.check.recount.table.tables import Piece, candidate_readings
from trainer.errors import DataError

TRUTH = dict.fromkeys(("true", "True", "TRUE"), 1.0) | dict.fromkeys(("false", "False", "FALSE"), 0.0)
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,5})?", re.ASCII)
FOLD_SIGNS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
MISSING = "(missing)"
# members of a column that training includes in its digest
FINGERPRINTED = frozenset(["name", "kind", "missing", "categories", "unit", "special"])
MOST_BALANCED = 1 << 28  # sum of the weights of balanced classes before they are rounded
MAX_BALANCED_ROW = 1 << 32  # its product with twice MOST_BALANCED stays below 2^63
MAX_WEIGHT_SUM = 1 << 53  # sums of weights stay below this, so that doubles hold them exactly


def take_rows(rows: ModelTable, selection: np.ndarray) -> ModelTable:
    """Return the selected rows; `selection` holds indices or a mask."""
    if selection.dtype == bool and selection.all():
        return rows
    costs = None if rows.costs is None else rows.costs[selection]
    columns = [c[selection] for c in rows.columns]
    return replace(
        rows,
        columns=columns,
        labels=rows.labels[selection],
        weights=rows.weights[selection],
        plain=rows.plain[selection],
        costs=costs,
        given=None if rows.given is None else rows.given[selection],
    )


def without_class_weights(rows: ModelTable) -> ModelTable:
    """Return the rows without the weights of classes."""
    return replace(rows, weights=rows.plain)


@dataclass(frozen=True)
class TableRows:
    """All usable rows of the file, with findings on them.

    `held_out` and `trains` are bool of shape (n,). `fold` is int64 of shape (n,), -1 for rows without a fold.
    """

    rows: ModelTable
    held_out: np.ndarray
    trains: np.ndarray
    fold: np.ndarray
    findings: list[Finding]
    dependence: Dependence = field(default_factory=Dependence)

    @property
    def training(self) -> ModelTable:
        """Return the training rows."""
        return take_rows(self.rows, self.trains)

    def trains_for(self, f: int) -> np.ndarray:
        """Return the training rows of a fold as a mask."""
        return trains_for(self.fold, self.dependence, f)


def load(path: Path, model: dict[str, Any]) -> TableRows:
    """Read the rows by the model's schema, in the first way without a refuted finding, or else in the first readable way."""
    names = [c["name"] for c in model["columns"]] + [model["target"]]
    first: TableRows | None = None
    trouble: DataError | None = None
    file_columns = column_sources(model, names)
    extra = dependence_columns(model)
    encoding = str((model.get("reading") or {}).get("encoding") or "")
    for pieces, lines_skipped in candidate_readings(
        path, [*(source.name for source in file_columns), *extra], skipped_lines(model), encoding
    ):
        emptied = EmptiedCells()
        cells: list[list[str]] = [[] for _ in extra]
        try:
            data = _read_rows(
                model, plain_pieces(divert(pieces, len(file_columns), cells), file_columns, names, emptied), cells
            )
            data.findings.extend(reading_findings(model, lines_skipped, emptied))
        except DataError as error:
            trouble = trouble or error
            continue
        if all(f.verdict != "refuted" for f in data.findings):
            return data
        first = first or data
    if first is not None:
        return first
    raise trouble or DataError(
        f"The file lacks columns of the model ({', '.join([*(source.name for source in file_columns), *extra])[:200]}). Give the file that the model was trained on."
    )


def _read_rows(model: dict[str, Any], pieces: Iterable[Piece], cells: list[list[str]]) -> TableRows:
    values, target = _values(model, pieces)
    full = ~np.isnan(target)
    for column, column_values in zip(model["columns"], values, strict=True):
        if column.get("missing") != "learn":
            full &= ~np.isnan(column_values)
    if not full.any():
        raise DataError(
            "Every row of the file has a gap in a column of the model. Give the file that the model was trained on."
        )
    gaps = {
        c["name"]: int(np.isnan(column_values).sum()) for c, column_values in zip(model["columns"], values, strict=True)
    }
    file_rows = len(full)
    dependence = read_dependence(model, cells, full)
    if not full.all():
        values = [column_values[full] for column_values in values]
        target = target[full]
    odd = [
        "categories" in c and (column_values < 0).any()
        for c, column_values in zip(model["columns"], values, strict=True)
    ]
    strange = [c["name"] for c, column_values in zip(model["columns"], odd, strict=True) if column_values]
    strange += [model["target"]] * bool((target < 0).any())
    labels = np.maximum(target, 0).astype(np.int32)
    held_out, trains, fold, plain, findings = _read_roles(model, labels, file_rows, dependence)
    weights = row_weights(model, labels, plain, trains)
    step = read_fraction((model.get("rows") or {}).get("weight", {}).get("step", 1))
    step = step if step > 0 else Fraction(1)  # `weights_finding` refutes other steps
    rows = ModelTable(values, labels, weights, plain, _read_row_costs(model, len(labels)), step, dependence.weights)
    data = TableRows(rows, held_out, trains, fold, [], dependence)
    data.findings.extend(
        [
            _check_fingerprint(model, data.training),
            _check_categories(strange),
            *_check_kinds(model, values, gaps),
            *_check_decimals_and_units(model, data.training),
            *_check_fills(model, data.training),
            *contract_findings(model, data.training),
            *findings,
        ]
    )
    return data


def _values(model: dict[str, Any], pieces: Iterable[Piece]) -> tuple[list[np.ndarray], np.ndarray]:
    """Read the columns and the target as float64; NaN for a gap, -1 for a word that the model does not list."""
    target = {"name": model["target"], "kind": "categorical", "categories": model["classes"], "missing": "drop"}
    schema = [*model["columns"], target]
    codes: list[array[Any]] = [array("i" if c["kind"] == "categorical" else "d") for c in schema]
    words: list[dict[str, int]] = [{} for _ in schema]
    for piece in pieces:
        for column, column_codes, words_of_column, cells in zip(schema, codes, words, piece, strict=True):
            coded = column_codes.typecode == "i"
            column_codes.extend(
                [words_of_column.setdefault(c, len(words_of_column)) for c in cells]
                if coded
                else _numbers(cells, column["name"])
            )
    if not len(codes[-1]):
        raise DataError("The file of rows has a header but no row. Give the file that the model was trained on.")
    values: list[np.ndarray] = []
    for column, words_of_column, cells in zip(schema, words, codes, strict=True):
        if cells.typecode == "i":
            values.append(_codes(column, list(words_of_column))[np.frombuffer(cells, np.intc)])
        else:
            values.append(np.frombuffer(cells, np.float64))
    return values[:-1], values[-1]


def _numbers(cells: Sequence[str], name: str) -> list[float]:
    """Read a piece of a numeric column; NaN for a gap. Raise DataError for anything else."""
    try:
        values = [float(cell) for cell in cells]
        together = "".join(cells)
        if together.isascii() and "_" not in together and all(map(math.isfinite, values)):
            return [value + 0.0 for value in values]  # adding 0.0 turns -0.0 into 0.0
    except ValueError:
        pass
    return [_number(cell, name) for cell in cells]


def _number(cell: str, name: str) -> float:
    if cell in GAPS:
        return math.nan
    if cell in TRUTH:
        return TRUTH[cell]
    value = float(cell) if NUMBER.fullmatch(cell) else math.nan
    if not math.isfinite(value):
        raise DataError(
            f"Column '{name}' holds numbers in the model; the file has '{cell[:60]}' there. Give the file that the model was trained on."
        )
    return value + 0.0


def _codes(column: dict[str, Any], words: list[str]) -> np.ndarray:
    """Return the code of each word: its position among the categories, NaN for a gap, -1 if it is not listed."""
    place = {word: float(code) for code, word in enumerate(column["categories"])}
    marks = GAPS
    others = [word for word in words if word not in GAPS]
    if others and 2 * sum(re.fullmatch("[A-Z]{2}", word) is not None for word in others) >= len(others):
        marks = GAPS - {"NA"}  # among codes of two letters, NA is a value, such as Namibia
    gap = place.get(MISSING, -1.0) if column.get("missing") in ("category", "learn") else math.nan
    return np.array([gap if word in marks else place.get(word, -1.0) for word in words])


def _check_categories(strange: list[str]) -> Finding:
    words = f"The file of rows has values of '{strange[0]}' that the model does not list." if strange else ""
    return recount_finding(
        "categories and classes", not strange, words or "Every value that occurs is listed.", "basis"
    )


def _check_kinds(model: dict[str, Any], values: Sequence[np.ndarray], gaps: dict[str, int]) -> list[Finding]:
    """Refute binary columns with other numbers, and gaps in columns that refuse them."""
    for column, column_values in zip(model["columns"], values, strict=True):
        if column["kind"] == "binary" and not (np.isin(column_values, (0, 1)) | np.isnan(column_values)).all():
            return [
                recount_finding("columns", False, f"Column '{column['name']}' has other values than 0 and 1.", "basis")
            ]
        if column.get("missing") == "refuse" and gaps[column["name"]]:
            words = f"Column '{column['name']}' has {gaps[column['name']]} empty cells, and the model refuses these."
            return [recount_finding("columns", False, words, "basis")]
    return []


def _check_decimals_and_units(model: dict[str, Any], rows: ModelTable) -> list[Finding]:
    """Refute decimals and units of change that are not those of the training rows."""
    for column, cells in zip(model["columns"], rows.columns, strict=True):
        values = cells[~np.isnan(cells)]
        for name, count in (("decimals", _decimals), ("change_unit", _change_unit)):
            stated = column.get(name)
            if stated is None:
                continue
            expected = None if column["kind"] == "categorical" or not len(values) else count(np.unique(values), values)
            if expected is None or not math.isclose(stated, expected, rel_tol=1e-9):
                words = f"Column '{column['name']}' states {name} {stated}; the training rows give {expected}."
                return [recount_finding("columns", False, words, "basis")]
    return []


def _check_fills(model: dict[str, Any], rows: ModelTable) -> list[Finding]:
    """Refute fill values that are not the weighted lower medians of the training rows."""
    for column, values in zip(model["columns"], rows.columns, strict=True):
        if column.get("fill") is None:
            continue
        expected = None if column["kind"] == "categorical" else lower_median(values, rows.plain)
        if expected is None or float(column["fill"]) != expected:
            words = (
                f"Column '{column['name']}' fills empty cells with {column['fill']}; the training rows give {expected}."
            )
            return [recount_finding("columns", False, words, "basis")]
        if column.get("fill_seen", True) != bool(np.isnan(values).any()):
            words = (
                f"Column '{column['name']}' has a wrong 'fill_seen': it tells whether training rows had empty cells."
            )
            return [recount_finding("columns", False, words, "basis")]
    return []


def _decimals(distinct: np.ndarray, _: np.ndarray) -> int:
    """Return the number of decimals of the values; 13 for more than 12."""
    largest = float(np.abs(distinct).max())
    exponents = (int(Decimal(repr(v)).normalize().as_tuple().exponent) for v in distinct.tolist() if v)
    finest = max(0, -min(exponents, default=0))
    if largest >= MAX_WEIGHT_SUM:
        return 0
    return 13 if finest > 12 or largest * 10.0**finest >= MAX_WEIGHT_SUM else finest


def _change_unit(distinct: np.ndarray, values: np.ndarray) -> float:
    """Return the median absolute deviation, else the mean one, else 1, rounded to 1, 2 or 5 times a power of ten."""
    with np.errstate(over="ignore", invalid="ignore"):
        median = float(np.median(np.abs(values - np.median(values))))
        mean = float(np.abs(values - values.mean()).mean())
    deviations = [size for size in (median, mean) if 0 < size < math.inf and len(distinct) > 1]
    size = deviations[0] if deviations else 1.0
    power = math.floor(math.log10(size))
    units = (float(f"{digit}e{exponent}") for exponent in (power, power + 1) for digit in (1, 2, 5))
    usable = [unit for unit in units if 0 < unit < math.inf]
    return min(usable, key=lambda unit: abs(math.log(unit) - math.log(size)), default=size)


def _check_fingerprint(model: dict[str, Any], rows: ModelTable) -> Finding:
    digest = hashlib.sha256()
    for column, values in zip(model["columns"], rows.columns, strict=True):
        members = {name: value for name, value in column.items() if name in FINGERPRINTED}
        digest.update(repr(sorted(members.items())).encode())
        digest.update(np.where(np.isnan(values), np.nan, values).astype("<f8").tobytes())
    digest.update(repr((model["target"], tuple(model["classes"]))).encode())
    digest.update(rows.labels.astype("<i4").tobytes())
    same = digest.hexdigest() == model.get("fingerprint")
    words = f"SHA-256 of {len(rows)} rows is the same as in the training."
    return recount_finding("data", same, words if same else "These are not the rows of the training.", "basis")


# -- roles and weights of rows -----------------------------------------------------------------------------------------


class RowRoles(NamedTuple):
    """The masks `held_out` and `trains`, bool of shape (n,), folds and weights, int64 of shape (n,), and findings on them."""

    held_out: np.ndarray
    trains: np.ndarray
    fold: np.ndarray
    weights: np.ndarray
    findings: list[Finding]


def _read_roles(model: dict[str, Any], labels: np.ndarray, file_rows: int, dependence: Dependence) -> RowRoles:
    """Read the roles of the rows; `file_rows` counts the rows of the file, those with gaps included."""
    parameters = model.get("parameters") or {}
    n = len(labels)
    share, folds, seed = (parameters.get(name) or 0 for name in ("test_share", "folds", "seed"))
    record = model.get("rows")
    if record is None:  # an older file lists no roles, so the rule of its version applies
        words = "This older file does not list them; they follow from the seed."
        findings = [recount_finding("rows held out", True, words)] if share or folds else []
        held_out = _draw_held_out(labels, share, seed)
        return RowRoles(held_out, ~held_out, _deal_folds(labels, folds, seed), np.ones(n, np.int64), findings)
    signs = [record.get(name) for name in ("held_out", "folds")]
    lists = [record.get(name) or [] for name in ("weights", "fold_trees")]
    odd = any(text is not None and not isinstance(text, str) for text in signs) or not isinstance(record["used"], int)
    if odd or not all(isinstance(text, list) for text in lists):
        raise TypeError("a member of 'rows' has a wrong type")
    role = np.array(["012".index(sign) for sign in record.get("held_out") or "0" * n])
    fold = np.array([-1 if sign == "-" else FOLD_SIGNS.index(sign) for sign in record.get("folds") or "-" * n])
    listed_weights = record.get("weights") or [1] * n
    if not all(type(weight) is int for weight in listed_weights):
        raise TypeError("a weight of 'rows' is not a whole number")
    weights = np.array(listed_weights, np.int64)
    sizes = {len(role), len(fold), len(weights), int(record["used"])}
    if sizes != {n}:
        words = f"The model lists {record['used']} rows, the file has {n} without gaps."
        nothing = np.zeros(n, bool)
        return RowRoles(
            nothing, ~nothing, np.full(n, -1), np.ones(n, np.int64), [recount_finding("rows", False, words, "basis")]
        )
    roles = RowRoles(role == 1, role == 0, fold, weights, [])
    if (weights < 0).any() or not weights.sum(dtype=np.float64) < MAX_WEIGHT_SUM:
        roles.findings.append(
            recount_finding("weights", False, "A weight is below 0, or their sum is 2^53 or more.", "basis")
        )
        return roles
    roles.findings.append(recount_finding("rows", True, f"{n} of {file_rows} rows have no gaps, as listed.", "basis"))
    if dependence.weights is not None:
        return _weighted_roles(model, labels, dependence, roles, role)
    if record.get("weights"):
        idle = f"; {int((weights == 0).sum())} rows count nothing" if (weights == 0).any() else ""
        words = f"Rows count as the file says, {int(weights.sum())} in all{idle}."
        roles.findings.append(recount_finding("weights", True, words))
    roles.findings.extend(_choice_findings(model, labels, dependence, roles))
    return roles


def _choice_findings(
    model: dict[str, Any], labels: np.ndarray, dependence: Dependence, roles: RowRoles
) -> list[Finding]:
    """Check the held-out rows and the folds."""
    parameters = model.get("parameters") or {}
    share, folds, seed = (parameters.get(name) or 0 for name in ("test_share", "folds", "seed"))
    findings = []
    if share or not roles.trains.all():
        findings.append(_held_out_finding(labels, dependence, roles, share, seed))
    listed = (model.get("rows") or {}).get("folds") or (model.get("metrics") or {}).get("cross_validation")
    if listed and (folds or roles.fold.max() >= 0):
        findings.append(_folds_finding(labels, dependence, roles.fold, folds, seed))
    return findings


def _weighted_roles(
    model: dict[str, Any], labels: np.ndarray, dependence: Dependence, roles: RowRoles, role: np.ndarray
) -> RowRoles:
    """Return the roles with findings; rows of weight 0 have no role, and the others are assigned as if these did not exist."""
    weighted = roles.weights > 0
    assert dependence.weights is not None
    roles.findings.append(weights_finding(model, dependence.weights, roles.weights, roles.trains))
    if not weighted.any() or (role[~weighted] != 2).any() or (roles.fold[~weighted] >= 0).any():
        roles.findings.append(
            recount_finding(
                "rows held out",
                False,
                "A row of weight 0 trains, is held out or is in a fold, or all rows have weight 0.",
            )
        )
        return roles
    weighted_roles = RowRoles(
        roles.held_out[weighted], roles.trains[weighted], roles.fold[weighted], roles.weights[weighted], []
    )
    roles.findings.extend(_choice_findings(model, labels[weighted], dependence.take(weighted), weighted_roles))
    return roles


def _held_out_finding(labels: np.ndarray, dependence: Dependence, roles: RowRoles, share: float, seed: int) -> Finding:
    held_out = roles.held_out
    if dependence.groups is not None or dependence.times is not None:
        return held_out_finding(labels, dependence, held_out, ~held_out & ~roles.trains, share, seed)
    if (held_out == roles.trains).any():
        return recount_finding("rows held out", False, "Some row neither trained nor was held out, or did both.")
    every = np.bincount(labels)
    out = np.bincount(labels[held_out], minlength=len(every))
    right = all(b == min(m - 1, round(share * m)) for m, b in zip(every.tolist(), out.tolist(), strict=True) if m)
    words = f"{int(held_out.sum())} of {len(labels)} rows; each class has its share."
    same = bool((held_out == _draw_held_out(labels, share, seed)).all())
    return _choice_finding("rows held out", right, words, same=same)


def _folds_finding(labels: np.ndarray, dependence: Dependence, fold: np.ndarray, folds: int, seed: int) -> Finding:
    if dependence.groups is not None or dependence.times is not None:
        return folds_finding(labels, dependence, fold, folds, seed)
    if (fold < 0).any():
        return recount_finding("folds", False, "A row is in no fold.")
    parts = np.array([np.bincount(fold[labels == k], minlength=folds) for k in np.unique(labels)])
    even = len(parts[0]) == folds and all(np.ptp(sizes) <= 1 for sizes in [*parts, parts.sum(axis=0)])
    words = (
        f"{folds} folds of {parts.sum(axis=0).min()} to {parts.sum(axis=0).max()} rows, each class dealt out evenly."
    )
    same = even and bool((fold == _deal_folds(labels, folds, seed)).all())
    return _choice_finding("folds", even, words, same=same)


def _choice_finding(claim: str, right: bool, words: str, *, same: bool) -> Finding:
    """Judge rows that the seed must give; other rows may come from another NumPy or be hand-picked, so they stay unjudged."""
    if same or not right:
        return recount_finding(claim, right, words)
    return unjudged_finding(
        claim, words + " The seed of the file gives other rows, so it is not known who chose these."
    )


def _read_row_costs(model: dict[str, Any], n: int) -> np.ndarray | None:
    """Read the cost of each answer in each of `n` rows, float64 of shape (n, classes); None without costs of rows."""
    listed = (model.get("rows") or {}).get("costs")
    if listed is None:
        return None
    costs = np.array(listed, np.float64)
    if costs.shape != (n, len(model["classes"])) or not (np.isfinite(costs) & (costs >= 0)).all():
        raise ValueError("the costs of the rows must be one number of at least 0 per row and class")
    return costs


def _draw_held_out(labels: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Hold out the first rows of a seeded shuffle of each class; at least one row of it trains."""
    out = np.zeros(len(labels), bool)
    rng = np.random.default_rng(seed)
    for k in np.unique(labels) if share else ():
        members = rng.permutation(np.flatnonzero(labels == k))
        out[members[: min(len(members) - 1, round(share * len(members)))]] = True
    return out


def _deal_folds(labels: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """Deal the rows to folds in turn, class by class, after a seeded shuffle."""
    fold = np.full(len(labels), -1)
    if folds:
        order = np.random.default_rng(seed).permutation(len(labels))
        fold[order[np.argsort(labels[order], kind="stable")]] = np.arange(len(labels)) % folds
    return fold


def row_weights(model: dict[str, Any], labels: np.ndarray, plain: np.ndarray, training: np.ndarray) -> np.ndarray:
    """Return the weights of rows: `plain`, or the least integers that make the classes equally heavy if they are balanced.

    If these add up to more than MOST_BALANCED, each row gets the nearest positive integer to its share of MOST_BALANCED.
    """
    asks = (model.get("parameters") or {}).get("class_weight")
    if asks not in (None, "", "none", "balanced"):
        raise ValueError(f"'class_weight' is {str(asks)[:40]!r}, which is neither 'none' nor 'balanced'")
    if asks != "balanced":
        return plain
    sizes = np.array([int(plain[training & (labels == k)].sum()) for k in range(len(model["classes"]))])
    present = sizes[sizes > 0].tolist()
    total = math.lcm(*present)
    if total * len(present) > MOST_BALANCED:
        total = max(0, MOST_BALANCED - int(np.count_nonzero(plain[training]))) // len(present)
    if max(len(plain), int(plain.max(initial=0))) > MAX_BALANCED_ROW:
        raise ValueError("the weights of balanced classes are too large")
    size = np.maximum(sizes, 1)[labels]
    weights = np.maximum((2 * total * plain + size) // (2 * size), plain > 0) * (sizes[labels] > 0)
    return weights // max(1, int(np.gcd.reduce(weights[training])))
