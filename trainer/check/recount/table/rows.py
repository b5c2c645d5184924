"""The rows of a model, made from the text of the file by the schema that the model states; which of them trained, and what each counts."""

from __future__ import annotations

import hashlib
import math
import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trainer.check.proof.model import ModelTable
from trainer.check.proof.space.questions import lower_median
from trainer.check.recount.findings import Finding, recounted, unjudged
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
from trainer.check.recount.table.reading import GAPS, Gone, plain_pieces, reading_findings, skipped_lines, sources
from trainer.check.recount.table.tables import Piece, readings
from trainer.errors import DataError

TRUTH = dict.fromkeys(("true", "True", "TRUE"), 1.0) | dict.fromkeys(("false", "False", "FALSE"), 0.0)
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,5})?", re.ASCII)
FOLD_SIGNS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
MISSING = "(missing)"
FINGERPRINTED = frozenset(
    ["name", "kind", "missing", "categories", "unit", "special"]
)  # the members of a column, as training hashes them
MAX_WEIGHT_SUM = 1 << 53  # sums of weights stay below it, so that doubles hold them


def take_rows(rows: ModelTable, chosen: np.ndarray) -> ModelTable:
    """The chosen rows (indices or a mask)."""
    if chosen.dtype == bool and chosen.all():
        return rows
    costs = None if rows.costs is None else rows.costs[chosen]
    columns = [c[chosen] for c in rows.columns]
    return ModelTable(columns, rows.labels[chosen], rows.weights[chosen], rows.plain[chosen], costs)


def unweighted(rows: ModelTable) -> ModelTable:
    """The same without the weights of classes."""
    return replace(rows, weights=rows.plain)


@dataclass(frozen=True)
class TableRows:
    """All usable rows of the file; `held_out` and `trains` bool (n,); `fold` int64 (n,), -1 for none; findings on them."""

    rows: ModelTable
    held_out: np.ndarray
    trains: np.ndarray
    fold: np.ndarray
    findings: list[Finding]
    bound: Dependence = field(default_factory=Dependence)

    @property
    def training(self) -> ModelTable:
        """The rows that the tree was trained on."""
        return take_rows(self.rows, self.trains)

    def trains_for(self, f: int) -> np.ndarray:
        """Return which rows train for a fold."""
        return trains_for(self.fold, self.bound, f)


def load(path: Path, model: dict[str, Any]) -> TableRows:
    """The rows under the model's schema, read in the way that gives the fingerprint of the model, or else in the first way."""
    wanted = [c["name"] for c in model["columns"]] + [model["target"]]
    first: TableRows | None = None
    trouble: DataError | None = None
    own = sources(model, wanted)
    extra = dependence_columns(model)
    encoding = str((model.get("reading") or {}).get("encoding") or "")
    for pieces, around in readings(path, [*(source.name for source in own), *extra], skipped_lines(model), encoding):
        gone = Gone()
        cells: list[list[str]] = [[] for _ in extra]
        try:
            found = _data(model, plain_pieces(divert(pieces, len(own), cells), own, wanted, gone), cells)
            found.findings.extend(reading_findings(model, around, gone))
        except DataError as error:
            trouble = trouble or error
            continue
        if all(f.verdict != "refuted" for f in found.findings):
            return found
        first = first or found
    if first is not None:
        return first
    raise trouble or DataError(
        f"The file lacks columns of the model ({', '.join([*(source.name for source in own), *extra])[:200]}). Give the file that the model was trained on."
    )


