"""Guess, choose, apply and store the parsing of a table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from trainer.data.formats.layout import Line
from trainer.data.formats.raw import RawTable
from trainer.data.odd_words import OddWords, add_words
from trainer.data.parsing.alike import merged_spellings
from trainer.data.parsing.cells import Cells
from trainer.data.parsing.column import ASK, PLAIN, TEXT, ColumnReading
from trainer.data.parsing.given import ParsingChoices
from trainer.data.parsing.guess import guess_columns
from trainer.data.parsing.infer import places
from trainer.errors import DataError, closest, list_names

MAX_PLACES = 20
MOST_ODD = 20  # if there are more odd words, a hint does not name them


@dataclass(frozen=True, kw_only=True)
class ColumnParsing:
    """The parsing of a table."""

    columns: Mapping[str, ColumnReading] = field(default_factory=dict)  # columns that need parsing, by name
    # this and the next three members describe this file only; octweb detects them again for other files
    delimiter: str = ""
    encoding: str = ""
    top: tuple[tuple[int, str], ...] = ()  # line number and text of the lines above the table
    bottom: tuple[tuple[int, str], ...] = ()  # line number and text of the lines below the table
    width: int = 0  # number of columns if the file has no header line, else 0
    given: ParsingChoices = field(default_factory=ParsingChoices)

    def read_again(self, raw: RawTable, choices: ParsingChoices) -> ColumnParsing:
        """Parse the columns with new choices again; keep the parsing of the others.

        Parameters
        ----------
        raw : RawTable
            The table.
        choices : ParsingChoices
            New choices by column; words for "missing" are added to the earlier ones.

        Returns
        -------
        ColumnParsing

        Raises
        ------
        DataError
            If a choice names a column that the table does not have.
        """
        old = self.given
        missing = {name: (*old.missing.get(name, ()), *words) for name, words in choices.missing.items()}
        both = replace(
            old,
            kinds={**old.kinds, **choices.kinds},
            missing={**old.missing, **{name: tuple(dict.fromkeys(words)) for name, words in missing.items()}},
            merge={**old.merge, **choices.merge},
        )
        reading = reading_of(raw, both)
        chosen_names = set(choices.columns())
        other_columns = {name: column for name, column in self.columns.items() if name not in chosen_names}
        return replace(
            self,
            columns=other_columns | {name: column for name, column in reading.columns.items() if name in chosen_names},
            given=reading.given,
        )

    @property
    def special(self) -> bool:
        """Whether the table needs other parsing than a clean file."""
        has_structure = any(value is not None for value in self.given.structure.values())
        return has_structure or bool(self.top or self.bottom) or any(column.special for column in self.columns.values())

    @property
    def ranked(self) -> frozenset[str]:
        """The columns whose words become ranks."""
        return frozenset(name for name, column in self.columns.items() if column.ranks)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about the parsing of columns and the lines around the table."""
        return self.notes_of([derived for column in self.columns.values() for derived in column.names])

    def notes_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the notes about the lines around the table, and about columns that become one of `names`.

        Parameters
        ----------
        names : iterable of str
            Names of parsed columns.

        Returns
        -------
        tuple of str
            Sentences.
        """
        name_set = set(names)
        out: list[str] = []
        out += around_notes(self.top, self.bottom)
        if self.width:
            out.append(f"The file has no header line: its columns are called 'column 1' to 'column {self.width}'.")
        for reading in self.columns.values():
            if name_set.isdisjoint(reading.names):
                continue
            out += _merge_notes(reading)
            if reading.taken_for == PLAIN and reading.missing:
                out.append(
                    f"Column '{reading.name}': {_means_missing(self.given.words(reading.name) or reading.missing)}, as you said."
                )
            elif reading.taken_for != PLAIN and reading.special:
                chosen_words = self.given.words(reading.name)
                out.append(
                    f"Column '{reading.name}' is read as {reading.words}: {reading.reason}"
                    + (f"; {_means_missing(chosen_words)}, as you said." if chosen_words else ".")
                )
            elif reading.taken_for == PLAIN and reading.reason and not reading.given:
                out.append(f"Column '{reading.name}' is read as it stands: {reading.reason}.{_say(reading)}")
            elif reading.taken_for == TEXT and not reading.given:
                out.append(f"Column '{reading.name}' is kept as text: {reading.reason}.{_say(reading)}")
        return tuple(out)

    def ask(self, names: Iterable[str]) -> None:
        """Raise DataError if one of the columns is undecided.

        Parameters
        ----------
        names : iterable of str
            Columns of the file.

        Raises
        ------
        DataError
            If a column can be parsed in two ways and the user has to choose; `problems` has a message for each one.
        """
        name_set = set(names)
        open_ones = [column for column in self.columns.values() if column.taken_for == ASK and column.name in name_set]
        if open_ones:
            problems = tuple(f"{column.question}.{_say(column)}" for column in open_ones)
            more = f" ({len(problems)} columns are open.)" if len(problems) > 1 else ""
            raise DataError(problems[0] + more, problems=problems)

    def for_target(self, target: str | None) -> ColumnParsing:
        """Return the parsing with `target` as the target: its cells stay unchanged, except for chosen missing words.

        Parameters
        ----------
        target : str or None
            Column of the classes.

        Returns
        -------
        ColumnParsing
        """
        if target is None or target not in self.columns or self.columns[target].taken_for == PLAIN:
            return self
        words = self.given.words(target)
        others = {name: column for name, column in self.columns.items() if name != target}
        if words:
            others[target] = ColumnReading(
                name=target, taken_for=PLAIN, missing=words, reason="you said so", given=True
            )
        return replace(self, columns=others)

    def without(self, names: Iterable[str]) -> ColumnParsing:
        """Return the parsing with the columns `names` unchanged, because the user chose them to be categories.

        Parameters
        ----------
        names : iterable of str
            Columns of the file.

        Returns
        -------
        ColumnParsing
        """
        plain_again = {name for name in names if name in self.columns and self.columns[name].taken_for != PLAIN}
        return (
            replace(self, columns={name: column for name, column in self.columns.items() if name not in plain_again})
            if plain_again
            else self
        )

    def names(self, raw_names: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the parsed columns of a table with these names.

        Parameters
        ----------
        raw_names : sequence of str
            Columns of the file.

        Returns
        -------
        tuple of str
            In the order of the file; a date column gives the names of the columns derived from it.
        """
        return tuple(
            derived for name in raw_names for derived in (self.columns[name].names if name in self.columns else (name,))
        )

    def sources(self, names: Collection[str]) -> set[str]:
        """Return the columns of the file that the parsed columns `names` need, including `names`.

        Parameters
        ----------
        names : collection of str
            Names of parsed columns.

        Returns
        -------
        set of str
        """
        source_of = {derived: column.name for column in self.columns.values() for derived in column.names}
        return set(names) | {source_of[name] for name in names if name in source_of}

    def apply(
        self,
        raw: RawTable,
        *,
        target: str | None = None,
        needed: Collection[str] | None = None,
        odd: OddWords | None = None,
    ) -> RawTable:
        """Convert a table to the plain form of a clean file.

        Parameters
        ----------
        raw : RawTable
        target : str, optional
            Column of the classes.
        needed : collection of str, optional
            Parsed columns in which every cell must fit; by default all. In other columns, cells that do not fit are empty.
        odd : OddWords, optional
            Gets the words that do not fit other columns, and the dates of needed columns that name no real day.

        Raises
        ------
        DataError
            If a cell of a needed column does not fit; the message names its line.
        """
        target_parsing = self.for_target(target)
        names: list[str] = []
        columns: list[pa.Array] = []
        problems: list[str] = []
        for name, column in zip(raw.names, raw.columns, strict=True):
            reading = target_parsing.columns.get(name)
            if reading is None:
                names.append(name)
                columns.append(column)
                continue
            derived, wrong, cells = reading.columns(column)
            names += reading.names
            columns += derived
            if cells is None:
                continue
            is_needed = needed is None or not set(reading.names).isdisjoint(needed)
            bad = cells.words_at(wrong)
            if is_needed:
                problems += places(raw, cells, bad, f"column '{name}' is read as {reading.words}, but has %s")
            if odd is not None and name != target:
                if is_needed:
                    empty = cells.words_at(pc.equal(derived[0], "").fill_null(False).to_numpy(zero_copy_only=False))
                    no_days = {word: n for word, n in cells.counts_of(empty).items() if reading.is_no_day(word)}
                    add_words(odd.no_days, name, no_days)
                else:
                    add_words(odd.unfit, name, cells.counts_of(bad))
        if problems:
            more = f" ({len(problems)} places are listed.)" if len(problems) > 1 else ""
            raise DataError(f"{problems[0]}{more} Correct these cells.", problems=tuple(problems))
        _refuse_twins(names, target_parsing)
        return replace(raw, names=tuple(names), columns=tuple(columns))

    def units(self) -> dict[str, str]:
        """Return the units by column."""
        return {column.name: column.unit for column in self.columns.values() if column.unit}

    def for_model(self, target: str, names: Collection[str]) -> dict[str, Any] | None:
        """Return the record for a model file with the columns `names`; None if it needs no special parsing.

        Parameters
        ----------
        target : str
            Column of the classes.
        names : collection of str
            Parsed columns of the model.

        Returns
        -------
        dict or None
            As `to_json` writes it, without the reasons and choices of columns.
        """
        target_parsing = self.for_target(target)
        columns = {
            name: replace(column, choices=(), question="", reason="")
            for name, column in target_parsing.columns.items()
            if column.special and (name == target or not set(column.names).isdisjoint(names))
        }
        small = replace(target_parsing, columns=columns, given=ParsingChoices(**target_parsing.given.structure))
        return small.to_json() if small.special else None

    def to_json(self) -> dict[str, Any]:
        """Return the parsing as a dictionary, without defaults."""
        record: dict[str, Any] = {name: getattr(self, name) for name in ("delimiter", "encoding")}
        record |= {name: [list(pair) for pair in getattr(self, name)] for name in ("top", "bottom")}
        record["width"] = self.width
        record["columns"] = {name: column.to_json() for name, column in self.columns.items()}
        record["given"] = self.given.to_json()
        return {name: value for name, value in record.items() if value}

    @classmethod
    def from_json(cls, record: Mapping[str, Any] | None) -> ColumnParsing:
        """Build the parsing from the dictionary of `to_json`; raise DataError."""
        record = record or {}
        try:
            return cls(
                columns={
                    name: ColumnReading.from_json(name, column) for name, column in record.get("columns", {}).items()
                },
                delimiter=str(record.get("delimiter", "")),
                encoding=str(record.get("encoding", "")),
                top=tuple((int(line), str(text)) for line, text in record.get("top", ())),
                bottom=tuple((int(line), str(text)) for line, text in record.get("bottom", ())),
                width=int(record.get("width", 0)),
                given=ParsingChoices.from_json(record.get("given", {})),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"The record of how the table was read is damaged: {error}. Create its file again."
            ) from error


