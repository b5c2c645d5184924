"""Read from the user's words how each column may change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.errors import ParameterError, closest, list_names
from trainer.table import MISSING_CATEGORY, ColumnKind, ColumnSchema

WORDS = ("free", "up", "down", "whole", "fill", "never")


@dataclass(frozen=True, kw_only=True)
class Permission:
    """How a column may change: `up` and `down`, only to `whole` numbers, and to which category `codes` (None: all).

    No column changes to "missing" unless that category is listed: withholding a value does not change it. With `fill` an empty cell of a
    numeric column may get any value; that is one changed column of size 0.
    """

    up: bool = True
    down: bool = True
    whole: bool = False
    codes: tuple[int, ...] | None = None
    fill: bool = False

    @property
    def never(self) -> bool:
        return not (self.up or self.down)


FREE = Permission()


def permissions(schema: Sequence[ColumnSchema], words_of: Mapping[str, Any]) -> tuple[Permission, ...]:
    """Read the permission of each column from words by column name; other columns are free.

    A word is free, up, down, whole, fill or never; several are separated by commas ("up,whole"). A categorical column also accepts a list
    of permitted categories. Raises ParameterError, which names the column.
    """
    names = [column.name for column in schema]
    errors = {
        str(name): f"the model has no such column.{closest(str(name), names)} Columns: {list_names(names)}."
        for name in words_of
        if name not in names
    }
    parsed = []
    for column in schema:
        try:
            parsed.append(_permission(column, words_of[column.name]) if column.name in words_of else FREE)
        except ValueError as error:
            errors[column.name] = str(error)
    if errors:
        raise ParameterError(errors)
    return tuple(parsed)


def split_argument(text: str, schema: Sequence[ColumnSchema]) -> tuple[str, str | list[str]]:
    """Split COLUMN=WORDS; A|B is a list for a categorical column. Raises ParameterError for other text."""
    for column in sorted(schema, key=lambda c: -len(c.name)):
        if text.startswith(f"{column.name}="):
            words = text[len(column.name) + 1 :]
            if column.kind is ColumnKind.CATEGORICAL and words not in WORDS:
                return column.name, words.split("|")
            return column.name, words
    name, equals, _ = text.rpartition("=")
    if not equals:
        raise ParameterError({text: "write COLUMN=free, up, down, whole, fill or never."})
    names = [column.name for column in schema]
    raise ParameterError({name: f"the model has no such column.{closest(name, names)} Columns: {list_names(names)}."})


def _permission(column: ColumnSchema, words: Any) -> Permission:
    if isinstance(words, list):
        return _reachable(column, words)
    parts = {part.strip() for part in str(words).split(",")}
    if strange := sorted(parts - set(WORDS)):
        raise ValueError(f"'{strange[0][:60]}' is not one of {', '.join(WORDS)}.")
    if "never" in parts and parts & {"free", "up", "down", "fill"}:
        raise ValueError("'never' cannot be combined with another word. Use it alone.")
    if column.kind is ColumnKind.CATEGORICAL and parts & {"up", "down", "whole", "fill"}:
        raise ValueError("a column of categories takes free, never or a list of categories.")
    if "never" in parts:
        return Permission(up=False, down=False)
    one_way = len(parts & {"up", "down"}) == 1
    return Permission(
        up=not one_way or "up" in parts,
        down=not one_way or "down" in parts,
        whole="whole" in parts,
        fill="fill" in parts,
    )


def _reachable(column: ColumnSchema, names: list[Any]) -> Permission:
    if column.kind is not ColumnKind.CATEGORICAL:
        raise ValueError(
            "the column has numbers, so it takes no list of categories. Use free, up, down, whole, fill or never."
        )
    for name in names:
        if name not in column.categories:
            raise ValueError(
                f"'{str(name)[:60]}' is not a category.{closest(str(name), column.categories)} Categories: {list_names(column.categories)}."
            )
    return Permission(codes=tuple(sorted({column.categories.index(name) for name in names})))


def reachable_codes(column: ColumnSchema, permission: Permission) -> tuple[int, ...]:
    """Return the codes of the categories that a row may change to."""
    if permission.never:
        return ()
    if permission.codes is not None:
        return permission.codes
    return tuple(code for code, name in enumerate(column.categories) if name != MISSING_CATEGORY)