def _data(model: dict[str, Any], pieces: Iterable[Piece], cells: list[list[str]]) -> TableRows:
    values, target = _values(model, pieces)
    full = ~np.isnan(target)
    for column, own in zip(model["columns"], values, strict=True):
        if column.get("missing") != "learn":
            full &= ~np.isnan(own)
    if not full.any():
        raise DataError("Every row of the file has a gap in a column of the model.")
    gaps = {c["name"]: int(np.isnan(own).sum()) for c, own in zip(model["columns"], values, strict=True)}
    whole = len(full)
    bound = read_dependence(model, cells, full)
    if not full.all():
        values = [own[full] for own in values]
        target = target[full]
    odd = ["categories" in c and (own < 0).any() for c, own in zip(model["columns"], values, strict=True)]
    strange = [c["name"] for c, own in zip(model["columns"], odd, strict=True) if own]
    strange += [model["target"]] * bool((target < 0).any())
    labels = np.maximum(target, 0).astype(np.int32)
    held_out, trains, fold, plain, said = _roles(model, labels, whole, bound)
    weights = weighed(model, labels, plain, trains)
    rows = ModelTable(values, labels, weights, plain, _own_costs(model, len(labels)))
    data = TableRows(rows, held_out, trains, fold, [], bound)
    data.findings.extend(
        [
            _fingerprint(model, data.training),
            _list_values(strange),
            *_kinds(model, values, gaps),
            *_steps_and_units(model, data.training),
            *_fills(model, data.training),
            *contract_findings(model, data.training),
            *said,
        ]
    )
    return data


def _values(model: dict[str, Any], pieces: Iterable[Piece]) -> tuple[list[np.ndarray], np.ndarray]:
    """The columns and the target, float64; NaN for a gap, -1 for a word that the model does not list."""
    target = {"name": model["target"], "kind": "categorical", "categories": model["classes"], "missing": "drop"}
    schema = [*model["columns"], target]
    kept: list[array] = [array("i" if c["kind"] == "categorical" else "d") for c in schema]
    words: list[dict[str, int]] = [{} for _ in schema]
    for piece in pieces:
        for column, own, known, cells in zip(schema, kept, words, piece, strict=True):
            coded = own.typecode == "i"
            own.extend([known.setdefault(c, len(known)) for c in cells] if coded else _numbers(cells, column["name"]))
    if not len(kept[-1]):
        raise DataError("The file of rows has a header but no row.")
    found: list[np.ndarray] = []
    for column, known, cells in zip(schema, words, kept, strict=True):
        if cells.typecode == "i":
            found.append(_codes(column, list(known))[np.frombuffer(cells, np.intc)])
        else:
            found.append(np.frombuffer(cells, np.float64))
    return found[:-1], found[-1]


def _numbers(cells: Sequence[str], name: str) -> list[float]:
    """The values of a piece of a column of numbers; NaN for a gap, DataError for what is neither."""
    try:
        values = [float(cell) for cell in cells]
        together = "".join(cells)
        if together.isascii() and "_" not in together and all(map(math.isfinite, values)):
            return [value + 0.0 for value in values]  # no negative zero
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
        raise DataError(f"Column '{name}' holds numbers in the model; the file has '{cell[:60]}' there.")
    return value + 0.0


def _codes(column: dict[str, Any], words: list[str]) -> np.ndarray:
    """The value of each word of a column: its position among the categories, NaN for a gap, -1 where it is not listed."""
    place = {word: float(code) for code, word in enumerate(column["categories"])}
    marks = GAPS
    others = [word for word in words if word not in GAPS]
    if others and 2 * sum(re.fullmatch("[A-Z]{2}", word) is not None for word in others) >= len(others):
        marks = GAPS - {"NA"}  # a value among other codes of two letters
    gap = place.get(MISSING, -1.0) if column.get("missing") in ("category", "learn") else math.nan
    return np.array([gap if word in marks else place.get(word, -1.0) for word in words])


def _list_values(strange: list[str]) -> Finding:
    words = f"The file of rows has values of '{strange[0]}' that the model does not list." if strange else ""
    return recounted("categories and classes", not strange, words or "Every value that occurs is listed.", "basis")


def _kinds(model: dict[str, Any], values: Sequence[np.ndarray], gaps: dict[str, int]) -> list[Finding]:
    """The columns that are not what the schema says: yes/no columns of other numbers, and gaps where none is allowed."""
    for column, own in zip(model["columns"], values, strict=True):
        if column["kind"] == "binary" and not (np.isin(own, (0, 1)) | np.isnan(own)).all():
            return [recounted("columns", False, f"Column '{column['name']}' has other values than 0 and 1.", "basis")]
        if column.get("missing") == "refuse" and gaps[column["name"]]:
            words = f"Column '{column['name']}' has {gaps[column['name']]} empty cells, and the model refuses these."
            return [recounted("columns", False, words, "basis")]
    return []


