"""Hold the user's choices about the parsing of a table.

Everything else is guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainer.data.parsing.column import DATE, NUMBER, RANKS, TEXT, kind_of
from trainer.data.parsing.dates import TIME
from trainer.data.parsing.numbers import DECIMALS, THOUSANDS
from trainer.errors import DataError
from trainer.table import ColumnKind

EVERY = ""  # replaces a column's name and means every column
WORDS = {"comma": ",", "point": ".", "dot": ".", "space": " ", "apostrophe": "'", "none": ""}


@dataclass(frozen=True, kw_only=True)
class ParsingChoices:
    """Choices by column ("" for every column), and choices for the file; None means "detect"."""

    decimal: Mapping[str, str] = field(default_factory=dict)
    thousands: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)  # kind of each column, in the form that `kind_of` reads
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # words that mean an empty cell
    # spellings to replace; an empty mapping merges all that look alike
    merge: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    skip_top: int | None = None  # number of lines above the table
    skip_bottom: int | None = None  # number of lines below the table
    delimiter: str | None = None
    encoding: str | None = None
    header: bool | None = None  # False if the first line of a CSV file is a row of data
    sheet: str | None = None  # name of a worksheet

    def __post_init__(self) -> None:
        for name, allowed_values, what in (
            ("decimal", DECIMALS, "decimal sign"),
            ("thousands", THOUSANDS, "thousands separator"),
        ):
            for sign in getattr(self, name).values():
                if sign not in allowed_values:
                    value_list = ", ".join(repr(one) for one in allowed_values)
                    raise DataError(
                        f"{sign[:20]!r} is not a {what}: it is one of {value_list}, or a word such as comma or point."
                    )
        for spec in self.kinds.values():
            kind_of(spec)

    @property
    def structure(self) -> dict[str, Any]:
        """The choices for the file, as arguments of `trainer.data.formats.read_file.read_table`."""
        return {
            "delimiter": self.delimiter, "encoding": self.encoding, "skip_top": self.skip_top, "skip_bottom": self.skip_bottom,
            "header": self.header, "sheet": self.sheet,
        }  # fmt: skip

    def columns(self) -> tuple[str, ...]:
        """Return the columns with a choice of their own."""
        every = (*self.decimal, *self.thousands, *self.kinds, *self.missing, *self.merge)
        return tuple(dict.fromkeys(name for name in every if name != EVERY))

    def sign(self, what: str, column: str) -> str | None:
        """Return the `decimal` or `thousands` sign chosen for a column, or None.

        Parameters
        ----------
        what : str
            "decimal" or "thousands".
        column : str
            Name of the column; without a choice of its own, the choice for every column counts.

        Returns
        -------
        str or None
        """
        signs_by_column = getattr(self, what)
        return signs_by_column.get(column, signs_by_column.get(EVERY))

    def words(self, column: str) -> tuple[str, ...]:
        """Return the words that mean "missing" in a column.

        Parameters
        ----------
        column : str
            Name of the column.

        Returns
        -------
        tuple of str
            The words for every column, then those for this one.
        """
        return (*self.missing.get(EVERY, ()), *self.missing.get(column, ()))

    def schema_kinds(self, names: Iterable[str]) -> dict[str, ColumnKind]:
        """Return the chosen kinds of the columns `names`, except dates and times.

        Parameters
        ----------
        names : iterable of str
            Names of columns; columns without a chosen kind are left out.

        Returns
        -------
        dict of str to ColumnKind
        """
        kinds = {
            TEXT: ColumnKind.CATEGORICAL,
            NUMBER: ColumnKind.NUMERIC,
            "binary": ColumnKind.BINARY,
            RANKS: ColumnKind.NUMERIC,
        }
        kinds_by_column = {name: kind_of(spec)[0] for name, spec in self.kinds.items() if name in set(names)}
        return {name: kinds[what] for name, what in kinds_by_column.items() if what not in (DATE, TIME)}

    def to_json(self) -> dict[str, Any]:
        """Return the choices as a dictionary, without defaults."""
        record: dict[str, Any] = {name: dict(getattr(self, name)) for name in ("decimal", "thousands", "kinds")}
        record["missing"] = {name: list(words) for name, words in self.missing.items()}
        record["merge"] = {name: dict(words) for name, words in self.merge.items()}
        record |= self.structure
        return {name: value for name, value in record.items() if value or value == 0}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> ParsingChoices:
        """Build the choices from the dictionary of `to_json`; raise DataError."""
        missing = {str(name): tuple(map(str, words)) for name, words in dict(record.get("missing", {})).items()}
        merge = {
            str(name): {str(word): str(other) for word, other in dict(words).items()}
            for name, words in dict(record.get("merge", {})).items()
        }
        return cls(
            decimal=signs(record.get("decimal", {})),
            thousands=signs(record.get("thousands", {})),
            kinds={str(k): str(v) for k, v in dict(record.get("kinds", {})).items()},
            missing=missing,
            merge=merge,
            skip_top=record.get("skip_top"),
            skip_bottom=record.get("skip_bottom"),
            delimiter=record.get("delimiter"),
            encoding=record.get("encoding"),
            header=None if record.get("header", True) else False,
            sheet=record.get("sheet"),
        )


def signs(choices: Any) -> dict[str, str]:
    """Return signs by column, from one sign for all columns or a mapping; words such as "comma" are accepted."""
    if choices is None:
        return {}
    pairs = choices.items() if isinstance(choices, Mapping) else [(EVERY, choices)]
    return {str(name): WORDS.get(str(sign), str(sign)) for name, sign in pairs}
