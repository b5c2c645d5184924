"""What every column of a raw table seems to hold, with the reason in words, and which column seems to be the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from trainer.data.formats.raw import RawTable
from trainer.data.parsing.cells import Cells
from trainer.data.parsing.codes import codes_text, likely_codes
from trainer.table import ColumnKind, ColumnSchema, MissingPolicy

FEW_VALUES = 10
EXAMPLES = 5
LISTED = 20
TARGET_NAMES = (
    "class", "target", "label", "y", "diagnosis", "outcome", "species", "labels", "classes", "category", "response", "survived",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class GuessedColumn:
    """The guess for one column: its schema, the reason, counts, and up to five distinct examples.

    `constant`: one value or none; `identifier`: nothing but distinct texts, or a count of the rows; `problems`: why the column
    cannot be used as it is, with line numbers; `marks`: the words read as missing; `special`: numbers that look like codes.
    """

    schema: ColumnSchema
    reason: str
    missing: int
    distinct: int
    examples: tuple[str, ...]
    constant: bool
    identifier: bool
    marks: tuple[str, ...]
    special: tuple[float, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.schema.name


def infer(raw: RawTable) -> tuple[GuessedColumn, ...]:
    """The guess for every column of `raw`, in order, the target's column among them."""
    return tuple(guess(name, Cells.of(column), raw) for name, column in zip(raw.names, raw.columns, strict=True))


def guess(name: str, cells: Cells, raw: RawTable) -> GuessedColumn:
    """The guess for one column."""
    values = ~cells.missing
    distinct = int(values.sum())
    missing = int(cells.counts[cells.missing].sum())
    n = len(cells.index) - missing
    kind, reason, identifier = _kind(cells, n, distinct)
    if kind is ColumnKind.NUMERIC and distinct == n > FEW_VALUES and _counts_rows(cells):
        identifier = True
        reason = reason + "; it numbers the rows, which says nothing about a new row: ignore it?"
    marks = tuple(w for w in (cells.word(i) for i in np.flatnonzero(cells.missing)) if w)
    if missing:
        how = f" or {' or '.join(repr(m) for m in marks)}" if marks else ""
        reason += f"; {missing} {'cell is' if missing == 1 else 'cells are'} empty{how}"
    if (cells.marks & values).any():
        reason += "; 'NA' appears among other two-letter codes and is kept as a value"
    special: tuple[float, ...] = ()
    if kind is ColumnKind.NUMERIC:
        likely = likely_codes(np.where(cells.numbers, cells.floats(), np.nan), cells.counts)
        special = tuple(likely)
        if likely:
            reason += f"; {codes_text(likely)} {'stands' if len(likely) == 1 else 'stand'} apart and may be codes, not numbers"
    infinite = cells.infinite if kind is ColumnKind.NUMERIC else np.zeros(len(cells.array), bool)
    return GuessedColumn(
        schema=ColumnSchema(
            name=name,
            kind=kind,
            categories=sorted_words(cells, values) if kind is ColumnKind.CATEGORICAL else (),
            missing=MissingPolicy.LEARN,
        ),
        reason=reason,
        missing=missing,
        distinct=distinct,
        examples=tuple(_short(cells.word(i)) for i in np.flatnonzero(values)[:EXAMPLES]),
        constant=distinct < 2,
        identifier=identifier,
        marks=marks,
        special=special,
        problems=places(raw, cells, infinite, f"column '{name}' has %s, which is not a finite number"),
    )


