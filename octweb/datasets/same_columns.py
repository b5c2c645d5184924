"""Check that a new version has the columns of the previous one."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from trainer.data.parsing import ColumnParsing
from trainer.errors import DataError, list_names, nearest

SEPARATE = "upload it as a separate data set"
MOST = 10  # one sentence lists at most this many names


def check_same_columns(names: Sequence[str], columns: Collection[str], reading: ColumnParsing) -> None:
    """Raise DataError unless the file has the columns of the previous version.

    `names` are the columns of the file. `columns` are those of the previous version, after the parsing `reading`. The
    error names missing columns, new columns, and likely renames.
    """
    source_of = {name: column.name for column in reading.columns.values() for name in column.names}
    expected = list(dict.fromkeys(source_of.get(name, name) for name in columns))
    missing = [name for name in expected if name not in names]
    more = [name for name in names if name not in expected]
    if missing or more:
        raise DataError(_describe_difference(missing, more), problems=_problems(missing, more))


def _describe_difference(missing: list[str], more: list[str]) -> str:
    differences = [
        f"{label}: {list_names(some, MOST)}." for label, some in (("Missing", missing), ("New", more)) if some
    ]
    return f"A new version has the columns of the version before. {' '.join(differences)} {_advice(missing, more)}"


def _advice(missing: list[str], more: list[str]) -> str:
    near = [(name, new) for name in missing if (new := nearest(name, more)) is not None]
    if near:
        return (
            f"If '{near[0][1]}' is '{near[0][0]}' by another name, give it the old name in the first line of the file. "
            f"Else {SEPARATE}."
        )
    if missing and more:
        return f"If only names have changed, give the columns their old names in the first line of the file. Else {SEPARATE}."
    if missing:
        return f"Add what is missing to the file, or {SEPARATE}."
    return f"Take what is new out of the file, or {SEPARATE}."


def _problems(missing: list[str], more: list[str]) -> tuple[str, ...]:
    """Return a line for each missing or new column, for the list below the sentence."""
    lines = []
    for name in missing:
        near = nearest(name, more)
        lines.append(f"'{name}' is missing" + (f"; perhaps '{near}' is its new name." if near else "."))
    return (*lines, *(f"'{name}' is new." for name in more))[: 2 * MOST]
