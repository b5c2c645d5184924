"""Access the file store: a local folder, or a bucket shared by all hosts.

Code that reads tables needs a local path. In a folder, this is the file itself. From a bucket, a copy is downloaded
once and cached in the data folder. Stored files never change and names are never reused, so a copy is never stale.
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
ORPHAN_LIFE = timedelta(days=1)  # younger files without a database row may belong to a running upload
KEEP_SECONDS = 24 * 3600.0  # local copies that were not used for this time are removed
IN_USE_SECONDS = 600.0  # copies used more recently are never removed, because a process may still read them


def local_path(file: FieldFile) -> Path:
    """Return a local path of a stored file.

    Raises FileNotFoundError, also if the file was erased, and StoreUnavailable if the store does not respond.
    """
    if not file:
        raise FileNotFoundError("The stored file was erased.")
    try:
        return Path(file.path)
    except NotImplementedError:
        return _copy(file.storage, str(file.name))


def protect_stored() -> None:
    """Remove other users' permissions on the data folder and the file folder."""
    protect_folder(settings.DATA_DIR)
    with contextlib.suppress(NotImplementedError):  # a bucket has no local path
        files = Path(default_storage.path(""))
        if not files.is_relative_to(settings.DATA_DIR):
            protect_folder(files)


def remove(storage: Storage, name: str) -> None:
    """Remove a stored file and its copy on this host.

    The database no longer refers to the file. If the store does not respond, the error is only logged.
    """
    _place(name).unlink(missing_ok=True)
    try:
        storage.delete(name)
    except StoreUnavailable as error:
        log.warning("the file %s is left in the store: %s", name, error)


def age(name: str, now: datetime) -> timedelta:
    """Return the time since a stored file was last changed."""
    moment = default_storage.get_modified_time(name)
    return now - (moment if timezone.is_aware(moment) else timezone.make_aware(moment))


def remove_unknown(folder: str, known: Iterable[str], now: datetime) -> int:
    """Remove files of a folder that are not in `known` and too old for a running upload. Return how many."""
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
    """Return a stable local path of a stored file. Raises FileNotFoundError.

    A file in a folder store keeps its own path. A copy from a bucket is linked at `target`, because the cache may evict
    it.
    """
    path = local_path(file)
    if not path.is_file():
        raise FileNotFoundError(f"The stored file {file.name} is gone.")
    if path != _place(str(file.name)):
        return path
    try:
        os.link(path, target)
    except OSError:  # the folders are on different file systems, where hard links are impossible
        shutil.copyfile(path, target)
    return target


def tidy() -> int:
    """Evict copies that were not used recently. If the rest is too large, evict the oldest. Return how many."""
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
    """Yield the time of last use, size and path of every copy."""
    if not _folder().is_dir():
        return
    for path in _folder().iterdir():
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            yield status.st_mtime, status.st_size, path


def _folder() -> Path:
    return settings.DATA_DIR / "copies"


def _place(name: str) -> Path:
    # the local name is a digest, because a name from the store could point outside this folder
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