def _steps_and_units(model: dict[str, Any], rows: ModelTable) -> list[Finding]:
    """Refute decimals and units of change that are not those of the training rows."""
    for column, own in zip(model["columns"], rows.columns, strict=True):
        values = own[~np.isnan(own)]
        for name, count in (("decimals", _decimals), ("change_unit", _change_unit)):
            stated = column.get(name)
            if stated is None:
                continue
            counted = None if column["kind"] == "categorical" or not len(values) else count(np.unique(values), values)
            if counted is None or not math.isclose(stated, counted, rel_tol=1e-9):
                words = f"Column '{column['name']}' states {name} {stated}; the training rows give {counted}."
                return [recounted("columns", False, words, "basis")]
    return []


def _fills(model: dict[str, Any], rows: ModelTable) -> list[Finding]:
    """Refute fill values that are not the weighted lower medians of the training rows."""
    for column, values in zip(model["columns"], rows.columns, strict=True):
        if column.get("fill") is None:
            continue
        counted = None if column["kind"] == "categorical" else lower_median(values, rows.plain)
        if counted is None or float(column["fill"]) != counted:
            words = (
                f"Column '{column['name']}' fills empty cells with {column['fill']}; the training rows give {counted}."
            )
            return [recounted("columns", False, words, "basis")]
        if column.get("fill_seen", True) != bool(np.isnan(values).any()):
            words = f"Column '{column['name']}' says wrongly whether training rows had empty cells."
            return [recounted("columns", False, words, "basis")]
    return []


def _decimals(distinct: np.ndarray, _: np.ndarray) -> int:
    """Return the decimals that the values are written with; 13 for more than 12."""
    largest = float(np.abs(distinct).max())
    exponents = (int(Decimal(repr(v)).normalize().as_tuple().exponent) for v in distinct.tolist() if v)
    finest = max(0, -min(exponents, default=0))
    if largest >= MAX_WEIGHT_SUM:
        return 0
    return 13 if finest > 12 or largest * 10.0**finest >= MAX_WEIGHT_SUM else finest


def _change_unit(distinct: np.ndarray, values: np.ndarray) -> float:
    """Return the median absolute deviation, else the mean one, else 1, as the nearest of 1, 2 and 5 times a power of ten."""
    with np.errstate(over="ignore", invalid="ignore"):
        median = float(np.median(np.abs(values - np.median(values))))
        mean = float(np.abs(values - values.mean()).mean())
    found = [size for size in (median, mean) if 0 < size < math.inf and len(distinct) > 1]
    size = found[0] if found else 1.0
    power = math.floor(math.log10(size))
    units = (float(f"{digit}e{exponent}") for exponent in (power, power + 1) for digit in (1, 2, 5))
    usable = [unit for unit in units if 0 < unit < math.inf]
    return min(usable, key=lambda unit: abs(math.log(unit) - math.log(size)), default=size)


def _fingerprint(model: dict[str, Any], rows: ModelTable) -> Finding:
    digest = hashlib.sha256()
    for column, values in zip(model["columns"], rows.columns, strict=True):
        own = {name: value for name, value in column.items() if name in FINGERPRINTED}
        digest.update(repr(sorted(own.items())).encode())
        digest.update(np.where(np.isnan(values), np.nan, values).astype("<f8").tobytes())
    digest.update(repr((model["target"], tuple(model["classes"]))).encode())
    digest.update(rows.labels.astype("<i4").tobytes())
    same = digest.hexdigest() == model.get("fingerprint")
    words = f"SHA-256 of {len(rows)} rows is the same as in the training."
    return recounted("data", same, words if same else "These are not the rows of the training.", "basis")


# -- which rows trained, and what each counts --------------------------------------------------------------------------


class RowRoles(NamedTuple):
    """Held out and trains, bool (n,); fold and weight, int64 (n,); what is found of them."""

    held_out: np.ndarray
    trains: np.ndarray
    fold: np.ndarray
    weights: np.ndarray
    findings: list[Finding]


