"""Read options and column choices, which child processes receive as JSON."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trainer.data.formats.raw import DetectedFormat
from trainer.data.parsing import EVERY, ParsingChoices
from trainer.data.parsing import ColumnParsing as TableReading
from trainer.data.parsing.infer import GuessedColumn
from trainer.errors import DataError
from trainer.table import ColumnKind, ColumnSchema, MissingPolicy, UnknownPolicy


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Options for parsing a file. None means that the value is detected.

    `given` are choices about cells and about lines around the table, as `trainer.data.parsing.ParsingChoices` writes
    them. `kept` is the column parsing of the previous version, to be repeated. The file must then have the columns
    `columns`.
    """

    delimiter: str | None = None
    encoding: str | None = None
    header: bool = True
    sheet: str | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    kept: Mapping[str, Any] | None = None
    columns: Collection[str] | None = None

    def to_json(self) -> dict[str, Any]:
        record: dict[str, Any] = {"delimiter": self.delimiter, "encoding": self.encoding, "header": self.header}
        record |= {"sheet": self.sheet} if self.sheet else {}
        record |= {"given": dict(self.given)} if self.given else {}
        record |= {} if self.kept is None else {"kept": dict(self.kept)}
        return record | ({} if self.columns is None else {"columns": list(self.columns)})

    @property
    def decimal(self) -> str:
        """Decimal sign chosen for all columns, or "". The form shows it."""
        return str(self.given.get("decimal", {}).get(EVERY, ""))

    @property
    def thousands(self) -> str:
        """Thousands separator chosen for all columns. "none" means no separator, "" no choice."""
        return str(self.given.get("thousands", {}).get(EVERY, "") or ("none" if "thousands" in self.given else ""))

    def said(self) -> ParsingChoices:
        """Return the options as `ParsingChoices`. Raises DataError for unknown signs and kinds."""
        return replace(
            ParsingChoices.from_json(self.given),
            delimiter=self.delimiter,
            encoding=self.encoding,
            header=None if self.header else False,
            sheet=self.sheet,
        )


@dataclass(frozen=True, kw_only=True)
class ColumnChoice:
    """A user's choices about columns, by name. Everything else is guessed.

    If `ignore` is None, ignored columns stay ignored. If it is empty, no column is ignored.
    """

    target: str | None = None
    kinds: Mapping[str, ColumnKind] | None = None
    missing: Mapping[str, MissingPolicy] | None = None
    unknown: Mapping[str, UnknownPolicy] | None = None
    units: Mapping[str, str] | None = None
    special: Mapping[str, Collection[float]] | None = None
    meanings: Mapping[str, Mapping[str, str]] | None = None  # column → special value → its meaning
    ignore: Collection[str] | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "kinds": {name: str(kind) for name, kind in (self.kinds or {}).items()},
            "missing": {name: str(policy) for name, policy in (self.missing or {}).items()},
            "unknown": {name: str(policy) for name, policy in (self.unknown or {}).items()},
            "units": dict(self.units or {}),
            "special": {name: list(values) for name, values in (self.special or {}).items()},
            "meanings": {name: dict(said) for name, said in (self.meanings or {}).items()},
            "ignore": None if self.ignore is None else list(self.ignore),
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> ColumnChoice:
        """Create the choice from the result of `to_json`."""
        return cls(
            target=record["target"],
            kinds={name: ColumnKind(kind) for name, kind in record["kinds"].items()},
            missing={name: MissingPolicy(policy) for name, policy in record["missing"].items()},
            unknown={name: UnknownPolicy(policy) for name, policy in (record.get("unknown") or {}).items()},
            units=record["units"],
            special=record.get("special") or {},
            meanings=record.get("meanings") or {},
            ignore=record["ignore"],
        )


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """Preview of what a choice would store. `refusal` is the reason if nothing could be stored."""

    rows_read: int
    rows_kept: int = 0
    classes: int = 0
    class_rows: Sequence[Sequence[Any]] = ()  # pairs of label and number of rows, in label order
    features: int = 0
    notes: tuple[str, ...] = ()
    refusal: str = ""
    empty: Mapping[str, Any] = field(default_factory=dict)  # result of `record.empty_record`
    findings: Sequence[Mapping[str, Any]] = ()  # from the intake report


