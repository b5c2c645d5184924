"""Copy the whole database to files and back: SQLite as a file, PostgreSQL as the rows of each table.

PostgreSQL needs no program such as pg_dump, whose version would have to match the server's. The tables are created by
the migrations that the copy names.
"""

from __future__ import annotations

import gzip
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.migration import Migration
from django.db.migrations.recorder import MigrationRecorder

from octweb.core.faults import BackupError

SQLITE_FILE = "database.sqlite3"
TABLES = "tables"  # folder of the tables of a PostgreSQL database
Description = dict[str, Any]  # kind, migrations, and for PostgreSQL the columns of each table and the sequences


def has_tables() -> bool:
    """Return whether the database exists and has tables."""
    if connection.vendor == "sqlite" and not Path(connection.settings_dict["NAME"]).exists():
        return False
    with connection.cursor() as cursor:
        return bool(connection.introspection.table_names(cursor))


def applied_migrations() -> list[list[str]]:
    """Return application and name of each migration that the database has."""
    return sorted(list(key) for key in MigrationRecorder(connection).applied_migrations())


def copy_database(folder: Path) -> Description:
    """Write a consistent copy of the database into a folder while it is used, and return its description.

    Raises BackupError if SQLite cannot read the database or write the copy, for example to a full disk.
    """
    if connection.vendor != "sqlite":
        return _copy_tables(folder / TABLES)
    try:
        recorded = _copy_sqlite(connection.settings_dict["NAME"], folder / SQLITE_FILE)
    except sqlite3.Error as error:
        raise BackupError(
            f"The database cannot be copied: {error}. Check the space of the disk. Nothing is left of the backup."
        ) from error
    return {"kind": "sqlite", "migrations": [list(row) for row in recorded]}


def _copy_sqlite(path: str, target: Path) -> list[tuple[str, str]]:
    """Copy a SQLite file, and return the migrations that the copy has."""
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)  # one read transaction, so writers do not disturb it
        return copy.execute("SELECT app, name FROM django_migrations ORDER BY app, name").fetchall()


def _copy_tables(folder: Path) -> Description:
    folder.mkdir()
    tables = {}
    with transaction.atomic(), connection.cursor() as cursor:
        # all tables as of one moment, while others write
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        migrations = applied_migrations()
        for name in sorted(connection.introspection.table_names(cursor)):
            cursor.execute(
                "SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema()"
                " AND table_name = %s AND is_generated = 'NEVER' ORDER BY ordinal_position",
                [name],
            )
            tables[name] = [row[0] for row in cursor.fetchall()]
            statement = f"COPY {connection.ops.quote_name(name)} ({_columns(tables[name])}) TO STDOUT"
            with gzip.open(folder / f"{name}.gz", "wb", compresslevel=4) as stream, cursor.copy(statement) as copy:
                for block in copy:
                    stream.write(block)
        cursor.execute("SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = current_schema()")
        sequences = {name: value for name, value in cursor.fetchall() if value is not None}
    return {"kind": "postgresql", "migrations": migrations, "tables": tables, "sequences": sequences}


def _columns(names: list[str]) -> str:
    """Return quoted names, separated by commas."""
    return ", ".join(map(connection.ops.quote_name, names))


def check_database(folder: Path, description: Description) -> None:
    """Check a copy of a database against this installation. Raises BackupError."""
    if description["kind"] != connection.vendor:
        raise BackupError(
            f"The backup is of {description['kind']}, and this installation uses {connection.vendor}. "
            "Set DATABASE_URL to a database of the same kind."
        )
    _plan(description["migrations"])
    if connection.vendor == "sqlite":
        # immutable: SQLite neither writes beside the copy, which may be on a read-only disk, nor reads a log there
        address = f"{(folder / SQLITE_FILE).absolute().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as copy:
            try:
                result = copy.execute("PRAGMA integrity_check").fetchone()
            except sqlite3.DatabaseError as error:
                result = (str(error),)
        if result != ("ok",):
            raise BackupError(f"The database in the backup is damaged: {result[0]}. Use another backup.")


