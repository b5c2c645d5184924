"""List erased decisions in a file apart from the database, so that they are erased again after a restore."""

from __future__ import annotations

import json
import logging
import os
import uuid
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings

from octweb.core.problems import Busy

log = logging.getLogger(__name__)

BEGINNING = b'{"at": "'  # of each line


class DamagedList(ValueError):
    """A line of a list of erasures cannot be read."""


def append(decisions: Collection[uuid.UUID], why: str) -> None:
    """Append erased decisions to the list of this host, and sync it to disk. Raises Busy if it cannot be written.

    The list has ids and reasons, and nothing about a person.
    """
    line = {"at": datetime.now(UTC).isoformat(), "why": why, "decisions": sorted(map(str, decisions))}
    path = settings.ERASURES
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "r+b") as file:
            content = (json.dumps(line) + "\n").encode()
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                content = content if file.read(1) == b"\n" else b"\n" + content  # a power failure cut the last line
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        log.error("the list of erasures %s cannot be written: %s", path, error)
        raise Busy(
            "Nothing was erased, because the list of erasures cannot be written. Try again later; tell an administrator."
        ) from error


def read_list(path: Path) -> dict[str, list[uuid.UUID]]:
    """Return the erased decisions by reason. A line that a power failure cut is left out. Raises OSError and DamagedList."""
    by_reason: dict[str, list[uuid.UUID]] = {}
    for number, text in enumerate(path.read_bytes().splitlines(), 1):
        try:
            line = json.loads(text)
            by_reason.setdefault(str(line["why"]), []).extend(uuid.UUID(key) for key in line["decisions"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            is_cut = BEGINNING.startswith(text[: len(BEGINNING)]) and not text.endswith(b"}")
            if not is_cut:
                raise DamagedList(f"Line {number} of {path} is not a line of a list of erasures.") from error
    return by_reason
