"""What a person says about how a table is read; what is not said is guessed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainer.data.parsing.column import DATE, NUMBER, TEXT, kind_of
from trainer.data.parsing.dates import TIME
from trainer.data.parsing.numbers import DECIMALS, THOUSANDS
from trainer.errors import DataError
from trainer.table import ColumnKind

EVERY = ""  # in place of a column's name: every column
WORDS = {"comma": ",", "point": ".", "dot": ".", "space": " ", "apostrophe": "'", "none": ""}


@dataclass(frozen=True, kw_only=True)
class ParsingChoices:
    """Decimal sign and thousands separator by column ("" for every column), kinds by column, words that mean "missing" by column.

    `merge` has the spellings to replace by column; an empty mapping stands for all that look alike. `skip_top` and `skip_bottom` are numbers of lines that are not rows; None, as for `delimiter` and `encoding`, lets them be found.
    `sheet` is the name of a worksheet. `header` is False if the first line of a CSV file is a row; its columns are then `column 1`, `column 2` and so on.
    """

    decimal: Mapping[str, str] = field(default_factory=dict)
    thousands: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    merge: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    skip_top: int | None = None
    skip_bottom: int | None = None
    delimiter: str | None = None
    encoding: str | None = None
    header: bool | None = None
    sheet: str | None = None

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
        """What was said about the file as a whole, as `trainer.data.formats.read_file.read_table` takes it."""
        return {
            "delimiter": self.delimiter, "encoding": self.encoding, "skip_top": self.skip_top, "skip_bottom": self.skip_bottom,
            "header": self.header, "sheet": self.sheet,
        }  # fmt: skip

    def columns(self) -> tuple[str, ...]:
        """The names that are spoken of."""
        every = (*self.decimal, *self.thousands, *self.kinds, *self.missing, *self.merge)
        return tuple(dict.fromkeys(name for name in every if name != EVERY))

    def sign(self, what: str, column: str) -> str | None:
        """The `decimal` or `thousands` that was given for a column; None if nothing was."""
        signs_by_column = getattr(self, what)
        return signs_by_column.get(column, signs_by_column.get(EVERY))

    def words(self, column: str) -> tuple[str, ...]:
        """The words that mean "missing" in a column."""
        return (*self.missing.get(EVERY, ()), *self.missing.get(column, ()))

    def schema_kinds(self, names: Iterable[str]) -> dict[str, ColumnKind]:
        """The kinds of columns that follow, for the `names` that were given one."""
        kinds = {TEXT: ColumnKind.CATEGORICAL, NUMBER: ColumnKind.NUMERIC, "binary": ColumnKind.BINARY}
        kinds_by_column = {name: kind_of(spec)[0] for name, spec in self.kinds.items() if name in set(names)}
        return {name: kinds[what] for name, what in kinds_by_column.items() if what not in (DATE, TIME)}

    def to_json(self) -> dict[str, Any]:
        """What was said, without what was not."""
        record: dict[str, Any] = {name: dict(getattr(self, name)) for name in ("decimal", "thousands", "kinds")}
        record["missing"] = {name: list(words) for name, words in self.missing.items()}
        record["merge"] = {name: dict(words) for name, words in self.merge.items()}
        record |= self.structure
        return {name: value for name, value in record.items() if value or value == 0}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> ParsingChoices:
        """The inverse of `to_json`; raises DataError."""
        missing = {str(name): tuple(map(str, words)) for name, words in dict(record.get("missing", {})).items()}
        merge = {
            str(name): {str(word): str(other) for word, other in dict(words).items()}
            for name, words in dict(record.get("merge", {})).items()
        }
        return cls(
            decimal=signs(record.get("decimal", {})), thousands=signs(record.get("thousands", {})),
            kinds={str(k): str(v) for k, v in dict(record.get("kinds", {})).items()}, missing=missing, merge=merge,
            skip_top=record.get("skip_top"), skip_bottom=record.get("skip_bottom"),
            delimiter=record.get("delimiter"), encoding=record.get("encoding"),
            header=None if record.get("header", True) else False, sheet=record.get("sheet"),
        )  # fmt: skip


def signs(choices: Any) -> dict[str, str]:
    """Signs by column from a sign for all of them or from an object; a sign may be said in words."""
    pairs = choices.items() if isinstance(choices, Mapping) else [(EVERY, choices)] if choices is not None else []
    return {str(name): WORDS.get(str(sign), str(sign)) for name, sign in pairs}