def reading_of(raw: RawTable, choices: ParsingChoices | None = None) -> ColumnParsing:
    """Guess the parsing of a raw table, with reasons, under the user's choices.

    Parameters
    ----------
    raw : RawTable
        The table.
    choices : ParsingChoices, optional
        What the user chose; everything else is guessed.

    Returns
    -------
    ColumnParsing
        Columns that fit several kinds stay undecided (see `ColumnParsing.ask`).

    Raises
    ------
    DataError
        If a choice names a column that the table does not have.
    """
    choices = choices or ParsingChoices()
    for name in choices.columns():
        if name not in raw.names:
            raise DataError(
                f"There is no column '{name}' in the file.{closest(name, raw.names)} Its columns are: {list_names(raw.names, 12)}."
            )
    choices = replace(choices, merge={name: words or _alike(raw, name) for name, words in choices.merge.items()})
    detected = raw.detected
    return ColumnParsing(
        columns=guess_columns(raw, choices),
        delimiter=detected.delimiter,
        encoding=detected.encoding,
        top=tuple(detected.top),
        bottom=tuple(detected.bottom),
        width=0 if detected.header else len(raw.names),
        given=choices,
    )


def _alike(raw: RawTable, name: str) -> dict[str, str]:
    """Map each word of a column that looks like a more frequent one to that word."""
    cells = Cells.of(raw.column(name))
    return merged_spellings(dict(zip(cells.words, cells.counts.tolist(), strict=True)))