def _roles(model: dict[str, Any], labels: np.ndarray, whole: int, bound: Dependence) -> RowRoles:
    """Return the roles of the rows; `whole`: rows with those that have gaps."""
    parameters = model.get("parameters") or {}
    n = len(labels)
    share, folds, seed = (parameters.get(name) or 0 for name in ("test_share", "folds", "seed"))
    kept = model.get("rows")
    if kept is None:  # an older file: the rule that held when it was made
        words = "This older file does not list them; they follow from the seed."
        said = [recounted("rows held out", True, words)] if share or folds else []
        held_out = _draw_held_out(labels, share, seed)
        return RowRoles(held_out, ~held_out, _deal_folds(labels, folds, seed), np.ones(n, np.int64), said)
    signs = [kept.get(name) for name in ("held_out", "folds")]
    lists = [kept.get(name) or [] for name in ("weights", "fold_trees")]
    odd = any(own is not None and not isinstance(own, str) for own in signs) or not isinstance(kept["used"], int)
    if odd or not all(isinstance(own, list) for own in lists):
        raise TypeError("'rows' does not list them as it should")
    role = np.array(["012".index(sign) for sign in kept.get("held_out") or "0" * n])
    fold = np.array([-1 if sign == "-" else FOLD_SIGNS.index(sign) for sign in kept.get("folds") or "-" * n])
    weights = np.array(kept.get("weights") or [1] * n, np.int64)
    sizes = {len(role), len(fold), len(weights), int(kept["used"])}
    if sizes != {n}:
        words = f"The model lists {kept['used']} rows, the file has {n} without gaps."
        nothing = np.zeros(n, bool)
        return RowRoles(
            nothing, ~nothing, np.full(n, -1), np.ones(n, np.int64), [recounted("rows", False, words, "basis")]
        )
    roles = RowRoles(role == 1, role == 0, fold, weights, [])
    if (weights < 0).any() or not weights.sum(dtype=np.float64) < MAX_WEIGHT_SUM:
        roles.findings.append(recounted("weights", False, "They are below 0, or too large.", "basis"))
        return roles
    roles.findings.append(recounted("rows", True, f"{n} of {whole} rows have no gaps, as listed.", "basis"))
    if bound.weights is not None:
        return _weighted_roles(model, labels, bound, roles, role)
    if kept.get("weights"):
        idle = f"; {int((weights == 0).sum())} rows count nothing" if (weights == 0).any() else ""
        words = f"Rows count as the file says, {int(weights.sum())} in all{idle}."
        roles.findings.append(recounted("weights", True, words))
    roles.findings.extend(_choice_findings(model, labels, bound, roles))
    return roles


def _choice_findings(model: dict[str, Any], labels: np.ndarray, bound: Dependence, roles: RowRoles) -> list[Finding]:
    """Judge which rows are held out, and the folds."""
    parameters = model.get("parameters") or {}
    share, folds, seed = (parameters.get(name) or 0 for name in ("test_share", "folds", "seed"))
    found = []
    if share or not roles.trains.all():
        found.append(_held_out_finding(labels, bound, roles, share, seed))
    listed = (model.get("rows") or {}).get("folds") or (model.get("metrics") or {}).get("cross_validation")
    if listed and (folds or roles.fold.max() >= 0):
        found.append(_folds_finding(labels, bound, roles.fold, folds, seed))
    return found


def _weighted_roles(
    model: dict[str, Any], labels: np.ndarray, bound: Dependence, roles: RowRoles, role: np.ndarray
) -> RowRoles:
    """Return the roles with findings: rows of weight 0 do nothing, and the others are dealt out as if these were not there."""
    counted = roles.weights > 0
    assert bound.weights is not None
    roles.findings.append(weights_finding(model, bound.weights, roles.weights, roles.trains))
    if not counted.any() or (role[~counted] != 2).any() or (roles.fold[~counted] >= 0).any():
        roles.findings.append(recounted("rows held out", False, "A row of weight 0 trains, or is tested."))
        return roles
    own = RowRoles(roles.held_out[counted], roles.trains[counted], roles.fold[counted], roles.weights[counted], [])
    roles.findings.extend(_choice_findings(model, labels[counted], bound.take(counted), own))
    return roles


