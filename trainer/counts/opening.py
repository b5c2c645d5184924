"""Open the source of rows that a path, a URI or the URL of a database names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainer.counts.database import DuckSource, PostgresSource, QueryGuard, QuerySource
from trainer.counts.files import FileSource
from trainer.counts.source import Source
from trainer.counts.storage import storage_of
from trainer.counts.warehouse import IbisSource
from trainer.errors import ParameterError
from trainer.tree.literals import sql_name

# URL scheme → class that reads such databases
SCHEMES: dict[str, type[QuerySource]] = {
    "duckdb": DuckSource,
    "postgresql": PostgresSource,
    "postgres": PostgresSource,
    "ibis": IbisSource,
}
TABLES = (
    "SELECT table_schema AS schema, table_name AS name FROM information_schema.tables "
    "WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2"
)
# a part of a table's name; one with a dot stands in quotes
PART = re.compile(r'"(?:[^"]|"")+"(?=\.|$)|[^.]+')


def open_source(
    place: Path | str,
    *,
    query: str | None = None,
    structure: Mapping[str, Any] | None = None,
    guard: QueryGuard | None = None,
) -> Source:
    """Open a source of rows; a context manager.

    Parameters
    ----------
    place : Path or str
        A file or folder, a URI of an object store that pyarrow reads (`s3://bucket/loans`), or a database: `duckdb:FILE`, `duckdb:`,
        `postgresql://user@host/database`, or `ibis:` and a URL of Ibis.
    query : str, optional
        The SELECT whose rows are read; needed for a database, refused elsewhere.
    structure : mapping, optional
        How CSV files are written, see `ParsingChoices.structure`.
    guard : QueryGuard, optional
        Limits on the query of a database. Without them, the query may name files.

    Raises
    ------
    DataError
        If there is no such file or database, or its driver is not installed.
    ParameterError
        If the query is missing, or belongs to no database.
    """
    scheme = _scheme(place)
    if scheme not in SCHEMES:
        if query is not None:
            raise ParameterError({"query": "only databases have queries and tables. Leave it out, or name a database."})
        return FileSource(place, structure)
    if query is None:
        raise ParameterError({"query": "a database needs a query. Add --query 'SELECT ...' or --table NAME."})
    return SCHEMES[scheme](str(place), query, guard)


def is_database(place: Path | str) -> bool:
    """Return whether a place is a database, which needs a query."""
    return _scheme(place) in SCHEMES


def _scheme(place: Path | str) -> str:
    return place.partition(":")[0] if isinstance(place, str) and ":" in place else ""


def list_tables(place: Path | str) -> list[str]:
    """Return the files below a folder, or the tables and views of a database that its user may see; raise DataError."""
    if not is_database(place):
        return list(storage_of(place).names)
    with open_source(place, query=TABLES) as source:
        return [
            f"{_quoted(schema)}.{_quoted(name)}"
            for piece in source.pieces()
            for schema, name in zip(*(piece.rows.column(part).to_pylist() for part in ("schema", "name")), strict=True)
        ]


def table_query(table: str) -> str:
    """Return the query of all rows of a table, `name` or `schema.name`. A part with a dot stands in quotes."""
    parts = PART.findall(table) or [table]
    return f"SELECT * FROM {'.'.join(sql_name(_unquoted(part)) for part in parts)}"  # noqa: S608 - the name is quoted


def _quoted(part: str) -> str:
    return sql_name(part) if "." in part or part.startswith('"') else part


def _unquoted(part: str) -> str:
    is_quoted = len(part) > 2 and part[0] == part[-1] == '"'
    return part[1:-1].replace('""', '"') if is_quoted else part
