"""Check and propose the columns for groups, time and weights of rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from octweb.datasets.models import Dataset
from octweb.datasets.stored import raw_columns
from trainer.data.dependence import check_dependence, empty_rows, read_times
from trainer.data.parsing import ColumnParsing
from trainer.data.parsing.dates import TIME
from trainer.data.row_weights import read_weights
from trainer.errors import DataError, ParameterError
from trainer.solver_common.problem_setup import check_weights
from trainer.table import MissingPolicy

ROLES = ("group", "time", "weight")
FEWEST_GROUPS = 5
ROWS_PER_GROUP = 1.5  # a column with fewer rows per value identifies single rows, not groups
WORDS_OF_THINGS = re.compile(
    r"(?:^|[\W_])(?:id|ids|patient|person|customer|client|user|subject|student|household|family|machine|device|account|employee|"
    r"member|owner|shop|store|site|ward|hospital|school|kunde|kundin|patientin|konto|nummer|no|nr)(?:$|[\W_])|[a-z](?:Id|ID)$",
    re.IGNORECASE,
)
CODES = re.compile(r"[A-Za-z]{0,4}[-_ ]?[0-9]{2,}")
SHORT_CODES = re.compile(r"[A-Za-z]{1,4}[-_ ]?[0-9]+")
MIN_SHORT_CODES = 20  # fewer values such as T1 to T4 are grades or stages
WORDS_OF_TIME = re.compile(
    r"(?:^|[\W_])(?:date|day|month|year|time|timestamp|datum|jahr|tag|monat)(?:$|[\W_])", re.IGNORECASE
)
WORDS_OF_WEIGHTS = re.compile(
    r"(?:(?:sampl\w*|survey|case|row|person|design)[ _-]?)?(?:weights?|wgt|fnlwgt|gewicht)", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A column that looks like a group, a time or a weight, and the reason."""

    column: str
    reason: str


def file_columns(dataset: Dataset) -> list[str]:
    """Return the names of the file's columns without the target. A date counts as one column."""
    source = _sources(dataset)
    names = dict.fromkeys(source.get(c["name"], c["name"]) for c in dataset.columns)
    return [name for name in names if name != dataset.target]


def check(dataset: Dataset, *, group: str, time: str, weight: str = "", settings: Mapping[str, Any]) -> None:
    """Raise ParameterError unless these columns exist, differ, and have valid cells.

    `settings` are the known settings of the method. Some of them exclude weights.
    """
    names = [*file_columns(dataset), dataset.target]
    columns = {"group": group, "time": time, "weight": weight}
    for last, field in enumerate(columns):
        with errors_at(field):
            check_dependence(names, target=dataset.target, **dict(list(columns.items())[: last + 1]))
    if time or weight:
        _check_cells(dataset, time, weight, settings)


@contextmanager
def errors_at(field: str) -> Iterator[None]:
    """Convert a DataError of the block to a ParameterError of a field."""
    try:
        yield
    except DataError as error:
        raise ParameterError({field: str(error)}) from error


def _check_cells(dataset: Dataset, time: str, weight: str, settings: Mapping[str, Any]) -> None:
    """Raise ParameterError if a usable row has no time or an invalid weight."""
    reading = ColumnParsing.from_json(dataset.reading)
    source = _sources(dataset)
    policies = {c["name"]: MissingPolicy(c.get("missing") or MissingPolicy.LEARN) for c in dataset.columns}
    full = [name for name, policy in policies.items() if policy is MissingPolicy.DROP and name != dataset.target]
    sources = [source.get(name, name) for name in (dataset.target, *full)]
    raw = raw_columns(dataset, dict.fromkeys([*sources, *filter(None, (time, weight))]))
    empty = [empty_rows(raw, reading.columns.get(name), name) for name in sources]
    rows = np.flatnonzero(~np.any(empty, axis=0))
    if time:
        with errors_at("time"):
            read_times(raw, reading, time, rows)
    if weight:
        with errors_at("weight"):
            weights = read_weights(raw, reading, weight, rows)
        check_weights(weights, settings)


def propose_group(dataset: Dataset) -> Proposal | None:
    """Return the first column that looks like an identifier with several rows per value, or None."""
    source = _sources(dataset)
    for column in dataset.columns:
        name = column["name"]
        distinct = int(column.get("distinct") or 0)
        if name == dataset.target or name in source:
            continue
        if distinct < FEWEST_GROUPS or dataset.rows < ROWS_PER_GROUP * distinct:
            continue
        if WORDS_OF_THINGS.search(name):
            why = "and its name is that of a person or thing"
        elif _are_codes(column):
            why = "and these look like numbers of persons or things"
        else:
            continue
        return Proposal(column=name, reason=f"'{name}' has {distinct:,} values in {dataset.rows:,} rows, {why}.")
    return None


def propose_time(dataset: Dataset) -> Proposal | None:
    """Return the first column of dates, or else the first numeric column named like a time, or None."""
    reading = ColumnParsing.from_json(dataset.reading)
    for name, column_reading in reading.columns.items():
        if column_reading.date is not None and column_reading.date.form != TIME and name != dataset.target:
            return Proposal(column=name, reason=f"'{name}' holds dates.")
    for column in dataset.columns:
        name = column["name"]
        numeric = column.get("kind") == "numeric" and int(column.get("distinct") or 0) > FEWEST_GROUPS
        if name != dataset.target and numeric and not column.get("empty") and WORDS_OF_TIME.search(name):
            return Proposal(column=name, reason=f"The name of '{name}' is that of a time.")
    return None


def propose_weight(dataset: Dataset) -> Proposal | None:
    """Return the first numeric column named like a weight, or None."""
    for column in dataset.columns:
        name = column["name"]
        if name != dataset.target and column.get("kind") == "numeric" and WORDS_OF_WEIGHTS.fullmatch(name.strip()):
            return Proposal(column=name, reason=f"The name of '{name}' is that of a weight.")
    return None


def _are_codes(column: Mapping[str, Any]) -> bool:
    """Return whether the categories of a column are codes such as P0017, or many such as C7."""
    examples = [str(example) for example in column.get("examples") or ()]
    categories = column.get("kind") == "categorical" and bool(examples)
    form = SHORT_CODES if int(column.get("distinct") or 0) >= MIN_SHORT_CODES else CODES
    return categories and all(form.fullmatch(example) or CODES.fullmatch(example) for example in examples)


def _sources(dataset: Dataset) -> dict[str, str]:
    """Return the source column of each derived column."""
    reading = ColumnParsing.from_json(dataset.reading)
    return {made: name for name, own in reading.columns.items() for made in own.names if made != name}