def _held_out_finding(labels: np.ndarray, bound: Dependence, roles: RowRoles, share: float, seed: int) -> Finding:
    held_out = roles.held_out
    if bound.groups is not None or bound.times is not None:
        return held_out_finding(labels, bound, held_out, ~held_out & ~roles.trains, share, seed)
    if (held_out == roles.trains).any():
        return recounted("rows held out", False, "Rows neither trained nor were held out.")
    every = np.bincount(labels)
    out = np.bincount(labels[held_out], minlength=len(every))
    right = all(b == min(m - 1, round(share * m)) for m, b in zip(every.tolist(), out.tolist(), strict=True) if m)
    words = f"{int(held_out.sum())} of {len(labels)} rows; each class has its share."
    same = bool((held_out == _draw_held_out(labels, share, seed)).all())
    return _choice_finding("rows held out", right, words, same=same)


def _folds_finding(labels: np.ndarray, bound: Dependence, fold: np.ndarray, folds: int, seed: int) -> Finding:
    if bound.groups is not None or bound.times is not None:
        return folds_finding(labels, bound, fold, folds, seed)
    if (fold < 0).any():
        return recounted("folds", False, "A row is in no fold.")
    parts = np.array([np.bincount(fold[labels == k], minlength=folds) for k in np.unique(labels)])
    even = len(parts[0]) == folds and all(np.ptp(own) <= 1 for own in [*parts, parts.sum(axis=0)])
    words = (
        f"{folds} folds of {parts.sum(axis=0).min()} to {parts.sum(axis=0).max()} rows, each class dealt out evenly."
    )
    same = even and bool((fold == _deal_folds(labels, folds, seed)).all())
    return _choice_finding("folds", even, words, same=same)


def _choice_finding(claim: str, right: bool, words: str, *, same: bool) -> Finding:
    """Rows are chosen by the seed. Others may be those of another NumPy, or have been picked: the numbers hold, and are not proved."""
    if same or not right:
        return recounted(claim, right, words)
    return unjudged(claim, words + " The seed of the file gives other ones, so that who chose them is not known.")


def _own_costs(model: dict[str, Any], n: int) -> np.ndarray | None:
    """What each answer costs in each of `n` rows, float64 (n, classes); None where rows have no costs of their own."""
    stated = (model.get("rows") or {}).get("costs")
    if stated is None:
        return None
    costs = np.array(stated, np.float64)
    if costs.shape != (n, len(model["classes"])) or not (np.isfinite(costs) & (costs >= 0)).all():
        raise ValueError("the costs of the rows are not one number per row and class that is not negative")
    return costs


def _draw_held_out(labels: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Of each class in turn the first of a seeded shuffle; one row at least trains."""
    out = np.zeros(len(labels), bool)
    rng = np.random.default_rng(seed)
    for k in np.unique(labels) if share else ():
        members = rng.permutation(np.flatnonzero(labels == k))
        out[members[: min(len(members) - 1, round(share * len(members)))]] = True
    return out


def _deal_folds(labels: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """After a seeded shuffle the rows, class by class, are dealt out in turn."""
    fold = np.full(len(labels), -1)
    if folds:
        order = np.random.default_rng(seed).permutation(len(labels))
        fold[order[np.argsort(labels[order], kind="stable")]] = np.arange(len(labels)) % folds
    return fold


def weighed(model: dict[str, Any], labels: np.ndarray, plain: np.ndarray, training: np.ndarray) -> np.ndarray:
    """What each row counts: `plain`, or, where classes are balanced, the least whole numbers that make them equally heavy."""
    asks = (model.get("parameters") or {}).get("class_weight")
    if asks not in (None, "", "none", "balanced"):
        raise ValueError(f"there are no class weights {str(asks)[:40]!r}")
    if asks != "balanced":
        return plain
    sizes = [int(plain[training & (labels == k)].sum()) for k in range(len(model["classes"]))]
    whole = math.lcm(*(size for size in sizes if size))
    if whole * len(sizes) >= MAX_WEIGHT_SUM:
        raise ValueError("the weights of balanced classes are too large")
    found = plain * np.array([whole // size if size else 0 for size in sizes], np.int64)[labels]
    return found // max(1, int(np.gcd.reduce(found[training])))
