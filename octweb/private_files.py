"""Keep stored files readable only by their owner."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

from trainer.cli import COMMANDS

log = logging.getLogger(__name__)

OTHERS = 0o077  # permission bits of group and others
# these commands write files for their caller, so the caller's umask applies
FILE_COMMANDS = frozenset([*COMMANDS, "dossier"])


def protect_new_files() -> None:
    """Set the umask of this process and its children so that only the owner can read new files."""
    os.umask(OTHERS)


def protect_folder(folder: Path) -> None:
    """Remove permissions of others from a folder and its content, without following links.

    Shared folders, such as /tmp, stay unchanged.
    """
    if not folder.is_dir():
        return
    if folder.stat().st_mode & stat.S_ISVTX:
        log.warning("%s is a folder of all users: its content may be readable by others. Use another one.", folder)
        return
    refused = sum(not _take_rights(path) for path in (folder, *folder.rglob("*")))
    if refused:
        log.warning(
            "%s files in %s belong to another user, so others may read them. Give them to the user that runs octweb.",
            refused,
            folder,
        )


def _take_rights(path: Path) -> bool:
    """Remove the permissions of others from a file. Return False if it belongs to another user."""
    try:
        mode = path.lstat().st_mode
        if not stat.S_ISLNK(mode) and mode & OTHERS:
            path.chmod(stat.S_IMODE(mode) & ~OTHERS)
    except FileNotFoundError:  # another process has removed the file meanwhile
        return True
    except PermissionError:
        return False
    return True