def _plan(recorded: list[list[str]]) -> list[tuple[Migration, bool]]:
    """Return the plan that creates the tables of a backup. Raises BackupError if a migration is unknown here."""
    keys = {(app, name) for app, name in recorded}
    executor = MigrationExecutor(None)  # without a connection: as if nothing was applied
    graph = executor.loader.graph
    plan = []
    made = set()
    for migration, _ in executor.migration_plan(graph.leaf_nodes(), clean_start=True):
        key = (migration.app_label, migration.name)
        if key in keys or (migration.replaces and set(migration.replaces) <= keys):
            plan.append((migration, False))
            made |= {key, *migration.replaces}
    if unknown := sorted(keys - made - {key for key in keys if key in executor.loader.disk_migrations}):
        app, name = unknown[0]
        raise BackupError(
            f"The backup was made by another version of octweb: its migration '{app}.{name}' is unknown here. "
            "Restore it with the version that made it, or a newer one."
        )
    return plan


def restore_database(folder: Path, description: Description) -> None:
    """Replace the database by the copy. PostgreSQL changes in one transaction, SQLite by renaming the new file.

    Raises BackupError if another process has the SQLite file open.
    """
    if connection.vendor == "sqlite":
        path = Path(connection.settings_dict["NAME"])
        connection.close()
        staged = path.with_name(f"{path.name}.restoring")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            shutil.copyfile(folder / SQLITE_FILE, staged)
            if path.exists():
                _end_log(path)
        except BaseException:
            staged.unlink(missing_ok=True)
            raise
        for ending in ("-wal", "-shm"):  # they belong to the old file
            path.with_name(path.name + ending).unlink(missing_ok=True)
        os.replace(staged, path)
        return
    plan = _plan(description["migrations"])
    with transaction.atomic(), connection.cursor() as cursor:
        _drop_tables(cursor)
        MigrationExecutor(connection).migrate([], plan=plan)
        _fill_tables(cursor, folder / TABLES, description)


def _end_log(path: Path) -> None:
    """Move the write-ahead log of a SQLite file into it, so that a kill before the renaming loses nothing.

    Raises BackupError if another process has the file open, which would write into the log of the new file.
    """
    with closing(sqlite3.connect(path, timeout=1)) as database:
        try:
            database.execute("PRAGMA journal_mode=DELETE")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise BackupError(
                    "Another process uses the database. Stop the web server and all workers. Nothing was changed."
                ) from None
            raise
        except sqlite3.DatabaseError:  # it is damaged, and a restore mends that
            return


def _drop_tables(cursor: Any) -> None:
    for name in connection.introspection.table_names(cursor):
        cursor.execute(f"DROP TABLE {connection.ops.quote_name(name)} CASCADE")


def _fill_tables(cursor: Any, folder: Path, description: Description) -> None:
    tables = description["tables"]
    present = set(connection.introspection.table_names(cursor))
    if present != set(tables):
        names = ", ".join(sorted(present ^ set(tables)))
        raise BackupError(
            f"The tables of the backup differ from those of its migrations: {names}. Nothing was changed."
        )
    cursor.execute("SET CONSTRAINTS ALL DEFERRED")  # migrations make some of them immediate
    cursor.execute(f"TRUNCATE {_columns(list(tables))}")  # rows that the migrations added
    for name, columns in tables.items():
        statement = f"COPY {connection.ops.quote_name(name)} ({_columns(columns)}) FROM STDIN"
        with gzip.open(folder / f"{name}.gz", "rb") as stream, cursor.copy(statement) as copy:
            while block := stream.read(1 << 20):
                copy.write(block)
    for name, value in description["sequences"].items():
        cursor.execute("SELECT setval(%s::regclass, %s)", [connection.ops.quote_name(name), value])
