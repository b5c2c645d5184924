"""Read the rows of a query through Ibis, which reaches warehouses such as Snowflake, BigQuery and Databricks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from trainer.counts.database import QueryGuard, QuerySource, driver_module, first_line
from trainer.counts.source import PIECE_ROWS
from trainer.errors import DataError, ParameterError


class IbisSource(QuerySource):
    """A query of a database of Ibis, such as `ibis:snowflake://user@account/database`.

    Ibis has no read-only transaction over several queries, so the rows must not change between the two passes.
    """

    engine = "Ibis"
    driver = "ibis"

    def _label(self, url: str) -> str:
        try:
            parts = urlsplit(_address(url))
            name = f"{parts.scheme}://{parts.hostname or ''}{parts.path}"
        except ValueError as error:
            raise ParameterError({"source": f"the URL is wrong: {error}. Correct its host."}) from error
        if not parts.scheme:
            raise ParameterError({"source": "a URL of Ibis has the form ibis:snowflake://user@account/database."})
        return name

    def _connect(self, url: str, guard: QueryGuard | None) -> Any:
        if guard is not None:
            raise DataError(
                "Ibis does not keep queries from writing. Name a source that starts with duckdb: or postgresql://."
            )
        try:
            return driver_module(self.driver).connect(_address(url))
        except Exception as error:  # each database has errors of its own
            raise DataError(
                f"The database '{self.label}' cannot be opened: {first_line(error)}. Correct the URL, or install its driver."
            ) from error

    def _version(self) -> str:
        return f"{driver_module(self.driver).__version__} on {self._connection.name}"

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        return (driver_module(self.driver).common.exceptions.IbisError,)

    def __exit__(self, *error: object) -> None:
        self._connection.disconnect()

    @cached_property
    def rows(self) -> Any:
        """The query as a table expression, which Ibis compiles for its database."""
        try:
            return self._connection.sql(self._query)
        except Exception as error:
            raise DataError(f"The query of '{self.label}' failed: {first_line(error)}. Correct the query.") from error

    def _columns(self) -> list[str]:
        return list(self.rows.columns)

    def _read_columns(self, names: list[str] | None) -> Iterator[pa.RecordBatch]:
        rows = self.rows if names is None else self.rows.select(*names)
        try:
            yield from rows.to_pyarrow_batches(chunk_size=PIECE_ROWS)
        except Exception as error:
            raise DataError(f"The query of '{self.label}' failed: {first_line(error)}. Correct the query.") from error

    def _read(self, query: str) -> pa.RecordBatchReader:
        return self._connection.sql(query).to_pyarrow_batches(chunk_size=PIECE_ROWS)


def _address(url: str) -> str:
    return url.partition(":")[2]
