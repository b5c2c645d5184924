"""The store of files: a folder of this host, or a bucket that every host reaches.

What reads a table wants a path. In a folder that is the file itself; from a bucket a copy is fetched once and kept in the data folder for
a while. A stored file never changes and its name is never used again, so a copy is never out of date.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.core.files.storage import Storage, default_storage
from django.db.models.fields.files import FieldFile
from django.utils import timezone

from octweb.core.faults import StoreUnavailable
from octweb.private_files import protect_folder

log = logging.getLogger(__name__)

CHUNK = 1 << 20
ORPHAN_LIFE = timedelta(days=1)  # a stored file that the database does not know may be one that is being stored
KEEP_SECONDS = 24 * 3600.0  # a copy that was not used for so long is removed
IN_USE_SECONDS = 600.0  # a copy that was requested this recently stays even if there are too many


def local_path(file: FieldFile) -> Path:
    """A path to read the stored file at; raises FileNotFoundError, and StoreUnavailable where the store does not answer."""
    try:
        return Path(file.path)
    except NotImplementedError:
        return _copy(file.storage, str(file.name))


def protect_stored() -> None:
    """Take the rights of others from the data folder, and from the folder of files where it is another one."""
    protect_folder(settings.DATA_DIR)
    with contextlib.suppress(NotImplementedError):  # a bucket
        files = Path(default_storage.path(""))
        if not files.is_relative_to(settings.DATA_DIR):
            protect_folder(files)


def remove(storage: Storage, name: str) -> None:
    """Remove a stored file and the copy that this host has of it.

    Called when the database has forgotten the file: a store that does not answer now is not a reason to fail, so the log says what is left.
    """
    _place(name).unlink(missing_ok=True)
    try:
        storage.delete(name)
    except StoreUnavailable as error:
        log.warning("the file %s is left in the store: %s", name, error)


def age(name: str, now: datetime) -> timedelta:
    """How long ago a stored file was changed."""
    moment = default_storage.get_modified_time(name)
    return now - (moment if timezone.is_aware(moment) else timezone.make_aware(moment))


def remove_unknown(folder: str, known: Iterable[str], now: datetime) -> int:
    """Remove the stored files of a folder that are not among `known` names and older than an upload may take; returns how many."""
    try:
        _, names = default_storage.listdir(folder)
    except FileNotFoundError:
        return 0
    known_names = set(known)
    old = [
        name
        for name in (f"{folder}/{name}" for name in names)
        if name not in known_names and age(name, now) > ORPHAN_LIFE
    ]
    for name in old:
        remove(default_storage, name)
    return len(old)


def place_in(file: FieldFile, target: Path) -> Path:
    """A path that stays while `target`'s folder does: the stored file itself, or a link to the copy of it; raises FileNotFoundError."""
    path = local_path(file)
    if not path.is_file():
        raise FileNotFoundError(f"The stored file {file.name} is gone.")
    if path != _place(str(file.name)):
        return path
    try:
        os.link(path, target)
    except OSError:  # the folders are on different disks
        shutil.copyfile(path, target)
    return target


def tidy() -> int:
    """Remove copies that nobody has requested recently, and the oldest if there are too many; returns how many."""
    copies = sorted(_copies(), key=lambda copy: copy[0], reverse=True)
    now = time.time()
    total = 0
    removed = 0
    for used, size, path in copies:
        total += size
        idle = now - used
        if idle > KEEP_SECONDS or (total > settings.MAX_COPIES_BYTES and idle > IN_USE_SECONDS):
            path.unlink(missing_ok=True)
            removed += 1
    return removed


def _copies() -> Iterator[tuple[float, int, Path]]:
    """Time of last use, size and path of every copy."""
    if not _folder().is_dir():
        return
    for path in _folder().iterdir():
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            yield status.st_mtime, status.st_size, path


def _folder() -> Path:
    return settings.DATA_DIR / "copies"


def _place(name: str) -> Path:
    # a digest: no part of a name in the store becomes a part of a path here
    return _folder() / (hashlib.sha256(name.encode()).hexdigest() + Path(name).suffix)


def _copy(storage: Storage, name: str) -> Path:
    place = _place(name)
    try:
        os.utime(place)
        return place
    except FileNotFoundError:
        pass
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    tidy()
    descriptor, temporary = tempfile.mkstemp(dir=place.parent, suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as target, storage.open(name, "rb") as source:
            shutil.copyfileobj(source, target, CHUNK)
        os.replace(temporary, place)  # two at once: each has a whole file
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return place
