"""Find out which part is unavailable: database, files or disk."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from octweb.core.faults import DamagedDocument, StoreUnavailable
from octweb.core.problems import Busy

RETRY_SECONDS = 10
FREE_BYTES = 50_000_000  # a disk with less free space counts as full
DISK_FULL = "The disk of the server is full. Nothing was changed; tell the administrator."
# further members of /readyz, by name, which do not decide whether the process can work
FACTS: dict[str, Callable[[], Any]] = {}
LOCKED = "Another process has locked the database. Nothing was changed; try again in a moment."
NO_DATABASE = "The database does not answer. Nothing was changed; try again in a moment."


def reason_of(error: BaseException | None) -> str:
    """Return a message if a part is unavailable or a document is damaged. "" for other errors, which are faults."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DISK_FULL
    if isinstance(error, OperationalError | InterfaceError):
        text = str(error).lower()
        if "locked" in text or "lock timeout" in text:
            return LOCKED
        # if the disk is full, SQLite may report only that it cannot open its files
        return DISK_FULL if "full" in text or (connection.vendor == "sqlite" and _disk() == "full") else NO_DATABASE
    if isinstance(error, Busy):
        return str(error.detail)
    return str(error) if isinstance(error, StoreUnavailable | DamagedDocument) else ""


def parts() -> dict[str, str]:
    """Return the state of each part that requests need: "ok", or the problem."""
    return {"database": _database(), "disk": _disk(), "files": _files()}


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        if connection.vendor == "sqlite" and not connection.in_atomic_block:
            return _can_write(str(connection.settings_dict["NAME"]))
    except DatabaseError:
        return "no answer"
    return "ok"


def _can_write(path: str) -> str:
    probe = sqlite3.connect(path, timeout=1, isolation_level=None)
    try:
        probe.execute("BEGIN IMMEDIATE")
        probe.execute("ROLLBACK")
    except sqlite3.Error as error:
        return "locked" if "locked" in str(error) else "cannot be written"
    finally:
        probe.close()
    return "ok"


def _disk() -> str:
    try:
        status = os.statvfs(settings.DATA_DIR)
    except OSError:
        return "the data folder is gone"
    return "ok" if status.f_bavail * status.f_frsize > FREE_BYTES else "full"


def _files() -> str:
    """Return "ok" if the file folder is writable or does not exist yet. A bucket is not checked."""
    try:
        folder = Path(default_storage.path(""))
    except NotImplementedError:
        return "ok"
    return "ok" if not folder.exists() or os.access(folder, os.W_OK) else "cannot be written"
