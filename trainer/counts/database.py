"""Read the rows of a query of DuckDB or PostgreSQL as Arrow batches."""

from __future__ import annotations

import importlib
import re
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

import pyarrow as pa

from trainer.counts.source import PIECE_ROWS, Source, SourcePiece
from trainer.data.formats.parquet_file import arrow_pieces
from trainer.errors import DataError, ParameterError
from trainer.tree.literals import sql_name

INSTALL = "Install it with pip install 'octweb[{}]'."
EXTRAS = {"ibis": "ibis"}  # driver → extra, if it is not `databases`
# signs that end the user and the password of a URL, or are an error in them
UNESCAPED = re.compile(r"[@/?#\[\]]|%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, kw_only=True)
class QueryGuard:
    """Limits on a query whose author may read the database, but no files of the server.

    A guarded DuckDB reads only its own file. In PostgreSQL, the rights of the database user decide what a query may read.
    """

    seconds: int  # limit on each statement; DuckDB has no such limit


class QuerySource(Source):
    """The rows of a query. All passes read in one read-only transaction, so they see the same rows.

    The order of rows may differ between two runs, so a stopped count begins again.
    """

    resumable = False
    engine: ClassVar[str]
    driver: ClassVar[str]  # the module that reads the database

    def __init__(self, url: str, query: str, guard: QueryGuard | None = None) -> None:
        self._query = query.strip().rstrip(";").rstrip()
        if not self._query:
            raise ParameterError({"query": "it is empty. Write a SELECT, or name a table with --table."})
        self.label = self._label(url)
        self.names = (self.label,)
        try:
            self._connection = self._connect(url, guard)
            self.origin = {"engine": f"{self.engine} {self._version()}", "query": self._query, **self._snapshot()}
        except self.errors as error:
            raise DataError(
                f"The database '{self.label}' cannot be opened: {first_line(error)}. Correct the URL, or start the database."
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()

    def digest(self, part: int) -> str:
        return sha256(f"{self.engine}\n{self.label}\n{self._query}".encode()).hexdigest()

    def changed(self, part: int) -> bool:
        return False

    def pieces(
        self, column_names: Collection[str] | None = None, *, first: int = 0, start: int = 0
    ) -> Iterator[SourcePiece]:
        rows_before = 0
        try:
            for rows in arrow_pieces(self._batches(column_names)):
                yield SourcePiece(part=0, start=rows_before, rows=rows)
                rows_before += len(rows)
        except (*self.errors, pa.ArrowException, OSError) as error:  # the last two come from batches
            raise DataError(f"The query of '{self.label}' failed: {first_line(error)}. Correct the query.") from error
        if not rows_before:
            raise DataError(f"The query of '{self.label}' returns no rows. Correct the query.")

    def _batches(self, column_names: Collection[str] | None) -> Iterator[pa.RecordBatch]:
        present = None
        if column_names is not None:
            present = [name for name in self._columns() if name in column_names]
            if not present:
                raise DataError(
                    f"The query of '{self.label}' has none of the columns that are needed. Correct the query."
                )
        for batch in self._read_columns(present):
            if batch.num_rows:
                yield _plain(batch)

    def _read_columns(self, names: list[str] | None) -> Iterable[pa.RecordBatch]:
        """Yield the rows of the query with these columns, all for None."""
        return self._read(self._select("*" if names is None else ", ".join(map(sql_name, names))))

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The errors of the driver."""
        return (driver_module(self.driver).Error,)

    def _columns(self) -> list[str]:
        """Return the names of the query's columns."""
        return list(self._read(self._select("*") + " LIMIT 0").schema.names)

    def _select(self, columns: str) -> str:
        """Return a query of some columns. Only a SELECT can be a subquery, so COPY and other commands fail."""
        return f"SELECT {columns} FROM (\n{self._query}\n) AS rows_of_the_query"  # noqa: S608 - the user's own query, read-only

    @abstractmethod
    def _label(self, url: str) -> str:
        """Return the name of the database without user and password."""

    @abstractmethod
    def _connect(self, url: str, guard: QueryGuard | None) -> Any:
        """Open a connection in a transaction that only reads."""

    @abstractmethod
    def _version(self) -> str:
        """Return the version of the engine."""

    def _snapshot(self) -> Mapping[str, str]:
        """Return members that identify the state of the database, if it names one."""
        return {}

    @abstractmethod
    def _read(self, query: str) -> pa.RecordBatchReader:
        """Run a query."""


class DuckSource(QuerySource):
    """A query of a DuckDB file, or of `duckdb:` alone, which reads the files that the query names."""

    engine = "DuckDB"
    driver = "duckdb"

    def _label(self, url: str) -> str:
        return Path(_path_of(url)).name or "duckdb"

    def _connect(self, url: str, guard: QueryGuard | None) -> Any:
        path = _path_of(url)
        if path and not Path(path).is_file():
            raise DataError(f"There is no database '{path}'. Correct the path.")
        connection = driver_module(self.driver).connect(path or ":memory:", read_only=bool(path))
        connection.execute("SET TimeZone = 'UTC'")  # times are those of UTC, as PostgreSQL gives them
        connection.execute("SET temp_directory = ''")  # the default writes large sorts beside the database
        if guard is not None:
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
        return connection.begin()

    def _version(self) -> str:
        return str(driver_module(self.driver).__version__)

    def _read(self, query: str) -> pa.RecordBatchReader:
        kinds = [statement.type.name for statement in self._connection.extract_statements(query)]
        if kinds != ["SELECT"]:  # DuckDB would execute the others, too
            raise DataError(f"The query of '{self.label}' is not one SELECT. Write one SELECT.")
        return self._connection.sql(query).to_arrow_reader(PIECE_ROWS)


class PostgresSource(QuerySource):
    """A query of PostgreSQL in a read-only transaction that sees one snapshot."""

    engine = "PostgreSQL"
    driver = "adbc_driver_postgresql.dbapi"

    def _label(self, url: str) -> str:
        user = url.partition("://")[2].rpartition("@")[0]
        if "://" not in url or UNESCAPED.search(user):  # errors would show a part of the password
            raise ParameterError(
                {
                    "source": "a URL has the form postgresql://user@host/database. Put the password into PGPASSWORD, or write its "
                    "signs @ / ? # [ ] % as %40 %2F %3F %23 %5B %5D %25."
                }
            )
        try:
            parts = urlsplit(url)
        except ValueError as error:
            raise ParameterError({"source": f"the URL is wrong: {error}. Correct its host."}) from error
        return f"postgresql://{parts.hostname or ''}{parts.path}"

    def _connect(self, url: str, guard: QueryGuard | None) -> Any:
        connection = driver_module(self.driver).connect(url, autocommit=False)
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            if guard is not None:
                cursor.execute(f"SET LOCAL statement_timeout = {1000 * int(guard.seconds)}")
        return connection

    def _version(self) -> str:
        return self._value("SELECT current_setting('server_version')").partition(" ")[0]

    def _snapshot(self) -> Mapping[str, str]:
        return {"snapshot": self._value("SELECT pg_current_snapshot()::text")}

    def _value(self, query: str) -> str:
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            return str(cursor.fetchone()[0])

    def _read(self, query: str) -> pa.RecordBatchReader:
        self._cursor = self._connection.cursor()  # kept alive: the reader stops when its cursor is deleted
        self._cursor.execute(query)
        return self._cursor.fetch_record_batch()


def _path_of(url: str) -> str:
    return url.partition(":")[2].removeprefix("//")


def driver_module(module: str) -> Any:
    """Import the driver of a database; raise DataError if it is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise DataError(
            f"Reading this database needs {module.partition('.')[0]}. {INSTALL.format(EXTRAS.get(module, 'databases'))}"
        ) from error


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with the stored values of types that Arrow does not know, such as numbers of PostgreSQL as text."""
    return pa.RecordBatch.from_arrays([_stored(column) for column in batch.columns], names=batch.schema.names)


def _stored(column: pa.Array) -> pa.Array:
    if isinstance(column.type, pa.UuidType):
        return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())
    return column.storage if isinstance(column.type, pa.BaseExtensionType) else column


def first_line(error: Exception) -> str:
    """Return the first line of an error, without its end."""
    return str(error).strip().splitlines()[0][:300].rstrip(".!") if str(error).strip() else type(error).__name__
