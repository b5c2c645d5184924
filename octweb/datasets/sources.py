"""Read the sources of rows that the settings name, for users who may count them.

Pages, errors and jobs show the name of a source, and never its address, which may hold a password.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from django.conf import settings
from django.http import Http404

from octweb.core.ownership import CHANGING_ROLES, teams_of
from trainer.counts.opening import is_database, table_query
from trainer.errors import DataError

PERMISSION = "sources.use_sources"
MAX_QUERY_CHARACTERS = 20_000  # characters of a query
# variables with the keys of buckets and databases; the address may hold them instead
KEYS = re.compile(r"^(AWS_|PG[A-Z]+$|GOOGLE_APPLICATION_CREDENTIALS$|AZURE_)")

# how errors of PostgreSQL name servers, users and databases
SERVER_NAMES = re.compile(
    r'\b(connection to server at|connection to server on socket|host name|host|user|role|database) "[^"]*"'
    r"(?: \([^)]*\))?(?:, port \d+)?"
)


@dataclass(frozen=True, kw_only=True)
class NamedSource:
    """A folder, bucket or database of the settings. If it names groups or teams, others do not see it."""

    name: str
    address: str = field(repr=False)
    groups: tuple[str, ...] = ()
    teams: tuple[uuid.UUID, ...] = ()  # whose owners and editors may count it

    def is_open_to(self, groups: set[str], teams: set[uuid.UUID]) -> bool:
        """Return whether members of these groups and teams may count it."""
        return not (self.groups or self.teams) or bool(groups & set(self.groups) or teams & set(self.teams))

    @property
    def is_database(self) -> bool:
        """Whether rows are chosen by a table or a query, and not by a file."""
        return is_database(self.address)

    @property
    def kind(self) -> str:
        """ "database", "bucket" or "folder"."""
        if self.is_database:
            return "database"
        return "bucket" if "://" in self.address else "folder"

    def hide(self, text: str) -> str:
        """Return a text with this source's name in place of its address, host, path, user and password."""
        rest = self.address.partition("://")[2] or self.address.partition(":")[2]
        user, _, password = rest.rpartition("@")[0].partition(":")
        path = self.address.removeprefix("duckdb:").removeprefix("//")
        for secret in sorted({self.address, rest, password, unquote(password), path}, key=len, reverse=True):
            if len(secret) > 1:
                text = text.replace(secret, self.name if secret in (self.address, path) else "…")
        text = text.replace(f"{user}:…@", "") if user else text
        return self._hide_server(text) if self.is_database else text

    def _hide_server(self, text: str) -> str:
        """Return a text without the server that a driver names in its errors, which the settings may not name themselves."""
        text = SERVER_NAMES.sub(rf"\1 '{self.name}'", text)
        parts = urlsplit(self.address)
        if not parts.hostname:
            return text
        host = re.escape(parts.hostname)
        label = rf"postgres(?:ql)?://{host}{re.escape(parts.path)}"
        return re.sub(rf"{label}|(?<![\w-])(?<!\w\.){host}(?![\w-]|\.\w)", self.name, text, flags=re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class SourceRows:
    """The rows of a source that a user chose: a table or file, a query, or all files of a folder."""

    source: NamedSource
    table: str = ""
    query: str = ""

    @property
    def place(self) -> str:
        """The address that `trainer.counts.opening.open_source` opens."""
        if self.source.is_database or not self.table:
            return self.source.address
        if "://" not in self.source.address:
            return f"{self.source.address.rstrip('/')}/{self.table}"
        address, mark, options = self.source.address.partition("?")
        # quoted, because `?` begins options such as another host, and `%2e%2e` is the folder above
        return f"{address.rstrip('/')}/{quote(self.table)}{mark}{options}"

    @property
    def statement(self) -> str | None:
        """The query of a database. None for files."""
        if not self.source.is_database:
            return None
        return self.query or table_query(self.table)

    @property
    def words(self) -> str:
        """The chosen rows, for people."""
        if self.query:
            return f"a query of {self.source.name}"
        return f"{self.source.name}: {self.table}" if self.table else self.source.name

    def to_json(self) -> dict[str, str]:
        return {"source": self.source.name, "table": self.table, "query": self.query}


def sources_of(user: Any) -> list[NamedSource]:
    """Return the sources that a user may count, by name."""
    named = [NamedSource(name=name, **entry) for name, entry in sorted(settings.SECRET_SOURCES.items())]
    if user.is_staff or not named:
        return named
    if not user.has_perm(PERMISSION):
        return []
    groups = set(user.groups.values_list("name", flat=True))
    teams = set(teams_of(user, CHANGING_ROLES))
    return [source for source in named if source.is_open_to(groups, teams)]


def source_of(user: Any, name: str) -> NamedSource:
    """Return a source that a user may count. Raises Http404, the same one if the source does not exist."""
    for source in sources_of(user):
        if source.name == name:
            return source
    raise Http404("There is no source with this name, or you may not use it. Ask an administrator.")


def chosen_rows(user: Any, record: Mapping[str, Any]) -> SourceRows:
    """Return the rows that a record of `SourceRows.to_json` names. Raises Http404, and DataError for a wrong choice."""
    source = source_of(user, str(record.get("source", "")))
    table = str(record.get("table") or "").strip()
    query = str(record.get("query") or "").strip()
    if table and query:
        raise DataError("Choose a table or write a query, not both.")
    if query and not source.is_database:
        raise DataError(f"'{source.name}' has files, so it takes no query. Choose a file.")
    if source.is_database and not (table or query):
        raise DataError(f"'{source.name}' is a database. Choose a table, or write a query.")
    if len(query) > MAX_QUERY_CHARACTERS:
        raise DataError(
            f"The query has {len(query):,} characters, but at most {MAX_QUERY_CHARACTERS:,} are possible. Shorten it."
        )
    if "\x00" in table + query:
        raise DataError("A name and a query must not contain the character 0. Remove it.")
    # the list leaves hidden files out, and a part `..` begins with a dot, too
    if not source.is_database and (table.startswith("/") or any(p.startswith((".", "_")) for p in Path(table).parts)):
        raise DataError(f"'{table[:80]}' is not a file of '{source.name}'. Choose one of the list.")
    return SourceRows(source=source, table=table, query=query)


def keys() -> dict[str, str]:
    """Return the environment variables that only processes which read sources get."""
    return {name: value for name, value in os.environ.items() if KEYS.search(name)}
