"""Create and compare versions of a data set with the same columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from octweb.datasets import actions
from octweb.datasets.choice import ReadOptions, choice_of
from octweb.datasets.models import Dataset
from octweb.datasets.record import SKETCH, sketch
from trainer.data.changed_form import MIN_FITTING_SHARE, propose_factor, propose_words
from trainer.data.profile import OTHER as PROFILE_OTHER
from trainer.errors import DataError, list_names
from trainer.table import MISSING_CATEGORY, ColumnKind
from trainer.tree.numbers import number_text, points_text

MIN_SHARE_DIFFERENCE = 0.01  # smaller differences between shares are not reported
AS_BEFORE = "as in the version before"
VERSION = ", version "
MOST_NAMED = 5  # new words that one sentence names
MIN_MEDIAN_SHIFT = 0.05  # share of the former range; a median that moved less is not reported
FEWEST_DIGESTS = 16  # with fewer digests of either version, a sketch does not show that few words are common


@dataclass(frozen=True, kw_only=True)
class ColumnDifference:
    """A difference between two versions: column or count, value before, and value now."""

    where: str
    before: str
    now: str


class ChangedForms(DataError):
    """Columns of a new version seem to contain the same values in another form.

    `problems` has a sentence per column.
    """


def new_version(dataset: Dataset, *, owner: Any, file: BinaryIO, source_name: str, as_it_is: bool = False) -> Dataset:
    """Create the next version of `dataset` from a file. Raises DataError, and stores nothing, if the columns differ.

    Unless `as_it_is` is set, raises ChangedForms if units or spellings seem to have changed.
    """
    number = next_number(dataset, owner)
    return _create(dataset, owner, file, source_name, number, partial(_succeed, dataset, number, as_it_is=as_it_is))


def _create(
    dataset: Dataset, owner: Any, file: BinaryIO, source_name: str, number: int, before_store: Callable[[Dataset], None]
) -> Dataset:
    """Parse a file as the next version of `dataset`, call `before_store`, and store it."""
    return actions.create(
        owner=owner,
        file=file,
        source_name=source_name,
        name=version_name(dataset, number),
        choice=choice_of(dataset.columns, dataset.target),
        reading=ReadOptions(kept=without_counts(dataset.reading), columns=[c["name"] for c in dataset.columns]),
        before_store=before_store,
    )


class VersionPreview(NamedTuple):
    """What a file would be as the next version: rows, differences, and sentences about changed units and spellings."""

    rows: int
    differences: list[ColumnDifference]
    problems: list[str]


class _PreviewError(Exception):
    """Carries a preview past the code that would store the file."""

    def __init__(self, preview: VersionPreview) -> None:
        super().__init__()
        self.preview = preview


def preview(dataset: Dataset, *, owner: Any, file: BinaryIO, source_name: str) -> VersionPreview:
    """Compare a file with `dataset`, and store nothing. Raises DataError if it cannot be its next version."""
    try:
        _create(dataset, owner, file, source_name, dataset.version + 1, partial(_show, dataset))
    except _PreviewError as found:
        return found.preview
    raise AssertionError("unreachable: _show always raises")


def _show(before: Dataset, now: Dataset) -> None:
    """Raise _PreviewError, so that nothing is stored."""
    now.previous = before
    raise _PreviewError(VersionPreview(now.rows, changes(now), _changed_forms(before, now)))


def _succeed(before: Dataset, number: int, now: Dataset, *, as_it_is: bool) -> None:
    """Make `now` the version after `before`, with this number. Unless `as_it_is` is set, raise ChangedForms like `new_version`."""
    if not as_it_is:
        _refuse_changed_forms(before, now)
    now.previous = before
    now.team_id = before.team_id
    now.version = number


def history(dataset: Dataset, user: Any) -> list[Dataset]:
    """Return the data set and its earlier versions that the user may see, newest first."""
    versions = [dataset]
    while (previous := visible_previous(versions[-1], user)) is not None:
        versions.append(previous)
    return versions


def visible_previous(dataset: Dataset, user: Any) -> Dataset | None:
    """Return the previous version, which may have another owner. None if it was deleted or the user may not see it."""
    return Dataset.objects.visible_to(user).select_related("owner").filter(pk=dataset.previous_id).first()


def _refuse_changed_forms(before: Dataset, now: Dataset) -> None:
    """Raise ChangedForms if a column or the target seems to have the old values in another form."""
    sentences = _changed_forms(before, now)
    if sentences:
        words = "1 column seems" if len(sentences) == 1 else f"{len(sentences)} columns seem"
        raise ChangedForms(
            f"{words} to hold the same values in another form. Correct the file, or store it as it is."
            + (f" {sentences[0]}" if len(sentences) == 1 else ""),
            problems=tuple(sentences),
        )


def _changed_forms(before: Dataset, now: Dataset) -> list[str]:
    """Return a sentence for each column, and for the target, that seems to have the old values in another form."""
    old = {c["name"]: c for c in before.profile.get("columns") or ()}
    sentences = [
        sentence
        for column in now.profile.get("columns") or ()
        if (sentence := _changed_form(old.get(column["name"]), column))
    ]
    classes = dict(zip(now.profile.get("classes") or (), now.profile.get("class_counts") or (), strict=False))
    sentences += _changed_words(now.target, classes, before.profile.get("classes") or ())
    return sentences + _mixed_units(before, now)


def _changed_form(was: dict[str, Any] | None, has: dict[str, Any]) -> str:
    """Describe the likely change of form between the profiles of a column. "" if there is none."""
    if was is None or was["kind"] != has["kind"]:
        return ""
    if has["kind"] == ColumnKind.CATEGORICAL:
        return _changed_categories(was, has)
    if has["kind"] != ColumnKind.NUMERIC or has["minimum"] is None or was["minimum"] is None:
        return ""
    rows = [sum(bin_) for bin_ in has["histogram"]]
    width = (has["maximum"] - has["minimum"]) / len(rows)
    middles = has["minimum"] + width * (np.arange(len(rows)) + 0.5)
    proposal = propose_factor(has["name"], np.repeat(middles, rows), was["minimum"], was["maximum"])
    if proposal is None:
        return ""
    ranges = [f"{number_text(c['minimum'])} to {number_text(c['maximum'])}" for c in (was, has)]
    return f"Column '{has['name']}' had {ranges[0]} and has {ranges[1]}: {proposal.reading}."


def _changed_categories(was: dict[str, Any], has: dict[str, Any]) -> str:
    """Describe the likely renaming of categories between the profiles of a column. "" if there is none."""
    before = _words(was)
    now = _words(has)
    if before is not None and now is not None:
        return next(iter(_changed_words(has["name"], now, list(before))), "")
    sketches = [c.get("sketch") or sketch(words or ()) for c, words in ((was, before), (has, now))]
    if not all(sketches):  # an earlier version of octweb stored a profile without the categories
        return ""
    # up to this digest, both sketches have all words
    last = min((max(digests) for digests in sketches if len(digests) == SKETCH), default=math.inf)
    digests_before, digests_now = ({digest for digest in digests if digest <= last} for digests in sketches)
    if digests_before & digests_now or min(len(digests_before), len(digests_now)) < FEWEST_DIGESTS:
        return ""
    return f"Column '{has['name']}' has hardly any of the {was['distinct']:,} words that it had before."


def _words(column: dict[str, Any]) -> dict[str, int] | None:
    """Return the row count of each category in a profile, or None if the profile does not list all of them."""
    if "words" in column:
        return column["words"]
    if "sketch" in column or PROFILE_OTHER in column["bars"]:
        return None
    return dict(zip(column["bars"], (sum(bin_) for bin_ in column["histogram"]), strict=True))


def _changed_words(column: str, counts: dict[str, int], before: Sequence[str]) -> list[str]:
    """Return a list with a sentence about categories that seem to be renamed, or [] if there are none."""
    present = {word: rows for word, rows in counts.items() if word != MISSING_CATEGORY}
    unknown = {word: rows for word, rows in present.items() if word not in before}
    proposal = propose_words(column, unknown, sum(present.values()), before)
    if proposal is not None:
        return [f"Column '{column}' has other words than before: {proposal.reading}."]
    if not unknown or sum(unknown.values()) < MIN_FITTING_SHARE * sum(present.values()):
        return []
    words = list_names(list(unknown)[:MOST_NAMED])
    few = "none" if unknown.keys() == present.keys() else "hardly any"
    return [f"Column '{column}' has {few} of the words that it had before; it has {words}."]


def _mixed_units(before: Dataset, now: Dataset) -> list[str]:
    """Return a sentence for each column in which some numbers changed their unit since the previous version."""
    known = _mixed_columns(before)
    return [f"Column '{name}': {figure}." for name, figure in _mixed_columns(now).items() if name not in known]


def _mixed_columns(dataset: Dataset) -> dict[str, str]:
    """Return the columns with numbers in another unit, each with the figure of its finding."""
    findings = dataset.profile.get("findings") or ()
    return {finding["column"]: finding["figure"] for finding in findings if finding["kind"] == "mixed_units"}


def without_counts(reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return the column parsing without the counts and cells of the earlier file."""
    if not reading:
        return {}
    columns = {name: {**column, "reason": AS_BEFORE} for name, column in reading.get("columns", {}).items()}
    return {**reading, "columns": columns}