def _kind(cells: Cells, n: int, distinct: int) -> tuple[ColumnKind, str, bool]:
    """Kind, reason, and whether the column names the rows."""
    values = ~cells.missing
    if not distinct:
        return ColumnKind.CATEGORICAL, "there is no value at all", False
    if cells.truths[values].all():
        return ColumnKind.BINARY, "only true and false: true is 1", False
    numeric = cells.numbers | cells.infinite
    if numeric[values].all() and cells.numbers[values].any():
        # in a column of numbers every mark means missing
        for odd, why in (
            (cells.leading_zeros, "leading zeros such as {}: kept as text"),
            (cells.inexact, "whole numbers beyond 2^53 such as {} would be rounded: kept as text"),
        ):
            if odd[values].any():
                word = cells.word(int(np.flatnonzero(odd & values)[0]))
                return ColumnKind.CATEGORICAL, why.format(_short(word)), distinct == n > 1
        return (*_numeric(cells, values, n, distinct), False)
    if (share := int(cells.counts[numeric & values].sum())) > n / 2:
        # such a column is never left out as an identifier: one slip of the pen would cost a whole column of numbers
        word = cells.word(np.flatnonzero(~numeric & values)[0])
        return (
            ColumnKind.CATEGORICAL,
            f"{share} of {n} values are numbers, but others such as {_short(word)!r} are not: kept as text",
            False,
        )
    identifier = distinct == n > 1
    reason = f"text with {distinct} different values" if distinct > 1 else "the same text everywhere"
    if identifier:
        reason = f"all {n} texts are different: a name or number of the row, useless for new rows"
    return ColumnKind.CATEGORICAL, reason, identifier


def _numeric(cells: Cells, values: np.ndarray, n: int, distinct: int) -> tuple[ColumnKind, str]:
    found = np.unique(cells.floats()[values & cells.numbers])
    if np.isin(found, (0.0, 1.0)).all() and not cells.infinite[values].any():
        return ColumnKind.BINARY, "only 0 and 1" if len(found) == 2 else f"only the number {found[0]:g}"
    if cells.whole[values].all() and len(found) <= FEW_VALUES:
        shown = ", ".join(f"{v:.0f}" for v in found)
        only = (
            f"whole numbers with only {len(found)} values ({shown})" if len(found) > 1 else f"only the number {shown}"
        )
        return ColumnKind.NUMERIC, f"{only}: kept as numbers; choose categorical if they are codes"
    return ColumnKind.NUMERIC, f"all {n} values are numbers"


def _counts_rows(cells: Cells) -> bool:
    if not cells.whole[~cells.missing].all():
        return False
    steps = np.diff(cells.floats()[cells.index])
    return bool(len(steps) and (steps == 1).all())


def sorted_words(cells: Cells, chosen: np.ndarray) -> tuple[str, ...]:
    """The chosen words, sorted: by value if all are numbers, by code point otherwise."""
    words = cells.array.filter(pa.array(chosen)).to_pylist()
    if cells.numbers[chosen].all():
        values = cells.floats()[chosen]
        return tuple(w for _, w in sorted(zip(values.tolist(), words, strict=True)))
    return tuple(sorted(words))


def places(raw: RawTable, cells: Cells, wrong: np.ndarray, sentence: str) -> tuple[str, ...]:
    """One sentence (with %s for the word) for each of the first 20 rows with a wrong word, with its line number."""
    if not wrong.any():
        return ()
    rows = cells.rows_of(wrong, LISTED)
    out = [
        f"{raw.place} {raw.line_numbers[i]}: " + sentence.replace("%s", repr(_short(cells.word(cells.index[i])))) + "."
        for i in rows
    ]
    total = int(cells.counts[wrong].sum())
    return (*out, f"... and {total - LISTED} more rows.") if total > LISTED else tuple(out)


def guess_target(columns: Sequence[GuessedColumn]) -> tuple[str, str]:
    """The name of the column that seems to be the target, and why."""
    by_name = {column.name.strip().lower(): column for column in reversed(columns)}
    for name in TARGET_NAMES:
        column = by_name.get(name)
        if column is not None and not column.constant:
            return column.name, f"the column is called '{column.name}'"
    return columns[-1].name, "it is the last column"


def _short(word: str, most: int = 60) -> str:
    return word if len(word) <= most else word[: most - 1] + "…"