def _merge_notes(reading: ColumnReading) -> list[str]:
    if not reading.spellings:
        return []
    pairs = [f"'{word}' is read as '{other}'" for word, other in reading.spellings.items()]
    pair_list = ", ".join(pairs[:5]) + (f" and {len(pairs) - 5} more" if len(pairs) > 5 else "")
    return [f"Column '{reading.name}': {pair_list}, as you said."]


def around_notes(top: Sequence[Line], bottom: Sequence[Line]) -> list[str]:
    """Return sentences about the lines above and below a table that are left out."""
    out = []
    for lines, what in ((top, "above"), (bottom, "below")):
        if lines:
            line_list = "; ".join(f"line {line}: '{text[:60]}'" for line, text in lines[:3])
            words = "1 line" if len(lines) == 1 else f"{len(lines)} lines"
            out.append(f"{words} {what} the table {'is' if len(lines) == 1 else 'are'} left out ({line_list}).")
    return out


def _means_missing(words: Sequence[str]) -> str:
    """Return a phrase such as "'999' means missing"."""
    word_list = ", ".join(f"'{word}'" for word in words[:5]) + (f" and {len(words) - 5} more" if len(words) > 5 else "")
    return f"{word_list} {'means' if len(words) == 1 else 'mean'} missing"


def _say(reading: ColumnReading) -> str:
    switches = " or ".join(f"--kind '{reading.name}={choice}'" for choice in reading.choices)
    if 0 < len(reading.odd) <= MOST_ODD:
        words = " ".join(f"--missing '{reading.name}={word}'" for word in reading.odd)
        switches = f"{words} if {'this means' if len(reading.odd) == 1 else 'these mean'} that the cell is empty, or {switches}"
    if reading.taken_for == ASK:
        return f" Say {switches}, or correct the file."
    return f" To change that: {switches}." if switches else ""


def _refuse_twins(names: Sequence[str], reading: ColumnParsing) -> None:
    for column in reading.columns.values():
        if column.date is not None:
            for name in column.names:
                if list(names).count(name) > 1:
                    raise DataError(
                        f"The date column '{column.name}' would make a column '{name}', which is in the file already. Rename one, or say "
                        f"--kind '{column.name}=text'."
                    )
