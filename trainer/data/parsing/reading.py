"""A reading: how a table was read, guessed with reasons or given, applied to its rows and kept for the rows to come."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from trainer.data.formats.layout import Line
from trainer.data.formats.raw import RawTable
from trainer.data.parsing.alike import merged_spellings
from trainer.data.parsing.cells import Cells
from trainer.data.parsing.column import ASK, PLAIN, TEXT, ColumnReading
from trainer.data.parsing.given import ParsingChoices
from trainer.data.parsing.guess import guess_columns
from trainer.data.parsing.infer import places
from trainer.errors import DataError, closest, list_names

MAX_PLACES = 20
MOST_ODD = 5  # words that an advice names


@dataclass(frozen=True, kw_only=True)
class ColumnParsing:
    """How a table is read: `columns` that are not plain, by name, and what was found around the table.

    `delimiter`, `encoding`, lines above and below the table (`top`, `bottom`: line number and text) describe the file that was
    read; other files are detected again. `width` is the number of columns of a file without a header line, 0 for other files.
    """

    columns: Mapping[str, ColumnReading] = field(default_factory=dict)
    delimiter: str = ""
    encoding: str = ""
    top: tuple[tuple[int, str], ...] = ()
    bottom: tuple[tuple[int, str], ...] = ()
    width: int = 0
    given: ParsingChoices = field(default_factory=ParsingChoices)

    def read_again(self, raw: RawTable, given: ParsingChoices) -> ColumnParsing:
        """Return the reading in which the columns that `given` names are read as it says; the others stay. Raises DataError."""
        old = self.given
        missing = {name: (*old.missing.get(name, ()), *words) for name, words in given.missing.items()}
        both = replace(
            old,
            kinds={**old.kinds, **given.kinds},
            missing={**old.missing, **{name: tuple(dict.fromkeys(words)) for name, words in missing.items()}},
            merge={**old.merge, **given.merge},
        )
        found = reading_of(raw, both)
        named = set(given.columns())
        kept = {name: own for name, own in self.columns.items() if name not in named}
        return replace(
            self, columns=kept | {name: own for name, own in found.columns.items() if name in named}, given=found.given
        )

    @property
    def special(self) -> bool:
        """Whether anything is read in another way than in a clean file."""
        said = any(value is not None for value in self.given.structure.values())
        return said or bool(self.top or self.bottom) or any(own.special for own in self.columns.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """What was taken for what, in sentences."""
        return self.notes_of([made for own in self.columns.values() for made in own.names])

    def notes_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """The same for the lines around the table and those columns that become some of `names`."""
        wanted = set(names)
        out: list[str] = []
        out += around_notes(self.top, self.bottom)
        if self.width:
            out.append(f"The file has no header line: its columns are called 'column 1' to 'column {self.width}'.")
        for own in self.columns.values():
            if wanted.isdisjoint(own.names):
                continue
            out += _merge_notes(own)
            if own.taken_for == PLAIN and own.missing:
                out.append(
                    f"Column '{own.name}': {_means_missing(self.given.words(own.name) or own.missing)}, as you said."
                )
            elif own.taken_for != PLAIN and own.special:
                said = self.given.words(own.name)
                out.append(
                    f"Column '{own.name}' is read as {own.words}: {own.reason}"
                    + (f"; {_means_missing(said)}, as you said." if said else ".")
                )
            elif own.taken_for == PLAIN and own.reason and not own.given:
                out.append(f"Column '{own.name}' is read as it stands: {own.reason}.{_say(own)}")
            elif own.taken_for == TEXT and not own.given:
                out.append(f"Column '{own.name}' is kept as text: {own.reason}.{_say(own)}")
        return tuple(out)

    def ask(self, wanted: Iterable[str]) -> None:
        """Raise DataError for the open questions of the columns `wanted`."""
        chosen = set(wanted)
        open_ones = [own for own in self.columns.values() if own.taken_for == ASK and own.name in chosen]
        if open_ones:
            problems = tuple(f"{own.question}.{_say(own)}" for own in open_ones)
            more = f" ({len(problems)} columns are open.)" if len(problems) > 1 else ""
            raise DataError(problems[0] + more, problems=problems)

    def for_target(self, target: str | None) -> ColumnParsing:
        """The same where `target` is predicted: its cells are classes as they stand, but for words that were said to be missing."""
        if target is None or target not in self.columns or self.columns[target].taken_for == PLAIN:
            return self
        words = self.given.words(target)
        others = {name: own for name, own in self.columns.items() if name != target}
        if words:
            others[target] = ColumnReading(
                name=target, taken_for=PLAIN, missing=words, reason="you said so", given=True
            )
        return replace(self, columns=others)

    def without(self, names: Iterable[str]) -> ColumnParsing:
        """The same with the columns `names` as they stand: they were chosen to be categories."""
        gone = {name for name in names if name in self.columns and self.columns[name].taken_for != PLAIN}
        return (
            replace(self, columns={name: own for name, own in self.columns.items() if name not in gone})
            if gone
            else self
        )

    def names(self, raw_names: Sequence[str]) -> tuple[str, ...]:
        """The names of the columns that a table with these names has when it was read."""
        return tuple(
            made for name in raw_names for made in (self.columns[name].names if name in self.columns else (name,))
        )

    def sources(self, names: Collection[str]) -> set[str]:
        """The columns of the file that are needed for the columns `names`, these themselves included."""
        made_of = {made: own.name for own in self.columns.values() for made in own.names}
        return set(names) | {made_of[name] for name in names if name in made_of}

    def apply(self, raw: RawTable, *, target: str | None = None, needed: Collection[str] | None = None) -> RawTable:
        """The table in the plain form of a clean file. Cells that do not fit are missing, or, in the columns `needed` (of those that
        come out; None: all), raise a DataError that names their lines."""
        own = self.for_target(target)
        names: list[str] = []
        columns: list[pa.Array] = []
        problems: list[str] = []
        for name, column in zip(raw.names, raw.columns, strict=True):
            reading = own.columns.get(name)
            if reading is None:
                names.append(name)
                columns.append(column)
                continue
            made, wrong, cells = reading.columns(column)
            names += reading.names
            columns += made
            if wrong.any() and cells is not None and (needed is None or not set(reading.names).isdisjoint(needed)):
                bad = np.zeros(len(cells.words), bool)
                bad[cells.index[wrong]] = True
                problems += places(raw, cells, bad, f"column '{name}' is read as {reading.words}, but has %s")
        if problems:
            more = f" ({len(problems)} places are listed.)" if len(problems) > 1 else ""
            raise DataError(problems[0] + more, problems=tuple(problems))
        _refuse_twins(names, own)
        return replace(raw, names=tuple(names), columns=tuple(columns))

    def units(self) -> dict[str, str]:
        """The units by column."""
        return {own.name: own.unit for own in self.columns.values() if own.unit}

    def for_model(self, target: str, names: Collection[str]) -> dict[str, Any] | None:
        """What a model file keeps that has the columns `names`; None if a clean file would be read in the same way."""
        own = self.for_target(target)
        kept = {
            name: replace(column, choices=(), question="", reason="") for name, column in own.columns.items()
            if column.special and (name == target or not set(column.names).isdisjoint(names))
        }  # fmt: skip
        small = replace(own, columns=kept, given=ParsingChoices(**own.given.structure))
        return small.to_json() if small.special else None

    def to_json(self) -> dict[str, Any]:
        """The reading as a dictionary, without what is not special."""
        record: dict[str, Any] = {name: getattr(self, name) for name in ("delimiter", "encoding")}
        record |= {name: [list(pair) for pair in getattr(self, name)] for name in ("top", "bottom")}
        record["width"] = self.width
        record["columns"] = {name: own.to_json() for name, own in self.columns.items()}
        record["given"] = self.given.to_json()
        return {name: value for name, value in record.items() if value}

    @classmethod
    def from_json(cls, record: Mapping[str, Any] | None) -> ColumnParsing:
        """The inverse of `to_json`; raises DataError."""
        record = record or {}
        try:
            return cls(
                columns={name: ColumnReading.from_json(name, own) for name, own in record.get("columns", {}).items()},
                delimiter=str(record.get("delimiter", "")),
                encoding=str(record.get("encoding", "")),
                top=tuple((int(line), str(text)) for line, text in record.get("top", ())),
                bottom=tuple((int(line), str(text)) for line, text in record.get("bottom", ())),
                width=int(record.get("width", 0)),
                given=ParsingChoices.from_json(record.get("given", {})),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"The reading of the table is damaged: {error}.") from error


def reading_of(raw: RawTable, given: ParsingChoices | None = None) -> ColumnParsing:
    """How the columns of `raw` are to be read, with reasons; raises DataError for names that are not there."""
    given = given or ParsingChoices()
    for name in given.columns():
        if name not in raw.names:
            raise DataError(
                f"There is no column '{name}' in the file.{closest(name, raw.names)} Its columns are: {list_names(raw.names, 12)}."
            )
    given = replace(given, merge={name: words or _alike(raw, name) for name, words in given.merge.items()})
    found = raw.detected
    return ColumnParsing(
        columns=guess_columns(raw, given), delimiter=found.delimiter, encoding=found.encoding, top=tuple(found.top),
        bottom=tuple(found.bottom), width=0 if found.header else len(raw.names), given=given,
    )  # fmt: skip


def _alike(raw: RawTable, name: str) -> dict[str, str]:
    """Return the spelling to use for each word of a column that looks like a more frequent one."""
    cells = Cells.of(raw.column(name))
    return merged_spellings(dict(zip(cells.words, cells.counts.tolist(), strict=True)))


def _merge_notes(own: ColumnReading) -> list[str]:
    if not own.spellings:
        return []
    pairs = [f"'{word}' is read as '{other}'" for word, other in own.spellings.items()]
    shown = ", ".join(pairs[:5]) + (f" and {len(pairs) - 5} more" if len(pairs) > 5 else "")
    return [f"Column '{own.name}': {shown}, as you said."]


def around_notes(top: Sequence[Line], bottom: Sequence[Line]) -> list[str]:
    """The lines above and below a table that were left out, in sentences."""
    out = []
    for lines, what in ((top, "above"), (bottom, "below")):
        if lines:
            shown = "; ".join(f"line {line}: '{text[:60]}'" for line, text in lines[:3])
            words = "1 line" if len(lines) == 1 else f"{len(lines)} lines"
            out.append(f"{words} {what} the table {'is' if len(lines) == 1 else 'are'} left out ({shown}).")
    return out


def _means_missing(words: Sequence[str]) -> str:
    """ "'999' means missing"."""
    shown = ", ".join(f"'{word}'" for word in words[:5]) + (f" and {len(words) - 5} more" if len(words) > 5 else "")
    return f"{shown} {'means' if len(words) == 1 else 'mean'} missing"


def _say(own: ColumnReading) -> str:
    said = " or ".join(f"--kind '{own.name}={choice}'" for choice in own.choices)
    if 0 < len(own.odd) <= MOST_ODD:
        words = " ".join(f"--missing '{own.name}={word}'" for word in own.odd)
        said = f"{words} if {'this means' if len(own.odd) == 1 else 'these mean'} that the cell is empty, or {said}"
    return f" Say {said}, or correct the file." if own.taken_for == ASK else f" To change that: {said}." if said else ""


def _refuse_twins(names: Sequence[str], reading: ColumnParsing) -> None:
    for own in reading.columns.values():
        if own.date is not None:
            for name in own.names:
                if list(names).count(name) > 1:
                    raise DataError(
                        f"The date column '{own.name}' would make a column '{name}', which is in the file already. Rename one, or say "
                        f"--kind '{own.name}=text'."
                    )
