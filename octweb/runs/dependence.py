"""Columns by which rows of a data set belong together, or follow each other in time: which there are, and which look like it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from octweb.datasets.models import Dataset
from trainer.data.dependence import check_dependence
from trainer.data.parsing import ColumnParsing
from trainer.data.parsing.dates import TIME
from trainer.errors import DataError, ParameterError

FEWEST_GROUPS = 5
ROWS_PER_GROUP = 1.5  # a column with fewer names the rows themselves
WORDS_OF_THINGS = re.compile(
    r"(?:^|[\W_])(?:id|ids|patient|person|customer|client|user|subject|student|household|family|machine|device|account|employee|"
    r"member|owner|shop|store|site|ward|hospital|school|kunde|kundin|patientin|konto|nummer|no|nr)(?:$|[\W_])|[a-z](?:Id|ID)$",
    re.IGNORECASE,
)
CODES = re.compile(r"[A-Za-z]{0,4}[-_ ]?[0-9]{2,}")
WORDS_OF_TIME = re.compile(
    r"(?:^|[\W_])(?:date|day|month|year|time|timestamp|datum|jahr|tag|monat)(?:$|[\W_])", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A column that looks like a group or a time, and why."""

    column: str
    reason: str


def file_columns(dataset: Dataset) -> list[str]:
    """Return the names of the columns of the file without the target; a date is one column."""
    source = _sources(dataset)
    names = dict.fromkeys(source.get(c["name"], c["name"]) for c in dataset.columns)
    return [name for name in names if name != dataset.target]


def check(dataset: Dataset, *, group: str, time: str) -> None:
    """Raise ParameterError unless the data set has these columns, and they differ from each other and from the target."""
    names = [*file_columns(dataset), dataset.target]
    for field, named in (("group", {"group": group}), ("time", {"group": group, "time": time})):
        try:
            check_dependence(names, target=dataset.target, **named)
        except DataError as error:
            raise ParameterError({field: str(error)}) from error


def propose_group(dataset: Dataset) -> Proposal | None:
    """Return the first column whose values name persons or things with several rows each."""
    source = _sources(dataset)
    for column in dataset.columns:
        name = column["name"]
        distinct = int(column.get("distinct") or 0)
        if name == dataset.target or name in source or column.get("identifier"):
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
    """Return the first column of dates, else the first column of numbers whose name is that of a time."""
    reading = ColumnParsing.from_json(dataset.reading)
    for name, own in reading.columns.items():
        if own.date is not None and own.date.form != TIME and name != dataset.target:
            return Proposal(column=name, reason=f"'{name}' holds dates.")
    for column in dataset.columns:
        name = column["name"]
        numeric = column.get("kind") == "numeric" and int(column.get("distinct") or 0) > FEWEST_GROUPS
        if name != dataset.target and numeric and not column.get("empty") and WORDS_OF_TIME.search(name):
            return Proposal(column=name, reason=f"The name of '{name}' is that of a time.")
    return None


def _are_codes(column: Mapping[str, Any]) -> bool:
    """Whether the values of a column of categories are codes such as P0017."""
    examples = [str(example) for example in column.get("examples") or ()]
    categories = column.get("kind") == "categorical" and bool(examples)
    return categories and all(CODES.fullmatch(example) for example in examples)


def _sources(dataset: Dataset) -> dict[str, str]:
    """Return the column of the file for each column that was made of another one."""
    reading = ColumnParsing.from_json(dataset.reading)
    return {made: name for name, own in reading.columns.items() for made in own.names if made != name}