def changes(dataset: Dataset) -> list[ColumnDifference]:
    """Return the differences from the previous version, most important first. Empty for a first version."""
    before = dataset.previous
    if before is None:
        return []
    differences = []
    for where, numbers in (
        ("rows", [d.rows for d in (before, dataset)]),
        (
            "rows with empty cells",
            [(d.profile.get("empty") or {}).get("rows_with_empty", 0) for d in (before, dataset)],
        ),
        ("rows left out for empty cells", [d.profile.get("rows_dropped") or 0 for d in (before, dataset)]),
        ("rows that repeat another", [d.profile.get("duplicate_rows") or 0 for d in (before, dataset)]),
    ):
        if numbers[0] != numbers[1]:
            differences.append(ColumnDifference(where=where, before=f"{numbers[0]:,}", now=f"{numbers[1]:,}"))
    return [*differences, *_classes(before, dataset), *_columns(before, dataset)]


def _classes(before: Dataset, now: Dataset) -> list[ColumnDifference]:
    """Return the classes that are new, gone, or have another share of the rows."""
    old, new = (_shares(d) for d in (before, now))
    differences = []
    for label in dict.fromkeys([*old, *new]):
        was = old.get(label)
        has = new.get(label)
        if was is None or has is None or abs(was - has) >= MIN_SHARE_DIFFERENCE:
            differences.append(
                ColumnDifference(
                    where=f"share of {label}", before=_percent(was, "not there"), now=_percent(has, "gone")
                )
            )
    return differences


