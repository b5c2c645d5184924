"""Back up database, files and secrets into a folder, and restore them.

A backup is written under a hidden name and then renamed, so one with its final name is complete. `manifest.json` has
the size and SHA-256 of each file, and its own SHA-256.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.core.files.storage import default_storage

from octweb.core import database_copy, spool
from octweb.core.faults import BackupError
from trainer.version import VERSION

MANIFEST = "manifest.json"
FORMAT = "octweb-backup"
CHUNK_BYTES = 1 << 20
FILES = "files"
SPOOL = "spool"  # answers of approved models that no worker has collected yet
STAGED = ".restoring"
REPLACED = ".replaced"

log = logging.getLogger(__name__)


class Backup(NamedTuple):
    """A verified backup and its manifest."""

    folder: Path
    manifest: dict[str, Any]


def files_folder() -> Path | None:
    """Return the folder of uploads, or None if they are in a bucket."""
    try:
        return Path(default_storage.path(""))
    except NotImplementedError:
        return None


def _keys() -> dict[str, Path]:
    """Return the paths of the key files, by their names in a backup."""
    return {"secret_key": settings.DATA_DIR / "secret_key", "dossier_key.pem": settings.DOSSIER_KEY}


def write_backup(target: Path) -> dict[str, Any]:
    """Write a backup while octweb runs, and return its manifest. Raises BackupError.

    Files and records are copied before the database and again after it, because both may be removed meanwhile. Complete
    files never change; one that was still being written has grown. The collector skips records that it has collected
    before.
    """
    if target.exists():
        raise BackupError(f"'{target}' exists already. Name a new folder.")
    for folder in (files_folder(), spool.folder()):
        if folder and target.resolve().is_relative_to(folder):  # a restore replaces the content of these folders
            raise BackupError(f"'{target}' is within '{folder}', which is backed up. Name a folder outside.")
    if not database_copy.has_tables():
        raise BackupError("There is no database to back up. Check OCTWEB_DATA_DIR or DATABASE_URL.")
    partial = target.with_name(f".{target.name}.part")
    if partial.is_dir():  # of a backup that was killed
        with _lock(partial):
            shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o700, parents=True)
    with _lock(partial):
        return _write(partial, target)


@contextmanager
def _lock(partial: Path) -> Iterator[None]:
    """Lock the folder of an unfinished backup. Raises BackupError if another process writes into it."""
    descriptor = os.open(partial, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupError(f"Another process is writing this backup ('{partial}'). Name another folder.") from None
        except OSError:  # some network disks have no locks
            log.warning("%s cannot be locked; start no second backup with this name", partial)
        yield
    finally:
        os.close(descriptor)


def _write(partial: Path, target: Path) -> dict[str, Any]:
    """Write the backup into a folder, and rename that to `target`. Remove it after an error."""
    try:
        _copy_new(files_folder(), partial / FILES)
        _copy_new(spool.folder(), partial / SPOOL)
        (partial / "database").mkdir()
        description = database_copy.copy_database(partial / "database")
        _copy_new(files_folder(), partial / FILES)
        _copy_new(spool.folder(), partial / SPOOL, again=True)
        for name, path in _keys().items():
            if path.is_file():
                shutil.copyfile(path, partial / name)
        manifest = {
            "format": FORMAT,
            "format_version": 1,
            "octweb": VERSION,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "database": description,
            "files": "included" if files_folder() else settings.FILES,
            "entries": {str(path.relative_to(partial)): _entry(path) for path in _files(partial)},
        }
        manifest["digest"] = _digest(manifest)
        (partial / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        os.sync()  # a backup must survive a power failure once it has its name
        partial.rename(target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return manifest


def _files(folder: Path | None) -> Iterator[Path]:
    """Yield the files of a folder, without those of a restore that was killed."""
    if folder is None:
        return
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and not {STAGED, REPLACED} & set(path.relative_to(folder).parts):
            yield path


def _copy_new(source: Path | None, target: Path, *, again: bool = False) -> None:
    """Copy the files that `target` lacks or has in another size, or with `again` all.

    Files that vanish meanwhile are left out.
    """
    for path in _files(source):
        assert source is not None
        place = target / path.relative_to(source)
        try:
            if place.exists() and not again and place.stat().st_size == path.stat().st_size:
                continue
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copyfile(path, place)
        except FileNotFoundError:
            continue


def _entry(path: Path) -> dict[str, Any]:
    with path.open("rb") as stream:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(stream, "sha256").hexdigest()}


def _digest(manifest: dict[str, Any]) -> str:
    content = {name: value for name, value in manifest.items() if name != "digest"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def read_backup(folder: Path) -> Backup:
    """Verify a backup completely without changing anything. Raises BackupError."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except OSError as error:
        raise BackupError(
            f"'{folder}' is not a complete backup: {MANIFEST} cannot be read ({error.strerror})."
        ) from None
    except ValueError:
        manifest = None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BackupError(f"{MANIFEST} in '{folder}' is damaged or not of a backup. Use another backup.")
    if manifest["format_version"] != 1:
        raise BackupError("The backup has a newer format. Restore it with the version of octweb that made it.")
    if manifest.get("digest") != _digest(manifest):
        raise BackupError(f"{MANIFEST} in '{folder}' was changed. Use another backup.")
    present = {str(path.relative_to(folder)) for path in _files(folder)} - {MANIFEST}
    if added := sorted(present - set(manifest["entries"])):
        raise BackupError(f"The backup was changed: '{added[0]}' was added. Remove it, or use another backup.")
    for name, entry in manifest["entries"].items():
        if name not in present:
            raise BackupError(f"The backup is incomplete: '{name}' is missing. Use another backup.")
        if _entry(folder / name) != entry:
            raise BackupError(f"The backup is damaged: '{name}' has changed. Use another backup.")
    database_copy.check_database(folder / "database", manifest["database"])
    return Backup(folder, manifest)