@dataclass(frozen=True, kw_only=True)
class StagedFile:
    """Description of a staged file: rows, detected format, guessed columns, and the outlook if it is stored as guessed."""

    rows: int
    lines: tuple[int, ...]  # line numbers of the first rows in the file
    detected: DetectedFormat
    guesses: tuple[GuessedColumn, ...]
    outlook: Outlook
    names: tuple[str, ...] = ()  # all columns of the file
    reading: TableReading = field(default_factory=TableReading)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> StagedFile:
        """Create the description from the result of `intake.stage`."""
        return cls(
            rows=record["rows"],
            lines=tuple(record["lines"]),
            detected=DetectedFormat.from_json(record["detected"]),
            guesses=tuple(_guess(own) for own in record["guesses"]),
            outlook=outlook_of(record["outlook"]),
            names=tuple(record.get("names") or (own["schema"]["name"] for own in record["guesses"])),
            reading=TableReading.from_json(record.get("reading")),
        )


def outlook_of(record: dict[str, Any]) -> Outlook:
    """Create the outlook from the result of `intake.preview_outcome`."""
    return Outlook(**record | {"notes": tuple(record["notes"])})


def _guess(record: dict[str, Any]) -> GuessedColumn:
    texts = {name: tuple(record.get(name, ())) for name in ("examples", "marks", "special", "problems")}
    return GuessedColumn(**record | texts | {"schema": ColumnSchema.from_json(record["schema"])})


def choice_of(columns: list[dict[str, Any]], target: str) -> ColumnChoice:
    """Return the column choice that stored column records represent."""
    features = [c for c in columns if c["role"] == "feature"]
    return ColumnChoice(
        target=target,
        kinds={c["name"]: ColumnKind(c["kind"]) for c in features},
        missing={c["name"]: MissingPolicy(c["missing"]) for c in features},
        unknown={c["name"]: UnknownPolicy(c["unknown"]) for c in features if c.get("unknown")},
        units={c["name"]: c["unit"] for c in features if c.get("unit")},
        special={c["name"]: c["special"] for c in features if c.get("special")},
        meanings={c["name"]: c["meanings"] for c in features if c.get("meanings")},
        ignore=[c["name"] for c in columns if c["role"] == "ignored"],
    )


def merge(columns: list[dict[str, Any]], before: str, choice: ColumnChoice) -> ColumnChoice:
    """Apply `choice` to stored column records with the target `before`. Other columns stay as they are.

    Raises DataError for an unknown column.
    """
    old = choice_of(columns, before)
    ignore = (
        list(choice.ignore)
        if choice.ignore is not None
        else [c for c in old.ignore or () if c not in (choice.kinds or {})]
    )
    target = choice.target or before
    special = {**(old.special or {}), **(choice.special or {})}
    meanings = {  # a code that is no longer special loses its meaning
        name: {code: text for code, text in texts.items() if float(code) in special.get(name, ())}
        for name, texts in (old.meanings or {}).items()
    }
    known = {c["name"] for c in columns}
    for name in [
        target,
        *ignore,
        *(choice.kinds or {}),
        *(choice.missing or {}),
        *(choice.unknown or {}),
        *(choice.units or {}),
        *(choice.special or {}),
        *(choice.meanings or {}),
    ]:
        if name not in known:
            raise DataError(f"There is no column '{name}'. The columns are: {', '.join(sorted(known))[:500]}.")
    return ColumnChoice(
        target=target,
        kinds={**(old.kinds or {}), **(choice.kinds or {})},
        missing={**(old.missing or {}), **(choice.missing or {})},
        unknown={**(old.unknown or {}), **(choice.unknown or {})},
        units={**(old.units or {}), **(choice.units or {})},
        special=special,
        meanings={**meanings, **(choice.meanings or {})},
        ignore=ignore,
    )
