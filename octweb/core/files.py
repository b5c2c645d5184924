"""File store: a local folder, or a bucket shared by all hosts.

Readers of tables need a local path. In a folder this is the file itself; from a bucket, a copy is downloaded once and
cached in the data folder. Stored files never change and names are never reused, so a copy is never stale.
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
ORPHAN_LIFE = timedelta(days=1)  # a younger file without a database row may belong to an upload that is still running
KEEP_SECONDS = 24 * 3600.0  # local copies that nobody used for longer are removed
IN_USE_SECONDS = 600.0  # copies used more recently than this are never removed, since a process may still read them


def local_path(file: FieldFile) -> Path:
    """Return a local path of a stored file. Raises FileNotFoundError, or StoreUnavailable if the store does not respond."""
    try:
        return Path(file.path)
    except NotImplementedError:
        return _copy(file.storage, str(file.name))


def protect_stored() -> None:
    """Remove the permissions of other users from the data folder and the folder of files."""
    protect_folder(settings.DATA_DIR)
    with contextlib.suppress(NotImplementedError):  # a bucket has no local path
        files = Path(default_storage.path(""))
        if not files.is_relative_to(settings.DATA_DIR):
            protect_folder(files)


def remove(storage: Storage, name: str) -> None:
    """Remove a stored file and the copy on this host.

    The database no longer refers to the file, so a store that does not respond is only logged.
    """
    _place(name).unlink(missing_ok=True)
    try:
        storage.delete(name)
    except StoreUnavailable as error:
        log.warning("the file %s is left in the store: %s", name, error)


def age(name: str, now: datetime) -> timedelta:
    """Return the time since a stored file was changed."""
    moment = default_storage.get_modified_time(name)
    return now - (moment if timezone.is_aware(moment) else timezone.make_aware(moment))


def remove_unknown(folder: str, known: Iterable[str], now: datetime) -> int:
    """Remove stored files of a folder that are not in `known` and older than any running upload. Returns their number."""
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
    """Link the stored file or its copy at `target`, and return a path that stays valid. Raises FileNotFoundError."""
    path = local_path(file)
    if not path.is_file():
        raise FileNotFoundError(f"The stored file {file.name} is gone.")
    if path != _place(str(file.name)):
        return path
    try:
        os.link(path, target)
    except OSError:  # the folders are on different disks, where links are impossible
        shutil.copyfile(path, target)
    return target


def tidy() -> int:
    """Evict copies that were not used recently, and the oldest if there are too many. Returns their number."""
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
    """Return time of last use, size and path of every copy."""
    if not _folder().is_dir():
        return
    for path in _folder().iterdir():
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            yield status.st_mtime, status.st_size, path


def _folder() -> Path:
    return settings.DATA_DIR / "copies"


def _place(name: str) -> Path:
    # The local name is a digest, because a name from the store could point outside this folder.
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
        os.replace(temporary, place)  # two processes may download the same file; each replaces it as a whole
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return place