def _columns(before: Dataset, now: Dataset) -> list[ColumnDifference]:
    """Return the changes of columns: kinds, ranges, medians, empty cells, numbers of categories."""
    old = {c["name"]: c for c in before.profile.get("columns") or ()}
    differences = []
    for column in now.profile.get("columns") or ():
        was = old.get(column["name"])
        if was is not None:
            differences += _column(column["name"], was, column, before, now)
    return differences


def _column(
    name: str, was: dict[str, Any], has: dict[str, Any], before: Dataset, now: Dataset
) -> list[ColumnDifference]:
    differences = []
    if was["kind"] != has["kind"]:
        differences.append(ColumnDifference(where=name, before=was["kind"], now=has["kind"]))
    empty = [_empty(d, name) for d in (before, now)]
    if abs(empty[0] - empty[1]) >= MIN_SHARE_DIFFERENCE:
        words = [f"{points_text(share)} % empty" for share in empty]
        differences.append(ColumnDifference(where=name, before=words[0], now=words[1]))
    if was.get("minimum") is None or has.get("minimum") is None:
        return differences + _categories(name, was, has)
    wide = max(was["maximum"] - was["minimum"], 1e-12)
    outside = has["minimum"] < was["minimum"] or has["maximum"] > was["maximum"]
    if outside or abs(has["median"] - was["median"]) > MIN_MEDIAN_SHIFT * wide:
        words = [
            f"{number_text(c['minimum'])} to {number_text(c['maximum'])}, median {number_text(c['median'])}"
            for c in (was, has)
        ]
        differences.append(ColumnDifference(where=name, before=words[0], now=words[1]))
    return differences


def _categories(name: str, was: dict[str, Any], has: dict[str, Any]) -> list[ColumnDifference]:
    """Return the categories of a column that are gone and new, with their rows, or else their changed number."""
    before, now = (_words(c) if c["kind"] == ColumnKind.CATEGORICAL else None for c in (was, has))
    if before is not None and now is not None:
        gone, new = (_named_rows(a, b) for a, b in ((before, now), (now, before)))
        return [ColumnDifference(where=name, before=gone or "–", now=new or "–")] if gone or new else []
    if was["distinct"] == has["distinct"]:
        return []
    words = [f"{c['distinct']:,} categories" for c in (was, has)]
    return [ColumnDifference(where=name, before=words[0], now=words[1])]


def _named_rows(words: dict[str, int], others: dict[str, int]) -> str:
    """Return the words that `others` does not have, each with its rows. The marker of empty cells is not a word."""
    only = {w: rows for w, rows in words.items() if w not in others and w != MISSING_CATEGORY}
    named = [f"{word} ({rows:,} row{'' if rows == 1 else 's'})" for word, rows in only.items()]
    return list_names(named, MOST_NAMED)


def _shares(dataset: Dataset) -> dict[str, float]:
    counts = dict(zip(dataset.profile.get("classes") or (), dataset.profile.get("class_counts") or (), strict=False))
    total = max(1, sum(counts.values()))
    return {label: count / total for label, count in counts.items()}


def _empty(dataset: Dataset, name: str) -> float:
    """Return the share of empty cells of a column in the whole file."""
    empty = next((int(c.get("empty") or 0) for c in dataset.columns if c["name"] == name), 0)
    return empty / max(1, int(dataset.profile.get("rows_read") or dataset.rows))


def _percent(share: float | None, otherwise: str) -> str:
    return otherwise if share is None else f"{points_text(share)}\u202f%"


def next_number(dataset: Dataset, owner: Any) -> int:
    """Return the number of the next version: one that no data set of this name has which the owner may see."""
    same = Dataset.objects.visible_to(owner).filter(name__startswith=f"{dataset.base_name}{VERSION}")
    return max([dataset.version, *same.values_list("version", flat=True)]) + 1


def version_name(dataset: Dataset, number: int) -> str:
    """Return the name of the version with this number."""
    return f"{dataset.base_name}{VERSION}{number}"