def existing_parts() -> list[str]:
    """Return what a restore would overwrite, in words."""
    parts = [f"the folder '{folder}'" for folder in (files_folder(), spool.folder()) if any(_files(folder))]
    parts += [f"'{path}'" for path in _keys().values() if path.exists()]
    return ["the database", *parts] if database_copy.has_tables() else parts


def restore_backup(backup: Backup, *, overwrite: bool) -> None:
    """Restore a verified backup. Raises BackupError if something exists and must not be overwritten.

    Everything is copied first and then renamed, so an error before that changes nothing. Raises OSError if the copies
    cannot be written.
    """
    if not overwrite and (existing := existing_parts()):
        raise BackupError(
            f"This would overwrite {', '.join(existing)}. Choose an empty place, or add --overwrite. Nothing was changed."
        )
    if backup.manifest["files"] == "included" and files_folder() is None:
        raise BackupError("The backup has files, and OCTWEB_FILES names a bucket. Set OCTWEB_FILES to a folder.")
    folders = {name: folder for name, folder in ((FILES, files_folder()), (SPOOL, spool.folder())) if folder}
    if inside := [folder for folder in folders.values() if backup.folder.resolve().is_relative_to(folder)]:
        raise BackupError(f"The backup is within '{inside[0]}', which it replaces. Move it to another place.")
    try:
        staged = [(_stage(backup.folder / name, folder), folder) for name, folder in folders.items()]
        database_copy.restore_database(backup.folder / "database", backup.manifest["database"])
    except BaseException:
        for folder in folders.values():
            shutil.rmtree(folder / STAGED, ignore_errors=True)
        raise
    for new, folder in staged:
        _swap(new, folder)
    for name, path in _keys().items():
        if (backup.folder / name).is_file():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new = path.with_name(path.name + STAGED)
            shutil.copyfile(backup.folder / name, new)
            os.replace(new, path)


def _stage(source: Path, folder: Path) -> Path:
    """Copy a folder of the backup into a hidden folder beside the files that it replaces. Return that folder."""
    new = folder / STAGED
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=0o700, parents=True)
    _copy_new(source if source.is_dir() else None, new)
    return new


def _swap(new: Path, folder: Path) -> None:
    """Replace the content of a folder, which may be a mount and is not renamed itself."""
    old = folder / REPLACED
    shutil.rmtree(old, ignore_errors=True)  # of a restore that was killed
    old.mkdir()
    for path in folder.iterdir():
        if path not in (new, old):
            os.replace(path, old / path.name)
    for path in new.iterdir():
        os.replace(path, folder / path.name)
    new.rmdir()
    shutil.rmtree(old)
